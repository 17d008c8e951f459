//! Loads of rows in no order, which go to a temporary file.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::disk::{DATA_DIR, Disk, DiskFile, DiskLock, RealDisk, TEMPORARY_DIR};
use crate::error::ErrorKind;

/// A target in a folder, which has temporary files.
fn folder() -> (tempfile::TempDir, super::super::LoadTarget) {
    let folder = tempfile::tempdir().unwrap();
    let target = target_on(Arc::new(RealDisk::open(folder.path(), true).unwrap()));
    (folder, target)
}

/// As [`load_by`], by what can spill.
fn spilling(
    threads: usize,
    schema: &Arc<TableSchema>,
    target: &super::super::LoadTarget,
    rows: &[Row],
    (batch_rows, sort): (usize, (usize, usize)),
) -> Result<Vec<Arc<Run>>> {
    let mut loader = Loader::new(schema.clone(), target.clone(), schema.options.segment_rows)
        .with_threads(threads)
        .with_sort_limits(sort.0, sort.1)
        .with_spill();
    for rows in rows.chunks(batch_rows) {
        loader.push(&batch(schema, rows))?;
    }
    loader.finish()
}

/// Whether something was put aside in `folder`; nothing is left of it.
fn has_spilled(folder: &Path) -> bool {
    let Ok(own) = std::fs::read_dir(folder.join(TEMPORARY_DIR)) else { return false };
    for folder in own {
        assert_eq!(std::fs::read_dir(folder.unwrap().path()).unwrap().count(), 0);
    }
    true
}

/// Numbers below `count`, each once, in no order.
fn shuffled(count: i64) -> Vec<Row> {
    numbers((0..count).map(|i| i * 7_919 % count))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_load_that_spills_equals_the_naive_sort(
        (schema, rows) in any_table().prop_flat_map(|schema| (Just(schema.clone()), rows(&schema, 200))),
        batch_rows in 1usize..40,
        sort in (1usize..60, 200usize..4_000),
        threads in 1usize..4,
    ) {
        let (_folder, target) = folder();
        let runs = spilling(threads, &schema, &target, &rows, (batch_rows, sort)).unwrap();
        are_loaded(&schema, &runs, &rows);
        drop(runs);
        prop_assert_eq!(files(&target), 0, "nobody kept the files");
    }

    #[test]
    fn a_key_that_is_twice_is_named_wherever_its_rows_are(
        at in 0usize..300,
        other in 0usize..300,
        sort in (20usize..150, 400usize..6_000),
    ) {
        let (_folder, target) = folder();
        let schema = number_table(16);
        let mut rows = shuffled(300);
        rows[other] = rows[at].clone();
        let key = match rows[at][0] { Value::Int(key) => key, _ => unreachable!() };
        match spilling(2, &schema, &target, &rows, (25, sort)) {
            Ok(runs) => prop_assert!(at == other && all_rows(&schema, &runs).len() == 300),
            Err(e) => prop_assert_eq!(e.message(), format!(
                "duplicate key value violates unique constraint \"t_pkey\": Key (c0)=({key}) already exists."
            )),
        }
        prop_assert_eq!(files(&target), 0);
    }
}

#[test]
fn rows_in_no_order_become_one_run_of_full_segments() {
    let schema = number_table(100);
    for (sort, threads) in [((1_000, 1 << 30), 1), ((1_000, 200_000), 2), ((500, 200_000), 3)] {
        let (folder, target) = folder();
        let runs = spilling(threads, &schema, &target, &shuffled(5_000), (130, sort)).unwrap();
        assert_eq!(runs.len(), 1, "{sort:?}");
        assert!(has_spilled(folder.path()));
        let of_run: Vec<u32> = runs[0].segments().iter().map(|part| part.rows()).collect();
        assert_eq!(of_run, [100; 50], "{sort:?}");
        assert_eq!(all_rows(&schema, &runs), numbers(0..5_000));
    }
}

