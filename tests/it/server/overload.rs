//! More requests than the server can process.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::served;
use crate::common::{Client, Server, Site, runs};

/// The status of a response, and the seconds in its `Retry-After`.
struct Told {
    status: u16,
    retry_after: Option<u32>,
    /// Time from when the request was due to the response.
    took: Duration,
    /// Time from when the request was sent to the response, by the client's clock, which has
    /// millisecond precision and some delay.
    answered: Duration,
}

/// A server and its idle connections.
struct Door {
    address: SocketAddr,
    idle: Mutex<Vec<TcpStream>>,
}

impl Door {
    fn to(server: &Server) -> Arc<Door> {
        Arc::new(Door { address: server.address(), idle: Mutex::default() })
    }

    /// Sends one request, on an idle connection or a new one; `None` if the connection broke.
    async fn ask(&self, text: &str, due: Instant) -> Option<Told> {
        let idle = self.idle.lock().expect("no panic while locked").pop();
        let mut stream = match idle {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(self.address).await.ok()?;
                stream.set_nodelay(true).ok()?;
                stream
            }
        };
        let sent = Instant::now();
        stream.write_all(text.as_bytes()).await.ok()?;
        let answer = read(&mut stream).await?;
        let (took, answered) = (due.elapsed(), sent.elapsed());
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
        let status = head.get(9..12)?.parse().ok()?;
        let retry_after = header("retry-after: ").and_then(|seconds| seconds.parse().ok());
        if status == 503 {
            // Browsers get an error page.
            let fits = match text.contains("text/html") {
                true => body.contains("<h1>Service unavailable</h1>"),
                false => body.starts_with("{\"error\":\"") && body.ends_with("\"}"),
            };
            assert!(fits, "{answer}");
        }
        if header("connection: close").is_none() {
            self.idle.lock().expect("no panic while locked").push(stream);
        }
        Some(Told { status, retry_after, took, answered })
    }
}

