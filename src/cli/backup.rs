//! `dropdex backup`: everything but the index in one file, which is named, or stored where `[backup]` says.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::{Context, ensure};
use clap::{Args, Subcommand};
use serde::Serialize;
use tempfile::NamedTempFile;
use tokio::runtime::Runtime;

use crate::accounts::Counts;
use crate::accounts::admin::{AdminCommand, Saved};
use crate::backup::encrypt::Identities;
use crate::backup::name::BackupName;
use crate::backup::save::{self, Verified};
use crate::backup::settings::BackupSettings;
use crate::backup::store::{BackupStore, Stored, parse_checksum};
use crate::backup::{self, BackupFacts, Collected, Users};
use crate::cli::{journal, print_json};
use crate::config::Config;
use crate::intake::inbox;

/// Argument that stands for standard input or output.
pub(super) const STANDARD: &str = "-";
/// Argument that stands for the newest stored backup.
const NEWEST: &str = "latest";

/// Back up everything but the index; works beside a running server
///
/// A backup holds accounts and all that users wrote, the lists (publishers do not keep past days), the choice
/// and state of the sources with the accepted terms, the zone files of the last days, popularity lists,
/// tables of suffixes, facts, the change log and the settings file. It is a tar file that ends with
/// SHA256SUMS. It does not hold the index, which is built from the lists, files that the settings name
/// (certificates, passwords), environment variables, and lists that wait in the inbox.
///
/// `dropdex backup FILE` writes one file. With [backup] in the settings, the server makes backups on a
/// schedule, and `now`, `list` and `verify` use the same folder or bucket.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct BackupArgs {
    #[command(subcommand)]
    command: Option<BackupCommand>,
    /// The backup file, which must not exist yet; `-` for standard output
    #[arg(required = true)]
    file: Option<PathBuf>,
}

#[derive(Subcommand, Debug)]
enum BackupCommand {
    /// Make a backup where [backup] says, verify it, and remove the oldest
    Now,
    /// List the stored backups, newest first
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Read a backup to its end and compare all checksums
    ///
    /// An encrypted backup is decrypted with --identity; without, only the checksum beside it is compared.
    Verify {
        /// A stored backup, as `list` shows it, or a file [default: the newest stored backup]
        name: Option<PathBuf>,
        /// File with the private key of an encrypted backup, as `age-keygen` writes it
        #[arg(long, value_name = "FILE")]
        identity: Option<PathBuf>,
    },
}

impl BackupArgs {
    /// Whether the command itself writes to the data folder.
    pub fn writes_files(&self) -> bool {
        matches!(self.command, None | Some(BackupCommand::Now))
    }
}

/// The output of `backup FILE` and `backup now`.
#[derive(Serialize)]
struct Written {
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stored: Option<StoredOutput>,
    files: u64,
    bytes: u64,
    seq: u64,
    state_digest: String,
    counts: Counts,
}

