//! All attacks at once while a paying client sends requests.
//!
//! The small size runs some seconds, and asserts the paying client's success and the server's memory.
//! The full size runs for half an hour at 200 requests a second, and compares times with those of a
//! quiet server.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::{Memory, from_network, network, served};
use crate::common::http::escape;
use crate::common::runs::{figure, full, say};
use crate::common::{Server, Site};

const REQUEST_BUDGET_MIB: u64 = 16;
const RESPONSE_BUDGET_MIB: u64 = 32;
/// Memory that connections, requests in progress, compressors and the allocator need in addition to
/// the budgets.
const SLACK_MIB: u64 = 160;
/// Number of accounts that write as much as they may, and the maximum bytes that they may own together.
const FREE_ACCOUNTS: usize = 4;
const OWNED_MIB: u64 = 64;
const PASSWORD: &str = "correct horse battery";

#[test]
fn a_paying_client_is_served_under_all_attacks() {
    let (site, server) = served(
        3_000,
        &format!(
            "[web]\nplain_http = true\n[server]\nmax_request_body_mib = {REQUEST_BUDGET_MIB}\n\
             max_unsent_mib = {RESPONSE_BUDGET_MIB}\n"
        ),
    );
    let attack = Arc::new(prepare(&site, &server));
    let key = site.account("paying@example.com", "api");
    let rate = figure(40, 200);
    let (quiet_time, time) = (figure(2, 60), figure(12, 1_800));
    let paying = runtime("--fifo");
    let quiet = paying.block_on(pay(server.address(), &key, rate, quiet_time));
    say(&format!("quiet: {quiet}"));
    let memory = Memory::watch(&server);
    let attackers = runtime("--idle");
    start(&attackers, &attack);
    let busy = paying.block_on(pay(server.address(), &key, rate, time));
    attack.stop.store(true, Ordering::Relaxed);
    attackers.shutdown_timeout(Duration::from_secs(5));
    let used = memory.used("all attacks", &server);
    say(&format!("attacked: {busy}; attempts: {}", attack.counts()));
    assert_eq!(server.client().get("/api/health").status, 200);
    let bound = REQUEST_BUDGET_MIB + RESPONSE_BUDGET_MIB + OWNED_MIB + SLACK_MIB;
    assert!(used.growth() < bound, "{used}, at most {bound} MiB more expected");
    assert!(busy.good * 100 >= busy.asked() * 99, "{busy}");
    if full() {
        assert!(busy.p99 <= 3 * quiet.p99, "{quiet} when quiet, {busy} under attack");
    }
}

/// A runtime with one thread under a scheduling policy. Real clients run on other machines; here they
/// share the machine of the server. The paying client therefore gets a core when it needs one, so
/// that its clock measures the server; attackers get the CPU time that the server leaves.
fn runtime(policy: &'static str) -> tokio::runtime::Runtime {
    let schedule = move || {
        let thread = std::fs::read_link("/proc/thread-self").expect("a thread");
        let thread = thread.file_name().expect("its number").to_owned();
        let priority = if policy == "--fifo" { "1" } else { "0" };
        let set = Command::new("chrt").args([policy, "--pid", priority]).arg(thread).output();
        if !set.is_ok_and(|set| set.status.success()) {
            say(&format!("chrt {policy} is refused: times include those of the clients"));
        }
    };
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .on_thread_start(schedule)
        .enable_all()
        .build()
        .expect("a runtime")
}

/// Outcomes of the paying client's requests.
struct Paid {
    good: usize,
    /// Other statuses, with the number of each.
    other: BTreeMap<u16, usize>,
    failed: usize,
    median: Duration,
    p99: Duration,
}

impl Paid {
    fn asked(&self) -> usize {
        self.good + self.other.values().sum::<usize>() + self.failed
    }
}

impl std::fmt::Display for Paid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Paid { good, other, failed, median, p99 } = self;
        write!(
            f,
            "{good} × 200, others: {other:?}, {failed} failed; median {median:?}, p99 {p99:?}"
        )
    }
}

/// Sends `rate` requests a second for `seconds`, regardless of their outcome, over keep-alive connections.
async fn pay(address: SocketAddr, key: &str, rate: usize, seconds: usize) -> Paid {
    let asks: Arc<Vec<String>> = Arc::new(
        [
            "/api/v1/search?q=name&limit=20",
            "/api/v1/drops?limit=50",
            "/api/v1/domain/name00001.com",
        ]
        .map(|path| {
            format!("GET {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\n\r\n")
        })
        .to_vec(),
    );
    let idle = Arc::new(std::sync::Mutex::new(Vec::<TcpStream>::new()));
    let (began, mut tasks) = (Instant::now(), Vec::new());
    for number in 0..rate * seconds {
        let due = began + Duration::from_secs_f64(number as f64 / rate as f64);
        tokio::time::sleep_until(due.into()).await;
        let (idle, asks) = (Arc::clone(&idle), Arc::clone(&asks));
        tasks.push(tokio::spawn(async move {
            let kept = idle.lock().expect("no panic while locked").pop();
            let began = Instant::now();
            let asked = ask(address, kept, &asks[number % asks.len()]);
            let (status, stream) = timeout(Duration::from_secs(30), asked).await.ok()??;
            idle.lock().expect("no panic while locked").push(stream);
            Some((status, began.elapsed()))
        }));
    }
    let mut paid = Paid {
        good: 0,
        other: BTreeMap::new(),
        failed: 0,
        median: Duration::ZERO,
        p99: Duration::ZERO,
    };
    let mut times = Vec::new();
    for task in tasks {
        match task.await.expect("no panic") {
            Some((200, time)) => times.push(time),
            Some((status, _)) => *paid.other.entry(status).or_default() += 1,
            None => paid.failed += 1,
        }
    }
    times.sort_unstable();
    let at = |place: usize| times.get(place).copied().unwrap_or_default();
    (paid.good, paid.median, paid.p99) =
        (times.len(), at(times.len() / 2), at(times.len() * 99 / 100));
    paid
}

