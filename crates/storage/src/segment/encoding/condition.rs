//! A predicate, once its constants are known to a type: what remains to be asked of each value.
//!
//! Comes in: a [`Predicate`] on a column. Goes out: a [`Condition`] on values of type `N`, or a set of codes. NULLs are
//! not its matter: a NULL is never selected by a condition, and the block takes them out of the answer.

use mainstem_kernels::compare::{Plain as Comparable, select_range_plain};
use mainstem_kernels::{bitmap, bitpack, compare};

use super::native::{Native, Place};
use crate::error::{Error, Result};
use crate::predicate::{CompareOp, Predicate};
use crate::row::Value;

/// What a predicate asks of values that are not NULL.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Condition<N> {
    /// None qualifies.
    Never,
    /// All do.
    Always,
    /// Those in the closed range.
    Within(N, N),
    /// Those outside it.
    Outside(N, N),
    /// Those listed, ascending and distinct.
    OneOf(Vec<N>),
}

/// Which entries of a column are wanted: the distinct values that its rows are codes of, and NULL.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EntrySelection {
    pub(super) codes: Condition<u64>,
    has_null: bool,
}

impl EntrySelection {
    /// Those of `entries` that `is_wanted` is true for, by the order in which a column gives them.
    pub fn of(entries: usize, is_wanted: impl Fn(usize) -> bool) -> Self {
        let values = entries.saturating_sub(1);
        let listed: Vec<u64> = (0..values).filter(|entry| is_wanted(*entry)).map(|entry| entry as u64).collect();
        let codes = match (listed.first(), listed.last()) {
            (None, _) | (_, None) => Condition::Never,
            _ if listed.len() == values => Condition::Always,
            (Some(&first), Some(&last)) if last - first + 1 == listed.len() as u64 => Condition::Within(first, last),
            _ => Condition::OneOf(listed),
        };
        Self { codes, has_null: is_wanted(values) }
    }

    /// Whether rows that are NULL are wanted.
    pub fn has_null(&self) -> bool {
        self.has_null
    }
}

/// Listed values up to which one comparison each beats a search per row.
pub(crate) const LISTED_FEW: usize = 4;

/// Bits of a code up to which a bitmap of all codes, 32 KiB, fits the first-level cache.
const MEMBERS_WIDTH_MAX: u32 = 18;

/// A defect: the planner compared a column with a constant of another type.
pub(crate) fn wrong_constant(value: &Value) -> Error {
    Error::internal(format!("a predicate compares a column with a constant of another type: {value:?}"))
}

impl<N: Native> Condition<N> {
    /// What `predicate` asks of values of type `N`.
    ///
    /// # Errors
    /// Internal when its constants are of another type.
    pub fn of(predicate: &Predicate) -> Result<Self> {
        Ok(match predicate {
            Predicate::IsNull { .. } => Self::Never,
            Predicate::IsNotNull { .. } => Self::Always,
            Predicate::Compare { value: Value::Null, .. } => Self::Never,
            Predicate::Compare { op, value, .. } => {
                Self::compare(*op, N::place(value).ok_or_else(|| wrong_constant(value))?)
            }
            Predicate::In { values, .. } => {
                let mut listed = Vec::with_capacity(values.len());
                for value in values.iter().filter(|v| !v.is_null()) {
                    if let Place::At(v) = N::place(value).ok_or_else(|| wrong_constant(value))? {
                        listed.push(v);
                    }
                }
                listed.sort_unstable_by(|a, b| a.order(*b));
                listed.dedup_by(|a, b| a.order(*b).is_eq());
                match *listed.as_slice() {
                    [] => Self::Never,
                    [one] => Self::Within(one, one),
                    _ => Self::OneOf(listed),
                }
            }
        })
    }

    fn compare(op: CompareOp, place: Place<N>) -> Self {
        use CompareOp::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
        match (op, place) {
            (Eq, Place::At(v)) => Self::Within(v, v),
            (NotEq, Place::At(v)) => Self::Outside(v, v),
            (Lt, Place::At(v)) => v.below().map_or(Self::Never, |high| Self::Within(N::LEAST, high)),
            (LtEq, Place::At(v)) => Self::Within(N::LEAST, v),
            (Gt, Place::At(v)) => v.above().map_or(Self::Never, |low| Self::Within(low, N::GREATEST)),
            (GtEq, Place::At(v)) => Self::Within(v, N::GREATEST),
            (NotEq, _) | (Gt | GtEq, Place::Below) | (Lt | LtEq, Place::Above) => Self::Always,
            (Eq, _) | (Lt | LtEq, Place::Below) | (Gt | GtEq, Place::Above) => Self::Never,
        }
    }

