//! Asks the name servers of a suffix whether they delegate a name, directly and without recursion. A
//! resolver may answer from a cache, or with the address of a page of advertisements; the servers of the
//! suffix know. Their answer that a name does not exist counts only with the SOA record of the suffix.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{Instant, timeout};
use url::Host;

use crate::dns::{Dns, DnsError};
use crate::guard::Guard;
use crate::vocab::name::DomainName;

/// Servers that are asked about a name, one after the other until one answers.
const SERVERS_ASKED: usize = 2;
/// Deadline of an answer.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// Maximum bytes of an answer over UDP; longer ones are truncated and asked for over TCP.
const DATAGRAM_MAX: usize = 4_096;
/// Time for which the servers of a suffix are kept.
const KEPT: Duration = Duration::from_secs(3_600);
/// Characters of the random label that shows whether a zone has a wildcard.
const NONSENSE_CHARS: usize = 24;
const PORT: u16 = 53;

/// Answer of the servers of a suffix about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delegation {
    /// The name has name servers.
    Delegated,
    /// The name does not exist.
    Missing,
}

/// Reason why the servers of a suffix gave no answer that proves anything.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParentError {
    #[error("the suffix has no name servers that may be asked")]
    NoServers,
    #[error("the name servers of the suffix did not respond in time")]
    Timeout,
    #[error("the name servers of the suffix gave an unclear answer: {0}")]
    Unclear(String),
    #[error("the suffix answers for every name")]
    Wildcard,
}

/// Answer of one server of a suffix about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Delegated,
    /// The name exists, without name servers.
    Exists,
    Missing,
}

/// The zone of a suffix.
#[derive(Clone, Debug)]
struct Zone {
    origin: Name,
    servers: Vec<SocketAddr>,
    /// The answer for a random name.
    nobody: Told,
}

/// Asks the servers of suffixes. Cheap to clone.
#[derive(Clone)]
pub struct Parents {
    dns: Dns,
    guard: Guard,
    /// Servers from the settings, by suffix; the others come from the DNS.
    configured: Arc<HashMap<String, Vec<SocketAddr>>>,
    zones: Arc<Mutex<HashMap<String, (Instant, Zone)>>>,
}

impl Parents {
    pub fn new(dns: Dns, guard: Guard, configured: HashMap<String, Vec<SocketAddr>>) -> Parents {
        Parents { dns, guard, configured: Arc::new(configured), zones: Arc::default() }
    }

    /// Asks about a name.
    ///
    /// # Errors
    /// [`ParentError`]: nothing is known.
    pub async fn ask(&self, name: &DomainName) -> Result<Delegation, ParentError> {
        let zone = self.zone(name.tld()).await?;
        if zone.nobody == Told::Delegated {
            return Err(ParentError::Wildcard);
        }
        match zone.ask(&absolute(name.as_str())?).await? {
            Told::Delegated => Ok(Delegation::Delegated),
            Told::Missing => Ok(Delegation::Missing),
            // In a zone with a wildcard, each name exists; only a delegation says something.
            Told::Exists if zone.nobody == Told::Exists => Err(ParentError::Wildcard),
            Told::Exists => Err(ParentError::Unclear("it has records, but no servers".to_owned())),
        }
    }

    /// Returns the zone of a suffix, which may be that of a shorter suffix.
    async fn zone(&self, suffix: &str) -> Result<Zone, ParentError> {
        let kept = self.zones().get(suffix).filter(|(at, _)| at.elapsed() < KEPT).cloned();
        if let Some((_, zone)) = kept {
            return Ok(zone);
        }
        let mut zone = self.find(suffix).await?;
        let nonsense: String =
            std::iter::repeat_with(fastrand::lowercase).take(NONSENSE_CHARS).collect();
        let nobody = absolute(&format!("{nonsense}.{suffix}"))?;
        zone.nobody = zone.ask(&nobody).await?;
        self.zones().insert(suffix.to_owned(), (Instant::now(), zone.clone()));
        Ok(zone)
    }

    async fn find(&self, suffix: &str) -> Result<Zone, ParentError> {
        let mut origin = suffix;
        loop {
            if let Some(servers) = self.configured.get(origin) {
                let servers = servers.clone();
                return Ok(Zone { origin: absolute(origin)?, servers, nobody: Told::Missing });
            }
            let hosts = self.dns.name_servers(origin).await.map_err(|err| match err {
                DnsError::Timeout => ParentError::Timeout,
                other => ParentError::Unclear(other.to_string()),
            })?;
            if !hosts.is_empty() {
                let servers = self.addresses(hosts).await;
                return match servers.is_empty() {
                    true => Err(ParentError::NoServers),
                    false => Ok(Zone { origin: absolute(origin)?, servers, nobody: Told::Missing }),
                };
            }
            origin = origin.split_once('.').ok_or(ParentError::NoServers)?.1;
        }
    }

