//! `dropdex backup` and `dropdex restore`: everything but the index in one file.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail, ensure};
use clap::Args;
use serde::Serialize;
use tempfile::{NamedTempFile, TempDir};

use crate::accounts::Counts;
use crate::accounts::admin::{AdminCommand, Saved};
use crate::backup::{self, BackupFacts, Done, FOLDERS, LAST, Member, SETTINGS, USERS};
use crate::cli::{journal, print_json};
use crate::config::Config;
use crate::intake::inbox;
use crate::vocab::new_file;
use crate::vocab::whole_file;

/// Argument that stands for standard input or output.
const STANDARD: &str = "-";
/// Prefixes of the names of temporary folders in the data folder.
const LINKS: &str = ".backup-";
const ARRIVING: &str = ".restore-";
/// Age at which temporary folders of killed commands are removed.
const LEFTOVER_AFTER: Duration = Duration::from_secs(24 * 3600);
/// Name of the backup's settings file in the restored data folder.
const RESTORED_SETTINGS: &str = "settings-of-backup.toml";
const BUFFER_BYTES: usize = 1 << 20;

/// Write everything but the index to one file; works beside a running server
///
/// The file holds accounts and all that users wrote, the lists, the choice and state of the sources with
/// the accepted terms, the zone files of the last days, popularity lists, tables of suffixes, the change
/// log and the settings file. It is a tar file that ends with SHA256SUMS. It does not hold the index,
/// which is built from the lists, files that the settings name (certificates, passwords), environment
/// variables, and lists that wait in the inbox.
#[derive(Args, Debug)]
pub struct BackupArgs {
    /// The backup file, which must not exist yet; `-` for standard output
    file: PathBuf,
}

/// Restore a backup of `dropdex backup` into a data folder without data, with no server running
///
/// All files are verified before the first is installed. The server builds the index when it starts.
#[derive(Args, Debug)]
pub struct RestoreArgs {
    /// The backup file; `-` for standard input
    file: PathBuf,
    /// Only verify the backup
    #[arg(long)]
    check: bool,
}

/// The output of `backup`.
#[derive(Serialize)]
struct Written {
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<PathBuf>,
    files: u64,
    bytes: u64,
    seq: u64,
    state_digest: String,
    counts: Counts,
}

/// Runs `dropdex backup`.
///
/// # Errors
/// The message to print before exit 1.
pub fn run(args: &BackupArgs, config: &Config) -> anyhow::Result<()> {
    let data = &config.site().data;
    if args.file.as_os_str() == STANDARD {
        let (done, _) = write(config, data, io::stdout().lock())?;
        report_waiting(data);
        return note_time(config, data, &done.facts);
    }
    let file = std::path::absolute(&args.file).context("the name of the file")?;
    ensure!(!file.exists(), "{} exists already; give each backup a new name", file.display());
    let folder = file.parent().unwrap_or(Path::new("/"));
    let mut draft = NamedTempFile::with_prefix_in(".dropdex-backup-", folder)
        .with_context(|| format!("cannot write to the folder {}", folder.display()))?;
    let (done, saved) = write(config, data, draft.as_file_mut())?;
    draft.as_file().sync_all().context("cannot write the backup")?;
    draft.persist_noclobber(&file).with_context(|| format!("cannot make {}", file.display()))?;
    File::open(folder).and_then(|folder| folder.sync_all()).context("cannot write the backup")?;
    note_time(config, data, &done.facts)?;
    report_waiting(data);
    print_json(&Written {
        path: Some(file),
        files: done.files,
        bytes: done.bytes,
        seq: saved.seq,
        state_digest: saved.state_digest,
        counts: saved.counts,
    })
}

fn write(config: &Config, data: &Path, out: impl Write) -> anyhow::Result<(Done, Saved)> {
    remove_leftovers(data);
    let folder = temporary(data, LINKS)?;
    // The journal comes first; see the order in `backup`.
    let path = folder.path().join("users.snap");
    let saved = journal::saved(config, AdminCommand::Backup { path: path.clone() })?;
    let mut members = Vec::new();
    if let Some(settings) = &config.file {
        members.push(Member { name: SETTINGS.to_owned(), path: settings.clone() });
    }
    members.push(Member { name: USERS.to_owned(), path });
    members.extend(backup::link(data, folder.path())?);
    let created = config.clock.now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    let facts = BackupFacts::new(created, saved.seq, saved.state_digest.clone());
    let done = backup::write(BufWriter::with_capacity(BUFFER_BYTES, out), facts, &members)?;
    Ok((done, saved))
}

/// Prints to standard error how many lists the backup lacks.
fn report_waiting(data: &Path) {
    let lists = match inbox::waiting(data).len() {
        0 => return,
        1 => "1 list waits in the inbox and is".to_owned(),
        count => format!("{count} lists wait in the inbox and are"),
    };
    // The backup is complete, even if this line cannot be written.
    let advice = "back up again once they are ingested, or copy the folder";
    let _ = writeln!(io::stderr(), "{lists} not in the backup; {advice}");
}

