//! How many rows, rounds and seconds.

use std::time::Duration;

use crate::experiment::Scale;

/// Sizes and times of a run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Rows of the table.
    pub rows: u64,
    /// Rounds of each case.
    pub rounds: u32,
    /// A round of ours.
    pub time: Duration,
    /// A round of ours where writing has to be sustained.
    pub sustained: Duration,
    /// A round of a peer.
    pub peer_time: Duration,
    /// Rows of a round of bulk insertion.
    pub append_rows: u64,
    /// Rows in the delta whose memory is measured: below what freezes it.
    pub delta_rows: u64,
}

impl Plan {
    /// The plan of that scale. There is no paper to repeat.
    #[must_use]
    pub fn of(scale: Scale) -> Self {
        let seconds = Duration::from_secs;
        match scale {
            Scale::Quick => Self {
                rows: 200_000,
                rounds: 3,
                time: Duration::from_millis(500),
                sustained: seconds(2),
                peer_time: Duration::from_millis(300),
                append_rows: 200_000,
                delta_rows: 130_000,
            },
            Scale::Full | Scale::Paper => Self {
                rows: 5_000_000,
                rounds: 5,
                time: seconds(3),
                sustained: seconds(30),
                peer_time: seconds(3),
                append_rows: 1_000_000,
                delta_rows: 130_000,
            },
        }
    }

    /// Just enough to see every case work.
    #[must_use]
    pub fn tiny() -> Self {
        Self {
            rows: 3_200,
            rounds: 1,
            time: Duration::from_millis(20),
            sustained: Duration::from_millis(40),
            peer_time: Duration::from_millis(20),
            append_rows: 1_600,
            delta_rows: 2_000,
        }
    }
}
