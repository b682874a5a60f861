//! Random operations on a real store, compared with a plain model of it: the rules of
//! data/docs/api.md, implemented again with lists only.
//!
//! Between operations, the store is closed, dropped as in a crash, snapshotted and reopened, with
//! segments and snapshots so small that every run crosses hundreds. After each operation, the affected
//! data is compared; after each reopen, everything is, including the digest.
//!
//! `DROPDEX_SEED=N` repeats a run, `DROPDEX_FULL=1` makes it a long one.

#![expect(clippy::print_stderr, reason = "the seed of a failed run is what repeats it")]

mod outbox;
mod people;

use std::collections::BTreeMap;
use std::path::Path;

use chrono::{DateTime, Duration, TimeZone, Utc};
use dropdex::accounts::{
    Answered, Caller, Channel, Claim, ClaimPatch, CommandError, Email, Idempotency, IdempotencyKey,
    NewClaim, NewRule, NewSearch, Outcome, Post, Receipt, Rule, RulePatch, SavedSearch,
    SearchPatch, Store, StoreOptions, Watch, WatchEntry, WatchPatch, WebhookSecret, WriteError,
};
use dropdex::query::stored::Conditions;
use dropdex::vocab::claim::{ClaimStatus, Vote};
use dropdex::vocab::clock::Clock;
use dropdex::vocab::day::Day;
use dropdex::vocab::ids::{ClaimId, RuleId, SearchId};
use dropdex::vocab::money::{Amount, Usd};
use dropdex::vocab::name::DomainName;
use dropdex::vocab::plan::{Plan, Plans};
use dropdex::vocab::time::UnixMs;
use dropdex::vocab::url::WebhookUrl;

use crate::common::rng::Rng;
use outbox::{ModelOutbox, Outside};
use people::ModelPeople;

const TODAY: &str = "2026-11-21";
/// The limits are so small that they are reached.
const EXTERNAL_NAMES: [usize; 4] = [0, 2, 4, 6];
const ACTIVE_RULES: [usize; 4] = [1, 2, 3, 4];
/// With this allowance, each request is recorded at once, since a hundredth of it is one request.
const REQUESTS_PER_DAY: u32 = 100;

#[test]
fn the_store_agrees_with_the_model() {
    let full = std::env::var_os("DROPDEX_FULL").is_some();
    let (runs, steps) = if full { (200, 5_000) } else { (4, 500) };
    let seed = std::env::var("DROPDEX_SEED").ok().and_then(|text| text.parse().ok());
    let first = seed.unwrap_or_else(|| u64::from(std::process::id()) << 16);
    let mut seen = Seen::default();
    for seed in first..first + if seed.is_some() { 1 } else { runs } {
        eprintln!("DROPDEX_SEED={seed}");
        seen = seen.and(Run::new(seed).steps(steps));
    }
    eprintln!("{seen:?}");
    let Seen { replays, conflicts, limits, invalid, from_snapshots, .. } = seen;
    let Seen { matched, requeued, unsubscribed, log_ins, over, verified, .. } = seen;
    let first = [replays, conflicts, limits, invalid, from_snapshots].into_iter();
    let rarest = first.chain([matched, requeued + unsubscribed, log_ins, over]);
    let rarest = rarest.chain(full.then_some(verified)).min();
    // A single run that is repeated from its seed may miss a path.
    assert!(seed.is_some() || rarest > Some(0), "{seen:?}: these runs prove little");
}

/// The model of an account: lists, in order of addition.
struct Account {
    email: String,
    plan: Plan,
    shut: bool,
    key: Option<String>,
    /// The day of the last request, and the number of requests granted on it.
    requests: (Day, u32),
    claims: Vec<ModelClaim>,
    watches: Vec<ModelWatch>,
    rules: Vec<ModelRule>,
    votes: Vec<(String, Vote)>,
    /// Id, name, text and the newest batch that was seen.
    searches: Vec<(u64, String, String, u64)>,
    replies: Vec<ModelReply>,
    /// Outboxes by rule.
    outboxes: BTreeMap<u64, ModelOutbox>,
    /// Number of test messages of a day.
    tests: Option<(Day, usize)>,
    people: ModelPeople,
}

#[derive(Clone, Debug, PartialEq)]
struct ModelClaim {
    id: u64,
    domain: String,
    status: ClaimStatus,
    registrar: Option<String>,
    acquired: Option<u64>,
    resale: Option<u64>,
    sold_at: Option<i64>,
    reported_at: i64,
    updated_at: i64,
    notes: Option<String>,
    rule: Option<(u64, String)>,
}

#[derive(Clone, Debug, PartialEq)]
struct ModelWatch {
    name: String,
    added_at: i64,
    external: bool,
    again: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct ModelRule {
    id: u64,
    name: String,
    max_length: Option<u8>,
    starts: String,
    channels: Vec<Channel>,
    active: bool,
    created_at: i64,
    /// Webhook and secret.
    secrets: Vec<(String, String)>,
}

struct ModelReply {
    key: String,
    fingerprint: u8,
    at: DateTime<Utc>,
    reply: Receipt,
}

struct Run {
    rng: Rng,
    dir: tempfile::TempDir,
    store: Option<Store>,
    runtime: tokio::runtime::Runtime,
    now: DateTime<Utc>,
    /// The day on which the store was opened.
    opened: Day,
    model: Vec<Account>,
    outside: Outside,
    added: u64,
    seen: Seen,
}

/// Number of times that rare paths were taken.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    replays: usize,
    conflicts: usize,
    limits: usize,
    invalid: usize,
    from_snapshots: usize,
    matched: usize,
    requeued: usize,
    unsubscribed: usize,
    log_ins: usize,
    /// Sessions that had expired.
    over: usize,
    verified: usize,
}

