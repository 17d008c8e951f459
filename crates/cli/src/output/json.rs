//! JSON: an array of objects, or an object a line. NULL is `null`; decimals are numbers with all their digits.

use std::io::Write;

use arrow::json::WriterBuilder;
use arrow::json::writer::{JsonArray, LineDelimited};
use mainstem::{Error, QueryResult};

/// Writes all rows; `array` makes one JSON array of them.
pub fn write(rows: QueryResult, array: bool, out: &mut dyn Write) -> mainstem::Result<()> {
    let builder = WriterBuilder::new().with_explicit_nulls(true);
    if array {
        let mut writer = builder.build::<_, JsonArray>(&mut *out);
        for batch in rows {
            writer.write(&batch?).map_err(Error::from)?;
        }
        writer.finish().map_err(Error::from)?;
        return writeln!(out).map_err(super::write_error);
    }
    let mut writer = builder.build::<_, LineDelimited>(out);
    for batch in rows {
        writer.write(&batch?).map_err(Error::from)?;
    }
    writer.finish().map_err(Error::from)
}
