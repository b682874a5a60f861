//! The real binary with slow, numerous, disconnected and hostile clients: each connection is closed
//! within its deadline, and other clients are served meanwhile. The tests also cover compression,
//! conditional requests, load shedding and shutdown.
//!
//! Deadlines are about a second here. No connection may be closed before its deadline, and the metrics
//! name the deadline that closed it. `DROPDEX_FULL=1` also asserts that none is closed late.

mod answers;
mod drain;
mod exports;
mod http2;
mod overload;
pub mod raw;
mod slow;
mod tls;

use crate::common::{Server, Site};

const TODAY: &str = "2026-11-21";
/// Deadlines short enough for a test to wait for.
const SHORT: &str = "header_seconds = 1\nbody_seconds = 1\n\
                     write_stall_seconds = 1\nidle_seconds = 2\nrequest_seconds = 3\nexport_seconds = 4\n";

/// Creates an installation with this many names and these lines in `[server]`, and starts its server,
/// with metrics.
fn served(names: usize, settings: &str) -> (Site, Server) {
    let site = Site::with_names((0..names).map(|number| format!("name{number:05}.com")), TODAY);
    let server = serve(&site, settings);
    (site, server)
}

fn serve(site: &Site, settings: &str) -> Server {
    let settings = site.settings(&format!(
        "[plans.api]\nrequests_per_day = 10000000\nwrites_per_minute = 1000000\nexports_per_day = 100000\nconcurrent_exports = 1000\n\
         [metrics]\nlisten = \"127.0.0.1:0\"\n[server]\n{settings}"
    ));
    site.serve_with(&["--today", TODAY, "--config", &settings])
}
