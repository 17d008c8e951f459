//! What the disk alone allows.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::duel::Sample;
use crate::latency::Recorder;

/// Appends `bytes` to a new file in `directory` and calls fdatasync, again and again for as long as `time`; the file is
/// removed.
///
/// # Errors
/// When the file cannot be made or written.
pub fn append_and_sync(directory: &Path, bytes: usize, time: Duration) -> std::io::Result<Sample> {
    let path = directory.join("fdatasync.bin");
    let sample = File::create(&path).and_then(|file| repeat(file, bytes, time));
    std::fs::remove_file(&path)?;
    sample
}

fn repeat(mut file: File, bytes: usize, time: Duration) -> std::io::Result<Sample> {
    let content = vec![0x5a; bytes];
    let mut latency = Recorder::default();
    let start = Instant::now();
    let mut last = start;
    while last - start < time || latency.count() == 0 {
        file.write_all(&content)?;
        file.sync_data()?;
        let now = Instant::now();
        latency.record(now - last);
        last = now;
    }
    Ok(Sample::of(latency.count(), (last - start).as_secs_f64(), &latency))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_measures_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let sample = append_and_sync(directory.path(), 100, Duration::from_millis(5)).unwrap();
        assert!(sample.rate > 0.0 && sample.worst_ms > 0.0);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        assert!(append_and_sync(&directory.path().join("none"), 1, Duration::ZERO).is_err());
    }
}
