//! Sets of deletes as log records and the manifest hold them: in themselves while they are small, else in delete files.
//!
//! Comes in: (container, set) pairs. Goes out: bytes of a record that are bounded, and a file when they did not fit.

use std::sync::Arc;

use super::{DeleteFileWriter, DeleteSet};
use crate::codec::{Decoder, Encoder};
use crate::disk::{AsideFile, AsideRef, Disk};
use crate::error::Result;
use crate::ids::{ContainerId, FileId};

/// Deletes of several containers, in the record itself and in files it names. A container may occur more than once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamedDeletes {
    /// Sets in the record.
    pub inline: Vec<(ContainerId, DeleteSet)>,
    /// Files with the rest.
    pub files: Vec<AsideRef>,
}

impl NamedDeletes {
    /// Appends them to a record.
    pub fn encode(&self, out: &mut Encoder) {
        out.list(self.inline.iter(), |out, (id, set)| {
            out.u64(id.0);
            set.encode(out);
        });
        out.list(self.files.iter(), |out, file| file.encode(out));
    }

    /// Takes them from a record.
    ///
    /// # Errors
    /// Corrupt.
    pub fn decode(input: &mut Decoder<'_>) -> Result<Self> {
        let inline = input.list(|input| Ok((ContainerId(input.u64()?), DeleteSet::decode(input)?)))?;
        Ok(Self { inline, files: input.list(AsideRef::decode)? })
    }
}

/// Bytes of a container's set in a record.
#[must_use]
pub fn named_bytes(set: &DeleteSet) -> usize {
    size_of::<ContainerId>() + set.encoded_bytes()
}

/// Collects deletes until they are too many bytes for a record: then all of them go to one file, as they come.
pub struct DeleteCollector<'a> {
    disk: &'a Arc<dyn Disk>,
    next_file: &'a dyn Fn() -> FileId,
    room: usize,
    bytes: usize,
    inline: Vec<(ContainerId, DeleteSet)>,
    file: Option<DeleteFileWriter>,
}

/// What was collected: sets, or a durable file that goes unless it is kept.
pub type Collected = (Vec<(ContainerId, DeleteSet)>, Option<Arc<AsideFile>>);

impl<'a> DeleteCollector<'a> {
    /// Collects up to `room` bytes; what is more goes to a file on `disk` with an id of `next_file`.
    pub fn new(disk: &'a Arc<dyn Disk>, next_file: &'a dyn Fn() -> FileId, room: usize) -> Self {
        Self { disk, next_file, room, bytes: 0, inline: Vec::new(), file: None }
    }

    /// Adds deletes of a container.
    ///
    /// # Errors
    /// Io or Full.
    pub fn push(&mut self, container: ContainerId, set: &DeleteSet) -> Result<()> {
        if set.is_empty() {
            return Ok(());
        }
        if let Some(file) = &mut self.file {
            return file.push(container, set);
        }
        self.bytes += named_bytes(set);
        self.inline.push((container, set.clone()));
        if self.bytes <= self.room {
            return Ok(());
        }
        let mut file = DeleteFileWriter::new(self.disk.clone(), (self.next_file)())?;
        for (container, set) in self.inline.drain(..) {
            file.push(container, &set)?;
        }
        self.file = Some(file);
        Ok(())
    }

    /// What came together; a file is durable.
    ///
    /// # Errors
    /// Io or Full: nothing is left.
    pub fn finish(self) -> Result<Collected> {
        let file = self.file.map(DeleteFileWriter::finish).transpose()?;
        Ok((self.inline, file))
    }
}