impl Seen {
    fn and(self, more: Seen) -> Seen {
        Seen {
            replays: self.replays + more.replays,
            conflicts: self.conflicts + more.conflicts,
            limits: self.limits + more.limits,
            invalid: self.invalid + more.invalid,
            from_snapshots: self.from_snapshots + more.from_snapshots,
            matched: self.matched + more.matched,
            requeued: self.requeued + more.requeued,
            unsubscribed: self.unsubscribed + more.unsubscribed,
            log_ins: self.log_ins + more.log_ins,
            over: self.over + more.over,
            verified: self.verified + more.verified,
        }
    }
}

fn plans() -> Plans {
    let mut plans = Plans::default();
    for plan in Plan::ALL {
        let limits = plans.limits_mut(plan);
        limits.external_names = EXTERNAL_NAMES[plan as usize] as u32;
        limits.active_rules = ACTIVE_RULES[plan as usize] as u32;
        limits.requests_per_day = REQUESTS_PER_DAY;
    }
    plans
}

fn open(dir: &Path, today: Day) -> Store {
    let clock = Clock::pinned_to(today);
    let options = StoreOptions {
        segment_bytes: 6_000,
        snapshot_after_bytes: 9_000,
        ..StoreOptions::new(dir, plans(), clock)
    };
    Store::open_with(options).expect("opened")
}

fn name(text: &str) -> DomainName {
    DomainName::parse(text).expect("a name")
}

fn ms(at: UnixMs) -> i64 {
    at.instant().timestamp_millis()
}

fn model_claim(claim: &Claim) -> ModelClaim {
    ModelClaim {
        id: claim.id.get(),
        domain: claim.domain.to_string(),
        status: claim.status,
        registrar: claim.registrar.as_deref().map(str::to_owned),
        acquired: claim.acquired_price.map(Usd::cents),
        resale: claim.resale_price.map(Usd::cents),
        sold_at: claim.sold_at.map(ms),
        reported_at: ms(claim.reported_at),
        updated_at: ms(claim.updated_at),
        notes: claim.user_notes.as_deref().map(str::to_owned),
        rule: claim.alert_rule.as_ref().map(|rule| (rule.id.get(), rule.name.to_string())),
    }
}

fn model_watch(entry: &WatchEntry) -> ModelWatch {
    ModelWatch {
        name: entry.name.to_string(),
        added_at: ms(entry.added_at),
        external: entry.external,
        again: entry.registered_again,
    }
}

fn model_rule(rule: &Rule) -> ModelRule {
    let secret = |it: &WebhookSecret| (it.url.as_str().to_owned(), it.secret.reveal().to_owned());
    ModelRule {
        id: rule.id.get(),
        name: rule.name.to_string(),
        max_length: rule.filter.get("max_len").parse().ok(),
        starts: rule.filter.get("starts").to_owned(),
        channels: rule.channels.clone(),
        active: rule.active,
        created_at: ms(rule.created_at),
        secrets: rule.secrets.iter().map(secret).collect(),
    }
}

/// Expected outcome of a POST.
enum Due {
    Fresh,
    Again(Receipt),
    Conflict,
}

impl Account {
    fn new(email: String, plan: Plan) -> Account {
        let (claims, watches, rules) = (Vec::new(), Vec::new(), Vec::new());
        let (votes, replies) = (Vec::new(), Vec::new());
        let (shut, key, requests) = (false, None, (Day::MIN, 0));
        Account {
            email,
            plan,
            shut,
            key,
            requests,
            claims,
            watches,
            rules,
            votes,
            searches: Vec::new(),
            replies,
            outboxes: BTreeMap::new(),
            tests: None,
            people: ModelPeople::default(),
        }
    }

    fn external(&self) -> usize {
        self.watches.iter().filter(|watch| watch.external).count()
    }

    fn active(&self) -> usize {
        self.rules.iter().filter(|rule| rule.active).count()
    }

    /// Returns the expected outcome of a POST with this key now.
    fn due(&self, key: Option<&(String, u8)>, now: DateTime<Utc>) -> Due {
        let Some((key, fingerprint)) = key else { return Due::Fresh };
        let day = Duration::hours(24);
        let kept = self.replies.iter().rev().find(|it| it.key == *key && now < it.at + day);
        match kept {
            None => Due::Fresh,
            Some(kept) if kept.fingerprint == *fingerprint => Due::Again(kept.reply.clone()),
            Some(_) => Due::Conflict,
        }
    }

    fn keep(&mut self, key: Option<(String, u8)>, at: DateTime<Utc>, reply: &Receipt) {
        if let Some((key, fingerprint)) = key {
            self.replies.push(ModelReply { key, fingerprint, at, reply: reply.clone() });
        }
    }

    fn mails_to_nobody(&self, channels: &[Channel]) -> bool {
        self.people.unverified.is_some() && channels.contains(&Channel::Email)
    }

