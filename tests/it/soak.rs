//! A server under mixed load while its index is rebuilt again and
//! again: nothing fails, and neither memory nor descriptors grow.
//!
//! The default run has 18 rebuilds, a second apart. A run with `DROPDEX_FULL=1` takes an hour,
//! rebuilds once a minute, and prints a row each minute.

use std::fmt;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::http::escape;
use crate::common::ledger::check;
use crate::common::rng::Rng;
use crate::common::runs::{figure, full, say, seed};
use crate::common::writer::{Step, Writer};
use crate::common::{Client, Site};

const TODAY: &str = "2026-11-20";
const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/sample/sample.csv.gz");
/// Number of rebuilds, and seconds between the starts of two successive ones.
const REBUILDS: (usize, usize) = (18, 60);
const PERIODS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Number of threads that read, each at this pace regardless of latency.
const READERS: usize = 2;
const READ_EVERY: Duration = Duration::from_millis(10);
const WRITE_EVERY: Duration = Duration::from_millis(50);
const LOG_IN_EVERY: Duration = Duration::from_secs(3);
/// Number of names in each ingested list. The lists are nearly the same, so that the corpus does
/// not grow.
const LIST_NAMES: usize = 500;
/// Number of rebuilds until memory is stable: pools and arenas of the allocator have grown, and two
/// generations were in memory at once.
const WARM_UP: usize = 6;
/// Maximum growth of memory and descriptors between the warm-up and the end.
const GROWTH_KB_MAX: u64 = 24 << 10;
const GROWTH_PERCENT_MAX: u64 = 10;
const DESCRIPTORS_MORE_MAX: u64 = 8;

#[test]
fn memory_and_descriptors_stay_flat_over_rebuilds() {
    let seed = seed();
    let names = names();
    let site = if full() {
        let site = Site::new();
        site.ingest(SAMPLE.as_ref(), &format!("{TODAY}T00:00:00Z"));
        site
    } else {
        Site::with_names(names.iter().cloned(), TODAY)
    };
    let settings = site.settings(
        "[plans.api]\nrequests_per_day = 100000000\nwrites_per_minute = 1000000\nexports_per_day = 1000000\nconcurrent_exports = 1000\n\
         active_rules = 1000\nexternal_names = 5000\n",
    );
    let key = site.account("soak@example.com", "api");
    site.account_with_password("person@example.com", "core", "a long pass phrase");
    let server = site.serve_with(&["--config", &settings, "--today", TODAY]);
    // No list changes the drops of these names, so their rows do not change.
    let own = names[names.len() - 6..].to_vec();
    let mut writer = Writer::new(0, "soak", own, seed);
    let load = Load {
        address: server.address(),
        pid: server.pid(),
        key: &key,
        names: &names,
        stop: AtomicBool::new(false),
    };
    let counts = Counts::default();
    let mut samples = Vec::new();
    thread::scope(|scope| {
        let stopping = StopWhenDropped(&load.stop);
        for reader in 0..READERS {
            let (load, counts) = (&load, &counts);
            scope.spawn(move || load.read(&mut Rng::new(seed + reader as u64), counts));
        }
        scope.spawn(|| load.write(&mut writer, &counts));
        scope.spawn(|| load.log_in(&counts));
        scope.spawn(|| load.break_off(&mut Rng::new(seed)));
        for round in 0..figure(REBUILDS.0, REBUILDS.1) {
            let begun = Instant::now();
            ingest(&site, &names, round);
            // The time is measured from the end of the ingest, which takes longer than all samples of
            // the default run.
            let end = if full() { begun + PERIODS.1 } else { Instant::now() + PERIODS.0 };
            let sample = load.sample_until(end);
            say(&format!("{round}: {sample}; {counts}"));
            samples.push(sample);
        }
        drop(stopping);
    });
    check(&mut server.client_with(&key), &mut [&mut writer.ledger]);
    assert_flat(&samples);
    server.stop();
}

