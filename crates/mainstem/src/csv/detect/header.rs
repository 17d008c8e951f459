//! Whether the first row of a file is names, and what names they are.

use std::collections::HashSet;

use super::Field;
use super::value_type::{ColumnTypes, ValueType};

/// Longest name that a row of nothing but texts may have.
const NAME_CHARS_MAX: usize = 64;

/// Whether `first` is the names of columns whose other rows are of `types`. Names that are `known` settle it.
pub(super) fn is_header(first: &[Field], types: &[ColumnTypes], null: &str, known: &[String]) -> bool {
    let text = |field: &Field| String::from_utf8_lossy(&field.text).trim().to_owned();
    if !known.is_empty() && first.len() == known.len() {
        return first.iter().zip(known).all(|(field, name)| text(field).eq_ignore_ascii_case(name));
    }
    // A column of row numbers often has no name; more than one is no header.
    let nameless = first.iter().skip(1).any(|field| field.is_null(null) || text(field).is_empty());
    let names: HashSet<String> = first.iter().map(text).collect();
    if nameless || names.len() < first.len() || first.iter().any(|field| std::str::from_utf8(&field.text).is_err()) {
        return false;
    }
    let is_value = |field: &Field| ValueType::of(&field.text).is_some();
    let values = first.iter().filter(|field| is_value(field)).count();
    if values * 2 >= first.len() {
        return false;
    }
    let differs = first.iter().zip(types).any(|(field, of)| of.is_typed() && !of.takes(&field.text));
    let is_text = types.iter().all(|of| !of.is_typed());
    differs || is_text && values == 0 && first.iter().all(|field| is_like_a_name(&text(field)))
}

/// Whether `text` may name a column.
fn is_like_a_name(text: &str) -> bool {
    let may_begin = |c: char| c.is_alphabetic() || c == '_';
    let may_follow = |c: char| c.is_alphanumeric() || "_ -./()#%:&".contains(c);
    text.starts_with(may_begin) && text.chars().all(may_follow) && text.chars().count() <= NAME_CHARS_MAX
}

/// The names in `first`, for `width` columns: folded as a statement folds them that does not quote them, unless two
/// were the same then.
pub(super) fn names(first: &[Field], width: usize) -> Vec<String> {
    let text = |field: &Field| String::from_utf8_lossy(&field.text).trim().to_owned();
    let written: Vec<String> = (0..width).map(|at| first.get(at).map(text).unwrap_or_default()).collect();
    let folded: Vec<String> = written.iter().map(|name| name.to_ascii_lowercase()).collect();
    let are_same = |names: &[String]| names.iter().collect::<HashSet<_>>().len();
    let names = if are_same(&folded) == are_same(&written) { folded } else { written };
    let mut taken: HashSet<String> = HashSet::new();
    let one = |(at, name): (usize, String)| {
        let name = if name.is_empty() { format!("column{at}") } else { name };
        let mut unique = name.clone();
        let mut number = 1;
        while !taken.insert(unique.clone()) {
            unique = format!("{name}_{number}");
            number += 1;
        }
        unique
    };
    names.into_iter().enumerate().map(one).collect()
}