    fn mails_only(&self, channels: &[Channel]) -> bool {
        self.plan == Plan::Free && channels.iter().any(|channel| *channel != Channel::Email)
    }
}

impl Run {
    fn new(seed: u64) -> Run {
        let dir = tempfile::tempdir().expect("a folder");
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let mut run = Run {
            rng: Rng::new(seed),
            store: Some(open(dir.path(), TODAY.parse().expect("a day"))),
            dir,
            runtime: runtime.expect("a runtime"),
            now: Utc.with_ymd_and_hms(2026, 11, 21, 0, 0, 0).single().expect("an instant"),
            opened: TODAY.parse().expect("a day"),
            model: Vec::new(),
            outside: Outside::default(),
            added: 0,
            seen: Seen::default(),
        };
        run.add_account();
        run
    }

    fn steps(&mut self, steps: usize) -> Seen {
        for _ in 0..steps {
            self.now += Duration::milliseconds(self.rng.below(1_200_000) as i64);
            // The clock of the store stands still while it is open.
            if Day::nearest(self.now) > self.opened.plus(1) {
                self.close();
            }
            self.step();
        }
        self.close();
        self.seen
    }

    fn step(&mut self) {
        match self.rng.below(170) {
            140..=141 => self.set_password(),
            142 => self.sign_up(),
            143..=146 => self.log_in(),
            147..=152 => self.visit(),
            153..=154 => self.log_out(),
            155..=156 => self.ask_link(),
            157..=158 => self.verify(),
            159 => self.set_chat(),
            160..=169 => self.searches(),
            100..=111 => self.list(),
            112..=119 => self.try_some(),
            120..=124 => self.test_message(),
            125..=132 => self.requeue(),
            133..=135 => self.unsubscribe(),
            136..=139 => self.observe(),
            0..=1 => self.add_account(),
            2..=3 => self.set_plan(),
            4..=5 => self.issue_key(),
            6 if self.rng.chance(30) => self.disable(),
            7..=10 => self.charge(),
            11..=26 => self.add_claim(),
            27..=38 => self.change_claim(),
            39..=42 => self.remove_claim(),
            43..=58 => self.add_watch(),
            59..=62 => self.remove_watch(),
            63..=70 => self.add_rule(),
            71..=80 => self.change_rule(),
            81..=83 => self.remove_rule(),
            84..=94 => self.vote(),
            95 => self.close(),
            96..=97 => self.crash(),
            98 => self.snapshot(),
            _ => self.backup(),
        }
    }

    fn store(&self) -> Store {
        self.store.clone().expect("open")
    }

    /// Draws an account, and returns it if it can log in.
    fn someone(&mut self) -> Option<(usize, Caller)> {
        let at = self.rng.below(self.model.len());
        let key = self.model[at].key.clone()?;
        let caller = self.store().authenticate(&key);
        assert_eq!(caller.is_none(), self.model[at].shut, "account {at}");
        Some((at, caller?))
    }

    fn email(&self, at: usize) -> Email {
        self.model[at].email.parse().expect("an address")
    }

    fn add_account(&mut self) {
        let plan = *self.rng.pick(&Plan::ALL);
        let email = format!("a{}@example.com", self.rng.below(5));
        let added = self.store().add_account(&email.parse().expect("an address"), plan, None);
        if self.model.iter().any(|account| account.email == email) {
            assert!(matches!(added, Err(CommandError::Refused(_))), "{email} is taken");
            return;
        }
        self.added += 1;
        assert_eq!(added.expect("added").0, self.added);
        self.model.push(Account::new(email, plan));
        self.give_key(self.model.len() - 1);
    }

    fn set_plan(&mut self) {
        let (at, plan) = (self.rng.below(self.model.len()), *self.rng.pick(&Plan::ALL));
        self.store().set_plan(&self.email(at), plan).expect("set");
        self.model[at].plan = plan;
    }

    fn issue_key(&mut self) {
        let at = self.rng.below(self.model.len());
        self.give_key(at);
    }

    fn give_key(&mut self, at: usize) {
        let issued = self.store().issue_key(&self.email(at));
        let account = &mut self.model[at];
        match issued {
            Ok(issued) => {
                assert!(!account.shut);
                assert_eq!(issued.replaced, account.key.is_some());
                if let Some(old) = account.key.replace(issued.key.reveal().to_owned()) {
                    assert!(self.store().authenticate(&old).is_none(), "an old key");
                }
            }
            Err(err) => assert!(account.shut, "{err}"),
        }
    }

    fn disable(&mut self) {
        let at = self.rng.below(self.model.len());
        self.store().disable(&self.email(at)).expect("shut");
        self.model[at].shut = true;
        self.model[at].people.end_all();
    }

    fn charge(&mut self) {
        let Some((at, caller)) = self.someone() else { return };
        let allowance = self.store().charge_request(&caller, self.now);
        let today = Day::nearest(self.now);
        let (day, requests) = &mut self.model[at].requests;
        if *day < today {
            (*day, *requests) = (today, 0);
        }
        assert_eq!(allowance.granted, *requests < REQUESTS_PER_DAY);
        *requests += u32::from(allowance.granted);
        assert_eq!(allowance.remaining, REQUESTS_PER_DAY - *requests);
    }

