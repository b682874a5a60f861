//! The shared log in a stream of NATS JetStream.
//!
//! `data/docs/cluster.md` lists the checks of servers and stream.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::OrderedConfig;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::response::Response;
use async_nats::jetstream::stream::RawMessageErrorKind;
use async_nats::jetstream::{self, Context};
use async_nats::{ConnectOptions, Message, ServerAddr};
use futures_util::StreamExt;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::sync::{Mutex, mpsc};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::peers::Peers;
use crate::cluster::facts::NodeFacts;
use crate::cluster::record::RECORD_BYTES_MAX;
use crate::cluster::settings::SharedLogSettings;
use crate::cluster::stream::{Published, Records, Stream, StreamError, StreamRecord};

/// Timeout of a request. Servers elect another leader within seconds; requests without a response are repeated.
const ANSWER_WAIT: Duration = Duration::from_secs(2);
/// Timeout of a request for an object.
const OBJECT_WAIT: Duration = Duration::from_secs(20);
/// Time within which another node with the same name would respond.
const NAMESAKE_WAIT: Duration = Duration::from_millis(300);
/// Interval between messages with this node's health.
const TELL_EVERY: Duration = Duration::from_secs(1);
/// Servers silent for longer are excluded from the quorum.
const SILENT_MAX: Duration = Duration::from_secs(10);
/// Records prefetched from the server.
const RECORDS_AHEAD: usize = 1_024;
/// Oldest supported server version: the first whose `sync_interval: always` survives a power failure.
const VERSION_MIN: [u64; 3] = [2, 10, 27];

/// Reason why a stream or its server is rejected.
#[derive(Debug, Error)]
pub enum RefusedStream {
    #[error("cannot use the NATS servers: {0}")]
    Unreachable(String),
    #[error("writes are refused: {0}; check the NATS servers, their disks and their logs")]
    NotWritable(String),
    #[error("cannot read the credentials {}: {source}", path.display())]
    Credentials { path: PathBuf, source: std::io::Error },
    #[error(
        "a node `{0}` is already running: give each node its own `node`, or stop the other server with this name"
    )]
    SameName(String),
    #[error(
        "the NATS server {name} has version {version}; at least 2.10.27 is needed, because older ones lose \
         acknowledged records when the power fails: upgrade it"
    )]
    TooOld { name: String, version: String },
    #[error(
        "the NATS server {name} accepts messages of {bytes} bytes; set its `max_payload` to 1MB or more"
    )]
    MessagesTooSmall { name: String, bytes: usize },
    #[error("there is no stream `{0}`; `dropdex cluster init` creates it")]
    NoStream(String),
    #[error(
        "the stream `{stream}` has `{setting}` {found}, but {wanted} is needed: change the \
         setting of dropdex, or the stream with `nats stream edit {stream}`"
    )]
    Setting { stream: String, setting: &'static str, found: Value, wanted: Value },
}

/// A stream of JetStream, connected on first use.
pub struct JetStream {
    settings: SharedLogSettings,
    context: Mutex<Option<Context>>,
}

impl JetStream {
    pub fn new(settings: SharedLogSettings) -> JetStream {
        JetStream { settings, context: Mutex::new(None) }
    }

    /// Returns the settings.
    pub fn settings(&self) -> &SharedLogSettings {
        &self.settings
    }

    /// Connects with a longer timeout, for objects of several megabytes.
    ///
    /// # Errors
    /// [`RefusedStream`].
    pub async fn large(&self) -> Result<Context, RefusedStream> {
        let client = self.connect().await?.client();
        let context = jetstream::ContextBuilder::new();
        Ok(context.timeout(OBJECT_WAIT).ack_timeout(OBJECT_WAIT).build(client))
    }

    /// Creates the stream if it does not exist, and checks it. Returns whether the stream was
    /// created.
    ///
    /// # Errors
    /// [`RefusedStream`].
    pub async fn init(&self) -> Result<bool, RefusedStream> {
        let context = self.connect().await?;
        let is_new = matches!(self.config(&context).await, Err(RefusedStream::NoStream(_)));
        if is_new {
            self.create(&context).await?;
        }
        self.check_stream(&context).await?;
        Ok(is_new)
    }

