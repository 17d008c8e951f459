//! COPY, with a stream of the caller's where the statement says STDIN or STDOUT.
//!
//! A write outside a transaction is run again when another committer was in its way; a stream, or a pipe that a COPY
//! names as a file, cannot be read twice. So what is read of it is kept until the statement is done: in memory up to a
//! bound, behind that in a temporary file.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

use super::attempts::Targets;
use super::{Current, Outcome, Session};
use crate::exec::unnamed_file;
use crate::plan;
use crate::sql::{CopyPlace, CopyStatement, Script, Statement};

/// Bytes of a stream kept in memory.
const KEPT_BYTES_MAX: usize = 8 << 20;

/// What the caller brought along.
pub(super) enum Stream<'a> {
    None,
    In(&'a mut dyn Read),
    Out(&'a mut dyn Write),
}

impl Session {
    /// Runs the one statement of `script`, a COPY FROM STDIN, with `input`.
    pub(crate) fn copy_in(&mut self, script: &mut Script, input: &mut dyn Read) -> Result<Outcome> {
        self.copy_stream(script, Stream::In(input), "COPY ... FROM STDIN")
    }

    /// Runs the one statement of `script`, a COPY TO STDOUT, with `output`.
    pub(crate) fn copy_out(&mut self, script: &mut Script, output: &mut dyn Write) -> Result<Outcome> {
        self.copy_stream(script, Stream::Out(output), "COPY ... TO STDOUT")
    }

    fn copy_stream(&mut self, script: &mut Script, mut stream: Stream<'_>, wanted: &str) -> Result<Outcome> {
        let fits = match (script.only(), &stream) {
            (Some(Statement::Copy(CopyStatement::From { options, .. })), Stream::In(_))
            | (Some(Statement::Copy(CopyStatement::To { options, .. })), Stream::Out(_)) => {
                options.place == CopyPlace::Client
            }
            _ => false,
        };
        match script.next() {
            Some(Statement::Copy(copy)) if fits => self.guarded(|session| session.copy(copy, &mut stream)),
            _ => Err(Error::invalid(sqlstate::SYNTAX, format!("this takes one statement, {wanted}"))),
        }
    }

    /// Runs a COPY.
    pub(super) fn copy(&mut self, copy: CopyStatement, stream: &mut Stream<'_>) -> Result<Outcome> {
        let (CopyStatement::From { options, .. } | CopyStatement::To { options, .. }) = &copy;
        if let CopyPlace::File(path) = &options.place {
            self.settings.check_file_access(path)?;
        }
        if let CopyStatement::From { read, .. } = &copy
            && let Some(path) = &read.rejects.file
        {
            self.settings.check_file_access(path)?;
        }
        let rows = match (copy, stream) {
            (CopyStatement::From { table, columns, options, read }, stream) => {
                let mut pipe = plan::pipe_of(&options);
                let source: Option<&mut dyn Read> = match (&mut pipe, stream) {
                    (Some(pipe), _) => Some(pipe),
                    (None, Stream::In(input)) => Some(*input),
                    (None, _) => None,
                };
                let runs_once = !matches!(self.current, Current::None);
                let mut kept = source.map(|source| Kept::new(source, self.shared.storage.temporary_folder()));
                let copied = self.write(Targets::one(&table), &mut |env, transaction| {
                    let mut pass;
                    let stream: Option<&mut dyn Read> = match &mut kept {
                        None => None,
                        Some(kept) if runs_once => Some(&mut *kept.source),
                        Some(kept) => {
                            pass = kept.next_pass();
                            Some(&mut pass)
                        }
                    };
                    plan::copy_from(env, transaction, &table, &columns, (&options, &read), stream)
                })?;
                return Ok(Outcome::wrote("COPY", copied.rows).with_notices(copied.notices));
            }
            (CopyStatement::To { source, options }, Stream::Out(output)) => self.read(|env, transaction| {
                env.need_certain_files();
                plan::copy_to(env, transaction, source, &options, Some(*output))
            })?,
            (CopyStatement::To { source, options }, _) => self.read(|env, transaction| {
                env.need_certain_files();
                plan::copy_to(env, transaction, source, &options, None)
            })?,
        };
        Ok(Outcome::wrote("COPY", rows))
    }
}

/// A stream, and what was read of it so far.
struct Kept<'a> {
    source: &'a mut dyn Read,
    /// Of temporary files.
    folder: Option<PathBuf>,
    /// Its first bytes.
    memory: Vec<u8>,
    /// Those behind them.
    file: Option<File>,
    /// Bytes in both.
    bytes: u64,
}

impl<'a> Kept<'a> {
    fn new(source: &'a mut dyn Read, folder: Option<&Path>) -> Self {
        Self { source, folder: folder.map(Path::to_owned), memory: Vec::new(), file: None, bytes: 0 }
    }

    /// Reads the stream from its start; may be called again.
    fn next_pass(&mut self) -> Pass<'_, 'a> {
        Pass { kept: self, at: 0 }
    }

    /// Kept bytes from `at` on.
    fn reread(&mut self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let in_memory = usize::try_from(at).ok().and_then(|at| self.memory.get(at..)).filter(|rest| !rest.is_empty());
        match (in_memory, &mut self.file) {
            (Some(mut rest), _) => rest.read(buffer),
            (None, Some(file)) => {
                file.seek(SeekFrom::Start(at.saturating_sub(self.memory.len() as u64)))?;
                file.read(buffer)
            }
            (None, None) => Ok(0),
        }
    }

    fn keep(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        if self.file.is_none() && self.memory.len() + bytes.len() <= KEPT_BYTES_MAX {
            self.memory.extend_from_slice(bytes);
            return Ok(());
        }
        if self.file.is_none() {
            self.file = Some(unnamed_file(self.folder.as_deref())?);
        }
        if let Some(file) = &mut self.file {
            file.seek(SeekFrom::End(0))?;
            file.write_all(bytes)?;
        }
        Ok(())
    }
}

/// One reading of a stream.
struct Pass<'k, 'a> {
    kept: &'k mut Kept<'a>,
    at: u64,
}

impl Read for Pass<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at < self.kept.bytes {
            let read = self.kept.reread(self.at, buffer)?;
            self.at += read as u64;
            return Ok(read);
        }
        let read = self.kept.source.read(buffer)?;
        self.kept.keep(buffer.get(..read).unwrap_or_default())?;
        self.at = self.kept.bytes;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn a_stream_is_read_again_from_memory_and_file() {
        // Not a multiple of anything, and three quarters of it behind the bound.
        let bytes: Vec<u8> = (0..4 * KEPT_BYTES_MAX + 12_345).map(|n| (n % 251) as u8).collect();
        let mut source = bytes.as_slice();
        let mut kept = Kept::new(&mut source, None);
        let mut part = vec![0; KEPT_BYTES_MAX * 2 + 777];
        kept.next_pass().read_exact(&mut part).unwrap();
        assert!(part == bytes[..part.len()]);
        assert!(kept.file.is_some() && kept.memory.len() <= KEPT_BYTES_MAX);
        for _ in 0..2 {
            let mut all = Vec::new();
            kept.next_pass().read_to_end(&mut all).unwrap();
            assert!(all == bytes, "{} bytes", all.len());
        }
    }
}
