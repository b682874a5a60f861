//! Kills during writes: a server under many concurrent writers gets SIGKILL at random points, and a
//! ledger kept outside it is compared with its state after the next start.
//!
//! One data folder is kept over all rounds, so that its history grows. `DROPDEX_SEED=<number>` repeats
//! a run as far as the machine's timing allows; `DROPDEX_FULL=1` kills 1,000 times.

use std::sync::Barrier;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use dropdex::vocab::day::Day;

use crate::common::ledger::{Ledger, check, check_votes};
use crate::common::rng::Rng;
use crate::common::runs::{figure, say, seed};
use crate::common::writer::Writer;
use crate::common::{Client, Server, Site};

const FIRST_DAY: &str = "2026-03-15";
const ACCOUNTS: usize = 3;
/// Writers per account, each on a connection of its own.
const WRITERS_PER_ACCOUNT: usize = 3;
/// Names of the corpus that one writer of each account watches and votes on.
const NAMES_PER_WRITER: usize = 6;
/// Maximum number of responses before the kill; it is a count, so that a slow machine tests as much
/// as a fast one.
const ANSWERS_MAX: usize = 120;
/// Maximum time from the last of these responses to the kill.
const KILL_AFTER_MAX_US: usize = 20_000;
/// Maximum time from the start of a server to a kill during startup. Kills hit every stage of it, even
/// in an unoptimised build.
const START_KILL_MAX_MS: usize = 600;
/// The day's allowance, which is so small that a round uses more than a hundredth of it.
const REQUESTS_PER_DAY: i64 = 4_000;
/// Approximate maximum number of requests in a round; if fewer are left, the next day begins.
const REQUESTS_PER_ROUND: i64 = 1_500;

#[test]
fn acknowledged_writes_survive_every_kill() {
    let seed = seed();
    let mut world = World::new(seed);
    let rounds = figure(15, 1_000);
    for _ in 0..rounds {
        world.killed_while_starting();
        world.killed_while_writing();
    }
    // A clean stop also works, from the log and from a snapshot only.
    world.serve_and_check().stop();
    let server = world.serve_and_check();
    let reply = world.site.ask_for_snapshot().expect("the server is there");
    assert_ne!(reply["reply"], "refused", "{reply}");
    server.stop();
    world.serve_and_check().stop();
    say(&format!(
        "{rounds} kills under {} writers, {} more while starting: {} answered writes kept; of the \
         POSTs without an answer {} were carried out, {} not",
        world.writers.len(),
        world.kills_while_starting,
        world.written(),
        world.writers.iter().map(|writer| writer.ledger.found.0).sum::<usize>(),
        world.writers.iter().map(|writer| writer.ledger.found.1).sum::<usize>(),
    ));
    assert!(world.written() > rounds, "too little was written: {}", world.written());
}

struct World {
    site: Site,
    settings: String,
    keys: Vec<String>,
    writers: Vec<Writer>,
    names: Vec<String>,
    rng: Rng,
    today: Day,
    /// Each account's usage of the day as last reported, and its number of requests in flight at the
    /// kill; `None` if a day has begun since then.
    used: Vec<Option<Used>>,
    kills_while_starting: usize,
}

#[derive(Clone, Copy)]
struct Used {
    told: i64,
    in_flight: i64,
}

impl World {
    fn new(seed: u64) -> World {
        let mut rng = Rng::new(seed);
        let names: Vec<String> = (0..WRITERS_PER_ACCOUNT * NAMES_PER_WRITER)
            .map(|number| format!("known{number}.com"))
            .collect();
        let site = Site::with_names(names.iter().cloned(), FIRST_DAY);
        let settings = site.settings(&format!(
            "[plans.api]\nrequests_per_day = {REQUESTS_PER_DAY}\nwrites_per_minute = 1000000\nactive_rules = 100000\n\
             external_names = 10000\n"
        ));
        let keys = (0..ACCOUNTS).map(|at| site.account(&format!("a{at}@example.com"), "api"));
        let keys: Vec<String> = keys.collect();
        let mut writers = Vec::new();
        for account in 0..ACCOUNTS {
            for (at, names) in names.chunks(NAMES_PER_WRITER).enumerate() {
                let seed = rng.below(usize::MAX) as u64;
                let mark = format!("{account}x{at}");
                writers.push(Writer::new(account, &mark, names.to_vec(), seed));
            }
        }
        World {
            site,
            settings,
            keys,
            writers,
            names,
            rng,
            today: FIRST_DAY.parse().expect("a date"),
            used: vec![Some(Used { told: 0, in_flight: 0 }); ACCOUNTS],
            kills_while_starting: 0,
        }
    }