    /// Removes the stream with all its records, if it exists, and creates it again.
    ///
    /// # Errors
    /// [`RefusedStream`]. The stream may have been removed.
    pub async fn replace(&self) -> Result<(), RefusedStream> {
        let context = self.connect().await?;
        let subject = format!("STREAM.DELETE.{}", self.settings.stream);
        let deleted: Response<Value> =
            context.request(subject, &json!({})).await.map_err(unreachable)?;
        if let Response::Err { error } = deleted
            && error.error_code() != jetstream::ErrorCode::STREAM_NOT_FOUND
        {
            return Err(unreachable(error));
        }
        self.create(&context).await?;
        self.check_stream(&context).await
    }

    async fn create(&self, context: &Context) -> Result<(), RefusedStream> {
        let subject = format!("STREAM.CREATE.{}", self.settings.stream);
        let wanted = Value::Object(wanted(&self.settings).into_iter().map(owned).collect());
        match context.request(subject, &wanted).await.map_err(unreachable)? {
            Response::<Value>::Ok(_) => Ok(()),
            Response::Err { error } => Err(unreachable(error)),
        }
    }

    /// Connects, and checks servers, stream and the name of this node.
    ///
    /// # Errors
    /// [`RefusedStream`].
    pub async fn check(&self) -> Result<(), RefusedStream> {
        self.checked().await?;
        let answers = self.ask_nodes(NAMESAKE_WAIT).await?;
        let names = answers.iter().filter_map(|it| serde_json::from_slice::<NodeFacts>(it).ok());
        match names.into_iter().find(|facts| facts.node == self.settings.node) {
            Some(facts) => Err(RefusedStream::SameName(facts.node)),
            None => Ok(()),
        }
    }

    async fn checked(&self) -> Result<Context, RefusedStream> {
        let mut held = self.context.lock().await;
        if let Some(context) = &*held {
            return Ok(context.clone());
        }
        let context = self.connect().await?;
        self.check_stream(&context).await?;
        *held = Some(context.clone());
        Ok(context)
    }

    async fn context(&self) -> Result<Context, StreamError> {
        self.checked().await.map_err(|err| StreamError(err.to_string()))
    }

    async fn connect(&self) -> Result<Context, RefusedStream> {
        let addresses: Result<Vec<ServerAddr>, _> =
            self.settings.servers.iter().map(|url| url.parse()).collect();
        let addresses = addresses.map_err(unreachable)?;
        let mut options = ConnectOptions::new()
            .name(format!("dropdex {}", self.settings.node))
            .connection_timeout(ANSWER_WAIT)
            .request_timeout(Some(ANSWER_WAIT))
            .event_callback(|event| async move { tracing::debug!(%event, "NATS") });
        if let Some(file) = &self.settings.credentials {
            options = options
                .credentials_file(file)
                .await
                .map_err(|source| RefusedStream::Credentials { path: file.clone(), source })?;
        }
        if let Some(file) = &self.settings.ca_file {
            options = options.add_root_certificates(file.clone()).require_tls(true);
        }
        let client = options.connect(addresses).await.map_err(unreachable)?;
        let server = client.server_info();
        let name = server.server_name;
        if version(&server.version).is_none_or(|version| version < VERSION_MIN) {
            return Err(RefusedStream::TooOld { name, version: server.version });
        }
        // The server's limit includes headers.
        if server.max_payload < RECORD_BYTES_MAX + 1024 {
            return Err(RefusedStream::MessagesTooSmall { name, bytes: server.max_payload });
        }
        let context = jetstream::ContextBuilder::new();
        Ok(context.timeout(ANSWER_WAIT).ack_timeout(ANSWER_WAIT).build(client))
    }

    /// Compares the settings of the stream with those that keep every record. Servers ignore unknown settings.
    async fn check_stream(&self, context: &Context) -> Result<(), RefusedStream> {
        let config = self.config(context).await?;
        for (setting, wanted) in wanted(&self.settings) {
            let found = config.get(setting).cloned().unwrap_or(Value::Bool(false));
            if found != wanted {
                let stream = self.settings.stream.clone();
                return Err(RefusedStream::Setting { stream, setting, found, wanted });
            }
        }
        // In other modes, servers acknowledge records before storing them.
        match config.get("persist_mode") {
            None | Some(Value::Null) => Ok(()),
            Some(mode) if mode == "" || mode == "default" => Ok(()),
            Some(mode) => Err(RefusedStream::Setting {
                stream: self.settings.stream.clone(),
                setting: "persist_mode",
                found: mode.clone(),
                wanted: json!("default"),
            }),
        }
    }