/// What is nearly in order is encoded as it comes: its runs hardly overlap.
#[test]
fn rows_nearly_in_order_do_not_spill() {
    let schema = number_table(100);
    let nearly = (0..5_000).map(|i| i / 10 * 10 + (i * 7) % 10);
    let (folder, target) = folder();
    let runs = spilling(2, &schema, &target, &numbers(nearly), (130, (1_000, usize::MAX))).unwrap();
    assert!(runs.len() <= 5 && !has_spilled(folder.path()), "{} runs", runs.len());
    // Those in no order that follow do not touch them.
    let mut rows = numbers(0..3_000);
    rows.extend(numbers((0..5_000).map(|i| 3_000 + i * 7_919 % 5_000)));
    let runs = spilling(2, &schema, &target, &rows, (130, (1_000, usize::MAX))).unwrap();
    assert!(runs.len() <= 2 && has_spilled(folder.path()), "{} runs", runs.len());
    assert_eq!(sorted(&schema, &all_rows(&schema, &runs)), numbers(0..8_000));
}

/// Texts as codes, with offsets and as views; decimals of 64 bits and of 128; NULLs; from batch to batch another way,
/// or the same way all along.
#[test]
fn rows_in_any_form_stay_what_they_are() {
    use arrow_array::types::Int32Type;
    use arrow_array::{ArrayRef, Decimal128Array, DictionaryArray, Int64Array, StringArray, StringViewArray};
    use arrow_cast::cast;
    use arrow_schema::DataType as ArrowType;

    let text = DataType::Text { max_chars: None };
    let decimal = DataType::Decimal { precision: 15, scale: 2 };
    let columns = [(DataType::BigInt, false), (text, true), (text, true), (decimal, true)];
    let schema = table(&columns, 1, true, 100);
    let keys: Vec<i64> = (0..5_000).map(|i| i * 7_919 % 5_000).collect();
    let few = |key: &i64| (key % 11 != 0).then(|| format!("text {}", key % 7));
    let many = |key: &i64| (key % 13 != 0).then(|| format!("a longer text, number {key}, of which there is but one"));
    let number = |key: &i64| (key % 17 != 0).then_some(i128::from(*key) * 100 - 7);
    let in_form = |form: usize, keys: &[i64]| -> Vec<ArrayRef> {
        let texts = |text: &dyn Fn(&i64) -> Option<String>| -> ArrayRef {
            let texts: StringArray = keys.iter().map(text).collect();
            match form % 3 {
                0 => Arc::new(texts),
                1 => Arc::new(StringViewArray::from(&texts)),
                _ => Arc::new(texts.iter().collect::<DictionaryArray<Int32Type>>()),
            }
        };
        let numbers: Decimal128Array = keys.iter().map(number).collect();
        let wide: ArrayRef = Arc::new(numbers.with_precision_and_scale(15, 2).unwrap());
        let numbers = if form < 3 { cast(&wide, &ArrowType::Decimal64(15, 2)).unwrap() } else { wide };
        vec![Arc::new(Int64Array::from(keys.to_vec())), texts(&few), texts(&many), numbers]
    };
    let always: Vec<Vec<usize>> = (0..6).map(|form| vec![form]).collect();
    let mixed = [vec![0, 1, 2, 3, 4, 5], vec![2, 2, 2, 0], vec![0, 0, 0, 0, 0, 1], vec![5, 5, 2, 2], vec![0, 2]];
    for forms in always.into_iter().chain(mixed) {
        for batch_rows in [40, 300] {
            let (folder, target) = folder();
            let mut loader = Loader::new(schema.clone(), target.clone(), 100)
                .with_threads(2)
                .with_sort_limits(1_000, 1_200_000)
                .with_spill();
            for (keys, form) in keys.chunks(batch_rows).zip(forms.iter().cycle()) {
                loader.push(&crate::row::batch_of(in_form(*form, keys)).unwrap()).unwrap();
            }
            let runs = loader.finish().unwrap();
            assert!(runs.len() == 1 && has_spilled(folder.path()), "{forms:?}");
            let expected = (0..5_000).map(|key| {
                let text = |text: Option<String>| text.map_or(Value::Null, |text| Value::Text(text.into()));
                vec![
                    Value::Int(key),
                    text(few(&key)),
                    text(many(&key)),
                    number(&key).map_or(Value::Null, Value::Decimal),
                ]
            });
            assert_eq!(all_rows(&schema, &runs), expected.collect::<Vec<Row>>(), "{forms:?}");
        }
    }
}

