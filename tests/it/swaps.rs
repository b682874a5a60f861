//! Generations are swapped and one of two servers is restarted, repeatedly, while clients send requests
//! to both at a fixed rate. If a client may use either server, none of its requests fails. Every
//! response equals, byte for byte, that of the generation that it names.
//!
//! The load is open: a request is sent when it is due, regardless of how long others take.
//! `DROPDEX_SEED=<number>` repeats a run; `DROPDEX_FULL=1` swaps 1,000 times and restarts 500 times.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::rng::Rng;
use crate::common::runs::{figure, say, seed};
use crate::common::{Client, Response, Server, Site, TODAY, wait};
use dropdex::index::storage::manifest::{self, GenerationId};

/// Number of generations.
const GENERATIONS: u64 = 4;
/// Number of clients: more than the requests that are ever in flight.
const CLIENTS: usize = 24;
/// Requests per second: less than half of the capacity of two servers and their clients on two cores.
const RATE: usize = if cfg!(debug_assertions) { 300 } else { 4_500 };
/// Deadline from a switch of `CURRENT` to responses from it, on a busy machine.
const SWAP_MAX: Duration = Duration::from_secs(60);
const SETTINGS: &str = "[plans.api]\nrequests_per_day = 1000000000\nwrites_per_minute = 1000000\n[inbox]\nenabled = false\n\
    [index]\nkeep = 100\n[server]\nreads = 1000\n";

/// Queries, each of which distinguishes the generations by rows, totals or TLDs.
const QUESTIONS: [&str; 6] = [
    "/api/v1/search?q=swapped&limit=100",
    "/api/v1/search?q=swapped&limit=5&offset=3",
    "/api/v1/drops?view=all&limit=200",
    "/api/v1/drops?view=all&q=app&limit=10",
    "/api/v1/drops?view=active&min_dqs=10&limit=20",
    "/api/v1/domain/swapped0.com",
];

/// Returns the names of generation `number`: each generation has more names, which are under a TLD of
/// its own, and the release day of its first name is different.
fn list(number: u64) -> String {
    let tld = ["de", "net", "org", "io"][number as usize % 4];
    let rows: String =
        (0..12 * number).map(|at| format!("swapped{number}x{at}.{tld},2026-03-10,\n")).collect();
    let first = format!("swapped0.com,2026-03-0{},2026-04-{}", number + 1, 10 + 3 * number);
    format!("domain,drop_date,release_date\n{first}\n{rows}")
}

/// Two servers on one index, each with its own accounts.
struct Pair {
    sites: [Site; 2],
    keys: [String; 2],
    addresses: [SocketAddr; 2],
}

impl Pair {
    fn new() -> (Pair, [Server; 2]) {
        let sites = [Site::new(), Site::new()];
        let settings = sites[0].settings(SETTINGS);
        for number in 1..=GENERATIONS {
            let list = sites[0].write(&format!("{number}.csv"), list(number));
            let list = list.to_str().expect("UTF-8");
            sites[0].ok_on(TODAY, &["--config", &settings, "ingest", list]);
        }
        let keys = [0, 1].map(|at: usize| sites[at].account("owner@example.com", "api"));
        let start = |at: usize| {
            let settings = sites[at].settings(SETTINGS);
            let index = sites[0].index();
            let index = index.to_str().expect("UTF-8");
            sites[at].serve_with(&["--config", &settings, "--index", index, "--today", TODAY])
        };
        let servers = [start(0), start(1)];
        let addresses = [servers[0].address(), servers[1].address()];
        (Pair { sites, keys, addresses }, servers)
    }

    fn client(&self, at: usize) -> Client {
        Client::new(self.addresses[at]).with_key(&self.keys[at])
    }

    /// Makes a generation current.
    fn flip_to(&self, generation: u64) {
        manifest::set_current(&self.sites[0].index(), GenerationId(generation)).expect("flipped");
    }

    /// Waits until a server uses a generation.
    fn wait_for(&self, client: &mut Client, generation: u64) {
        wait::until(SWAP_MAX, &format!("generation {generation} is served"), || {
            generation_of(&client.get(QUESTIONS[0])) == Some(generation)
        });
    }

    /// Restarts the second server at its address.
    fn start_second(&self) -> Server {
        let settings = self.sites[1].settings(SETTINGS);
        let (index, address) = (self.sites[0].index(), self.addresses[1].to_string());
        let index = index.to_str().expect("UTF-8");
        let arguments = ["serve", "--listen", &address, "--config", &settings, "--index", index];
        self.sites[1].start_on(TODAY, &arguments).ready()
    }

    /// Returns the response of each generation to each query.
    fn expected(&self) -> Expected {
        let mut client = self.client(0);
        let mut expected = Expected::new();
        for generation in 1..=GENERATIONS {
            self.flip_to(generation);
            self.wait_for(&mut client, generation);
            for (at, target) in QUESTIONS.iter().enumerate() {
                let body = client.get(target).text().to_owned();
                let mut others = expected.iter().filter(|(of, _)| **of != generation);
                let is_new = others.all(|(_, bodies): (_, &Vec<String>)| bodies[at] != body);
                assert!(is_new, "{target} is the same for {generation} and others");
                expected.entry(generation).or_default().push(body);
            }
        }
        expected
    }
}

