//! What was found out about files, remembered while they do not change.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use super::open::FoundFile;
use crate::csv::detect::Detected;
use crate::sql::FileRequest;

/// Most tables of files that are remembered.
const TABLES_MAX: usize = 64;

/// See the module. A file that has other bytes has another length, or was changed at another time.
#[derive(Debug, Default)]
pub(crate) struct FileCache(Mutex<VecDeque<Entry>>);

#[derive(Debug)]
struct Entry {
    request: FileRequest,
    files: Arc<[FoundFile]>,
    found: Arc<Detected>,
}

impl FileCache {
    pub(super) fn get(&self, request: &FileRequest, files: &[FoundFile]) -> Option<Arc<Detected>> {
        let entries = self.0.lock();
        let entry = entries.iter().find(|entry| entry.is_of(request));
        entry.filter(|entry| *entry.files == *files).map(|entry| entry.found.clone())
    }

    pub(super) fn put(&self, request: &FileRequest, files: &Arc<[FoundFile]>, found: Arc<Detected>) {
        let mut entries = self.0.lock();
        entries.retain(|entry| !entry.is_of(request));
        if entries.len() == TABLES_MAX {
            entries.pop_front();
        }
        entries.push_back(Entry { request: request.clone(), files: files.clone(), found });
    }
}

impl Entry {
    /// Whatever the function is called.
    fn is_of(&self, request: &FileRequest) -> bool {
        let FileRequest { function: _, paths, hints, compression } = request;
        self.request.paths == *paths && self.request.hints == *hints && self.request.compression == *compression
    }
}
