//! How near writers are to waiting for background work: a description, and what follows from it.
//!
//! Comes in: bytes that are taken and bytes that may be. Goes out: whether writers wait, whether background work should
//! hurry ([`Demand`]), and which active deltas to freeze ([`to_freeze`]). All of it is a pure function of what comes
//! in.

use crate::ids::TableId;
use crate::limits;

/// Bytes of something, and how many of them there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filled {
    /// Bytes taken.
    pub bytes: u64,
    /// Bytes that may be taken.
    pub max: u64,
}

impl Filled {
    /// Whether more is taken than may be.
    #[must_use]
    pub fn is_over(self) -> bool {
        self.bytes > self.max
    }

    fn is_half_full(self) -> bool {
        self.bytes > self.max / 2
    }

    fn and(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_add(other.bytes), max: self.max.saturating_add(other.max) }
    }
}

/// All that writers may have to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Deltas that take rows: they become frozen ones.
    pub active: Filled,
    /// Deltas that wait for a merge.
    pub frozen: Filled,
    /// Bytes of log that a restart would replay, and those from which on commits wait.
    pub tail: Filled,
    /// Whether a writer waits for a shorter tail already.
    pub tail_waited_for: bool,
}

impl Demand {
    /// Whether writers wait now.
    #[must_use]
    pub fn is_waited_for(&self) -> bool {
        self.tail_waited_for || self.frozen.is_over()
    }

    /// Whether writers wait, or will before long: half of what they would wait for is taken. Active deltas alone are
    /// nothing that a merge could make less; but what there is of them soon stands among the frozen, so that both
    /// together count, too.
    #[must_use]
    pub fn is_urgent(&self) -> bool {
        let deltas =
            self.frozen.is_half_full() || (self.frozen.bytes > 0 && self.frozen.and(self.active).is_half_full());
        self.is_waited_for() || deltas || self.tail.is_half_full()
    }
}

/// Which of the active deltas, with the bytes of their rows, to freeze so that all of them take no more than they may:
/// the largest first. Small ones only when rows, and not what each delta takes without any, are what is too much:
/// frozen for nothing they would only make many small merges.
#[must_use]
pub fn to_freeze(active: Filled, mut deltas: Vec<(TableId, u64)>) -> Vec<TableId> {
    deltas.sort_unstable_by_key(|(table, bytes)| (std::cmp::Reverse(*bytes), *table));
    let worth_it = limits::SPILL_BYTES_MIN.min(active.max / 8);
    let mut left = active.bytes;
    let mut of_rows: u64 = deltas.iter().map(|(_, bytes)| bytes).sum();
    let wanted = deltas.into_iter().take_while(|(_, bytes)| {
        let wanted = left > active.max && *bytes > 0 && (*bytes >= worth_it || of_rows > active.max);
        left = left.saturating_sub(*bytes);
        of_rows -= bytes;
        wanted
    });
    wanted.map(|(table, _)| table).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Demand = Demand {
        active: Filled { bytes: 0, max: 200 },
        frozen: Filled { bytes: 0, max: 400 },
        tail: Filled { bytes: 0, max: 700 },
        tail_waited_for: false,
    };

    fn demand(active: u64, frozen: u64, tail: u64) -> Demand {
        let filled = |of: Filled, bytes| Filled { bytes, ..of };
        Demand {
            active: filled(IDLE.active, active),
            frozen: filled(IDLE.frozen, frozen),
            tail: filled(IDLE.tail, tail),
            ..IDLE
        }
    }

    #[test]
    fn work_is_urgent_at_half_of_all_that_a_writer_would_wait_for() {
        assert!(!IDLE.is_urgent() && !IDLE.is_waited_for());
        assert!(Demand { tail_waited_for: true, ..IDLE }.is_waited_for());
        assert!(Demand { tail_waited_for: true, ..IDLE }.is_urgent());
        for (active, frozen, tail, urgent, waited_for) in [
            (0, 200, 0, false, false),
            (0, 201, 0, true, false),
            (0, 401, 0, true, true),
            // What is active now is frozen next.
            (200, 100, 0, false, false),
            (200, 101, 0, true, false),
            (301, 1, 0, true, false),
            // No merge makes active deltas less.
            (900, 0, 0, false, false),
            (0, 0, 350, false, false),
            (0, 0, 351, true, false),
            (0, 0, 701, true, false),
        ] {
            let demand = demand(active, frozen, tail);
            assert_eq!((demand.is_urgent(), demand.is_waited_for()), (urgent, waited_for), "{demand:?}");
        }
    }

    fn frozen(bytes: u64, max: u64, deltas: &[u64]) -> Vec<u64> {
        let deltas = (0..).map(TableId).zip(deltas.iter().copied()).collect();
        to_freeze(Filled { bytes, max }, deltas).into_iter().map(|table| table.0).collect()
    }

    #[test]
    fn the_largest_deltas_are_frozen_until_the_others_fit() {
        assert_eq!(frozen(800, 800, &[300, 500]), [0; 0], "they fit");
        assert_eq!(frozen(801, 800, &[300, 501]), [1]);
        assert_eq!(frozen(1_500, 800, &[300, 500, 400, 300]), [1, 2]);
        assert_eq!(frozen(9_000, 800, &[300, 500]), [1, 0], "as many as there are");
        // 100 bytes are worth a merge.
        assert_eq!(frozen(5_000, 800, &[99, 100, 0]), [1], "the others take their bytes without rows");
        assert_eq!(frozen(900, 800, &[90; 10]), [0, 1], "many small ones");
        assert_eq!(frozen(900, 800, &[80; 10]), [0; 0]);
        assert_eq!(frozen(900, 0, &[0, 0]), [0; 0]);
    }

    #[test]
    fn what_is_left_fits_or_is_not_worth_a_merge() {
        for count in 1..40u64 {
            let deltas: Vec<u64> = (0..count).map(|at| at * 7_919 % 1_000).collect();
            let all: u64 = deltas.iter().sum();
            let left = all - frozen(all, 3_000, &deltas).iter().map(|at| deltas[*at as usize]).sum::<u64>();
            assert!(left <= 3_000, "{left} of {all}");
        }
    }
}
