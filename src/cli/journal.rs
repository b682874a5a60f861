//! `dropdex journal`: the users' data on disk.
//!
//! `verify`, `stats`, `backup` and `snapshot` ask a running server, which knows how far its files
//! are synced, and otherwise read the files. `dump` reads the files either way. `restore` and
//! `repair` want a folder that nobody uses. Results are one JSON object on one line.

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use chrono::DateTime;
use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;

use crate::accounts::admin::{AdminCommand, AdminReply, JournalFacts};
use crate::accounts::event::Transaction;
use crate::accounts::{Audit, Store, audit, journal_folder};
use crate::cli::{ExitWith, WrongUsage, admin_client};
use crate::config::Config;
use crate::journal::fs::Disk;
use crate::journal::{self, JournalError, Record, ReplayResult};
use crate::workers::admin::{AskError, ask};

/// Verify, back up, restore and repair the users' data
#[derive(Args, Debug)]
pub struct JournalArgs {
    #[command(subcommand)]
    command: JournalCommand,
}

#[derive(Subcommand, Debug)]
enum JournalCommand {
    /// Read every byte and check it against checksums, hash chain, commit mark and snapshots
    ///
    /// Changes nothing; works beside a running server. Exit code 0: sound. 3: nothing acknowledged
    /// is lost, but there is a tail that a crash left (the next start cuts it), or a damaged snapshot
    /// that the log makes up for. 4: data that was acknowledged is damaged or missing. 5: a newer
    /// dropdex wrote it. 1: it could not be read.
    Verify,
    /// Say what the journal holds: segments, snapshots, records, accounts, rows, the state's digest
    Stats,
    /// Print the records that are left in the log, one JSON object a line, secrets left out
    Dump {
        /// The first record to print
        #[arg(long, value_name = "SEQ", default_value_t = 1)]
        from: u64,
        /// The last record to print
        #[arg(long, value_name = "SEQ", default_value_t = u64::MAX)]
        to: u64,
    },
    /// Write everything to one new file; works beside a running server, which goes on
    Backup {
        /// The file, which must not be there yet
        file: PathBuf,
    },
    /// Make a journal from a backup, in a data folder that has none
    Restore {
        /// A file that `backup` wrote
        file: PathBuf,
    },
    /// Write a snapshot now, so that the next start is quick
    Snapshot,
    /// Cut the log after a record and give up what follows; the folder is copied beside itself first
    Repair {
        /// The last record to keep
        #[arg(long, value_name = "SEQ")]
        truncate_after: u64,
        /// That what follows is lost, acknowledged or not
        #[arg(long)]
        i_accept_loss: bool,
    },
}

/// Exit codes of `verify`, beside 0 and 1 and off 2, which is wrong usage.
const BLEMISHED: u8 = 3;
const DAMAGED: u8 = 4;
const NEWER: u8 = 5;

/// Runs the command.
///
/// # Errors
/// What to print on stderr before exit 1, or [`ExitWith`].
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
        JournalCommand::Repair { i_accept_loss: false, .. } => Err(WrongUsage(
            "repair gives up what follows the record; say that you accept it with --i-accept-loss",
        )
        .into()),
        JournalCommand::Repair { truncate_after, .. } => repair(config, truncate_after),
    }
}

/// What `verify` prints.
#[derive(Serialize)]
struct Verdict {
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
            print(&Verdict { status, facts: None, torn_bytes: None, error })?;
            Err(ExitWith { code, why }.into())
        }
    }
}

/// Prints what a start would accept, and ends with a code of its own where it is not as it should be.
fn report(facts: JournalFacts, torn_bytes: Option<u64>) -> anyhow::Result<()> {
    let damaged = facts.snapshots.iter().find(|snapshot| snapshot.damage.is_some());
    let (status, why) = match (torn_bytes, damaged) {
        (Some(_), _) => ("torn", Some("the next start cuts a tail that a crash left".to_owned())),
        (None, Some(snapshot)) => {
            let seq = snapshot.seq;
            let why = format!(
                "the snapshot of record {seq} is damaged; the log makes up for it. `dropdex journal \
                 snapshot` makes a sound one; then remove the file"
            );
            ("snapshot_damaged", Some(why))
        }
        (None, None) => ("sound", None),
    };
    print(&Verdict { status, facts: Some(facts), torn_bytes, error: None })?;
    why.map_or(Ok(()), |why| Err(ExitWith { code: BLEMISHED, why }.into()))
}

