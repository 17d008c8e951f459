//! The k-way cursor.

use std::collections::BTreeMap;

use crate::error::{Error, Result};

use super::part::{KeyAt, KeyReader, LoadedPart, Part, prefix};
use super::picks::{Pick, Picks};
use super::replace::{Updated, replace_dead};
use super::tree::LoserTree;

/// Why [`Cursor::next`] stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// As many rows as asked for.
    Full,
    /// The next rows are all those of this part, which may be kept whole: [`Cursor::skip_whole`] passes over it,
    /// [`Cursor::open_whole`] has its rows picked like all others.
    Whole(u32),
    /// No row is left.
    End,
}

/// Wins in a row after which the winner is compared with one challenger instead of playing the whole tree.
const STREAK_MIN: u32 = 4;
/// Streams up to which the challenger is asked at once: such a tree has hardly more matches than its leaves.
const FEW_STREAMS: usize = 3;

/// Rows of several streams in key order: ties by stream, then as the stream has them. Dead rows are passed over.
#[derive(Debug)]
pub struct Cursor {
    reader: KeyReader,
    /// Whether comparing prefixes is all.
    short: bool,
    /// Whether rows of deltas may stand in the place of dead rows.
    replacing: bool,
    parts: Vec<Part>,
    /// The stream of each part.
    streams: Vec<usize>,
    /// Keys of parts that no stream has come to yet, by part: those without bounds, where others may be kept whole.
    ready: BTreeMap<usize, LoadedPart>,
    heads: Vec<Head>,
    tree: LoserTree,
    streak: u32,
    /// Whether other heads than the winner's have moved.
    is_rematch_due: bool,
    /// Bytes of what rows of deltas replace.
    replaced_bytes: usize,
}

/// Where a stream stands.
#[derive(Debug)]
struct Head {
    /// Its parts: index of the current one, and of the one after the last.
    part: usize,
    end: usize,
    state: State,
    position: u32,
    /// The first bytes of the key at hand.
    prefix: u64,
}

#[derive(Debug)]
enum State {
    /// Keys of the current part are loaded.
    Rows(LoadedPart),
    /// The current part is whole and not opened: its least key stands for it.
    Whole,
    /// Nothing left.
    Done,
}

impl Cursor {
    /// A cursor over `streams`, each of parts in key order. Reads the first part of each.
    ///
    /// # Errors
    /// Io or Corrupt when keys cannot be read.
    pub fn new(reader: KeyReader, streams: Vec<Vec<Part>>) -> Result<Self> {
        Self::with(reader, streams, false)
    }

    /// As [`Cursor::new`]; rows of a delta come in the place of dead rows of a segment that have the same key. They are
    /// picked as if they were of the segment, and [`super::Gather`] reads what they are. Ties are in any order.
    ///
    /// # Errors
    /// As [`Cursor::new`].
    pub fn replacing(reader: KeyReader, streams: Vec<Vec<Part>>) -> Result<Self> {
        let replacing = reader.codec().is_some();
        Self::with(reader, streams, replacing)
    }

    fn with(reader: KeyReader, streams: Vec<Vec<Part>>, replacing: bool) -> Result<Self> {
        let mut heads = Vec::with_capacity(streams.len());
        let mut stream_of = Vec::new();
        let mut parts = Vec::new();
        for (stream, of_stream) in streams.into_iter().enumerate() {
            let part = parts.len();
            parts.extend(of_stream);
            stream_of.resize(parts.len(), stream);
            heads.push(Head { part, end: parts.len(), state: State::Done, position: 0, prefix: 0 });
        }
        let short = reader.is_short();
        let tree = LoserTree::new(0, |_, _| false);
        let ready = BTreeMap::new();
        let mut cursor = Self {
            reader,
            short,
            replacing,
            parts,
            streams: stream_of,
            ready,
            heads,
            tree,
            streak: 0,
            is_rematch_due: false,
            replaced_bytes: 0,
        };
        cursor.find_whole_parts()?;
        // Deltas first: what rows of theirs replace is looked for when a segment is entered.
        let is_bounded = |cursor: &Self, stream: usize| {
            cursor.parts.get(cursor.heads[stream].part).is_some_and(|part| part.bounds().is_some())
        };
        let (bounded, others): (Vec<usize>, _) =
            (0..cursor.heads.len()).partition(|stream| is_bounded(&cursor, *stream));
        for stream in others.into_iter().chain(bounded) {
            cursor.enter_part(stream)?;
        }
        cursor.tree = LoserTree::new(cursor.heads.len(), |a, b| cursor.less(a, b));
        Ok(cursor)
    }

