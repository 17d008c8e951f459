//! `\` commands, the same in the shell, in scripts, in a pipe and behind `-c`.
//!
//! Comes in: a line that begins with `\`, and the client whose habits it changes or whose catalog it shows. Goes out:
//! results and words as those of statements, or an error with its SQLSTATE. Steps: [`run`] takes the command's name
//! off, and reads what is behind it as that command wants it. It does not own: where a command may stand
//! (`script::Splitter`).

mod describe;
mod words;

use std::path::{Path, PathBuf};

use mainstem::{Error, sqlstate};

use crate::client::Client;
use crate::output::Stopped;

use describe::{Listed, Shown};
use words::{names, switch};

/// Files that may be read from one another.
const FILES_DEEP_MAX: usize = 16;

/// What the shell can do.
pub const HELP: &str = "\
\\d  [PATTERN]      tables and views
\\dt [PATTERN]      tables only; \\dv views only
\\d  NAME           columns and constraints of a table, query of a view
\\d+ [NAME]         the same with sizes, keys and layouts
\\i  FILE           run the SQL in a file; \\ir: a path from the file that says so
\\o  [FILE]         write results to a file, or here again
\\x  [on|off]       a line for each column instead of each row (format box)
\\timing [on|off]   show how long statements take
\\?                 this help (help, too)
\\restrict KEY      run no commands until \\unrestrict KEY, as dumps of PostgreSQL say
\\q                 quit (quit, exit and Ctrl-D, too)
A statement ends with a semicolon and may have many lines; Ctrl-C cancels it.
Tab completes keywords, names of tables, columns and settings, commands and files; clear empties the screen.
In a PATTERN * means any characters and ? one.
The prompt shows an open transaction: mainstem*>, or mainstem!> when it failed and waits for ROLLBACK.";

/// What stands behind a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// Nothing.
    None,
    /// The name of a table or view.
    Relation,
    /// A path.
    File,
    /// on or off.
    Switch,
}

/// Commands by their names, with what stands behind them.
pub const COMMANDS: &[(&str, Argument)] = &[
    ("\\?", Argument::None),
    ("\\d", Argument::Relation),
    ("\\d+", Argument::Relation),
    ("\\dt", Argument::Relation),
    ("\\dt+", Argument::Relation),
    ("\\dv", Argument::Relation),
    ("\\dv+", Argument::Relation),
    ("\\i", Argument::File),
    ("\\ir", Argument::File),
    ("\\o", Argument::File),
    ("\\q", Argument::None),
    ("\\restrict", Argument::None),
    ("\\timing", Argument::Switch),
    ("\\unrestrict", Argument::None),
    ("\\x", Argument::Switch),
];

/// What follows a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// What stands behind it.
    Continue,
    /// `\q`: nothing.
    Quit,
    /// `\i`: the file at this path, and then what stands behind it.
    File(PathBuf),
}

/// Name and argument of the command in `line`; a semicolon at the end is nobody's.
pub fn parts(line: &str) -> (&str, &str) {
    let line = line.trim().trim_end_matches(';').trim_end();
    line.split_once(char::is_whitespace).map_or((line, ""), |(name, argument)| (name, argument.trim()))
}

/// Runs the command in `line`.
///
/// # Errors
/// 42601 for one that is not there or is used otherwise; whatever it meets.
pub fn run(client: &mut Client, line: &str) -> Result<Next, Stopped> {
    let (name, argument) = parts(line);
    if let Some(key) = &client.restricted {
        if name != "\\unrestrict" {
            return Err(wrong(format!("{name} is not run behind \\restrict; \\unrestrict comes first")));
        }
        if argument != key {
            return Err(wrong("\\unrestrict has another key than \\restrict".to_owned()));
        }
        client.restricted = None;
        return Ok(Next::Continue);
    }
    match name {
        // What pg_dump writes around its statements.
        "\\restrict" if argument.is_empty() => return Err(wrong("\\restrict wants a key".to_owned())),
        "\\restrict" => client.restricted = Some(argument.to_owned()),
        "\\unrestrict" => return Err(wrong("\\unrestrict without \\restrict".to_owned())),
        "\\q" => return nothing(name, argument).map(|()| Next::Quit),
        "\\?" => {
            nothing(name, argument)?;
            client.print(HELP)?;
        }
        "\\x" => {
            client.style.expanded = switch(name, argument, client.style.expanded)?;
            client.print(if client.style.expanded { "Expanded display is on." } else { "Expanded display is off." })?;
        }
        "\\timing" => {
            client.timing = switch(name, argument, client.timing)?;
            client.print(if client.timing { "Timing is on." } else { "Timing is off." })?;
        }
        "\\i" => return included(client, path_of(name, argument)?),
        "\\ir" => {
            let path = path_of(name, argument)?;
            let folder = client.files.last().and_then(|file| file.parent()).unwrap_or(Path::new(""));
            return included(client, folder.join(path));
        }
        "\\o" if argument.is_empty() => client.redirect(None)?,
        "\\o" if argument.starts_with('|') => return Err(Error::unsupported("\\o to a program").into()),
        "\\o" => client.redirect(Some(&path_of(name, argument)?))?,
        _ => match listed(name) {
            Some((listed, shown)) => describe::run(client, listed, shown, argument)?,
            None => return Err(wrong(format!("there is no command {name}; \\? lists them"))),
        },
    }
    Ok(Next::Continue)
}

/// What a command of the family of `\d` lists or describes.
fn listed(name: &str) -> Option<(Listed, Shown)> {
    let (kind, shown) = match name.strip_suffix('+') {
        Some(kind) => (kind, Shown::More),
        None => (name, Shown::Essential),
    };
    let listed = match kind {
        "\\d" => Listed::All,
        "\\dt" => Listed::Tables,
        "\\dv" => Listed::Views,
        _ => return None,
    };
    Some((listed, shown))
}

/// The file at `path`, unless it is one too many.
fn included(client: &Client, path: PathBuf) -> Result<Next, Stopped> {
    if client.files.len() >= FILES_DEEP_MAX {
        let message =
            format!("files are read from one another more than {FILES_DEEP_MAX} deep, {} the last", path.display());
        return Err(Error::invalid(TOO_DEEP, message).into());
    }
    Ok(Next::File(path))
}

/// statement_too_complex
const TOO_DEEP: &str = "54001";

/// The path that `argument` says: all of it, in quotes or not; `~/` is the user's folder.
fn path_of(command: &str, argument: &str) -> Result<PathBuf, Stopped> {
    let path = match argument.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        Some(quoted) => quoted.replace("''", "'"),
        None => argument.to_owned(),
    };
    if path.is_empty() {
        return Err(wrong(format!("{command} wants the name of a file")));
    }
    Ok(expanded(&path))
}

/// `path` with the user's folder for `~/`.
pub fn expanded(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => PathBuf::from(path),
    }
}

/// Refuses an argument where there is none.
fn nothing(command: &str, argument: &str) -> Result<(), Stopped> {
    if argument.is_empty() { Ok(()) } else { Err(wrong(format!("{command} stands alone, without \"{argument}\""))) }
}

/// 42601.
fn wrong(message: String) -> Stopped {
    Error::invalid(sqlstate::SYNTAX, message).into()
}
