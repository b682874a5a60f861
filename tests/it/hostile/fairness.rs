//! Visitors without a key or a log-in, and customers at the same time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use serde_json::json;

use super::{TODAY, metric, network, runtime, served};
use crate::common::runs::{figure, say};
use crate::common::{Client, Server, wait};

/// 100 connections that request pages as fast as possible.
#[test]
fn a_paying_key_is_served_during_an_anonymous_flood() {
    let (site, server) = served(2_000, "");
    let key = site.account("a@example.com", "api");
    let address = server.address();
    let (stop, answers) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
    let runtime = runtime();
    for number in 0..100 {
        let (stop, answers) = (Arc::clone(&stop), Arc::clone(&answers));
        runtime.spawn(async move {
            // The requests come from this machine, which has no rate limit, so only slots apply.
            let ask = "GET /?view=all HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\n\r\n";
            let mut bytes = vec![0; 64 << 10];
            while !stop.load(Ordering::Relaxed) {
                let Ok(mut stream) = TcpStream::connect(address).await else { continue };
                // Repeats the request as soon as any response arrives.
                while !stop.load(Ordering::Relaxed)
                    && stream.write_all(ask.as_bytes()).await.is_ok()
                    && stream.read(&mut bytes).await.is_ok_and(|read| read > 0)
                {
                    answers.fetch_add(1, Ordering::Relaxed);
                }
            }
            number
        });
    }
    let asked = figure(60, 2_000);
    let mut client = server.client_with(&key);
    let began = Instant::now();
    let good =
        (0..asked).filter(|_| client.get("/api/v1/search?q=name&limit=20").status == 200).count();
    let flood = answers.load(Ordering::Relaxed);
    stop.store(true, Ordering::Relaxed);
    runtime.shutdown_timeout(Duration::from_secs(5));
    let shed = metric(&server, "dropdex_sheds_total{class=\"visitor\"}");
    say(&format!(
        "{good} of {asked} with a key in {:?}, beside {flood} reads of the flood, {shed} shed",
        began.elapsed()
    ));
    assert!(shed > 0.0, "it was not a flood");
    assert!(good * 100 >= asked * 95, "{good} of {asked}");
}

/// Sends one request and returns its status.
type Ask = fn(&mut Client) -> u16;

/// Clients of one account that repeat a request until they are stopped.
struct Flood {
    stop: Arc<AtomicBool>,
    took: Arc<Mutex<Vec<Duration>>>,
    clients: Vec<thread::JoinHandle<()>>,
}