/// Compares the minimum of the first rounds after the warm-up with that of as many rounds at the end.
fn assert_flat(samples: &[Sample]) {
    let warm = &samples[WARM_UP..];
    let part = (warm.len() / 3).max(1);
    let (early, late) = (&warm[..part], &warm[warm.len() - part..]);
    let least = |samples: &[Sample]| samples.iter().map(|it| it.rss_kb).min().unwrap_or_default();
    let (before, after) = (least(early), least(late));
    let most = before + (before * GROWTH_PERCENT_MAX / 100).max(GROWTH_KB_MAX);
    assert!(after <= most, "memory grew from {before} kB to {after} kB");
    let least = |samples: &[Sample]| samples.iter().map(|it| it.descriptors).min();
    let (before, after) = (least(early).unwrap_or_default(), least(late).unwrap_or_default());
    assert!(after <= before + DESCRIPTORS_MORE_MAX, "descriptors grew from {before} to {after}");
}

/// Returns names of the sample that can be requested.
fn names() -> Vec<String> {
    let mut text = String::new();
    let file = fs::File::open(SAMPLE).expect("the sample is there");
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("gzip of UTF-8");
    let rows = text.lines().skip(1).filter_map(|row| row.split(',').next());
    rows.step_by(7).map(str::to_owned).collect()
}

/// Ingests a list of known names, dropped today, so that each matches again.
fn ingest(site: &Site, names: &[String], round: usize) {
    let rows: String =
        names[round..round + LIST_NAMES].iter().map(|name| format!("{name},{TODAY}\n")).collect();
    let list = site.write(&format!("round{round}.csv"), format!("domain,drop_date\n{rows}"));
    let (hour, minute) = (round / 60, round % 60);
    site.ingest(&list, &format!("{TODAY}T{hour:02}:{minute:02}:01Z"));
    fs::remove_file(list).expect("it was just written");
}

/// Stops the load even if a thread panics.
struct StopWhenDropped<'a>(&'a AtomicBool);

impl Drop for StopWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct Counts {
    reads: AtomicU64,
    writes: AtomicU64,
    log_ins: AtomicU64,
    /// Responses of 503 with `Retry-After`.
    sheds: AtomicU64,
    slowest_us: AtomicU64,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (reads, writes, log_ins) =
            (count(&self.reads), count(&self.writes), count(&self.log_ins));
        let slowest_ms = self.slowest_us.swap(0, Ordering::Relaxed) / 1000;
        write!(
            f,
            "{reads} reads, {writes} writes, {log_ins} log-ins, {} shed, slowest {slowest_ms} ms",
            count(&self.sheds)
        )
    }
}

/// The kernel's figures for the server.
#[derive(Clone, Copy, Debug)]
struct Sample {
    rss_kb: u64,
    descriptors: u64,
    threads: u64,
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sample { rss_kb, descriptors, threads } = self;
        write!(f, "{rss_kb} kB, {descriptors} descriptors, {threads} threads")
    }
}

struct Load<'a> {
    address: SocketAddr,
    pid: u32,
    key: &'a str,
    names: &'a [String],
    stop: AtomicBool,
}

