//! The installation of the stories: an installation with some five thousand real names, and a server.

use std::io::{BufRead as _, BufReader};

use flate2::read::GzDecoder;

use super::driver::Browser;
use crate::common::receiver::Receiver;
use crate::common::{Server, Site};

/// The day of the newest list.
pub const TODAY: &str = "2026-11-20";
/// The password of every account here.
pub const PASSWORD: &str = "four lanterns at the quay";
/// Cookies over plain HTTP, as for any server on loopback without TLS before it.
const WEB: &str = "[web]\nplain_http = true\nsignup = true\n";
/// One of this many rows of the sample: as a page shows it, and there in seconds.
const ONE_IN: usize = 10;
/// Names that stories need: a good name, one with letters of its own, one that looks like
/// another, one that dropped twice.
const OWN_ROWS: &str = "\
    harborlight.com,2026-11-19,,,\n\
    harborlight.net,2026-10-01,,,\n\
    xn--mller-kva.de,2026-11-19,,,\n\
    xn--pple-43d.com,2026-11-18,,,\n\
    oldharbor.com,2019-03-01,,,true\n\
    oldharbor.com,2026-11-17,,,\n";

/// An installation and its server.
pub struct World {
    pub site: Site,
    pub server: Server,
    settings: String,
}

impl World {
    /// One without settings of its own.
    pub fn new() -> World {
        World::of(Site::new(), "")
    }

    /// One that sends webhooks to a receiver here.
    pub fn that_calls(receiver: &Receiver) -> World {
        let site = Site::new();
        let ca_file = site.write("ca.pem", receiver.certificate());
        let allow = [receiver.address().to_string()];
        World::of(site, &format!("[webhooks]\nallow = {allow:?}\nca_file = {ca_file:?}\n"))
    }

    fn of(site: Site, settings: &str) -> World {
        let list = site.write("list.csv", list());
        site.ingest(&list, &format!("{TODAY}T06:00:00Z"));
        let settings = site.settings(&format!("{WEB}{settings}"));
        let server = site.serve_with(&["--config", &settings, "--today", TODAY]);
        World { site, server, settings }
    }

    /// Adds an account whose password is [`PASSWORD`].
    pub fn add_account(&self, email: &str, plan: &str) {
        self.site.account_with_password(email, plan, PASSWORD);
    }

    /// A browser in which the owner of a new account has logged in.
    pub fn member(&self, email: &str, plan: &str) -> Browser {
        self.add_account(email, plan);
        let browser = Browser::new(&self.server);
        browser.log_in(email);
        browser
    }

    /// Adds a list of these names, which dropped today, and waits until the server has it.
    pub fn ingest(&self, file: &str, names: &[&str]) {
        let rows: String = names.iter().map(|name| format!("{name},{TODAY}\n")).collect();
        let list = self.site.write(file, format!("domain,drop_date\n{rows}"));
        self.site.ingest(&list, &format!("{TODAY}T07:00:00Z"));
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
    /// Logs in by the form.
    #[track_caller]
    pub fn log_in(&self, email: &str) {
        self.open("/login");
        self.field("E-mail address").fill(email);
        self.field("Password").fill(PASSWORD);
        self.main().button("Log in").follow();
        self.button("Log out").wait();
    }
}

/// The header of the sample, some of its rows, and ours.
fn list() -> String {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/data/sample/sample.csv.gz");
    let sample = std::fs::File::open(sample).expect("the sample is there");
    let lines = BufReader::new(GzDecoder::new(sample)).lines();
    let lines = lines.map(|line| line.expect("the sample is readable") + "\n");
    lines.step_by(ONE_IN).collect::<String>() + OWN_ROWS
}