/// Reads a response up to its `Content-Length`.
async fn read(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::with_capacity(64 * 1024);
    loop {
        if let Some(end) = bytes.windows(4).position(|it| it == b"\r\n\r\n") {
            let head = std::str::from_utf8(&bytes[..end]).ok()?;
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
            if bytes.len() >= end + 4 + length.parse::<usize>().ok()? {
                return String::from_utf8(bytes).ok();
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// As [`Door::ask`], for a task of its own.
fn asked(
    door: &Arc<Door>,
    text: &str,
    due: Instant,
) -> impl Future<Output = Option<Told>> + Send + use<> {
    let (door, text) = (Arc::clone(door), text.to_owned());
    async move { door.ask(&text, due).await }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Log-ins from one network or to one account are refused before they wait, so these come from many
/// networks.
#[test]
fn excess_log_ins_are_shed_with_retry_after() {
    const LOG_INS: usize = 100;
    let (_site, server) = served(1, "proxies = [\"127.0.0.1\"]\n[web]\nplain_http = true\n");
    let from = |network: usize| {
        let form = format!("email=a{network}%40example.com&password=wrong+horse+battery");
        format!(
            "POST /login HTTP/1.1\r\nHost: a\r\nOrigin: http://a\r\nSec-Fetch-Site: same-origin\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nConnection: close\r\n\
             X-Forwarded-For: 10.{network}.0.1\r\n\
             Accept: text/html\r\nContent-Length: {}\r\n\r\n{form}",
            form.len()
        )
    };
    let door = Door::to(&server);
    let answers = runtime().block_on(async {
        let asking: Vec<_> = (0..LOG_INS)
            .map(|network| tokio::spawn(asked(&door, &from(network), Instant::now())))
            .collect();
        let health = server.client().get("/api/health").status;
        assert_eq!(health, 200, "health checks are never shed");
        let mut answers = Vec::new();
        for answer in asking {
            answers.push(answer.await.expect("no panic").expect("an answer"));
        }
        answers
    });
    let shed: Vec<&Told> = answers.iter().filter(|told| told.status == 503).collect();
    assert!(!shed.is_empty() && shed.len() < LOG_INS, "{} of {LOG_INS} were shed", shed.len());
    for told in shed {
        assert!((1..=3).contains(&told.retry_after.expect("Retry-After says how long")));
    }
    // A later request is served.
    let again = runtime().block_on(door.ask(&from(LOG_INS), Instant::now())).expect("an answer");
    assert_ne!(again.status, 503);
}

/// Outcomes of a load.
#[derive(Default)]
struct Load {
    good: Vec<Duration>,
    shed: Vec<Duration>,
    failed: usize,
}

impl Load {
    fn add(&mut self, told: Option<Told>) {
        match told {
            Some(told) if told.status == 200 => self.good.push(told.took),
            Some(told) if told.status == 503 => self.shed.push(told.answered),
            _ => self.failed += 1,
        }
    }

    fn join(&mut self, other: Load) {
        self.good.extend(other.good);
        self.shed.extend(other.shed);
        self.failed += other.failed;
    }

    /// Returns the median, the 99th percentile and the maximum.
    fn percentiles(times: &mut [Duration]) -> [Duration; 3] {
        times.sort_unstable();
        let at = |place: usize| times.get(place).copied().unwrap_or_default();
        [at(times.len() / 2), at(times.len() * 99 / 100), at(times.len().saturating_sub(1))]
    }
}

/// A page that takes milliseconds of CPU time.
const QUESTION: &str = "GET /?view=all HTTP/1.1\r\nHost: a\r\n\r\n";

/// Closed load: this many clients, each of which sends its next request after a response.
async fn closed(server: &Server, clients: usize, time: Duration) -> Load {
    let (door, until) = (Door::to(server), Instant::now() + time);
    let tasks: Vec<_> = (0..clients)
        .map(|_| {
            let door = Arc::clone(&door);
            tokio::spawn(async move {
                let mut answers = Vec::new();
                while Instant::now() < until {
                    answers.push(door.ask(QUESTION, Instant::now()).await);
                }
                answers
            })
        })
        .collect();
    let mut load = Load::default();
    for task in tasks {
        task.await.expect("no panic").into_iter().for_each(|told| load.add(told));
    }
    load
}

/// Open load: this many requests a second, regardless of their outcome, each timed from when it was
/// due.
async fn open(server: &Server, per_second: f64, time: Duration) -> Load {
    let (door, began) = (Door::to(server), Instant::now());
    let count = (per_second * time.as_secs_f64()) as usize;
    let mut tasks = Vec::with_capacity(count);
    for number in 0..count {
        let due = began + Duration::from_secs_f64(number as f64 / per_second);
        tokio::time::sleep_until(due.into()).await;
        tasks.push(tokio::spawn(asked(&door, QUESTION, due)));
    }
    let mut load = Load::default();
    for task in tasks {
        load.add(task.await.expect("no panic"));
    }
    load
}

/// Pins this process, and those it starts from now on, to one core.
fn stay_on(core: &str) {
    let own = std::process::id().to_string();
    let mut put = Command::new("taskset");
    put.args(["--all-tasks", "--cpu-list", "--pid", core, &own]).stdout(Stdio::null());
    let put = put.status().expect("taskset is there");
    assert!(put.success(), "the figure needs two cores");
}

/// Starts a server on a core of its own, which is the only one that it sees; the test runs on
/// another core.
fn apart() -> (Site, Server) {
    stay_on("0");
    let served = served(2_000, "");
    stay_on("1");
    served
}

/// Returns the seconds during which this machine had work to do, and those that its host gave to
/// other guests.
fn wanted_and_stolen() -> (f64, f64) {
    let stat = std::fs::read_to_string("/proc/stat").expect("Linux has it");
    let all = stat.lines().next().expect("the sum of all cores").split_whitespace().skip(1);
    let of: Vec<f64> = all.map(|ticks| ticks.parse::<f64>().expect("ticks") / 100.0).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal.
    (of[0] + of[1] + of[2] + of[5] + of[6] + of[7], of[7])
}

/// Returns the seconds that a server has been on a core, without time that the host gave to others.
fn core_seconds(server: &Server) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.pid())).expect("it runs");
    let (_, fields) = stat.rsplit_once(") ").expect("its name stands in brackets");
    let ticks = |place: usize| -> f64 {
        fields.split(' ').nth(place).and_then(|ticks| ticks.parse().ok()).expect("ticks")
    };
    // User and system time are fields 14 and 15; the first field here is field 3.
    (ticks(11) + ticks(12)) / 100.0
}

/// Returns the share of refusals that were sent within 5 ms after the request head, as measured by
/// the server.
fn at_once(metrics: &mut Client) -> f64 {
    let answer = metrics.get("/metrics");
    let text = answer.text();
    let of = |what: &str| {
        let name = format!("dropdex_http_request_duration_seconds_{what}");
        text.lines()
            .filter(|line| line.starts_with(&name) && line.contains("status=\"5xx\""))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .next()
            .unwrap_or_else(|| panic!("no {name} in {text}"))
    };
    of("bucket{route=\"-\",method=\"GET\",status=\"5xx\",le=\"0.005\"}") / of("count")
}

#[test]
fn goodput_holds_at_three_times_saturation() {
    // The small size has few slots, so that a few clients already exceed them.
    let (_site, server) = if runs::full() { apart() } else { served(2_000, "max_reads = 4\n") };
    // The loads take turns, since the speed of a shared machine varies.
    let turns = runs::figure(1, 32) as u32;
    let time = Duration::from_secs(if runs::full() { 3 } else { 1 });
    runtime().block_on(async {
        closed(&server, 4, time).await;
        // The higher of the rates with few and with many clients.
        let few = closed(&server, 4, time).await.good.len();
        let many = closed(&server, 16, time).await.good.len();
        let clients = if few > many { 4 } else { 16 };
        let (mut peak, mut load) = (Load::default(), Load::default());
        let (mut at_peak, mut at_three) = (0.0, 0.0);
        let before = wanted_and_stolen();
        for _ in 0..turns {
            let begun = core_seconds(&server);
            let most = closed(&server, clients, time).await;
            let between = core_seconds(&server);
            let rate = most.good.len() as f64 / time.as_secs_f64();
            peak.join(most);
            load.join(open(&server, 3.0 * rate, time).await);
            at_peak += between - begun;
            at_three += core_seconds(&server) - between;
        }
        let after = wanted_and_stolen();
        let seconds = (turns * time).as_secs_f64();
        let (most, goodput) = (peak.good.len() as f64, load.good.len() as f64);
        let (at_peak, at_three) = (most / at_peak, goodput / at_three);
        let at_once = at_once(&mut server.metrics());
        runs::say(&format!(
            "peak {:.0}/s, {at_peak:.0} a second on a core; at three times of it {:.0}/s good ({:.0} %, {:?}), \
             {at_three:.0} a second on a core ({:.0} %); {} shed ({:?}; {:.2} % within 5 ms by the server's \
             clock), {} failed; median, p99 and worst, of what is good since it was due, of what is shed since \
             it was sent; {:.0} % of the time that was \
             wanted went to other machines",
            most / seconds,
            goodput / seconds,
            100.0 * goodput / most,
            Load::percentiles(&mut load.good),
            100.0 * at_three / at_peak,
            load.shed.len(),
            Load::percentiles(&mut load.shed),
            100.0 * at_once,
            load.failed,
            100.0 * (after.1 - before.1) / (after.0 - before.0),
        ));
        assert!(!load.shed.is_empty(), "nothing was shed, so the load was too low");
        assert_eq!((peak.failed, load.failed), (0, 0));
        if runs::full() {
            // The host shares the machine unevenly.
            assert!(at_three > 0.9 * at_peak, "{at_three:.0} of {at_peak:.0} a second on a core");
            assert!(at_once > 0.99, "{at_once}");
        } else {
            // Only the full run checks the rate: here the generator shares the server's cores, and
            // other tests run at the same time.
            assert!(!load.good.is_empty(), "no request succeeded");
        }
        assert_eq!(server.client().get("/api/health").status, 200);
    });
}
