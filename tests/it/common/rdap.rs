//! An RDAP server on loopback: JSON in the shape of real registries over HTTP, with rate limits by its
//! own clock and a log of queries.
//!
//! The server also publishes a bootstrap registry (RFC 9224) at `/dns.json`, with an ETag.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::gzip;

/// Deadline of a request: dropdex is never silent for this long.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// The registry's response for a name.
#[derive(Clone, Debug)]
pub enum Says {
    /// The name was registered on that day and has these statuses.
    Found { registered: String, statuses: Vec<String> },
    /// 404: the name is not registered.
    NotFound,
    /// A response with this status and the body of a valid response.
    Status(u16),
    /// A response with this status and body.
    With(u16, &'static str),
    /// Status 429 or 503, with `Retry-After` in seconds if given.
    NotNow { status: u16, retry_after_s: Option<u64> },
    /// Status 200 with these bytes as the body.
    Body(Vec<u8>),
    /// The name is registered; the body has this `Content-Encoding`, and is compressed if that is
    /// gzip.
    Coded(&'static str),
    /// A response about another name.
    About(String),
    /// The response is sent one byte per second.
    Slowly,
    /// The connection is closed without a response.
    Nothing,
    /// Status 302 to this address, in which `{name}` is replaced by the name.
    Elsewhere(String),
}

impl Says {
    pub fn held_since(day: &str) -> Says {
        Says::Found {
            registered: day.to_owned(),
            statuses: vec!["client transfer prohibited".into()],
        }
    }

    pub fn held_with(day: &str, statuses: &[&str]) -> Says {
        let statuses = statuses.iter().map(|&word| word.to_owned()).collect();
        Says::Found { registered: day.to_owned(), statuses }
    }
}

/// Limits that a server enforces by its own clock.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum queries in any second.
    pub in_a_second: usize,
    /// Maximum concurrent queries.
    pub at_once: usize,
    /// Time taken by each query.
    pub think: Duration,
}

/// A received query.
#[derive(Clone, Debug)]
pub struct Asked {
    pub name: String,
    pub at: Instant,
}

/// State of the server and the requests it saw.
#[derive(Default)]
struct State {
    says: HashMap<String, Says>,
    otherwise: Option<Says>,
    limits: Option<Limits>,
    log: Vec<Asked>,
    under_way: usize,
    /// Number of queries beyond the limits.
    exceeded: usize,
    /// Number of queries for `nic.SUFFIX`, which is registered everywhere. They are not in the log.
    controls: usize,
    bootstrap: Option<Bootstrap>,
    /// Queries for the bootstrap registry, each with the ETag that was sent and the status that was
    /// returned.
    bootstrap_log: Vec<(Option<String>, u16)>,
}

/// A bootstrap registry and its ETag.
#[derive(Clone)]
pub struct Bootstrap {
    pub body: String,
    pub etag: String,
}

/// The server, which listens as long as the test runs.
#[derive(Clone)]
pub struct RdapServer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl RdapServer {
    /// Starts a server that returns 404 for every name.
    pub fn start() -> RdapServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        let address = listener.local_addr().expect("a listener has an address");
        let state = Arc::new(Mutex::new(State::default()));
        let server = RdapServer { address, state };
        let accepting = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let server = accepting.clone();
                // The client may be gone.
                thread::spawn(move || drop(stream.and_then(|stream| server.answer(stream))));
            }
        });
        server
    }

    /// Returns its base URL.
    pub fn base(&self) -> String {
        format!("http://{}/rdap/", self.address)
    }

    /// URL of the server's bootstrap registry.
    pub fn bootstrap_url(&self) -> String {
        format!("http://{}/dns.json", self.address)
    }

    /// Returns the entry of the server in an allow list.
    pub fn allowed(&self) -> String {
        format!("{}/32:{}", self.address.ip(), self.address.port())
    }

    /// Sets the response for a name.
    pub fn say(&self, name: &str, says: Says) {
        self.state().says.insert(name.to_owned(), says);
    }

    /// Sets the response for all other names; the default is 404.
    pub fn say_otherwise(&self, says: Says) {
        self.state().otherwise = Some(says);
    }

    /// Sets the limits; beyond these, the server returns 429.
    pub fn limit(&self, limits: Limits) {
        self.state().limits = Some(limits);
    }

    /// Publishes a bootstrap registry.
    pub fn publish(&self, body: String, etag: &str) {
        self.state().bootstrap = Some(Bootstrap { body, etag: etag.to_owned() });
    }

    /// Publishes a bootstrap registry that maps these suffixes to these servers.
    pub fn publish_servers(&self, services: &[(&[&str], &RdapServer)]) {
        self.publish(bootstrap_of(services, "2026-10-01T00:00:00Z"), "\"1\"");
    }

    /// Requests in the order of arrival.
    pub fn log(&self) -> Vec<Asked> {
        self.state().log.clone()
    }

    /// Number of queries.
    pub fn asked(&self) -> usize {
        self.state().log.len()
    }

    /// Number of queries for this name.
    pub fn asked_about(&self, name: &str) -> usize {
        self.state().log.iter().filter(|asked| asked.name == name).count()
    }

    /// Returns the number of queries for names that are registered everywhere.
    pub fn controls(&self) -> usize {
        self.state().controls
    }

    /// Returns the number of queries beyond the limits.
    pub fn exceeded(&self) -> usize {
        self.state().exceeded
    }

    /// Queries for the bootstrap registry: the ETag sent and the status returned.
    pub fn bootstrap_log(&self) -> Vec<(Option<String>, u16)> {
        self.state().bootstrap_log.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread of the server panics")
    }

    /// Reads one query and responds.
    fn answer(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream);
        let (target, headers) = read_head(&mut reader)?;
        let mut stream = reader.into_inner();
        if target == "/dns.json" {
            let answer = self.bootstrap(headers.get("if-none-match").cloned());
            return stream.write_all(&answer);
        }
        let Some(name) = target.strip_prefix("/rdap/domain/") else {
            return stream.write_all(&response(400, &[], b"{}"));
        };
        let says = self.judge(name);
        match says {
            Says::Nothing => Ok(()),
            Says::Slowly => trickle(&mut stream, &render(name, &Says::held_since("2000-01-01"))),
            says => stream.write_all(&render(name, &says)),
        }
    }

    /// Counts a query and returns its response. The query counts as done before the response is sent,
    /// because the client may send the next one at once.
    fn judge(&self, name: &str) -> Says {
        let now = Instant::now();
        let mut state = self.state();
        if name.starts_with("nic.") {
            state.controls += 1;
            return state.says.get(name).cloned().unwrap_or_else(|| Says::held_since("1990-01-01"));
        }
        state.under_way += 1;
        state.log.push(Asked { name: name.to_owned(), at: now });
        let over = state.limits.is_some_and(|limits| {
            let recent = state.log.iter().rev();
            let second = Duration::from_secs(1);
            let recent = recent.take_while(|asked| now.duration_since(asked.at) < second).count();
            recent > limits.in_a_second || state.under_way > limits.at_once
        });
        let says = state.says.get(name).or(state.otherwise.as_ref()).cloned();
        let think = state.limits.map_or(Duration::ZERO, |limits| limits.think);
        state.exceeded += usize::from(over);
        drop(state);
        // Other queries may arrive meanwhile.
        thread::sleep(think);
        self.state().under_way -= 1;
        if over {
            return Says::NotNow { status: 429, retry_after_s: Some(1) };
        }
        says.unwrap_or(Says::NotFound)
    }

    fn bootstrap(&self, tag: Option<String>) -> Vec<u8> {
        let mut state = self.state();
        let (status, answer) = match state.bootstrap.clone() {
            None => (404, response(404, &[], b"")),
            Some(held) if tag.as_ref() == Some(&held.etag) => (304, response(304, &[], b"")),
            Some(held) => {
                (200, response(200, &[("ETag", held.etag.clone())], held.body.as_bytes()))
            }
        };
        state.bootstrap_log.push((tag, status));
        answer
    }
}

