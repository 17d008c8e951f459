//! Where the bytes of COPY TO go: a file, or a folder of files, aside until all of it is whole.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use datafusion::parquet::file::writer::SerializedFileWriter;
use flate2::Compression;
use flate2::write::GzEncoder;
use mainstem_storage::{Error, Result};

use super::super::aside::Aside;
use super::Done;
use super::encode::{Encoded, Encoder, written};
use crate::provider::compression_of;
use crate::sql::FileCompression;

/// The files of a COPY.
pub(super) struct Files {
    aside: Aside,
    /// How files of a folder end; None: it is a single file.
    extension: Option<&'static str>,
    /// Of lines, as the name of the single file says.
    compression: FileCompression,
    /// The one that is being written.
    open: Option<OpenFile>,
}

impl Files {
    /// One file, `target`.
    ///
    /// # Errors
    /// 42809 for a folder.
    pub(super) fn single(target: &str) -> Result<Self> {
        let compression = compression_of(Path::new(target));
        Ok(Self { aside: Aside::of_file(target)?, extension: None, compression, open: None })
    }

    /// The folder `target`, with a folder in it for each partition.
    ///
    /// # Errors
    /// 58P02 for a folder with something in it, 42809 for a file; Io.
    pub(super) fn folder(target: &str, parquet: bool) -> Result<Self> {
        let extension = Some(if parquet { "parquet" } else { "csv" });
        Ok(Self { aside: Aside::of_folder(target)?, extension, compression: FileCompression::None, open: None })
    }

    /// Writes what comes next.
    ///
    /// # Errors
    /// Io and Full, which name the file.
    pub(super) fn write(&mut self, encoder: &Encoder, piece: Done) -> Result<()> {
        self.file_of(encoder, piece.partition)?.write(piece.encoded)
    }

    /// The file of `partition`: the one that is open, or a new one.
    fn file_of(&mut self, encoder: &Encoder, partition: Option<Arc<str>>) -> Result<&mut OpenFile> {
        let same = match self.open.take() {
            Some(open) if open.partition == partition => Some(open),
            Some(other) => {
                other.finish()?;
                None
            }
            None => None,
        };
        let open = match same {
            Some(open) => open,
            None => self.create(encoder, partition)?,
        };
        Ok(self.open.insert(open))
    }

    fn create(&self, encoder: &Encoder, partition: Option<Arc<str>>) -> Result<OpenFile> {
        let (Some(extension), Some(folder)) = (self.extension, &partition) else {
            let file = self.aside.file()?;
            return OpenFile::new(file, self.aside.shown(None), partition, (encoder, self.compression));
        };
        let shown = self.aside.shown(Some(folder));
        let failed = |e| Error::io("create", &shown, e);
        let inside = self.aside.path().join(&**folder);
        std::fs::create_dir_all(&inside).map_err(failed)?;
        let mut number = 0_u64;
        let file = loop {
            match File::create_new(inside.join(format!("data_{number}.{extension}"))) {
                // Values that are equal, and have other texts, may take turns.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => number += 1,
                created => break created.map_err(failed)?,
            }
        };
        OpenFile::new(file, shown, partition, (encoder, self.compression))
    }

    /// Makes all of it durable, and gives it its name.
    ///
    /// # Errors
    /// As [`Files::write`].
    pub(super) fn finish(mut self, encoder: &Encoder) -> Result<()> {
        if self.extension.is_none() && self.open.is_none() {
            self.file_of(encoder, None)?;
        }
        if let Some(open) = self.open.take() {
            open.finish()?;
        }
        self.aside.install()
    }
}

/// A file that is being written.
struct OpenFile {
    partition: Option<Arc<str>>,
    output: Output,
    /// The same file, to fsync it.
    file: File,
    /// As messages call it.
    shown: String,
}

enum Output {
    Lines(Lines),
    Parquet(Box<SerializedFileWriter<File>>),
}

/// Lines, compressed or not.
enum Lines {
    Plain(File),
    Gzip(Box<GzEncoder<File>>),
    Zstd(zstd::stream::write::Encoder<'static, File>),
}

impl Lines {
    fn new(file: File, compression: FileCompression) -> io::Result<Self> {
        Ok(match compression {
            FileCompression::None => Self::Plain(file),
            FileCompression::Gzip => Self::Gzip(Box::new(GzEncoder::new(file, Compression::default()))),
            FileCompression::Zstd => {
                Self::Zstd(zstd::stream::write::Encoder::new(file, zstd::DEFAULT_COMPRESSION_LEVEL)?)
            }
        })
    }

    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.write_all(lines),
            Self::Gzip(encoder) => encoder.write_all(lines),
            Self::Zstd(encoder) => encoder.write_all(lines),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Gzip(encoder) => encoder.finish().map(drop),
            Self::Zstd(encoder) => encoder.finish().map(drop),
        }
    }
}

impl OpenFile {
    fn new(
        file: File,
        shown: String,
        partition: Option<Arc<str>>,
        (encoder, compression): (&Encoder, FileCompression),
    ) -> Result<Self> {
        let failed = |e| Error::io("write", &shown, e);
        let again = || file.try_clone().map_err(|e| Error::io("open", &shown, e));
        let output = match encoder.file(again()?, &shown)? {
            Some(parquet) => Output::Parquet(Box::new(parquet)),
            None => {
                let mut lines = Lines::new(again()?, compression).map_err(failed)?;
                lines.write(encoder.header()).map_err(failed)?;
                Output::Lines(lines)
            }
        };
        Ok(Self { partition, output, file, shown })
    }

    fn write(&mut self, piece: Encoded) -> Result<()> {
        let shown = &self.shown;
        match (&mut self.output, piece) {
            (Output::Lines(output), Encoded::Lines(lines)) => {
                output.write(&lines).map_err(|e| Error::io("write", shown, e))
            }
            (Output::Parquet(writer), Encoded::RowGroup(columns)) => {
                let append = || {
                    let mut group = writer.next_row_group()?;
                    columns.into_iter().try_for_each(|column| column.append_to_row_group(&mut group))?;
                    group.close().map(drop)
                };
                append().map_err(|e| written(&e, shown))
            }
            _ => Err(Error::internal("lines in a Parquet file, or a row group among lines")),
        }
    }

    fn finish(self) -> Result<()> {
        let Self { output, file, shown, .. } = self;
        match output {
            Output::Lines(lines) => lines.finish().map_err(|e| Error::io("write", &shown, e))?,
            Output::Parquet(mut writer) => {
                writer.finish().map_err(|e| written(&e, &shown))?;
                writer.inner_mut().flush().map_err(|e| Error::io("write", &shown, e))?;
            }
        }
        let regular = file.metadata().is_ok_and(|found| found.is_file());
        if regular { file.sync_all().map_err(|e| Error::io("fsync", &shown, e)) } else { Ok(()) }
    }
}
