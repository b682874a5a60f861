//! `dropdex demo`: serves the bundled sample, with its dates moved to today.

use std::cmp::Reverse;
use std::io::{Read, Write, stdout};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use chrono::{DateTime, TimeDelta, Utc};
use clap::Args;
use flate2::read::GzDecoder;
use tokio::runtime;

use crate::accounts::{
    AttemptOutcome, Channel, Commission, Email, NewClaim, NewRule, NewSearch, Password,
    PendingDelivery, Post, Store, Tags, Watch, WatchPatch,
};
use crate::app;
use crate::config::telemetry::Telemetry;
use crate::config::{Config, ListenAddress};
use crate::feeds::Format;
use crate::index::generation::live::LiveIndex;
use crate::index::generation::open::open_current;
use crate::intake::request::{Ingest, Lists, Request, Task};
use crate::intake::run;
use crate::query::stored::Conditions;
use crate::scorer::{Scorer, Scratch, Spread};
use crate::server::settings::ServerSettings;
use crate::service::fact_book::FactBook;
use crate::sources::settings::Settings;
use crate::vocab::claim::ClaimStatus;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::money::{Amount, Percent, Usd};
use crate::vocab::name::DomainName;
use crate::vocab::plan::Plan;
use crate::vocab::secret::Secret;
use crate::vocab::time::UnixMs;
use crate::web::WebSettings;
use crate::workers::notify::matching::Matching;

/// The sample list, embedded in the binary.
const SAMPLE: &[u8] = include_bytes!("../../data/sample/sample.csv.gz");
const EMAIL: &str = "demo@dropdex.example";
/// Number of random bytes in the account's password, which is their hexadecimal form.
const PASSWORD_BYTES: usize = 8;
/// Columns of the sample whose dates are moved.
const DATE_COLUMNS: [&str; 3] = ["drop_date", "release_date", "first_seen"];

/// Serve the bundled sample with a demo account, to try dropdex out
///
/// Dates are moved so that the newest list is from today. All data is in a temporary folder, which is
/// removed when the demo stops.
#[derive(Args, Debug)]
pub struct DemoArgs {
    /// Address and port; port 0 takes a free one [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    listen: Option<ListenAddress>,
}

/// Ingests the sample and serves it.
///
/// # Errors
/// The message to print before exit 1.
pub fn run(args: DemoArgs, config: &Config) -> anyhow::Result<()> {
    let folder = tempfile::Builder::new()
        .prefix("dropdex-demo-")
        .tempdir()
        .context("cannot create a temporary folder; set TMPDIR to another place")?;
    let mut outbound = config.outbound.clone();
    // Verification is off, because registries would contradict the moved dates.
    outbound.rdap.enabled = false;
    let listen = args.listen.unwrap_or_default();
    // A demo does not run behind a TLS proxy.
    let web = WebSettings { plain_http: listen.is_loopback(), demo: true, ..config.web.clone() };
    // A demo may run beside a server that uses the metrics address.
    let telemetry = Telemetry { listen: None, ..config.telemetry.clone() };
    let server = ServerSettings { tls: None, ..config.server.clone() };
    // The demo serves only the sample.
    let sources = Settings { sources: Vec::new(), ..config.sources.clone() };
    let config = Config {
        outbound,
        sources,
        web,
        server,
        telemetry,
        data: folder.path().join("data"),
        index: folder.path().join("index"),
        listen,
        ..config.clone()
    };
    let account = prepare(&config, folder.path())?;
    app::serve(&config, |address, _| {
        app::print_ready(address);
        print_welcome(address, &account)
    })
}

/// Ingests the sample as two lists. In between, the demo sets up the demo account, so that its rules
/// match names of the second list.
fn prepare(config: &Config, folder: &Path) -> anyhow::Result<DemoLogin> {
    let now = config.clock.now();
    let [earlier, newest] =
        move_dates(SAMPLE, config.clock.today()).context("the bundled sample")?;
    ingest(config, folder, &earlier, now - TimeDelta::days(1))?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let store = Store::open(&config.data, config.plans.clone(), config.clock)?;
    runtime.block_on(matching(config, &store)?.begin());
    let account = make_account(&store)?;
    let mut sample = [short_names(&earlier)?, short_names(&newest)?].concat();
    sample.sort_by_key(|(dqs, ..)| *dqs);
    runtime.block_on(fill(&store, &account.key, &sample, config))?;
    ingest(config, folder, &newest, now)?;
    runtime.block_on(async {
        matching(config, &store)?.match_live().await?;
        // The demo sends no messages.
        let sent = store.pending_deliveries().into_iter().map(|pending| {
            let PendingDelivery { account, rule, delivery, .. } = pending;
            (account, rule.id, delivery.id, AttemptOutcome::Delivered)
        });
        store.settle(sent.collect(), UnixMs::from_instant(now)).await?;
        anyhow::Ok(())
    })?;
    store.close()?;
    Ok(account)
}