    /// Takes `keep_whole` from parts that rows of other streams may belong into. O(parts * streams * log parts).
    fn find_whole_parts(&mut self) -> Result<()> {
        if self.reader.codec().is_none() || !self.parts.iter().any(|part| part.keep_whole) {
            return Ok(());
        }
        // A delta has no bounds: its keys say exactly which parts it leaves alone.
        for (at, part) in self.parts.iter().enumerate().filter(|(_, part)| part.bounds().is_none()) {
            self.ready.insert(at, self.reader.load(part)?);
        }
        let apart = |index: usize| {
            let mut others = self.heads.iter().enumerate().filter(|(stream, _)| *stream != self.streams[index]);
            self.reader
                .bounds(&self.parts[index])
                .is_some_and(|(min, max)| others.all(|(_, head)| !self.reaches_between(head, min, max)))
        };
        let whole: Vec<bool> = (0..self.parts.len()).map(|at| self.parts[at].keep_whole && apart(at)).collect();
        for (part, whole) in self.parts.iter_mut().zip(whole) {
            part.keep_whole = whole;
        }
        Ok(())
    }

    /// Whether the stream that begins at `head` may have a key from `min` to `max`.
    fn reaches_between(&self, head: &Head, min: &[u8], max: &[u8]) -> bool {
        let within = |keys: &LoadedPart| {
            let at = keys.seek(0, min);
            at < keys.len && *keys.key(at) <= *max
        };
        let unbounded = self.ready.range(head.part..head.end).count();
        if unbounded > 0 {
            let bounded = head.end - head.part - unbounded;
            return bounded > 0 || self.ready.range(head.part..head.end).any(|(_, keys)| within(keys));
        }
        let parts = &self.parts[head.part..head.end];
        let first = parts.partition_point(|part| self.reader.bounds(part).is_some_and(|(_, end)| end < min));
        parts.get(first).and_then(|part| self.reader.bounds(part)).is_some_and(|(begin, _)| begin <= max)
    }

    /// Stands `stream` at the first live row of its current part, or of a later one.
    fn enter_part(&mut self, stream: usize) -> Result<()> {
        loop {
            let head = &mut self.heads[stream];
            if head.part == head.end {
                head.state = State::Done;
                return Ok(());
            }
            let part = &self.parts[head.part];
            head.position = 0;
            if part.keep_whole {
                head.state = State::Whole;
                head.prefix = self.reader.bounds(part).map_or(0, |(min, _)| prefix(min));
                return Ok(());
            }
            let rows = match self.ready.remove(&head.part) {
                Some(rows) => rows,
                None => self.reader.load(part)?,
            };
            if self.replacing && part.dead.is_some() && part.bounds().is_some() {
                self.replace_dead(stream, &rows)?;
            }
            let head = &mut self.heads[stream];
            if head.settle(&rows, &self.parts[head.part]) {
                head.state = State::Rows(rows);
                return Ok(());
            }
            head.part += 1;
        }
    }

    /// Puts rows of deltas in the place of dead ones of the segment that `stream` enters, whose keys are `rows`.
    fn replace_dead(&mut self, stream: usize, rows: &LoadedPart) -> Result<()> {
        let index = self.heads[stream].part;
        let mut passed = Vec::new();
        for other in (0..self.heads.len()).filter(|other| *other != stream) {
            let head = &mut self.heads[other];
            let State::Rows(updated) = &head.state else { continue };
            let Ok([part, of_other]) = self.parts.get_disjoint_mut([index, head.part]) else { continue };
            if of_other.bounds().is_some() {
                continue;
            }
            let updated = Updated { part: of_other, index: head.part as u32, rows: updated, position: head.position };
            let bytes = replace_dead(part, rows, updated);
            if bytes > 0 {
                self.replaced_bytes += bytes;
                passed.push(other);
            }
        }
        self.is_rematch_due |= !passed.is_empty();
        for other in passed {
            self.settle(other)?;
        }
        Ok(())
    }

    /// Moves `stream` from a row that is passed over to the next live one.
    #[inline]
    fn settle(&mut self, stream: usize) -> Result<()> {
        let head = &mut self.heads[stream];
        let state = std::mem::replace(&mut head.state, State::Done);
        if let State::Rows(rows) = state
            && head.settle(&rows, &self.parts[head.part])
        {
            head.state = State::Rows(rows);
            return Ok(());
        }
        head.part += 1;
        self.enter_part(stream)
    }

    /// Whether the head of stream `a` goes before that of stream `b`.
    #[inline]
    fn less(&self, a: usize, b: usize) -> bool {
        let (left, right) = (&self.heads[a], &self.heads[b]);
        match (&left.state, &right.state) {
            (State::Done, _) => return false,
            (_, State::Done) => return true,
            _ => {}
        }
        if left.prefix != right.prefix {
            return left.prefix < right.prefix;
        }
        if self.short {
            return a < b;
        }
        self.key(a).cmp(&*self.key(b)).then(a.cmp(&b)).is_lt()
    }

