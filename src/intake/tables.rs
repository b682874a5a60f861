//! Files of tables that need updates ([`crate::vocab::tables`]): fetched ones in `tables/` of the data
//! folder, and the Public Suffix List named in the settings.
//!
//! A file is never changed: `psl-2026-11-20_08-12-33_UTC-0a1b2c3d4e5f6071.dat` is a table, its version and
//! the start of its SHA-256. A process reads the newest files at its start, and passes their names to its
//! workers.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::vocab::day::Day;
use crate::vocab::new_file;
use crate::vocab::tables::{Published, Table, TableError};
use crate::vocab::whole_file;

const FOLDER: &str = "tables";
/// Characters of the SHA-256 in a file name.
const SUM_CHARS: usize = 16;
const ENDING: &str = ".dat";

/// The file of a table in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableFile {
    pub table: Table,
    pub path: PathBuf,
    /// SHA-256 of the file, in hex, as read by the process that sent the request.
    pub sha256: String,
    /// Whether the file is named in the settings.
    pub is_fixed: bool,
}

impl TableFile {
    /// Reads the Public Suffix List named in the settings, and uses it in this process.
    ///
    /// # Errors
    /// The file cannot be read or is not such a list.
    pub fn install_fixed(path: &Path) -> anyhow::Result<TableFile> {
        let (table, path) = (Table::Suffixes, path.to_owned());
        let read = || anyhow::Ok(parse(table, &fs::read(&path)?)?);
        let published = read().with_context(|| unusable(table, &path))?;
        let sha256 = published.sha256.clone();
        published.install(true);
        Ok(TableFile { table, path, sha256, is_fixed: true })
    }

    /// Uses the same table as the process that sent a request.
    ///
    /// # Errors
    /// The file cannot be read, or has changed since.
    pub fn install_same(&self) -> anyhow::Result<()> {
        let path = &self.path;
        let read = || anyhow::Ok(parse(self.table, &fs::read(path)?)?);
        let published = read().with_context(|| unusable(self.table, path))?;
        ensure!(
            published.sha256 == self.sha256,
            "{} changed after the server read it; restart the server",
            path.display()
        );
        published.install(self.is_fixed);
        Ok(())
    }
}

fn unusable(table: Table, path: &Path) -> String {
    let what = match table {
        Table::Suffixes => "Public Suffix List",
        Table::Delegated => "list of TLDs",
        Table::Gtlds => "table of gTLDs",
    };
    format!("cannot use the {what} {}", path.display())
}

fn parse(table: Table, bytes: &[u8]) -> Result<Published, TableError> {
    let text = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    Published::parse(table, text, hex::encode(Sha256::digest(bytes)))
}

/// Result for a valid fetched table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub entries: u64,
    pub version: String,
    /// False if the table is already held, or is older than the compiled-in copy.
    pub is_new: bool,
}

/// Why a fetched table is not kept.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error("the table is version {found}, and {held} is held already")]
    Older { found: String, held: String },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// The folder `tables/` of a data folder.
#[derive(Clone, Debug)]
pub struct TablesFolder(PathBuf);

impl TablesFolder {
    /// The folder in the data folder `data`. Nothing is created.
    pub fn new(data: &Path) -> TablesFolder {
        TablesFolder(data.join(FOLDER))
    }

    /// Uses the newest tables in this process, except those in `fixed`. Also returns the reasons why
    /// tables cannot be used; the previous file or the compiled-in copy is then used in their place.
    pub fn install(&self, fixed: Option<TableFile>) -> (Vec<TableFile>, Vec<anyhow::Error>) {
        let (mut used, mut problems) = (Vec::from_iter(fixed), Vec::new());
        for table in Table::ALL {
            if used.iter().any(|file| file.table == table) {
                continue;
            }
            for held in self.held(table) {
                match held.read(table) {
                    // The program, with its compiled-in copy, is newer than this file.
                    Ok(published) if published.version().is_none_or(|it| it.is_outdated()) => break,
                    Ok(published) => {
                        let (path, sha256) = (held.path, published.sha256.clone());
                        published.install(false);
                        used.push(TableFile { table, path, sha256, is_fixed: false });
                        break;
                    }
                    Err(err) => problems.push(err.context(unusable(table, &held.path))),
                }
            }
        }
        (used, problems)
    }

    /// Checks a table fetched on the day `today`, and keeps it for the next start.
    ///
    /// # Errors
    /// The table is incomplete, older than the held one, or cannot be written.
    pub fn keep(&self, table: Table, bytes: &[u8], today: Day) -> Result<Kept, KeepError> {
        let published = parse(table, bytes)?;
        let version = published.check(today)?;
        let kept = |is_new| Kept {
            entries: published.entries as u64,
            version: version.as_str().to_owned(),
            is_new,
        };
        if version.is_outdated() {
            return Ok(kept(false));
        }
        // A damaged file does not prevent storing a complete one.
        let newest = self.held(table).into_iter().find(|held| held.read(table).is_ok());
        match newest {
            Some(held) if held.version == version.as_str() => return Ok(kept(false)),
            Some(held) if held.version.as_str() > version.as_str() => {
                let found = version.as_str().to_owned();
                return Err(KeepError::Older { found, held: held.version });
            }
            _ => {}
        }
        let sum = &published.sha256[..SUM_CHARS];
        let path = self.0.join(format!("{table}-{}-{sum}{ENDING}", version.as_str()));
        new_file::create_folder(&self.0)
            .and_then(|()| whole_file::replace(&path, bytes))
            .map_err(|source| KeepError::Io { path, source })?;
        Ok(kept(true))
    }

