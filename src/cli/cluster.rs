//! `dropdex cluster`: the shared log of several nodes, for operators.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand};
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::accounts::admin::{AdminCommand, AdminReply};
use crate::accounts::{Store, journal_folder};
use crate::cli::{WrongUsage, admin_client, journal, print_json};
use crate::cluster::facts::NodeFacts;
use crate::cluster::jetstream::JetStream;
use crate::config::Config;
use crate::config::cluster::ClusterSettings;
use crate::journal::fs::Disk;
use crate::journal::set_aside;
use crate::publication::store::FileStore;
use crate::publication::transfer::Transfer;

/// Time for all nodes to answer.
const ANSWERS_WAIT: Duration = Duration::from_secs(1);
/// Time for all nodes to reach a checkpoint and compute its digest.
const CHECKPOINT_WAIT: Duration = Duration::from_secs(30);

/// Set up and compare several nodes that share one log
#[derive(Args, Debug)]
pub struct ClusterArgs {
    #[command(subcommand)]
    command: ClusterCommand,
}

#[derive(Subcommand, Debug)]
enum ClusterCommand {
    /// Make the stream of the shared log, and check servers and stream
    Init,
    /// Show the position and health of all nodes that answer
    Status,
    /// Compare the data of all nodes after the same record; exit code 1 if it differs
    Compare {
        /// Nodes that must answer [default: as many as replicas]
        #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
        nodes: Option<u16>,
    },
    /// Put a backup of the users' data into the store of files, for nodes that join
    Backup,
    /// Begin with the newest backup of the cluster; the server must be stopped
    Join {
        /// Replace the journal of the data folder, which becomes `journal.before-join-1`
        #[arg(long)]
        replace: bool,
    },
    /// Begin the shared log again with a backup; all servers must be stopped
    ///
    /// Puts the backup into the store of files and creates the stream again. Next, run
    /// `dropdex cluster join --replace` on every node, and start all servers.
    Restore {
        /// The backup file, of `dropdex journal backup`
        file: PathBuf,
        /// Confirm that all changes after the backup are lost
        #[arg(long)]
        i_accept_loss: bool,
    },
    /// Make this data folder that of a single node again; the server must be stopped
    Leave,
}

