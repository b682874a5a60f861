//! `dropdex cluster`: the shared log of several nodes, for operators.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use clap::{Args, Subcommand};
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::accounts::admin::{AdminCommand, AdminReply};
use crate::accounts::{Store, StoreOptions, journal_folder};
use crate::cli::{WrongUsage, admin_client, journal, print_json};
use crate::cluster::facts::NodeFacts;
use crate::config::Config;
use crate::config::cluster::ClusterSettings;
use crate::journal::fs::Disk;
use crate::journal::{JournalError, set_aside};
use crate::nodes::jetstream::{JetStream, RefusedStream};
use crate::nodes::store::FileStore;
use crate::nodes::store::transfer::Transfer;

/// Time for all nodes to respond.
const ANSWERS_WAIT: Duration = Duration::from_secs(1);
/// Time for all nodes to reach a checkpoint and compute its digest.
const CHECKPOINT_WAIT: Duration = Duration::from_secs(30);

/// Maximum wait for more of the log when a node leaves.
const REST_WAIT: Duration = Duration::from_secs(20);

/// Set up and compare several nodes that share one log
#[derive(Args, Debug)]
pub struct ClusterArgs {
    #[command(subcommand)]
    command: ClusterCommand,
}

#[derive(Subcommand, Debug)]
enum ClusterCommand {
    /// Create the stream of the shared log, and check servers and stream
    Init,
    /// Show the position and health of all nodes that respond; exit code 1 if writes are refused or a node lacks data
    Status,
    /// Compare the data of all nodes after the same record; exit code 1 if it differs
    Compare {
        /// Nodes that must respond [default: as many as replicas]
        #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
        nodes: Option<u16>,
    },
    /// Upload a backup of the users' data to the file store, for nodes that join
    Backup,
    /// Start from the newest backup of the cluster; the server must be stopped
    Join {
        /// Replace the journal of the data folder, which becomes `journal.before-join-1`
        #[arg(long)]
        replace: bool,
    },
    /// Restart the shared log from a backup; all servers must be stopped
    ///
    /// Puts the backup into the file store and creates the stream again. Next, run
    /// `dropdex cluster join --replace` on every node, and start all servers.
    Restore {
        /// The backup file, of `dropdex journal backup`
        file: PathBuf,
        /// Confirm that all changes after the backup are lost
        #[arg(long)]
        i_accept_loss: bool,
    },
    /// Turn this data folder back into that of a single node; the server must be stopped
    ///
    /// If the settings have `[cluster]`, first reads the part of the shared log that the node
    /// lacks.
    Leave {
        /// Leave without the NATS servers; records that this node has not read are lost
        #[arg(long)]
        i_accept_loss: bool,
    },
}

/// Runs a command.
///
/// # Errors
/// The message to print before exit 1.
pub fn run(args: ClusterArgs, config: &Config) -> anyhow::Result<()> {
    if let ClusterCommand::Leave { i_accept_loss } = args.command {
        return leave(config, i_accept_loss);
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
                "no node of the stream `{}` responds; are they running?",
                log.stream
            );
            nodes.iter().try_for_each(print_json)?;
            report(&nodes, log.replicas.into(), runtime.block_on(stream.servers()))
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
        ClusterCommand::Leave { .. } => Ok(()),
    }
}

fn backup(
    config: &Config,
    runtime: &Runtime,
    transfer: &Transfer<FileStore>,
) -> anyhow::Result<()> {
    let folder = journal::temporary_folder(config)?;
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
    let folder = journal::temporary_folder(config)?;
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
        let aside = set_aside(&Disk, &dir, "join")?;
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
    let folder = journal::temporary_folder(config)?;
    // The restored data becomes that of a single node, which can start a new log.
    let alone = Config { data: folder.path().join("data"), ..config.clone() };
    let restored = journal::restored(&alone, file)?;
    let store = Store::open(&alone.data, config.plans.clone(), config.clock)?;
    store.leave_cluster()?;
    let path = folder.path().join("backup");
    let saved = store.backup(&path)?;
    store.close().context("cannot close the journal")?;
    // The backup is stored first, so that the stream is removed only if the nodes can start from a
    // backup.
    let stored = runtime.block_on(transfer.put_backup(&path, config.clock.now()))?;
    runtime.block_on(stream.replace())?;
    print_json(&json!({
        "bytes": stored.bytes,
        "state_digest": hex::encode(saved.state_digest),
        "counts": restored.counts,
    }))
}

/// Returns the nodes that respond, sorted by name.
async fn nodes(stream: &JetStream) -> anyhow::Result<Vec<NodeFacts>> {
    let answers = stream.ask_nodes(ANSWERS_WAIT).await?;
    let nodes = answers.iter().map(|answer| serde_json::from_slice(answer));
    let mut nodes: Vec<NodeFacts> = nodes.collect::<Result<_, _>>().context("a node's answer")?;
    nodes.sort_by(|one, other| one.node.cmp(&other.node));
    Ok(nodes)
}

