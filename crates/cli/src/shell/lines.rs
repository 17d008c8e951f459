//! Lines from the terminal, with history and completion.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use mainstem::Connection;
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{
    Cmd, CompletionType, ConditionalEventHandler, Config, Context, Editor, Event, EventContext, EventHandler, Helper,
    KeyCode, KeyEvent, Modifiers, RepeatCount,
};

use super::completion::{Completion, Mode};
use crate::messages;

/// Lines of history kept.
const HISTORY_MAX: usize = 10_000;

/// See the module.
pub struct Lines {
    editor: Editor<Tab, FileHistory>,
    completion: Arc<Completion>,
    history: Option<PathBuf>,
    /// Lines that came at once with the one returned last: a terminal hands over what is pasted as one text.
    pasted: VecDeque<String>,
}

impl Lines {
    /// Lines whose names `connection` knows, with the history that stands in `history`.
    pub fn new(connection: Arc<Connection>, history: Option<PathBuf>) -> rustyline::Result<Self> {
        let config = Config::builder()
            .max_history_size(HISTORY_MAX)?
            .auto_add_history(false)
            .completion_type(CompletionType::List)
            .build();
        let mut editor = Editor::with_config(config)?;
        let completion = Arc::new(Completion::new(connection));
        editor.set_helper(Some(Tab(completion.clone())));
        let tab = EventHandler::Conditional(Box::new(Tab(completion.clone())));
        editor.bind_sequence(KeyEvent(KeyCode::Tab, Modifiers::NONE), tab);
        if let Some(file) = &history {
            // No history yet is no error.
            let _ = editor.load_history(file);
        }
        Ok(Self { editor, completion, history, pasted: VecDeque::new() })
    }

    /// Says that names may mean something else from now on.
    pub fn forget_names(&self) {
        self.completion.forget();
    }

    /// The next line; `prompt` is shown unless it has come already. `mode` says what it is.
    pub fn next(&mut self, prompt: &str, mode: impl FnOnce() -> Mode) -> rustyline::Result<String> {
        if let Some(line) = self.pasted.pop_front() {
            return Ok(line);
        }
        self.completion.expect(mode());
        let typed = self.editor.readline(prompt)?;
        let mut lines = typed.split('\n').map(|line| line.trim_end_matches('\r').to_owned());
        let first = lines.next().unwrap_or_default();
        self.pasted.extend(lines);
        Ok(first)
    }

    /// Adds what was typed to the history.
    pub fn remember(&mut self, typed: &str) -> rustyline::Result<()> {
        let typed = typed.trim();
        if !typed.is_empty() {
            self.editor.add_history_entry(typed)?;
        }
        Ok(())
    }

    /// Empties the screen.
    pub fn clear_screen(&mut self) -> rustyline::Result<()> {
        self.editor.clear_screen()
    }

    /// Writes the history to its file.
    pub fn keep_history(&mut self) {
        if let Some(file) = &self.history
            && let Err(e) = self.editor.save_history(file)
        {
            messages::say(&format!("The history could not be kept in {}: {e}", file.display()));
        }
    }
}

/// What a Tab does: it completes what stands before it, or is a character where there is nothing to complete.
struct Tab(Arc<Completion>);

impl ConditionalEventHandler for Tab {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext<'_>) -> Option<Cmd> {
        let completes = self.0.completes(context.line(), context.pos());
        // (`SelfInsert` would insert what was typed last.)
        Some(if completes { Cmd::Complete } else { Cmd::Insert(1, "\t".to_owned()) })
    }
}

impl Completer for Tab {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        Ok(self.0.candidates(line, at))
    }
}

impl Hinter for Tab {
    type Hint = String;
}
impl Highlighter for Tab {}
impl Validator for Tab {}
impl Helper for Tab {}
