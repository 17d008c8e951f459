//! Texts of which there are few, as codes: they are gathered, written, read, and gathered again as numbers.
//!
//! Comes in: columns of sorts. Goes out: the same, short texts that repeat as codes of one dictionary for all sorts of
//! a spill; and what codes name when all are there.
//!
//! Invariants: a code names the same text for ever; a dictionary has at most [`limits::SPILL_TEXTS_MAX`] texts. Once a
//! column came without codes it is closed: later sorts have none, and those before are read as texts. It does not
//! own: the dictionaries of segments.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray, UInt32Array};
use arrow_buffer::ScalarBuffer;
use arrow_cast::cast;
use arrow_schema::DataType as ArrowType;
use arrow_select::take::take;
use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::error::Result;
use crate::limits;
use crate::row::{batch_of, coded_texts};
use crate::segment::short_text_codes;

/// One for each column, though most have no texts.
#[derive(Debug, Default)]
pub(super) struct Dictionaries(Vec<Mutex<Dictionary>>);

#[derive(Debug, Default)]
struct Dictionary {
    codes: HashMap<Box<str>, u32>,
    /// Whether a sort has, or had to have, no codes.
    is_closed: bool,
}

/// What the codes of a column name.
#[derive(Debug)]
pub(super) struct Texts {
    texts: ArrayRef,
    /// Whether all sorts have codes, so that they can stay.
    are_all: bool,
}

impl Dictionaries {
    /// For batches of `columns` columns.
    pub fn new(columns: usize) -> Self {
        Self((0..columns).map(|_| Mutex::default()).collect())
    }

    /// Bytes that they take, about.
    pub fn memory(&self) -> usize {
        self.0.iter().map(|dictionary| dictionary.lock().codes.len() * limits::SPILL_TEXT_BYTES).sum()
    }

    /// The rows of `batch`, with codes (UInt32, a type that columns do not have) where there are few texts, but for
    /// columns at `keys`, by which rows are sorted. Codes of other dictionaries become texts where there are many.
    ///
    /// # Errors
    /// Internal.
    pub fn coded(&self, batch: &RecordBatch, keys: &[usize]) -> Result<RecordBatch> {
        let column = |(at, (array, dictionary)): (usize, (&ArrayRef, &Mutex<Dictionary>))| {
            if keys.contains(&at) { Ok(array.clone()) } else { dictionary.lock().coded(array) }
        };
        batch_of(batch.columns().iter().zip(&self.0).enumerate().map(column).collect::<Result<_>>()?)
    }

    /// No column has codes from now on.
    pub fn close(&self) {
        self.0.iter().for_each(|dictionary| dictionary.lock().is_closed = true);
    }

    /// What codes name; `None` for a column without any.
    pub fn into_texts(self) -> Vec<Option<Texts>> {
        self.0.into_iter().map(|dictionary| dictionary.into_inner().into_texts()).collect()
    }
}

impl Dictionary {
    fn coded(&mut self, array: &ArrayRef) -> Result<ArrayRef> {
        if let Some((codes, texts)) = coded_texts(array) {
            let texts: Vec<&str> = (0..texts.len()).map(|at| texts.value(at)).collect();
            return match self.codes_of(&texts) {
                Some(named) => Ok(named_by(codes.iter().map(|code| code.map(|code| code as usize)), &named)),
                // As views they are not copied.
                None => Ok(cast(array, &ArrowType::Utf8View)?),
            };
        }
        let Some(texts) = array.as_string_opt::<i32>().filter(|_| !self.is_closed) else {
            self.is_closed = true;
            return Ok(array.clone());
        };
        let named = short_text_codes(texts).and_then(|(distinct, codes)| Some((self.codes_of(&distinct)?, codes)));
        let Some((named, codes)) = named else {
            self.is_closed = true;
            return Ok(array.clone());
        };
        let code = |(row, code): (usize, u32)| texts.is_valid(row).then_some(code as usize);
        Ok(named_by(codes.into_iter().enumerate().map(code), &named))
    }

    /// The codes of `texts`, those of new ones, too; `None` if they would be too many.
    fn codes_of(&mut self, texts: &[&str]) -> Option<Vec<u32>> {
        let is_new = |text: &&&str| !self.codes.contains_key(**text);
        let are_few = !self.is_closed
            && !texts.is_empty()
            && texts.iter().all(|text| text.len() <= limits::SPILL_TEXT_BYTES)
            && self.codes.len() + texts.iter().filter(is_new).count() <= limits::SPILL_TEXTS_MAX;
        self.is_closed |= !are_few;
        are_few.then(|| {
            let mut code = |text: &&str| {
                let next = self.codes.len() as u32;
                *self.codes.entry((*text).into()).or_insert(next)
            };
            texts.iter().map(&mut code).collect()
        })
    }

    fn into_texts(self) -> Option<Texts> {
        let mut texts: Vec<(Box<str>, u32)> = self.codes.into_iter().collect();
        texts.sort_unstable_by_key(|(_, code)| *code);
        let texts = StringArray::from_iter_values(texts.iter().map(|(text, _)| text));
        (!texts.is_empty()).then(|| Texts { texts: Arc::new(texts), are_all: !self.is_closed })
    }
}

/// The codes in `named` at places `codes`. Columns of no type have arrays of such numbers: it is these that they tell.
fn named_by(codes: impl Iterator<Item = Option<usize>>, named: &[u32]) -> ArrayRef {
    let codes: UInt32Array = codes.map(|code| named.get(code?).copied()).collect();
    Arc::new(codes)
}

impl Texts {
    /// What `codes` are while rows are sorted: themselves where all sorts have codes, else the texts.
    ///
    /// # Errors
    /// Internal for codes that name nothing.
    pub fn read(&self, codes: UInt32Array) -> Result<ArrayRef> {
        if self.are_all { Ok(Arc::new(codes)) } else { Ok(take(&self.texts, &codes, None)?) }
    }

    /// The column that is `read` by [`Texts::read`], as a load takes it.
    ///
    /// # Errors
    /// As [`Texts::read`].
    pub fn column(&self, read: ArrayRef) -> Result<ArrayRef> {
        let Some(codes) = read.as_primitive_opt::<UInt32Type>() else { return Ok(read) };
        let codes = Int32Array::new(ScalarBuffer::from(codes.values().inner().clone()), codes.nulls().cloned());
        Ok(Arc::new(DictionaryArray::try_new(codes, self.texts.clone())?))
    }
}
