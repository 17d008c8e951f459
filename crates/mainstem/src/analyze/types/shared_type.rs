//! The type that values get together where DataFusion would find another one: which it is, and casts to it.

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable};
use mainstem_postgres::types::{common_datetime, without_exponent};

/// What makes an array of its arguments.
pub(super) const MAKE_ARRAY: &str = "make_array";

/// Digits in front of the point that a text with more digits than a decimal has room for leaves to what it is compared
/// with.
const DIGITS_BEFORE: usize = 22;

/// The type of the decimal that `text` spells, with all digits that are written; of any, if it spells none. Of more
/// digits than a decimal has, zeros at the end go first, then the last ones.
pub(crate) fn decimal_of(text: &str) -> DataType {
    let plain = without_exponent(text.trim());
    let number = plain.as_deref().unwrap_or(text).trim().trim_start_matches(['+', '-']);
    let (before, behind) = number.split_once('.').unwrap_or((number, ""));
    let max = usize::from(DECIMAL128_MAX_PRECISION);
    let before = before.trim_start_matches('0').len();
    let mut scale = behind.len();
    if before + scale > max {
        scale = behind.trim_end_matches('0').len();
    }
    if before + scale > max {
        scale = scale.min(max.saturating_sub(before.max(DIGITS_BEFORE)));
    }
    match (u8::try_from((before + scale).clamp(1, max)), i8::try_from(scale)) {
        (Ok(precision), Ok(scale)) => DataType::Decimal128(precision, scale),
        _ => DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0),
    }
}

/// Whether values of it are a REAL or a DOUBLE PRECISION.
pub(super) fn is_double(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Float32 | DataType::Float64)
}

/// Whether values of it are decimals.
pub(super) fn is_decimal(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Decimal128(..) | DataType::Decimal256(..))
}

/// Why values get one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To be compared: a REAL beside an exact number is a double.
    Comparison,
    /// To stand in one column: a REAL beside an exact number stays one.
    Column,
}

/// The type that values of `types` get together, if it is for us to say: doubles, or datetimes of one kind.
pub(super) fn common<'t>(types: impl Iterator<Item = &'t DataType> + Clone, purpose: Purpose) -> Option<DataType> {
    let any = |is: fn(&DataType) -> bool| types.clone().any(is);
    let compares = purpose == Purpose::Comparison;
    if any(is_double) && any(is_decimal) {
        let is_one = compares || any(|t| *t == DataType::Float64);
        return Some(if is_one { DataType::Float64 } else { DataType::Float32 });
    }
    if compares && any(|t| *t == DataType::Float32) && any(DataType::is_integer) {
        return Some(DataType::Float64);
    }
    common_datetime(types.clone()).filter(|common| types.clone().any(|data_type| changes(data_type, common)))
}

/// Whether values of `data_type` are cast to `common`.
pub(super) fn changes(data_type: &DataType, common: &DataType) -> bool {
    match common {
        DataType::Float64 | DataType::Float32 => data_type.is_numeric() && data_type != common,
        common => !data_type.is_null() && data_type != common,
    }
}

/// `expr` as a value of the type `common`.
pub(super) fn cast_to_common(expr: Expr, common: &DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(expr), common.clone()))
}

/// Casts those among `together`, which get one type, that have not got it. Beside decimals alone string literals are
/// cast: coercion would round them to the decimals' digits.
pub(super) fn widen(together: &mut [&mut Expr], purpose: Purpose, schema: &DFSchema) -> bool {
    let types: Vec<DataType> = together.iter().map(|expr| expr.get_type(schema).unwrap_or(DataType::Null)).collect();
    // A REAL column beside a literal that is a REAL, too, can be pruned by it.
    let is_same = |(expr, of): (&&mut Expr, &DataType)| *of == DataType::Float32 || is_small_literal(expr);
    if together.iter().zip(&types).all(is_same) {
        return false;
    }
    let Some(common) = common(types.iter(), purpose) else {
        if !types.iter().any(is_decimal) {
            return false;
        }
        let texts = together.iter_mut().filter_map(|expr| written_decimal(expr).map(|decimal| (expr, decimal)));
        return texts.fold(false, |_, (expr, decimal)| {
            **expr = decimal;
            true
        });
    };
    for (expr, _) in together.iter_mut().zip(&types).filter(|(_, data_type)| changes(data_type, &common)) {
        **expr = cast_to_common(std::mem::take(*expr), &common);
    }
    true
}

/// As [`widen`], of the values of an array, which is given a type before the rules see it.
pub(super) fn widen_items(mut items: Vec<Expr>, schema: &DFSchema) -> Vec<Expr> {
    widen(&mut items.iter_mut().collect::<Vec<_>>(), Purpose::Column, schema);
    items
}

/// Whether `expr` is an integer that is a REAL without being rounded.
fn is_small_literal(expr: &Expr) -> bool {
    const MAX: i64 = 1 << f32::MANTISSA_DIGITS;
    let number = match expr {
        Expr::Literal(ScalarValue::Int64(Some(number)), _) => *number,
        Expr::Literal(ScalarValue::Int32(Some(number)), _) => i64::from(*number),
        _ => return false,
    };
    (-MAX..=MAX).contains(&number)
}

/// A string literal as a cast to the decimal that it spells.
pub(super) fn written_decimal(expr: &Expr) -> Option<Expr> {
    let Expr::Literal(scalar, _) = expr else { return None };
    let text = scalar.try_as_str().flatten()?;
    Some(Expr::Cast(Cast::new(Box::new(expr.clone()), decimal_of(text))))
}