    /// Publishes `facts` to all nodes, each second and on request, and records those of its peers, until the
    /// connection ends.
    ///
    /// # Errors
    /// [`RefusedStream`].
    pub async fn meet(
        &self,
        facts: impl Fn() -> Vec<u8>,
        peers: &Peers,
    ) -> Result<(), RefusedStream> {
        let client = self.connect().await?.client();
        let subject = self.settings.nodes_subject();
        let mut heard = client.subscribe(subject.clone()).await.map_err(unreachable)?;
        let mut ticks = interval(TELL_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {
                    client.publish(subject.clone(), facts().into()).await.map_err(unreachable)?;
                }
                message = heard.next() => {
                    let Some(Message { reply, payload, .. }) = message else { return Ok(()) };
                    if let Some(reply) = reply {
                        client.publish(reply, facts().into()).await.map_err(unreachable)?;
                    } else if let Ok(facts) = serde_json::from_slice(&payload) {
                        peers.hear(facts, Instant::now());
                    }
                }
            }
        }
    }

    /// Returns the responses that nodes send within `wait`; see [`JetStream::meet`].
    ///
    /// # Errors
    /// [`RefusedStream`].
    pub async fn ask_nodes(&self, wait: Duration) -> Result<Vec<Vec<u8>>, RefusedStream> {
        let client = self.connect().await?.client();
        let inbox = client.new_inbox();
        let mut answers = client.subscribe(inbox.clone()).await.map_err(unreachable)?;
        let subject = self.settings.nodes_subject();
        let asked = client.publish_with_reply(subject, inbox, Vec::new().into()).await;
        asked.map_err(unreachable)?;
        client.flush().await.map_err(unreachable)?;
        let mut found = Vec::new();
        let collecting = async {
            while let Some(answer) = answers.next().await {
                // A message with a status comes from the server: no node is listening.
                if answer.status.is_none() {
                    found.push(answer.payload.to_vec());
                }
            }
        };
        // The number of nodes is unknown, so this always waits.
        let _ = timeout(wait, collecting).await;
        Ok(found)
    }

    /// Describes servers of the stream that are missing or lack records.
    ///
    /// # Errors
    /// The stream cannot be written: most servers are missing or do not respond.
    pub async fn servers(&self) -> Result<Vec<String>, RefusedStream> {
        let context = self.connect().await?;
        let info = self.info(&context).await.map_err(|err| RefusedStream::NotWritable(err.0))?;
        let info = info.ok_or_else(|| RefusedStream::NoStream(self.settings.stream.clone()))?;
        check_majority(&info["cluster"]).map_err(|err| RefusedStream::NotWritable(err.0))?;
        Ok(lacking(&info["cluster"]))
    }

    async fn config(&self, context: &Context) -> Result<Value, RefusedStream> {
        match self.info(context).await.map_err(|err| unreachable(err.0))? {
            Some(info) => Ok(info["config"].clone()),
            None => Err(RefusedStream::NoStream(self.settings.stream.clone())),
        }
    }

    /// Returns configuration and state of the stream; `None` if it does not exist.
    async fn info(&self, context: &Context) -> Result<Option<Value>, StreamError> {
        let subject = format!("STREAM.INFO.{}", self.settings.stream);
        let info: Response<Value> = context.request(subject, &json!({})).await.map_err(error)?;
        match info {
            Response::Ok(info) => Ok(Some(info)),
            Response::Err { error }
                if error.error_code() == jetstream::ErrorCode::STREAM_NOT_FOUND =>
            {
                Ok(None)
            }
            Response::Err { error } => Err(StreamError(error.to_string())),
        }
    }
}

