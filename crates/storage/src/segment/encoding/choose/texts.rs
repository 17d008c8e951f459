//! The choice for texts and bytes: plain or a dictionary, with symbols or without.
//!
//! 1. Where a sample says that most texts are different, symbols are looked for first, and a dictionary only if they
//!    save too little.
//! 2. Otherwise distinct texts are collected as long as a dictionary of them would be smaller than plain. Its texts may
//!    be codes of symbols too.

use std::sync::Arc;

use arrow_array::{Array, Int32Array, StringArray};
use arrow_buffer::NullBuffer;
use hashbrown::HashMap;
use mainstem_kernels::extremes::longest_text;
use mainstem_kernels::hash::hash_u64;
use xxhash_rust::xxh3::xxh3_64;

use super::super::super::sketch::DistinctSketch;
use super::super::dictionary::Distinct;
use super::super::fsst::{Coded, Encoder, LastSymbols, TEXT_BYTES_MIN};
use super::super::{Encoding, constant, dictionary, plain, short_texts};
use super::{Encoded, is_worth, present};
use crate::error::{Error, ErrorKind, Result, sqlstate};
use crate::row::Value;
use crate::schema::DataType;
use crate::settings::Encodings;

/// Most bytes of text in one block: views have 31-bit offsets.
const HEAP_BYTES_MAX: usize = i32::MAX as usize;
/// Rows that [`repeat`] looks at; with fewer there is nothing to be saved by looking at some.
const SAMPLE_ROWS: usize = 4096;

/// Encodes `texts`, none of them NULL, as one value or a dictionary, if all are short and repeat; says whether it did.
pub(super) fn encode_short(data_type: DataType, texts: &StringArray, encoded: &mut Encoded) -> Result<bool> {
    let offsets = texts.value_offsets();
    let length_max = longest_text(offsets) as usize;
    let heap = match offsets {
        [first, .., last] if length_max <= short_texts::SHORT_BYTES => (last - first) as usize,
        _ => return Ok(false),
    };
    let text = |row: usize| {
        let range = (*offsets.get(row)? as usize)..(*offsets.get(row + 1)? as usize);
        texts.value_data().get(range)
    };
    if heap >= TEXT_BYTES_MIN && !repeat(texts.len(), None, text) {
        return Ok(false);
    }
    let budget = plain::text_bytes(texts.len(), length_max, heap);
    let found = short_texts::distinct(texts.value_data(), offsets, length_max, budget);
    let Some(found) = found.filter(|found| dictionary::text_bytes(texts.len(), &found.values) < budget) else {
        return Ok(false);
    };
    let (Some(least), Some(greatest)) = (found.values.first(), found.values.last()) else { return Ok(false) };
    encoded.bounds = (value(data_type, least)?, value(data_type, greatest)?);
    if found.values.len() == 1 && least.len() <= constant::CONSTANT_BYTES_MAX {
        encoded.encoding = Encoding::Constant { value: value(data_type, least)? };
        encoded.distinct = Some(1);
        return Ok(true);
    }
    write_dictionary(found, false, encoded)?;
    Ok(true)
}

/// Encodes the texts that `codes` name of `texts`, as one value or a dictionary, if that is what [`encode`] would do;
/// says whether it did. No row is looked at but for its code.
pub(super) fn encode_coded(
    data_type: DataType,
    codes: &Int32Array,
    texts: &StringArray,
    encoded: &mut Encoded,
) -> Result<bool> {
    let nulls = codes.nulls().filter(|nulls| nulls.null_count() > 0);
    // How often each stands, and later its place among those that do.
    let mut places = vec![0_u32; texts.len()];
    for code in present(codes.values(), nulls).flatten() {
        if let Some(count) = places.get_mut(code as usize) {
            *count += 1;
        }
    }
    let text = |at: &usize| texts.value(*at).as_bytes();
    let mut used: Vec<usize> = (0..texts.len()).filter(|at| places.get(*at) != Some(&0)).collect();
    let heap = used.iter().map(|at| text(at).len() * places.get(*at).map_or(0, |count| *count as usize)).sum();
    let length_max = used.iter().map(|at| text(at).len()).max().unwrap_or(0);
    used.sort_unstable_by(|a, b| text(a).cmp(text(b)));
    let mut values: Vec<&[u8]> = Vec::with_capacity(used.len());
    for at in &used {
        // A dictionary of somebody else's may have a text twice.
        if values.last() != Some(&text(at)) {
            values.push(text(at));
        }
        if let Some(place) = places.get_mut(*at) {
            *place = values.len() as u32 - 1;
        }
    }
    let budget = plain::text_bytes(codes.len(), length_max, heap);
    let repeats = heap < TEXT_BYTES_MIN || values.len() <= codes.len() / 2;
    if !repeats || dictionary::text_bytes(codes.len(), &values) >= budget {
        return Ok(false);
    }
    let (Some(least), Some(greatest)) = (values.first(), values.last()) else { return Ok(false) };
    encoded.bounds = (value(data_type, least)?, value(data_type, greatest)?);
    if values.len() == 1 && least.len() <= constant::CONSTANT_BYTES_MAX {
        encoded.encoding = Encoding::Constant { value: value(data_type, least)? };
        encoded.distinct = Some(1);
        return Ok(true);
    }
    let place = |code: Option<i32>| code.and_then(|code| places.get(code as usize)).copied().unwrap_or(0);
    let codes = present(codes.values(), nulls).map(place).collect();
    write_dictionary(Distinct { values, codes }, false, encoded)?;
    Ok(true)
}