    fn key(&mut self) -> Option<(String, u8)> {
        self.rng.maybe(60, |rng| (format!("key {}", rng.below(4)), rng.below(2) as u8))
    }

    fn post(&self, key: Option<&(String, u8)>) -> Post {
        let idempotency = key.map(|(key, fingerprint)| Idempotency {
            key: IdempotencyKey::parse(key).expect("a key"),
            fingerprint: [*fingerprint; 32],
        });
        Post { now: self.now, idempotency }
    }

    /// Returns true if a POST should have been carried out. Otherwise, checks that the request was
    /// replayed or refused.
    fn carried_out<T: std::fmt::Debug>(
        &mut self,
        due: Due,
        result: &Result<Answered<T>, WriteError>,
    ) -> bool {
        match due {
            Due::Fresh => return true,
            Due::Again(reply) => {
                self.seen.replays += 1;
                let kept = result.as_ref().ok().filter(|it| it.is_replay()).map(|it| &it.receipt);
                assert_eq!(kept, Some(&reply), "{result:?}");
            }
            Due::Conflict => {
                self.seen.conflicts += 1;
                assert!(matches!(result, Err(WriteError::IdempotencyConflict)), "{result:?}");
            }
        }
        false
    }

    /// Returns one of 48 names.
    fn domain(&mut self) -> String {
        let label = *self.rng.pick(&["alpha", "b", "gamma-ray-and-some-more-letters", "d4"]);
        let tld = *self.rng.pick(&["com", "co.uk", "xn--p1ai"]);
        format!("n{}-{label}.{tld}", self.rng.below(4))
    }

    fn cents(&mut self) -> u64 {
        self.rng.below(100_000_000_001) as u64
    }

    /// Returns a rule of account `at`, or an unused number.
    fn rule_id(&mut self, at: usize) -> u64 {
        match self.model[at].rules.len() {
            0 => 1,
            count if self.rng.chance(80) => self.model[at].rules[self.rng.below(count)].id,
            _ => 1,
        }
    }

    fn claim_id(&mut self, at: usize) -> u64 {
        match self.model[at].claims.len() {
            0 => 1,
            count if self.rng.chance(90) => self.model[at].claims[self.rng.below(count)].id,
            // A rule that may belong to another account.
            _ => {
                let other = self.rng.below(self.model.len());
                self.model[other].claims.first().map_or(1, |claim| claim.id)
            }
        }
    }

    fn add_claim(&mut self) {
        let Some((at, caller)) = self.someone() else { return };
        let key = self.key();
        let due = self.model[at].due(key.as_ref(), self.now);
        let now = self.now.timestamp_millis();
        let mut claim = ModelClaim {
            id: 0,
            domain: self.domain(),
            status: *self.rng.pick(&ClaimStatus::ALL),
            registrar: self.rng.maybe(30, |rng| format!("Registrar {}", rng.below(9))),
            acquired: self.rng.maybe(40, |rng| rng.below(100_000_000_001) as u64),
            resale: None,
            sold_at: None,
            reported_at: now,
            updated_at: now,
            notes: self.rng.maybe(40, |rng| "note\n".repeat(1 + rng.below(40))),
            rule: None,
        };
        if self.rng.chance(30) {
            claim.resale = Some(self.cents());
        }
        if self.rng.chance(20) {
            claim.sold_at = Some(now - 1_000);
        }
        let rule = self.rng.chance(30).then(|| self.rule_id(at));
        let new = NewClaim {
            domain: name(&claim.domain),
            status: claim.status,
            registrar: claim.registrar.clone(),
            acquired_price: claim.acquired.and_then(Usd::from_cents).map(Amount::from),
            resale_price: claim.resale.and_then(Usd::from_cents).map(Amount::from),
            sold_at: claim.sold_at.and_then(|ms| UnixMs::new(ms as u64)),
            user_notes: claim.notes.clone(),
            alert_rule: rule.and_then(RuleId::new),
            bid: None,
            venue: None,
            renews_on: None,
            renewal: None,
            commission: None,
            sold_venue: None,
        };
        let shape = |claim: &Claim| Receipt { code: 201, bytes: claim.id.to_string().into() };
        let (store, post) = (self.store(), self.post(key.as_ref()));
        let result = self
            .runtime
            .block_on(async { store.add_claim(&caller, new, post).await?.respond(shape).await });
        if !self.carried_out(due, &result) {
            return;
        }
        let account = &mut self.model[at];
        let named = rule.map(|id| account.rules.iter().find(|rule| rule.id == id));
        let is_sold = claim.status == ClaimStatus::Sold;
        let misfit = !is_sold && (claim.resale.is_some() || claim.sold_at.is_some());
        if misfit || matches!(named, Some(None)) {
            self.seen.invalid += 1;
            assert!(matches!(result, Err(WriteError::Invalid { .. })), "{result:?}");
            return;
        }
        let reply = result.expect("added").receipt;
        claim.id = String::from_utf8_lossy(&reply.bytes).parse().expect("an id");
        assert!(account.claims.iter().all(|other| other.id != claim.id), "a new id");
        claim.rule = named.flatten().map(|rule| (rule.id, rule.name.clone()));
        if is_sold && claim.sold_at.is_none() {
            claim.sold_at = Some(now);
        }
        account.claims.push(claim);
        account.keep(key, self.now, &reply);
        self.compare(at);
    }