/// Ingests a list observed at `at`.
fn ingest(config: &Config, folder: &Path, list: &[u8], at: DateTime<Utc>) -> anyhow::Result<()> {
    let path = folder.join("sample.csv");
    std::fs::write(&path, list).with_context(|| format!("cannot write {}", path.display()))?;
    let task = Task::Ingest(Ingest {
        lists: Lists::Files { files: vec![path], format: Some(Format::Native) },
        drop_date: None,
        observed_at: Some(at),
        origin: None,
        zone: None,
        rebuild: true,
    });
    let outcome = run::run(&Request { site: config.site(), task }, &());
    match outcome.error() {
        Some(error) => bail!(error.to_owned()),
        None => Ok(()),
    }
}

/// Returns the matching worker for the demo's current index.
fn matching(config: &Config, store: &Store) -> anyhow::Result<Matching> {
    Ok(Matching {
        facts: Arc::new(FactBook::new(&config.data, usize::MAX)),
        live: Arc::new(LiveIndex::new(Arc::new(open_current(&config.index)?.index))),
        store: store.clone(),
        clock: config.clock,
        catch_days: config.catch_days,
        published: Arc::default(),
    })
}

/// A name of the sample with its drop date, ordered by score, best first.
type SampleName = (Reverse<Dqs>, DomainName, Day);

/// Returns the short .com names of a list.
fn short_names(list: &[u8]) -> anyhow::Result<Vec<SampleName>> {
    let mut reader = csv::Reader::from_reader(list);
    let header = reader.headers()?.clone();
    let place = |name: &str| header.iter().position(|column| column == name);
    let (domain, drop_date) = place("domain").zip(place("drop_date")).context("has no domain")?;
    let mut scratch = Scratch::default();
    let mut names = Vec::new();
    for row in reader.records() {
        let row = row?;
        let name = row.get(domain).and_then(|text| DomainName::parse(text).ok());
        let dropped = row.get(drop_date).and_then(|text| text.parse::<Day>().ok());
        let Some((name, dropped)) = name.zip(dropped) else { continue };
        if name.tld() == "com" && name.label_len() <= 12 {
            let dqs = Scorer::shared().score(&name, Spread::UNKNOWN, &mut scratch).dqs;
            names.push((Reverse(dqs), name, dropped));
        }
    }
    Ok(names)
}

/// Venues and tags of the demo's watchlist and claims.
const VENUES: [&str; 3] = ["DropCatch", "Dynadot", "NameJet"];
const TAGS: [&str; 3] = ["flip", "keep", "brand"];

fn usd(dollars: usize) -> Option<Usd> {
    Usd::from_cents(dollars as u64 * 100)
}

/// Returns a watchlist of names that drop now.
fn watches(sample: &[SampleName], today: Day) -> Vec<Watch> {
    let is_dropping = |(.., dropped): &&SampleName| (0..=40).contains(&today.days_since(*dropped));
    let dropping = sample.iter().filter(is_dropping).take(14).enumerate();
    let watch = |(at, (_, name, _)): (usize, &SampleName)| Watch {
        name: name.clone(),
        in_corpus: true,
        registered_again: false,
        arrived: Vec::new(),
        patch: WatchPatch {
            note: (at == 0).then(|| Some("Ask whether the owner of the .net would buy it.".into())),
            tags: TAGS[at % 3].parse().ok().map(|tag| Tags::Add(vec![tag])),
            max_bid: (at % 4 != 3).then(|| usd(60 + 40 * at)),
            venue: (at % 4 != 3).then(|| Some(VENUES[at % 3].into())),
            ..WatchPatch::default()
        },
        near: None,
    };
    dropping.map(watch).collect()
}

/// Returns claims of all statuses on names that dropped some time ago.
fn claims(sample: &[SampleName], today: Day) -> Vec<NewClaim> {
    let is_gone = |(.., dropped): &&SampleName| today.days_since(*dropped) > 45;
    let gone = sample.iter().filter(is_gone).take(12).enumerate();
    let claim = |(at, (_, name, _)): (usize, &SampleName)| {
        let status = match at % 6 {
            0 | 4 => ClaimStatus::Sold,
            1 => ClaimStatus::Caught,
            2 => ClaimStatus::Registered,
            3 => ClaimStatus::Lost,
            _ => ClaimStatus::Attempted,
        };
        let is_won = !matches!(status, ClaimStatus::Lost | ClaimStatus::Attempted);
        let is_sold = status == ClaimStatus::Sold;
        NewClaim {
            domain: name.clone(),
            status,
            registrar: None,
            acquired_price: usd(69 + 11 * at).filter(|_| is_won).map(Amount::from),
            resale_price: usd(350 + 130 * at).filter(|_| is_sold).map(Amount::from),
            sold_at: None,
            user_notes: None,
            alert_rule: None,
            bid: usd(60 + 10 * at).map(Amount::from),
            venue: Some(VENUES[at % 3].into()),
            renews_on: (is_won && !is_sold).then(|| today.plus(20 + 30 * at as i32)),
            renewal: usd(12).map(Amount::from),
            commission: Percent::try_from(1_500).ok().map(Commission::Percent).filter(|_| is_sold),
            sold_venue: is_sold.then(|| "Sedo".into()),
        }
    };
    gone.map(claim).collect()
}

