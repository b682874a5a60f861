//! `dropdex journal`: verifies, backs up, restores and repairs the users' data.
//!
//! `verify`, `stats`, `backup` and `snapshot` go to a running server, which knows how far its files are
//! synced; without a server they read the files. `dump` always reads the files. `restore`, `repair` and
//! `upgrade` need a folder that is not in use. Results are one JSON object on one line.

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use chrono::DateTime;
use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::accounts::admin::{AdminCommand, AdminReply, JournalFacts, Saved};
use crate::accounts::event::{EventError, Transaction};
use crate::accounts::{Audit, Counts, Store, audit, back_up_former, journal_folder};
use crate::cli::{WrongUsage, admin_client, print_json};
use crate::cluster::record::{SHARED, SharedRecord, copies};
use crate::config::Config;
use crate::exit::ExitWith;
use crate::journal::fs::Disk;
use crate::journal::{self, JournalError, Record, ReplayResult, SnapshotReport};
use crate::vocab::new_file;
use crate::workers::admin::{AskError, ask};

/// Verify, back up, restore and repair the users' data
#[derive(Args, Debug)]
pub struct JournalArgs {
    #[command(subcommand)]
    command: JournalCommand,
}

#[derive(Subcommand, Debug)]
enum JournalCommand {
    /// Verify every byte against checksums, hash chain, commit mark and snapshots
    ///
    /// Changes nothing; works beside a running server. Exit code 0: sound. 3: no acknowledged data is
    /// lost, but a crash left an incomplete tail, which the next start cuts, or a snapshot is damaged
    /// whose data the log still has. 4: acknowledged data is damaged or missing. 5: a newer version of
    /// dropdex wrote the journal. 1: the journal cannot be read.
    Verify,
    /// Show journal statistics: segments, snapshots, records, accounts, rows and the state digest
    Stats,
    /// Print the records in the log, one JSON object per line, without secrets
    Dump {
        /// First record to print
        #[arg(long, value_name = "SEQ", default_value_t = 1)]
        from: u64,
        /// Last record to print
        #[arg(long, value_name = "SEQ", default_value_t = u64::MAX)]
        to: u64,
    },
    /// Write a backup of only the users' data to a new file; works beside a running server
    ///
    /// It does not contain lists, sources, zone files, the change log and settings; see `dropdex
    /// backup`.
    Backup {
        /// The backup file, which must not exist yet
        file: PathBuf,
    },
    /// Create the journal from a backup of the users' data, in a data folder without one
    Restore {
        /// The backup file
        file: PathBuf,
    },
    /// Write a snapshot now, so that the next start is fast
    Snapshot,
    /// Convert a journal that an older version wrote
    ///
    /// Needed once, before the first start of this version. The old journal is kept beside the new one, as
    /// `journal.before-upgrade-1`; nothing of it is changed or lost.
    Upgrade,
    /// Cut the log after a record and discard the rest, after copying the folder
    Repair {
        /// Last record to keep
        #[arg(long, value_name = "SEQ")]
        truncate_after: u64,
        /// Confirm that all later records are lost, acknowledged or not
        #[arg(long)]
        i_accept_loss: bool,
    },
}

impl JournalArgs {
    /// Whether the command itself writes to the data folder.
    pub fn writes_files(&self) -> bool {
        use JournalCommand::{Repair, Restore, Upgrade};
        matches!(self.command, Restore { .. } | Repair { .. } | Upgrade)
    }
}

/// Exit codes of `verify` besides 0 and 1; 2 is wrong usage.
const BLEMISHED: u8 = 3;
const DAMAGED: u8 = 4;
const NEWER: u8 = 5;

/// Runs the command.
///
/// # Errors
/// The message to print before exit 1, or [`ExitWith`].
pub fn run(args: JournalArgs, config: &Config) -> anyhow::Result<()> {
    match args.command {
        JournalCommand::Verify => verify(config),
        JournalCommand::Stats => stats(config),
        JournalCommand::Dump { from, to } => dump(config, from, to),
        JournalCommand::Backup { file } => {
            let path = std::path::absolute(&file).context("the name of the file")?;
            save(config, AdminCommand::Backup { path })
        }
        JournalCommand::Snapshot => save(config, AdminCommand::Snapshot),
        JournalCommand::Restore { file } => restore(config, &file),
        JournalCommand::Upgrade => upgrade(config),
        JournalCommand::Repair { i_accept_loss: false, .. } => {
            Err(WrongUsage("repair discards all records after SEQ; confirm with --i-accept-loss")
                .into())
        }
        JournalCommand::Repair { truncate_after, .. } => repair(config, truncate_after),
    }
}

