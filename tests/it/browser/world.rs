//! The installation of the browser tests: some five thousand real names, and a server.

use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::Path;
use std::time::Duration;

use flate2::read::GzDecoder;

use super::driver::Browser;
use crate::common::mailbox::Mailbox;
use crate::common::receiver::Receiver;
use crate::common::runs::{figure, say};
use crate::common::{Server, Site, wait};
use crate::generator::common::drops::{Drops, Mix, write_csv};
use crate::generator::common::names::RealNames;

/// The day of the newest list.
pub const TODAY: &str = "2026-11-20";
/// The password of every account in these tests.
pub const PASSWORD: &str = "four lanterns at the quay";
/// Allows cookies over plain HTTP, as a server on loopback without TLS needs.
const WEB: &str = "[web]\nplain_http = true\nsignup = true\n";
/// Of this many rows of the sample, one is used. These rows fill several pages and are ingested in
/// seconds.
const ONE_IN: usize = 10;
/// Names that tests need: a good name, one with non-ASCII letters, one that looks like another, one
/// that dropped twice, and long ones in German, Polish and Chinese.
const OWN_ROWS: &str = "\
    harborlight.com,2026-11-19,,,\n\
    harborlight.net,2026-10-01,,,\n\
    xn--mller-kva.de,2026-11-19,,,\n\
    xn--pple-43d.com,2026-11-18,,,\n\
    oldharbor.com,2019-03-01,,,true\n\
    oldharbor.com,2026-11-17,,,\n\
    xn--donaudampfschifffahrtsgesellschaftskapitnsmtze-p4d96i.de,2026-11-19,,,\n\
    xn--zagljaprzedsibiorstwo-mcc03bpb96ala60i2bw4bg3aqb.pl,2026-11-19,,,\n\
    xn--fiq7ivcs4l5ucyvb561byjdo5k38ew6e4x8duqgbls8rdb65jyia.com,2026-11-19,,,\n";

/// Seed of the names of a market and of their dates.
const SEED: u64 = 1;
/// Number of names of the market in a normal run, and at full size.
const MARKET: [usize; 2] = [5_000, 1_000_000];

/// An installation and its server.
pub struct World {
    pub site: Site,
    pub server: Server,
    settings: String,
}

impl World {
    /// Creates a world with default settings.
    pub fn new() -> World {
        let site = Site::new();
        ingest(&site, "list.csv", &list());
        World::of(site, WEB)
    }

    /// Creates a world whose server reads its time of day, in seconds since 1970, from the file `clock`.
    pub fn by_clock(clock: &Path) -> World {
        let site = Site::new();
        ingest(&site, "list.csv", &list());
        let settings = site.settings(WEB);
        let server = site.serve_by(clock, &["--config", &settings, "--today", TODAY]);
        World { site, server, settings }
    }

    /// Creates a world whose server may send webhooks to a local receiver.
    pub fn that_calls(receiver: &Receiver) -> World {
        let site = Site::new();
        ingest(&site, "list.csv", &list());
        let ca_file = site.write("ca.pem", receiver.certificate());
        let allow = [receiver.address().to_string()];
        let webhooks = format!("[webhooks]\nallow = {allow:?}\nca_file = {ca_file:?}\n");
        World::of(site, &format!("{WEB}{webhooks}"))
    }

    /// Creates a world with a generated market and a server that sends mail: five thousand names, a
    /// million at full size, or `DROPDEX_NAMES`. Most of the names drop within two months.
    pub fn market(mailbox: &Mailbox) -> World {
        let site = Site::new();
        let given = std::env::var("DROPDEX_NAMES").ok();
        let [few, many] = MARKET;
        let count = given.map_or_else(|| figure(few, many), |it| it.parse().expect("a number"));
        say(&format!("{count} names"));
        let names = RealNames::read(&RealNames::sample_path()).expect("the sample is there");
        let names = names.extend(count, SEED).expect("the generator has enough names");
        let drops = Drops::new(SEED, TODAY.parse().expect("a day"), Mix::SAMPLE);
        // The installation is not kept as a template that tests share, because the market may be large.
        let path = site.write("market.csv", "");
        let mut file = BufWriter::new(File::create(&path).expect("a file can be written"));
        let written = write_csv(drops.observations(names.iter()), &mut file);
        written.and_then(|()| file.flush()).expect("a file can be written");
        let path = path.to_str().expect("temporary paths are UTF-8");
        site.ok(&["ingest", "--observed-at", &format!("{TODAY}T06:00:00Z"), path]);
        World::of(site, &mailbox.settings(WEB))
    }