    fn arguments(&self) -> Vec<String> {
        let today = self.today.to_string();
        ["--config", &self.settings, "--today", &today].map(str::to_owned).to_vec()
    }

    /// Kills the server during startup, in some rounds, once or twice.
    fn killed_while_starting(&mut self) {
        while self.rng.chance(20) {
            let arguments = self.arguments();
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let delay = self.rng.below(START_KILL_MAX_MS + 1);
            self.site.start(&arguments).kill_within(Duration::from_millis(delay as u64));
            self.kills_while_starting += 1;
        }
    }

    /// Starts a server and checks that its data matches the ledgers.
    fn serve_and_check(&mut self) -> Server {
        let arguments = self.arguments();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let server = self.site.serve_with(&arguments);
        for account in 0..ACCOUNTS {
            let mut client = server.client_with(&self.keys[account]);
            self.check_used(account, used(&mut client));
            let writers = self.writers.iter_mut().filter(|writer| writer.account == account);
            let mut ledgers: Vec<&mut Ledger> = writers.map(|writer| &mut writer.ledger).collect();
            check(&mut client, &mut ledgers);
            for ledger in ledgers {
                if ledger.answered() > 0 {
                    let at = self.rng.below(ledger.answered());
                    let again = ledger.ask_again(at, &mut client).expect("an answer");
                    assert_ne!(again.status, 503, "{}", again.text());
                }
            }
        }
        let mut client = server.client_with(&self.keys[0]);
        check_votes(&mut client, &self.names, self.writers.iter().map(|writer| &writer.ledger));
        for account in 0..ACCOUNTS {
            let told = used(&mut server.client_with(&self.keys[account]));
            self.used[account] = Some(Used { told, in_flight: 0 });
        }
        server
    }

    /// A crash loses at most a hundredth of a day's allowance (data/docs/api.md, Plans and limits).
    /// This request and those in flight may or may not have been counted.
    fn check_used(&self, account: usize, used: i64) {
        let Some(Used { told, in_flight }) = self.used[account] else {
            return assert_eq!(used, 1, "account {account}: the first request of a day");
        };
        let off = (used - 1 - told).abs();
        assert!(
            off <= REQUESTS_PER_DAY / 100 + in_flight,
            "account {account}: {told} used before the kill, {used} after it"
        );
    }

    fn killed_while_writing(&mut self) {
        let mut server = self.serve_and_check();
        if self.least_left() < REQUESTS_PER_ROUND {
            server.kill();
            self.next_day();
            server = self.serve_and_check();
        }
        let answers = self.rng.below(ANSWERS_MAX + 1);
        let delay = Duration::from_micros(self.rng.below(KILL_AFTER_MAX_US + 1) as u64);
        let start = Barrier::new(self.writers.len() + 1);
        let (site, with_snapshot) = (&self.site, self.rng.chance(30));
        thread::scope(|scope| {
            let (answered, answers_heard) = mpsc::channel();
            for writer in &mut self.writers {
                let client = server.client_with(&self.keys[writer.account]);
                let (start, answered) = (&start, answered.clone());
                scope.spawn(move || writer.write_until_killed(client, start, answered));
            }
            drop(answered);
            start.wait();
            if with_snapshot {
                // The server is usually killed before it responds.
                scope.spawn(|| site.ask_for_snapshot().ok());
            }
            // Ends early if every writer has ended, each because it found a fault.
            answers_heard.iter().take(answers).for_each(drop);
            let kill_at = Instant::now() + delay;
            while answers_heard.recv_timeout(kill_at - Instant::now().min(kill_at)).is_ok() {}
            server.kill();
        });
        for writer in &self.writers {
            let used =
                self.used[writer.account].as_mut().expect("requested before the writers began");
            used.told =
                used.told.max(REQUESTS_PER_DAY - writer.remaining.unwrap_or(REQUESTS_PER_DAY));
            used.in_flight += i64::from(writer.ledger.pending.is_some());
        }
    }

    fn written(&self) -> usize {
        self.writers.iter().map(|writer| writer.written).sum()
    }

    fn least_left(&self) -> i64 {
        let told = self.used.iter().flatten().map(|used| used.told).max();
        REQUESTS_PER_DAY - told.unwrap_or(0)
    }

    /// Responses that are stored by key may be discarded after a day, so they are not requested
    /// again.
    fn next_day(&mut self) {
        self.today = self.today.plus(1);
        self.used = vec![None; ACCOUNTS];
        for writer in &mut self.writers {
            writer.ledger.forget_answered();
        }
    }
}

/// Returns an account's usage of the day, including this request.
fn used(client: &mut Client) -> i64 {
    let left = client.get("/api/v1/alerts?limit=1").number("x-ratelimit-remaining");
    REQUESTS_PER_DAY - left.expect("a counted request")
}
