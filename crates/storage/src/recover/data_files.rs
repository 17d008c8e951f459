//! What stands in the folder of data files, by who needs it.
//!
//! Comes in: the names there, and what a replay has made and met. Goes out: each file of ours in one of these classes:
//!
//! | file | who made it | what becomes of it |
//! |---|---|---|
//! | listed | the present, or what a restart reads, names it | it stays |
//! | unfinished | it has no final name yet, so no record has ever named it: a merge, a load or a commit that was interrupted | removed |
//! | dropped | a record or the manifest has named it, and a later one has dropped it | removed |
//! | unknown | it has its final name, and nothing that was replayed has ever named it | removed; set aside when a torn tail is cut |
//! | lost | an earlier opening has set it aside | it stays (`lost`) |
//!
//! So what a killed merge or load leaves never fills the disk: files take their final names when a record is about to name them, and
//! unknown ones are those of the few commits and installs that were at it when the process ended. Cut off with the log's tail, the
//! record may have been written all the same, and damaged later: then they hold the only copy of its rows.
//!
//! Invariant: a file whose name is none of ours is never touched. It does not own: whether the tail was torn (`wal`).

use std::collections::BTreeSet;

use crate::disk::{DATA_DIR, Disk, parse_aside_name};
use crate::error::{Error, Result};
use crate::ids::FileId;
use crate::recover::lost::{LostFile, set_aside};
use crate::recover::replay::Replayed;
use crate::segment::{parse_segment_name, segment_path};
use crate::wal::TailState;

/// The files of ours, but for those that are listed.
#[derive(Debug, Default)]
pub(super) struct DataFiles {
    /// Names of unfinished and dropped files.
    unneeded: Vec<String>,
    /// Unknown ones.
    unknown: Vec<(String, FileId)>,
    /// Lost ones.
    lost: Vec<LostFile>,
    /// Segment files that are listed and not there.
    missing: BTreeSet<FileId>,
}

/// The file that a finished one with this name is.
pub(super) fn parse_finished_name(name: &str) -> Option<FileId> {
    parse_segment_name(name).or_else(|| parse_aside_name(name))
}

/// Whether a file in [`DATA_DIR`] with this name is one that a database makes, unfinished and lost ones included.
pub(super) fn is_data_name(name: &str) -> bool {
    let segment = name.strip_suffix(".tmp").unwrap_or(name);
    parse_segment_name(segment).is_some() || parse_aside_name(name).is_some() || LostFile::parse(name).is_some()
}

impl DataFiles {
    /// Sorts the files in the folder.
    ///
    /// # Errors
    /// Io.
    pub fn look(disk: &dyn Disk, replayed: &Replayed) -> Result<Self> {
        let runs = replayed.root.tables.values().flat_map(|version| &version.runs);
        let parts = runs.flat_map(|run| run.all_segments());
        let segments: BTreeSet<FileId> = parts.flat_map(|part| part.segment.meta().files()).collect();
        let asides = replayed.manifest_files.iter().chain(replayed.asides.iter().map(|(_, file)| file));
        let asides: BTreeSet<FileId> = asides.map(|file| file.at().file).collect();
        let mut found = Self { missing: segments.clone(), ..Self::default() };
        for name in disk.list(DATA_DIR)? {
            let segment = parse_segment_name(&name);
            if let Some(id) = segment.filter(|id| segments.contains(id)) {
                found.missing.remove(&id);
            } else if parse_aside_name(&name).is_some_and(|id| asides.contains(&id)) {
                // Listed.
            } else if let Some(file) = LostFile::parse(&name) {
                found.lost.push(file);
            } else if let Some(id) = parse_finished_name(&name).filter(|id| !replayed.named_files.contains(id)) {
                found.unknown.push((name, id));
            } else if is_data_name(&name) {
                found.unneeded.push(name);
            }
        }
        Ok(found)
    }

    /// Sets the unknown ones aside, durably, when `tail` may have named them; returns what to tell the user. To be called before the tail is
    /// cut: if it is interrupted, the next opening finds the tail as it was and goes on. Unlike the others they need not wait until
    /// what was replayed is fsynced: no shorter log, and no manifest that may still come back, names them.
    ///
    /// # Errors
    /// Corrupt when a file that is listed is gone: the record that dropped it was fsynced, and stood in the tail. Io, Full.
    pub fn set_unknown_aside(&mut self, disk: &dyn Disk, tail: &TailState) -> Result<Option<String>> {
        if !tail.is_torn {
            return Ok(None);
        }
        if let Some(&file) = self.missing.first() {
            let (log, end) = tail.end_place();
            let message = format!(
                "the file is missing, though the log up to byte {end} of {log} lists it, where a torn tail begins: a record that was fsynced \
                 stood there and has dropped it. Bring the log back from a copy, or look at what is left read-only"
            );
            return Err(Error::corrupt(segment_path(file), 0, message));
        }
        if self.unknown.is_empty() {
            return Ok(None);
        }
        // The manifest that was read may have its name in memory only. An older one that came back might list some of them.
        disk.sync_dir("")?;
        let files = set_aside(disk, &std::mem::take(&mut self.unknown), tail.file_number)?;
        let names: Vec<String> = files.iter().map(LostFile::path).collect();
        self.lost.extend(files);
        let message = format!(
            "files that nothing lists were set aside, for the tail of the log that was cut may have named them: {}. If the log was \
             damaged they hold rows that were committed: bring its files back from a copy and these back to their names; else remove them",
            names.join(", ")
        );
        Ok(Some(message))
    }

    /// What a reader tells of the unknown ones when `tail` may have named them.
    pub fn notice_of_unknown(&self, tail: &TailState) -> Option<String> {
        let names: Vec<String> = self.unknown.iter().map(|(name, _)| format!("{DATA_DIR}/{name}")).collect();
        (tail.is_torn && !names.is_empty()).then(|| {
            format!(
                "nothing lists these files, which the tail of the log may have named: {}. An opening that writes sets them aside",
                names.join(", ")
            )
        })
    }

    /// Removes what nobody needs, and what other interrupted work has left. To be called when what was replayed is fsynced: a power cut must
    /// not take back a record, or a manifest, that is the reason why a file is not needed.
    ///
    /// # Errors
    /// Io.
    pub fn remove_unneeded(&self, disk: &dyn Disk) -> Result<()> {
        let unknown = self.unknown.iter().map(|(name, _)| name);
        let mut removed = false;
        for name in self.unneeded.iter().chain(unknown) {
            disk.remove(&format!("{DATA_DIR}/{name}"))?;
            removed = true;
        }
        if removed { disk.sync_dir(DATA_DIR) } else { Ok(()) }
    }

    /// The lost files.
    pub fn lost(&self) -> &[LostFile] {
        &self.lost
    }
}