/// The output of `verify`.
#[derive(Serialize)]
struct JournalVerdict {
    status: &'static str,
    #[serde(flatten)]
    facts: Option<JournalFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    torn_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

fn verify(config: &Config) -> anyhow::Result<()> {
    if let Some(facts) = ask_for_facts(&config.data)? {
        return report(facts, None);
    }
    match audit_here(config) {
        Ok(Audit { facts, torn_bytes }) => report(facts, torn_bytes),
        Err(err) => {
            let Some((status, code)) = err.downcast_ref().and_then(classify) else {
                return Err(err);
            };
            let why = format!("{err:#}");
            let error = Some(why.clone());
            print_json(&JournalVerdict { status, facts: None, torn_bytes: None, error })?;
            Err(ExitWith { code, why }.into())
        }
    }
}

/// Prints the facts of a journal that a start would accept. A torn tail or a damaged snapshot sets
/// the exit code.
fn report(facts: JournalFacts, torn_bytes: Option<u64>) -> anyhow::Result<()> {
    let damaged = facts.snapshots.iter().find(|snapshot| snapshot.damage.is_some());
    let (status, why) = match (torn_bytes, damaged) {
        (Some(_), _) => {
            ("torn", Some("a crash left an incomplete tail; the next start cuts it".to_owned()))
        }
        (None, Some(snapshot)) => {
            let seq = snapshot.seq;
            let why = format!(
                "the snapshot of record {seq} is damaged; the log still has its data. Write a new one with \
                 `dropdex journal snapshot`, then remove the damaged file"
            );
            ("snapshot_damaged", Some(why))
        }
        (None, None) => ("sound", None),
    };
    print_json(&JournalVerdict { status, facts: Some(facts), torn_bytes, error: None })?;
    why.map_or(Ok(()), |why| Err(ExitWith { code: BLEMISHED, why }.into()))
}

/// Returns the status and exit code for an error; `None` if the files could not be read.
fn classify(err: &JournalError) -> Option<(&'static str, u8)> {
    match err {
        JournalError::Io { .. } | JournalError::Locked { .. } => None,
        newer if newer.is_of_a_newer_format() => Some(("newer", NEWER)),
        _ => match event_error(err) {
            Some(EventError::Newer(_)) => Some(("newer", NEWER)),
            Some(EventError::Former) => None,
            _ => Some(("damaged", DAMAGED)),
        },
    }
}

/// Returns why an event or a snapshot's item could not be decoded.
fn event_error(err: &JournalError) -> Option<&EventError> {
    match err {
        JournalError::Replay { source, .. } | JournalError::ReplaySnapshot { source, .. } => {
            source.downcast_ref()
        }
        _ => None,
    }
}

fn stats(config: &Config) -> anyhow::Result<()> {
    match ask_for_facts(&config.data)? {
        Some(facts) => print_json(&facts),
        None => print_json(&audit_here(config)?.facts),
    }
}

/// Returns the facts from a running server; `None` if none is running.
fn ask_for_facts(data: &Path) -> anyhow::Result<Option<JournalFacts>> {
    match ask(data, &AdminCommand::InspectJournal) {
        Ok(AdminReply::Journal(facts)) => Ok(Some(facts)),
        Ok(AdminReply::Refused { error }) => bail!(error),
        Ok(_) => Err(admin_client::unexpected_reply()),
        Err(AskError::NotRunning { .. }) => Ok(None),
        Err(err) => Err(err.into()),
    }
}

/// Returns the reason for which the next start would refuse the journal. `None` without a journal. No server may run.
pub(super) fn damage(config: &Config) -> Option<String> {
    ensure_exists(config).ok()?;
    audit(&config.data).err().map(|err| err.to_string())
}

fn audit_here(config: &Config) -> anyhow::Result<Audit> {
    ensure_exists(config)?;
    Ok(audit(&config.data)?)
}

/// Checks that a journal exists, because the path may be wrong.
fn ensure_exists(config: &Config) -> anyhow::Result<()> {
    let dir = journal_folder(&config.data);
    if std::fs::read_dir(&dir).is_ok_and(|mut entries| entries.next().is_some()) {
        return Ok(());
    }
    bail!(
        "there is no journal in {}; set the data folder with --data, or create a journal with \
         `dropdex account add` or `dropdex serve`",
        dir.display()
    )
}

fn dump(config: &Config, from: u64, to: u64) -> anyhow::Result<()> {
    ensure_exists(config)?;
    // A running server may be writing the last records, so only synced ones are read.
    let synced = ask_for_facts(&config.data)?.map(|facts| facts.seq);
    let mut out = std::io::BufWriter::new(stdout().lock());
    journal::dump(&Disk, &journal_folder(&config.data), synced, &mut |_, _, record| {
        let wanted = (from..=to).contains(&record.fields.seq);
        if wanted { dump_record(record, &mut out) } else { Ok(()) }
    })
    .map_err(unwrap_output_error)?;
    out.flush()?;
    Ok(())
}

fn dump_record(record: &Record<'_>, out: &mut impl Write) -> ReplayResult {
    let fields = record.fields;
    let at = i64::try_from(fields.unix_ms).ok().and_then(DateTime::from_timestamp_millis);
    let at = at.map(|at| at.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string());
    let events = match fields.kind {
        journal::RecordKind::OPENED => json!(["opened"]),
        journal::RecordKind::CLOSED => json!(["closed"]),
        SHARED => shared_events(record.payload),
        kind => match Transaction::decode(kind, record.payload) {
            Ok(transaction) => transaction.describe(),
            Err(err) => json!({ "undecodable": err.to_string() }),
        },
    };
    let line = json!({
        "seq": fields.seq,
        "at": at,
        "epoch": fields.epoch,
        "kind": fields.kind.number(),
        "bytes": record.payload.len(),
        "events": events,
    });
    writeln!(out, "{line}")?;
    Ok(())
}

/// Returns the events in a journal record that copies records of the shared log.
fn shared_events(payload: &[u8]) -> Value {
    let describe = || -> Result<Vec<Value>, Box<dyn std::error::Error + Send + Sync>> {
        let mut events = Vec::new();
        for (seq, bytes) in copies(payload)? {
            let SharedRecord { node, parts, .. } = SharedRecord::decode(bytes)?;
            for (kind, part) in parts {
                let part = Transaction::decode(kind, part)?.describe();
                events.push(json!({ "shared": seq, "node": node, "events": part }));
            }
        }
        Ok(events)
    };
    describe().map_or_else(|err| json!({ "undecodable": err.to_string() }), Value::Array)
}

/// Keeps an I/O error of the output recognisable, because a reader such as `head` may have closed
/// the pipe.
fn unwrap_output_error(err: JournalError) -> anyhow::Error {
    match err {
        JournalError::Replay { source, .. } if source.is::<std::io::Error>() => {
            match source.downcast::<std::io::Error>() {
                Ok(err) => (*err).into(),
                Err(other) => anyhow::anyhow!(other),
            }
        }
        other => other.into(),
    }
}

fn save(config: &Config, command: AdminCommand) -> anyhow::Result<()> {
    print_json(&saved(config, command)?)
}

/// Writes a backup or snapshot.
pub(super) fn saved(config: &Config, command: AdminCommand) -> anyhow::Result<Saved> {
    ensure_exists(config)?;
    match admin_client::execute_command(&command, &config.data, config.plans.clone(), config.clock)?
    {
        AdminReply::Saved(saved) => Ok(saved),
        AdminReply::Refused { error } => bail!(error),
        _ => Err(admin_client::unexpected_reply()),
    }
}

fn restore(config: &Config, file: &Path) -> anyhow::Result<()> {
    if has_journal(config)? {
        bail!(
            "there is a journal in {} already; move it away, or choose another data folder with \
             --data",
            journal_folder(&config.data).display()
        );
    }
    print_json(&restored(config, file)?)
}

/// Whether a journal exists; it may then be replaced by another one.
///
/// # Errors
/// A server is using the journal.
pub(super) fn has_journal(config: &Config) -> anyhow::Result<bool> {
    if ask_for_facts(&config.data)?.is_some() {
        bail!("a server is running on {}; stop it", config.data.display());
    }
    Ok(ensure_exists(config).is_ok())
}

/// Returns the last record, digest and counts of a backup.
#[derive(Serialize)]
pub(super) struct Restored {
    pub seq: u64,
    pub state_digest: String,
    pub counts: Counts,
    /// Digest in the backup of an older version, which encoded rows differently.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub converted_from: Option<String>,
}

/// Creates the journal of an empty data folder from a backup, which may be of an older version. If it fails, the
/// folder is empty again.
pub(super) fn restored(config: &Config, file: &Path) -> anyhow::Result<Restored> {
    std::fs::File::open(file)
        .with_context(|| format!("cannot read the backup {}", file.display()))?;
    let dir = journal_folder(&config.data);
    let restored = journal::restore(&Disk, file, &dir).map_err(|err| not_restored(err, file))?;
    let opened = open_restored(config, &restored);
    if opened.is_err() {
        std::fs::remove_dir_all(&dir)
            .with_context(|| format!("cannot remove {}", dir.display()))?;
    }
    opened
}

/// Opens a restored journal as a server would, because a state that cannot be served must not count as restored. A
/// journal of the older layout is converted.
fn open_restored(config: &Config, restored: &SnapshotReport) -> anyhow::Result<Restored> {
    let store = match Store::open(&config.data, config.plans.clone(), config.clock) {
        Err(err) if matches!(event_error(&err), Some(EventError::Former)) => {
            let folder = temporary_folder(config)?;
            let converted = folder.path().join("backup");
            let dir = journal_folder(&config.data);
            back_up_former(&Disk, &dir, &converted)?
                .with_context(|| format!("{} changed meanwhile", dir.display()))?;
            std::fs::remove_dir_all(&dir)
                .with_context(|| format!("cannot remove {}", dir.display()))?;
            let converted_from = Some(hex::encode(restored.state_digest));
            return Ok(Restored { converted_from, ..self::restored(config, &converted)? });
        }
        store => store?,
    };
    let digest = store.state_digest();
    let counts = store.counts();
    store.close().context("cannot close the journal")?;
    if digest != restored.state_digest {
        bail!(
            "the digest of the restored state is {}, expected {}; keep the backup and report this",
            hex::encode(digest),
            hex::encode(restored.state_digest)
        );
    }
    let state_digest = hex::encode(digest);
    Ok(Restored { seq: restored.seq, state_digest, counts, converted_from: None })
}

fn not_restored(err: JournalError, file: &Path) -> anyhow::Error {
    let is_damaged_file = matches!(err, JournalError::Snapshot { .. });
    let err = anyhow::Error::from(err);
    if is_damaged_file {
        err.context(format!("{} is not a complete backup", file.display()))
    } else {
        err
    }
}

/// Converts a journal of an older version. The new journal replaces the old one only once it is complete and has been
/// opened.
fn upgrade(config: &Config) -> anyhow::Result<()> {
    has_journal(config)?;
    ensure_exists(config)?;
    let dir = journal_folder(&config.data);
    let folder = temporary_folder(config)?;
    let path = folder.path().join("backup");
    if back_up_former(&Disk, &dir, &path)?.is_none() {
        bail!("this version wrote the journal in {}; there is nothing to convert", dir.display());
    }
    let new = Config { data: folder.path().join("data"), ..config.clone() };
    let Restored { seq, state_digest, counts, .. } = restored(&new, &path)?;
    let kept_as = journal::set_aside(&Disk, &dir, "upgrade")?;
    std::fs::rename(journal_folder(&new.data), &dir)
        .and_then(|()| std::fs::File::open(&config.data)?.sync_all())
        .with_context(|| {
            format!("cannot make {}; the old one is {}", dir.display(), kept_as.display())
        })?;
    print_json(&json!({
        "seq": seq,
        "state_digest": state_digest,
        "counts": counts,
        "kept_as": kept_as,
    }))
}

/// Creates a temporary folder in the data folder, because a backup may be as large as the journal.
pub(super) fn temporary_folder(config: &Config) -> anyhow::Result<TempDir> {
    new_file::create_folder(&config.data)
        .and_then(|()| tempfile::Builder::new().prefix(".backup-").tempdir_in(&config.data))
        .with_context(|| format!("cannot make a folder in {}", config.data.display()))
}

fn repair(config: &Config, truncate_after: u64) -> anyhow::Result<()> {
    ensure_exists(config)?;
    let report = journal::repair(&Disk, &journal_folder(&config.data), truncate_after)?;
    print_json(&json!({
        "last_seq": report.last_seq,
        "bytes_cut": report.bytes_cut,
        "removed": report.removed,
        "copied_to": report.copied_to,
    }))
}
