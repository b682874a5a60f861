//! Clients that write random changes, each on its own objects, and record every response.

use std::io;
use std::sync::Barrier;
use std::sync::mpsc::Sender;

use serde_json::{Value, json};

use super::http::{Client, Response};
use super::ledger::{Act, Ask, Ledger};
use super::rng::Rng;

/// Approximate maximum number of objects of each kind. Above this number, a writer removes more than it
/// adds, so that a long run produces a long history but not a large state.
const KEPT_ABOUT: usize = 20;

/// Outcome of one step.
pub enum Step {
    /// The change was successful and recorded; it may have been a no-op.
    Done,
    /// The response was 503: the change was not carried out, and the ledger is unchanged.
    Refused(Response),
}

/// One client of one account.
pub struct Writer {
    /// Index of the account in the test.
    pub account: usize,
    pub ledger: Ledger,
    /// The last `x-ratelimit-remaining` received.
    pub remaining: Option<i64>,
    /// Number of acknowledged changes.
    pub written: usize,
    /// Extra characters in every note.
    pub notes_padding: usize,
    rng: Rng,
    /// Part of every generated name, which makes it unique to this writer.
    mark: String,
    made: u64,
    /// Names of the corpus that no other writer of this account watches or votes on.
    names: Vec<String>,
}

impl Writer {
    pub fn new(account: usize, mark: &str, names: Vec<String>, seed: u64) -> Writer {
        Writer {
            account,
            ledger: Ledger::default(),
            remaining: None,
            written: 0,
            notes_padding: 0,
            rng: Rng::new(seed),
            mark: mark.to_owned(),
            made: 0,
            names,
        }
    }

    /// Waits for `start`, then writes until the server is gone, and reports each response.
    pub fn write_until_killed(
        &mut self,
        mut client: Client,
        start: &Barrier,
        answered: Sender<()>,
    ) {
        self.remaining = None;
        start.wait();
        while let Ok(step) = self.step(&mut client) {
            if let Step::Refused(response) = step {
                panic!("refused although the disk works: {} {}", response.status, response.text());
            }
            // The connection is refused after the kill.
            let _ = answered.send(());
        }
    }

    /// Makes one change. After an error, the outcome of the change is unknown: see
    /// [`Ledger::pending`].
    #[track_caller]
    pub fn step(&mut self, client: &mut Client) -> io::Result<Step> {
        if self.ledger.answered() > 0 && self.rng.chance(5) {
            let at = self.rng.below(self.ledger.answered());
            if let Some(step) = self.again(at, client)? {
                return Ok(step);
            }
        }
        let ask = self.next_ask();
        self.send(ask, client)
    }

    /// Adds a claim, which always needs a write. Returns errors like [`Writer::step`].
    #[track_caller]
    pub fn add_claim(&mut self, client: &mut Client) -> io::Result<Step> {
        let act = Act::AddClaim { body: self.claim() };
        self.send(Ask { act, key: None }, client)
    }

    #[track_caller]
    fn send(&mut self, ask: Ask, client: &mut Client) -> io::Result<Step> {
        self.ledger.pending = Some(ask.clone());
        let response = ask.send(client)?;
        self.remaining = response.number("x-ratelimit-remaining").or(self.remaining);
        if response.status == 503 {
            self.ledger.pending = None;
            return Ok(Step::Refused(response));
        }
        self.ledger.settle(&ask, &response);
        self.written += 1;
        Ok(Step::Done)
    }

    fn again(&mut self, at: usize, client: &mut Client) -> io::Result<Option<Step>> {
        let response = self.ledger.ask_again(at, client)?;
        self.remaining = response.number("x-ratelimit-remaining").or(self.remaining);
        Ok((response.status == 503).then_some(Step::Refused(response)))
    }

    fn next_ask(&mut self) -> Ask {
        let act = match self.rng.below(10) {
            0..3 => self.on_claims(),
            3..6 => self.on_watches(),
            6 => self.on_rules(),
            7 => self.on_searches(),
            _ => self.vote(),
        };
        let key = (act.adds() && self.rng.chance(50)).then(|| self.invent("key-"));
        Ask { act, key }
    }

    fn on_claims(&mut self) -> Act {
        match self.pick(self.ledger.claims.len()) {
            Choice::Add => Act::AddClaim { body: self.claim() },
            Choice::Change(at) => {
                let id = nth(&self.ledger.claims, at);
                Act::ChangeClaim { id, body: self.claim_change() }
            }
            Choice::Remove(at) => Act::RemoveClaim { id: nth(&self.ledger.claims, at) },
        }
    }

    fn on_rules(&mut self) -> Act {
        match self.pick(self.ledger.rules.len()) {
            Choice::Add => Act::AddRule { body: self.rule() },
            Choice::Change(at) => {
                let id = nth(&self.ledger.rules, at);
                Act::ChangeRule { id, body: self.rule_change() }
            }
            Choice::Remove(at) => Act::RemoveRule { id: nth(&self.ledger.rules, at) },
        }
    }