impl Stream for JetStream {
    async fn append(&self, last: u64, bytes: Vec<u8>) -> Published {
        let context = match self.context().await {
            Ok(context) => context,
            Err(err) => return Published::Unknown(err),
        };
        let message = PublishMessage::build()
            .payload(bytes.into())
            .expected_last_sequence(last)
            .expected_stream(&self.settings.stream);
        let sent = context.send_publish(self.settings.subject(), message).await;
        let acknowledged = match sent {
            Ok(sent) => sent.await,
            Err(err) => Err(err),
        };
        match acknowledged {
            Ok(acknowledged) => Published::At(acknowledged.sequence),
            Err(err) if err.kind() == PublishErrorKind::WrongLastSequence => Published::Superseded,
            Err(err) => Published::Unknown(error(err)),
        }
    }

    async fn last(&self) -> Result<u64, StreamError> {
        let context = self.context().await?;
        // A removed stream has lost all records.
        let Some(info) = self.info(&context).await? else { return Ok(0) };
        check_majority(&info["cluster"])?;
        let last = info["state"]["last_seq"].as_u64();
        last.ok_or_else(|| {
            StreamError("the server did not report the end of the stream".to_owned())
        })
    }

    async fn record(&self, seq: u64) -> Result<Option<Vec<u8>>, StreamError> {
        let context = self.context().await?;
        let stream = context.get_stream_no_info(&self.settings.stream).await.map_err(error)?;
        match stream.get_raw_message(seq).await {
            Ok(message) => Ok(Some(message.payload.to_vec())),
            Err(err) if err.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
            Err(err) => Err(error(err)),
        }
    }

    async fn follow(&self, first: u64) -> Result<Records, StreamError> {
        let context = self.context().await?;
        let stream = context.get_stream_no_info(&self.settings.stream).await.map_err(error)?;
        let config = OrderedConfig {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: first },
            ..OrderedConfig::default()
        };
        let consumer = stream.create_consumer(config).await.map_err(error)?;
        let mut messages = consumer.messages().await.map_err(error)?;
        let (records, received) = mpsc::channel(RECORDS_AHEAD);
        tokio::spawn(async move {
            loop {
                let message = tokio::select! {
                    message = messages.next() => message,
                    () = records.closed() => return,
                };
                let Some(message) = message else { return };
                let record = message.map_err(error).and_then(|message| {
                    let seq = message.info().map_err(error)?.stream_sequence;
                    Ok(StreamRecord { seq, bytes: message.message.payload.to_vec() })
                });
                let is_last = record.is_err();
                if records.send(record).await.is_err() || is_last {
                    return;
                }
            }
        });
        Ok(received)
    }
}

/// Returns true if the leader of the stream is in contact with a server.
fn is_there(replica: &Value) -> bool {
    let silent = replica["active"].as_u64().map(Duration::from_nanos);
    replica["offline"] != true && silent.is_some_and(|silent| silent < SILENT_MAX)
}

/// Checks for a quorum. A minority of servers may respond, but stores nothing.
fn check_majority(cluster: &Value) -> Result<(), StreamError> {
    let Some(replicas) = cluster["replicas"].as_array() else { return Ok(()) };
    if cluster["leader"].as_str().is_none_or(str::is_empty) {
        return Err(StreamError("the servers of the stream have no leader".to_owned()));
    }
    let there = 1 + replicas.iter().filter(|it| is_there(it)).count();
    let all = replicas.len() + 1;
    if there * 2 > all {
        return Ok(());
    }
    Err(StreamError(format!(
        "{there} of {all} servers of the stream are up, which is not a majority"
    )))
}

/// Returns the servers that are missing or lack records.
fn lacking(cluster: &Value) -> Vec<String> {
    let replicas = cluster["replicas"].as_array().into_iter().flatten();
    let words = replicas.filter_map(|replica| {
        let name = replica["name"].as_str().unwrap_or("?");
        let lag = replica["lag"].as_u64().unwrap_or(0);
        if !is_there(replica) {
            Some(format!("the NATS server {name} is gone"))
        } else if replica["current"] == false || lag > 0 {
            Some(format!("the NATS server {name} lacks {lag} records; check its disk and its log"))
        } else {
            None
        }
    });
    words.collect()
}