/// Appends a checkpoint to the shared log.
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

/// Prints problems of nodes and servers.
///
/// # Errors
/// Writes are refused on a node, or it lacks data of others.
fn report(
    nodes: &[NodeFacts],
    wanted: usize,
    servers: Result<Vec<String>, RefusedStream>,
) -> anyhow::Result<()> {
    let silent: BTreeSet<_> = nodes.iter().flat_map(|node| &node.silent).collect();
    let silent = silent.into_iter().filter(|it| nodes.iter().all(|node| node.node != **it));
    let mut remarks: Vec<_> =
        silent.map(|it| format!("the node `{it}` does not respond")).collect();
    if nodes.len() < wanted {
        remarks.push(format!("{} of {wanted} nodes answered", nodes.len()));
    }
    let (lacking, refused) = match servers {
        Ok(lacking) => (lacking, None),
        Err(err) => (Vec::new(), Some(err.to_string())),
    };
    remarks.extend(lacking);
    for remark in remarks {
        tracing::warn!("{remark}");
    }
    let newest = nodes.iter().map(|node| node.seq).max().unwrap_or(0);
    let mut problems: Vec<String> = refused.into_iter().collect();
    for NodeFacts { node, seq, caught_up, cut_off, halted, clock_untrusted, .. } in nodes {
        let problem = match (halted, cut_off) {
            (Some(reason), _) => {
                format!("the node `{node}` is halted and refuses writes: {reason}")
            }
            (None, Some(reason)) => format!("the node `{node}` cannot write: {reason}"),
            _ if !caught_up => {
                format!("the node `{node}` is {} records behind or does not read", newest - seq)
            }
            _ if *clock_untrusted => format!("the clock of the node `{node}` is wrong"),
            _ => continue,
        };
        problems.push(problem);
    }
    ensure!(problems.is_empty(), "{}", problems.join("\n"));
    Ok(())
}

fn leave(config: &Config, accepts_loss: bool) -> anyhow::Result<()> {
    let compared = match &config.cluster {
        Some(cluster) if !accepts_loss => Some(read_rest(config, cluster).context(
            "the rest of the shared log cannot be read, and leaving without it may lose acknowledged writes; start the \
             NATS servers, or, if they are gone for good, add --i-accept-loss on the node with the highest position",
        )?),
        _ => None,
    };
    let position = match compared {
        Some(position) => Some(position),
        None => position(config)?,
    };
    let (plans, clock) = (config.plans.clone(), config.clock);
    match admin_client::execute_command(&AdminCommand::Leave, &config.data, plans, clock)? {
        AdminReply::Done => {}
        AdminReply::Refused { error } => bail!(error),
        _ => return Err(admin_client::unexpected_reply()),
    }
    if compared.is_none() {
        tracing::warn!(
            "the data was not compared with the shared log; what other nodes wrote after this position is not in it"
        );
    }
    print_json(&json!({ "left": true, "position": position }))
}

/// Returns the last record of the shared log in the data folder; `None` while a server runs.
fn position(config: &Config) -> anyhow::Result<Option<u64>> {
    match Store::open(&config.data, config.plans.clone(), config.clock) {
        Ok(store) => {
            let position = store.log_position();
            store.close().context("cannot close the journal")?;
            Ok(Some(position))
        }
        Err(JournalError::Locked { .. }) => Ok(None),
        Err(err) => Err(err.into()),
    }
}

/// Reads the part of the shared log that this node lacks. Returns the new position.
fn read_rest(config: &Config, cluster: &ClusterSettings) -> anyhow::Result<u64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(JetStream::new(cluster.log.clone()).check())?;
    let options = StoreOptions::new(&config.data, config.plans.clone(), config.clock);
    let stream = JetStream::new(cluster.log.clone());
    let store = Store::open_shared(options, &cluster.log.node, stream, Arc::new(|_, _| {}))?;
    let mut last = (store.log_position(), Instant::now());
    let read = loop {
        let round = async { timeout(Duration::from_secs(1), store.caught_up()).await };
        if runtime.block_on(round).is_ok() {
            break Ok(store.log_position());
        }
        if let Err(word) = store.health() {
            break Err(anyhow!(
                "this node is {word}; see `dropdex cluster status` of another node"
            ));
        }
        if store.log_position() > last.0 {
            last = (store.log_position(), Instant::now());
        } else if last.1.elapsed() > REST_WAIT {
            break Err(anyhow!("the NATS servers do not respond; position {}", last.0));
        }
    };
    store.close().context("cannot close the journal")?;
    read
}
