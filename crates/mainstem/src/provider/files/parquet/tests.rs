use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{Array, ArrayRef, BinaryArray, Int64Array, StringArray};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};

use super::*;

const GROUP_ROWS: usize = 20_000;
const GROUPS: usize = 6;

/// Texts of 500 bytes, of which there are ten, and a number; with what is known of the texts, or without. The texts are
/// codes of a dictionary, or have their beginnings of others.
fn write(path: &str, statistics: EnabledStatistics, is_coded: bool) {
    let texts: Vec<String> = (0..10).map(|n| format!("{n}").repeat(500)).collect();
    let group = |number: usize| {
        let rows = number * GROUP_ROWS..(number + 1) * GROUP_ROWS;
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.clone().map(|row| row as i64)));
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values(rows.map(|row| &texts[row % 10])));
        RecordBatch::try_from_iter([("n", numbers), ("t", texts)]).unwrap()
    };
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_statistics_enabled(statistics)
        .set_dictionary_enabled(is_coded);
    let properties = if is_coded { properties } else { properties.set_encoding(Encoding::DELTA_BYTE_ARRAY) };
    let properties = properties.set_column_encoding("n".into(), Encoding::PLAIN).build();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, group(0).schema(), Some(properties)).unwrap();
    (0..GROUPS).for_each(|number| writer.write(&group(number)).unwrap());
    writer.close().unwrap();
}

/// Whether a file tells or not how long its texts are, what is decoded ahead stays within the memory granted.
#[test]
fn row_groups_ahead_fit_the_memory_whatever_the_file_says() {
    const GRANTED: u64 = 8 << 20;
    const THREADS: usize = 3;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.parquet").display().to_string();
    let known = [(EnabledStatistics::Chunk, true), (EnabledStatistics::None, false)];
    for (is_coded, (statistics, is_known)) in
        [false, true].into_iter().flat_map(|coded| known.map(|known| (coded, known)))
    {
        write(&path, statistics, is_coded);
        let file = ParquetFile::open(&path).unwrap();
        let groups = file.metadata.metadata().row_groups();
        assert_eq!(groups.len(), GROUPS);
        assert_eq!(file.text_bytes(&groups[0], 1).is_some(), is_known);
        assert_eq!((file.text_bytes(&groups[0], 0), file.text_bytes(&groups[0], 2)), (Some(0), None));
        let file = file.for_load().unwrap();
        let text = file.schema().field(1).data_type().clone();
        let coded = ArrowType::Dictionary(Box::new(ArrowType::Int32), Box::new(ArrowType::Utf8));
        assert_eq!(
            text,
            if is_coded {
                coded
            } else if is_known {
                ArrowType::Utf8
            } else {
                ArrowType::Utf8View
            }
        );
        let (ahead, most, mut rows, mut batch_most) = (AtomicU64::new(0), AtomicU64::new(0), 0, 0);
        let convert = |batch: RecordBatch| {
            let bytes = batch.get_array_memory_size() as u64;
            most.fetch_max(ahead.fetch_add(bytes, Ordering::SeqCst) + bytes, Ordering::SeqCst);
            Ok((batch, bytes))
        };
        file.read(&[0, 1], 1_000_000, (THREADS, GRANTED), convert, |(batch, bytes)| {
            std::thread::sleep(std::time::Duration::from_millis(2));
            ahead.fetch_sub(bytes, Ordering::SeqCst);
            batch_most = batch_most.max(bytes);
            let numbers = batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap();
            assert!(numbers.values().iter().copied().eq(rows..rows + numbers.len() as i64), "in the order of the file");
            rows += numbers.len() as i64;
            Ok(())
        })
        .unwrap();
        assert_eq!(rows as usize, GROUPS * GROUP_ROWS);
        let most = most.into_inner();
        assert!(most <= GRANTED + (THREADS as u64 + 1) * batch_most, "{most} with batches of {batch_most}: {is_known}");
    }
}

/// When Arrow's reader does, or refuses such a schema, `OwnType` need not look.
#[test]
fn arrow_does_not_look_at_texts_that_the_file_calls_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    let bytes: ArrayRef = Arc::new(BinaryArray::from(vec![b"\xff".as_ref()]));
    let batch = RecordBatch::try_from_iter([("x", bytes)]).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let text = Arc::new(Schema::new(vec![Field::new("x", ArrowType::Utf8View, false)]));
    let options = ArrowReaderOptions::new().with_schema(text.clone());
    let file = File::open(&path).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).unwrap();
    let read: Vec<RecordBatch> = reader.build().unwrap().map(|batch| batch.unwrap()).collect();
    assert!(read[0].column(0).to_data().validate_full().is_err());
    let mine = ParquetFile::open(&path.display().to_string()).unwrap().read_as(Some(text)).unwrap();
    let error = mine.read_group(&[0], 10, None).unwrap().next().unwrap().unwrap_err();
    assert_eq!(error.sqlstate(), "22021");
}

/// What a damaged file says of its rows is no reason to panic: one thread reads the smallest batches.
#[test]
fn rows_of_any_size_are_read() {
    for row_bytes in [u64::MAX, u64::MAX / 2, 1 << 60] {
        let Reading { threads, batch_rows, ahead_bytes, .. } = Reading::of(row_bytes, 100_000, (8, 1 << 30));
        assert_eq!((threads, batch_rows, ahead_bytes), (1, limits::BATCH_ROWS, 1 << 29), "{row_bytes}");
    }
    let Reading { threads, batch_rows, .. } = Reading::of(0, 100_000, (8, 1 << 30));
    assert_eq!((threads, batch_rows), (8, 100_000));
    assert_eq!(Reading::of(100, 100_000, (8, 0)).threads, 1);
}
