//! A call as a text, evaluated: `lpad('hi', 5, 'xy')`.
//!
//! Comes in: an expression of literals, casts and calls. Goes out: its value as a text, or the SQLSTATE that it ends
//! in. Types follow from DataFusion's signatures as they do in a plan, but nothing rewrites the expression: what
//! `analyze` of the SQL crate makes of operators is not tested here.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, StringViewArray, new_null_array};
use arrow::compute::{cast, concat};
use arrow::datatypes::{DataType as ArrowType, Field, FieldRef};
use arrow::error::ArrowError;
use datafusion_common::config::ConfigOptions;
use datafusion_common::{DataFusionError, ScalarValue};
use datafusion_execution::memory_pool::{MemoryPool, UnboundedMemoryPool};
use datafusion_expr::sqlparser::ast::{
    CeilFloorKind, DataType as Sql, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, TrimWhereField,
    UnaryOperator, Value,
};
use datafusion_expr::sqlparser::dialect::PostgreSqlDialect;
use datafusion_expr::sqlparser::parser::Parser;
use datafusion_expr::type_coercion::functions::fields_with_udf;
use datafusion_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF};
use mainstem_postgres::cast::convert;
use mainstem_postgres::function::extract;
use mainstem_postgres::registry::{scalar, scalar_functions};
use mainstem_postgres::types::{interval_of, sql_type};
use mainstem_storage::Error;
use mainstem_storage::schema::DataType;

/// What a call comes to.
pub(crate) type Outcome = Result<String, Failure>;

/// Why a call has no value.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It ends in an error of this SQLSTATE.
    State(String),
    /// It ends in an error of DataFusion's, which the SQL crate gives a SQLSTATE.
    Theirs(String),
    /// It is no call of the tables.
    NotThere(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::State(error.sqlstate().to_owned())
    }
}

impl From<ArrowError> for Failure {
    fn from(error: ArrowError) -> Self {
        mainstem_postgres::error::from_arrow(&error).into()
    }
}

impl From<DataFusionError> for Failure {
    fn from(error: DataFusionError) -> Self {
        match error {
            DataFusionError::External(inner) => match inner.downcast::<Error>() {
                Ok(ours) => (*ours).into(),
                Err(other) => Self::Theirs(other.to_string()),
            },
            DataFusionError::ArrowError(inner, _) => match *inner {
                ArrowError::ExternalError(inner) => match inner.downcast::<Error>() {
                    Ok(ours) => (*ours).into(),
                    Err(other) => Self::Theirs(other.to_string()),
                },
                inner @ (ArrowError::CastError(_) | ArrowError::ArithmeticOverflow(_) | ArrowError::DivideByZero) => {
                    inner.into()
                }
                other => Self::Theirs(other.to_string()),
            },
            DataFusionError::Context(_, inner) => (*inner).into(),
            other => Self::Theirs(other.to_string()),
        }
    }
}

/// The functions that calls name.
pub(crate) struct Functions(HashMap<String, Arc<ScalarUDF>>);

/// How arguments are given to functions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Given {
    /// As constants.
    Constants,
    /// As columns, but for those that must be literals.
    Columns,
}

impl Functions {
    /// Those of the registry.
    pub(crate) fn new() -> Self {
        let theirs = datafusion_functions::all_default_functions();
        let nested = datafusion_functions_nested::all_default_nested_functions();
        let named = |function: Arc<ScalarUDF>| (function.name().to_owned(), function);
        let theirs: HashMap<_, _> = theirs.into_iter().chain(nested).map(named).collect();
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        let mut functions = HashMap::new();
        for function in scalar_functions(&theirs, &pool) {
            for name in function.aliases().iter().map(String::as_str).chain([function.name()]) {
                functions.insert(name.to_owned(), function.clone());
            }
        }
        Self(functions)
    }

