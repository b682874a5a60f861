//! Check of free disk space before and during a build. Other data, especially the journal, is on
//! the same disk, so some space is always left free.

use std::path::{Path, PathBuf};

use rustix::fs::{StatVfs, statvfs};

use crate::error::NoRoom;

/// Upper bound of the space left free, which is otherwise a tenth of the file system.
const LEFT_ALONE_MAX: u64 = 1 << 30;
/// Required free space, in tenths of the size of a generation: the size is an estimate, and
/// trigrams are written twice.
const TIMES_SIZE_TENTHS: u64 = 22;

/// The file system of a folder.
#[derive(Clone, Debug)]
pub struct Space {
    folder: PathBuf,
    left_alone: u64,
}

impl Space {
    /// Returns the file system of `folder`.
    ///
    /// # Errors
    /// The system call fails.
    pub fn for_folder(folder: &Path) -> Result<Space, NoRoom> {
        let StatVfs { f_blocks, f_frsize, .. } = stat(folder)?;
        let left_alone = (f_blocks * f_frsize / 10).min(LEFT_ALONE_MAX);
        Ok(Space { folder: folder.to_owned(), left_alone })
    }

    /// Checks that a generation of about `size` bytes and its temporary files fit.
    ///
    /// # Errors
    /// There is not enough free space.
    pub fn check(&self, size: u64, temporary: u64) -> Result<(), NoRoom> {
        let needed = size.saturating_mul(TIMES_SIZE_TENTHS) / 10;
        self.leave_room(needed.saturating_add(temporary))
    }

    /// Checks that writing `bytes` bytes leaves enough space free.
    ///
    /// # Errors
    /// There is not enough free space.
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
    fn a_lack_of_space_is_reported_with_figures() {
        let folder = tempfile::tempdir().expect("a folder");
        let space = Space::for_folder(folder.path()).expect("a file system");
        space.check(0, 0).expect("the tests have room");
        let refused = space.check(u64::MAX / 100, 0).expect_err("no name has it").to_string();
        assert!(refused.contains("MB free") && refused.contains("--index"), "{refused}");
        let nowhere =
            Space::for_folder(&folder.path().join("gone")).expect_err("not there").to_string();
        assert!(nowhere.contains("cannot read the free space"), "{nowhere}");
    }
}
