//! What a session knows of itself: `current_schema()`, `current_user` and the like.
//!
//! Comes in: the catalog of the statement, with the configuration that every function is given. There are no roles:
//! whoever has the database's directory is the one user, called as the database is.

mod extension;
mod setting;

pub use extension::{Carried, Named};
pub(crate) use setting::setting;
pub use setting::{CURRENT_SETTING, SETTING_VALUE};

use std::sync::Arc;

use arrow::array::{AsArray, ListBuilder, StringViewBuilder};
use arrow::datatypes::{DataType, Field};
use datafusion_common::{DataFusionError, Result, ScalarValue};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, Signature, Volatility};

use crate::evaluate::over_rows;
use crate::evaluate::simple::of_call;

/// The schemas that a statement searches.
pub trait SearchPath: std::fmt::Debug + Send + Sync {
    /// The name of the database.
    fn database(&self) -> &str;
    /// The schemas that are there, in their order; those that are searched without being named too if `implicit`.
    fn schemas(&self, implicit: bool) -> Vec<String>;
}

/// The search path of a session, for functions.
#[derive(Clone, Debug)]
pub struct SessionSearchPath(pub Arc<dyn SearchPath>);

impl Named for SessionSearchPath {
    const NAME: &'static str = "mainstem_session";
}

/// The function `name` of the module.
pub(crate) fn of_session(name: &'static str) -> ScalarUDF {
    if name == "current_schemas" {
        let signature = Signature::exact(vec![DataType::Boolean], Volatility::Stable);
        let list = DataType::List(Arc::new(Field::new_list_field(DataType::Utf8View, true)));
        return of_call(name, signature, list, |args| of_each(&args));
    }
    of_call(name, Signature::nullary(Volatility::Stable), DataType::Utf8View, move |args| {
        let text = match name {
            "current_schema" => path(&args)?.schemas(false).into_iter().next(),
            "version" => Some(concat!("Mainstem ", env!("CARGO_PKG_VERSION")).to_owned()),
            // Of the database, or the one user.
            _ => Some(path(&args)?.database().to_owned()),
        };
        Ok(ColumnarValue::Scalar(ScalarValue::Utf8View(text)))
    })
}

fn path(args: &ScalarFunctionArgs) -> Result<Arc<dyn SearchPath>> {
    let session = args.config_options.extensions.get::<Carried<SessionSearchPath>>();
    session.map(|session| session.0.0.clone()).ok_or_else(|| DataFusionError::Internal("no session".into()))
}

/// The lists of schemas for the one argument of `args`; true is with those that are searched without being named.
fn of_each(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    over_rows(args, |arrays, _| {
        let [flags] = arrays else { return Err(DataFusionError::Internal("current_schemas of nothing".into())) };
        let mut lists = ListBuilder::new(StringViewBuilder::new());
        for flag in flags.as_boolean() {
            if let Some(implicit) = flag {
                path(args)?.schemas(implicit).into_iter().for_each(|schema| lists.values().append_value(schema));
            }
            lists.append(flag.is_some());
        }
        Ok(Arc::new(lists.finish()))
    })
}