    /// Returns one address of each of the first servers that may be dialled, in random order.
    async fn addresses(&self, mut hosts: Vec<String>) -> Vec<SocketAddr> {
        fastrand::shuffle(&mut hosts);
        let mut found = Vec::new();
        for host in hosts {
            if let Ok(vetted) = self.guard.vet_server(&Host::Domain(host), PORT).await {
                // Many machines have no route for IPv6.
                let (v4, v6): (Vec<_>, Vec<_>) =
                    vetted.addresses.into_iter().partition(SocketAddr::is_ipv4);
                found.extend(v4.into_iter().chain(v6).next());
            }
            if found.len() == SERVERS_ASKED {
                break;
            }
        }
        found
    }

    fn zones(&self) -> std::sync::MutexGuard<'_, HashMap<String, (Instant, Zone)>> {
        self.zones.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Zone {
    async fn ask(&self, name: &Name) -> Result<Told, ParentError> {
        let mut last = ParentError::NoServers;
        for &server in &self.servers {
            let answer = timeout(ANSWER_MAX, exchange(server, name)).await;
            last = match answer {
                Err(_) => ParentError::Timeout,
                Ok(Err(err)) => ParentError::Unclear(err.to_string()),
                Ok(Ok(message)) => match read(&message, name, &self.origin) {
                    Ok(told) => return Ok(told),
                    Err(why) => ParentError::Unclear(why.to_owned()),
                },
            };
        }
        Err(last)
    }
}

/// Interprets an answer of a server of `origin` about `name`.
fn read(message: &Message, name: &Name, origin: &Name) -> Result<Told, &'static str> {
    let is_of_name = |record: &&Record| record.name == *name && matches!(record.data, RData::NS(_));
    let records = || message.answers.iter().chain(&message.authorities);
    let is_origin =
        |record: &Record| record.name == *origin && matches!(record.data, RData::SOA(_));
    match message.response_code {
        ResponseCode::NoError if records().any(|record| is_of_name(&record)) => Ok(Told::Delegated),
        ResponseCode::NoError if !message.authoritative => Err("not authoritative"),
        ResponseCode::NoError => Ok(Told::Exists),
        ResponseCode::NXDomain if !message.authoritative => Err("not authoritative"),
        ResponseCode::NXDomain if message.authorities.iter().any(is_origin) => Ok(Told::Missing),
        ResponseCode::NXDomain => Err("the SOA record of another zone"),
        _ => Err("an error"),
    }
}

/// Sends a query over UDP, and again over TCP if the answer was truncated.
async fn exchange(server: SocketAddr, name: &Name) -> std::io::Result<Message> {
    let mut query = Message::new(fastrand::u16(..), MessageType::Query, OpCode::Query);
    query.add_query(Query::query(name.clone(), RecordType::NS));
    let bytes = query.to_vec().map_err(std::io::Error::other)?;
    let answer = over_udp(server, &bytes, &query).await?;
    if !answer.truncation {
        return Ok(answer);
    }
    let mut stream = TcpStream::connect(server).await?;
    stream.write_all(&[&(bytes.len() as u16).to_be_bytes(), &bytes[..]].concat()).await?;
    let mut bytes = vec![0; stream.read_u16().await?.into()];
    stream.read_exact(&mut bytes).await?;
    answer_to(&query, &bytes).ok_or_else(|| std::io::Error::other("it is not the answer"))
}

/// Waits for the answer to a query. Other datagrams are ignored, since anybody can send them.
async fn over_udp(server: SocketAddr, bytes: &[u8], query: &Message) -> std::io::Result<Message> {
    let any = match server {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(server).await?;
    socket.send(bytes).await?;
    let mut datagram = [0; DATAGRAM_MAX];
    loop {
        let length = socket.recv(&mut datagram).await?;
        if let Some(answer) = answer_to(query, &datagram[..length]) {
            return Ok(answer);
        }
    }
}

/// Parses an answer; `None` for any other message.
fn answer_to(query: &Message, bytes: &[u8]) -> Option<Message> {
    let answer = Message::from_vec(bytes).ok()?;
    let is_answer = answer.id == query.id
        && answer.message_type == MessageType::Response
        && answer.queries == query.queries;
    is_answer.then_some(answer)
}

fn absolute(name: &str) -> Result<Name, ParentError> {
    Name::from_ascii(format!("{name}.")).map_err(|err| ParentError::Unclear(err.to_string()))
}
