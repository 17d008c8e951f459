//! SET, RESET and SHOW: names and values only; which settings there are is the session's business.

use datafusion::sql::sqlparser::ast::{
    ContextModifier, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, Query, Reset,
    ResetStatement, SelectItem, Set, SetExpr, UnaryOperator, Value, ValueWithSpan,
};
use mainstem_storage::{Error, Result};

use super::fold;
use super::transaction::{Begin, modes_of};

/// A statement about a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SettingStatement {
    /// SET `[LOCAL]` name = value; None is DEFAULT.
    Set { name: String, value: Option<String>, local: bool },
    /// RESET ALL.
    ResetAll,
    /// SHOW name.
    Show { name: String },
    /// SHOW ALL.
    ShowAll,
    /// SELECT set_config(name, value, local), which gives the value that it then has; `column` is what that is called.
    Config { name: String, value: Option<String>, local: bool, column: String },
    /// SET TRANSACTION.
    Transaction(Begin),
}

fn dotted(name: &ObjectName) -> String {
    name.0.iter().map(|p| p.as_ident().map_or_else(|| p.to_string(), fold)).collect::<Vec<_>>().join(".")
}

/// Reads a SET.
pub(super) fn set(set: Set) -> Result<SettingStatement> {
    match set {
        Set::SingleAssignment { scope, hivevar: false, variable, values }
            if !matches!(scope, Some(ContextModifier::Global)) =>
        {
            let local = matches!(scope, Some(ContextModifier::Local));
            let name = dotted(&variable);
            if name == "search_path" {
                return Ok(SettingStatement::Set { name, value: path(&values)?, local });
            }
            if name == "datestyle" && values.len() > 1 {
                let words = values.iter().map(setting_value).collect::<Result<Vec<_>>>()?;
                let words = words.into_iter().flatten().collect::<Vec<_>>().join(", ");
                return Ok(SettingStatement::Set { name, value: Some(words), local });
            }
            let [value] = values.as_slice() else {
                return Err(Error::unsupported("SET with a list of values"));
            };
            Ok(SettingStatement::Set { name, value: setting_value(value)?, local })
        }
        Set::SingleAssignment { .. } => Err(Error::unsupported("SET GLOBAL")),
        Set::SetTimeZone { local, value } => {
            Ok(SettingStatement::Set { name: "timezone".into(), value: setting_value(&value)?, local })
        }
        Set::SetNames { charset_name, collation_name: None } => {
            Ok(SettingStatement::Set { name: "client_encoding".into(), value: Some(charset_name.value), local: false })
        }
        Set::SetTransaction { modes, snapshot: None, session: false } => {
            modes_of(&modes).map(SettingStatement::Transaction)
        }
        other => Err(Error::unsupported(format_args!("\"{other}\""))),
    }
}

/// Reads `SELECT set_config(name, value, local)`, if `query` is that and nothing else.
pub(super) fn set_config(query: &Query) -> Option<SettingStatement> {
    let SetExpr::Select(select) = &*query.body else { return None };
    let [item] = select.projection.as_slice() else { return None };
    let (expr, column) = match item {
        SelectItem::UnnamedExpr(expr) => (expr, "set_config".to_owned()),
        SelectItem::ExprWithAlias { expr, alias } => (expr, fold(alias)),
        _ => return None,
    };
    let Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) = expr else { return None };
    let function = dotted(name);
    let is_it = function.strip_prefix("pg_catalog.").unwrap_or(&function) == "set_config";
    // What stands around it would have to be read.
    let arguments = list.args.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let alone = match item {
        SelectItem::ExprWithAlias { alias, .. } => format!("SELECT {name}({arguments}) AS {alias}"),
        _ => format!("SELECT {name}({arguments})"),
    };
    if !is_it || query.to_string() != alone {
        return None;
    }
    let [setting, value, local] = list.args.as_slice() else { return None };
    let literal = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value))) => Some(value.value.clone()),
        _ => None,
    };
    let (Value::SingleQuotedString(name), Value::Boolean(local)) = (literal(setting)?, literal(local)?) else {
        return None;
    };
    let value = match literal(value)? {
        Value::SingleQuotedString(text) => Some(text),
        Value::Null => None,
        _ => return None,
    };
    Some(SettingStatement::Config { name: name.to_lowercase(), value, local, column })
}

/// Reads a RESET.
pub(super) fn reset(statement: ResetStatement) -> Result<SettingStatement> {
    match statement.reset {
        Reset::ConfigurationParameter(name) => {
            Ok(SettingStatement::Set { name: dotted(&name), value: None, local: false })
        }
        Reset::ALL => Ok(SettingStatement::ResetAll),
    }
}

/// Reads a SHOW.
pub(super) fn show(variable: &[Ident]) -> Result<SettingStatement> {
    let name = variable.iter().map(fold).collect::<Vec<_>>().join(".");
    Ok(match name.as_str() {
        "all" => SettingStatement::ShowAll,
        "time.zone" => SettingStatement::Show { name: "timezone".into() },
        "transaction.isolation.level" => SettingStatement::Show { name: "transaction_isolation".into() },
        _ => SettingStatement::Show { name },
    })
}

/// The text of a list of schemas, as `search_path` has it: each in quotes; None for DEFAULT.
fn path(values: &[Expr]) -> Result<Option<String>> {
    if let [value] = values
        && setting_value(value)?.is_none()
    {
        return Ok(None);
    }
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let one = |value: &Expr| match value {
        Expr::Identifier(ident) => Ok(quoted(&fold(ident))),
        // An empty text is an empty path.
        other => {
            Ok(setting_value(other)?.filter(|name| !name.is_empty()).map(|name| quoted(&name)).unwrap_or_default())
        }
    };
    let names = values.iter().map(one).collect::<Result<Vec<_>>>()?;
    Ok(Some(names.into_iter().filter(|name| !name.is_empty()).collect::<Vec<_>>().join(", ")))
}

/// The text of a value; None for DEFAULT.
fn setting_value(expr: &Expr) -> Result<Option<String>> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Ok(Some(text.clone())),
            Value::Number(number, _) => Ok(Some(without_point(number).to_owned())),
            Value::Boolean(flag) => Ok(Some(flag.to_string())),
            other => Err(Error::unsupported(format_args!("the setting value {other}"))),
        },
        Expr::Identifier(ident) if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default") => {
            Ok(None)
        }
        Expr::Identifier(ident) => Ok(Some(ident.value.clone())),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match &**expr {
            Expr::Value(ValueWithSpan { value: Value::Number(number, _), .. }) => {
                Ok(Some(format!("-{}", without_point(number))))
            }
            other => Err(Error::unsupported(format_args!("the setting value -{other}"))),
        },
        other => Err(Error::unsupported(format_args!("the setting value {other}"))),
    }
}

/// `number` without a point at its end: exponents have been spelled out, with a point behind.
fn without_point(number: &str) -> &str {
    number.strip_suffix('.').unwrap_or(number)
}