/// Each key is too often there for any range of keys alone to fit memory.
#[test]
fn rows_with_few_keys_stay_in_the_order_in_which_they_came() {
    let schema = table(&[(DataType::BigInt, false), (DataType::BigInt, true)], 1, false, 50);
    let rows: Vec<Row> = (0..3_000).map(|i| vec![Value::Int(i * 31 % 3), Value::Int(i)]).collect();
    let (folder, target) = folder();
    let runs = spilling(2, &schema, &target, &rows, (70, (400, 100_000))).unwrap();
    assert!(has_spilled(folder.path()));
    let of_run: Vec<Row> = all_rows(&schema, &runs);
    assert_eq!(runs.len(), 1);
    assert_eq!(of_run, sorted(&schema, &rows));
}

#[test]
fn more_sorts_than_are_read_at_once_become_several_runs() {
    let schema = number_table(50);
    let (_folder, target) = folder();
    let runs = spilling(1, &schema, &target, &shuffled(5_000), (50, (100, 100_000))).unwrap();
    assert!((2..10).contains(&runs.len()), "{} runs", runs.len());
    assert_eq!(sorted(&schema, &all_rows(&schema, &runs)), numbers(0..5_000));
}

/// Alone, beside others that hold nearly all, and beside others that wait.
#[test]
fn ranges_take_no_more_memory_than_loads_may() {
    let schema = table(&[(DataType::BigInt, false); 4], 1, true, 200);
    let budget = MemoryBudget::new(1 << 24);
    let share = budget.share(MemoryKind::Loads);
    let row = |n: i64| vec![Value::Int(n * 7_919 % 50_021); 4];
    let rows: Vec<Row> = (0..50_021).map(row).collect();
    let loads = LoadMemory::new(budget.clone(), Arc::default());
    let most = Arc::new(AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let (_folder, target) = folder();
                let go_on = {
                    let (budget, most) = (budget.clone(), most.clone());
                    move || {
                        most.fetch_max(budget.used(MemoryKind::Loads) as usize, Ordering::Relaxed);
                        Ok(())
                    }
                };
                let mut loader = Loader::new(schema.clone(), target.clone(), 200)
                    .with_threads(2)
                    .with_sort_limits(1 << 30, loads.sort_bytes() as usize)
                    .with_spill()
                    .in_turn(loads.enter(Waiting::While(Arc::new(go_on))));
                for rows in rows.chunks(700) {
                    loader.push(&batch(&schema, rows)).unwrap();
                }
                let runs = loader.finish().unwrap();
                let found: usize = runs.iter().map(|run| run.rows() as usize).sum();
                assert_eq!(found, rows.len());
            });
        }
    });
    assert_eq!(budget.used(MemoryKind::Loads), 0);
    let most = most.load(Ordering::Relaxed) as u64;
    assert!(most > share / 4 && most <= share, "{most} of {share}");
}

/// Another load stands still, and holds as much as it may: ranges are smaller then.
#[test]
fn a_spill_goes_on_beside_a_load_that_stands_still() {
    let schema = table(&[(DataType::BigInt, false); 4], 1, true, 500);
    let budget = MemoryBudget::new(1 << 24);
    let loads = LoadMemory::new(budget.clone(), Arc::default());
    let mut still = loads.enter(Waiting::Uncancelled);
    assert!(still.try_begin(loads.sort_bytes()));
    let rows: Vec<Row> = (0..30_011).map(|n| vec![Value::Int(n * 7_919 % 30_011); 4]).collect();
    let (folder, target) = folder();
    let mut loader = Loader::new(schema.clone(), target.clone(), 500)
        .with_threads(2)
        .with_sort_limits(1 << 20, loads.sort_bytes() as usize)
        .with_spill()
        .in_turn(loads.enter(Waiting::Uncancelled));
    for rows in rows.chunks(700) {
        loader.push(&batch(&schema, rows)).unwrap();
        assert!(budget.used(MemoryKind::Loads) <= budget.share(MemoryKind::Loads));
    }
    let runs = loader.finish().unwrap();
    assert!(has_spilled(folder.path()));
    assert_eq!(sorted(&schema, &all_rows(&schema, &runs)), sorted(&schema, &rows));
    drop(still);
    assert_eq!(budget.used(MemoryKind::Loads), 0);
}

