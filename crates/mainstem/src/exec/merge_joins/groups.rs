//! Which rows of two slices of ascending keys belong together.

use arrow::buffer::BooleanBuffer;

/// Keys looked at one by one before a search by doubled steps.
const STEPS: usize = 8;

/// How many of `keys`, ascending, stand before the first for which `is_before` fails.
pub(super) fn leading(keys: &[i64], is_before: impl Fn(i64) -> bool) -> usize {
    if let Some(near) = keys.iter().take(STEPS).position(|key| !is_before(*key)) {
        return near;
    }
    let (mut from, mut step) = (STEPS.min(keys.len()), STEPS);
    while keys.get(from + step).is_some_and(|key| is_before(*key)) {
        from += step;
        step *= 2;
    }
    let rest = keys.get(from..keys.len().min(from + step + 1)).unwrap_or_default();
    from + rest.partition_point(|key| is_before(*key))
}

/// For each row of one side the rows of the other that have its key: from `starts` to `ends`.
#[derive(Debug, Default)]
pub(super) struct Groups {
    pub(super) starts: Vec<u32>,
    pub(super) ends: Vec<u32>,
}

impl Groups {
    /// The rows of `others` for each of `keys`; both ascend.
    pub(super) fn new(keys: &[i64], others: &[i64]) -> Self {
        let mut groups = Self { starts: Vec::with_capacity(keys.len()), ends: Vec::with_capacity(keys.len()) };
        let (mut rest, mut start, mut end, mut current) = (others, 0, 0, None);
        for &key in keys {
            if current != Some(key) {
                start = end + advance(&mut rest, |other| other < key);
                end = start + advance(&mut rest, |other| other == key);
                current = Some(key);
            }
            groups.starts.push(start);
            groups.ends.push(end);
        }
        groups
    }

    /// Whether each row has exactly one partner.
    pub(super) fn are_single(&self) -> bool {
        self.starts.iter().zip(&self.ends).all(|(start, end)| end - start == 1)
    }
}

/// Takes the leading keys from `rest`, and tells how many they are.
fn advance(rest: &mut &[i64], is_before: impl Fn(i64) -> bool) -> u32 {
    let count = leading(rest, is_before);
    *rest = rest.get(count..).unwrap_or_default();
    count as u32
}

/// Which of `keys` are among `others`; both ascend.
pub(super) fn found(keys: &[i64], others: &[i64]) -> BooleanBuffer {
    let (mut rest, mut current, mut is_found) = (others, None, false);
    let mut keys_left = keys.iter();
    BooleanBuffer::collect_bool(keys.len(), |_| {
        let key = keys_left.next().copied();
        if current != key {
            advance(&mut rest, |other| Some(other) < key);
            is_found = rest.first().copied() == key;
            current = key;
        }
        is_found
    })
}

/// Pairs of rows of two sides.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    pub(super) rows: Vec<u32>,
    pub(super) others: Vec<u32>,
}

/// Stands for the partner of a row that has none.
pub(super) const NOBODY: u32 = u32::MAX;

/// Goes over the pairs of groups, in their order, in portions.
#[derive(Debug)]
pub(super) struct PairCursor {
    groups: Groups,
    /// Rows that have no partner come, too, with [`NOBODY`].
    keeps_lonely: bool,
    row: usize,
    /// Partners of the row that are done.
    done: u32,
}

impl PairCursor {
    pub(super) fn new(groups: Groups, keeps_lonely: bool) -> Self {
        Self { groups, keeps_lonely, row: 0, done: 0 }
    }

    /// The next pairs, `max` at most and no fewer unless they are the last; none at the end.
    pub(super) fn next(&mut self, max: usize) -> Pairs {
        let mut pairs = Pairs::default();
        let starts = self.groups.starts.get(self.row..).unwrap_or_default();
        let ends = self.groups.ends.get(self.row..).unwrap_or_default();
        for (start, end) in starts.iter().zip(ends) {
            let room = max - pairs.rows.len();
            if room == 0 {
                break;
            }
            let row = self.row as u32;
            let next = start + self.done;
            let taken = room.min((end - next) as usize);
            pairs.rows.extend(std::iter::repeat_n(row, taken));
            pairs.others.extend(next..next + taken as u32);
            if start == end && self.keeps_lonely {
                pairs.rows.push(row);
                pairs.others.push(NOBODY);
            }
            if next + (taken as u32) < *end {
                self.done += taken as u32;
                break;
            }
            self.row += 1;
            self.done = 0;
        }
        pairs
    }
}

/// Rows that look for one partner a condition holds for: they go through their groups, a portion at a time.
#[derive(Debug)]
pub(super) struct Seekers {
    rows: Vec<u32>,
    /// The next partner of each row, and where its group ends.
    nexts: Vec<u32>,
    ends: Vec<u32>,
}

impl Seekers {
    pub(super) fn new(groups: Groups) -> Self {
        let mut seekers =
            Self { rows: (0..groups.starts.len() as u32).collect(), nexts: groups.starts, ends: groups.ends };
        seekers.keep(|_, next, end| next < end);
        seekers
    }

    /// The next pairs to look at, about `max` of them: one of each row, or several where few rows are left. None are
    /// left when there are no pairs.
    pub(super) fn next(&mut self, max: usize) -> Pairs {
        let each = u32::try_from(max / self.rows.len().max(1)).unwrap_or(u32::MAX).max(1);
        let mut pairs = Pairs::default();
        for ((row, next), end) in self.rows.iter().zip(&mut self.nexts).zip(&self.ends) {
            let taken = *next..next.saturating_add(each).min(*end);
            *next = taken.end;
            pairs.rows.extend(std::iter::repeat_n(*row, taken.len()));
            pairs.others.extend(taken);
        }
        pairs
    }

    /// Lets rows go that `is_found` says so of, and those at the end of their groups.
    pub(super) fn drop_found(&mut self, is_found: impl Fn(u32) -> bool) {
        self.keep(|row, next, end| next < end && !is_found(row));
    }

    fn keep(&mut self, is_kept: impl Fn(u32, u32, u32) -> bool) {
        let all = self.rows.iter().zip(&self.nexts).zip(&self.ends);
        let kept: Vec<bool> = all.map(|((row, next), end)| is_kept(*row, *next, *end)).collect();
        for column in [&mut self.rows, &mut self.nexts, &mut self.ends] {
            let mut kept = kept.iter();
            column.retain(|_| kept.next().copied().unwrap_or_default());
        }
    }
}
