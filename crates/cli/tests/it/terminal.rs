//! A terminal that the `script` tool of util-linux makes, with the shell on it.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Longest wait for an answer; nothing is slower on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// A shell on a terminal, and what it has shown.
pub struct Terminal {
    pub child: Child,
    keys: ChildStdin,
    screen: Receiver<Vec<u8>>,
    pub seen: String,
    /// Where in `seen` the next answer begins.
    at: usize,
}

impl Terminal {
    /// None where there is no `script`.
    pub fn new(home: &Path, arguments: &str) -> Option<Self> {
        let shell = format!("exec '{}' {arguments}", super::program::path().display());
        let mut command = Command::new("script");
        command
            .args(["-q", "-e", "-c", &shell, "/dev/null"])
            .env("HOME", home)
            .env("TERM", "xterm")
            .env("SHELL", "/bin/sh");
        command.env_remove("XDG_STATE_HOME").env_remove("RUST_BACKTRACE");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let mut output = child.stdout.take()?;
        let (shown, screen) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4_096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                if shown.send(bytes[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        let keys = child.stdin.take()?;
        Some(Self { child, keys, screen, seen: String::new(), at: 0 })
    }

    /// Waits until `text` is shown after what was awaited before.
    #[track_caller]
    pub fn shows(&mut self, text: &str) {
        assert!(self.shows_within(PATIENCE, text), "{text:?} is not shown:\n{}", self.seen);
    }

    /// Types `keys` every second until `text` is shown after what was awaited before.
    #[track_caller]
    pub fn shows_after_typing(&mut self, keys: &str, text: &str) {
        let start = Instant::now();
        while !self.shows_within(Duration::from_secs(1), text) {
            assert!(start.elapsed() < PATIENCE, "{text:?} is not shown:\n{}", self.seen);
            self.types(keys);
        }
    }

    fn shows_within(&mut self, time: Duration, text: &str) -> bool {
        let start = Instant::now();
        loop {
            if let Some(found) = self.seen[self.at..].find(text) {
                self.at += found + text.len();
                return true;
            }
            match self.screen.recv_timeout(time.saturating_sub(start.elapsed())) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => return false,
            }
        }
    }

    #[track_caller]
    pub fn types(&mut self, text: &str) {
        self.keys.write_all(text.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Types `line`, and waits until `text` is shown below it.
    #[track_caller]
    pub fn runs(&mut self, line: &str, text: &str) {
        self.types(&format!("{line}\r"));
        self.shows("\r\n");
        self.shows(text);
        self.shows("> ");
    }

    /// Types the end of input; returns the exit status.
    pub fn ends(mut self) -> Option<i32> {
        self.types("\x04");
        self.child.wait().unwrap().code()
    }
}