/// Used by the metric for the age of the newest backup.
fn note_time(config: &Config, data: &Path, facts: &BackupFacts) -> anyhow::Result<()> {
    if config.clock.is_unset() {
        let _ = writeln!(
            io::stderr(),
            "the backup is complete, but the clock of this machine is not set, so its time is unknown and the metric of \
             the last backup stays as it was"
        );
        return Ok(());
    }
    let text = format!("{}\n", facts.created);
    let path = data.join(LAST);
    whole_file::replace(&path, text.as_bytes()).with_context(|| {
        format!("the backup is complete, but {} cannot be written", path.display())
    })
}

fn temporary(data: &Path, prefix: &str) -> anyhow::Result<TempDir> {
    let folder = tempfile::Builder::new().prefix(prefix).tempdir_in(data);
    folder.with_context(|| format!("cannot make a folder in {}", data.display()))
}

/// Removes leftovers of killed commands. Failures are ignored, because they cost only disk space.
fn remove_leftovers(data: &Path) {
    for entry in fs::read_dir(data).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_old = || {
            let modified = entry.metadata().and_then(|found| found.modified()).ok()?;
            SystemTime::now().duration_since(modified).ok()
        };
        if (name.starts_with(LINKS) || name.starts_with(ARRIVING))
            && is_old().is_some_and(|age| age > LEFTOVER_AFTER)
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The output of `restore`.
#[derive(Serialize)]
struct RestoreOutput {
    created: String,
    version: String,
    files: u64,
    bytes: u64,
    seq: u64,
    state_digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<Counts>,
    /// Path of the backup's settings file, if the file differs from the one in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    settings: Option<PathBuf>,
}

/// Runs `dropdex restore`.
///
/// # Errors
/// The message to print before exit 1.
pub fn restore(args: &RestoreArgs, config: &Config) -> anyhow::Result<()> {
    let archive: Box<dyn Read> = if args.file.as_os_str() == STANDARD {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(&args.file);
        Box::new(file.with_context(|| format!("cannot read the backup {}", args.file.display()))?)
    };
    let archive = BufReader::with_capacity(BUFFER_BYTES, archive);
    if args.check {
        return report(backup::read(archive, None)?, None, None);
    }
    let data = &config.site().data;
    let missing: Vec<&Path> = data.ancestors().take_while(|folder| !folder.exists()).collect();
    new_file::create_folder(data).with_context(|| format!("cannot make {}", data.display()))?;
    let restored = restore_into(data, archive, config);
    if restored.is_err() {
        // Removes the created folders that are still empty.
        let _ = missing.into_iter().try_for_each(fs::remove_dir);
    }
    let (done, counts, settings) = restored?;
    report(done, Some(counts), settings)
}

/// Restores into the existing folder `data`. Returns the content of the backup, and the path of its
/// settings file.
fn restore_into(
    data: &Path,
    archive: impl Read,
    config: &Config,
) -> anyhow::Result<(Done, Counts, Option<PathBuf>)> {
    if journal::has_journal(config)? {
        bail!(
            "there is data in {}; move the folder away, or choose another with --data",
            data.display()
        );
    }
    for folder in FOLDERS {
        let folder = data.join(folder);
        ensure!(
            backup::is_empty(&folder)?,
            "{} is not empty; move the data folder away, or choose another with --data",
            folder.display()
        );
    }
    let arriving = temporary(data, ARRIVING)?;
    let done = backup::read(archive, Some(arriving.path()))?;
    backup::put_in_place(arriving.path(), data)?;
    // The journal is moved last, so that a data folder that has a journal is complete.
    let users = journal::restored(config, &arriving.path().join(USERS))?;
    let digest = users.converted_from.as_ref().unwrap_or(&users.state_digest);
    ensure!(
        *digest == done.facts.state_digest,
        "the digest of the restored users' data is {digest}, expected {}; keep the backup and report this",
        done.facts.state_digest
    );
    let settings = keep_settings(config, &arriving.path().join(SETTINGS), data)?;
    if let Some(settings) = &settings {
        let _ = writeln!(
            io::stderr(),
            "the settings of the backup differ from those in use, and are kept in {}; sources that only they define are \
             not fetched until you take them over",
            settings.display()
        );
    }
    Ok((done, users.counts, settings))
}

/// Copies the settings file of the backup to the data folder, unless it equals the one in use.
fn keep_settings(config: &Config, from: &Path, data: &Path) -> anyhow::Result<Option<PathBuf>> {
    let Ok(bytes) = fs::read(from) else { return Ok(None) };
    if config.file.as_ref().is_some_and(|file| fs::read(file).is_ok_and(|used| used == bytes)) {
        return Ok(None);
    }
    let path = data.join(RESTORED_SETTINGS);
    whole_file::replace(&path, &bytes)
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(Some(path))
}

fn report(done: Done, counts: Option<Counts>, settings: Option<PathBuf>) -> anyhow::Result<()> {
    let Done { facts, files, bytes } = done;
    let BackupFacts { version, created, seq, state_digest, .. } = facts;
    print_json(&RestoreOutput {
        created,
        version,
        files,
        bytes,
        seq,
        state_digest,
        counts,
        settings,
    })
}
