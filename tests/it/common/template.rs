//! Installations that are created once and copied. Ingesting a list takes about a second of CPU time
//! in a debug build; copying the result takes a few milliseconds.
//!
//! The name of a template is the hash of the commands that led to it, in order, with their input. A
//! template belongs to one build of the binary and to one day (accounts store their creation time),
//! and is kept in `CARGO_TARGET_TMPDIR`. The first test that needs it runs the commands and stores the
//! result; a file lock makes other tests wait for it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// The parts of an installation that commands change.
const FOLDERS: [&str; 2] = ["data", "index"];
/// Output of the last command of a template.
const OUTPUT: &str = "stdout";
const DAY_SECONDS: u64 = 24 * 60 * 60;

/// A state of an installation, determined by the commands that were run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(blake3::Hash);

impl Template {
    /// The state of a new installation.
    pub fn empty() -> Template {
        Template(blake3::hash(b""))
    }

    /// The state after another command with this input.
    pub fn after(&self, parts: &[&[u8]]) -> Template {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.0.as_bytes());
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Template(hasher.finalize())
    }

    /// Output of the command that led here, if the template exists.
    pub fn output(&self) -> Option<String> {
        fs::read_to_string(self.folder().join(OUTPUT)).ok()
    }

    /// Waits until no other test is creating this template; the lock is held until the file is dropped.
    pub fn lock(&self) -> File {
        let path = self.folder().with_extension("lock");
        let file = File::create(path).expect("a lock file can be made");
        file.lock().expect("a lock file can be locked");
        file
    }

    /// Keeps a copy of the installation in `site` as this template.
    pub fn store(&self, site: &Path, output: &str) {
        let unfinished = self.folder().with_extension("new");
        let _ = fs::remove_dir_all(&unfinished);
        fs::create_dir(&unfinished).expect("a folder can be made");
        for folder in FOLDERS {
            copy(&site.join(folder), &unfinished.join(folder)).expect("an installation is copied");
        }
        fs::write(unfinished.join(OUTPUT), output).expect("a file can be written");
        fs::rename(&unfinished, self.folder()).expect("a folder can be renamed");
    }

    /// Replaces the installation in `site` with a copy of this template.
    pub fn restore(&self, site: &Path) {
        for folder in FOLDERS {
            let to = site.join(folder);
            fs::remove_dir_all(&to).expect("a folder can be removed");
            copy(&self.folder().join(folder), &to).expect("a template is copied");
        }
    }

    fn folder(&self) -> PathBuf {
        root().join(self.0.to_hex().as_str())
    }
}

/// Returns the folder of this build's templates. Templates of other builds and days are removed.
fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let binary = fs::metadata(env!("CARGO_BIN_EXE_dropdex")).expect("the binary is built");
        let since = |time: SystemTime| time.duration_since(UNIX_EPOCH).expect("after 1970");
        let built = since(binary.modified().expect("files have a time")).as_nanos();
        let day = since(SystemTime::now()).as_secs() / DAY_SECONDS;
        let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join("templates");
        let root = all.join(format!("{built}-{}-{day}", binary.len()));
        if fs::create_dir_all(&all).is_ok() && fs::create_dir(&root).is_ok() {
            let others = fs::read_dir(&all).expect("it was just made");
            for other in others.flatten().filter(|other| other.path() != root) {
                let _ = fs::remove_dir_all(other.path());
            }
        }
        assert!(root.is_dir(), "cannot create {}", root.display());
        root
    })
}

/// Copies a folder with everything in it, with its permissions.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    fs::set_permissions(to, fs::metadata(from)?.permissions())
}