/// Rows of a part of the keys are a thousand times as wide as the others.
#[test]
fn wide_rows_make_blocks_of_few() {
    let text = DataType::Text { max_chars: None };
    let schema = table(&[(DataType::BigInt, false), (text, true)], 1, true, 100);
    let row = |key: i64| vec![Value::Int(key), Value::Text("w".repeat(if key / 100 == 7 { 5_000 } else { 5 }).into())];
    let rows: Vec<Row> = (0..3_000).map(|i| row(i * 7_919 % 3_000)).collect();
    let (folder, target) = folder();
    let runs = spilling(2, &schema, &target, &rows, (60, (600, 300_000))).unwrap();
    assert!(has_spilled(folder.path()));
    assert_eq!(sorted(&schema, &all_rows(&schema, &runs)), (0..3_000).map(row).collect::<Vec<Row>>());
}

#[test]
fn a_spill_that_is_canceled_leaves_nothing() {
    let schema = number_table(100);
    let loads = LoadMemory::new(MemoryBudget::new(1 << 30), Arc::default());
    let asked = Arc::new(AtomicUsize::new(0));
    // While it is written, and while its ranges are read.
    for at in [3, 40, 90] {
        asked.store(0, Ordering::Relaxed);
        let (folder, target) = folder();
        let go_on = {
            let asked = asked.clone();
            move || match asked.fetch_add(1, Ordering::Relaxed) {
                before if before < at => Ok(()),
                _ => Err(crate::error::Error::internal("enough")),
            }
        };
        let mut loader = Loader::new(schema.clone(), target.clone(), 100)
            .with_sort_limits(1_000, 40_000)
            .with_spill()
            .in_turn(loads.enter(Waiting::While(Arc::new(go_on))));
        let pushed = shuffled(5_000).chunks(500).try_for_each(|rows| loader.push(&batch(&schema, rows)));
        let ended = pushed.and_then(|()| loader.finish().map(drop));
        assert_eq!(ended.unwrap_err().message(), "enough");
        assert!(has_spilled(folder.path()));
        assert_eq!(files(&target), 0);
    }
}

/// Changes what is read of files without a name.
#[derive(Debug)]
struct Damaging(RealDisk);

#[derive(Debug)]
struct Damaged(Arc<dyn DiskFile>);

impl DiskFile for Damaged {
    fn append(&self, bytes: &[u8]) -> Result<()> {
        self.0.append(bytes)
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.0.read_at(offset, buffer)?;
        // The last byte is one of a value, so that the others can be read.
        buffer[buffer.len() - 1] ^= 1;
        Ok(())
    }
    fn len(&self) -> Result<u64> {
        self.0.len()
    }
    fn cut(&self, len: u64) -> Result<()> {
        self.0.cut(len)
    }
    fn reserve(&self, len: u64) -> Result<()> {
        self.0.reserve(len)
    }
    fn sync(&self) -> Result<()> {
        self.0.sync()
    }
}

impl Disk for Damaging {
    fn create(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        self.0.create(path)
    }
    fn open(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        self.0.open(path)
    }
    fn open_to_append(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        self.0.open_to_append(path)
    }
    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.0.rename(from, to)
    }
    fn remove(&self, path: &str) -> Result<()> {
        self.0.remove(path)
    }
    fn truncate(&self, path: &str, len: u64) -> Result<()> {
        self.0.truncate(path, len)
    }
    fn list(&self, dir: &str) -> Result<Vec<String>> {
        self.0.list(dir)
    }
    fn list_others(&self, dir: &str) -> Result<Vec<String>> {
        self.0.list_others(dir)
    }
    fn create_dir(&self, dir: &str) -> Result<()> {
        self.0.create_dir(dir)
    }
    fn sync_dir(&self, dir: &str) -> Result<()> {
        self.0.sync_dir(dir)
    }
    fn exists(&self, path: &str) -> Result<bool> {
        self.0.exists(path)
    }
    fn lock(&self, exclusive: bool) -> Result<DiskLock> {
        self.0.lock(exclusive)
    }
    fn temporary_file(&self) -> Result<Option<Arc<dyn DiskFile>>> {
        Ok(self.0.temporary_file()?.map(|file| Arc::new(Damaged(file)) as Arc<dyn DiskFile>))
    }
}

#[test]
fn rows_that_are_not_those_put_aside_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let target = target_on(Arc::new(Damaging(RealDisk::open(folder.path(), true).unwrap())));
    let error = spilling(2, &number_table(100), &target, &shuffled(5_000), (500, (1_000, usize::MAX))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.message().contains("a temporary file"), "{error}");
    assert_eq!(target.disk.list(DATA_DIR).unwrap().len(), 0);
}
