//! `rust_decimal::Decimal` as a value of DECIMAL.

use mainstem_storage::Result;
use rust_decimal::Decimal as Theirs;

use crate::value::{Decimal, FromValue, ToValue, ValueRef};

impl ToValue for Theirs {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Decimal((*self).into())
    }
}

/// Integers are read as well.
impl<'a> FromValue<'a> for Theirs {
    fn from_value(value: ValueRef<'a>) -> Result<Self> {
        Decimal::from_value(value)?.try_into()
    }
}
