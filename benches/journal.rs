//! Acknowledged appends per second, compared with plain write and fdatasync by one thread in the same
//! run and folder, and the cost that every request pays: authenticate and charge.
//!
//! `cargo bench --bench journal [-- FOLDER]` measures the folder's disk.

#![expect(clippy::print_stdout, reason = "the figures are what this program is for")]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dropdex::accounts::Store;
use dropdex::journal::{Journal, Options, RecordKind, Unread};
use dropdex::vocab::clock::Clock;
use dropdex::vocab::plan::{Plan, Plans};

const KIND: RecordKind = match RecordKind::for_caller(16) {
    Some(kind) => kind,
    None => panic!("16 is the caller's"),
};
/// Bytes of payload, about as many as a watchlist entry has.
const PAYLOAD_BYTES: usize = 64;
/// Duration of each measurement.
const MEASURED: Duration = Duration::from_millis(300);
/// Number of measurements of each figure, in turn with the others. The median is printed, because disks
/// vary from run to run.
const ROUNDS: usize = 15;

fn main() {
    let base = std::env::args().skip(1).find(|arg| !arg.starts_with("--"));
    let base = base.map_or_else(std::env::temp_dir, PathBuf::from);
    let dir = tempfile::tempdir_in(base).expect("a folder");
    append_rates(dir.path());
    request_costs(dir.path());
}

fn append_rates(dir: &Path) {
    let mut figures: Vec<(String, Vec<f64>)> = Vec::new();
    for round in 0..ROUNDS {
        let mut add = |name: String, rate: f64| match figures.iter_mut().find(|it| it.0 == name) {
            Some((_, rates)) => rates.push(rate),
            None => figures.push((name, vec![rate])),
        };
        let raw = dir.join(format!("raw-{round}"));
        add("raw write + fdatasync, growing file".into(), raw_rate(&raw, 0));
        add("raw write + fdatasync, inside zeros".into(), raw_rate(&raw, 64 << 20));
        for threads in [1, 8, 64] {
            let dir = dir.join(format!("journal-{round}-{threads}"));
            add(format!("journal, {threads:2} threads"), journal_rate(&dir, threads));
        }
    }
    println!("appends of {PAYLOAD_BYTES} bytes, acknowledged per second (median of {ROUNDS})");
    for (name, mut rates) in figures {
        rates.sort_by(f64::total_cmp);
        let (low, high) = (rates[0], rates[ROUNDS - 1]);
        println!("  {name:36} {:>9.0}   ({low:.0} to {high:.0})", rates[ROUNDS / 2]);
    }
}

/// Writes one record's bytes and syncs, repeatedly, in one thread.
fn raw_rate(path: &Path, zeros: usize) -> f64 {
    let file = File::create(path).expect("created");
    file.write_all_at(&vec![0; zeros], 0).expect("written");
    file.sync_all().expect("synced");
    let record = vec![0xa5; dropdex::journal::frame::record_bytes(PAYLOAD_BYTES)];
    let (begun, mut count) = (Instant::now(), 0_u64);
    while begun.elapsed() < MEASURED {
        file.write_all_at(&record, count * record.len() as u64).expect("written");
        file.sync_data().expect("synced");
        count += 1;
    }
    count as f64 / begun.elapsed().as_secs_f64()
}

fn journal_rate(dir: &Path, threads: usize) -> f64 {
    let options = Options::new(dir, Arc::new(|| 1_790_000_000_000));
    let (journal, _) = Journal::open(options, &mut Unread).expect("opened");
    let begun = Instant::now();
    let counts: Vec<u64> = std::thread::scope(|scope| {
        let writers: Vec<_> =
            (0..threads).map(|_| scope.spawn(|| append_until(&journal, begun))).collect();
        writers.into_iter().map(|writer| writer.join().expect("wrote")).collect()
    });
    counts.iter().sum::<u64>() as f64 / begun.elapsed().as_secs_f64()
}

fn append_until(journal: &Journal, begun: Instant) -> u64 {
    let mut count = 0;
    while begun.elapsed() < MEASURED {
        journal.append(KIND, vec![0xa5; PAYLOAD_BYTES], |_| {}).expect("durable");
        count += 1;
    }
    count
}

fn request_costs(dir: &Path) {
    let mut plans = Plans::default();
    plans.limits_mut(Plan::Api).requests_per_day = u32::MAX;
    let clock = Clock::system();
    let store = Store::open(&dir.join("store"), plans, clock).expect("opened");
    let email = "ann@example.com".parse().expect("an address");
    store.add_account(&email, Plan::Api, None).expect("added");
    let key = store.issue_key(&email).expect("issued").key.reveal().to_owned();
    let caller = store.authenticate(&key).expect("a working key");
    let now = clock.now();
    println!("what a request pays, in nanoseconds on one thread");
    println!(
        "  authenticate                         {:>9.0}",
        nanos(|| {
            std::hint::black_box(store.authenticate(std::hint::black_box(&key)));
        })
    );
    println!(
        "  charge_request                       {:>9.0}",
        nanos(|| {
            std::hint::black_box(store.charge_request(&caller, now));
        })
    );
    store.set_plan(&email, Plan::Pro).expect("set");
    let caller = store.authenticate(&key).expect("a working key");
    println!(
        "  charge_request, refused              {:>9.0}",
        nanos(|| {
            std::hint::black_box(store.charge_request(&caller, now));
        })
    );
}

/// Returns the time of the fastest of twenty batches, because on a busy machine, the others include the
/// work of other processes.
fn nanos(mut what: impl FnMut()) -> f64 {
    const COUNT: u32 = 50_000;
    let batch = |_| {
        let begun = Instant::now();
        (0..COUNT).for_each(|_| what());
        begun.elapsed().as_secs_f64() * 1e9 / f64::from(COUNT)
    };
    (0..20).map(batch).fold(f64::INFINITY, f64::min)
}