/// Gives the demo account a watchlist, a saved search with its alert rule, and a portfolio, so that every
/// page shows its use.
async fn fill(
    store: &Store,
    key: &str,
    sample: &[SampleName],
    config: &Config,
) -> anyhow::Result<()> {
    let caller = store.authenticate(key).context("the demo account has a key")?;
    let (now, today) = (config.clock.now(), config.clock.today());
    let post = || Post { now, idempotency: None };
    store.add_watches(&caller, watches(sample, today), now).await?;
    for claim in claims(sample, today) {
        store.add_claim(&caller, claim, post()).await?.finish().await?;
    }
    let conditions = Conditions::new([("tld", "com"), ("max_len", "8"), ("digits", "none")]);
    let search = NewSearch {
        name: "Short .com names".into(),
        conditions: conditions.clone(),
        // The owner has seen the first list.
        seen: 1,
    };
    store.add_search(&caller, search, post()).await?.finish().await?;
    let rule = NewRule {
        name: "Short .com names".into(),
        filter: conditions,
        channels: vec![Channel::Email],
        search: store.user_data(&caller).searches().next().map(|search| search.id),
    };
    store.add_rule(&caller, rule, post()).await?.finish().await?;
    Ok(())
}

/// Moves the dates of the sample so that its newest drop is on `today`. Returns two lists: all earlier
/// drops, and the drops of `today`.
fn move_dates(gzipped: &[u8], today: Day) -> anyhow::Result<[Vec<u8>; 2]> {
    let mut text = Vec::new();
    GzDecoder::new(gzipped).read_to_end(&mut text)?;
    let mut reader = csv::Reader::from_reader(text.as_slice());
    let header = reader.headers()?.clone();
    let place = |name: &str| header.iter().position(|column| column == name);
    let drop_date = place(DATE_COLUMNS[0]).context("has no column drop_date")?;
    let dates: Vec<usize> = DATE_COLUMNS.into_iter().filter_map(place).collect();
    let rows = reader.records().collect::<Result<Vec<_>, _>>()?;
    let newest = rows.iter().filter_map(|row| row.get(drop_date)?.parse::<Day>().ok()).max();
    let days = newest.map_or(0, |newest| today.days_since(newest));
    let mut lists = [const { Vec::new() }; 2].map(csv::Writer::from_writer);
    for list in &mut lists {
        list.write_record(&header)?;
    }
    for row in &rows {
        let dropped = row.get(drop_date).and_then(|text| text.parse::<Day>().ok());
        let is_newest = dropped.is_some() && dropped == newest;
        let moved = row.iter().enumerate().map(|(column, cell)| match cell.parse::<Day>() {
            Ok(day) if dates.contains(&column) => day.plus(days).to_string(),
            _ => cell.to_owned(),
        });
        lists[usize::from(is_newest)].write_record(moved)?;
    }
    let [earlier, newest] = lists.map(csv::Writer::into_inner);
    Ok([earlier.map_err(|err| err.into_error())?, newest.map_err(|err| err.into_error())?])
}

/// Credentials of the demo account.
struct DemoLogin {
    key: String,
    password: String,
}

fn make_account(store: &Store) -> anyhow::Result<DemoLogin> {
    let email: Email = EMAIL.parse()?;
    let mut bytes = [0; PASSWORD_BYTES];
    getrandom::fill(&mut bytes)
        .map_err(|err| anyhow::anyhow!("cannot generate a password: {err}"))?;
    let password = hex::encode(bytes);
    let hash = Password::new(Secret::new(password.clone()))?.hash()?;
    store.add_account(&email, Plan::Api, Some(hash))?;
    let key = store.issue_key(&email)?.key.reveal().to_owned();
    Ok(DemoLogin { key, password })
}

fn print_welcome(address: &str, account: &DemoLogin) -> anyhow::Result<()> {
    let DemoLogin { key, password } = account;
    let mut out = stdout().lock();
    writeln!(out, "key {key}\n\nPages: {address}/login\n  e-mail    {EMAIL}")?;
    writeln!(out, "  password  {password}\n\nTry:")?;
    for path in [
        "/api/v1/drops?tld=com&max_len=8&limit=5",
        "/api/v1/search?q=solar",
        "/api/export/drops?min_dqs=70",
    ] {
        writeln!(out, "  curl -H 'Authorization: Bearer {key}' '{address}{path}'")?;
    }
    writeln!(out, "\nCtrl-C stops the demo and removes its data.")?;
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_drop_of_the_sample_moves_to_today() {
        let today: Day = "2031-05-04".parse().expect("a date");
        let lists = move_dates(SAMPLE, today).expect("the sample is whole");
        let [earlier, newest] = lists.map(|list| {
            let mut reader = csv::Reader::from_reader(list.as_slice());
            let dates: Vec<Day> = reader
                .records()
                .filter_map(|row| row.expect("a row").get(1)?.parse().ok())
                .collect();
            dates
        });
        assert!(earlier.iter().all(|day| *day < today) && earlier.len() > 30_000);
        assert!(newest.iter().all(|day| *day == today) && newest.len() > 500);
    }
}
