//! UUIDs: 16 bytes, ordered as bytes, and their text.

use std::fmt;
use std::str::FromStr;

use mainstem_storage::{Error, Result};

use crate::sqlstate;

/// A UUID.
///
/// ```
/// let id: mainstem_postgres::types::Uuid = "{A0EEBC99-9C0B4EF8-BB6D6BB9BD380A11}".parse()?;
/// assert_eq!(id.to_string(), "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11");
/// assert_eq!(mainstem_postgres::types::Uuid::from(*id.as_bytes()), id);
/// assert_eq!("a0eebc99".parse::<mainstem_postgres::types::Uuid>().unwrap_err().sqlstate(), "22P02");
/// # Ok::<(), mainstem_storage::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid([u8; 16]);

impl Uuid {
    /// Its bytes in order.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl From<[u8; 16]> for Uuid {
    fn from(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl From<Uuid> for [u8; 16] {
    fn from(uuid: Uuid) -> Self {
        uuid.0
    }
}

/// The first byte is the highest.
impl From<u128> for Uuid {
    fn from(number: u128) -> Self {
        Self(number.to_be_bytes())
    }
}

/// The first byte is the highest.
impl From<Uuid> for u128 {
    fn from(uuid: Uuid) -> Self {
        Self::from_be_bytes(uuid.0)
    }
}

/// `a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11`.
impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// As PostgreSQL reads it: 32 hexadecimal digits in either case, perhaps in braces, perhaps with a hyphen after any
/// four. Anything else is 22P02.
impl FromStr for Uuid {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong =
            || Error::invalid(sqlstate::INVALID_TEXT, format!("invalid input syntax for type uuid: \"{text}\""));
        let inner = match text.strip_prefix('{') {
            Some(rest) => rest.strip_suffix('}').ok_or_else(wrong)?,
            None => text,
        };
        let mut bytes = [0; 16];
        let mut rest = inner.as_bytes();
        for (at, byte) in bytes.iter_mut().enumerate() {
            let [high, low, after @ ..] = rest else { return Err(wrong()) };
            let digit = |b: &u8| char::from(*b).to_digit(16).ok_or_else(wrong);
            *byte = u8::try_from(digit(high)? * 16 + digit(low)?).map_err(|_| wrong())?;
            rest = match after {
                [b'-', after @ ..] if at % 2 == 1 && at < 15 => after,
                after => after,
            };
        }
        if rest.is_empty() { Ok(Self(bytes)) } else { Err(wrong()) }
    }
}
