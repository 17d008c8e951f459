//! `format`: a text with the arguments in it, as PostgreSQL writes them.
//!
//! `%[position$][-][width]type`, where type is `s` (the text), `I` (a name, in quotes where SQL needs them), `L` (a
//! literal) or `%`, and the width a number, `*` (the next argument) or `*n$`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray, StringViewBuilder};
use arrow::datatypes::DataType;
use datafusion_common::{DataFusionError, Result};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use mainstem_storage::Error;
use mainstem_storage::schema::DataType as SqlType;

use super::quote::{quoted_name, quoted_text};
use crate::cast::convert;
use crate::evaluate::over_rows;
use crate::sqlstate;

/// Widest field; wider ones are refused.
const WIDTH_MAX: usize = 1 << 20;
/// null_value_not_allowed
const NULL_NAME: &str = "22004";
/// program_limit_exceeded
const TOO_LARGE: &str = "54000";

/// The function.
pub(crate) fn format() -> ScalarUDF {
    ScalarUDF::new_from_impl(Format { signature: Signature::variadic_any(Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Format {
    signature: Signature,
}

fn refused(code: &'static str, message: impl Into<String>) -> DataFusionError {
    DataFusionError::External(Box::new(Error::invalid(code, message.into())))
}

fn bad(message: impl Into<String>) -> DataFusionError {
    refused(sqlstate::INVALID_PARAMETER, message)
}

/// The values of an argument, as texts.
fn texts(array: &ArrayRef) -> Result<StringViewArray> {
    if let Some(flags) = array.as_boolean_opt() {
        return Ok(flags.iter().map(|flag| flag.map(|flag| if flag { "t" } else { "f" })).collect());
    }
    let to_text = SqlType::Text { max_chars: None };
    let converted = convert(array, to_text).map_err(|e| DataFusionError::External(Box::new(e)))?;
    Ok(converted.as_string_view().clone())
}

impl ScalarUDFImpl for Format {
    fn name(&self) -> &str {
        "format"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        over_rows(&args, |arrays, rows| {
            let arrays = arrays.iter().map(texts).collect::<Result<Vec<_>>>()?;
            let Some((formats, values)) = arrays.split_first() else { return Err(bad("format() without a format")) };
            let mut out = StringViewBuilder::with_capacity(rows);
            for row in 0..rows {
                let value = |at: usize| {
                    let values = values.get(at).ok_or_else(|| bad("too few arguments for format()"))?;
                    Ok(values.is_valid(row).then(|| values.value(row)))
                };
                match formats.is_valid(row) {
                    true => out.append_value(formatted(formats.value(row), &value)?),
                    false => out.append_null(),
                }
            }
            Ok(Arc::new(out.finish()))
        })
    }
}

/// What is left of a format, and which argument is next.
struct Reader<'a> {
    rest: &'a str,
    next: usize,
}

impl Reader<'_> {
    fn take(&mut self) -> Result<char> {
        let mut chars = self.rest.chars();
        let first = chars.next().ok_or_else(|| bad("unterminated format() type specifier"))?;
        self.rest = chars.as_str();
        Ok(first)
    }

    fn take_if(&mut self, wanted: char) -> bool {
        let rest = self.rest.strip_prefix(wanted);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn number(&mut self) -> Result<Option<usize>> {
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        match digits {
            "" => Ok(None),
            digits => digits.parse().map(Some).map_err(|_| refused(sqlstate::OUT_OF_RANGE, "number is out of range")),
        }
    }

    /// The place of the argument that `position` names, which counts from 1.
    fn place(position: usize) -> Result<usize> {
        position.checked_sub(1).ok_or_else(|| bad("format specifies argument 0, but arguments are numbered from 1"))
    }

    /// The argument behind those used so far.
    fn following(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }
}

fn formatted<'v>(format: &str, value: &impl Fn(usize) -> Result<Option<&'v str>>) -> Result<String> {
    let mut out = String::with_capacity(format.len());
    let mut reader = Reader { rest: format, next: 0 };
    while let Some((before, behind)) = reader.rest.split_once('%') {
        out.push_str(before);
        reader.rest = behind;
        if reader.take_if('%') {
            out.push('%');
            continue;
        }
        let (mut place, mut width, mut left) = (None, None, false);
        match reader.number()? {
            Some(position) if reader.take_if('$') => place = Some(Reader::place(position)?),
            number => width = number,
        }
        if width.is_none() {
            while reader.take_if('-') {
                left = true;
            }
            width = match reader.take_if('*') {
                true => {
                    let at = match reader.number()? {
                        Some(position) if reader.take_if('$') => Reader::place(position)?,
                        Some(_) => return Err(bad("width argument position must be ended by \"$\"")),
                        None => reader.following(),
                    };
                    let given = value(at)?.unwrap_or("0").trim();
                    let given: i64 = given.parse().map_err(|_| {
                        refused(sqlstate::INVALID_TEXT, format!("invalid input for type integer: \"{given}\""))
                    })?;
                    left |= given < 0;
                    Some(usize::try_from(given.unsigned_abs()).unwrap_or(usize::MAX))
                }
                false => reader.number()?,
            };
        }
        let kind = reader.take()?;
        if !matches!(kind, 's' | 'I' | 'L') {
            return Err(bad(format!("unrecognized format() type specifier \"{kind}\"")));
        }
        let at = match place {
            Some(at) => {
                reader.next = at + 1;
                at
            }
            None => reader.following(),
        };
        let text = match (kind, value(at)?) {
            ('I', None) => return Err(refused(NULL_NAME, "null values cannot be formatted as an SQL identifier")),
            ('I', Some(text)) => quoted_name(text),
            ('L', None) => "NULL".to_owned(),
            ('L', Some(text)) => quoted_text(text),
            (_, text) => text.unwrap_or_default().to_owned(),
        };
        pad(&mut out, &text, width.unwrap_or_default(), left)?;
    }
    out.push_str(reader.rest);
    Ok(out)
}

fn pad(out: &mut String, text: &str, width: usize, left: bool) -> Result<()> {
    if width > WIDTH_MAX {
        return Err(refused(TOO_LARGE, format!("format() writes fields of at most {WIDTH_MAX} characters")));
    }
    let blanks = " ".repeat(width.saturating_sub(text.chars().count()));
    let parts = if left { [text, &blanks] } else { [&*blanks, text] };
    out.extend(parts);
    Ok(())
}
