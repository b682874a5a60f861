//! More than can be done.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::{Server, runs};
use crate::served;

/// The status of an answer and the seconds in its `Retry-After`.
struct Told {
    status: u16,
    retry_after: Option<u32>,
    took: Duration,
}

/// One request on a connection of its own; `None` when the connection broke.
async fn ask(server: std::net::SocketAddr, text: String) -> Option<Told> {
    let mut stream = TcpStream::connect(server).await.ok()?;
    let _ = stream.set_nodelay(true);
    let began = Instant::now();
    stream.write_all(text.as_bytes()).await.ok()?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.ok()?;
    let took = began.elapsed();
    let head = String::from_utf8_lossy(&bytes).into_owned();
    let status = head.get(9..12)?.parse().ok()?;
    let retry_after = head.lines().find_map(|line| line.strip_prefix("retry-after: "));
    let retry_after = retry_after.and_then(|seconds| seconds.trim().parse().ok());
    if status == 503 {
        assert!(head.ends_with("\"}") && head.contains("\r\n\r\n{\"error\":\""), "{head}");
    }
    Some(Told { status, retry_after, took })
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

#[test]
fn what_is_too_much_is_told_to_come_again() {
    let (site, server) =
        served(1, "log_ins = 1\nqueue_seconds = 0.001\n[web]\nplain_http = true\n");
    site.account_with_password("a@example.com", "free", "correct horse battery");
    let form = "email=a%40example.com&password=wrong+horse+battery";
    let text = format!(
        "POST /login HTTP/1.1\r\nHost: a\r\nOrigin: http://a\r\nSec-Fetch-Site: same-origin\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{form}",
        form.len()
    );
    let answers = runtime().block_on(async {
        let asked: Vec<_> =
            (0..12).map(|_| tokio::spawn(ask(server.address(), text.clone()))).collect();
        let health = server.client().get("/api/health").status;
        assert_eq!(health, 200, "whoever looks after the server is never refused");
        let mut answers = Vec::new();
        for answer in asked {
            answers.push(answer.await.expect("no panic").expect("an answer"));
        }
        answers
    });
    let shed: Vec<&Told> = answers.iter().filter(|told| told.status == 503).collect();
    assert!(!shed.is_empty() && shed.len() < answers.len(), "{} of 12 were shed", shed.len());
    for told in shed {
        assert!((1..=3).contains(&told.retry_after.expect("how long to wait")));
    }
    // Who comes later is served.
    let again = runtime().block_on(ask(server.address(), text)).expect("an answer");
    assert_ne!(again.status, 503);
}

/// What came of a load.
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
            Some(told) if told.status == 503 => self.shed.push(told.took),
            _ => self.failed += 1,
        }
    }

    fn p99(times: &mut [Duration]) -> Duration {
        times.sort_unstable();
        times.get(times.len() * 99 / 100).copied().unwrap_or_default()
    }
}

/// A page: milliseconds of a core.
const QUESTION: &str = "GET /?view=all HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// As many as can be answered: so many clients that each ask again when they are answered.
async fn closed(server: &Server, text: &str, clients: usize, time: Duration) -> Load {
    let (address, until) = (server.address(), Instant::now() + time);
    let tasks: Vec<_> = (0..clients)
        .map(|_| {
            let text = text.to_owned();
            tokio::spawn(async move {
                let mut answers = Vec::new();
                while Instant::now() < until {
                    answers.push(ask(address, text.clone()).await);
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

/// So many a second, whatever becomes of them.
async fn open(server: &Server, text: &str, per_second: f64, time: Duration) -> Load {
    let began = tokio::time::Instant::now();
    let count = (per_second * time.as_secs_f64()) as usize;
    let mut tasks = Vec::with_capacity(count);
    for number in 0..count {
        let due = began + Duration::from_secs_f64(number as f64 / per_second);
        tokio::time::sleep_until(due).await;
        tasks.push(tokio::spawn(ask(server.address(), text.to_owned())));
    }
    let mut load = Load::default();
    for task in tasks {
        load.add(task.await.expect("no panic"));
    }
    load
}

#[test]
fn at_three_times_of_what_it_can_do_it_does_as_much() {
    let (_site, server) = served(2_000, "reads = 4\n");
    let text = QUESTION;
    let time = Duration::from_secs(if runs::full() { 10 } else { 2 });
    runtime().block_on(async {
        closed(&server, text, 4, time / 2).await;
        let peak = closed(&server, text, 4, time).await;
        let rate = peak.good.len() as f64 / time.as_secs_f64();
        let mut load = open(&server, text, 3.0 * rate, time).await;
        let goodput = load.good.len() as f64 / time.as_secs_f64();
        runs::say(&format!(
            "peak {rate:.0}/s; at three times of it {goodput:.0}/s good ({:.0} %, p99 {:?}), {} shed \
             (p99 {:?}), {} failed",
            100.0 * goodput / rate,
            Load::p99(&mut load.good),
            load.shed.len(),
            Load::p99(&mut load.shed),
            load.failed
        ));
        // Nobody waits for a refusal longer than for a turn.
        assert!(!load.shed.is_empty(), "nothing was shed: three times of what?");
        assert_eq!(load.failed, 0);
        // The generator takes its share of the same cores, and others test beside us.
        assert!(goodput > rate / 3.0, "{goodput:.0}/s of {rate:.0}/s");
        assert_eq!(server.client().get("/api/health").status, 200);
    });
}