/// `text` as a value of `data_type`.
fn value(data_type: DataType, text: &[u8]) -> Result<Value> {
    match data_type {
        DataType::Text { .. } | DataType::Char { .. } => {
            std::str::from_utf8(text).map(|t| Value::Text(t.into())).map_err(|e| Error::internal(e.to_string()))
        }
        _ => Ok(Value::Bytes(text.into())),
    }
}

pub(super) fn encode(
    data_type: DataType,
    texts: &[&[u8]],
    nulls: Option<&NullBuffer>,
    (encodings, last): (Encodings, Option<&LastSymbols>),
    encoded: &mut Encoded,
) -> Result<()> {
    let value = |text: &[u8]| value(data_type, text);
    let is_forced = encodings != Encodings::Smallest;
    let (heap, length_max) = texts.iter().fold((0, 0), |(sum, most), t| (sum + t.len(), most.max(t.len())));
    let plain_bytes = plain::text_bytes(texts.len(), length_max, heap);
    let has_symbols_first = match encodings {
        Encodings::Smallest => heap >= TEXT_BYTES_MIN && !repeat(texts.len(), last, |row| texts.get(row).copied()),
        Encodings::Decoded => true,
        Encodings::DecodedDictionaries => false,
    };
    let choice = SymbolChoice { heap, plain_bytes, is_forced, last };
    // What is asked of all texts is asked while they are encoded, if they are.
    let are_looked_at = has_symbols_first && nulls.is_none();
    if are_looked_at {
        let mut seen = Seen::default();
        if write_symbols(texts, choice, |some| seen.add(some), encoded)? {
            encoded.bounds = (value(seen.least)?, value(seen.greatest)?);
            (encoded.distinct, encoded.sketch) = (None, Some(seen.sketch));
            return Ok(());
        }
    }
    let budget = if is_forced { usize::MAX } else { plain_bytes };
    let find_distinct = || dictionary::distinct_texts(present(texts, nulls), budget);
    let found = if has_symbols_first { None } else { find_distinct() };
    let all = || present(texts, nulls).flatten();
    let bounds = match &found {
        Some(found) => (found.values.first().copied(), found.values.last().copied()),
        None => extremes(all()),
    };
    let (Some(least), Some(greatest)) = bounds else { return Ok(()) };
    encoded.bounds = (value(least)?, value(greatest)?);
    encoded.distinct = None;
    if least == greatest && least.len() <= constant::CONSTANT_BYTES_MAX && !is_forced {
        encoded.encoding = Encoding::Constant { value: value(least)? };
        encoded.distinct = Some(1);
        return Ok(());
    }
    let sketch = || Some(DistinctSketch::of(all().map(xxh3_64)));
    let is_tried = has_symbols_first && !are_looked_at;
    if is_tried && write_symbols(texts, choice, |_| (), encoded)? {
        encoded.sketch = sketch();
        return Ok(());
    }
    if let Some(found) = found.or_else(|| if has_symbols_first { find_distinct() } else { None })
        && dictionary::text_bytes(texts.len(), &found.values) < budget
    {
        return write_dictionary(found, is_forced, encoded);
    }
    encoded.sketch = sketch();
    if !has_symbols_first
        && heap >= TEXT_BYTES_MIN
        && write_symbols(texts, SymbolChoice { is_forced: false, ..choice }, |_| (), encoded)?
    {
        return Ok(());
    }
    check_heap(heap)?;
    encoded.encoding = Encoding::Plain { length_width: plain::encode_texts(texts, &mut encoded.body) };
    Ok(())
}

/// What is known of texts that were looked at, of which there are some.
#[derive(Default)]
struct Seen<'t> {
    any: bool,
    least: &'t [u8],
    greatest: &'t [u8],
    sketch: DistinctSketch,
}

impl<'t> Seen<'t> {
    fn add(&mut self, texts: &[&'t [u8]]) {
        if let (Some(least), Some(greatest)) = extremes(texts.iter().copied()) {
            self.least = if self.any { self.least.min(least) } else { least };
            self.greatest = self.greatest.max(greatest);
            self.any = true;
        }
        texts.iter().for_each(|text| self.sketch.add(xxh3_64(text)));
    }
}

/// The first eight bytes of `text`, or zeros behind it: in the order of texts, but for those that begin alike.
fn beginning(text: &[u8]) -> u64 {
    let mut first = [0; 8];
    match text.first_chunk() {
        Some(chunk) => first = *chunk,
        None => first.iter_mut().zip(text).for_each(|(to, byte)| *to = *byte),
    }
    u64::from_be_bytes(first)
}

/// The least and the greatest of `texts`. Their first bytes tell nearly always.
fn extremes<'a>(mut texts: impl Iterator<Item = &'a [u8]>) -> (Option<&'a [u8]>, Option<&'a [u8]>) {
    let Some(first) = texts.next() else { return (None, None) };
    let (mut least, mut greatest) = ((beginning(first), first), (beginning(first), first));
    for text in texts {
        let text = (beginning(text), text);
        if text.0 <= least.0 {
            least = least.min(text);
        }
        if text.0 >= greatest.0 {
            greatest = greatest.max(text);
        }
    }
    (Some(least.1), Some(greatest.1))
}

