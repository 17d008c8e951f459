//! What stands in the folder of data files, by who needs it.
//!
//! Comes in: the names there, and what a replay has made and met. Goes out: each file of ours in one of these classes:
//!
//! | file | who made it | what becomes of it |
//! |---|---|---|
//! | listed | the present, or what a restart reads, names it | it stays |
//! | unfinished | no record has named it yet: of a merge, a load or a commit that was interrupted; or dropped, and still read | removed |
//! | dropped | a record or the manifest has named it, and a later one has dropped it | removed |
//! | unknown | it has its final name, and nothing that was replayed has ever named it | removed; set aside when a torn tail is cut |
//! | lost | an earlier opening has set it aside | it stays (`lost`) |
//!
//! So what a killed merge or load leaves never fills the disk: files take their final names when a record is about to
//! name them, and unknown ones are those of the few commits and installs that were at it when the process ended. Cut
//! off with the log's tail, the record may have been written all the same, and damaged later: then they hold the only
//! copy of its rows.
//!
//! Invariant: a file whose name is none of ours is never touched. It does not own: whether the tail was torn (`wal`).

use std::collections::BTreeSet;

use crate::disk::{DATA_DIR, Disk, parse_aside_name};
use crate::error::{Error, Result};
use crate::ids::FileId;
use crate::recover::lost::{LostFile, parse_finished_name};
use crate::recover::replay::Replayed;
use crate::segment::{parse_segment_name, segment_path};
use crate::wal::TailState;

/// The files of ours.
#[derive(Debug, Default)]
pub(super) struct DataFiles {
    /// Those that the manifest or a record has named: listed or dropped.
    named: Vec<(String, FileId)>,
    unfinished: Vec<String>,
    unknown: Vec<LostFile>,
    lost: Vec<LostFile>,
}

/// Whether a file in [`DATA_DIR`] with this name is one that a database makes, unfinished and lost ones included.
pub(super) fn is_data_name(name: &str) -> bool {
    let segment = name.strip_suffix(".tmp").unwrap_or(name);
    parse_segment_name(segment).is_some() || parse_aside_name(name).is_some() || LostFile::parse(name).is_some()
}

impl DataFiles {
    /// Sorts the files in the folder. Those of `named` have been named by the manifest or by a record up to `tail`.
    ///
    /// # Errors
    /// Io.
    pub fn look(disk: &dyn Disk, named: &BTreeSet<FileId>, tail: &TailState) -> Result<Self> {
        let mut found = Self::default();
        for name in disk.list(DATA_DIR)? {
            match parse_finished_name(&name) {
                Some(id) if named.contains(&id) => found.named.push((name, id)),
                Some(_) => found.unknown.extend(LostFile::of(disk, &name, tail.file_number)),
                None => match LostFile::parse(&name) {
                    Some(file) => found.lost.push(file),
                    None if is_data_name(&name) => found.unfinished.push(name),
                    None => {}
                },
            }
        }
        Ok(found)
    }

    /// The first file number and the first container id that none has of the files which are set aside, or will be when
    /// `tail` is cut.
    pub fn next_ids(&self, tail: &TailState) -> (u64, u64) {
        let unknown = if tail.is_torn { self.unknown.as_slice() } else { &[] };
        let kept = || self.lost.iter().chain(unknown);
        let file = kept().map(|file| file.file.0 + 1).max();
        let container = kept().filter_map(|file| file.container).map(|id| id.0 + 1).max();
        (file.unwrap_or(0), container.unwrap_or(0))
    }

    /// Sets the unknown ones aside, durably, when `tail` may have named them; returns what to tell the user. To be
    /// called before the tail is cut: if it is interrupted, or the opening fails later, the next one finds the tail as
    /// it was, goes on, and names them all. Unlike the others they need not wait until what was replayed is fsynced: no
    /// shorter log, and no manifest that may still come back, names them.
    ///
    /// # Errors
    /// Corrupt when a file that is listed is gone: the record that dropped it was fsynced, and stood in the tail. Io,
    /// Full.
    pub fn set_unknown_aside(
        &mut self,
        disk: &dyn Disk,
        tail: &TailState,
        replayed: &Replayed,
    ) -> Result<Option<String>> {
        if !tail.is_torn {
            return Ok(None);
        }
        let there: BTreeSet<FileId> = self.named.iter().map(|(_, id)| *id).collect();
        if let Some(file) = segment_files(replayed).find(|file| !there.contains(file)) {
            let (log, end) = tail.end_place();
            let message = format!(
                "the file is missing, though the log up to byte {end} of {log} lists it: a record that was fsynced stood in {} and has dropped \
                 it. Restore the whole directory from a copy, or look at what is left read-only",
                tail.torn_part()
            );
            return Err(Error::corrupt(segment_path(file), 0, message));
        }
        if !self.unknown.is_empty() {
            // The manifest that was read may have its name in memory only. An older one that came back might list some
            // of them.
            disk.sync_dir("")?;
            for file in &self.unknown {
                disk.rename(&file.old_path(), &file.path())?;
            }
            self.lost.append(&mut self.unknown);
        }
        // Some may be of an opening that was interrupted: it has told nobody, and not made their names durable.
        let of_cut = self.lost.iter().filter(|file| file.log_file == tail.file_number);
        let names: Vec<String> = of_cut.map(LostFile::path).collect();
        if names.is_empty() {
            return Ok(None);
        }
        disk.sync_dir(DATA_DIR)?;
        let message = format!(
            "files that nothing lists were set aside, for {} may have named them: {}. If the log was damaged, they hold rows that were \
             committed: restore the whole directory from a copy, and put those of these files that it lacks into its folder {DATA_DIR}, \
             under their old names. After a crash nobody was told of such rows: remove the files",
            tail.torn_part(),
            names.join(", ")
        );
        Ok(Some(message))
    }

    /// What a reader tells of the unknown ones when `tail` may have named them.
    pub fn notice_of_unknown(&self, tail: &TailState) -> Option<String> {
        let names: Vec<String> = self.unknown.iter().map(LostFile::old_path).collect();
        (tail.is_torn && !names.is_empty()).then(|| {
            format!(
                "nothing lists these files, which {} may have named: {}. An opening that writes sets them aside",
                tail.torn_part(),
                names.join(", ")
            )
        })
    }

    /// Removes what nobody needs, and what other interrupted work has left. To be called when what was replayed is
    /// fsynced: a power cut must not take back a record, or a manifest, that is the reason why a file is not needed.
    ///
    /// # Errors
    /// Io.
    pub fn remove_unneeded(&self, disk: &dyn Disk, replayed: &Replayed) -> Result<()> {
        let asides = replayed.manifest_files.iter().chain(replayed.asides.iter().map(|(_, file)| file));
        let listed: BTreeSet<FileId> = segment_files(replayed).chain(asides.map(|file| file.at().file)).collect();
        let dropped = self.named.iter().filter(|(_, id)| !listed.contains(id)).map(|(name, _)| name);
        let unknown = self.unknown.iter().map(|file| &file.name);
        let mut removed = false;
        for name in dropped.chain(unknown).chain(&self.unfinished) {
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

/// The files of the segments that are listed.
fn segment_files(replayed: &Replayed) -> impl Iterator<Item = FileId> {
    let runs = replayed.root.tables.values().flat_map(|version| &version.runs);
    runs.flat_map(|run| run.all_segments()).flat_map(|part| part.segment.meta().files())
}
