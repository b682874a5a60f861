//! `cargo bench --bench pages`: measures the cost of pages, which are requested one by one over
//! loopback from the service in this process, with a million names generated from the sample
//! (`DROPDEX_BENCH_COUNT` sets another number). Prints a Markdown table with, for each page, the
//! median and the slowest of a hundred requests, and its size in kB as HTML and compressed.

mod common;
#[path = "service/server.rs"]
#[expect(dead_code, reason = "the service bench asks with a key")]
mod server;
#[path = "service/sample.rs"]
#[expect(dead_code, reason = "pages need the index alone")]
mod sample;

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use common::drops::Mix;
use dropdex::index::Index;
use dropdex::vocab::clock::Clock;
use sample::Sample;
use server::Service;

/// The server's allocator: allocation is part of every page.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Number of requests for each page; the first is not counted.
const TIMES: usize = 101;
/// Maximum median time of a page.
const GOAL: Duration = Duration::from_millis(5);

/// A request: a name, the path, and the value of `X-Fragment`.
const PAGES: [(&str, &str, Option<&str>); 10] = [
    ("drops, the best of each day", "/", None),
    ("drops, 100 rows", "/?view=active", None),
    ("drops, filtered", "/?view=active&tld=com,net&min_dqs=40&max_len=12", None),
    ("drops, part of a name", "/?view=active&q=shop", None),
    ("drops, a deep page", "/?view=all&offset=900", None),
    ("drops, as one types", "/?view=active&q=sho", Some("1")),
    ("search, 50 rows", "/search?q=so", None),
    ("search, below the field", "/search?q=so", Some("options")),
    ("dossier", "/domain/solar.com", None),
    ("overview", "/overview", None),
];

fn main() -> anyhow::Result<()> {
    // Cargo adds `--bench`.
    if std::env::args().any(|argument| argument == "--test" || argument == "--list") {
        return Ok(());
    }
    let Sample { folder, index, as_of, .. } = sample::make(Mix::MARKET)?;
    let address = serve(folder.path(), index, Clock::pinned_to(as_of.today))?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "| page | ms | slowest | KB | compressed: ms | slowest | KB |")?;
    writeln!(out, "| --- | ---: | ---: | ---: | ---: | ---: | ---: |")?;
    for (name, target, fragment) in PAGES {
        let plain = measure(address, target, fragment, false)?;
        let gzip = measure(address, target, fragment, true)?;
        writeln!(out, "| {name} | {plain} | {gzip} |")?;
        // The goal does not apply to unoptimised code.
        let holds = cfg!(debug_assertions) || plain.middle < GOAL;
        ensure!(holds, "{name}: {} ms, {} at most", ms(plain.middle), ms(GOAL));
    }
    Ok(())
}

/// A server over an index, on a free port.
fn serve(folder: &std::path::Path, index: Index, clock: Clock) -> anyhow::Result<SocketAddr> {
    let service = Service::new(Arc::new(index), &folder.join("accounts"), clock)?;
    let address = service.listen(&[])?;
    // The server serves until the process ends.
    std::mem::forget(service);
    Ok(address)
}

/// Time and size of a page.
struct Measured {
    middle: Duration,
    slowest: Duration,
    octets: usize,
}

impl std::fmt::Display for Measured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kilobytes = self.octets as f64 / 1e3;
        write!(f, "{} | {} | {kilobytes:.1}", ms(self.middle), ms(self.slowest))
    }
}

fn ms(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1e3)
}

fn measure(
    address: SocketAddr,
    target: &str,
    fragment: Option<&str>,
    gzip: bool,
) -> anyhow::Result<Measured> {
    let stream = TcpStream::connect(address).context("cannot connect to the server")?;
    stream.set_nodelay(true)?;
    let mut answers = BufReader::new(stream);
    let mut request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n");
    if let Some(fragment) = fragment {
        request.push_str(&format!("X-Fragment: {fragment}\r\n"));
    }
    if gzip {
        request.push_str("Accept-Encoding: gzip\r\n");
    }
    request.push_str("\r\n");
    let mut times = Vec::with_capacity(TIMES);
    let mut octets = 0;
    for _ in 0..TIMES {
        let started = Instant::now();
        answers.get_mut().write_all(request.as_bytes()).context("sending a request")?;
        octets = read_answer(&mut answers).with_context(|| target.to_owned())?;
        times.push(started.elapsed());
    }
    // The first request is not counted, because it computes tables once a day.
    let mut times = times.split_off(1);
    times.sort_unstable();
    Ok(Measured { middle: times[times.len() / 2], slowest: times[times.len() - 1], octets })
}

/// Reads one response; returns the length of its body in bytes.
fn read_answer(answers: &mut impl BufRead) -> anyhow::Result<usize> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        ensure!(answers.read_line(&mut head)? > 0, "the server closed a connection");
    }
    // The page of a name that is not in the data is a 404.
    let answered = head.starts_with("HTTP/1.1 200 ") || head.starts_with("HTTP/1.1 404 ");
    ensure!(answered, "is not answered:\n{head}");
    let head = head.to_ascii_lowercase();
    let value = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
    };
    if let Some(length) = value("content-length") {
        let mut body = vec![0; length.parse()?];
        answers.read_exact(&mut body)?;
        return Ok(body.len());
    }
    ensure!(value("transfer-encoding").as_deref() == Some("chunked"), "has no length:\n{head}");
    let mut octets = 0;
    loop {
        let mut line = String::new();
        answers.read_line(&mut line)?;
        let Ok(size) = usize::from_str_radix(line.trim(), 16) else { bail!("chunk {line:?}") };
        // Reads the chunk with its line end.
        let mut chunk = vec![0; size + 2];
        answers.read_exact(&mut chunk)?;
        octets += size;
        if size == 0 {
            return Ok(octets);
        }
    }
}