    fn change_claim(&mut self) {
        let Some((at, caller)) = self.someone() else { return };
        let id = self.claim_id(at);
        let now = self.now.timestamp_millis();
        let status = self.rng.maybe(50, |rng| *rng.pick(&ClaimStatus::ALL));
        let notes = self.rng.maybe(20, |rng| rng.maybe(70, |rng| "x".repeat(rng.below(30))));
        let registrar = self.rng.maybe(20, |rng| rng.maybe(70, |_| "Other".to_owned()));
        let acquired = self.rng.maybe(20, |rng| rng.maybe(70, |rng| rng.below(1_000) as u64));
        let resale = self.rng.maybe(20, |rng| rng.maybe(70, |rng| rng.below(1_000) as u64));
        let sold_at = self.rng.maybe(10, |rng| rng.maybe(70, |_| now - 5_000));
        let rule = self.rng.chance(20).then(|| self.rng.chance(70).then(|| self.rule_id(at)));
        let amount = |cents: Option<u64>| cents.and_then(Usd::from_cents).map(Amount::from);
        let patch = ClaimPatch {
            status,
            registrar: registrar.clone(),
            acquired_price: acquired.map(amount),
            resale_price: resale.map(amount),
            sold_at: sold_at.map(|at| at.and_then(|ms| UnixMs::new(ms as u64))),
            user_notes: notes.clone(),
            alert_rule: rule.map(|rule| rule.and_then(RuleId::new)),
            ..ClaimPatch::default()
        };
        let store = self.store();
        let id_given = ClaimId::new(id).expect("an id");
        let result = self.runtime.block_on(store.change_claim(&caller, id_given, patch, self.now));
        let account = &mut self.model[at];
        let Some(place) = account.claims.iter().position(|claim| claim.id == id) else {
            assert!(matches!(result, Err(WriteError::NotFound)), "{result:?}");
            return;
        };
        let mut claim = account.claims[place].clone();
        if let Some(status) = status {
            let was_sold = claim.status == ClaimStatus::Sold;
            claim.status = status;
            if status == ClaimStatus::Sold && !was_sold {
                claim.sold_at = Some(now);
            }
            if status != ClaimStatus::Sold {
                (claim.sold_at, claim.resale) = (None, None);
            }
        }
        let mut misfit = false;
        if let Some(rule) = rule {
            claim.rule = None;
            if let Some(id) = rule {
                let named = account.rules.iter().find(|rule| rule.id == id);
                misfit |= named.is_none();
                claim.rule = named.map(|rule| (rule.id, rule.name.clone()));
            }
        }
        claim.registrar = registrar.unwrap_or(claim.registrar);
        claim.notes = notes.unwrap_or(claim.notes).filter(|notes| !notes.is_empty());
        claim.acquired = acquired.unwrap_or(claim.acquired);
        claim.resale = resale.unwrap_or(claim.resale);
        claim.sold_at = sold_at.unwrap_or(claim.sold_at);
        claim.updated_at = now;
        let is_sold = claim.status == ClaimStatus::Sold;
        misfit |= is_sold != claim.sold_at.is_some() || (!is_sold && claim.resale.is_some());
        if misfit {
            self.seen.invalid += 1;
            assert!(matches!(result, Err(WriteError::Invalid { .. })), "{result:?}");
            return;
        }
        assert_eq!(model_claim(&result.expect("changed")), claim);
        account.claims[place] = claim;
        self.compare(at);
    }

    fn remove_claim(&mut self) {
        let Some((at, caller)) = self.someone() else { return };
        let id = self.claim_id(at);
        let (store, id_given) = (self.store(), ClaimId::new(id).expect("an id"));
        let result = self.runtime.block_on(store.remove_claim(&caller, id_given));
        let account = &mut self.model[at];
        let before = account.claims.len();
        account.claims.retain(|claim| claim.id != id);
        assert_eq!(result.is_ok(), account.claims.len() < before, "{result:?}");
        self.compare(at);
    }

    fn add_watch(&mut self) {
        let Some((at, caller)) = self.someone() else { return };
        let key = self.key();
        let due = self.model[at].due(key.as_ref(), self.now);
        let text = self.domain();
        let (in_corpus, again) = (self.rng.chance(50), self.rng.chance(20));
        let arrived: Vec<String> = (0..self.rng.below(3)).map(|_| self.domain()).collect();
        let watch = Watch {
            name: name(&text),
            in_corpus,
            registered_again: again,
            arrived: arrived.iter().map(|text| name(text)).collect(),
            patch: WatchPatch::default(),
            near: None,
        };
        let mut told = None;
        let shape = |(entry, outcome): &(WatchEntry, Outcome)| {
            told = Some((model_watch(entry), *outcome));
            let status = if *outcome == Outcome::Added { 201 } else { 200 };
            Receipt { code: status, bytes: format!("{entry:?}").into() }
        };
        let (store, post) = (self.store(), self.post(key.as_ref()));
        let result = self
            .runtime
            .block_on(async { store.add_watch(&caller, watch, post).await?.respond(shape).await });
        if !self.carried_out(due, &result) {
            return;
        }
        let now = self.now;
        let account = &mut self.model[at];
        let is_there = account.watches.iter().any(|watch| watch.name == text);
        let is_arriving = |watch: &ModelWatch| watch.external && arrived.contains(&watch.name);
        let arriving = account.watches.iter().filter(|watch| is_arriving(watch)).count();
        let used = account.external() - arriving;
        if !is_there && !in_corpus && used >= EXTERNAL_NAMES[account.plan as usize] {
            self.seen.limits += 1;
            assert!(matches!(result, Err(WriteError::PlanLimit { .. })), "{result:?}");
            return self.compare(at);
        }
        for watch in &mut account.watches {
            watch.external &= !arrived.contains(&watch.name);
        }
        if !is_there {
            let added_at = now.timestamp_millis();
            let external = !in_corpus;
            account.watches.push(ModelWatch { name: text.clone(), added_at, external, again });
        }
        let entry = account.watches.iter().find(|watch| watch.name == text).expect("put there");
        let outcome = if is_there { Outcome::AlreadyThere } else { Outcome::Added };
        assert_eq!(told, Some((entry.clone(), outcome)));
        account.keep(key, now, &result.expect("added").receipt);
        self.compare(at);
    }

