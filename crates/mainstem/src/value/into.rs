//! Rust values to SQL values: parameters and appended rows.

use std::borrow::Cow;
use std::time::SystemTime;

use mainstem_storage::{Error, Result};

use super::{Date, Decimal, Time, Timestamp, TimestampTz, Uuid, ValueRef};
use mainstem_postgres::sqlstate as state;

/// A Rust value that can be bound to a parameter or appended to a table.
///
/// The SQL type follows from the Rust type: `bool`, `i16`, `i32`, `i64`, `f32`, `f64` are BOOLEAN, SMALLINT, INTEGER,
/// BIGINT, REAL, DOUBLE PRECISION (smaller integers take the next larger type); [`Decimal`], [`Date`], [`Time`],
/// [`Timestamp`], [`TimestampTz`], [`Uuid`] and `SystemTime` are what their names say; strings are TEXT, bytes BYTEA
/// (16 of them also spell a UUID); `None` is NULL.
pub trait ToValue {
    /// The value.
    fn to_value(&self) -> ValueRef<'_>;

    /// The text that is bound instead of [`ToValue::to_value`], for values that have to be written before they can be
    /// borrowed, such as an array of JSON; none, the default, for all others. [`Params`] of tuples, arrays and slices
    /// ask for it first, and so has anybody else who calls `to_value`.
    fn owned_text(&self) -> Option<String> {
        None
    }
}

impl ToValue for ValueRef<'_> {
    fn to_value(&self) -> ValueRef<'_> {
        *self
    }
}

macro_rules! by_copy {
    ($($rust:ty => $variant:ident),* $(,)?) => {
        $(impl ToValue for $rust {
            fn to_value(&self) -> ValueRef<'_> {
                ValueRef::$variant((*self).into())
            }
        })*
    };
}

by_copy! {
    bool => Boolean, i8 => SmallInt, u8 => SmallInt, i16 => SmallInt, u16 => Integer, i32 => Integer, u32 => BigInt,
    i64 => BigInt, f32 => Real, f64 => Double, Decimal => Decimal, Date => Date, Timestamp => Timestamp,
    TimestampTz => TimestampTz, SystemTime => TimestampTz, Time => Time, Uuid => Uuid,
}

impl ToValue for str {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Text(self)
    }
}

impl ToValue for String {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Text(self)
    }
}

impl ToValue for [u8] {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Bytes(self)
    }
}

impl<const N: usize> ToValue for [u8; N] {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Bytes(self)
    }
}

impl ToValue for Vec<u8> {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Bytes(self)
    }
}

impl<T: ToValue> ToValue for Option<T> {
    fn to_value(&self) -> ValueRef<'_> {
        self.as_ref().map_or(ValueRef::Null, T::to_value)
    }

    fn owned_text(&self) -> Option<String> {
        self.as_ref().and_then(T::owned_text)
    }
}

impl<T: ToValue + ?Sized> ToValue for &T {
    fn to_value(&self) -> ValueRef<'_> {
        (**self).to_value()
    }

    fn owned_text(&self) -> Option<String> {
        (**self).owned_text()
    }
}

impl<T: ToValue + ?Sized> ToValue for Box<T> {
    fn to_value(&self) -> ValueRef<'_> {
        (**self).to_value()
    }

    fn owned_text(&self) -> Option<String> {
        (**self).owned_text()
    }
}

impl<T: ToValue + ToOwned + ?Sized> ToValue for Cow<'_, T> {
    fn to_value(&self) -> ValueRef<'_> {
        (**self).to_value()
    }

    fn owned_text(&self) -> Option<String> {
        (**self).owned_text()
    }
}

/// The value of `given`, or the text that was written for it.
#[inline]
fn value_or<'a, T: ToValue + ?Sized>(given: &'a T, text: &'a Option<String>) -> ValueRef<'a> {
    match text {
        None => given.to_value(),
        Some(text) => ValueRef::Text(text),
    }
}

