//! Delete files: sets of deletes that are too large for a log record or the manifest, in a file aside. Byte table:
//! `docs/formats/deletes.md`.
//!
//! Sets stand whole in blocks of bounded size, so that reading holds one block in memory.

use std::sync::Arc;

use super::DeleteSet;
use crate::codec::{Decoder, Encoder};
use crate::disk::{AsideFile, AsideKind, AsideWriter, Disk};
use crate::error::Result;
use crate::ids::{ContainerId, FileId};
use crate::limits;

/// Gives each set of the delete file `file` to `take`, one block in memory at a time.
///
/// # Errors
/// As [`AsideFile::read`].
pub fn read_deletes(file: &AsideFile, mut take: impl FnMut(ContainerId, DeleteSet) -> Result<()>) -> Result<()> {
    file.read(|body, at| {
        let mut input = Decoder::new(body, file.path(), at);
        let mut rows = 0;
        while input.remaining() > 0 {
            let container = ContainerId(input.u64()?);
            let set = DeleteSet::decode(&mut input)?;
            rows += set.len() as u64;
            take(container, set)?;
        }
        Ok(rows)
    })
}

/// Writes a delete file. Dropped before [`DeleteFileWriter::finish`] it takes the file along.
#[derive(Debug)]
pub struct DeleteFileWriter {
    file: AsideWriter,
    block: Encoder,
    /// Rows in `block`.
    rows: u64,
}

impl DeleteFileWriter {
    /// A new file `id`.
    ///
    /// # Errors
    /// Io or Full.
    pub fn new(disk: Arc<dyn Disk>, id: FileId) -> Result<Self> {
        Ok(Self { file: AsideWriter::new(disk, AsideKind::Deletes, id)?, block: Encoder::new(), rows: 0 })
    }

    /// Adds the deletes of one container.
    ///
    /// # Errors
    /// Io or Full.
    pub fn push(&mut self, container: ContainerId, set: &DeleteSet) -> Result<()> {
        self.block.u64(container.0);
        set.encode(&mut self.block);
        self.rows += set.len() as u64;
        if self.block.len() >= limits::ASIDE_BLOCK_BYTES { self.end_block() } else { Ok(()) }
    }

    fn end_block(&mut self) -> Result<()> {
        let body = std::mem::take(&mut self.block).finish();
        if body.is_empty() { Ok(()) } else { self.file.block(&body, std::mem::take(&mut self.rows)) }
    }

    /// Ends the file: its bytes and its name are durable, so that a record may name it.
    ///
    /// # Errors
    /// Io or Full: the file goes.
    pub fn finish(mut self) -> Result<Arc<AsideFile>> {
        self.end_block()?;
        self.file.finish()
    }
}
