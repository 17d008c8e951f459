//! What Ctrl-C does: it cancels what runs, not the program.
//!
//! 1. The program says what to call ([`on_ctrl_c`]) and marks when something runs ([`running`]).
//! 2. Ctrl-C while it runs calls that; otherwise [`Idle`] decides: a shell goes on, a script waiting for input closes
//!    the database and ends.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::messages;

/// Exit status of a program that Ctrl-C ended, as shells count it.
const INTERRUPTED: i32 = 130;

static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// What Ctrl-C does while nothing runs.
pub enum Idle {
    /// Nothing.
    Stay,
    /// It calls this, to close the database, and ends the program.
    Exit(Box<dyn Fn() -> mainstem::Result<()> + Send>),
}

/// Something runs until this is dropped.
#[derive(Debug)]
pub struct Running(());

/// Marks that something runs.
pub fn running() -> Running {
    RUNNING.fetch_add(1, Ordering::SeqCst);
    Running(())
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// From now on Ctrl-C calls `cancel` while something runs. To be called once.
pub fn on_ctrl_c(idle: Idle, cancel: impl Fn() + Send + 'static) {
    let handler = move || {
        if RUNNING.load(Ordering::SeqCst) > 0 {
            cancel();
        } else if let Idle::Exit(close) = &idle {
            if let Err(e) = close() {
                messages::report(&e, None);
            }
            std::process::exit(INTERRUPTED);
        }
    };
    if let Err(e) = ctrlc::set_handler(handler) {
        messages::say(&format!("Ctrl-C will end the program: {e}"));
    }
}