impl Flood {
    fn start(server: &Server, key: &str, clients: usize, ask: Ask) -> Flood {
        let (stop, took) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<Duration>>>::default());
        let clients = (0..clients).map(|_| {
            let (stop, took) = (Arc::clone(&stop), Arc::clone(&took));
            let mut client = server.client_with(key);
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let began = Instant::now();
                    if ask(&mut client) == 200 {
                        took.lock().expect("no panic").push(began.elapsed());
                    }
                }
            })
        });
        let clients = clients.collect();
        Flood { stop, took, clients }
    }

    /// Returns the median duration of its requests.
    fn stop(self) -> Duration {
        self.stop.store(true, Ordering::Relaxed);
        self.clients.into_iter().for_each(|client| client.join().expect("no panic"));
        median(self.took.lock().expect("no panic").clone())
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// With a single queue for all accounts, the neighbour would wait as long as the greedy account.
#[test]
fn an_account_at_its_limits_delays_only_its_own_requests() {
    let (site, server) = served(1, "");
    let (greedy, neighbour) = ["greedy@example.com", "neighbour@example.com"]
        .map(|email| site.account(email, "api"))
        .into();
    let names = (0..6_000).map(|number| format!("{:x}name{number:05}.com,{TODAY}", number * 7_919));
    let rows: Vec<_> = names.collect();
    let list = site.write("list.csv", format!("domain,drop_date\n{}\n", rows.join("\n")));
    site.ingest(&list, &format!("{TODAY}T00:00:00Z"));
    let mut client = server.client_with(&neighbour);
    wait::until(Duration::from_secs(60), "the events", || {
        let page = client.get("/api/v1/changes").json();
        page["newest"].as_u64() > page["next"].as_u64()
    });
    let regex = |client: &mut Client| {
        client.get(&format!("/api/v1/search?regex=.*[a-f]1.*{}.*q", fastrand::u32(..100))).status
    };
    let changes = |client: &mut Client| {
        client.get("/api/v1/changes?wait=1&regex=.*[a-f]1.*q.*z&limit=1000").status
    };
    let batch = |client: &mut Client| {
        let queries: Vec<_> =
            (0..5).map(|number| json!({"regex": format!(".*[a-f]1.*{number}.*q")})).collect();
        client.send("POST", "/api/v1/search/batch", &json!({"queries": queries})).status
    };
    let floods: [(&str, usize, Ask); 3] =
        [("searches", 32, regex), ("changes", 40, changes), ("batches", 32, batch)];
    for (what, clients, ask) in floods {
        let flood = Flood::start(&server, &greedy, clients, ask);
        thread::sleep(Duration::from_secs(1));
        let mut took = Vec::new();
        for number in 0..figure(10, 200) {
            for path in [
                format!("/api/v1/search?contains=name{number}"),
                format!("/api/v1/drops?regex=e{number}"),
                "/api/v1/changes?limit=1000".to_owned(),
            ] {
                let began = Instant::now();
                let answer = client.get(&path);
                assert_eq!(answer.status, 200, "{what}, {path}: {}", answer.text());
                took.push(began.elapsed());
            }
        }
        let (own, others) = (flood.stop(), median(took));
        say(&format!("{what}: {own:?} for the account itself, {others:?} for its neighbour"));
        assert!(3 * others < own, "{what}: {others:?} beside {own:?}");
    }
}

#[test]
fn a_network_has_a_request_rate_limit_without_a_key() {
    let (site, server) = served(1, "[server]\nvisitor_requests_per_minute = 60\n");
    let key = site.account("a@example.com", "api");
    let mut client = server.client();
    let mut ask = |headers: &[(&str, &str)]| {
        (0..100).map(|_| client.request("GET", "/api/v1/drops", headers)).collect::<Vec<_>>()
    };
    let (one, other) = (network(1), network(2));
    let answers = ask(&[("X-Forwarded-For", &one)]);
    let (known, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|it| it.status == 401);
    // The limit allows a burst of half a minute's requests, and then one request per second.
    assert!((30..=60).contains(&known.len()), "{} were answered", known.len());
    for answer in refused {
        assert_eq!(answer.status, 429);
        assert!((1..=3).contains(&answer.number("retry-after").expect("a retry time")));
        let error = "a network may send 60 requests a minute without an API key or a log-in; wait, \
                     log in or use a key";
        let expected = serde_json::json!({"error": error, "code": "too_many_visits"});
        assert_eq!(answer.json(), expected);
    }
    // Browsers get a page.
    let page = ask(&[("X-Forwarded-For", &one), ("Accept", "text/html")]);
    assert!(page.iter().any(|answer| answer.status == 429), "the limit is forgotten");
    // Other networks are not affected, nor are customers in the same network or this machine.
    assert_eq!(ask(&[("X-Forwarded-For", &other)])[0].status, 401);
    let auth = format!("Bearer {key}");
    let answers = ask(&[("X-Forwarded-For", &one), ("Authorization", &auth)]);
    assert!(answers.iter().all(|answer| answer.status == 200));
    assert!(ask(&[]).iter().all(|answer| answer.status == 401));
    // The same holds for a proxy that hides its clients: they share the limit of the proxy.
    for hidden in ["unknown", "_hidden"] {
        let answers = ask(&[("X-Forwarded-For", hidden)]);
        assert!(answers.iter().any(|answer| answer.status == 429), "{hidden}");
    }
    // An invalid key does not help.
    let answers = ask(&[("X-Forwarded-For", &one), ("Authorization", "Bearer ddx_0")]);
    assert!(answers.iter().any(|answer| answer.status == 429));
}
