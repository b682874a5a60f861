//! The cost of user data: memory per row, and the time to start from a snapshot, to start from a log,
//! and to write a snapshot.
//!
//! `cargo bench --bench accounts [-- --rows N] [FOLDER]`; a million rows by default. An account has 100
//! rows: 80 watches, 18 claims, one rule, one vote. Rows are written to the log in transactions of 100,
//! since single rows would only measure the disk, for hours. Memory is that of the process under
//! mimalloc, the allocator of the binary.

#![expect(clippy::print_stdout, reason = "the figures are what this program is for")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use dropdex::accounts::event::{AddedBy, Event, Transaction};
use dropdex::accounts::{
    Channel, Claim, Rule, Store, StoreOptions, WatchDetails, WatchEntry, WatchRow,
};
use dropdex::journal::{AppendError, Journal, Options, Unread};
use dropdex::query::stored::Conditions;
use dropdex::vocab::claim::{ClaimStatus, Vote};
use dropdex::vocab::clock::Clock;
use dropdex::vocab::day::Day;
use dropdex::vocab::ids::{AccountId, ClaimId, RuleId};
use dropdex::vocab::money::Usd;
use dropdex::vocab::name::DomainName;
use dropdex::vocab::plan::{Plan, Plans};
use dropdex::vocab::time::UnixMs;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROWS_DEFAULT: u64 = 1_000_000;
const WATCHES: u64 = 80;
const CLAIMS: u64 = 18;
/// Includes one rule and one vote.
const ROWS_AN_ACCOUNT: u64 = WATCHES + CLAIMS + 2;
const NOW_MS: u64 = 1_790_000_000_000;

/// Environment variable of a child process: the data folder to start from.
const START: &str = "DROPDEX_BENCH_START";

fn main() {
    if let Some(dir) = std::env::var_os(START) {
        return start_as_child(Path::new(&dir));
    }
    let (rows, base) = arguments();
    let accounts = (rows / ROWS_AN_ACCOUNT).max(1);
    println!("{accounts} accounts, {} rows; mimalloc", accounts * ROWS_AN_ACCOUNT);
    everything(&base, accounts);
    one_kind(&base, accounts, "watch", watch);
    one_kind(&base, accounts, "claim", claim);
}

fn everything(base: &Path, accounts: u64) {
    let dir = tempfile::tempdir_in(base).expect("a folder");
    let log_mb = write_log(dir.path(), accounts, account);
    print_start("start from the log", log_mb, &start(dir.path()), accounts);
    let store = open(dir.path());
    let (report, seconds) = timed(|| store.snapshot_now().expect("written"));
    println!("  {:22} {:9.1} MB {seconds:8.2} s", "snapshot written", mb(report.bytes));
    let (digest, seconds) = timed(|| store.state_digest());
    println!("  {:22} {:12} {seconds:8.2} s", "digest of the state", "");
    assert_eq!(digest, report.state_digest);
    store.close().expect("closed");
    print_start("start from a snapshot", mb(report.bytes), &start(dir.path()), accounts);
}

/// Prints the cost of rows of a single kind.
fn one_kind(base: &Path, accounts: u64, kind: &str, row: fn(AccountId, u64) -> Event) {
    let dir = tempfile::tempdir_in(base).expect("a folder");
    let log_mb = write_log(dir.path(), accounts, |number| {
        let mut events = account(number);
        events.truncate(1);
        let numbers = (0..ROWS_AN_ACCOUNT).map(|at| number * ROWS_AN_ACCOUNT + at);
        events.extend(numbers.map(|at| row(AccountId(number), at)));
        events
    });
    print_start(&format!("{kind} rows, from the log"), log_mb, &start(dir.path()), accounts);
    open(dir.path()).snapshot_now().expect("written");
    print_start(&format!("{kind} rows, snapshot"), 0.0, &start(dir.path()), accounts);
}

/// A start in a process of its own, so that its memory is measured separately.
struct Start {
    seconds: f64,
    resident_bytes: f64,
}

fn start(dir: &Path) -> Start {
    let us = std::env::current_exe().expect("a path");
    let ran = std::process::Command::new(us).env(START, dir).output().expect("ran");
    let text = String::from_utf8(ran.stdout).expect("numbers");
    let mut numbers = text.split_whitespace().map(|number| number.parse().expect("a number"));
    let mut next = || numbers.next().expect("two numbers");
    Start { seconds: next(), resident_bytes: next() }
}

fn start_as_child(dir: &Path) {
    let before = resident_bytes();
    let (store, seconds) = timed(|| open(dir));
    println!("{seconds} {}", resident_bytes().saturating_sub(before));
    drop(store);
}