impl Load<'_> {
    /// Calls `act` every `period` until the end; late calls are made at once, so that a slow
    /// response does not reduce the load.
    fn pace(&self, period: Duration, mut act: impl FnMut()) {
        let mut due = Instant::now();
        while !self.stop.load(Ordering::Relaxed) {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            act();
            due += period;
        }
    }

    fn read(&self, rng: &mut Rng, counts: &Counts) {
        let mut client = Client::new(self.address).with_key(self.key);
        self.pace(READ_EVERY, || {
            let target = self.target(rng);
            let begun = Instant::now();
            let encoding = *rng.pick(&["gzip", "zstd", "identity"]);
            let answer = client.request("GET", &target, &[("Accept-Encoding", encoding)]);
            counts.slowest_us.fetch_max(begun.elapsed().as_micros() as u64, Ordering::Relaxed);
            let shed = answer.status == 503 && answer.header("retry-after").is_some();
            assert!(answer.status < 500 || shed, "{target}: {}", answer.status);
            counts.reads.fetch_add(1, Ordering::Relaxed);
            counts.sheds.fetch_add(u64::from(shed), Ordering::Relaxed);
        });
    }

    fn target(&self, rng: &mut Rng) -> String {
        let name = rng.pick(self.names).clone();
        let start = name.chars().take(1 + rng.below(4)).collect::<String>();
        match rng.below(20) {
            0..6 => format!("/api/v1/search?q={}", escape(&start)),
            6..10 => format!("/api/v1/drops?q={}&min_dqs={}", escape(&start), rng.below(90)),
            10..13 => format!("/api/v1/domain/{}", escape(&name)),
            13 => "/api/export/drops?limit=2000".to_owned(),
            14 => "/".to_owned(),
            15 => format!("/domain/{}", escape(&name)),
            16 => "/overview".to_owned(),
            17 => "/api/v1/drops?limit=0".to_owned(),
            18 => format!("/nowhere/{}", rng.below(1_000_000)),
            _ => "/api/ready".to_owned(),
        }
    }

    fn write(&self, writer: &mut Writer, counts: &Counts) {
        let mut client = Client::new(self.address).with_key(self.key);
        self.pace(WRITE_EVERY, || {
            match writer.step(&mut client).expect("the server is there") {
                Step::Done => counts.writes.fetch_add(1, Ordering::Relaxed),
                Step::Refused(_) => counts.sheds.fetch_add(1, Ordering::Relaxed),
            };
        });
    }

    /// Logs in and out through the pages. Each log-in takes a session and the memory of an argon2 hash.
    fn log_in(&self, counts: &Counts) {
        let mut client = Client::new(self.address);
        let form = b"email=person%40example.com&password=a+long+pass+phrase";
        let kind = ("Content-Type", "application/x-www-form-urlencoded");
        let own = ("Sec-Fetch-Site", "same-origin");
        self.pace(LOG_IN_EVERY, || {
            let answer = client.send_with("POST", "/login", &[kind, own], form);
            assert!([303, 429, 503].contains(&answer.status), "log-in: {}", answer.status);
            let cookies = answer.headers.iter().filter(|(name, _)| name == "set-cookie");
            for (_, cookie) in cookies {
                let cookie = cookie.split(';').next().unwrap_or_default();
                let out =
                    client.send_with("POST", "/logout", &[kind, own, ("Cookie", cookie)], b"");
                assert!([303, 503].contains(&out.status), "log-out: {}", out.status);
                counts.log_ins.fetch_add(1, Ordering::Relaxed);
            }
        });
    }

    /// Disconnects in the middle of requests and responses.
    fn break_off(&self, rng: &mut Rng) {
        const REQUEST: &[u8] =
            b"GET /api/export/drops?limit=10000 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ";
        self.pace(20 * READ_EVERY, || {
            let Ok(mut stream) = TcpStream::connect(self.address) else { return };
            let request = [REQUEST, self.key.as_bytes(), b"\r\n\r\n"].concat();
            let part = rng.below(2 * request.len()).min(request.len());
            // The server may have disconnected first.
            let _ = stream.write_all(&request[..part]);
        });
    }

    /// Returns the minimum memory and descriptors from now to `end`, sampled at least once.
    fn sample_until(&self, end: Instant) -> Sample {
        let mut least = self.sample();
        while Instant::now() < end {
            thread::sleep(Duration::from_millis(500));
            let sample = self.sample();
            least.rss_kb = least.rss_kb.min(sample.rss_kb);
            least.descriptors = least.descriptors.min(sample.descriptors);
            least.threads = least.threads.max(sample.threads);
        }
        least
    }

    fn sample(&self) -> Sample {
        let process = format!("/proc/{}", self.pid);
        let status = fs::read_to_string(format!("{process}/status")).expect("the server runs");
        let number = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name));
            let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
            number.unwrap_or_else(|| panic!("no {name} in {status}"))
        };
        let descriptors =
            fs::read_dir(format!("{process}/fd")).expect("the server is ours").count();
        Sample {
            rss_kb: number("VmRSS:"),
            descriptors: descriptors as u64,
            threads: number("Threads:"),
        }
    }
}