    /// The function that calls name `name`.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<ScalarUDF>> {
        self.0.get(name)
    }

    /// The value of `call`, and the names of the functions that it calls.
    pub(crate) fn evaluate(&self, call: &str, given: Given) -> (Outcome, Vec<String>) {
        let mut called = Vec::new();
        let parsed = Parser::new(&PostgreSqlDialect {}).try_with_sql(call).and_then(|mut parser| parser.parse_expr());
        let outcome = match parsed {
            Ok(expr) => self.value(&expr, given, &mut called).and_then(|value| text(&value.array)),
            Err(e) => Err(Failure::NotThere(e.to_string())),
        };
        (outcome, called)
    }

    /// The value of `call`, if it has one.
    pub(crate) fn array(&self, call: &str) -> Option<ArrayRef> {
        let parsed = Parser::new(&PostgreSqlDialect {}).try_with_sql(call).and_then(|mut parser| parser.parse_expr());
        Some(self.value(&parsed.ok()?, Given::Columns, &mut Vec::new()).ok()?.array)
    }

    fn value(&self, expr: &Expr, given: Given, called: &mut Vec<String>) -> Result<Argument, Failure> {
        let call = |name: &str, args: Vec<&Expr>, called: &mut Vec<String>| self.call(name, &args, given, called);
        match expr {
            Expr::Value(value) => literal(&value.value),
            Expr::Nested(inner) => self.value(inner, given, called),
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match &**expr {
                Expr::Value(value) => match &value.value {
                    Value::Number(digits, long) => literal(&Value::Number(format!("-{digits}"), *long)),
                    _ => Err(not_there(expr)),
                },
                _ => Err(not_there(expr)),
            },
            Expr::Cast { expr, data_type, .. } => self.value(expr, given, called)?.cast(data_type),
            Expr::TypedString(typed) => literal(&typed.value.value)?.cast(&typed.data_type),
            Expr::Interval(interval) => match &*interval.value {
                Expr::Value(value) => match &value.value {
                    Value::SingleQuotedString(text) => interval_value(text),
                    _ => Err(not_there(expr)),
                },
                _ => Err(not_there(expr)),
            },
            Expr::Array(array) => call("make_array", array.elem.iter().collect(), called),
            Expr::Ceil { expr, field: CeilFloorKind::DateTimeField(_) } => call("ceil", vec![expr], called),
            Expr::Floor { expr, field: CeilFloorKind::DateTimeField(_) } => call("floor", vec![expr], called),
            Expr::Position { expr, r#in } => call("strpos", vec![r#in, expr], called),
            Expr::Substring { expr, substring_from: Some(from), substring_for, .. } => {
                let args = [Some(expr), Some(from), substring_for.as_ref()];
                call("substr", args.into_iter().flatten().map(|arg| &**arg).collect(), called)
            }
            Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let args = [Some(expr), Some(overlay_what), Some(overlay_from), overlay_for.as_ref()];
                call("overlay", args.into_iter().flatten().map(|arg| &**arg).collect(), called)
            }
            Expr::Trim { expr, trim_where, trim_what, trim_characters } => {
                let name = match trim_where {
                    Some(TrimWhereField::Leading) => "ltrim",
                    Some(TrimWhereField::Trailing) => "rtrim",
                    Some(TrimWhereField::Both) | None => "btrim",
                };
                let listed = trim_characters.iter().flatten();
                call(name, std::iter::once(&**expr).chain(trim_what.as_deref()).chain(listed).collect(), called)
            }
            Expr::Extract { field, expr, .. } => {
                let field = Argument::of(Arc::new(StringViewArray::from(vec![field.to_string()])));
                let value = self.value(expr, given, called)?;
                called.push("extract".to_owned());
                run(&Arc::new(extract()), vec![field, value], Given::Constants)
            }
            Expr::Function(function) => {
                let FunctionArguments::List(list) = &function.args else {
                    return call(&function.name.to_string(), Vec::new(), called);
                };
                let args = list.args.iter().map(|arg| match arg {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Ok(expr),
                    _ => Err(not_there(expr)),
                });
                call(&function.name.to_string().to_lowercase(), args.collect::<Result<_, _>>()?, called)
            }
            other => Err(not_there(other)),
        }
    }

    fn call(&self, name: &str, args: &[&Expr], given: Given, called: &mut Vec<String>) -> Result<Argument, Failure> {
        let function = self.get(name).ok_or_else(|| Failure::NotThere(format!("the function {name}")))?;
        let args = args.iter().map(|arg| self.value(arg, given, called)).collect::<Result<Vec<_>, _>>()?;
        called.push(function.name().to_owned());
        run(function, args, given)
    }
}

/// A value of one row.
struct Argument {
    array: ArrayRef,
    field: FieldRef,
}

impl Argument {
    fn of(array: ArrayRef) -> Self {
        let field = Arc::new(Field::new("", array.data_type().clone(), true));
        Self { array, field }
    }

    fn cast(&self, to: &Sql) -> Result<Self, Failure> {
        if let Sql::Interval { .. } = to {
            let texts = cast(&self.array, &ArrowType::Utf8)?;
            return match texts.as_string::<i32>().is_null(0) {
                true => Ok(Self::of(new_null_array(&mainstem_postgres::types::INTERVAL, 1))),
                false => interval_value(texts.as_string::<i32>().value(0)),
            };
        }
        let to = column_type(to).ok_or_else(|| Failure::NotThere(format!("the type {to}")))?;
        Ok(Self::of(convert(&self.array, to)?))
    }
}

fn not_there(expr: &Expr) -> Failure {
    Failure::NotThere(expr.to_string())
}

