//! `uuid::Uuid` as a value of UUID.

use mainstem_storage::Result;
use uuid::Uuid as Theirs;

use crate::value::{FromValue, ToValue, Uuid, ValueRef};

impl ToValue for Theirs {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Uuid((*self).into())
    }
}

impl<'a> FromValue<'a> for Theirs {
    fn from_value(value: ValueRef<'a>) -> Result<Self> {
        Uuid::from_value(value).map(Self::from)
    }
}
