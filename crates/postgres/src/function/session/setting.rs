//! `current_setting`: what SHOW shows, in a query.
//!
//! The planner reads the names, where the session's settings are at hand: a call becomes one of `setting_value` with
//! the setting's value, which that gives back. It is not immutable, so that nothing that outlives the statement keeps
//! the value.

use arrow::datatypes::DataType;
use datafusion_common::DataFusionError;
use datafusion_expr::{ScalarUDF, Signature, TypeSignature, Volatility};
use mainstem_storage::Error;

use crate::error::external;
use crate::evaluate::simple::of_call;

/// What SQL calls.
pub const CURRENT_SETTING: &str = "current_setting";
/// What the call becomes.
pub const SETTING_VALUE: &str = "setting_value";

/// [`CURRENT_SETTING`], or [`SETTING_VALUE`], as `name` says.
pub(crate) fn setting(name: &'static str) -> ScalarUDF {
    let texts = |count| TypeSignature::Exact(vec![DataType::Utf8View; count]);
    let checked = TypeSignature::Exact(vec![DataType::Utf8View, DataType::Boolean]);
    let arguments = if name == SETTING_VALUE { texts(1) } else { TypeSignature::OneOf(vec![texts(1), checked]) };
    of_call(name, Signature::new(arguments, Volatility::Stable), DataType::Utf8View, move |args| {
        if name == CURRENT_SETTING {
            return Err(external(Error::unsupported("current_setting in this place")));
        }
        let value = args.args.into_iter().next();
        value.ok_or_else(|| DataFusionError::Internal("current_setting without its argument".into()))
    })
}