    fn on_searches(&mut self) -> Act {
        match self.pick(self.ledger.searches.len()) {
            // The limit is 100.
            Choice::Add if self.ledger.searches.len() < 8 => Act::AddSearch {
                body: json!({ "name": self.invent("search "), "filter": self.filter(), "sort": "release" }),
            },
            Choice::Add => Act::RemoveSearch { id: nth(&self.ledger.searches, 0) },
            Choice::Change(at) => {
                let id = nth(&self.ledger.searches, at);
                let body = match self.rng.below(3) {
                    0 => json!({ "filter": self.filter() }),
                    1 => json!({ "name": self.invent("search ") }),
                    _ => json!({ "order": "desc", "seen": true }),
                };
                Act::ChangeSearch { id, body }
            }
            Choice::Remove(at) => Act::RemoveSearch { id: nth(&self.ledger.searches, at) },
        }
    }

    fn on_watches(&mut self) -> Act {
        match self.pick(self.ledger.watches.len()) {
            Choice::Add if self.rng.chance(40) => {
                Act::AddWatch { name: self.rng.pick(&self.names).clone() }
            }
            Choice::Add => Act::AddWatch { name: self.invent("w") + ".com" },
            // The name is already watched, so nothing changes.
            Choice::Change(at) => Act::AddWatch { name: nth(&self.ledger.watches, at) },
            Choice::Remove(at) => Act::RemoveWatch { name: nth(&self.ledger.watches, at) },
        }
    }

    fn vote(&mut self) -> Act {
        let name = self.rng.pick(&self.names).clone();
        Act::Vote { name, vote: *self.rng.pick(&[Some("up"), Some("down"), None]) }
    }

    fn pick(&mut self, kept: usize) -> Choice {
        if kept == 0 || self.rng.below(KEPT_ABOUT) >= kept.min(KEPT_ABOUT - 2) {
            return Choice::Add;
        }
        let at = self.rng.below(kept);
        if self.rng.chance(50) { Choice::Change(at) } else { Choice::Remove(at) }
    }

    fn invent(&mut self, what: &str) -> String {
        self.made += 1;
        format!("{what}{}-{}", self.mark, self.made)
    }

    fn claim(&mut self) -> Value {
        let mut claim = self.claim_change();
        claim["domain"] = json!(self.invent("c") + ".de");
        if claim.get("status").is_none() {
            claim["status"] = json!("attempted");
        }
        if !self.ledger.rules.is_empty() && self.rng.chance(30) {
            let at = self.rng.below(self.ledger.rules.len());
            claim["alertRuleId"] = json!(nth(&self.ledger.rules, at));
        }
        claim
    }

    fn claim_change(&mut self) -> Value {
        let mut change = json!({ "userNotes": self.text() });
        if self.rng.chance(60) {
            change["registrar"] =
                json!(self.rng.pick(&["Dynadot", "=CMD()", "Köln \"Net\", GmbH"]));
        }
        if self.rng.chance(60) {
            change["acquiredPriceUsd"] = self.price();
        }
        if self.rng.chance(50) {
            let status = *self.rng.pick(&["attempted", "caught", "registered", "lost", "sold"]);
            change["status"] = json!(status);
            if status == "sold" {
                change["soldAt"] = json!("2026-02-03T04:05:06.789Z");
                change["resalePriceUsd"] = self.price();
            }
        }
        change
    }

    fn rule(&mut self) -> Value {
        let channels = match self.rng.below(3) {
            0 => json!([{ "type": "email" }]),
            1 => json!([{ "type": "telegram", "chatId": "123456789" }]),
            _ => json!([{ "type": "email" }, { "type": "webhook",
                          "url": "https://hooks.example.com/in" }]),
        };
        json!({ "name": self.invent("rule "), "filter": self.filter(), "channels": channels })
    }

    fn rule_change(&mut self) -> Value {
        match self.rng.below(3) {
            0 => json!({ "active": self.rng.chance(50) }),
            1 => json!({ "filter": self.filter() }),
            _ => json!({ "name": self.invent("rule "), "active": true }),
        }
    }

    fn filter(&mut self) -> Value {
        let mut filter = json!({
            "tlds": ["com", "co.uk"],
            "minDqs": self.rng.below(101),
            "maxLength": 3 + self.rng.below(61),
        });
        // Some conditions are stored in records of their own.
        if self.rng.chance(50) {
            filter["starts"] = json!(["get", "a,\"b\""]);
            filter["minLength"] = json!(3);
        }
        if self.rng.chance(30) {
            filter["pattern"] = json!("CVC*");
            filter["releaseWithinDays"] = json!(self.rng.below(30));
        }
        filter
    }

    /// Whole cents, without trailing zeros.
    fn price(&mut self) -> Value {
        let cents = self.rng.below(100_000_000);
        if cents.is_multiple_of(100) { json!(cents / 100) } else { json!(cents as f64 / 100.0) }
    }

    /// Generates notes with characters that are difficult for file formats.
    fn text(&mut self) -> String {
        let words = ["plain", "=SUM(A1)", "\"quoted\", and more", "two\nlines", "münchen 東京 🦀"];
        let padding = ".".repeat(self.notes_padding);
        format!("{} {}{padding}", self.rng.pick(&words), self.made)
    }
}

enum Choice {
    Add,
    Change(usize),
    Remove(usize),
}

fn nth<K: Clone, V>(kept: &std::collections::BTreeMap<K, V>, at: usize) -> K {
    kept.keys().nth(at).expect("an existing object").clone()
}
