//! Names of files, with wildcards perhaps, as files that can be read more than once.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, ErrorKind, Result};

use super::Progress;
use crate::csv::Latin1;
use crate::sql::{FileCompression, FileRequest};

/// Most files of a table.
const FILES_MAX: usize = 100_000;
/// How many times as long a compressed file is when it is read, about.
const EXPANSION: u64 = 4;

/// A file, as it was when its name was looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundFile {
    path: PathBuf,
    pub(super) bytes: u64,
    modified: Option<SystemTime>,
    pub(super) compression: FileCompression,
}

impl FoundFile {
    /// Its path as people read it.
    pub(super) fn name(&self) -> String {
        self.path.display().to_string()
    }

    pub(super) fn is_parquet(&self) -> bool {
        ends_in(&self.path, "parquet")
    }

    /// Its bytes when it is read, about.
    pub(super) fn expanded_bytes(&self) -> u64 {
        if self.compression == FileCompression::None { self.bytes } else { self.bytes.saturating_mul(EXPANSION) }
    }

    /// Opens it.
    ///
    /// # Errors
    /// Io, which names it.
    pub(super) fn open(&self) -> Result<File> {
        File::open(&self.path).map_err(|e| Error::io("open", format_args!("\"{}\"", self.name()), e))
    }

    /// Opens it as a stream of UTF-8, counted by `progress`.
    ///
    /// # Errors
    /// Io, which names it.
    pub(super) fn stream(&self, latin1: bool, progress: Option<&Progress>) -> Result<Box<dyn Read + Send>> {
        let file = progress.cloned().unwrap_or_default().of(self.open()?);
        let stream = decompressed(Box::new(file), self.compression, &self.name())?;
        Ok(if latin1 { Box::new(Latin1::new(stream)) } else { stream })
    }
}

/// What the file called `name` has, of which `stream` are the bytes.
///
/// # Errors
/// Io, which names it: of the decoder, before it has read a row.
fn decompressed(
    stream: Box<dyn Read + Send>,
    compression: FileCompression,
    name: &str,
) -> Result<Box<dyn Read + Send>> {
    Ok(match compression {
        FileCompression::None => stream,
        FileCompression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(io::BufReader::new(stream))),
        FileCompression::Zstd => {
            let decoder = zstd::stream::read::Decoder::new(stream);
            Box::new(decoder.map_err(|e| Error::io("read", format_args!("\"{name}\""), e))?)
        }
    })
}

/// As its name says.
pub(crate) fn compression_of(path: &Path) -> FileCompression {
    match () {
        () if ends_in(path, "gz") => FileCompression::Gzip,
        () if ends_in(path, "zst") || ends_in(path, "zstd") => FileCompression::Zstd,
        () => FileCompression::None,
    }
}

/// Whether the name of the file at `path` says that it is compressed.
pub(crate) fn is_compressed(path: &str) -> bool {
    compression_of(Path::new(path)) != FileCompression::None
}

/// What the file at `path` has, whose bytes are `stream`: decompressed, if its name says that it is compressed.
///
/// # Errors
/// Io, which names it.
pub(crate) fn expanded(path: &str, stream: Box<dyn Read + Send>) -> Result<Box<dyn Read + Send>> {
    decompressed(stream, compression_of(Path::new(path)), path)
}

fn ends_in(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|end| end.eq_ignore_ascii_case(extension))
}

/// The files that `request` names, those of a pattern in the order of their names.
///
/// # Errors
/// 58P01 for a file that is not there, and a pattern that none matches; 42809 for a directory; 0A000 for a pipe.
pub(super) fn find(request: &FileRequest) -> Result<Vec<FoundFile>> {
    let mut files = Vec::new();
    for path in &request.paths {
        // A file may be called like a pattern.
        let is_pattern = path.contains(['*', '?', '[']) && !Path::new(path).exists();
        if is_pattern {
            files.extend(matching(path, request)?);
        } else {
            files.push(found(PathBuf::from(path), request.compression)?);
        }
        if files.len() > FILES_MAX {
            return Err(Error::unsupported(format_args!("a table of more than {FILES_MAX} files")));
        }
    }
    Ok(files)
}

fn matching(pattern: &str, request: &FileRequest) -> Result<Vec<FoundFile>> {
    let options =
        glob::MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };
    let paths = glob::glob_with(pattern, options).map_err(|e| {
        Error::invalid(sqlstate::INVALID_PARAMETER, format!("\"{pattern}\" is no pattern of file names: {e}"))
    })?;
    let mut files = Vec::new();
    for path in paths.take(FILES_MAX + 1) {
        let path = path.map_err(|e| {
            let name = format!("\"{}\"", e.path().display());
            Error::io("read", name, e.into())
        })?;
        if !path.is_dir() {
            files.push(found(path, request.compression)?);
        }
    }
    if files.is_empty() {
        let message = format!("no file matches \"{pattern}\"");
        return Err(Error::new(ErrorKind::NotFound, sqlstate::UNDEFINED_FILE, message));
    }
    Ok(files)
}

fn found(path: PathBuf, compression: Option<FileCompression>) -> Result<FoundFile> {
    let name = path.display();
    let metadata = std::fs::metadata(&path).map_err(|e| Error::io("open", format_args!("\"{name}\""), e))?;
    if metadata.is_dir() {
        return Err(Error::invalid(sqlstate::WRONG_OBJECT_TYPE, format!("\"{name}\" is a directory")));
    }
    if !metadata.is_file() {
        return Err(Error::unsupported(format_args!(
            "reading \"{name}\", which is no regular file, as a table (COPY table FROM reads pipes)"
        )));
    }
    let compression = compression.unwrap_or_else(|| compression_of(&path));
    Ok(FoundFile { bytes: metadata.len(), modified: metadata.modified().ok(), compression, path })
}
