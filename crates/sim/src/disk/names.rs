//! The two images of the names: which file, and which folder, stands where.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mainstem_storage::error::{Error, ErrorKind, Result, sqlstate};
use parking_lot::Mutex;
use rand::Rng;
use rand::rngs::StdRng;

use super::image::Bytes;

type File = Arc<Mutex<Bytes>>;

/// Names, live and durable, and the changes between them in the order they were made.
#[derive(Debug, Default)]
pub(super) struct Names {
    live: Image,
    durable: Image,
    /// Not yet synced: the folder whose sync makes it durable, and the change.
    pending: Vec<(String, Change)>,
}

#[derive(Clone, Debug, Default)]
struct Image {
    files: BTreeMap<String, File>,
    dirs: BTreeSet<String>,
}

#[derive(Clone, Debug)]
enum Change {
    Link(String, File),
    Unlink(String),
    Rename(String, String, File),
    MakeDir(String),
}

impl Image {
    fn apply(&mut self, change: &Change) {
        match change {
            Change::Link(path, file) => {
                self.files.insert(path.clone(), Arc::clone(file));
            }
            Change::Unlink(path) => {
                self.files.remove(path);
            }
            Change::Rename(from, to, file) => {
                self.files.remove(from);
                self.files.insert(to.clone(), Arc::clone(file));
            }
            Change::MakeDir(dir) => {
                self.dirs.insert(dir.clone());
            }
        }
    }

    /// Whether all folders above `path` are there.
    fn reaches(&self, path: &str) -> bool {
        let dir = folder(path);
        dir.is_empty() || (self.dirs.contains(dir) && self.reaches(dir))
    }
}

/// The folder of a path: `""` for what stands in the database directory itself.
pub(super) fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(dir, _)| dir)
}

fn missing(path: &str) -> Error {
    Error::new(ErrorKind::NotFound, sqlstate::UNDEFINED_FILE, format!("there is no file {path}"))
}

impl Names {
    fn change(&mut self, path: &str, change: Change) {
        self.live.apply(&change);
        self.pending.push((folder(path).to_owned(), change));
    }

    pub(super) fn find(&self, path: &str) -> Result<File> {
        self.live.files.get(path).cloned().ok_or_else(|| missing(path))
    }

    pub(super) fn files(&self) -> impl Iterator<Item = &File> {
        self.live.files.values()
    }

    pub(super) fn create(&mut self, path: &str) -> Result<File> {
        if !self.live.reaches(path) {
            return Err(missing(folder(path)));
        }
        let file = File::default();
        self.change(path, Change::Link(path.to_owned(), Arc::clone(&file)));
        Ok(file)
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        let file = self.find(from)?;
        self.change(to, Change::Rename(from.to_owned(), to.to_owned(), file));
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &str) -> Result<()> {
        self.find(path)?;
        self.change(path, Change::Unlink(path.to_owned()));
        Ok(())
    }

    pub(super) fn create_dir(&mut self, dir: &str) {
        for end in dir.match_indices('/').map(|(at, _)| at).chain([dir.len()]) {
            let dir = &dir[..end];
            if !self.live.dirs.contains(dir) {
                self.change(dir, Change::MakeDir(dir.to_owned()));
            }
        }
    }

    pub(super) fn list(&self, dir: &str) -> Vec<String> {
        let in_dir = self.live.files.keys().filter(|path| folder(path) == dir);
        in_dir.map(|path| path.rsplit('/').next().unwrap_or(path).to_owned()).collect()
    }

    pub(super) fn list_folders(&self, dir: &str) -> Vec<String> {
        let in_dir = self.live.dirs.iter().filter(|path| folder(path) == dir);
        in_dir.map(|path| path.rsplit('/').next().unwrap_or(path).to_owned()).collect()
    }

    pub(super) fn sync_dir(&mut self, dir: &str) {
        let (synced, pending) = std::mem::take(&mut self.pending).into_iter().partition(|(of, _)| of == dir);
        self.pending = pending;
        let synced: Vec<(String, Change)> = synced;
        for (_, change) in &synced {
            self.durable.apply(change);
        }
    }

    /// The same names and files, with both images.
    pub(super) fn copy(&self) -> Self {
        let mut copies: BTreeMap<*const Mutex<Bytes>, File> = BTreeMap::new();
        let mut copy = |file: &File| {
            let new = || Arc::new(Mutex::new(file.lock().clone()));
            Arc::clone(copies.entry(Arc::as_ptr(file)).or_insert_with(new))
        };
        let mut image = |image: &Image| Image {
            files: image.files.iter().map(|(path, file)| (path.clone(), copy(file))).collect(),
            dirs: image.dirs.clone(),
        };
        let (live, durable) = (image(&self.live), image(&self.durable));
        let pending = self.pending.iter().map(|(dir, change)| {
            let change = match change {
                Change::Link(path, file) => Change::Link(path.clone(), copy(file)),
                Change::Rename(from, to, file) => Change::Rename(from.clone(), to.clone(), copy(file)),
                other => other.clone(),
            };
            (dir.clone(), change)
        });
        Self { live, durable, pending: pending.collect() }
    }

    /// What is found after a power cut: the durable names, each later change made or not, and files torn.
    pub(super) fn after_power_cut(&self, rng: &mut StdRng) -> Self {
        let mut found = self.durable.clone();
        // All, none, or each by itself.
        let share = [0.0, 0.5, 1.0][rng.random_range(0..3)];
        for (_, change) in &self.pending {
            if rng.random_bool(share) {
                found.apply(change);
            }
        }
        let mut torn: BTreeMap<*const Mutex<Bytes>, File> = BTreeMap::new();
        let mut files = BTreeMap::new();
        for (path, file) in &found.files {
            if found.reaches(path) {
                let tear = || Arc::new(Mutex::new(file.lock().after_power_cut(rng)));
                let file = torn.entry(Arc::as_ptr(file)).or_insert_with(tear);
                files.insert(path.clone(), Arc::clone(file));
            }
        }
        let dirs = found.dirs.iter().filter(|dir| found.reaches(dir)).cloned().collect();
        let image = Image { files, dirs };
        Self { live: image.clone(), durable: image, pending: Vec::new() }
    }
}