fn print_start(what: &str, read_mb: f64, start: &Start, accounts: u64) {
    let Start { seconds, resident_bytes } = start;
    let each = resident_bytes / (accounts * ROWS_AN_ACCOUNT) as f64;
    let speed = if read_mb > 0.0 { seconds * 100.0 / read_mb } else { 0.0 };
    println!(
        "  {what:22} {read_mb:9.1} MB {seconds:8.2} s  {speed:6.2} s per 100 MB  {each:6.1} bytes a \
         row"
    );
}

fn arguments() -> (u64, PathBuf) {
    let (mut rows, mut base) = (ROWS_DEFAULT, std::env::temp_dir());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--rows" => {
                let value = arguments.next().and_then(|value| value.replace('_', "").parse().ok());
                rows = value.expect("--rows takes a number");
            }
            // Cargo adds this option.
            "--bench" => {}
            folder => base = folder.into(),
        }
    }
    (rows, base)
}

fn open(dir: &Path) -> Store {
    // Only the measured snapshot is written.
    let options = StoreOptions {
        snapshot_after_bytes: u64::MAX,
        ..StoreOptions::new(dir, Plans::default(), Clock::system())
    };
    Store::open_with(options).expect("opened")
}

/// Writes the events of each account as the store would, and returns the megabytes of the segments.
fn write_log(dir: &Path, accounts: u64, events: impl Fn(u64) -> Vec<Event>) -> f64 {
    let dir = dir.join("journal");
    let options = Options::new(&dir, Arc::new(|| NOW_MS));
    let (journal, _) = Journal::open(options, &mut Unread).expect("opened");
    for number in 1..=accounts {
        let (kind, payload) = Transaction(events(number)).encode();
        // Appended lazily, because the disk is not measured. A full queue empties while we wait.
        while let Err(err) = journal.append_lazy(kind, payload.clone(), |_| {}) {
            assert_eq!(err, AppendError::Busy);
            std::thread::yield_now();
        }
    }
    journal.close().expect("closed");
    let files = std::fs::read_dir(&dir).expect("a folder");
    let lens = files.map(|file| file.and_then(|file| file.metadata()).expect("a file").len());
    mb(lens.sum())
}

fn account(number: u64) -> Vec<Event> {
    let account = AccountId(number);
    let email = format!("customer-{number}@example.com").parse().expect("an address");
    let (plan, on) = (Plan::Api, Day::MIN);
    let mut events = {
        let by = AddedBy::Operator;
        vec![Event::AccountAdded { account, email, plan, on, password: None, by }]
    };
    events.extend((0..WATCHES).map(|at| watch(account, number * WATCHES + at)));
    events.extend((0..CLAIMS).map(|at| claim(account, number * CLAIMS + at)));
    events.push(rule(account));
    let (name, vote) = (name(number), Some(Vote::Up));
    events.push(Event::VoteSet { account, name, vote });
    events
}

/// Returns a name of 6 to 22 characters, distributed by a hash.
fn name(number: u64) -> DomainName {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let text = format!("{:x}{number}", mixed >> (36 + number % 24));
    DomainName::from_stored(format!("{text}.com").as_bytes(), text.len() as u8).expect("a name")
}

fn at(number: u64) -> UnixMs {
    UnixMs::new(NOW_MS + number).expect("an instant")
}

fn watch(account: AccountId, number: u64) -> Event {
    let (external, registered_again) = (number.is_multiple_of(10), false);
    let entry = WatchEntry { name: name(number), added_at: at(number), external, registered_again };
    let (details, alerts) = (WatchDetails::default(), None);
    Event::WatchPut { account, watch: Box::new(WatchRow { entry, details, alerts }) }
}

fn claim(account: AccountId, number: u64) -> Event {
    let id = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 11;
    let id = ClaimId::new(id.max(1)).expect("53 bits");
    let claim = Claim {
        registrar: Some("Example Registrar".into()),
        acquired_price: Usd::from_cents(1_250),
        ..Claim::new(id, name(number), ClaimStatus::Caught, at(number))
    };
    Event::ClaimPut { account, claim: Box::new(claim) }
}

fn rule(account: AccountId) -> Event {
    let filter = Conditions::new([("tld", "com")]);
    let rule = Rule {
        id: RuleId::new(account.0).expect("53 bits"),
        name: "short names".into(),
        filter,
        channels: vec![Channel::Email],
        active: true,
        created_at: at(0),
        secrets: Vec::new(),
        search: None,
    };
    Event::RulePut { account, rule: Box::new(rule) }
}

/// Returns the resident bytes of the process.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1_024
}

fn timed<T>(what: impl FnOnce() -> T) -> (T, f64) {
    let begun = Instant::now();
    let result = what();
    (result, begun.elapsed().as_secs_f64())
}

fn mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