/// Whether a sample of the texts of `rows` rows says that there are at most half as many different ones as rows: of
/// rows taken at random then so many pairs are equal on average. Fewer are looked at where `last` says that texts of
/// such a column had symbols.
fn repeat<'a>(rows: usize, last: Option<&LastSymbols>, text: impl Fn(usize) -> Option<&'a [u8]>) -> bool {
    if rows <= SAMPLE_ROWS {
        return true;
    }
    let had_symbols = last.is_some_and(|last| last.lock().is_some());
    let sample = if had_symbols { SAMPLE_ROWS / 4 } else { SAMPLE_ROWS };
    let mut seen: HashMap<u64, usize> = HashMap::with_capacity(sample);
    let (mut repeated, wanted) = (0, (sample * sample / 2 / rows).max(1));
    for number in 0..sample as u64 {
        let row = (hash_u64(number) % rows as u64) as usize;
        if let Some(text) = text(row) {
            // One row twice says nothing.
            repeated += usize::from(*seen.entry(xxh3_64(text)).or_insert(row) != row);
        }
        if repeated >= wanted {
            return true;
        }
    }
    false
}

/// What decides whether texts are worth symbols.
#[derive(Clone, Copy)]
struct SymbolChoice<'l> {
    /// Bytes of the texts, and those that they take without symbols.
    heap: usize,
    plain_bytes: usize,
    is_forced: bool,
    /// The symbols of the last such texts.
    last: Option<&'l LastSymbols>,
}

/// Encodes `texts` as codes of symbols if `choice` says so; says whether it did.
fn write_symbols<'t>(
    texts: &[&'t [u8]],
    choice: SymbolChoice<'_>,
    look: impl FnMut(&[&'t [u8]]),
    encoded: &mut Encoded,
) -> Result<bool> {
    let Some((encoder, coded)) = symbols_of(texts, choice, look) else { return Ok(false) };
    check_heap(choice.heap)?;
    let (length_width, symbol_bytes) = encoder.write(&coded, &mut encoded.body);
    encoded.encoding = Encoding::Symbols { length_width, symbol_bytes };
    Ok(true)
}

/// Symbols for `texts` and their codes, if they are worth it or forced; `look` sees all that are encoded.
fn symbols_of<'t>(
    texts: &[&'t [u8]],
    SymbolChoice { heap, plain_bytes, is_forced, last }: SymbolChoice<'_>,
    look: impl FnMut(&[&'t [u8]]),
) -> Option<(Arc<Encoder>, Coded)> {
    let is_enough = |bytes: usize| is_forced || is_worth(bytes, plain_bytes);
    let (encoder, estimate) = Encoder::of_next(texts, heap, last, is_enough)?;
    if !is_enough(estimate) {
        return None;
    }
    let coded = encoder.encode(texts, look);
    is_enough(encoder.coded_bytes(&coded)).then_some((encoder, coded))
}

fn write_dictionary(found: Distinct<&[u8]>, is_forced: bool, encoded: &mut Encoded) -> Result<()> {
    let heap = found.values.iter().map(|t| t.len()).sum();
    check_heap(heap)?;
    let distinct = found.values.len();
    let length_max = found.values.iter().map(|t| t.len()).max().unwrap_or(0);
    let plain_bytes = plain::text_bytes(distinct, length_max, heap);
    let width = dictionary::encode_codes(found.codes, distinct, plain_bytes, &mut encoded.body);
    let symbols = match is_forced || heap >= TEXT_BYTES_MIN {
        true => symbols_of(&found.values, SymbolChoice { heap, plain_bytes, is_forced, last: None }, |_| ()),
        false => None,
    };
    let (length_width, symbol_bytes) = match symbols {
        Some((encoder, coded)) => encoder.write(&coded, &mut encoded.body),
        None => (plain::encode_texts(&found.values, &mut encoded.body), 0),
    };
    encoded.distinct = Some(distinct as u32);
    encoded.encoding = Encoding::Dictionary { distinct: distinct as u32, width, length_width, symbol_bytes };
    Ok(())
}

fn check_heap(bytes: usize) -> Result<()> {
    if bytes <= HEAP_BYTES_MAX {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Full,
        sqlstate::OUT_OF_MEMORY,
        format!("{bytes} bytes of text do not fit one segment; write fewer rows to a segment"),
    ))
}
