//! What each run of a statement is given: its text, and the value of its parameter.

use std::borrow::Cow;

use super::cases::{Case, FRESH, Value};
use crate::keys::Random;
use crate::peers::{Call, Values};

/// New keys of a case of the peers, who count them themselves.
const KEYS_OF_PEERS: u64 = 1 << 32;

/// One run of a statement.
#[derive(Debug)]
pub(super) struct Operation {
    /// Its text. Prepared ones have it already.
    pub(super) text: Cow<'static, str>,
    /// The value, as one of a prepared statement or of a one-shot call.
    pub(super) parameter: Option<i64>,
    /// The value, wherever it stands.
    pub(super) value: Option<i64>,
}

/// Makes operations.
pub(super) struct Inputs {
    users: u64,
    random: Random,
    new_key: u64,
    new_key_of_peers: u64,
    fresh: u64,
}

impl Inputs {
    /// For tables of `users` users.
    pub(super) fn new(users: u64) -> Self {
        Self { users, random: Random::new(1), new_key: users * 2, new_key_of_peers: KEYS_OF_PEERS, fresh: 1_000_000 }
    }

    /// The next run of `case`.
    pub(super) fn operation(&mut self, case: Case) -> Operation {
        let value = self.value(case.value);
        let mut text = Cow::Borrowed(case.sql);
        if case.sql.contains(FRESH) {
            self.fresh += 1;
            text = text.replace(FRESH, &self.fresh.to_string()).into();
        }
        match (case.call, value) {
            (Call::Text, Some(number)) => {
                Operation { text: text.replace("$1", &number.to_string()).into(), parameter: None, value }
            }
            _ => Operation { text, parameter: value, value },
        }
    }

    fn value(&mut self, value: Value) -> Option<i64> {
        let number = match value {
            Value::Key => self.random.below(self.users),
            Value::Below(limit) => self.random.below(limit),
            Value::Always(number) => number,
            Value::NewKey => {
                self.new_key += 1;
                self.new_key
            }
            Value::None => return None,
        };
        i64::try_from(number).ok()
    }

    /// The values of a peer's runs of `case`.
    pub(super) fn of_peers(&mut self, case: Case) -> Option<Values> {
        match case.value {
            Value::Key => Some(Values::Below(self.users)),
            Value::Below(limit) => Some(Values::Below(limit)),
            Value::Always(number) => Some(Values::Always(number)),
            Value::NewKey => {
                self.new_key_of_peers += KEYS_OF_PEERS;
                Some(Values::From(self.new_key_of_peers))
            }
            Value::None => None,
        }
    }
}
