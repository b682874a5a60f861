//! `dropdex restore`: a backup on an empty machine.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::Args;
use serde::Serialize;

use crate::accounts::Counts;
use crate::backup::encrypt::{Identities, decrypted};
use crate::backup::{self, ARRIVING, BackupFacts, Done, FOLDERS, SETTINGS, USERS};
use crate::cli::backup::{OpenStore, STANDARD, stored_name};
use crate::cli::{journal, print_json};
use crate::config::Config;
use crate::vocab::new_file;
use crate::vocab::whole_file;

/// Name of the backup's settings file in the restored data folder.
const RESTORED_SETTINGS: &str = "settings-of-backup.toml";
const BUFFER_BYTES: usize = 1 << 20;

/// Restore a backup of `dropdex backup` into a data folder without data, with no server running
///
/// All files are verified before the first is installed. The server builds the index when it starts. With
/// [backup] in the settings file, a stored backup is restored by its name, also on an empty machine.
#[derive(Args, Debug)]
pub struct RestoreArgs {
    /// The backup: a file, `-` for standard input, a name of `dropdex backup list`, or `latest`
    #[arg(value_name = "FILE|NAME")]
    file: PathBuf,
    /// Only verify the backup
    #[arg(long)]
    check: bool,
    /// File with the private key of an encrypted backup, as `age-keygen` writes it
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
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
pub fn run(args: &RestoreArgs, config: &Config) -> anyhow::Result<()> {
    let identities = args.identity.as_deref().map(Identities::read).transpose()?;
    match stored_name(&args.file) {
        Some(wanted) => {
            let opened = OpenStore::new(config)?;
            let name = opened.find(wanted)?;
            let stored = opened.store.read(name)?;
            restore(stored, args.check, identities.as_ref(), config)
                .with_context(|| name.to_string())
        }
        None if args.file.as_os_str() == STANDARD => {
            restore(io::stdin().lock(), args.check, identities.as_ref(), config)
        }
        None => {
            let file = File::open(&args.file)
                .with_context(|| format!("cannot read the backup {}", args.file.display()))?;
            restore(file, args.check, identities.as_ref(), config)
        }
    }
}

fn restore(
    file: impl Read,
    only_checks: bool,
    identities: Option<&Identities>,
    config: &Config,
) -> anyhow::Result<()> {
    let archive = decrypted(BufReader::with_capacity(BUFFER_BYTES, file), identities)?;
    let archive = BufReader::with_capacity(BUFFER_BYTES, archive);
    if only_checks {
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
    let arriving = backup::temporary(data, ARRIVING)?;
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
