//! `dropdex demo`: serves the bundled sample, with its dates moved to today.

use std::io::{Read, Write, stdout};
use std::path::Path;

use anyhow::{Context, bail};
use clap::Args;
use flate2::read::GzDecoder;

use crate::accounts::{Email, Password, Store};
use crate::app;
use crate::config::telemetry::Telemetry;
use crate::config::{Config, ListenAddress};
use crate::feeds::Format;
use crate::intake::request::{Ingest, Lists, Request, Task};
use crate::intake::run;
use crate::server::settings::ServerSettings;
use crate::vocab::day::Day;
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
    let web = WebSettings { plain_http: listen.is_loopback(), ..config.web.clone() };
    // A demo may run beside a server that uses the metrics address.
    let telemetry = Telemetry { listen: None, ..config.telemetry.clone() };
    let server = ServerSettings { tls: None, ..config.server.clone() };
    let config = Config {
        outbound,
        web,
        server,
        telemetry,
        data: folder.path().join("data"),
        index: folder.path().join("index"),
        listen,
        ..config.clone()
    };
    ingest_sample(&config, folder.path())?;
    app::serve(&config, |address, store| {
        let account = make_account(store)?;
        app::print_ready(address)?;
        print_welcome(address, &account)
    })
}

fn ingest_sample(config: &Config, folder: &Path) -> anyhow::Result<()> {
    let list = move_dates(SAMPLE, config.clock.today()).context("the bundled sample")?;
    let path = folder.join("sample.csv");
    std::fs::write(&path, &list).with_context(|| format!("cannot write {}", path.display()))?;
    let task = Task::Ingest(Ingest {
        lists: Lists::Files { files: vec![path], format: Some(Format::Native) },
        drop_date: None,
        observed_at: Some(config.clock.now()),
        rebuild: true,
    });
    let outcome = run::run(&Request { site: config.site(), task }, &());
    outcome.error().map_or(Ok(()), |error| bail!(error.to_owned()))
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
