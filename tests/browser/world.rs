//! What stories are about: an installation with some five thousand real names, and a server.

use std::io::{BufRead as _, BufReader};

use flate2::read::GzDecoder;

use crate::common::{Server, Site};

/// The day of the newest list.
pub const TODAY: &str = "2026-11-20";
/// One row in so many of the sample: as a page shows it, and there in seconds.
const ONE_IN: usize = 10;
/// What stories need to be there: a good name, one with letters of its own, one that looks like
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
        World::with("")
    }

    /// One with these settings besides.
    pub fn with(settings: &str) -> World {
        let site = Site::new();
        let list = site.write("list.csv", list());
        site.ingest(&list, &format!("{TODAY}T06:00:00Z"));
        let settings = site.settings(settings);
        let server = site.serve_with(&["--config", &settings, "--today", TODAY]);
        World { site, server, settings }
    }

    /// Stops the server and starts another.
    pub fn restarted(self) -> World {
        let World { site, server, settings } = self;
        server.stop();
        let server = site.serve_with(&["--config", &settings, "--today", TODAY]);
        World { site, server, settings }
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
