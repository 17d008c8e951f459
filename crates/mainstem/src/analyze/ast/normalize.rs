//! Functions that DataFusion has as an operator or not at all, `~ a`, literals of intervals and of NUMERIC, datetimes
//! with a precision, texts that spell arrays, and COLLATE "C", which says what is so anyway.

use datafusion::sql::sqlparser::ast::{
    Array, ArrayElemTypeDef, BinaryOperator, DataType, Expr, TypedString, UnaryOperator, Value, ValueWithSpan,
};
use mainstem_postgres::function::ROUNDED_SECONDS;
use mainstem_postgres::operator::BITWISE_NOT;

use super::expr::{bare, call, called, cast};
use super::interval_literals::plain_interval;
use crate::sql::is_by_bytes;

/// Digits behind the point of seconds that every datetime has.
const MICROSECOND_DIGITS: u64 = 6;

/// See the module; other expressions stay.
pub(crate) fn normalize(expr: &mut Expr) {
    if let Some(other) = other_words(expr) {
        *expr = other;
    }
}

fn other_words(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::Function(_) => {
            let (name, args) = called(expr)?;
            match (name.as_str(), args.as_slice()) {
                ("mod", [left, right]) => {
                    let operand = |side: &Expr| Box::new(Expr::Nested(Box::new(side.clone())));
                    let (left, right) = (operand(left), operand(right));
                    let rest = Expr::BinaryOp { left, op: BinaryOperator::Modulo, right };
                    Some(Expr::Nested(Box::new(rest)))
                }
                ("date", [datetime]) => Some(cast((*datetime).clone(), DataType::Date)),
                (clock @ ("current_timestamp" | "localtimestamp" | "localtime" | "current_time"), [digits]) => {
                    Some(call(ROUNDED_SECONDS, vec![call(clock, Vec::new()), (*digits).clone()]))
                }
                ("age", [to]) => Some(call("age", vec![call("current_date", Vec::new()), (*to).clone()])),
                _ => None,
            }
        }
        Expr::UnaryOp { op: UnaryOperator::BitwiseNot, expr: bits } => Some(call(BITWISE_NOT, vec![(**bits).clone()])),
        Expr::Collate { expr, collation } if is_by_bytes(collation) => Some(Expr::Nested(expr.clone())),
        Expr::AtTimeZone { timestamp, time_zone } => {
            Some(call("timezone", vec![(**time_zone).clone(), (**timestamp).clone()]))
        }
        Expr::Interval(interval) => plain_interval(interval),
        // DataFusion reads these with ten digits behind the point, or not at all.
        Expr::TypedString(TypedString {
            data_type: DataType::Numeric(digits) | DataType::Decimal(digits) | DataType::Dec(digits),
            value,
            uses_odbc_syntax: false,
        }) => Some(cast(Expr::Value(value.clone()), DataType::Numeric(*digits))),
        Expr::TypedString(TypedString { data_type, value, uses_odbc_syntax: false }) => {
            let (digits, whole) = precise(data_type)?;
            Some(call(ROUNDED_SECONDS, vec![cast(Expr::Value(value.clone()), whole), digits]))
        }
        Expr::Cast { kind, expr, data_type, array: false, format: None } if precise(data_type).is_some() => {
            let (digits, data_type) = precise(data_type)?;
            let whole = Expr::Cast { kind: kind.clone(), expr: expr.clone(), data_type, array: false, format: None };
            Some(call(ROUNDED_SECONDS, vec![whole, digits]))
        }
        Expr::Cast { expr: text, data_type: DataType::Array(of), array: false, format: None, .. } => {
            let (ArrayElemTypeDef::SquareBracket(of, None) | ArrayElemTypeDef::AngleBracket(of)) = of else {
                return None;
            };
            let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) = bare(text) else {
                return None;
            };
            let one = |item: Option<String>| {
                let value = item.map_or(Value::Null, Value::SingleQuotedString);
                cast(Expr::Value(value.into()), (**of).clone())
            };
            let elem: Vec<Expr> = items(text)?.into_iter().map(one).collect();
            let array = Expr::Array(Array { elem, named: true });
            Some(cast(array, DataType::Array(ArrayElemTypeDef::SquareBracket(of.clone(), None))))
        }
        _ => None,
    }
}

/// The number of digits behind the point of seconds that `data_type` has, as a literal, and the type without it: a
/// datetime's, fewer than microseconds.
fn precise(data_type: &DataType) -> Option<(Expr, DataType)> {
    let (digits, whole) = match data_type {
        DataType::Timestamp(Some(digits), zone) => (digits, DataType::Timestamp(None, *zone)),
        DataType::Time(Some(digits), zone) => (digits, DataType::Time(None, *zone)),
        _ => return None,
    };
    let number = Value::Number(digits.to_string(), false);
    (*digits < MICROSECOND_DIGITS).then(|| (Expr::Value(number.into()), whole))
}

/// The items of an array of one dimension as PostgreSQL spells it: `{1,NULL,"a b"}`. None if it is spelled otherwise.
fn items(text: &str) -> Option<Vec<Option<String>>> {
    let inside = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let mut items = Vec::new();
    if inside.trim().is_empty() {
        return Some(items);
    }
    let mut chars = inside.chars().peekable();
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        let mut item = String::new();
        if chars.next_if_eq(&'"').is_some() {
            loop {
                match chars.next()? {
                    '"' => break,
                    '\\' => item.push(chars.next()?),
                    other => item.push(other),
                }
            }
            while chars.next_if(|c| c.is_whitespace()).is_some() {}
            items.push(Some(item));
        } else {
            while let Some(c) = chars.next_if(|c| *c != ',') {
                match c {
                    '{' | '}' | '"' => return None,
                    '\\' => item.push(chars.next()?),
                    other => item.push(other),
                }
            }
            let item = item.trim();
            if item.is_empty() {
                return None;
            }
            items.push((!item.eq_ignore_ascii_case("null")).then(|| item.to_owned()));
        }
        match chars.next() {
            None => return Some(items),
            Some(',') => {}
            Some(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::items;

    #[test]
    fn array_literals_are_read_as_postgres_writes_them() {
        let some = |items: &[&str]| Some(items.iter().map(|item| Some((*item).to_owned())).collect::<Vec<_>>());
        assert_eq!(items("{1,2}"), some(&["1", "2"]));
        assert_eq!(items(" { 1 , \"a,\\\"b\" } "), some(&["1", "a,\"b"]));
        assert_eq!(items("{}"), Some(Vec::new()));
        assert_eq!(items("{NULL,\"NULL\"}"), Some(vec![None, Some("NULL".to_owned())]));
        for wrong in ["1,2", "{1", "{1,}", "{{1},{2}}", "{\"a}", "{a\"b}"] {
            assert_eq!(items(wrong), None, "{wrong}");
        }
    }
}
