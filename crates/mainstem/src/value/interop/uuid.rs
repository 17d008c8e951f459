//! `uuid::Uuid` is UUID.

use mainstem_storage::Result;
use uuid::Uuid as Theirs;

use crate::value::{FromValue, ToValue, Uuid, ValueRef};

impl From<Theirs> for Uuid {
    fn from(uuid: Theirs) -> Self {
        Self::from(uuid.into_bytes())
    }
}

impl From<Uuid> for Theirs {
    fn from(uuid: Uuid) -> Self {
        Self::from_bytes(uuid.into())
    }
}

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