    /// The key that stream `stream` stands at.
    fn key(&self, stream: usize) -> KeyAt<'_> {
        let head = &self.heads[stream];
        match &head.state {
            State::Rows(rows) => rows.key(head.position),
            State::Whole => KeyAt::Encoded(self.reader.bounds(&self.parts[head.part]).map_or(&[], |(min, _)| min)),
            State::Done => KeyAt::Encoded(&[]),
        }
    }

    /// Appends up to `max` rows to `picks`.
    ///
    /// # Errors
    /// Io or Corrupt when keys cannot be read.
    pub fn next(&mut self, max: usize, picks: &mut Picks) -> Result<Stop> {
        let end = picks.len() + max;
        while picks.len() < end {
            let Some(stream) = self.tree.winner() else { return Ok(Stop::End) };
            match self.heads[stream].state {
                State::Done => return Ok(Stop::End),
                State::Whole => return Ok(Stop::Whole(self.heads[stream].part as u32)),
                State::Rows(_) => {}
            }
            if self.streak >= STREAK_MIN || self.heads.len() <= FEW_STREAMS {
                self.take_streak(stream, end, picks)?;
            } else {
                picks.push(self.pick(stream));
                self.advance(stream)?;
            }
            self.replay(stream);
        }
        Ok(Stop::Full)
    }

    /// Takes rows of the winner for as long as they go before the challenger's, and stay in the part at hand.
    fn take_streak(&mut self, stream: usize, end: usize, picks: &mut Picks) -> Result<()> {
        let challenger = self.tree.challenger(|a, b| self.less(a, b));
        let challenger = challenger.filter(|other| !matches!(self.heads[*other].state, State::Done));
        let head = &self.heads[stream];
        let State::Rows(rows) = &head.state else { return Ok(()) };
        let until = match challenger.filter(|_| self.reader.codec().is_some()) {
            None => rows.len,
            // Of equal keys that of the first stream goes first.
            Some(other) if stream < other => rows.seek_behind(head.position, &self.key(other)),
            Some(other) => rows.seek(head.position, &self.key(other)),
        };
        let (part, index) = (&self.parts[head.part], head.part as u32);
        let mut position = head.position;
        if let Some(first) = rows.first_in_order() {
            // The row at hand is live, so that at least one is taken.
            let wanted = u32::try_from(end - picks.len()).unwrap_or(u32::MAX);
            let mut live = part.live_rows(first + position..first + until.max(position + 1), wanted);
            for offsets in live.by_ref() {
                picks.push_rows(index, offsets);
            }
            position = live.next_offset() - first;
        } else {
            while position < until.max(head.position + 1) && picks.len() < end {
                let offset = rows.offset(position);
                if part.dead.is_none() || !part.is_dead(offset) {
                    picks.push(Pick { part: index, offset });
                }
                position += 1;
            }
        }
        self.heads[stream].position = position - 1;
        self.advance(stream)
    }

    fn replay(&mut self, before: usize) {
        let mut tree = std::mem::replace(&mut self.tree, LoserTree::new(0, |_, _| false));
        if std::mem::take(&mut self.is_rematch_due) {
            tree = LoserTree::new(self.heads.len(), |a, b| self.less(a, b));
        } else {
            tree.replay(|a, b| self.less(a, b));
        }
        self.streak = if tree.winner() == Some(before) { self.streak + 1 } else { 0 };
        self.tree = tree;
    }

    #[inline]
    fn pick(&self, stream: usize) -> Pick {
        let head = &self.heads[stream];
        let offset = match &head.state {
            State::Rows(rows) => rows.offset(head.position),
            _ => 0,
        };
        Pick { part: head.part as u32, offset }
    }

    /// Moves `stream` to its next live row.
    #[inline]
    fn advance(&mut self, stream: usize) -> Result<()> {
        self.heads[stream].position += 1;
        self.settle(stream)
    }

    /// After [`Stop::Whole`]: passes over that part.
    ///
    /// # Errors
    /// As [`Cursor::next`]; Internal when no whole part is next.
    pub fn skip_whole(&mut self) -> Result<()> {
        let stream = self.whole()?;
        self.heads[stream].part += 1;
        self.enter_part(stream)?;
        self.replay(stream);
        Ok(())
    }

    /// After [`Stop::Whole`]: has that part's rows picked one by one.
    ///
    /// # Errors
    /// As [`Cursor::skip_whole`].
    pub fn open_whole(&mut self) -> Result<()> {
        let stream = self.whole()?;
        let part = self.heads[stream].part;
        self.parts[part].keep_whole = false;
        self.enter_part(stream)?;
        self.replay(stream);
        Ok(())
    }

    fn whole(&self) -> Result<usize> {
        let whole = self.tree.winner().filter(|stream| matches!(self.heads[*stream].state, State::Whole));
        whole.ok_or_else(|| Error::internal("no whole part is next"))
    }

    /// After [`Stop::Whole`]: parts of the stream, that one included, that may be kept whole one after the other before
    /// a row of another stream comes.
    #[must_use]
    pub fn whole_parts_ahead(&self) -> usize {
        let Ok(stream) = self.whole() else { return 0 };
        let challenger = self.tree.challenger(|a, b| self.less(a, b));
        let next = challenger.filter(|stream| !matches!(self.heads[*stream].state, State::Done));
        let next = next.map(|stream| self.key(stream));
        let before_next = |part: &Part| match (self.reader.bounds(part), next) {
            (Some((_, max)), Some(next)) => *max < *next,
            _ => true,
        };
        let head = &self.heads[stream];
        self.parts[head.part..head.end].iter().take_while(|part| part.keep_whole && before_next(part)).count()
    }

    /// The first key that two rows have; consumes the cursor. Parts that may be kept whole are not read when no other
    /// stream reaches into them: rows of such a part are taken to differ from one another and from their stream's other
    /// rows.
    ///
    /// # Errors
    /// As [`Cursor::next`].
    pub fn first_duplicate(mut self) -> Result<Option<Vec<u8>>> {
        let mut last: Option<(u64, Vec<u8>)> = None;
        while let Some(stream) = self.tree.winner() {
            match self.heads[stream].state {
                State::Done => break,
                State::Whole => {
                    self.skip_whole()?;
                    continue;
                }
                State::Rows(_) => {}
            }
            let prefix = self.heads[stream].prefix;
            let key = self.key(stream);
            match &mut last {
                Some((before, bytes)) if *before == prefix && (self.short || **bytes == *key) => {
                    return Ok(Some(key.to_vec()));
                }
                Some((before, bytes)) => {
                    *before = prefix;
                    if !self.short {
                        bytes.clear();
                        bytes.extend_from_slice(&key);
                    }
                }
                None => last = Some((prefix, key.to_vec())),
            }
            self.advance(stream)?;
            self.replay(stream);
        }
        Ok(None)
    }

    /// Whether `accept` takes two rows with equal keys together, asked of all such pairs in order; consumes the cursor.
    /// No part may be kept whole.
    ///
    /// # Errors
    /// As [`Cursor::next`]; what `accept` returns.
    pub fn first_equal_pair(mut self, mut accept: impl FnMut(&Self, Pick, Pick) -> Result<bool>) -> Result<bool> {
        let mut key: Vec<u8> = Vec::new();
        let mut equal: Vec<Pick> = Vec::new();
        while let Some(stream) = self.tree.winner().filter(|stream| matches!(self.heads[*stream].state, State::Rows(_)))
        {
            let pick = self.pick(stream);
            if *self.key(stream) != *key {
                equal.clear();
                key.clear();
                key.extend_from_slice(&self.key(stream));
            }
            for before in &equal {
                if accept(&self, *before, pick)? {
                    return Ok(true);
                }
            }
            equal.push(pick);
            self.advance(stream)?;
            self.replay(stream);
        }
        Ok(false)
    }

    /// Bytes that it holds: keys of a segment for each stream, and of whole deltas, and which rows are replaced.
    #[must_use]
    pub fn memory(&self) -> usize {
        let at_hand = |head: &Head| match &head.state {
            State::Rows(rows) => rows.memory(),
            State::Whole | State::Done => 0,
        };
        let ready = self.ready.values().map(LoadedPart::memory).sum::<usize>();
        self.heads.iter().map(at_hand).sum::<usize>() + ready + self.replaced_bytes
    }

    /// A part by its index.
    ///
    /// # Errors
    /// Internal when there is none.
    pub fn part(&self, index: u32) -> Result<&Part> {
        self.parts.get(index as usize).ok_or_else(|| Error::internal(format!("no part {index}")))
    }

    /// All parts, stream by stream.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The stream of each part.
    #[must_use]
    pub fn streams(&self) -> &[usize] {
        &self.streams
    }
}

impl Head {
    /// Moves on to the first live row at or after the position; false if the part has none.
    #[inline]
    fn settle(&mut self, rows: &LoadedPart, part: &Part) -> bool {
        while self.position < rows.len {
            if part.dead.is_none() || !part.is_dead(rows.offset(self.position)) {
                self.prefix = prefix(&rows.key(self.position));
                return true;
            }
            self.position += 1;
        }
        false
    }
}
