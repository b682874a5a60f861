//! `dropdex demo`: serves the bundled sample, with its dates moved to today.

use std::cmp::Reverse;
use std::io::{Read, Write, stdout};
use std::path::Path;

use anyhow::{Context, bail};
use clap::Args;
use flate2::read::GzDecoder;

use crate::accounts::{
    Channel, Email, NewClaim, NewRule, Password, Post, Reply, RuleFilter, Store, Tags, Watch,
    WatchPatch,
};
use crate::app;
use crate::config::telemetry::Telemetry;
use crate::config::{Config, ListenAddress};
use crate::feeds::Format;
use crate::intake::request::{Ingest, Lists, Request, Task};
use crate::intake::run;
use crate::scorer::{Scorer, Scratch, Spread};
use crate::server::settings::ServerSettings;
use crate::sources::settings::Settings;
use crate::vocab::claim::ClaimStatus;
use crate::vocab::day::Day;
use crate::vocab::money::Usd;
use crate::vocab::name::DomainName;
use crate::vocab::plan::Plan;
use crate::vocab::secret::Secret;
use crate::web::WebSettings;

/// The sample list, embedded in the binary.
const SAMPLE: &[u8] = include_bytes!("../../data/sample/sample.csv.gz");
const EMAIL: &str = "demo@dropdex.example";
/// Random bytes of the account's password, which is their hexadecimal form.
const PASSWORD_BYTES: usize = 8;
/// The columns of the sample with dates to move.
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
    // Registries would contradict the moved dates.
    outbound.rdap.enabled = false;
    let listen = args.listen.unwrap_or_default();
    // A demo has no TLS proxy in front.
    let web = WebSettings { plain_http: listen.is_loopback(), demo: true, ..config.web.clone() };
    // A demo may run beside a server that uses the metrics address.
    let telemetry = Telemetry { listen: None, ..config.telemetry.clone() };
    let server = ServerSettings { tls: None, ..config.server.clone() };
    // Only the sample.
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
    let sample = ingest_sample(&config, folder.path())?;
    app::serve(&config, |address, store| {
        let account = make_account(store)?;
        fill(store, &account.key, &sample, &config)?;
        app::print_ready(address)?;
        print_welcome(address, &account)
    })
}

/// Ingests the sample. Returns its names with their drop dates, best score first.
fn ingest_sample(config: &Config, folder: &Path) -> anyhow::Result<Vec<(DomainName, Day)>> {
    let list = move_dates(SAMPLE, config.clock.today()).context("the bundled sample")?;
    let path = folder.join("sample.csv");
    std::fs::write(&path, &list).with_context(|| format!("cannot write {}", path.display()))?;
    let task = Task::Ingest(Ingest {
        lists: Lists::Files { files: vec![path], format: Some(Format::Native) },
        drop_date: None,
        observed_at: Some(config.clock.now()),
        origin: None,
        rebuild: true,
    });
    let outcome = run::run(&Request { site: config.site(), task }, &());
    if let Some(error) = outcome.error() {
        bail!(error.to_owned());
    }
    best_names(&list)
}

/// The .com names of a list, best score first.
fn best_names(list: &[u8]) -> anyhow::Result<Vec<(DomainName, Day)>> {
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
    names.sort();
    Ok(names.into_iter().map(|(_, name, dropped)| (name, dropped)).collect())
}

/// Venues, tags and bids of the demo's watchlist and claims.
const VENUES: [&str; 3] = ["DropCatch", "Dynadot", "NameJet"];
const TAGS: [&str; 3] = ["flip", "keep", "brand"];