/// Sends one request and reads its whole response.
async fn ask(
    address: SocketAddr,
    stream: Option<TcpStream>,
    text: &str,
) -> Option<(u16, TcpStream)> {
    let mut stream = match stream {
        Some(stream) => stream,
        None => TcpStream::connect(address).await.ok()?,
    };
    stream.set_nodelay(true).ok()?;
    stream.write_all(text.as_bytes()).await.ok()?;
    let mut bytes = Vec::with_capacity(16 << 10);
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let Some(end) = bytes.windows(4).position(|it| it == b"\r\n\r\n") else { continue };
        let head = std::str::from_utf8(&bytes[..end]).ok()?;
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if bytes.len() >= end + 4 + length.map_or(Some(0), |it| it.parse().ok())? {
            return Some((head.get(9..12)?.parse().ok()?, stream));
        }
    }
}

/// The information that the attackers have, and the number of attempts of each attack.
struct Attack {
    address: SocketAddr,
    exporter: String,
    /// Session cookies of free accounts.
    sessions: Vec<String>,
    stop: AtomicBool,
    bodies: AtomicU64,
    unread: AtomicU64,
    claims: AtomicU64,
    exports: AtomicU64,
    pages: AtomicU64,
    heads: AtomicU64,
}

impl Attack {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn counts(&self) -> String {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        format!(
            "{} bodies, {} unread responses, {} claims, {} exports, {} pages, {} slow heads",
            of(&self.bodies),
            of(&self.unread),
            of(&self.claims),
            of(&self.exports),
            of(&self.pages),
            of(&self.heads)
        )
    }
}

fn prepare(site: &Site, server: &Server) -> Attack {
    let sessions = (0..FREE_ACCOUNTS)
        .map(|number| {
            let email = format!("free{number}@example.com");
            site.account_with_password(&email, "free", PASSWORD);
            let form = format!("email={}&password={}", escape(&email), escape(PASSWORD));
            let headers = [
                ("Sec-Fetch-Site", "same-origin"),
                ("Content-Type", "application/x-www-form-urlencoded"),
            ];
            let answer = server.client().send_with("POST", "/login", &headers, form.as_bytes());
            let cookie = answer.header("set-cookie").expect("a session");
            cookie.split(';').next().unwrap_or_default().to_owned()
        })
        .collect();
    Attack {
        address: server.address(),
        exporter: site.account("exporter@example.com", "core"),
        sessions,
        stop: AtomicBool::new(false),
        bodies: AtomicU64::new(0),
        unread: AtomicU64::new(0),
        claims: AtomicU64::new(0),
        exports: AtomicU64::new(0),
        pages: AtomicU64::new(0),
        heads: AtomicU64::new(0),
    }
}

/// Starts all attackers. There are few at the small size, since they share the cores with the
/// server.
fn start(runtime: &tokio::runtime::Runtime, attack: &Arc<Attack>) {
    for number in 0..figure(4, 20) {
        runtime.spawn(flood_bodies(Arc::clone(attack), number));
    }
    for number in 0..figure(6, 40) {
        runtime.spawn(leave_unread(Arc::clone(attack), number));
    }
    for number in 0..FREE_ACCOUNTS {
        runtime.spawn(flood_claims(Arc::clone(attack), number));
    }
    for _ in 0..figure(2, 20) {
        runtime.spawn(hoard_exports(Arc::clone(attack)));
    }
    for number in 0..figure(10, 100) {
        runtime.spawn(flood_pages(Arc::clone(attack), number));
    }
    for _ in 0..figure(50, 500) {
        runtime.spawn(drip_heads(Arc::clone(attack)));
    }
}

/// A pause between two attempts, so that attackers do not take all cores.
const PAUSE: Duration = Duration::from_millis(100);

async fn http2(
    attack: &Attack,
    window: u32,
) -> Option<(h2::client::SendRequest<Bytes>, tokio::task::JoinHandle<()>)> {
    let socket = TcpStream::connect(attack.address).await.ok()?;
    let mut builder = h2::client::Builder::new();
    builder.initial_window_size(window);
    let (send, connection) = builder.handshake(socket).await.ok()?;
    Some((send, tokio::spawn(async move { _ = connection.await })))
}