/// What an error of an open says of the files; `None` when they could not be read at all.
fn classify(err: &JournalError) -> Option<(&'static str, u8)> {
    match err {
        JournalError::Io { .. } | JournalError::Locked { .. } => None,
        newer if newer.is_of_a_newer_format() => Some(("newer", NEWER)),
        _ => Some(("damaged", DAMAGED)),
    }
}

fn stats(config: &Config) -> anyhow::Result<()> {
    match ask_for_facts(&config.data)? {
        Some(facts) => print(&facts),
        None => print(&audit_here(config)?.facts),
    }
}

/// What a running server says; `None` without one.
fn ask_for_facts(data: &Path) -> anyhow::Result<Option<JournalFacts>> {
    match ask(data, &AdminCommand::InspectJournal) {
        Ok(AdminReply::Journal(facts)) => Ok(Some(facts)),
        Ok(AdminReply::Refused { error }) => bail!(error),
        Ok(_) => Err(admin_client::unexpected_reply()),
        Err(AskError::NotRunning { .. }) => Ok(None),
        Err(err) => Err(err.into()),
    }
}

fn audit_here(config: &Config) -> anyhow::Result<Audit> {
    there_is_one(config)?;
    Ok(audit(&config.data)?)
}

/// An absent journal is no empty one: the path may be wrong.
fn there_is_one(config: &Config) -> anyhow::Result<()> {
    let dir = journal_folder(&config.data);
    if std::fs::read_dir(&dir).is_ok_and(|mut entries| entries.next().is_some()) {
        return Ok(());
    }
    bail!(
        "there is no journal in {}; --data names the data folder, and `dropdex account add` or \
         `dropdex serve` makes a journal in it",
        dir.display()
    )
}

fn dump(config: &Config, from: u64, to: u64) -> anyhow::Result<()> {
    there_is_one(config)?;
    // Beside a server the last records may be under way: its files count as far as they are synced.
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
        journal::Kind::OPENED => json!(["opened"]),
        journal::Kind::CLOSED => json!(["closed"]),
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

/// A reader such as `head` that has seen enough is told from a damaged journal.
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
    there_is_one(config)?;
    match admin_client::execute_command(&command, &config.data, config.plans.clone(), config.clock)?
    {
        AdminReply::Saved(saved) => print(&saved),
        AdminReply::Refused { error } => bail!(error),
        _ => Err(admin_client::unexpected_reply()),
    }
}

fn restore(config: &Config, file: &Path) -> anyhow::Result<()> {
    if ask_for_facts(&config.data)?.is_some() {
        bail!(
            "a server runs on {}; stop it, and restore into a data folder without a journal",
            config.data.display()
        );
    }
    if there_is_one(config).is_ok() {
        bail!(
            "there is a journal in {} already; move it away, or name another data folder with \
             --data",
            journal_folder(&config.data).display()
        );
    }
    std::fs::File::open(file)
        .with_context(|| format!("cannot read the backup {}", file.display()))?;
    let restored = journal::restore(&Disk, file, &journal_folder(&config.data))
        .map_err(|err| not_restored(err, file))?;
    // Opened once as a server would: what cannot be served must not be called restored.
    let store = Store::open(&config.data, config.plans.clone(), config.clock)?;
    let digest = store.state_digest();
    let counts = store.counts();
    store.close().context("the journal could not be closed in order")?;
    if digest != restored.state_digest {
        bail!(
            "the restored state has digest {}, the backup says {}; keep the backup, and report this",
            hex::encode(digest),
            hex::encode(restored.state_digest)
        );
    }
    print(&json!({
        "seq": restored.seq,
        "state_digest": hex::encode(digest),
        "counts": counts,
    }))
}

fn not_restored(err: JournalError, file: &Path) -> anyhow::Error {
    let is_of_the_file = matches!(err, JournalError::Snapshot { .. });
    let err = anyhow::Error::from(err);
    if is_of_the_file {
        err.context(format!("{} is not a whole backup", file.display()))
    } else {
        err
    }
}

fn repair(config: &Config, truncate_after: u64) -> anyhow::Result<()> {
    there_is_one(config)?;
    let report = journal::repair(&Disk, &journal_folder(&config.data), truncate_after)?;
    print(&json!({
        "last_seq": report.last_seq,
        "bytes_cut": report.bytes_cut,
        "removed": report.removed,
        "copied_to": report.copied_to,
    }))
}

fn print(value: &impl Serialize) -> anyhow::Result<()> {
    let mut out = stdout().lock();
    serde_json::to_writer(&mut out, value)?;
    writeln!(out)?;
    Ok(())
}