/// Returns a bootstrap registry that maps these suffixes to these servers.
pub fn bootstrap_of(services: &[(&[&str], &RdapServer)], publication: &str) -> String {
    let services: Vec<Value> =
        services.iter().map(|(suffixes, server)| json!([suffixes, [server.base()]])).collect();
    json!({"version": "1.0", "publication": publication, "services": services}).to_string()
}

fn read_head(reader: &mut impl BufRead) -> io::Result<(String, HashMap<String, String>)> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let target = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = HashMap::new();
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            return Ok((target, headers));
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
}

/// Renders a registry's response.
fn render(name: &str, says: &Says) -> Vec<u8> {
    let held = |about: &str, registered: &str, statuses: &[String]| {
        domain(about, registered, statuses).to_string().into_bytes()
    };
    match says {
        Says::Found { registered, statuses } => {
            response(200, &[], &held(name, registered, statuses))
        }
        Says::About(other) => response(200, &[], &held(other, "2000-01-01", &[])),
        Says::NotFound => {
            let body = json!({"errorCode": 404, "title": "Not Found", "rdapConformance": ["rdap_level_0"]});
            response(404, &[], body.to_string().as_bytes())
        }
        Says::With(status, body) => response(*status, &[], body.as_bytes()),
        Says::Status(status) => response(*status, &[], &held(name, "2000-01-01", &[])),
        Says::NotNow { status, retry_after_s } => {
            let header = retry_after_s.map(|seconds| ("Retry-After", seconds.to_string()));
            response(*status, &Vec::from_iter(header), b"")
        }
        Says::Body(body) => response(200, &[], body),
        Says::Coded(coding) => {
            let body = held(name, "2000-01-01", &[]);
            let body = if *coding == "gzip" { gzip(&body) } else { body };
            response(200, &[("Content-Encoding", (*coding).to_owned())], &body)
        }
        Says::Elsewhere(to) => response(302, &[("Location", to.replace("{name}", name))], b""),
        Says::Slowly | Says::Nothing => Vec::new(),
    }
}