/// The values of a statement's parameters, or of a row: a tuple (`(1, "a", None::<i32>)`), an array or slice of one
/// type, or of `&dyn ToValue`; `()` for none. Pairs of a name and a value in an array or slice are for parameters
/// `:name`, in any order: see [`named_params!`](crate::named_params).
pub trait Params {
    /// Calls `work` with the values. They are borrowed, and stand on the stack where their number is known.
    fn with_values<R>(&self, work: impl FnOnce(&[ValueRef<'_>]) -> R) -> R;

    /// The names of the values, with a colon in front or without; none, the default, for values in the order of the
    /// parameters.
    fn names(&self) -> Option<Vec<&str>> {
        None
    }
}

impl<P: Params + ?Sized> Params for &P {
    fn with_values<R>(&self, work: impl FnOnce(&[ValueRef<'_>]) -> R) -> R {
        (**self).with_values(work)
    }

    fn names(&self) -> Option<Vec<&str>> {
        (**self).names()
    }
}

impl<S: AsRef<str>, T: ToValue> Params for [(S, T)] {
    fn with_values<R>(&self, work: impl FnOnce(&[ValueRef<'_>]) -> R) -> R {
        let texts: Vec<Option<String>> = self.iter().map(|(_, given)| given.owned_text()).collect();
        let given = self.iter().map(|(_, given)| given).zip(&texts);
        let values: Vec<ValueRef<'_>> = given.map(|(given, text)| value_or(given, text)).collect();
        work(&values)
    }

    fn names(&self) -> Option<Vec<&str>> {
        Some(self.iter().map(|(name, _)| name.as_ref()).collect())
    }
}

impl<S: AsRef<str>, T: ToValue> Params for Vec<(S, T)> {
    fn with_values<R>(&self, work: impl FnOnce(&[ValueRef<'_>]) -> R) -> R {
        self.as_slice().with_values(work)
    }

    fn names(&self) -> Option<Vec<&str>> {
        self.as_slice().names()
    }
}

impl<S: AsRef<str>, T: ToValue, const N: usize> Params for [(S, T); N] {
    fn with_values<R>(&self, work: impl FnOnce(&[ValueRef<'_>]) -> R) -> R {
        self.as_slice().with_values(work)
    }

    fn names(&self) -> Option<Vec<&str>> {
        self.as_slice().names()
    }
}

/// Values of several types by the names of their parameters.
///
/// ```
/// use mainstem::named_params;
///
/// # fn main() -> mainstem::Result<()> {
/// let connection = mainstem::Database::in_memory()?.connect()?;
/// connection.execute("CREATE TABLE city (name TEXT PRIMARY KEY, people INTEGER)")?;
/// let insert = connection.prepare("INSERT INTO city VALUES (:name, :people)")?;
/// insert.execute(named_params! { ":people": 128_928, ":name": "Ulm" })?;
/// insert.execute([("name", "Jena"), ("people", "111343")])?;
/// let row = connection.query_row("SELECT people FROM city WHERE name = :name", [("name", "Jena")])?;
/// assert_eq!(row.get::<i32>(0)?, 111_343);
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! named_params {
    ($($name:literal: $value:expr),* $(,)?) => {
        &[$(($name, &$value as &dyn $crate::ToValue)),*] as &[(&str, &dyn $crate::ToValue)]
    };
}

/// Calls `work` with the values of `params` in the order of the names `wanted`, where they have names, or else in their
/// own.
///
/// # Errors
/// Those of `work`; 42P02 for a name that is not wanted, 08P01 for one that has no value or two.
pub(crate) fn with_bound<'n, R>(
    params: &(impl Params + ?Sized),
    wanted: impl Iterator<Item = &'n str> + Clone,
    work: impl FnOnce(&[ValueRef<'_>]) -> Result<R>,
) -> Result<R> {
    match params.names() {
        None => params.with_values(work),
        Some(given) => params.with_values(|values| work(&in_order(&given, values, wanted)?)),
    }
}

/// `values`, which are called `given`, in the order of the names `wanted`.
fn in_order<'v, 'n>(
    given: &[&str],
    values: &[ValueRef<'v>],
    wanted: impl Iterator<Item = &'n str> + Clone,
) -> Result<Vec<ValueRef<'v>>> {
    let given: Vec<&str> = given.iter().map(|name| name.strip_prefix(':').unwrap_or(name)).collect();
    for (at, name) in given.iter().enumerate() {
        if !wanted.clone().any(|known| known == *name) {
            let known: Vec<String> = wanted.clone().map(|name| format!(":{name}")).collect();
            let there = match known.as_slice() {
                [] => "there are none that have names".to_owned(),
                known => format!("there are {}", known.join(", ")),
            };
            let message = format!("there is no parameter :{name}; {there}");
            return Err(Error::invalid(state::UNDEFINED_PARAMETER, message));
        }
        if given.iter().take(at).any(|before| before == name) {
            return Err(Error::invalid(state::PARAMETER_COUNT, format!("parameter :{name} was given two values")));
        }
    }
    let value = |name: &str| {
        let at = given.iter().position(|given| *given == name);
        let value = at.and_then(|at| values.get(at)).copied();
        let none = || Error::invalid(state::PARAMETER_COUNT, format!("parameter :{name} was given no value"));
        value.ok_or_else(none)
    };
    wanted.map(value).collect()
}

impl<T: ToValue> Params for [T] {
    fn with_values<R>(&self, work: impl FnOnce(&[ValueRef<'_>]) -> R) -> R {
        let texts: Vec<Option<String>> = self.iter().map(T::owned_text).collect();
        let values: Vec<ValueRef<'_>> = self.iter().zip(&texts).map(|(given, text)| value_or(given, text)).collect();
        work(&values)
    }
}

impl<T: ToValue> Params for Vec<T> {
    fn with_values<R>(&self, work: impl FnOnce(&[ValueRef<'_>]) -> R) -> R {
        self.as_slice().with_values(work)
    }
}

impl<T: ToValue, const N: usize> Params for [T; N] {
    fn with_values<R>(&self, work: impl FnOnce(&[ValueRef<'_>]) -> R) -> R {
        let texts = self.each_ref().map(T::owned_text);
        let mut values = [ValueRef::Null; N];
        for (value, (given, text)) in values.iter_mut().zip(self.iter().zip(&texts)) {
            *value = value_or(given, text);
        }
        work(&values)
    }
}

impl Params for () {
    fn with_values<R>(&self, work: impl FnOnce(&[ValueRef<'_>]) -> R) -> R {
        work(&[])
    }
}

macro_rules! tuples {
    ($(($($name:ident $at:tt),+))*) => {
        $(impl<$($name: ToValue),+> Params for ($($name,)+) {
            fn with_values<R>(&self, work: impl FnOnce(&[ValueRef<'_>]) -> R) -> R {
                let texts = ($(self.$at.owned_text(),)+);
                work(&[$(value_or(&self.$at, &texts.$at)),+])
            }
        })*
    };
}

tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14, P 15)
}