    fn remove_watch(&mut self) {
        let Some((at, caller)) = self.someone() else { return };
        let text = self.domain();
        let store = self.store();
        let result = self.runtime.block_on(store.remove_watch(&caller, &name(&text)));
        let account = &mut self.model[at];
        let before = account.watches.len();
        account.watches.retain(|watch| watch.name != text);
        assert_eq!(result.is_ok(), account.watches.len() < before, "{result:?}");
        self.forget_seen();
        self.compare(at);
    }

    fn channels(&mut self) -> Vec<Channel> {
        let url = |host| WebhookUrl::parse(&format!("https://{host}.example.com/")).expect("a URL");
        let all = [
            Channel::Email,
            Channel::Webhook { url: url("one") },
            Channel::Webhook { url: url("two") },
            Channel::Telegram { chat_id: "-1001".into() },
        ];
        let mut channels: Vec<_> = all.iter().filter(|_| self.rng.chance(40)).cloned().collect();
        if self.rng.chance(3) {
            channels.push(Channel::Email);
        }
        channels
    }

    fn misfit(channels: &[Channel]) -> bool {
        let mails = channels.iter().filter(|channel| **channel == Channel::Email).count();
        channels.is_empty() || mails > 1
    }

    fn webhooks(channels: &[Channel]) -> Vec<String> {
        let url = |channel: &Channel| match channel {
            Channel::Webhook { url } => Some(url.as_str().to_owned()),
            _ => None,
        };
        channels.iter().filter_map(url).collect()
    }

    fn add_rule(&mut self) {
        let Some((at, caller)) = self.someone() else { return };
        let key = self.key();
        let due = self.model[at].due(key.as_ref(), self.now);
        let (text, channels) = (format!("rule {}", self.rng.below(100)), self.channels());
        let max_length = self.rng.maybe(30, |rng| 1 + rng.below(63) as u8);
        let starts = self.rng.maybe(50, |rng| format!("s{}", rng.below(9))).unwrap_or_default();
        let most = max_length.map(|most| most.to_string()).unwrap_or_default();
        let filter = Conditions::new([("max_len", most.as_str()), ("starts", starts.as_str())]);
        let new = NewRule { name: text.clone(), filter, channels: channels.clone(), search: None };
        let mut told = None;
        let shape = |rule: &Rule| {
            told = Some(model_rule(rule));
            Receipt { code: 201, bytes: rule.id.to_string().into() }
        };
        let (store, post) = (self.store(), self.post(key.as_ref()));
        let result = self
            .runtime
            .block_on(async { store.add_rule(&caller, new, post).await?.respond(shape).await });
        if !self.carried_out(due, &result) {
            return;
        }
        let now = self.now;
        let account = &mut self.model[at];
        if Run::misfit(&channels) {
            self.seen.invalid += 1;
            assert!(matches!(result, Err(WriteError::Invalid { .. })), "{result:?}");
            return;
        }
        let is_full = account.active() >= ACTIVE_RULES[account.plan as usize];
        if !account.mails_only(&channels) && account.mails_to_nobody(&channels) {
            self.seen.invalid += 1;
            assert!(matches!(result, Err(WriteError::Invalid { .. })), "{result:?}");
            return;
        }
        if account.mails_only(&channels) || is_full {
            self.seen.limits += 1;
            assert!(matches!(result, Err(WriteError::PlanLimit { .. })), "{result:?}");
            return;
        }
        let told = told.expect("shaped");
        let urls: Vec<_> = told.secrets.iter().map(|(url, _)| url.clone()).collect();
        assert_eq!(urls, Run::webhooks(&channels));
        let expected = ModelRule {
            id: told.id,
            name: text,
            max_length,
            starts,
            channels,
            active: true,
            created_at: now.timestamp_millis(),
            secrets: told.secrets.clone(),
        };
        assert_eq!(told, expected);
        assert!(account.rules.iter().all(|rule| rule.id != told.id), "a new id");
        account.rules.push(told);
        account.keep(key, now, &result.expect("added").receipt);
        self.compare(at);
    }

