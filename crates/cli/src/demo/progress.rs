//! Progress bars on standard error; nothing at all when that is no terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How often a bar moves though nothing was counted.
const TICK: Duration = Duration::from_millis(200);

/// A bar that counts rows.
pub fn rows(what: &'static str, total: u64) -> ProgressBar {
    bar(what, total, "{prefix:11} {wide_bar} {human_pos} of {human_len} rows {elapsed}")
}

/// A bar that counts bytes.
pub fn bytes(what: &'static str, total: u64) -> ProgressBar {
    bar(what, total, "{prefix:11} {wide_bar} {bytes} of {total_bytes} {elapsed} {msg}")
}

/// A bar that counts steps, or milliseconds.
pub fn steps(what: &'static str, total: u64) -> ProgressBar {
    bar(what, total, "{prefix:11} {wide_bar} {elapsed} {msg}")
}

fn bar(what: &'static str, total: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::new(total).with_prefix(what);
    // Without its style a bar only looks plainer.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(TICK);
    bar
}