/// Sends endless bodies to unrouted, unauthenticated and log-in paths.
async fn flood_bodies(attack: Arc<Attack>, number: usize) {
    while !attack.is_over() {
        sleep(PAUSE).await;
        let Some((send, driver)) = http2(&attack, 1 << 16).await else { continue };
        let mut open = Vec::new();
        for stream in 0..64 {
            let Ok(Ok(mut send)) = timeout(PAUSE, send.clone().ready()).await else { break };
            let path = ["/nowhere", "/api/v1/appraise", "/login"][stream % 3];
            let request = from_network("POST", path, number)
                .header("content-type", "application/x-www-form-urlencoded")
                .header("sec-fetch-site", "same-origin");
            let Ok((answer, mut body)) =
                send.send_request(request.body(()).expect("a request"), false)
            else {
                break;
            };
            let _ = body.send_data(Bytes::from(vec![b'a'; 15 << 10]), false);
            attack.bodies.fetch_add(1, Ordering::Relaxed);
            open.push((answer, body));
        }
        sleep(Duration::from_secs(2)).await;
        driver.abort();
    }
}

/// Requests pages and does not read them.
async fn leave_unread(attack: Arc<Attack>, number: usize) {
    while !attack.is_over() {
        sleep(PAUSE).await;
        let Some((send, driver)) = http2(&attack, 1_000).await else { continue };
        let mut open = Vec::new();
        for _ in 0..64 {
            let Ok(Ok(mut send)) = timeout(PAUSE, send.clone().ready()).await else { break };
            let request = from_network("GET", "/?view=all&rows=all", 1_000 + number);
            let request = request.header("accept", "text/html").body(()).expect("a request");
            let Ok((answer, _)) = send.send_request(request, true) else { break };
            attack.unread.fetch_add(1, Ordering::Relaxed);
            open.push(answer);
        }
        let began = Instant::now();
        while !attack.is_over() && !driver.is_finished() && began.elapsed().as_secs() < 60 {
            sleep(PAUSE).await;
        }
        driver.abort();
    }
}

/// Sends claims with the longest notes, as fast as possible.
async fn flood_claims(attack: Arc<Attack>, number: usize) {
    let mut count = 0;
    let mut stream = None;
    while !attack.is_over() {
        count += 1;
        let notes = "n".repeat(9_000);
        let form = format!("domain=name{:05}.com&userNotes={notes}&notes={notes}", count % 3_000);
        let text = format!(
            "POST /portfolio/new HTTP/1.1\r\nHost: a\r\nCookie: {}\r\nSec-Fetch-Site: same-origin\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
            attack.sessions[number],
            form.len()
        );
        let asked = timeout(Duration::from_secs(10), ask(attack.address, stream.take(), &text));
        stream = asked.await.ok().flatten().map(|(_, stream)| stream);
        attack.claims.fetch_add(1, Ordering::Relaxed);
        sleep(Duration::from_millis(10)).await;
    }
}

/// Starts exports and does not read them.
async fn hoard_exports(attack: Arc<Attack>) {
    while !attack.is_over() {
        sleep(PAUSE).await;
        let Some((send, driver)) = http2(&attack, 1_000).await else { continue };
        let mut open = Vec::new();
        for _ in 0..16 {
            let Ok(Ok(mut send)) = timeout(PAUSE, send.clone().ready()).await else { break };
            let request = from_network("GET", "/api/export/drops", 0)
                .header("authorization", format!("Bearer {}", attack.exporter));
            let Ok((answer, _)) = send.send_request(request.body(()).expect("a request"), true)
            else {
                break;
            };
            attack.exports.fetch_add(1, Ordering::Relaxed);
            open.push(answer);
        }
        sleep(Duration::from_secs(10)).await;
        driver.abort();
    }
}

/// Requests and reads pages as fast as possible, from many networks.
async fn flood_pages(attack: Arc<Attack>, number: usize) {
    let mut stream = None;
    while !attack.is_over() {
        let text = format!(
            "GET /?view=all HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\nX-Forwarded-For: {}\r\n\r\n",
            network(2_000 + number)
        );
        let asked = timeout(Duration::from_secs(10), ask(attack.address, stream.take(), &text));
        let answer = asked.await.ok().flatten();
        attack.pages.fetch_add(1, Ordering::Relaxed);
        if answer.as_ref().is_none_or(|(status, _)| *status != 200) {
            sleep(PAUSE).await;
        }
        stream = answer.map(|(_, stream)| stream);
    }
}

/// Sends heads that never end.
async fn drip_heads(attack: Arc<Attack>) {
    while !attack.is_over() {
        sleep(PAUSE).await;
        let Ok(mut stream) = TcpStream::connect(attack.address).await else { continue };
        attack.heads.fetch_add(1, Ordering::Relaxed);
        let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nX: ").await;
        while !attack.is_over() && stream.write_all(b"y").await.is_ok() {
            sleep(Duration::from_secs(1)).await;
        }
    }
}
