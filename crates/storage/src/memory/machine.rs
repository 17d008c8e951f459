//! How much memory this process may take: that of the machine or, in a container, of its group.
//!
//! Comes in: what Linux tells in files. Goes out: bytes, or nothing on other systems.

use std::fs::read_to_string;
use std::path::Path;
use std::sync::OnceLock;

use crate::limits;

/// Of the memory that there is: the part that a database takes by default.
const DEFAULT_SHARE: u64 = 2;

/// The default of `memory_limit`: half of what this process may take, which is looked up once.
#[must_use]
pub fn memory_limit_default() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| match available(Path::new("/")) {
        Some(bytes) => (bytes / DEFAULT_SHARE).max(limits::MEMORY_LIMIT_MIN),
        None => limits::MEMORY_LIMIT_DEFAULT,
    })
}

/// What this process may take; `root` is where the files of the system are.
fn available(root: &Path) -> Option<u64> {
    let machine = total(&read_to_string(root.join("proc/meminfo")).ok()?)?;
    // Of both versions of control groups; what has no limit says "max", or a number larger than any memory.
    let groups = ["sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let limits = groups.iter().filter_map(|group| read_to_string(root.join(group)).ok()?.trim().parse().ok());
    Some(limits.fold(machine, u64::min))
}

/// The bytes of the machine, in kB in the line that begins with `MemTotal:`.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_container_has_less_than_the_machine() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(available(root.path()), None);
        write("proc/meminfo", "MemFree:  1 kB\nMemTotal:       16384 kB\n");
        assert_eq!(available(root.path()), Some(16 << 20));
        write("sys/fs/cgroup/memory.max", "max\n");
        assert_eq!(available(root.path()), Some(16 << 20));
        write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(available(root.path()), Some(16 << 20));
        write("sys/fs/cgroup/memory.max", "4096\n");
        assert_eq!(available(root.path()), Some(4_096));
        assert_eq!(total("MemTotal: much"), None);
    }

    #[test]
    fn there_is_a_default() {
        assert!(memory_limit_default() >= limits::MEMORY_LIMIT_MIN);
    }
}