/// A stored backup.
#[derive(Serialize)]
struct StoredOutput {
    name: String,
    /// Length of the file, which may be encrypted.
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

impl StoredOutput {
    fn new(Stored { name, bytes }: Stored, sha256: Option<String>) -> StoredOutput {
        StoredOutput { name: name.to_string(), bytes, sha256 }
    }
}

/// The output of `backup verify`.
#[derive(Serialize)]
struct VerifyOutput {
    name: String,
    bytes: u64,
    sha256: String,
    /// `verified`, or `encrypted` if only the checksum of the file was compared.
    content: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    facts: Option<BackupFacts>,
}

/// Runs `dropdex backup`.
///
/// # Errors
/// The message to print before exit 1.
pub fn run(args: &BackupArgs, config: &Config) -> anyhow::Result<()> {
    match (&args.command, &args.file) {
        (None, Some(file)) => write_file(file, config),
        (Some(BackupCommand::Now) | None, _) => now(config),
        (Some(BackupCommand::List { json }), _) => list(config, *json),
        (Some(BackupCommand::Verify { name, identity }), _) => {
            verify(config, name.as_deref(), identity.as_deref())
        }
    }
}

fn write_file(file: &Path, config: &Config) -> anyhow::Result<()> {
    let data = &config.site().data;
    if file.as_os_str() == STANDARD {
        let (collected, _) = collect(config, data)?;
        let done = collected.write(io::stdout().lock())?;
        report_waiting(data);
        return note_time(config, data, &done.facts);
    }
    let file = std::path::absolute(file).context("the name of the file")?;
    ensure!(!file.exists(), "{} exists already; give each backup a new name", file.display());
    let folder = file.parent().unwrap_or(Path::new("/"));
    let mut draft = NamedTempFile::with_prefix_in(".dropdex-backup-", folder)
        .with_context(|| format!("cannot write to the folder {}", folder.display()))?;
    let (collected, saved) = collect(config, data)?;
    let done = collected.write(draft.as_file_mut())?;
    draft.as_file().sync_all().context("cannot write the backup")?;
    draft.persist_noclobber(&file).with_context(|| format!("cannot make {}", file.display()))?;
    File::open(folder).and_then(|folder| folder.sync_all()).context("cannot write the backup")?;
    note_time(config, data, &done.facts)?;
    report_waiting(data);
    print_json(&Written {
        path: Some(file),
        stored: None,
        files: done.files,
        bytes: done.bytes,
        seq: saved.seq,
        state_digest: saved.state_digest,
        counts: saved.counts,
    })
}

fn now(config: &Config) -> anyhow::Result<()> {
    let opened = OpenStore::new(config)?;
    let data = &config.site().data;
    let (collected, saved) = collect(config, data)?;
    let (now, never) = (config.clock.now(), AtomicBool::new(false));
    let made = save::save(&opened.store, opened.settings, &collected, now, &never)?;
    let (stored, Verified { sha256, content, .. }) = made;
    let done = content.context("a new backup has no content")?;
    note_time(config, data, &done.facts)?;
    report_waiting(data);
    print_json(&Written {
        path: None,
        stored: Some(StoredOutput::new(stored, Some(sha256))),
        files: done.files,
        bytes: done.bytes,
        seq: saved.seq,
        state_digest: saved.state_digest,
        counts: saved.counts,
    })
}

fn list(config: &Config, json: bool) -> anyhow::Result<()> {
    let stored = OpenStore::new(config)?.store.list()?;
    if json {
        let outputs = stored.into_iter().map(|it| StoredOutput::new(it, None));
        return print_json(&outputs.collect::<Vec<_>>());
    }
    let mut out = io::stdout().lock();
    if stored.is_empty() {
        writeln!(out, "no backups yet; `dropdex backup now` makes one")?;
    }
    for Stored { name, bytes } in stored {
        writeln!(out, "{name:<34} {bytes:>15} bytes")?;
    }
    Ok(())
}

fn verify(config: &Config, name: Option<&Path>, identity: Option<&Path>) -> anyhow::Result<()> {
    let identities = identity.map(Identities::read).transpose()?;
    let name = name.unwrap_or(Path::new(NEWEST));
    let (name, verified) = match stored_name(name) {
        Some(wanted) => {
            let opened = OpenStore::new(config)?;
            let name = opened.find(wanted)?;
            let sum = opened.store.checksum(name)?;
            let verified = save::verify(opened.store.read(name)?, Some(&sum), identities.as_ref());
            (name.to_string(), verified.with_context(|| name.to_string())?)
        }
        None => {
            let file = File::open(name);
            let file = file.with_context(|| format!("cannot read {}", name.display()))?;
            // A backup that was copied from a store may have its checksum beside it.
            let mut beside = name.as_os_str().to_owned();
            beside.push(".sha256");
            let sum = std::fs::read_to_string(beside).ok();
            let sum = sum.as_deref().and_then(parse_checksum);
            let verified = save::verify(file, sum.as_deref(), identities.as_ref());
            let shown = name.display().to_string();
            let verified = verified.with_context(|| shown.clone())?;
            (shown, verified)
        }
    };
    let Verified { bytes, sha256, content } = verified;
    let facts = content.map(|it| it.facts);
    let content = if facts.is_some() { "verified" } else { "encrypted" };
    print_json(&VerifyOutput { name, bytes, sha256, content, facts })
}

/// The store of `[backup]`.
pub(super) struct OpenStore<'a> {
    pub settings: &'a BackupSettings,
    pub store: BackupStore,
    /// Runs the requests to a bucket.
    _runtime: Runtime,
}

impl<'a> OpenStore<'a> {
    /// Opens the store.
    ///
    /// # Errors
    /// The settings have no section `[backup]`, or it is invalid.
    pub fn new(config: &'a Config) -> anyhow::Result<OpenStore<'a>> {
        let settings = config.backup.as_ref().context(
            "there is no section [backup] in the settings file; add one, choose a file with --config, or name a backup file",
        )?;
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let handle = runtime.handle().clone();
        let store = BackupStore::open(&settings.place, &config.outbound, handle)?;
        Ok(OpenStore { settings, store, _runtime: runtime })
    }

    /// Returns the name of a stored backup: the wanted one, or the newest.
    ///
    /// # Errors
    /// No backup is stored, or none has this name.
    pub fn find(&self, wanted: Wanted) -> anyhow::Result<BackupName> {
        let mut stored = self.store.list()?.into_iter().map(|it| it.name);
        match wanted {
            Wanted::Newest => {
                stored.next().context("there are no stored backups; `dropdex backup now` makes one")
            }
            Wanted::Name(name) => stored.find(|it| *it == name).with_context(|| {
                format!("there is no stored backup {name}; `dropdex backup list` shows them")
            }),
        }
    }
}

/// A stored backup, as an argument names it.
#[derive(Clone, Copy)]
pub(super) enum Wanted {
    Newest,
    Name(BackupName),
}

/// Returns the stored backup that an argument names; `None` for a file, such as a copy of a stored backup in the
/// current folder.
pub(super) fn stored_name(argument: &Path) -> Option<Wanted> {
    match argument.to_str()? {
        NEWEST => Some(Wanted::Newest),
        name => BackupName::parse(name).filter(|_| !argument.is_file()).map(Wanted::Name),
    }
}

/// Collects the files of a backup, by a running server or without one.
fn collect(config: &Config, data: &Path) -> anyhow::Result<(Collected, Saved)> {
    let mut saved = None;
    let collected = Collected::new(data, config.file.as_ref(), config.clock, |path| {
        let written = journal::saved(config, AdminCommand::Backup { path })?;
        let users = Users { seq: written.seq, state_digest: written.state_digest.clone() };
        saved = Some(written);
        Ok(users)
    })?;
    Ok((collected, saved.context("the users' data was not saved")?))
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
    backup::note_time(data, facts)
}