    /// Creates a market with good names in .com that drop tomorrow, and some others.
    pub fn market_of_tomorrow(mailbox: &Mailbox) -> World {
        let world = World::market(mailbox);
        let mut tomorrow = vec!["harbor9.com".to_owned(), "oakledger.net".to_owned()];
        for first in ["quiet", "paper", "harbor", "silver", "garden"] {
            let second = ["meadow", "lantern", "ledger", "bridge", "market"];
            tomorrow.extend(second.map(|second| format!("{first}{second}.com")));
        }
        let tomorrow: Vec<&str> = tomorrow.iter().map(String::as_str).collect();
        world.ingest_soon("soon.csv", &tomorrow, 7);
        wait::until_ok(Duration::from_secs(30), || {
            let status = world.server.client().get("/domain/gardenmarket.com").status;
            if status == 200 { Ok(()) } else { Err(format!("{status}: the list is not served")) }
        });
        world
    }

    fn of(site: Site, settings: &str) -> World {
        let settings = site.settings(settings);
        let server = site.serve_with(&["--config", &settings, "--today", TODAY]);
        World { site, server, settings }
    }

    /// Adds an account whose password is [`PASSWORD`].
    pub fn add_account(&self, email: &str, plan: &str) {
        self.site.account_with_password(email, plan, PASSWORD);
    }

    /// Returns a browser that is logged in as the owner of a new account.
    pub fn member(&self, email: &str, plan: &str) -> Browser {
        self.add_account(email, plan);
        let browser = Browser::new(&self.server);
        browser.log_in(email);
        browser
    }

    /// Ingests a list of these names, dropped today, and waits until the server serves it.
    pub fn ingest(&self, file: &str, names: &[&str]) {
        let rows: String = names.iter().map(|name| format!("{name},{TODAY}\n")).collect();
        let list = self.site.write(file, format!("domain,drop_date\n{rows}"));
        self.site.ingest(&list, &format!("{TODAY}T07:00:00Z"));
    }

    /// As [`World::ingest`], with names that drop tomorrow and were observed at an hour of today.
    pub fn ingest_soon(&self, file: &str, names: &[&str], hour: u8) {
        let rows: String =
            names.iter().map(|name| format!("{name},2026-10-17,2026-11-21\n")).collect();
        let list = self.site.write(file, format!("domain,drop_date,release_date\n{rows}"));
        self.site.ingest(&list, &format!("{TODAY}T{hour:02}:00:00Z"));
    }

    /// Stops the server and starts another.
    pub fn restarted(self) -> World {
        let World { site, server, settings } = self;
        server.stop();
        let server = site.serve_with(&["--config", &settings, "--today", TODAY]);
        World { site, server, settings }
    }
}

impl Browser {
    /// Logs in through the form.
    #[track_caller]
    pub fn log_in(&self, email: &str) {
        self.open("/login");
        self.field("E-mail address").fill(email);
        self.field("Password").fill(PASSWORD);
        self.main().button("Log in").follow();
        self.button("Log out").wait();
    }
}

/// Ingests the first list.
fn ingest(site: &Site, file: &str, text: &str) {
    let list = site.write(file, text);
    site.ingest(&list, &format!("{TODAY}T06:00:00Z"));
}

/// Returns the header of the sample, some of its rows, and the rows of the tests.
fn list() -> String {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/data/sample/sample.csv.gz");
    let sample = std::fs::File::open(sample).expect("the sample is there");
    let lines = BufReader::new(GzDecoder::new(sample)).lines();
    let lines = lines.map(|line| line.expect("the sample is readable") + "\n");
    lines.step_by(ONE_IN).collect::<String>() + OWN_ROWS
}