/// Runs a command.
///
/// # Errors
/// The message to print before exit 1.
pub fn run(args: ClusterArgs, config: &Config) -> anyhow::Result<()> {
    if let ClusterCommand::Leave = args.command {
        return leave(config);
    }
    let Some(ClusterSettings { log, s3, bytes_per_second, .. }) = &config.cluster else {
        bail!("there is no section [cluster] in the settings file; choose one with --config");
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let stream = JetStream::new(log.clone());
    let transfer = || {
        let files = FileStore::new(log, s3.as_ref(), &config.outbound)?;
        anyhow::Ok(Transfer::new(files, *bytes_per_second))
    };
    match args.command {
        ClusterCommand::Init => {
            let created = runtime.block_on(stream.init())?;
            print_json(
                &json!({ "stream": log.stream, "replicas": log.replicas, "created": created }),
            )
        }
        ClusterCommand::Status => {
            let nodes = runtime.block_on(nodes(&stream))?;
            ensure!(
                !nodes.is_empty(),
                "no node of the stream `{}` answers; are they running?",
                log.stream
            );
            nodes.iter().try_for_each(print_json)
        }
        ClusterCommand::Compare { nodes } => {
            let wanted = nodes.map_or(log.replicas.into(), usize::from);
            let id = checkpoint(config)?;
            runtime.block_on(compare(&stream, id, wanted))
        }
        ClusterCommand::Backup => backup(config, &runtime, &transfer()?),
        ClusterCommand::Join { replace } => join(config, replace, &runtime, &transfer()?),
        ClusterCommand::Restore { i_accept_loss: false, .. } => Err(WrongUsage(
            "restore removes all changes after the backup from the cluster; confirm with --i-accept-loss",
        )
        .into()),
        ClusterCommand::Restore { file, .. } => {
            restore(config, &file, &runtime, &stream, &transfer()?)
        }
        ClusterCommand::Leave => Ok(()),
    }
}

fn backup(
    config: &Config,
    runtime: &Runtime,
    transfer: &Transfer<FileStore>,
) -> anyhow::Result<()> {
    let folder = temporary_folder(config)?;
    let path = std::path::absolute(folder.path().join("backup"))?;
    let saved = journal::saved(config, AdminCommand::Backup { path: path.clone() })?;
    let stored = runtime.block_on(transfer.put_backup(&path, config.clock.now()))?;
    print_json(
        &json!({ "seq": saved.seq, "bytes": stored.bytes, "state_digest": saved.state_digest }),
    )
}

fn join(
    config: &Config,
    replace: bool,
    runtime: &Runtime,
    transfer: &Transfer<FileStore>,
) -> anyhow::Result<()> {
    let dir = journal_folder(&config.data);
    let has_journal = journal::has_journal(config)?;
    ensure!(
        replace || !has_journal,
        "there is a journal in {} already; add --replace to put it aside",
        dir.display()
    );
    let folder = temporary_folder(config)?;
    let path = folder.path().join("backup");
    let fetched = runtime.block_on(async {
        let Some(backup) = transfer.backup().await? else { return Ok(None) };
        transfer.fetch_backup(&backup, &path).await.map(|()| Some(backup))
    });
    let backup = fetched?.context(
        "there is no backup in the store; run `dropdex cluster backup` on a node of the cluster, or, if it began \
         without data, just start this one",
    )?;
    if has_journal {
        let aside = set_aside(&Disk, &dir)?;
        tracing::info!(to = %aside.display(), "put the journal of this data folder aside");
    }
    tracing::info!(made = %backup.made, bytes = backup.bytes, "begins with the newest backup");
    print_json(&journal::restored(config, &path)?)
}

fn restore(
    config: &Config,
    file: &Path,
    runtime: &Runtime,
    stream: &JetStream,
    transfer: &Transfer<FileStore>,
) -> anyhow::Result<()> {
    if let Some(node) = runtime.block_on(nodes(stream))?.first() {
        bail!("the node `{}` is running; stop the servers of all nodes first", node.node);
    }
    let folder = temporary_folder(config)?;
    // What is restored there is data of a single node, with which another log can begin.
    let alone = Config { data: folder.path().join("data"), ..config.clone() };
    let restored = journal::restored(&alone, file)?;
    let store = Store::open(&alone.data, config.plans.clone(), config.clock)?;
    store.leave_cluster()?;
    let path = folder.path().join("backup");
    let saved = store.backup(&path)?;
    store.close().context("cannot close the journal")?;
    // First, so that the stream is only removed if nodes have something to begin with.
    let stored = runtime.block_on(transfer.put_backup(&path, config.clock.now()))?;
    runtime.block_on(stream.replace())?;
    print_json(&json!({
        "bytes": stored.bytes,
        "state_digest": hex::encode(saved.state_digest),
        "counts": restored.counts,
    }))
}

/// A folder beside the journal: a backup may be as large.
fn temporary_folder(config: &Config) -> anyhow::Result<TempDir> {
    std::fs::create_dir_all(&config.data)
        .and_then(|()| tempfile::Builder::new().prefix(".backup-").tempdir_in(&config.data))
        .with_context(|| format!("cannot make a folder in {}", config.data.display()))
}

/// Returns the nodes that answer, in order of their names.
async fn nodes(stream: &JetStream) -> anyhow::Result<Vec<NodeFacts>> {
    let answers = stream.ask_nodes(ANSWERS_WAIT).await?;
    let nodes = answers.iter().map(|answer| serde_json::from_slice(answer));
    let mut nodes: Vec<NodeFacts> = nodes.collect::<Result<_, _>>().context("a node's answer")?;
    nodes.sort_by(|one, other| one.node.cmp(&other.node));
    Ok(nodes)
}

/// Puts a checkpoint into the shared log.
fn checkpoint(config: &Config) -> anyhow::Result<u64> {
    let reply = admin_client::execute_on_server(&AdminCommand::Checkpoint, &config.data)?;
    match reply {
        AdminReply::Checkpoint { id } => Ok(id),
        AdminReply::Refused { error } => bail!(error),
        _ => Err(admin_client::unexpected_reply()),
    }
}

async fn compare(stream: &JetStream, id: u64, wanted: usize) -> anyhow::Result<()> {
    let begun = Instant::now();
    let digest = |node: &NodeFacts| {
        let found = node.checkpoints.iter().find(|checkpoint| checkpoint.id == id);
        found.map(|checkpoint| checkpoint.digest.clone())
    };
    let nodes = loop {
        let nodes = nodes(stream).await?;
        let are_there = nodes.len() >= wanted
            && nodes.iter().all(|node| node.halted.is_some() || digest(node).is_some());
        if are_there || begun.elapsed() > CHECKPOINT_WAIT {
            break nodes;
        }
    };
    for node in &nodes {
        print_json(&json!({ "node": node.node, "digest": digest(node), "halted": node.halted }))?;
    }
    let digests: BTreeSet<_> = nodes.iter().map(digest).collect();
    ensure!(
        nodes.len() >= wanted,
        "{} of {wanted} nodes answered; --nodes says how many there are",
        nodes.len()
    );
    ensure!(
        digests.len() == 1 && !digests.contains(&None),
        "the nodes differ: keep the data folders, and restore those in the minority from a backup of another node"
    );
    Ok(())
}

fn leave(config: &Config) -> anyhow::Result<()> {
    let (plans, clock) = (config.plans.clone(), config.clock);
    match admin_client::execute_command(&AdminCommand::Leave, &config.data, plans, clock)? {
        AdminReply::Done => print_json(&json!({ "left": true })),
        AdminReply::Refused { error } => bail!(error),
        _ => Err(admin_client::unexpected_reply()),
    }
}
