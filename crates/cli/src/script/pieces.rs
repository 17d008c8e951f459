//! SQL and `\` commands, cut into pieces line by line.
//!
//! A statement ends with its semicolon, a command with its line. A command begins where a statement may begin, or with
//! a line that stands between those of a statement: a `\` is nothing in SQL but within quotes and comments.

use std::collections::VecDeque;

/// Bytes of a statement between whose lines commands may stand. What is longer is data, not typed; each of its lines
/// that begins with a `\` would have to be looked at from its start.
const MIXED_BYTES_MAX: usize = 1 << 16;

/// What a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A statement, without its semicolon.
    Statement,
    /// A command, with its `\`.
    Command,
}

/// A statement or a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub kind: Kind,
    pub text: String,
    /// The line it begins on, from 1.
    pub line: usize,
}

/// Cuts lines into pieces.
#[derive(Debug)]
pub struct Splitter {
    /// Read, and not a whole statement yet.
    text: String,
    /// The line `text` begins on.
    pub line: usize,
}

impl Default for Splitter {
    fn default() -> Self {
        Self { text: String::new(), line: 1 }
    }
}

impl Splitter {
    /// Takes one line, with its line feed; adds what is complete to `ready`.
    pub fn feed(&mut self, line: &str, ready: &mut VecDeque<Piece>) {
        if self.is_command(line) {
            let at = self.line_of(self.text.len());
            ready.push_back(Piece { kind: Kind::Command, text: line.trim().to_owned(), line: at });
            // The statement around it keeps its lines.
            self.text.push('\n');
        } else {
            self.text.push_str(line);
            // Where a statement ends is looked for only when a semicolon came: a long one is not read again at each
            // line.
            if !line.contains(';') {
                return;
            }
            self.cut(ready);
        }
        if self.unfinished().is_empty() {
            self.clear();
        }
    }

    /// The last statement, which need not have a semicolon.
    pub fn finish(&mut self) -> Option<Piece> {
        let rest = std::mem::take(&mut self.text);
        self.piece(&rest)
    }

    /// Forgets what is no whole statement.
    pub fn clear(&mut self) {
        self.line = self.line_of(self.text.len());
        self.text.clear();
    }

    /// What is no whole statement yet; empty if nothing of one was read.
    pub fn unfinished(&self) -> &str {
        after_comments(&self.text)
    }

    /// Counts the lines read so far.
    pub fn lines(&self) -> usize {
        self.line_of(self.text.len())
    }

    /// Whether `line` is a command.
    fn is_command(&self, line: &str) -> bool {
        line.trim_start().starts_with('\\')
            && (self.unfinished().is_empty() || self.text.len() <= MIXED_BYTES_MAX && is_outside_quotes(&self.text))
    }

    /// Takes complete statements, and a command behind them on their line.
    fn cut(&mut self, ready: &mut VecDeque<Piece>) {
        let text = std::mem::take(&mut self.text);
        let (done, rest) = mainstem::split_statements(&text);
        let mut at = 0;
        for part in done.into_iter().chain([rest]) {
            let start = after_comments(part);
            if start.starts_with('\\') {
                let begin = at + part.len() - start.len();
                let command = text.get(begin..).unwrap_or_default();
                let line = self.line + text.get(at..begin).map_or(0, line_feeds);
                ready.push_back(Piece { kind: Kind::Command, text: command.trim().to_owned(), line });
                self.line += text.get(at..).map_or(0, line_feeds);
                return;
            }
            at += part.len() + 1;
            if at <= text.len() {
                ready.extend(self.piece(part));
            }
        }
        rest.clone_into(&mut self.text);
    }

    /// The statement in `text`, which follows what was taken so far; none if it is blank.
    fn piece(&mut self, text: &str) -> Option<Piece> {
        let statement = after_comments(text);
        let line = self.line + text.get(..text.len() - statement.len()).map_or(0, line_feeds);
        self.line += line_feeds(text);
        (!statement.is_empty()).then(|| Piece { kind: Kind::Statement, text: statement.to_owned(), line })
    }

    /// The line at byte `at` of the text.
    fn line_of(&self, at: usize) -> usize {
        self.line + self.text.get(..at).map_or(0, line_feeds)
    }
}

fn line_feeds(text: &str) -> usize {
    text.matches('\n').count()
}

/// Whether a statement could end behind `text`, which ends with a line.
fn is_outside_quotes(text: &str) -> bool {
    let ended = format!("{text};");
    let (_, rest) = mainstem::split_statements(&ended);
    rest.is_empty()
}

/// `text` without the blanks and the comments it begins with.
pub fn after_comments(text: &str) -> &str {
    let mut text = text.trim_start();
    loop {
        text = if text.starts_with("--") {
            text.split_once('\n').map_or("", |(_, rest)| rest.trim_start())
        } else if text.starts_with("/*") {
            match after_comment(text) {
                Some(rest) => rest.trim_start(),
                None => return text,
            }
        } else {
            return text;
        };
    }
}

/// What is behind the comment that `text` begins with, which may have others in it; none if it does not end.
fn after_comment(text: &str) -> Option<&str> {
    let (mut depth, mut at) = (0_usize, 0);
    loop {
        let rest = text.get(at..)?;
        let (open, close) = (rest.find("/*"), rest.find("*/")?);
        match open {
            Some(open) if open < close => {
                depth += 1;
                at += open + 2;
            }
            _ => {
                depth = depth.checked_sub(1)?;
                at += close + 2;
            }
        }
        if depth == 0 {
            return text.get(at..);
        }
    }
}