fn literal(value: &Value) -> Result<Argument, Failure> {
    Ok(Argument::of(match value {
        Value::Null => new_null_array(&ArrowType::Null, 1),
        Value::Boolean(flag) => Arc::new(BooleanArray::from(vec![*flag])),
        Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => {
            Arc::new(StringViewArray::from(vec![text.as_str()]))
        }
        Value::Number(digits, _) => match (digits.parse::<i64>(), digits.contains(['e', 'E'])) {
            (Ok(whole), _) => Arc::new(Int64Array::from(vec![whole])),
            (_, true) => Arc::new(Float64Array::from(vec![digits.parse::<f64>().unwrap_or_default()])),
            _ => {
                let scale = digits.split_once('.').map_or(0, |(_, behind)| behind.len());
                let precision = digits.bytes().filter(u8::is_ascii_digit).count().max(1);
                let (precision, scale) = (precision as u8, scale as i8);
                let text: ArrayRef = Arc::new(StringViewArray::from(vec![digits.as_str()]));
                cast(&text, &ArrowType::Decimal128(precision, scale))?
            }
        },
        other => return Err(Failure::NotThere(other.to_string())),
    }))
}

fn interval_value(text: &str) -> Result<Argument, Failure> {
    let interval = interval_of(text, None)?;
    Ok(Argument::of(ScalarValue::IntervalMonthDayNano(Some(interval)).to_array()?))
}

fn column_type(sql: &Sql) -> Option<DataType> {
    Some(match sql.to_string().to_uppercase().as_str() {
        "BOOLEAN" | "BOOL" => DataType::Boolean,
        "SMALLINT" | "INT2" => DataType::SmallInt,
        "INTEGER" | "INT" | "INT4" => DataType::Integer,
        "BIGINT" | "INT8" => DataType::BigInt,
        "REAL" | "FLOAT4" => DataType::Real,
        "DOUBLE PRECISION" | "FLOAT8" => DataType::Double,
        "TEXT" => DataType::Text { max_chars: None },
        "BYTEA" => DataType::Bytea,
        "UUID" => DataType::Uuid,
        "DATE" => DataType::Date,
        "TIME" => DataType::Time,
        "TIMESTAMP" => DataType::Timestamp,
        "TIMESTAMPTZ" | "TIMESTAMP WITH TIME ZONE" => DataType::TimestampTz,
        numeric => {
            let digits = numeric.strip_prefix("NUMERIC(").or_else(|| numeric.strip_prefix("DECIMAL("))?;
            let (precision, scale) = digits.strip_suffix(')')?.split_once(',')?;
            DataType::Decimal { precision: precision.trim().parse().ok()?, scale: scale.trim().parse().ok()? }
        }
    })
}

/// `function` of `args`, coerced as a plan coerces them.
fn run(function: &Arc<ScalarUDF>, args: Vec<Argument>, given: Given) -> Result<Argument, Failure> {
    let fields: Vec<FieldRef> = args.iter().map(|arg| arg.field.clone()).collect();
    let coerced = fields_with_udf(&fields, function.as_ref())?;
    let literals = scalar(function.name()).map_or(&[][..], |row| row.literals);
    let rows = if given == Given::Columns { 2 } else { 1 };
    let mut values = Vec::new();
    for (at, (arg, field)) in args.iter().zip(&coerced).enumerate() {
        let array = match sql_type(field.data_type()) {
            _ if arg.array.data_type() == field.data_type() => arg.array.clone(),
            Some(known) => cast(&convert(&arg.array, known)?, field.data_type())?,
            None => cast(&arg.array, field.data_type())?,
        };
        let is_column = given == Given::Columns && !literals.contains(&at);
        values.push(match is_column {
            true => ColumnarValue::Array(concat(&[&array, &array])?),
            false => ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?),
        });
    }
    let scalars = values.iter().map(|value| match value {
        ColumnarValue::Scalar(scalar) => Some(scalar.clone()),
        ColumnarValue::Array(_) => None,
    });
    let scalars: Vec<_> = scalars.collect();
    let scalar_arguments: Vec<Option<&ScalarValue>> = scalars.iter().map(Option::as_ref).collect();
    let known = ReturnFieldArgs { arg_fields: &coerced, scalar_arguments: &scalar_arguments };
    let return_field = function.return_field_from_args(known)?;
    let results = function.invoke_with_args(ScalarFunctionArgs {
        args: values,
        arg_fields: coerced.clone(),
        number_rows: rows,
        return_field: return_field.clone(),
        config_options: Arc::new(ConfigOptions::default()),
    })?;
    let array = results.into_array(rows)?;
    if array.data_type() != return_field.data_type() {
        return Err(Failure::Theirs(format!("{} gives {}, not {return_field}", function.name(), array.data_type())));
    }
    Ok(Argument { array: array.slice(array.len() - 1, 1), field: return_field })
}

/// A value as a text: `NULL`, `(empty)`, or as `::text` has it.
fn text(array: &ArrayRef) -> Result<String, Failure> {
    let texts = convert(array, DataType::Text { max_chars: None })?;
    let texts = texts.as_string_view();
    Ok(match texts.is_null(0) {
        true => "NULL".to_owned(),
        false if texts.value(0).is_empty() => "(empty)".to_owned(),
        false => texts.value(0).replace('\n', "\\n").replace('\t', "\\t"),
    })
}
