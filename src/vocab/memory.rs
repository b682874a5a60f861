//! Memory that this process may use. The defaults of byte budgets are shares of this memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Default if the system reports nothing: small enough for any machine.
const UNKNOWN_BYTES: u64 = 1 << 30;

/// Returns the memory of this machine, or the limit of the process's control group if that is
/// lower. It is read once.
pub fn available_bytes() -> u64 {
    static BYTES: LazyLock<u64> = LazyLock::new(|| read(Path::new("/")));
    *BYTES
}

/// Reads the memory of the system whose `/proc` and `/sys` are below `root`.
fn read(root: &Path) -> u64 {
    let limits = groups(root).into_iter().filter_map(|file| number(&file));
    total(root).into_iter().chain(limits).min().unwrap_or(UNKNOWN_BYTES)
}

/// Reads `MemTotal`, which is in kibibytes.
fn total(root: &Path) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the limit files of the process's control group and of all its ancestors, for cgroup
/// versions 1 and 2. In a container, the path may be that of the host, and only the root exists.
fn groups(root: &Path) -> Vec<PathBuf> {
    let text = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let mut files = Vec::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (folder, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|it| it == "memory") => {
                ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let ancestors = Path::new(path.trim_start_matches('/')).ancestors();
        files.extend(ancestors.map(|group| root.join(folder).join(group).join(file)));
    }
    files
}

/// Reads a limit; `None` for `max`.
fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_with(files: &[(&str, &str)]) -> u64 {
        let root = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("created");
            fs::write(path, text).expect("written");
        }
        read(root.path())
    }

    #[test]
    fn the_lowest_limit_applies() {
        let machine = ("proc/meminfo", "MemTotal:       1000 kB\nMemFree: 5 kB\n");
        let v2 = ("proc/self/cgroup", "0::/a.slice/b\n");
        let v1 = ("proc/self/cgroup", "5:cpu,cpuacct:/b\n4:memory:/b\n");
        let max = ("sys/fs/cgroup/a.slice/b/memory.max", "max\n");
        for (files, bytes) in [
            (vec![], UNKNOWN_BYTES),
            (vec![machine], 1_024_000),
            (vec![machine, v2], 1_024_000),
            (vec![machine, v2, max], 1_024_000),
            (vec![machine, v2, max, ("sys/fs/cgroup/a.slice/memory.max", "5000\n")], 5_000),
            (vec![machine, v2, ("sys/fs/cgroup/memory.max", "7000\n")], 7_000),
            (vec![machine, v1, ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9000")], 9_000),
            (vec![machine, v1, ("sys/fs/cgroup/memory/b/memory.limit_in_bytes", "8")], 8),
            (vec![machine, v2, ("sys/fs/cgroup/memory.max", "9000000")], 1_024_000),
        ] {
            assert_eq!(read_with(&files), bytes, "{files:?}");
        }
    }

    #[test]
    fn the_memory_of_this_machine_is_known() {
        assert!(available_bytes() > 64 << 20, "{}", available_bytes());
    }
}
