//! The types of all values of a file: by several threads, a chunk of the file in memory each.

use std::sync::Arc;

use arrow::array::AsArray;
use mainstem_storage::schema::{Column, DataType};
use mainstem_storage::{Error, Result};

use super::Detected;
use super::value_type::ColumnTypes;
use crate::csv::parallel::can_be_cut;
use crate::csv::{CsvReader, SharedRows};
use crate::read_at::{FromPlace, ReadAt};

/// Rows of a batch of a stream.
const ROWS: usize = 8_192;

/// A file whose types are looked for: one that can be read at any place, or a stream.
pub(crate) enum Input {
    File(Arc<dyn ReadAt + Send + Sync>, u64),
    Stream(Box<dyn std::io::Read + Send>),
}

/// The types of the columns of `input`, which looks like `detected`, whose types were found; those given stay.
/// `check` is asked now and then whether to go on.
///
/// # Errors
/// Of the file and of its rows, with line and column; those of `check`.
pub(crate) fn types_of_file(
    input: Input,
    detected: &Detected,
    threads: usize,
    check: &(dyn Fn() -> Result<()> + Sync),
) -> Result<Vec<DataType>> {
    let text = DataType::Text { max_chars: None };
    let columns: Arc<[Column]> =
        detected.columns.iter().map(|column| Column { data_type: text, ..column.clone() }).collect::<Vec<_>>().into();
    let found = match input {
        Input::File(file, bytes) if can_be_cut(&detected.options, columns.len()) => {
            let none = columns.iter().map(|_| false).collect::<Vec<_>>().into();
            let rows = SharedRows::new((file, bytes), detected.options.clone(), (columns.clone(), none), None);
            by_threads(&rows, columns.len(), threads, check)?
        }
        Input::File(file, _) => in_turn(Box::new(FromPlace::new(file, 0)), detected, check)?,
        Input::Stream(stream) => in_turn(stream, detected, check)?,
    };
    let types = detected.columns.iter().zip(&detected.found).zip(found);
    Ok(types.map(|((column, found), types)| if *found { types.data_type() } else { column.data_type }).collect())
}

fn by_threads(
    rows: &SharedRows,
    columns: usize,
    threads: usize,
    check: &(dyn Fn() -> Result<()> + Sync),
) -> Result<Vec<ColumnTypes>> {
    let worker = || -> Result<Vec<ColumnTypes>> {
        let (mut types, mut buffer) = (vec![ColumnTypes::default(); columns], Vec::new());
        while let Some(parts) = rows.next(&mut buffer)? {
            check()?;
            for part in parts {
                for (of, array) in types.iter_mut().zip(&part.columns) {
                    array.as_string_view().iter().flatten().for_each(|text| of.add(text.as_bytes()));
                }
            }
        }
        Ok(types)
    };
    std::thread::scope(|scope| {
        let start = || std::thread::Builder::new().name("mainstem csv".into()).spawn_scoped(scope, worker);
        let others: Vec<_> = (1..threads).map_while(|_| start().ok()).collect();
        let mut types = worker()?;
        for other in others {
            let found = other.join().map_err(|_| Error::internal("a thread that reads a file has panicked"))??;
            types.iter_mut().zip(&found).for_each(|(of, found)| of.merge(found));
        }
        Ok(types)
    })
}

fn in_turn(
    stream: Box<dyn std::io::Read + Send>,
    detected: &Detected,
    check: &(dyn Fn() -> Result<()> + Sync),
) -> Result<Vec<ColumnTypes>> {
    let names = detected.columns.iter().map(|column| column.name.clone()).collect();
    let mut reader = CsvReader::new(stream, detected.options.clone(), names);
    let mut types = vec![ColumnTypes::default(); detected.columns.len()];
    while let Some(batch) = reader.next_batch(ROWS)? {
        check()?;
        for (of, array) in types.iter_mut().zip(&batch.columns) {
            array.as_string::<i32>().iter().flatten().for_each(|text| of.add(text.as_bytes()));
        }
    }
    Ok(types)
}
