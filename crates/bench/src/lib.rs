//! Experiments: each measures one promise, checks its own answers, and shows the figure beside a yardstick measured in
//! the same call.
//!
//! Comes in: the name of an experiment, how large, a directory. Goes out: a [`report::Report`], as a table and as JSON
//! lines.
//!
//! 1. `experiment` says what one is: it runs its cases in rounds, ours and the peers' in turn; `experiments` lists all;
//! 2. `keys` and `latency` are what they are made of: random keys and numbers, durations and their quantiles; `duel`
//!    makes rounds and holds what they gave; `sessions` connects threads to a database of ours;
//! 3. `index` needs no SQL; the other experiments do;
//! 4. `peers` drives other engines as processes, `fsync` measures what the disk alone allows; `suite` runs queries over
//!    the same tables in all of them;
//! 5. `report` compares, prints, writes.
//!
//! Invariants: a wrong answer makes the run fail, a missed figure never does; what an operation needs is made before
//! its clock starts. It does not own: what the peers do (`bench/peers/`).

#![forbid(unsafe_code)]

pub mod experiment;
pub mod keys;
pub mod latency;
pub mod duel;
pub mod fsync;
pub mod peers;
pub mod report;

pub mod index;
#[cfg(feature = "sql")]
mod sessions;
#[cfg(feature = "sql")]
pub mod suite;
#[cfg(feature = "sql")]
pub mod hybrid;
#[cfg(feature = "sql")]
pub mod statements;
#[cfg(feature = "sql")]
pub mod transactions;
#[cfg(feature = "sql")]
pub mod tpch;
#[cfg(feature = "sql")]
pub mod load;
#[cfg(feature = "sql")]
pub mod scan;
#[cfg(feature = "sql")]
pub mod recovery;

pub mod experiments;
