use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::*;
use arrow_schema::{DataType as ArrowType, Field, Schema as ArrowSchema};
use proptest::prelude::*;

use super::testing::{batch, id, table, table_and_rows};
use super::*;
use crate::error::ErrorKind;
use crate::schema::{DataType, TableSchema};

const TEXT: DataType = DataType::Text { max_chars: None };

fn filled(schema: &Arc<TableSchema>, rows: &[Vec<Value>]) -> RowBuffer {
    let mut buffer = RowBuffer::new(RowLayout::new(schema));
    rows.iter().for_each(|row| buffer.push_values(row).unwrap());
    buffer
}

fn contents(buffer: &RowBuffer) -> Vec<Vec<Value>> {
    buffer.rows().map(|row| row.values()).collect()
}

proptest! {
    #[test]
    fn values_and_batches_give_the_same_rows_and_come_back((schema, rows) in table_and_rows(6, 20)) {
        let by_values = filled(&schema, &rows);
        prop_assert_eq!(&contents(&by_values), &rows);

        let given = batch(&schema, &rows);
        let checked = check_batch(&schema, &given).unwrap();
        for (before, after) in given.columns().iter().zip(checked.columns()) {
            prop_assert!(Arc::ptr_eq(before, after), "a good batch is not copied");
        }
        let mut by_batch = filled(&schema, &rows[..rows.len() / 2]);
        by_batch.push_batch(&checked.slice(rows.len() / 2, rows.len() - rows.len() / 2)).unwrap();
        prop_assert_eq!(&by_batch.data, &by_values.data);
        prop_assert_eq!(&by_batch.ends, &by_values.ends);

        let arrays = by_values.to_arrays(&schema.column_ids(), 0..rows.len()).unwrap();
        prop_assert_eq!(&RecordBatch::try_new(schema.arrow(), arrays).unwrap(), &given);
    }

    #[test]
    fn chosen_rows_become_columns(
        ((schema, rows), picks) in (table_and_rows(4, 20), prop::collection::vec(any::<prop::sample::Index>(), 0..30)),
    ) {
        let buffer = filled(&schema, &rows);
        let picks: Vec<u32> = picks.iter().filter(|_| !rows.is_empty()).map(|p| p.index(rows.len()) as u32).collect();
        let taken = buffer.take_arrays(&schema.column_ids(), &picks).unwrap();
        for (column, array) in schema.columns.iter().zip(&taken) {
            prop_assert_eq!(array.data_type(), &column.data_type.arrow());
        }
        for (at, pick) in picks.iter().enumerate() {
            for (position, value) in rows[*pick as usize].iter().enumerate() {
                let data_type = schema.columns[position].data_type;
                prop_assert_eq!(&value_of(taken[position].as_ref(), data_type, at).unwrap(), value);
            }
        }
        let range = rows.len() / 3..rows.len() / 2;
        let part = buffer.to_arrays(&[id(0)], range.clone()).unwrap();
        prop_assert_eq!(&part[0], &batch(&schema, &rows[range]).column(0).clone());
    }

    #[test]
    fn log_records_come_back((schema, rows) in table_and_rows(6, 10)) {
        let buffer = filled(&schema, &rows);
        let mut record = vec![];
        buffer.write_to(&mut record);
        let read = RowBuffer::read_from(buffer.layout().clone(), &record).unwrap();
        prop_assert_eq!(&contents(&read), &rows);
        record.push(0);
        prop_assert_eq!(RowBuffer::read_prefix(buffer.layout().clone(), &record).unwrap().1, record.len() - 1);
        prop_assert_eq!(RowBuffer::read_from(buffer.layout().clone(), &record).unwrap_err().kind(), ErrorKind::Corrupt);

        let mut copied = RowBuffer::new(RowLayout::new(&schema));
        buffer.rows().for_each(|row| copied.push_row(row));
        copied.truncate(rows.len() / 2);
        buffer.rows().skip(rows.len() / 2).for_each(|row| copied.push_encoded(row.as_bytes()).unwrap());
        prop_assert_eq!(contents(&copied), rows);
    }

    /// Damage is an error, or by chance another row; then that row is in its one form, and readable.
    #[test]
    fn damaged_records_never_panic(
        (schema, rows) in table_and_rows(6, 4),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..3),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut record = vec![];
        filled(&schema, &rows).write_to(&mut record);
        for (at, byte) in damage {
            let at = at.index(record.len());
            record[at] = byte;
        }
        if let Some(cut) = cut {
            record.truncate(cut.index(record.len()));
        }
        match RowBuffer::read_from(RowLayout::new(&schema), &record) {
            Err(e) => prop_assert_eq!(e.kind(), ErrorKind::Corrupt),
            Ok(read) => {
                let again = filled_uncut(&schema, &contents(&read));
                prop_assert_eq!(again.data, read.data.clone());
                read.to_arrays(&schema.column_ids(), 0..read.len()).unwrap();
            }
        }
    }
}

