//! Ownership of data folders. A service cannot use files that root creates in its folders, so commands
//! that write such files do not run as root if another user owns the folders.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use crate::exit::{self, ExitWith};

/// Subfolders whose owner is the user of the data folder, even if another user created the data
/// folder.
const USED: [&str; 2] = ["journal", "corpus"];

/// Checks that this process may write to `folder`: any user other than root may, and root may if no
/// other user owns the files.
///
/// # Errors
/// The process runs as root, and the files of the folder belong to another user.
pub fn check(folder: &Path) -> anyhow::Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let folder = std::path::absolute(folder)?;
    let Some((path, uid)) = owner_of(&folder).filter(|(_, uid)| *uid != 0) else { return Ok(()) };
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = name_of(uid, &passwd).unwrap_or_else(|| format!("\\#{uid}"));
    let why = format!(
        "this runs as root, but {} belongs to {name} (uid {uid}), who could not use files that root makes \
         there; run it as that user, `sudo -u {name} dropdex ...`, or give the folder to root with chown",
        path.display()
    );
    Err(ExitWith::new(exit::FOLDER, why).into())
}

/// Checks that a data folder, if it exists, is a folder, and that only its owner and its group may write there.
/// Other users could replace the server's socket or files with their own.
///
/// # Errors
/// It is a file, or other users may write there.
pub fn check_private(folder: &Path) -> anyhow::Result<()> {
    let Ok(facts) = fs::metadata(folder) else { return Ok(()) };
    let folder = folder.display();
    let why = if !facts.is_dir() {
        format!("the data folder {folder} is not a folder; choose one with --data")
    } else if facts.mode() & 0o002 != 0 {
        format!(
            "all users of this machine may write to the data folder {folder}; run `chmod o-w {folder}`, or \
             choose a folder within it with --data"
        )
    } else {
        return Ok(());
    };
    Err(ExitWith::new(exit::FOLDER, why).into())
}

/// Returns the owner of the files that a server or an ingest created in a folder or, without such
/// files, the owner of the folder or of its parent.
fn owner_of(folder: &Path) -> Option<(PathBuf, u32)> {
    let used = USED.iter().map(|name| folder.join(name));
    let parent = folder.parent().map(Path::to_owned);
    let mut places = used.chain([folder.to_owned()]).chain(parent);
    places.find_map(|place| Some((place.clone(), fs::metadata(&place).ok()?.uid())))
}

/// Finds the name of a user in the text of `/etc/passwd`.
fn name_of(uid: u32, passwd: &str) -> Option<String> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_their_number() {
        let passwd =
            "root:x:0:0:root:/root:/bin/sh\ndropdex:x:998:997::/var/lib/dropdex:/bin/false\n";
        assert_eq!(name_of(998, passwd).as_deref(), Some("dropdex"));
        assert_eq!(name_of(997, passwd), None);
        assert_eq!(name_of(0, "broken\n"), None);
    }
}