    /// Saves, changes or deletes a search.
    fn searches(&mut self) {
        let Some((at, caller)) = self.someone() else { return };
        let (store, post) = (self.store(), self.post(None));
        let (name, text) =
            (format!("search {}", self.rng.below(100)), format!("s{}", self.rng.below(9)));
        let (conditions, seen) =
            (Conditions::new([("starts", text.as_str())]), self.rng.below(9) as u64);
        let known = self.model[at].searches.len();
        if known == 0 || self.rng.chance(40) {
            let search = NewSearch { name: name.clone(), conditions, seen };
            let shape = |it: &SavedSearch| Receipt { code: 201, bytes: it.id.to_string().into() };
            let added = self.runtime.block_on(async {
                store.add_search(&caller, search, post).await?.respond(shape).await
            });
            let Ok(added) = added else {
                assert_eq!(known, 100, "{:?}", added.err());
                return;
            };
            let id = String::from_utf8_lossy(&added.receipt.bytes).parse().expect("an id");
            self.model[at].searches.push((id, name, text, seen));
            return self.compare(at);
        }
        let place = self.rng.below(known);
        let id = SearchId::new(self.model[at].searches[place].0).expect("an id");
        if self.rng.chance(30) {
            self.runtime.block_on(store.remove_search(&caller, id)).expect("it is there");
            self.model[at].searches.remove(place);
            return self.compare(at);
        }
        let patch = SearchPatch {
            name: self.rng.chance(50).then(|| name.clone()),
            conditions: self.rng.chance(50).then_some(conditions),
            seen: self.rng.chance(50).then_some(seen),
        };
        let kept = &mut self.model[at].searches[place];
        if patch.name.is_some() {
            kept.1 = name;
        }
        if patch.conditions.is_some() {
            kept.2 = text;
        }
        kept.3 = kept.3.max(patch.seen.unwrap_or(0));
        self.runtime.block_on(store.change_search(&caller, id, patch)).expect("it is there");
        self.compare(at);
    }

    fn change_rule(&mut self) {
        let Some((at, caller)) = self.someone() else { return };
        let id = self.rule_id(at);
        let text = self.rng.maybe(20, |rng| format!("rule {}", rng.below(100)));
        let channels = self.rng.chance(30).then(|| self.channels());
        let active = self.rng.maybe(60, |rng| rng.chance(50));
        let patch =
            RulePatch { name: text.clone(), filter: None, channels: channels.clone(), active };
        let (store, id_given) = (self.store(), RuleId::new(id).expect("an id"));
        let result = self.runtime.block_on(store.change_rule(&caller, id_given, patch));
        let account = &mut self.model[at];
        let Some(place) = account.rules.iter().position(|rule| rule.id == id) else {
            assert!(matches!(result, Err(WriteError::NotFound)), "{result:?}");
            return;
        };
        let mut rule = account.rules[place].clone();
        let starts = active == Some(true) && !rule.active;
        rule.name = text.unwrap_or(rule.name);
        rule.channels = channels.clone().unwrap_or(rule.channels);
        rule.active = active.unwrap_or(rule.active);
        if Run::misfit(&rule.channels) {
            self.seen.invalid += 1;
            assert!(matches!(result, Err(WriteError::Invalid { .. })), "{result:?}");
            return;
        }
        let gated = (channels.is_some() || starts) && account.mails_only(&rule.channels);
        let is_full = starts && account.active() >= ACTIVE_RULES[account.plan as usize];
        if !gated && (channels.is_some() || starts) && account.mails_to_nobody(&rule.channels) {
            self.seen.invalid += 1;
            assert!(matches!(result, Err(WriteError::Invalid { .. })), "{result:?}");
            return;
        }
        if gated || is_full {
            self.seen.limits += 1;
            assert!(matches!(result, Err(WriteError::PlanLimit { .. })), "{result:?}");
            return;
        }
        let changed = result.expect("changed");
        let told = model_rule(&changed.rule);
        // An existing webhook keeps its secret, a new one gets a secret, which is shown.
        for (url, secret) in &told.secrets {
            let had = rule.secrets.iter().find(|(old, _)| old == url);
            let shown = changed.new_secrets.iter().any(|it| it.url.as_str() == url);
            assert_eq!(shown, had.is_none());
            assert!(had.is_none_or(|(_, old)| old == secret));
        }
        let urls: Vec<_> = told.secrets.iter().map(|(url, _)| url.clone()).collect();
        assert_eq!(urls, Run::webhooks(&rule.channels));
        rule.secrets = told.secrets.clone();
        assert_eq!(told, rule);
        if let (Some(channels), Some(outbox)) = (&channels, account.outboxes.get_mut(&id)) {
            outbox.channels_sent(channels);
        }
        account.rules[place] = rule;
        self.compare(at);
    }

    fn remove_rule(&mut self) {
        let Some((at, caller)) = self.someone() else { return };
        let id = self.rule_id(at);
        let (store, id_given) = (self.store(), RuleId::new(id).expect("an id"));
        let result = self.runtime.block_on(store.remove_rule(&caller, id_given));
        let account = &mut self.model[at];
        let before = account.rules.len();
        account.rules.retain(|rule| rule.id != id);
        account.outboxes.remove(&id);
        assert_eq!(result.is_ok(), account.rules.len() < before, "{result:?}");
        self.compare(at);
    }