    /// The bitmap of `values` that meet the condition.
    pub fn select(&self, values: &[N]) -> Vec<u64> {
        let mut out = vec![0; bitmap::words(values.len())];
        match self {
            Self::Never => {}
            Self::Always => return bitmap::full(values.len()),
            Self::Within(low, high) => select_range_plain(values, *low, *high, &mut out),
            Self::Outside(low, high) => {
                select_range_plain(values, *low, *high, &mut out);
                bitmap::not_in_place(&mut out, values.len());
            }
            Self::OneOf(listed) if listed.len() <= LISTED_FEW => select_listed(values, listed, &mut out),
            Self::OneOf(listed) => {
                for (i, value) in values.iter().enumerate() {
                    if listed.binary_search_by(|l| l.order(*value)).is_ok() {
                        bitmap::set(&mut out, i);
                    }
                }
            }
        }
        out
    }
}

fn select_listed<N: Comparable>(values: &[N], listed: &[N], out: &mut [u64]) {
    let mut one = vec![0; out.len()];
    for value in listed {
        select_range_plain(values, *value, *value, &mut one);
        bitmap::or_in_place(out, &one);
    }
}

/// The bitmap of the codes that meet `condition`, of `len` rows of `packed` from row `start`.
pub(crate) fn select_codes(
    packed: &[u8],
    width: u32,
    start: usize,
    len: usize,
    condition: &Condition<u64>,
) -> Vec<u64> {
    let mut out = vec![0; bitmap::words(len)];
    match condition {
        Condition::Never => {}
        Condition::Always => return bitmap::full(len),
        Condition::Within(low, high) => compare::select_range(packed, width, start, len, *low, *high, &mut out),
        Condition::Outside(low, high) => {
            compare::select_range(packed, width, start, len, *low, *high, &mut out);
            bitmap::not_in_place(&mut out, len);
        }
        Condition::OneOf(listed) if listed.len() <= LISTED_FEW => {
            let mut one = vec![0; out.len()];
            for code in listed {
                compare::select_range(packed, width, start, len, *code, *code, &mut one);
                bitmap::or_in_place(&mut out, &one);
            }
        }
        Condition::OneOf(listed) if width <= MEMBERS_WIDTH_MAX => {
            let mut members = vec![0; bitmap::words(1 << width)];
            for code in listed.iter().filter(|code| **code < 1 << width) {
                bitmap::set(&mut members, *code as usize);
            }
            compare::select_members(packed, width, start, len, &members, &mut out);
        }
        Condition::OneOf(listed) => {
            let mut codes = vec![0; len];
            bitpack::unpack_u64(packed, width, start, &mut codes);
            for (i, code) in codes.iter().enumerate() {
                if listed.binary_search(code).is_ok() {
                    bitmap::set(&mut out, i);
                }
            }
        }
    }
    out
}

/// What a predicate asks of the codes of an ordered dictionary of `len` values, where `rank` gives, for a constant, how
/// many of them are smaller and how many are smaller or equal.
///
/// # Errors
/// What `rank` gives.
pub(crate) fn on_dictionary(
    predicate: &Predicate,
    len: usize,
    rank: impl Fn(&Value) -> Result<(usize, usize)>,
) -> Result<Condition<u64>> {
    let within = |low: usize, end: usize| match end.checked_sub(1) {
        Some(high) if low <= high => Condition::Within(low as u64, high as u64),
        _ => Condition::Never,
    };
    Ok(match predicate {
        Predicate::IsNull { .. } => Condition::Never,
        Predicate::IsNotNull { .. } => Condition::Always,
        Predicate::Compare { value: Value::Null, .. } => Condition::Never,
        Predicate::Compare { op, value, .. } => {
            let (less, upto) = rank(value)?;
            match op {
                CompareOp::Eq => within(less, upto),
                CompareOp::NotEq if less == upto => Condition::Always,
                CompareOp::NotEq => Condition::Outside(less as u64, less as u64),
                CompareOp::Lt => within(0, less),
                CompareOp::LtEq => within(0, upto),
                CompareOp::Gt => within(upto, len),
                CompareOp::GtEq => within(less, len),
            }
        }
        Predicate::In { values, .. } => {
            let mut listed = Vec::new();
            for value in values.iter().filter(|v| !v.is_null()) {
                let (less, upto) = rank(value)?;
                listed.extend((less..upto).map(|code| code as u64));
            }
            listed.sort_unstable();
            listed.dedup();
            match *listed.as_slice() {
                [] => Condition::Never,
                [one] => Condition::Within(one, one),
                _ => Condition::OneOf(listed),
            }
        }
    })
}