/// As [`filled`], with room for longer text than the table takes: a log is not checked for that.
fn filled_uncut(schema: &Arc<TableSchema>, rows: &[Vec<Value>]) -> RowBuffer {
    let mut schema = TableSchema::clone(schema);
    for column in &mut schema.columns {
        if let DataType::Text { max_chars } = &mut column.data_type {
            *max_chars = None;
        }
    }
    filled(&Arc::new(schema), rows)
}

#[test]
fn many_columns_have_a_longer_bitmap() {
    let schema = table(&[(DataType::SmallInt, true); 65]);
    let layout = RowLayout::new(&schema);
    assert_eq!(layout.fixed_bytes(), 16 + 65 * 8);
    let mut row = vec![Value::Int(7); 65];
    row[64] = Value::Null;
    let mut buffer = filled(&schema, &[row.clone()]);
    assert_eq!(contents(&buffer), [row]);
    // A NULL bit of a column that is not there.
    let mut bytes = buffer.row(0).as_bytes().to_vec();
    bytes[8] |= 2;
    assert_eq!(buffer.push_encoded(&bytes).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(buffer.len(), 1);
}

/// Each in its turn: what one slot must not hold.
#[test]
fn slots_outside_their_type_are_damage() {
    let schema = table(&[
        (TEXT, true),
        (TEXT, false),
        (DataType::Boolean, false),
        (DataType::SmallInt, false),
        (DataType::Real, false),
        (DataType::Decimal { precision: 4, scale: 0 }, false),
        (DataType::Decimal { precision: 20, scale: 0 }, false),
    ]);
    let text = |v: &str| Value::Text(v.into());
    let numbers =
        [Value::Boolean(true), Value::Int(5), Value::Real(1.5), Value::Decimal(9_999), Value::Decimal(1 << 65)];
    let row: Vec<Value> = [text("abé"), text("de")].into_iter().chain(numbers).collect();
    let mut buffer = filled(&schema, &[row]);
    let good = buffer.row(0).as_bytes().to_vec();
    let fixed = buffer.layout().fixed_bytes() as u64;
    let span = |at: u64, length: u64| (at | length << 32).to_le_bytes();
    for (at, bytes) in [
        (8, span(fixed, 5)),               // over the next text
        (8, span(fixed, 3)),               // half a character
        (8, span(8, 4)),                   // into the slots
        (8, span(u32::MAX.into(), 4)),     // outside
        (8, span(fixed, u32::MAX.into())), // too long
        (16, span(fixed, 2)),              // the first one's text
        (16, span(fixed + 4, 1)),          // bytes that belong to nothing
        (24, 2i64.to_le_bytes()),
        (32, 40_000i64.to_le_bytes()),
        (40, (1i64 << 32).to_le_bytes()),
        (48, 10_000i64.to_le_bytes()),
        (64, i64::MAX.to_le_bytes()),
        (0, 1i64.to_le_bytes()), // NULL with something in its slot
        (0, 2i64.to_le_bytes()), // NULL in a column that has none
        (0, (1i64 << 7).to_le_bytes()),
    ] {
        let mut bad = good.clone();
        bad[at..at + 8].copy_from_slice(&bytes);
        let error = buffer.push_encoded(&bad).expect_err(&format!("{bytes:?} at {at}"));
        assert_eq!(error.kind(), ErrorKind::Corrupt);
    }
    assert_eq!(buffer.push_encoded(&good[..good.len() - 1]).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(buffer.push_encoded(&good[..7]).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(buffer.push_encoded(&[&good[..], b"x"].concat()).unwrap_err().kind(), ErrorKind::Corrupt);
    // NULL in the right form, in a column that has none.
    let mut bad = good.clone();
    bad[0] = 1 << 3;
    bad[32..40].fill(0);
    assert_eq!(buffer.push_encoded(&bad).unwrap_err().kind(), ErrorKind::Corrupt);
    buffer.push_encoded(&good).unwrap();
}

#[test]
fn a_table_without_columns_has_rows() {
    let schema = table(&[]);
    let mut buffer = filled(&schema, &[vec![], vec![]]);
    let options = RecordBatchOptions::new().with_row_count(Some(3));
    let batch = RecordBatch::try_new_with_options(schema.arrow(), vec![], &options).unwrap();
    let checked = check_batch(&schema, &batch).unwrap();
    buffer.push_batch(&checked).unwrap();
    assert_eq!(buffer.len(), 5);
    let mut record = vec![];
    buffer.write_to(&mut record);
    assert_eq!(RowBuffer::read_from(buffer.layout().clone(), &record).unwrap().len(), 5);
}

/// SQLSTATE and message of a value refused by both ways in; NULL stands for itself.
fn refused(data_type: DataType, nullable: bool, value: Value) -> (&'static str, String) {
    let schema = table(&[(TEXT, false), (data_type, nullable)]);
    let mut buffer = filled(&schema, &[]);
    let row = [Value::Text("before".into()), value.clone()];
    let error = buffer.push_values(&row).unwrap_err();
    assert_eq!((buffer.len(), buffer.data.len()), (0, 0), "a refused row leaves nothing");
    if let Ok(array) = array_of([&value].into_iter(), data_type) {
        let first = array_of([&row[0]].into_iter(), TEXT).unwrap();
        let by_batch = check_batch(&schema, &loose(vec![first, array])).unwrap_err();
        assert_eq!((by_batch.sqlstate(), by_batch.message()), (error.sqlstate(), error.message()));
    }
    (error.sqlstate(), error.message().into())
}

/// A batch whose fields allow anything.
fn loose(arrays: Vec<ArrayRef>) -> RecordBatch {
    let fields: Vec<Field> = arrays.iter().map(|a| Field::new("x", a.data_type().clone(), true)).collect();
    RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), arrays).unwrap()
}

#[test]
fn tables_refuse_what_they_cannot_hold() {
    let place = "column \"c1\" of relation \"t\"";
    assert_eq!(
        refused(DataType::Integer, false, Value::Null),
        ("23502", format!("null value in {place} violates not-null constraint"))
    );
    assert_eq!(
        refused(DataType::Text { max_chars: Some(3) }, true, Value::Text("ab d".into())),
        ("22001", format!("value too long for type character varying(3): {place}"))
    );
    assert_eq!(
        refused(DataType::Decimal { precision: 3, scale: 1 }, true, Value::Decimal(-1000)),
        ("22003", format!("numeric field overflow: {place} is numeric(3,1)"))
    );
    let wide = DataType::Decimal { precision: 38, scale: 0 };
    assert_eq!(refused(wide, true, Value::Decimal(i128::MIN)).0, "22003");
    assert_eq!(
        refused(DataType::SmallInt, true, Value::Int(40_000)),
        ("22003", format!("smallint out of range: {place}"))
    );
    assert_eq!(refused(DataType::Date, true, Value::Int(1 << 40)).0, "22003");
    let day = 86_400_000_000;
    for outside in [-1, day, i64::MAX] {
        assert_eq!(
            refused(DataType::Time, true, Value::Int(outside)),
            ("22008", format!("time without time zone out of range: {place}"))
        );
    }
    assert_eq!(
        refused(DataType::Char { chars: 3 }, true, Value::Text("ab d  ".into())),
        ("22001", format!("value too long for type character(3): {place}"))
    );
    for (data_type, value) in [
        (DataType::Uuid, Value::Bytes(vec![0; 16].into())),
        (DataType::Uuid, Value::Text("a".into())),
        (DataType::Bytea, Value::Uuid(1)),
        (DataType::BigInt, Value::Uuid(1)),
        (DataType::Time, Value::Text("12:00".into())),
        (DataType::Char { chars: 3 }, Value::Int(1)),
        (DataType::Boolean, Value::Int(1)),
        (DataType::Integer, Value::Text("1".into())),
        (DataType::Double, Value::Int(1)),
        (wide, Value::Int(1)),
        (TEXT, Value::Bytes([1].into())),
        (DataType::Bytea, Value::Text("1".into())),
        (DataType::Integer, Value::Decimal(1)),
    ] {
        assert_eq!(refused(data_type, true, value).0, "42804", "{data_type:?}");
    }
    let schema = table(&[(TEXT, false)]);
    let text: ArrayRef = Arc::new(StringViewArray::from(vec!["a"]));
    assert_eq!(filled(&schema, &[]).push_values(&[]).unwrap_err().sqlstate(), "42804");
    assert_eq!(check_batch(&schema, &loose(vec![text.clone(), text])).unwrap_err().sqlstate(), "42804");
}

#[test]
fn spaces_beyond_the_length_are_cut_and_characters_are_counted() {
    let schema = table(&[(DataType::Text { max_chars: Some(3) }, true)]);
    let text = |v: &str| vec![Value::Text(v.into())];
    let given = [text("abc  "), text("ééé "), text("ab "), vec![Value::Null]];
    let wanted = [text("abc"), text("ééé"), text("ab "), vec![Value::Null]];
    assert_eq!(contents(&filled(&schema, &given)), wanted);
    assert_eq!(check_batch(&schema, &batch(&schema, &given)).unwrap(), batch(&schema, &wanted));
}

#[test]
fn padding_does_not_count_in_char() {
    let schema = table(&[(DataType::Char { chars: 3 }, true)]);
    let text = |v: &str| vec![Value::Text(v.into())];
    let given = [text("abc  "), text("ééé "), text("a b "), text(" a"), text("   "), text(""), vec![Value::Null]];
    let wanted = [text("abc"), text("ééé"), text("a b"), text(" a"), text(""), text(""), vec![Value::Null]];
    let mut rows = filled(&schema, &given);
    assert_eq!(contents(&rows), wanted);
    assert_eq!(check_batch(&schema, &batch(&schema, &given)).unwrap(), batch(&schema, &wanted));
    // A row with a blank at the end is not in the one form.
    let mut bytes = rows.row(0).as_bytes().to_vec();
    *bytes.last_mut().unwrap() = b' ';
    assert_eq!(rows.push_encoded(&bytes).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn floats_have_one_form() {
    let schema = table(&[(DataType::Real, true), (DataType::Double, true)]);
    let odd = -f64::from_bits(f64::NAN.to_bits() | 1);
    let real = Float32Array::from(vec![-0.0, -f32::NAN, 1.0]);
    let double = Float64Array::from(vec![-0.0, odd, 1.0]);
    let checked = check_batch(&schema, &loose(vec![Arc::new(real), Arc::new(double)])).unwrap();
    let by_values = filled(
        &schema,
        &[
            vec![Value::Real(-0.0), Value::Double(-0.0)],
            vec![Value::Real(-f32::NAN), Value::Double(odd)],
            vec![Value::Real(1.0), Value::Double(1.0)],
        ],
    );
    let mut by_batch = filled(&schema, &[]);
    by_batch.push_batch(&checked).unwrap();
    assert_eq!(by_batch.data, by_values.data);
    assert_eq!(by_batch.row(0).get_f64(1).to_bits(), 0);
    assert_eq!(by_batch.row(1).get_f32(0).to_bits(), f32::NAN.to_bits());
    // The bytes of another NaN are no row.
    let mut bytes = by_batch.row(1).as_bytes().to_vec();
    bytes[16] = 1;
    assert_eq!(by_batch.push_encoded(&bytes).unwrap_err().kind(), ErrorKind::Corrupt);
}

/// What `array` becomes in a nullable column of the type.
fn coerced(data_type: DataType, array: impl Array + 'static) -> Result<Vec<Value>, &'static str> {
    let schema = table(&[(data_type, true)]);
    let checked = check_batch(&schema, &loose(vec![Arc::new(array)])).map_err(|e| e.sqlstate())?;
    assert_eq!(checked.schema(), schema.arrow());
    Ok((0..checked.num_rows()).map(|row| value_of(checked.column(0), data_type, row).unwrap()).collect())
}

#[test]
fn the_same_thing_in_another_dress_is_taken() {
    let text = Ok(vec![Value::Text("a".into()), Value::Null]);
    assert_eq!(coerced(TEXT, StringArray::from(vec![Some("a"), None])), text);
    assert_eq!(coerced(TEXT, LargeStringArray::from(vec![Some("a"), None])), text);
    assert_eq!(coerced(TEXT, [Some("a"), None].into_iter().collect::<DictionaryArray<Int8Type>>()), text);
    assert_eq!(coerced(TEXT, NullArray::new(1)), Ok(vec![Value::Null]));

    let bytes = Ok(vec![Value::Bytes([97].into())]);
    assert_eq!(coerced(DataType::Bytea, BinaryArray::from(vec![b"a".as_ref()])), bytes);
    assert_eq!(coerced(DataType::Bytea, LargeBinaryArray::from(vec![b"a".as_ref()])), bytes);
    let fixed = FixedSizeBinaryArray::try_from_iter([b"a"].into_iter()).unwrap();
    assert_eq!(coerced(DataType::Bytea, fixed), bytes);

    let uuid = FixedSizeBinaryArray::try_from_iter([[0xa0; 16]].iter()).unwrap();
    assert_eq!(coerced(DataType::Uuid, uuid), Ok(vec![Value::Uuid(u128::from_be_bytes([0xa0; 16]))]));
    let short = FixedSizeBinaryArray::try_from_iter([[0xa0; 15]].iter()).unwrap();
    assert_eq!(coerced(DataType::Uuid, short), Err("42804"));
    assert_eq!(coerced(DataType::Uuid, BinaryArray::from(vec![[0; 16].as_ref()])), Err("42804"));
    assert_eq!(coerced(DataType::Char { chars: 4 }, StringArray::from(vec!["a  "])), Ok(vec![Value::Text("a".into())]));

    let int = Ok(vec![Value::Int(7)]);
    assert_eq!(coerced(DataType::SmallInt, Int64Array::from(vec![7])), int);
    assert_eq!(coerced(DataType::BigInt, UInt64Array::from(vec![7])), int);
    assert_eq!(coerced(DataType::Integer, Int8Array::from(vec![7])), int);
    let keys = Int32Array::from(vec![0]);
    let dictionary = DictionaryArray::<Int32Type>::new(keys, Arc::new(Int64Array::from(vec![7])));
    assert_eq!(coerced(DataType::Integer, dictionary), int);

    let decimal = DataType::Decimal { precision: 5, scale: 2 };
    assert_eq!(coerced(decimal, Int32Array::from(vec![7])), Ok(vec![Value::Decimal(700)]));
    let other = Decimal128Array::from(vec![1235]).with_precision_and_scale(30, 3).unwrap();
    assert_eq!(coerced(decimal, other), Ok(vec![Value::Decimal(124)]));
    assert_eq!(coerced(DataType::Double, Float32Array::from(vec![-0.0])), Ok(vec![Value::Double(0.0)]));
}

#[test]
fn timestamps_of_other_units_and_zones_are_taken() {
    let at = |v| Ok(vec![Value::Int(v)]);
    assert_eq!(coerced(DataType::Timestamp, TimestampSecondArray::from(vec![-2])), at(-2_000_000));
    assert_eq!(coerced(DataType::Timestamp, TimestampMillisecondArray::from(vec![2])), at(2_000));
    // Down, also before 1970.
    assert_eq!(coerced(DataType::Timestamp, TimestampNanosecondArray::from(vec![-1])), at(-1));
    assert_eq!(coerced(DataType::Timestamp, TimestampNanosecondArray::from(vec![1_999])), at(1));
    let zoned = TimestampNanosecondArray::from(vec![5_000]).with_timezone("Europe/Berlin");
    assert_eq!(coerced(DataType::TimestampTz, zoned.clone()), at(5));
    let utc = TimestampMicrosecondArray::from(vec![5]).with_timezone("UTC");
    assert_eq!(coerced(DataType::TimestampTz, utc), at(5));
    assert_eq!(coerced(DataType::Date, Date64Array::from(vec![-86_400_000])), at(-1));
    assert_eq!(coerced(DataType::Date, Date64Array::from(vec![-1])), at(-1));
    assert_eq!(coerced(DataType::Date, Date64Array::from(vec![-86_400_001])), at(-2));
    assert_eq!(coerced(DataType::Date, Date64Array::from(vec![86_399_999])), at(0));
    assert_eq!(coerced(DataType::Date, Date64Array::from(vec![i64::MIN])), Err("22008"));
    assert_eq!(coerced(DataType::Time, Time64NanosecondArray::from(vec![-1])), Err("22008"));
    assert_eq!(coerced(DataType::Time, Time32SecondArray::from(vec![2])), at(2_000_000));
    assert_eq!(coerced(DataType::Time, Time64NanosecondArray::from(vec![1_999])), at(1));
    assert_eq!(coerced(DataType::Time, Time32SecondArray::from(vec![86_400])), Err("22008"));
    assert_eq!(coerced(DataType::Time, Time64MicrosecondArray::from(vec![-1])), Err("22008"));

    assert_eq!(coerced(DataType::Timestamp, TimestampSecondArray::from(vec![i64::MAX])), Err("22008"));
    assert_eq!(coerced(DataType::Timestamp, zoned), Err("42804"));
    assert_eq!(coerced(DataType::TimestampTz, TimestampSecondArray::from(vec![1])), Err("42804"));
}

#[test]
fn other_types_and_numbers_out_of_range_are_refused() {
    assert_eq!(coerced(DataType::SmallInt, Int64Array::from(vec![40_000])), Err("22003"));
    assert_eq!(coerced(DataType::BigInt, UInt64Array::from(vec![u64::MAX])), Err("22003"));
    let decimal = DataType::Decimal { precision: 3, scale: 2 };
    assert_eq!(coerced(decimal, Int32Array::from(vec![10])), Err("22003"));
    let rounds_up = Decimal128Array::from(vec![9_999]).with_precision_and_scale(4, 3).unwrap();
    assert_eq!(coerced(decimal, rounds_up), Err("22003"));
    let unchecked = Decimal128Array::from(vec![1_000]).with_precision_and_scale(3, 2).unwrap();
    assert_eq!(coerced(decimal, unchecked), Err("22003"));

    assert_eq!(coerced(DataType::Integer, StringArray::from(vec!["1"])), Err("42804"));
    assert_eq!(coerced(DataType::Integer, Float64Array::from(vec![1.0])), Err("42804"));
    assert_eq!(coerced(DataType::Boolean, Int32Array::from(vec![1])), Err("42804"));
    assert_eq!(coerced(DataType::Real, Float64Array::from(vec![1.0])), Err("42804"));
    assert_eq!(coerced(TEXT, Int32Array::from(vec![1])), Err("42804"));
    assert_eq!(coerced(DataType::Date, TimestampSecondArray::from(vec![1])), Err("42804"));
}

/// What a load hands on as it is: texts and decimals of 64 bits that are in no key and fit.
#[test]
fn columns_of_a_load_stay_in_its_form() {
    let decimal = DataType::Decimal { precision: 5, scale: 2 };
    let padded = DataType::Char { chars: 3 };
    let text = DataType::Text { max_chars: Some(2) };
    let schema = table(&[(text, true), (decimal, true), (decimal, false), (padded, true)]);
    let digits = |values: Vec<Option<i64>>| -> ArrayRef {
        Arc::new(Decimal64Array::from(values).with_precision_and_scale(5, 2).unwrap())
    };
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("ab"), None]));
    let plain: ArrayRef = Arc::new(StringArray::from(vec![Some(" bc"), None]));
    let columns = vec![texts, digits(vec![Some(99_999), None]), digits(vec![Some(-99_999), Some(0)]), plain];
    let checked = check_load(&schema, columns.clone()).unwrap();
    assert_eq!(checked, columns);
    let code = |at: usize, array: ArrayRef| {
        let mut columns = columns.clone();
        columns[at] = array;
        check_load(&schema, columns).unwrap_err().sqlstate()
    };
    assert_eq!(code(1, digits(vec![Some(100_000), None])), "22003");
    assert_eq!(code(2, digits(vec![Some(1), None])), "23502");
    assert_eq!(code(0, Arc::new(StringArray::from(vec!["abc", ""]))), "22001");
    assert_eq!(code(3, Arc::new(StringArray::from(vec!["abcd", ""]))), "22001");
    // CHAR(n) loses the blanks at its end, whether they make it too long or not.
    for texts in [["ab ", ""], ["ab", "   "], ["ab    ", " "]] {
        let mut columns = columns.clone();
        columns[3] = Arc::new(StringArray::from(texts.to_vec()));
        let checked = check_load(&schema, columns).unwrap();
        assert_eq!(checked[3].as_string_view().iter().collect::<Vec<_>>(), [Some("ab"), Some("")]);
    }
    // Codes stay if all texts that they may name would.
    let coded = |texts: &[&str]| -> ArrayRef {
        let codes = Int32Array::from(vec![Some(texts.len() as i32 - 1), None]);
        Arc::new(DictionaryArray::new(codes, Arc::new(StringArray::from(texts.to_vec()))))
    };
    let with = |at: usize, array: ArrayRef| {
        let mut columns = columns.clone();
        columns[at] = array;
        check_load(&schema, columns).unwrap()[at].clone()
    };
    assert_eq!(&with(0, coded(&["a", "ab"])), &coded(&["a", "ab"]));
    assert_eq!(&with(3, coded(&["abc", "b"])), &coded(&["abc", "b"]));
    assert_eq!(with(0, coded(&["abc", "ab"])).as_string_view().iter().collect::<Vec<_>>(), [Some("ab"), None]);
    assert_eq!(with(3, coded(&["a ", "b "])).as_string_view().iter().collect::<Vec<_>>(), [Some("b"), None]);
    assert_eq!(code(0, coded(&["ab", "abc"])), "22001");
    // Of another scale they are cast, and in a key they are of the table's type.
    let mut other = columns.clone();
    other[1] = Arc::new(Decimal64Array::from(vec![10, 20]).with_precision_and_scale(5, 1).unwrap());
    let checked = check_load(&schema, other).unwrap();
    assert_eq!(*checked[1].data_type(), ArrowType::Decimal128(5, 2));
    let mut schema = TableSchema::clone(&schema);
    schema.sort_key = vec![schema.columns[2].id];
    assert_eq!(*check_load(&schema, columns).unwrap()[2].data_type(), ArrowType::Decimal128(5, 2));
}

#[test]
fn unchecked_batches_are_refused_whole() {
    let schema = table(&[(TEXT, false), (DataType::Decimal { precision: 5, scale: 0 }, true)]);
    let mut buffer = filled(&schema, &[vec![Value::Text("x".into()), Value::Null]]);
    let before = buffer.clone();
    let good: ArrayRef = Arc::new(StringViewArray::from(vec![Some("y")]));
    let null: ArrayRef = Arc::new(StringViewArray::from(vec![None::<&str>]));
    let too_large: ArrayRef = Arc::new(Decimal128Array::from(vec![i128::MAX]));
    let other_type: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let number = too_large.slice(0, 0);
    for arrays in [vec![good.clone(), too_large.clone()], vec![null, too_large], vec![good, other_type], vec![number]] {
        assert!(buffer.push_batch(&loose(arrays)).is_err());
        assert_eq!((&buffer.data, &buffer.ends, buffer.len), (&before.data, &before.ends, 1));
    }
}

#[test]
fn asking_for_what_is_not_there_is_an_error() {
    let schema = table(&[(DataType::Integer, false)]);
    let buffer = filled(&schema, &[vec![Value::Int(1)]]);
    assert_eq!(buffer.to_arrays(&[id(1)], 0..1).unwrap_err().kind(), ErrorKind::Internal);
    assert_eq!(buffer.to_arrays(&[id(0)], 0..2).unwrap_err().kind(), ErrorKind::Internal);
    assert_eq!(buffer.take_arrays(&[id(0)], &[1]).unwrap_err().kind(), ErrorKind::Internal);
    let array = Int32Array::from(vec![1]);
    assert_eq!(value_of(&array, DataType::Integer, 1).unwrap_err().kind(), ErrorKind::Internal);
    assert_eq!(value_of(&array, DataType::BigInt, 0).unwrap_err().kind(), ErrorKind::Internal);
}

#[test]
fn constants_repeat() {
    let long: Value = Value::Text("longer than a view holds inline".into());
    for (value, data_type) in [
        (long, TEXT),
        (Value::Null, DataType::TimestampTz),
        (Value::Int(5), DataType::TimestampTz),
        (Value::Boolean(true), DataType::Boolean),
        (Value::Int(5), DataType::Time),
        (Value::Uuid(1 << 120), DataType::Uuid),
        (Value::Null, DataType::Uuid),
        (Value::Decimal(-7), DataType::Decimal { precision: 20, scale: 3 }),
    ] {
        let array = constant_array(&value, data_type, 3).unwrap();
        assert_eq!((array.len(), array.data_type()), (3, &data_type.arrow()));
        assert_eq!(value_of(&array, data_type, 2).unwrap(), value);
        assert_eq!(constant_array(&value, data_type, 0).unwrap().len(), 0);
    }
    assert_eq!(constant_array(&Value::Int(1), TEXT, 1).unwrap_err().sqlstate(), "42804");
    assert_eq!(array_of([&Value::Int(1 << 40)].into_iter(), DataType::Date).unwrap_err().sqlstate(), "22003");
    assert_eq!(constant_array(&Value::Null, TEXT, 2).unwrap().data_type(), &ArrowType::Utf8View);
}

#[test]
fn values_are_equal_as_grouping_sees_it() {
    use std::collections::HashSet;
    let set: HashSet<Value> =
        [Value::Double(0.0), Value::Double(-0.0), Value::Double(f64::NAN), Value::Double(-f64::NAN), Value::Null]
            .into_iter()
            .collect();
    assert_eq!(set.len(), 3);
    assert_ne!(Value::Int(1), Value::Decimal(1));
}