/// Returns the required settings of the stream, in the format of the server.
fn wanted(settings: &SharedLogSettings) -> Vec<(&'static str, Value)> {
    vec![
        ("name", json!(settings.stream)),
        ("subjects", json!([settings.subject()])),
        ("retention", json!("limits")),
        ("storage", json!("file")),
        ("num_replicas", json!(settings.replicas)),
        ("discard", json!("new")),
        ("max_consumers", json!(-1)),
        ("max_msgs", json!(-1)),
        ("max_bytes", json!(-1)),
        ("max_age", json!(0)),
        ("max_msgs_per_subject", json!(-1)),
        ("max_msg_size", json!(-1)),
        ("deny_delete", json!(true)),
        ("deny_purge", json!(true)),
        // Direct reads may come from servers that are behind.
        ("allow_direct", json!(false)),
        // Appends are deduplicated by number, so the server's window for duplicates does not matter.
        ("allow_rollup_hdrs", json!(false)),
    ]
}

fn owned((name, value): (&'static str, Value)) -> (String, Value) {
    (name.to_owned(), value)
}

fn version(text: &str) -> Option<[u64; 3]> {
    let numbers = text.split(['-', '+']).next()?;
    let numbers: Vec<u64> = numbers.split('.').map(|it| it.parse().ok()).collect::<Option<_>>()?;
    numbers.try_into().ok()
}

fn error(err: impl std::fmt::Display) -> StreamError {
    StreamError(err.to_string())
}

fn unreachable(err: impl std::fmt::Display) -> RefusedStream {
    RefusedStream::Unreachable(explained(&err.to_string()))
}

/// Adds likely causes to an error of the client.
fn explained(error: &str) -> String {
    let is_timeout =
        ["deadline has elapsed", "timed out", "no responders"].iter().any(|it| error.contains(it));
    if !is_timeout {
        return error.to_owned();
    }
    format!(
        "{error}: no response; check that `cluster.servers` names NATS servers that run with `jetstream` enabled, that most \
         of them have found each other (`routes`), and that no firewall is between"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quorum_needs_a_majority_of_servers() {
        let replica = |offline: bool, seconds: u64| json!({ "name": "n", "offline": offline, "active": seconds * 1_000_000_000 });
        let of =
            |replicas: Vec<Value>| check_majority(&json!({ "leader": "n1", "replicas": replicas }));
        assert!(of(vec![replica(false, 0), replica(true, 0)]).is_ok());
        assert!(of(vec![replica(true, 0), replica(true, 0)]).is_err());
        assert!(of(vec![replica(false, 60), replica(false, 60)]).is_err());
        let no_leader = json!({ "replicas": [replica(false, 0), replica(false, 0)] });
        assert!(check_majority(&no_leader).is_err());
        assert!(check_majority(&json!({ "leader": "n1" })).is_ok(), "one server");
    }

    #[test]
    fn servers_that_lack_records_are_named() {
        let replicas = json!([
            { "name": "n1", "current": true, "active": 5 },
            { "name": "n2", "current": false, "active": 5, "offline": true, "lag": 7 },
            { "name": "n3", "current": false, "active": 5, "lag": 331 },
            { "name": "n4", "current": false, "active": 60_000_000_000_u64, "lag": 7 },
        ]);
        let said = lacking(&json!({ "leader": "n0", "replicas": replicas }));
        assert_eq!(said[0], "the NATS server n2 is gone");
        assert!(said[1].starts_with("the NATS server n3 lacks 331 records"), "{said:?}");
        assert_eq!(said[2..], ["the NATS server n4 is gone"]);
        assert!(lacking(&json!({ "leader": "n1" })).is_empty(), "one server");
    }

    #[test]
    fn a_timeout_names_the_setting_to_check() {
        assert!(explained("deadline has elapsed").contains("`cluster.servers`"));
        assert_eq!(explained("authorization violation"), "authorization violation");
    }

    #[test]
    fn versions_are_compared_by_number() {
        for (text, is_new_enough) in [
            ("2.9.10", false),
            ("2.10.26", false),
            ("2.10.27", true),
            ("2.10.27-beta.1", true),
            ("2.15.1", true),
            ("3.0.0", true),
            ("2.10", false),
            ("", false),
        ] {
            assert_eq!(version(text).is_some_and(|it| it >= VERSION_MIN), is_new_enough, "{text}");
        }
    }
}
