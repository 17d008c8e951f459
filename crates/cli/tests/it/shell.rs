//! The interactive shell, on a terminal that the `script` tool of util-linux makes.

#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Longest wait for an answer; nothing is slower on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// A shell on a terminal, and what it has shown.
struct Terminal {
    child: Child,
    keys: ChildStdin,
    screen: Receiver<Vec<u8>>,
    seen: String,
    /// Where in `seen` the next answer begins.
    at: usize,
}

impl Terminal {
    /// None where there is no `script`.
    fn new(home: &Path, arguments: &str) -> Option<Self> {
        let shell = format!("exec '{}' {arguments}", env!("CARGO_BIN_EXE_mainstem"));
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
    fn shows(&mut self, text: &str) {
        assert!(self.shows_within(PATIENCE, text), "{text:?} is not shown:\n{}", self.seen);
    }

    /// Types `keys` every second until `text` is shown after what was awaited before.
    #[track_caller]
    fn shows_after_typing(&mut self, keys: &str, text: &str) {
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
    fn types(&mut self, text: &str) {
        self.keys.write_all(text.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }
}

#[test]
fn a_session_on_a_terminal() {
    let home = tempfile::tempdir().unwrap();
    let Some(mut terminal) = Terminal::new(home.path(), "") else {
        eprintln!("no `script` here: the shell is not tested");
        return;
    };
    terminal.shows("Type \\? for help");
    terminal.shows("mainstem> ");
    // Typed ahead, over several lines.
    terminal.types("CREATE TABLE t (n INTEGER PRIMARY KEY,\r  name TEXT NOT NULL);\rINSERT INTO t\r");
    terminal.shows("\nCREATE TABLE\r\n");
    terminal.shows("...> ");
    terminal.types("VALUES (1, 'a'), (2, 'b');\r");
    terminal.shows("\nINSERT 0 2\r\n");
    terminal.types("BEGIN;\r");
    terminal.shows("mainstem*> ");
    terminal.types("INSERT INTO t VALUES (1, 'c');\r");
    terminal.shows("ERROR 23505: ");
    terminal.shows("mainstem*> ");
    terminal.types("ROLLBACK;\r");
    terminal.shows("mainstem> ");
    terminal.types("\\d\r");
    terminal.shows("│ t     │ n           │ sorted │    2 │");
    terminal.types("\\d t\r");
    terminal.shows("│ name   │ text    │ NOT NULL │");
    terminal.types("\\d missing\r");
    terminal.shows("ERROR 42P01: ");
    terminal.types("\\timing\r");
    terminal.shows("Timing is on.");
    terminal.types("SELECT n FROM t WHERE name = 'b';\r");
    terminal.shows("(1 row)\r\nTime: ");
    terminal.types("SELECT count(*) FROM generate_series(1, 100000000) a(i), generate_series(1, 100000000) b(i) WHERE a.i + b.i < 0;\r");
    // The echo ends the line when the statement begins; Ctrl-C before that would only clear the line, so again and again.
    terminal.shows("< 0;");
    terminal.shows_after_typing("\x03", "ERROR 57014: ");
    // Ctrl-C throws away what is typed, and the session goes on.
    terminal.types("SELECT nonsense\r");
    terminal.shows("...> ");
    terminal.types("\x03");
    terminal.shows("mainstem> ");
    terminal.types("SELECT 40 + 2 AS answer;\r");
    terminal.shows("│     42 │");
    terminal.types("CREATE TABLE u (n INTEGER, name TEXT);\r");
    terminal.shows("\nCREATE TABLE\r\n");
    // Statements and data pasted in one go, as a terminal marks it.
    terminal.types("\x1b[200~COPY u FROM STDIN (DELIMITER ',');\n3,three\n4,four\n\\.\nSELECT count(*) + 80 AS count\nFROM u;\nSELECT 90\x1b[201~");
    terminal.types(" + 9 AS last;\r");
    terminal.shows("\nCOPY 2\r\n");
    terminal.shows("│    82 │");
    terminal.shows("│   99 │");
    // Tabs that are typed are characters.
    terminal.types("COPY u FROM STDIN;\r");
    terminal.shows("data...> ");
    terminal.types("5\tfive\ttabs\r");
    terminal.types("\\.\r");
    terminal.shows("ERROR 22P04: ");
    terminal.types("COPY u FROM STDIN;\r");
    terminal.shows("data...> ");
    terminal.types("6\tsix\r");
    terminal.types("\\.\r");
    terminal.shows("\nCOPY 1\r\n");
    terminal.types("SELECT n * 11 AS six,\t\tlength('a\tb') + 30\tAS tabs FROM u WHERE name = 'six';\r");
    terminal.shows("│  66 │   33 │");
    terminal.types("\\d mainstem.tables\r");
    terminal.shows("│ table_name ");
    terminal.shows("│ text ");
    terminal.types("\\d mainstem.missing\r");
    terminal.shows("ERROR 42P01: ");
    terminal.types("\\q\r");
    assert_eq!(terminal.child.wait().unwrap().code(), Some(1), "statements failed");
    let history = std::fs::read_to_string(home.path().join(".local/state/mainstem/history")).unwrap();
    assert!(history.contains("AS answer"), "{history}");
}