/// Gives the demo account a watchlist, an alert rule and a portfolio, so that every page shows its use.
fn fill(
    store: &Store,
    key: &str,
    sample: &[(DomainName, Day)],
    config: &Config,
) -> anyhow::Result<()> {
    let caller = store.authenticate(key).context("the demo account has a key")?;
    let (now, today) = (config.clock.now(), config.clock.today());
    let usd = |dollars: usize| Usd::from_cents(dollars as u64 * 100);
    let age = |dropped: Day| today.days_since(dropped);
    let dropping = sample.iter().filter(|(_, dropped)| (0..=40).contains(&age(*dropped)));
    let watches = dropping.take(14).enumerate().map(|(at, (name, _))| Watch {
        name: name.clone(),
        in_corpus: true,
        registered_again: false,
        arrived: Vec::new(),
        patch: WatchPatch {
            note: (at == 0).then(|| Some("Ask whether the owner of the .net would buy it.".into())),
            tags: TAGS[at % 3].parse().ok().map(|tag| Tags::Add(vec![tag])),
            max_bid: (at % 4 != 3).then(|| usd(60 + 40 * at)),
            venue: (at % 4 != 3).then(|| Some(VENUES[at % 3].into())),
        },
    });
    let gone = sample.iter().filter(|(_, dropped)| age(*dropped) > 45).take(12).enumerate();
    let claims = gone.map(|(at, (name, _))| {
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
            acquired_price: usd(69 + 11 * at).filter(|_| is_won),
            resale_price: usd(350 + 130 * at).filter(|_| is_sold),
            sold_at: None,
            user_notes: None,
            alert_rule: None,
            bid: usd(60 + 10 * at),
            venue: Some(VENUES[at % 3].into()),
            renews_on: (is_won && !is_sold).then(|| today.plus(20 + 30 * at as i32)),
            renewal: usd(12),
        }
    });
    let rule = NewRule {
        name: "Short .com names".into(),
        filter: RuleFilter {
            tlds: vec!["com".into()],
            max_length: Some(8),
            ..RuleFilter::default()
        },
        channels: vec![Channel::Email],
        search: None,
    };
    let (watches, claims) = (watches.collect::<Vec<_>>(), claims.collect::<Vec<_>>());
    let post = || Post { now, idempotency: None };
    let reply = || Reply { status: 201, body: Vec::new() };
    tokio::runtime::Handle::current().block_on(async {
        store.add_watches(&caller, watches, now).await?;
        for claim in claims {
            store.add_claim(&caller, claim, post()).await?.respond(|_| reply()).await?;
        }
        store.add_rule(&caller, rule, post()).await?.respond(|_| reply()).await?;
        Ok(())
    })
}

/// Moves the dates of the sample so that its newest drop is on `today`.
fn move_dates(gzipped: &[u8], today: Day) -> anyhow::Result<Vec<u8>> {
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
    let mut writer = csv::Writer::from_writer(Vec::with_capacity(text.len()));
    writer.write_record(&header)?;
    for row in &rows {
        let moved = row.iter().enumerate().map(|(column, cell)| match cell.parse::<Day>() {
            Ok(day) if dates.contains(&column) => day.plus(days).to_string(),
            _ => cell.to_owned(),
        });
        writer.write_record(moved)?;
    }
    Ok(writer.into_inner().map_err(|err| err.into_error())?)
}

/// Credentials of the demo account.
struct Account {
    key: String,
    password: String,
}

fn make_account(store: &Store) -> anyhow::Result<Account> {
    let email: Email = EMAIL.parse()?;
    let mut bytes = [0; PASSWORD_BYTES];
    getrandom::fill(&mut bytes)
        .map_err(|err| anyhow::anyhow!("cannot generate a password: {err}"))?;
    let password = hex::encode(bytes);
    let hash = Password::new(Secret::new(password.clone()))?.hash()?;
    store.add_account(&email, Plan::Api, Some(hash))?;
    let key = store.issue_key(&email)?.key.reveal().to_owned();
    Ok(Account { key, password })
}

fn print_welcome(address: &str, account: &Account) -> anyhow::Result<()> {
    let Account { key, password } = account;
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
        let moved = move_dates(SAMPLE, today).expect("the sample is whole");
        let mut reader = csv::Reader::from_reader(moved.as_slice());
        let dates: Vec<Day> =
            reader.records().filter_map(|row| row.expect("a row").get(1)?.parse().ok()).collect();
        assert_eq!(dates.iter().max(), Some(&today));
        assert!(dates.len() > 30_000);
    }
}