    /// Whether a table is held.
    pub fn holds(&self, table: Table) -> bool {
        !self.held(table).is_empty()
    }

    /// Removes tables older than those in `used`. Only the server that holds the data folder may call
    /// this, at its start, because its workers read the files that it names.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn tidy(&self, used: &[TableFile]) -> io::Result<()> {
        for file in used.iter().filter(|file| !file.is_fixed) {
            let held = self.held(file.table).into_iter();
            for old in held.skip_while(|held| held.path != file.path).skip(1) {
                fs::remove_file(old.path)?;
            }
        }
        Ok(())
    }

    /// Returns the files of a table, newest first.
    fn held(&self, table: Table) -> Vec<FetchedFile> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let held = |entry: fs::DirEntry| {
            let name = entry.file_name().into_string().ok()?;
            let stem = name.strip_prefix(table.as_str())?.strip_prefix('-')?;
            let (version, sum) = stem.strip_suffix(ENDING)?.rsplit_once('-')?;
            let (version, sum) = (version.to_owned(), sum.to_owned());
            Some(FetchedFile { version, sum, path: entry.path() })
        };
        let mut all: Vec<FetchedFile> = entries.filter_map(held).collect();
        all.sort_by(|one, other| (&other.version, &other.sum).cmp(&(&one.version, &one.sum)));
        all
    }
}

/// A file in the folder, described by its name.
struct FetchedFile {
    version: String,
    sum: String,
    path: PathBuf,
}

impl FetchedFile {
    fn read(&self, table: Table) -> anyhow::Result<Published> {
        let published = parse(table, &fs::read(&self.path)?)?;
        ensure!(published.sha256.starts_with(&self.sum), "the file has changed; remove it");
        Ok(published)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TODAY: &str = "2026-11-23";

    fn tlds(version: &str, more: &str) -> Vec<u8> {
        let many: String = (0..1_400).map(|at| format!("XN--{at}\n")).collect();
        let known = "COM\nNET\nORG\nDE\nFR\nUK\nXN--P1AI\n";
        format!("# Version {version}, Last Updated Mon Nov 23 2026\n{known}{many}{more}")
            .into_bytes()
    }

    fn keep(folder: &TablesFolder, bytes: &[u8]) -> Result<(String, bool), String> {
        let kept = folder.keep(Table::Delegated, bytes, TODAY.parse().expect("a day"));
        kept.map(|kept| (kept.version, kept.is_new)).map_err(|err| err.to_string())
    }

    #[test]
    fn the_newest_complete_table_is_used_and_tables_never_get_older() {
        let data = tempfile::tempdir().expect("a folder");
        let folder = TablesFolder::new(data.path());
        assert!(!folder.holds(Table::Delegated));
        let version = |day: &str| format!("202611{day}00");
        let kept = |day: &str, is_new| Ok((version(day), is_new));
        assert_eq!(keep(&folder, &tlds(&version("20"), "")), kept("20", true));
        assert_eq!(keep(&folder, &tlds(&version("20"), "")), kept("20", false));
        assert_eq!(keep(&folder, &tlds(&version("22"), "NEW\n")), kept("22", true));
        let older = keep(&folder, &tlds(&version("21"), "")).expect_err("older");
        assert!(older.contains("2026112100") && older.contains("2026112200"), "{older}");
        let compiled = Ok(("2020010100".to_owned(), false));
        assert_eq!(keep(&folder, &tlds("2020010100", "")), compiled, "the compiled one is newer");
        assert!(keep(&folder, b"<html>").is_err());
        let held = folder.held(Table::Delegated);
        assert_eq!(held.len(), 2);

        // A damaged file is skipped, and does not prevent storing a complete one.
        let newest = &held[0].path;
        let whole = fs::read(newest).expect("readable");
        fs::write(newest, &whole[..whole.len() - 5]).expect("written");
        assert!(held[0].read(Table::Delegated).is_err());
        assert_eq!(keep(&folder, &tlds(&version("21"), "")), kept("21", true));
        assert_eq!(keep(&folder, &tlds(&version("22"), "NEW\n")), kept("22", true));
        let newest = folder.held(Table::Delegated).remove(0);
        let file = TableFile {
            table: Table::Delegated,
            sha256: newest.read(Table::Delegated).expect("whole").sha256,
            path: newest.path,
            is_fixed: false,
        };
        folder.tidy(std::slice::from_ref(&file)).expect("removed");
        assert_eq!(folder.held(Table::Delegated).len(), 1);
        fs::write(&file.path, tlds(&version("22"), "OTHER\n")).expect("written");
        assert!(file.install_same().is_err_and(|err| err.to_string().contains("restart")));
    }
}