/// Renders a domain object as generic TLD registries write it.
fn domain(name: &str, registered: &str, statuses: &[String]) -> Value {
    json!({
        "objectClassName": "domain",
        "handle": "D1-EXAMPLE",
        "ldhName": name.to_ascii_uppercase(),
        "links": [{"rel": "self", "href": format!("https://rdap.example/domain/{name}"), "type": "application/rdap+json"}],
        "status": statuses,
        "entities": [{
            "objectClassName": "entity", "handle": "9999", "roles": ["registrar"],
            "publicIds": [{"type": "IANA Registrar ID", "identifier": "9999"}],
            "vcardArray": ["vcard", [["version", {}, "text", "4.0"], ["fn", {}, "text", "Example Registrar"]]]
        }],
        "events": [
            {"eventAction": "registration", "eventDate": format!("{registered}T04:00:00Z")},
            {"eventAction": "expiration", "eventDate": "2030-08-13T04:00:00Z"},
            {"eventAction": "last update of RDAP database", "eventDate": "2026-11-20T12:00:00Z"}
        ],
        "nameservers": [{"objectClassName": "nameserver", "ldhName": "NS1.EXAMPLE.NET"}],
        "secureDNS": {"delegationSigned": false},
        "rdapConformance": ["rdap_level_0", "icann_rdap_response_profile_0"],
        "notices": [{"title": "Terms of Use", "description": ["Service subject to Terms of Use."]}]
    })
}

fn response(status: u16, headers: &[(&str, String)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} Status\r\nContent-Type: application/rdap+json\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if status != 304 {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    head.push_str("Connection: close\r\n\r\n");
    let mut response = head.into_bytes();
    response.extend_from_slice(body);
    response
}

/// Sends the response one byte per second, slower than any timeout.
fn trickle(stream: &mut TcpStream, answer: &[u8]) -> io::Result<()> {
    for octet in answer {
        stream.write_all(&[*octet])?;
        thread::sleep(Duration::from_secs(1));
    }
    Ok(())
}
