//! `regexp_split_to_array`: the parts of a text between the matches of a pattern. (`regexp_split_to_table` gives them
//! as rows: `set_returning`.)
//!
//! As in PostgreSQL a match of no characters at the text's beginning or end, or right behind another match, splits
//! nothing, and `.` takes line breaks unless an option says otherwise. Patterns are Rust's regular expressions, as
//! those of `~` are.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListBuilder, StringViewArray, StringViewBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field};
use datafusion_common::{DataFusionError, Result};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use datafusion_functions::regex::compile_regex;
use mainstem_storage::Error;

use crate::evaluate::over_rows;
use crate::sqlstate;

const NAME: &str = "regexp_split_to_array";

/// The function.
pub(crate) fn regexp_split_to_array() -> ScalarUDF {
    let takes = vec![TypeSignature::String(2), TypeSignature::String(3)];
    ScalarUDF::new_from_impl(Split { signature: Signature::one_of(takes, Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Split {
    signature: Signature,
}

impl ScalarUDFImpl for Split {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::List(Arc::new(Field::new_list_field(DataType::Utf8View, true))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        over_rows(&args, |arrays, rows| {
            let texts = |array: &ArrayRef| -> Result<StringViewArray> {
                Ok(cast(array, &DataType::Utf8View)?.as_string_view().clone())
            };
            let arrays = arrays.iter().map(texts).collect::<Result<Vec<_>>>()?;
            let [values, patterns, options @ ..] = arrays.as_slice() else {
                return Err(DataFusionError::Internal(format!("{NAME} without its arguments")));
            };
            let mut lists = ListBuilder::new(StringViewBuilder::new());
            let mut compiled = None;
            for row in 0..rows {
                let given = |array: &StringViewArray| array.is_valid(row).then(|| array.value(row).to_owned());
                let options = options.first().map_or(Some(String::new()), given);
                let (Some(pattern), Some(options), true) = (given(patterns), options, values.is_valid(row)) else {
                    lists.append(false);
                    continue;
                };
                let wanted = (pattern, options);
                // Mostly they are constants.
                let regex = match compiled.take().filter(|(known, _)| *known == wanted) {
                    Some((_, regex)) => regex,
                    None => compile_regex(&format!("{}{}", prefix(&wanted.1)?, pattern_of(&wanted.0, &wanted.1)), None)
                        .map_err(|_| {
                            refused(sqlstate::INVALID_REGEX, format!("invalid regular expression: {}", wanted.0))
                        })?,
                };
                let value = values.value(row);
                let (mut begin, mut search, mut last) = (0, 0, 0);
                while let Some(found) = regex.find_at(value, search) {
                    if found.start() < value.len() && found.end() > last {
                        lists.values().append_value(value.get(begin..found.start()).unwrap_or_default());
                        begin = found.end();
                    }
                    last = found.end();
                    search = match found.is_empty() {
                        true => last + value.get(last..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8),
                        false => last,
                    };
                    if search > value.len() {
                        break;
                    }
                }
                lists.values().append_value(value.get(begin..).unwrap_or_default());
                lists.append(true);
                compiled = Some((wanted, regex));
            }
            Ok(Arc::new(lists.finish()))
        })
    }
}

fn refused(code: &'static str, message: String) -> DataFusionError {
    DataFusionError::External(Box::new(Error::invalid(code, message)))
}

/// PostgreSQL's `options` as Rust's flags, which stand in front of a pattern. The last of those that say the same
/// counts.
fn prefix(options: &str) -> Result<String> {
    let (mut ignores_case, mut lines, mut dot, mut expanded) = (false, false, true, false);
    for option in options.chars() {
        match option {
            'i' => ignores_case = true,
            'c' => ignores_case = false,
            'm' | 'n' => (lines, dot) = (true, false),
            'p' => (lines, dot) = (false, false),
            's' => (lines, dot) = (false, true),
            'w' => (lines, dot) = (true, true),
            'x' => expanded = true,
            't' => expanded = false,
            'e' | 'q' => {}
            'g' => {
                let message = format!("{NAME}() does not support the \"global\" option");
                return Err(refused(sqlstate::INVALID_PARAMETER, message));
            }
            'b' => {
                let message = "basic regular expressions (option b)".to_owned();
                return Err(refused(sqlstate::FEATURE_NOT_SUPPORTED, format!("{message} are not supported")));
            }
            other => {
                let message = format!("invalid regular expression option: \"{other}\"");
                return Err(refused(sqlstate::INVALID_PARAMETER, message));
            }
        }
    }
    let flags = [(ignores_case, 'i'), (lines, 'm'), (dot, 's'), (expanded, 'x')];
    let flags: String = flags.into_iter().filter_map(|(on, flag)| on.then_some(flag)).collect();
    Ok(if flags.is_empty() { flags } else { format!("(?{flags})") })
}

/// `pattern`; with the option q one of characters that mean themselves.
fn pattern_of(pattern: &str, options: &str) -> String {
    if !options.contains('q') {
        return pattern.to_owned();
    }
    let mut literal = String::with_capacity(pattern.len() + 4);
    for c in pattern.chars() {
        if c.is_ascii_punctuation() {
            literal.push('\\');
        }
        literal.push(c);
    }
    literal
}
