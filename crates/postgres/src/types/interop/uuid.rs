//! `uuid::Uuid` is UUID.

use uuid::Uuid as Theirs;

use crate::types::Uuid;

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