    fn vote(&mut self) {
        let Some((at, caller)) = self.someone() else { return };
        let text = self.domain();
        let vote = *self.rng.pick(&[None, Some(Vote::Up), Some(Vote::Down)]);
        let store = self.store();
        let told = self.runtime.block_on(store.vote(&caller, &name(&text), vote)).expect("voted");
        let account = &mut self.model[at];
        account.votes.retain(|(name, _)| *name != text);
        account.votes.extend(vote.map(|vote| (text.clone(), vote)));
        assert_eq!((told.up, told.down), self.feedback(&text));
        self.compare(at);
    }

    fn feedback(&self, text: &str) -> (u64, u64) {
        let votes = self.model.iter().flat_map(|account| &account.votes);
        votes.filter(|(name, _)| name == text).fold((0, 0), |(up, down), (_, vote)| match vote {
            Vote::Up => (up + 1, down),
            Vote::Down => (up, down + 1),
        })
    }

    fn close(&mut self) {
        let store = self.store.take().expect("open");
        let still_there = store.clone();
        store.close().expect("closed");
        let digest = still_there.state_digest();
        drop(still_there);
        self.reopen(digest);
        assert!(self.store().recovery().clean);
    }

    /// Ends the process without closing anything.
    fn crash(&mut self) {
        // Usage is recorded lazily. A write that the test waits for is recorded after the usage.
        let plan = if self.model[0].plan == Plan::Api { Plan::Free } else { Plan::Api };
        self.store().set_plan(&self.email(0), plan).expect("set");
        self.model[0].plan = plan;
        let digest = self.store().state_digest();
        self.store = None;
        self.reopen(digest);
        assert!(!self.store().recovery().clean);
    }

    fn snapshot(&mut self) {
        // A snapshot that is due may be in progress, so this waits for it.
        let report = self.store().snapshot_now().expect("written");
        assert!(report.bytes > 0);
    }

    fn backup(&mut self) {
        let file = self.dir.path().join("backup");
        let report = self.store().backup(&file).expect("written");
        let elsewhere = tempfile::tempdir().expect("a folder");
        let disk = dropdex::journal::fs::Disk;
        dropdex::journal::restore(&disk, &file, &elsewhere.path().join("journal"))
            .expect("restored");
        let restored = open(elsewhere.path(), self.opened);
        assert_eq!(restored.state_digest(), report.state_digest, "a backup equals its source");
        std::fs::remove_file(file).expect("removed");
    }

    fn reopen(&mut self, digest: [u8; 32]) {
        self.opened = Day::nearest(self.now);
        let store = open(self.dir.path(), self.opened);
        assert_eq!(store.state_digest(), digest, "the data read equals the data written");
        let requests: Vec<u32> = store.list().iter().map(|it| it.requests_today).collect();
        let of_today =
            |&(day, requests): &(Day, u32)| if day == self.opened { requests } else { 0 };
        let expected: Vec<u32> = self.model.iter().map(|it| of_today(&it.requests)).collect();
        assert_eq!(requests, expected);
        self.seen.from_snapshots += usize::from(store.recovery().snapshot.is_some());
        self.store = Some(store);
        self.compare_seen();
        (0..self.model.len()).for_each(|at| self.compare(at));
    }

    /// Compares everything of one account that can be read.
    fn compare(&self, at: usize) {
        let store = self.store();
        let account = &self.model[at];
        let summary = &store.list()[at];
        assert_eq!((summary.plan, summary.disabled), (account.plan, account.shut));
        let Some(caller) = account.key.as_ref().and_then(|key| store.authenticate(key)) else {
            return;
        };
        self.compare_people(at, &caller);
        let owned = store.user_data(&caller);
        let mut claims = account.claims.clone();
        claims.sort_by_key(|claim| std::cmp::Reverse((claim.reported_at, claim.id)));
        assert_eq!(owned.claims().map(model_claim).collect::<Vec<_>>(), claims);
        let mut watches = account.watches.clone();
        watches.sort_by(|one, other| one.name.cmp(&other.name));
        assert_eq!(owned.watches().map(|it| model_watch(&it)).collect::<Vec<_>>(), watches);
        let externals = watches.iter().filter(|watch| watch.external);
        let externals: Vec<_> = externals.map(|watch| watch.name.clone()).collect();
        let found: Vec<_> = owned.external_names().map(|it| it.to_string()).collect();
        assert_eq!(found, externals);
        let mut rules = account.rules.clone();
        rules.sort_by_key(|rule| std::cmp::Reverse((rule.created_at, rule.id)));
        assert_eq!(owned.rules().map(model_rule).collect::<Vec<_>>(), rules);
        let searches = owned.searches().map(|it| {
            let text = it.conditions.get("starts").to_owned();
            (it.id.get(), it.name.to_string(), text, it.seen)
        });
        assert!(searches.eq(account.searches.iter().rev().cloned()));
        self.compare_outbox(at, &owned);
        for claim in &claims {
            let found = ClaimId::new(claim.id).and_then(|id| owned.claim(id));
            assert_eq!(found.map(model_claim).as_ref(), Some(claim));
        }
        for (text, vote) in &account.votes {
            assert_eq!(owned.vote(&name(text)), Some(*vote));
            let feedback = store.feedback(&name(text));
            assert_eq!((feedback.up, feedback.down), self.feedback(text));
        }
    }
}
