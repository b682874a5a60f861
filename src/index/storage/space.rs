//! Room on the disk for a generation. In: the folder it is to stand in. Out: yes, or what it would take
//! and what there is. Others share the disk, the journal above all, so some of it is left alone.

use std::path::{Path, PathBuf};

use rustix::fs::{StatVfs, statvfs};

use crate::index::error::NoRoom;

/// A tenth of the file system is left alone, but never more than this.
const LEFT_ALONE_MAX: u64 = 1 << 30;
/// So many times the size of a generation must be free in tenths: it is an estimate, and the trigrams
/// are written twice over.
const TIMES_SIZE_TENTHS: u64 = 22;

/// The file system of a folder.
#[derive(Clone, Debug)]
pub struct Space {
    folder: PathBuf,
    left_alone: u64,
}

impl Space {
    /// That of `folder`.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn for_folder(folder: &Path) -> Result<Space, NoRoom> {
        let StatVfs { f_blocks, f_frsize, .. } = stat(folder)?;
        let left_alone = (f_blocks * f_frsize / 10).min(LEFT_ALONE_MAX);
        Ok(Space { folder: folder.to_owned(), left_alone })
    }

    /// Whether a generation of about `size` bytes can be built.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn check(&self, size: u64) -> Result<(), NoRoom> {
        self.leave_room(size.saturating_mul(TIMES_SIZE_TENTHS) / 10)
    }

    /// Whether so many bytes leave others theirs.
    ///
    /// # Errors
    /// They do not.
    pub fn leave_room(&self, bytes: u64) -> Result<(), NoRoom> {
        let StatVfs { f_bavail, f_frsize, .. } = stat(&self.folder)?;
        let free = f_bavail * f_frsize;
        let needed = bytes.saturating_add(self.left_alone);
        if free >= needed {
            return Ok(());
        }
        let Space { folder, left_alone } = self.clone();
        Err(NoRoom::Full { folder, free, needed, left_alone })
    }
}

fn stat(folder: &Path) -> Result<StatVfs, NoRoom> {
    statvfs(folder).map_err(|err| NoRoom::Unknown { folder: folder.to_owned(), source: err.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_with_the_figures() {
        let folder = tempfile::tempdir().expect("a folder");
        let space = Space::for_folder(folder.path()).expect("a file system");
        space.check(0).expect("the tests have room");
        let refused = space.check(u64::MAX / 100).expect_err("nobody has that").to_string();
        assert!(refused.contains("MB free") && refused.contains("--index"), "{refused}");
        let nowhere =
            Space::for_folder(&folder.path().join("gone")).expect_err("not there").to_string();
        assert!(nowhere.contains("cannot be asked"), "{nowhere}");
    }
}
