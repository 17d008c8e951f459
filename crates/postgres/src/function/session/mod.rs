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

use arrow::array::{ListBuilder, StringViewBuilder};
use arrow::datatypes::{DataType, Field};
use datafusion_common::{DataFusionError, Result, ScalarValue};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Fact {
    /// The first schema of the search path that there is.
    Schema,
    /// All of them; with true those that are searched without being named.
    Schemas,
    User,
    Database,
    Version,
}

/// The function `name` of the module.
pub(crate) fn of_session(name: &'static str) -> ScalarUDF {
    let fact = match name {
        "current_schema" => Fact::Schema,
        "current_schemas" => Fact::Schemas,
        "current_database" | "current_catalog" => Fact::Database,
        "version" => Fact::Version,
        _ => Fact::User,
    };
    ScalarUDF::new_from_impl(SessionFunction::new(name, fact))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct SessionFunction {
    name: &'static str,
    fact: Fact,
    signature: Signature,
}

impl SessionFunction {
    fn new(name: &'static str, fact: Fact) -> Self {
        let signature = match fact {
            Fact::Schemas => Signature::exact(vec![DataType::Boolean], Volatility::Stable),
            _ => Signature::nullary(Volatility::Stable),
        };
        Self { name, fact, signature }
    }
}

impl ScalarUDFImpl for SessionFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.fact {
            Fact::Schemas => DataType::List(Arc::new(Field::new_list_field(DataType::Utf8View, true))),
            _ => DataType::Utf8View,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let path = || {
            let session = args.config_options.extensions.get::<Carried<SessionSearchPath>>();
            let session =
                session.ok_or_else(|| DataFusionError::Internal(format!("{} without a session", self.name)))?;
            Ok::<_, DataFusionError>(session.0.0.clone())
        };
        let schemas = |implicit| Ok(path()?.schemas(implicit));
        let text = match self.fact {
            Fact::Schema => schemas(false)?.into_iter().next(),
            Fact::User | Fact::Database => Some(path()?.database().to_owned()),
            Fact::Version => Some(concat!("Mainstem ", env!("CARGO_PKG_VERSION")).to_owned()),
            Fact::Schemas => return of_each(&args, schemas),
        };
        Ok(ColumnarValue::Scalar(ScalarValue::Utf8View(text)))
    }
}

/// The lists of schemas for the one argument of `args`.
fn of_each(args: &ScalarFunctionArgs, schemas: impl Fn(bool) -> Result<Vec<String>>) -> Result<ColumnarValue> {
    let [argument] = args.args.as_slice() else {
        return Err(DataFusionError::Internal("current_schemas without its argument".into()));
    };
    let rows = match argument {
        ColumnarValue::Scalar(_) => 1,
        ColumnarValue::Array(array) => array.len(),
    };
    let flags = argument.clone().into_array(rows)?;
    let mut lists = ListBuilder::new(StringViewBuilder::new());
    for flag in arrow::array::AsArray::as_boolean(&flags) {
        match flag {
            Some(implicit) => {
                schemas(implicit)?.into_iter().for_each(|schema| lists.values().append_value(schema));
                lists.append(true);
            }
            None => lists.append(false),
        }
    }
    let lists = lists.finish();
    Ok(match argument {
        ColumnarValue::Scalar(_) => ColumnarValue::Scalar(ScalarValue::try_from_array(&lists, 0)?),
        ColumnarValue::Array(_) => ColumnarValue::Array(Arc::new(lists)),
    })
}
