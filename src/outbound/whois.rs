//! Asks WHOIS servers (RFC 3912) about names, for suffixes without an RDAP server. The protocol has no form
//! for answers, so a free name is one whose answer has the words of its registry and nothing else that could
//! be meant: throttled answers hold those words too.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::Host;

use crate::guard::{Guard, GuardError};
use crate::rdap::{KEPT, THROTTLED, as_words, has_any};
use crate::settings::WhoisHosts;
use crate::vocab::compiled::{self, BadTable};
use crate::vocab::name::DomainName;

/// Deadline of a whole exchange.
const EXCHANGE_MAX: Duration = Duration::from_secs(10);
/// Maximum bytes of an answer.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// The port of the protocol.
pub const PORT: u16 = 43;

/// Answer of a WHOIS server about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It describes a registration.
    Found,
    /// It has the words for a free name.
    Missing,
    /// The registry keeps the name.
    Reserved,
}

/// Reason why there is no answer that proves anything.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WhoisError {
    #[error("the WHOIS server limits its clients")]
    Throttled,
    #[error("the WHOIS server did not answer within {} seconds", EXCHANGE_MAX.as_secs())]
    Timeout,
    #[error("the answer is longer than {ANSWER_BYTES_MAX} bytes")]
    TooLong,
    #[error("the answer is unclear")]
    Unclear,
    #[error(transparent)]
    Refused(#[from] GuardError),
    #[error("the WHOIS server cannot be reached: {0}")]
    Unreachable(String),
}

/// How far the words of a rule were compared with real answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    Recorded,
    /// The words never make a name free.
    None,
}

/// The server of a suffix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhoisServer {
    pub host: Host,
    pub port: u16,
    rule: &'static Rule,
}

impl WhoisServer {
    /// Returns the host and port, by which its queries are counted.
    pub fn key(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

/// How a server is asked, and how it says that a name is free.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    host: String,
    query: String,
    /// Words of an answer, in lower case, with `{name}`.
    free: String,
    /// Whether they are the whole line.
    is_line: bool,
    proof: Proof,
}

/// Returns true if the words of a suffix for a free name are known.
pub fn is_known(suffix: &str) -> bool {
    RULES.contains_key(suffix)
}

/// Returns the server of a suffix; `None` if it has none.
pub fn server(suffix: &str, chosen: &WhoisHosts) -> Option<WhoisServer> {
    let rule = RULES.get(suffix)?;
    let (host, port) = match chosen.get(suffix) {
        Some((host, port)) => (host.clone(), *port),
        None => (Host::Domain(rule.host.clone()), PORT),
    };
    Some(WhoisServer { host, port, rule })
}

static RULES: LazyLock<HashMap<String, Rule>> = LazyLock::new(|| {
    parse(include_str!("../../data/whois.csv")).expect("data/whois.csv is checked by a test")
});

/// A row of the table.
#[derive(Deserialize)]
struct Row {
    suffix: String,
    host: String,
    query: String,
    free: String,
    proof: String,
}

impl Row {
    fn rule(self) -> Result<(String, Rule), &'static str> {
        let Row { suffix, host, query, free, proof } = self;
        let (is_line, free) = match free.strip_prefix('=') {
            Some(line) => (true, line.to_owned()),
            None => (false, free),
        };
        let proof = match proof.as_str() {
            "several" | "one" => Proof::Recorded,
            "unproven" => Proof::None,
            _ => return Err("the proof is several, one or unproven"),
        };
        let has_words = !free.is_empty() && free == free.to_lowercase();
        if !query.contains("{name}") || !has_words || Host::parse(&host).is_err() {
            return Err("no {name} in the query, no words or words with capitals, or no host");
        }
        Ok((suffix, Rule { host, query, free, is_line, proof }))
    }
}

fn parse(text: &str) -> Result<HashMap<String, Rule>, BadTable> {
    let mut rules = HashMap::new();
    compiled::table(text, |row: Row| {
        let (suffix, rule) = row.rule()?;
        match rules.insert(suffix, rule) {
            None => Ok(()),
            Some(_) => Err("the suffix occurs twice"),
        }
    })?;
    Ok(rules)
}

/// Asks `server` about `name`.
///
/// # Errors
/// [`WhoisError`]: nothing is known.
pub async fn ask(
    server: &WhoisServer,
    guard: &Guard,
    name: &DomainName,
) -> Result<Answer, WhoisError> {
    ask_within(EXCHANGE_MAX, server, guard, name).await
}