/// By generation, in the order of [`QUESTIONS`].
type Expected = BTreeMap<u64, Vec<String>>;

fn generation_of(response: &Response) -> Option<u64> {
    response.header("x-index-generation")?.parse().ok()
}

/// Outcomes of the requests.
#[derive(Default)]
struct Counts {
    sent: AtomicUsize,
    /// Refused by the first server, served by the other.
    moved: AtomicUsize,
    failed: AtomicUsize,
    mixed: AtomicUsize,
    /// The first failure.
    first: Mutex<Option<String>>,
    /// Milliseconds from when each request was due to its response.
    late_ms: Mutex<Vec<u32>>,
}

impl Counts {
    fn wrong(&self, count: &AtomicUsize, what: String) {
        count.fetch_add(1, Ordering::Relaxed);
        self.first.lock().expect("no panic while locked").get_or_insert(what);
    }
}

/// Sends requests as they are due, until a signal to stop.
fn ask(pair: &Pair, expected: &Expected, counts: &Counts, begun: Instant, stop: &AtomicBool) {
    let mut clients = [pair.client(0), pair.client(1)];
    let mut late = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let number = counts.sent.fetch_add(1, Ordering::Relaxed);
        let due = begun + Duration::from_secs(1) * number as u32 / RATE as u32;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let at = number % QUESTIONS.len();
        match one(&mut clients, number, QUESTIONS[at], counts) {
            Some(response) => {
                let generation = generation_of(&response).unwrap_or(0);
                let known = expected.get(&generation).map(|bodies| bodies[at].as_str());
                if known != Some(response.text()) {
                    let what = format!("{}: {generation}: {}", QUESTIONS[at], response.text());
                    counts.wrong(&counts.mixed, what);
                }
            }
            None => counts.wrong(&counts.failed, QUESTIONS[at].to_owned()),
        }
        late.push(due.elapsed().as_millis() as u32);
    }
    counts.late_ms.lock().expect("no panic while locked").extend(late);
}

/// Returns the response of either server: if the first one does not accept the request, it is sent
/// to the other.
fn one(
    clients: &mut [Client; 2],
    number: usize,
    target: &str,
    counts: &Counts,
) -> Option<Response> {
    let mut answer = |server: usize| {
        let client = &mut clients[server];
        let answered = client.try_request("GET", target, &[]).ok();
        answered.filter(|response| response.status == 200)
    };
    let first = (number / QUESTIONS.len()) % 2;
    answer(first).or_else(|| {
        counts.moved.fetch_add(1, Ordering::Relaxed);
        answer(1 - first)
    })
}

#[test]
fn swaps_and_restarts_fail_no_request() {
    let (pair, [first, second]) = Pair::new();
    let mut second = Some(second);
    let expected = pair.expected();
    let mut rng = Rng::new(seed());
    let (swaps, restarts) = (figure(10, 1_000), figure(5, 500));
    let (counts, stop, begun) = (Counts::default(), AtomicBool::new(false), Instant::now());
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| ask(&pair, &expected, &counts, begun, &stop));
        }
        let changing = scope.spawn(|| {
            let (mut client, mut now) = (pair.client(0), GENERATIONS);
            for swap in 0..swaps {
                now = (now + rng.below(GENERATIONS as usize - 1) as u64) % GENERATIONS + 1;
                pair.flip_to(now);
                pair.wait_for(&mut client, now);
                if swap * restarts / swaps != (swap + 1) * restarts / swaps {
                    second.take().expect("it runs").stop();
                    second = Some(pair.start_second());
                }
            }
        });
        let changed = changing.join();
        stop.store(true, Ordering::Relaxed);
        changed.expect("every swap and restart came to pass");
    });
    let took = begun.elapsed().as_secs_f64();
    let mut late = counts.late_ms.into_inner().expect("no panic while locked");
    late.sort_unstable();
    let quantile = |parts: usize| late[(late.len() - 1) * parts / 1_000];
    let (sent, moved) = (late.len(), counts.moved.into_inner());
    say(&format!(
        "{sent} requests in {took:.0} s, {swaps} swaps, {restarts} restarts; {moved} went to the \
         other server; p50 {} ms, p99 {} ms, p99.9 {} ms after they were due",
        quantile(500),
        quantile(990),
        quantile(999),
    ));
    let what = counts.first.into_inner().expect("no panic while locked").unwrap_or_default();
    let (failed, mixed) = (counts.failed.into_inner(), counts.mixed.into_inner());
    assert_eq!((failed, mixed), (0, 0), "{what}");
    assert!(sent > swaps * 10, "{sent}");
    first.stop();
    second.take().expect("it runs").stop();
}