async fn ask_within(
    limit: Duration,
    server: &WhoisServer,
    guard: &Guard,
    name: &DomainName,
) -> Result<Answer, WhoisError> {
    let exchange = async {
        let vetted = guard.vet_server(&server.host, server.port).await?;
        let unreachable = |err: std::io::Error| WhoisError::Unreachable(err.to_string());
        let mut stream = TcpStream::connect(&vetted.addresses[..]).await.map_err(unreachable)?;
        // Names consist of letters, digits, hyphens and dots, so the query is one line.
        let query = server.rule.query.replace("{name}", name.as_str()) + "\r\n";
        stream.write_all(query.as_bytes()).await.map_err(unreachable)?;
        let mut answer = Vec::new();
        let mut limited = stream.take(ANSWER_BYTES_MAX as u64 + 1);
        limited.read_to_end(&mut answer).await.map_err(unreachable)?;
        Ok::<_, WhoisError>(answer)
    };
    let answer = timeout(limit, exchange).await.map_err(|_| WhoisError::Timeout)??;
    if answer.len() > ANSWER_BYTES_MAX {
        return Err(WhoisError::TooLong);
    }
    read(&answer, server.rule, name)
}

/// Words of servers that limit their clients, besides those of RDAP servers.
const LIMITED: [&str; 6] = [
    "excessive querying",
    "access control limit",
    "connection limit",
    "too many connections",
    "request denied",
    "try again later",
];

/// Keys of the line with the name.
const NAME_KEYS: [&str; 5] = ["domain", "domain name", "domainname", "name", "nombre de dominio"];
/// Starts of the keys of other lines about a registration.
const REGISTRATION_KEYS: [&str; 16] = [
    "registrar",
    "registrant",
    "registered",
    "registration",
    "holder",
    "owner",
    "created",
    "creation",
    "expir",
    "renewal",
    "nserver",
    "name server",
    "nameserver",
    "changed",
    "last updated",
    "admin",
];

/// Interprets an answer. The description of a registration outweighs words of throttling, which terms of use
/// hold as well; they outweigh the words for a free name.
fn read(answer: &[u8], rule: &Rule, name: &DomainName) -> Result<Answer, WhoisError> {
    let text = String::from_utf8_lossy(answer).to_lowercase();
    let lines: Vec<String> = text.lines().map(plain).filter(|line| !line.is_empty()).collect();
    let words = as_words(answer);
    if is_registration(&lines, name) {
        let is_kept = lines.iter().any(|line| {
            pair(line)
                .is_some_and(|(key, value)| key.ends_with("status") && value.contains("reserved"))
        });
        return Ok(if is_kept { Answer::Reserved } else { Answer::Found });
    }
    if has_any(&words, &THROTTLED) || has_any(&words, &LIMITED) {
        return Err(WhoisError::Throttled);
    }
    if has_any(&words, &KEPT)
        || has_any(&words, &["unassignable", "status not allowed", "status reserved"])
    {
        return Ok(Answer::Reserved);
    }
    let free = rule.free.replace("{name}", name.as_str());
    let is_free = |line: &String| if rule.is_line { *line == free } else { line.contains(&free) };
    match lines.iter().any(is_free) && rule.proof == Proof::Recorded {
        true => Ok(Answer::Missing),
        false => Err(WhoisError::Unclear),
    }
}

/// Returns a line without comment signs, with single spaces.
fn plain(line: &str) -> String {
    let line = line.trim_start_matches(|char: char| char.is_whitespace() || "%#*;".contains(char));
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Splits `key: value` or `[key] value`.
fn pair(line: &str) -> Option<(&str, &str)> {
    let (key, value) = match line.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => line.split_once(':')?,
    };
    Some((key.trim(), value.trim()))
}

/// Whether the answer names `name` as its subject, and has another line of a registration.
fn is_registration(lines: &[String], name: &DomainName) -> bool {
    let unicode = name.unicode().to_string().to_lowercase();
    let is_name = |value: &str| {
        let value = value.trim_end_matches('.');
        value == name.as_str() || value == unicode
    };
    let has_name = lines.iter().enumerate().any(|(at, line)| {
        let Some((_, value)) = pair(line).filter(|(key, _)| NAME_KEYS.contains(key)) else {
            return false;
        };
        // Some servers write the value on a line of its own.
        let next = || lines.get(at + 1).map_or("", String::as_str);
        is_name(if value.is_empty() { next() } else { value })
    });
    let is_of_registration = |line: &String| {
        pair(line)
            .is_some_and(|(key, _)| REGISTRATION_KEYS.iter().any(|start| key.starts_with(start)))
    };
    has_name && lines.iter().any(is_of_registration)
}

#[cfg(test)]
mod tests;
