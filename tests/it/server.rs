//! The real binary against clients that are slow, many, gone or hostile: each is ended within its
//! deadline, and everybody else is served meanwhile. Then what the server does by itself: compresses,
//! answers from what the client holds, sheds what is too much, and ends well.
//!
//! Deadlines are promises, set to a second or so here: nothing may end before its own, and the metrics
//! say which one ended it. `DROPDEX_FULL=1` runs the full figures, and asserts that none is late.

mod answers;
mod drain;
mod http2;
mod overload;
mod raw;
mod slow;
mod tls;

use crate::common::{Server, Site};

const TODAY: &str = "2026-11-21";
/// Deadlines that a test can wait for.
const SHORT: &str = "header_seconds = 1\nbody_seconds = 1\n\
                     write_stall_seconds = 1\nidle_seconds = 2\nrequest_seconds = 3\nexport_seconds = 4\n";

/// An installation with these names and these lines in its section `[server]`, and its server, which
/// gives its metrics away.
fn served(names: usize, settings: &str) -> (Site, Server) {
    let site = Site::with_names((0..names).map(|number| format!("name{number:05}.com")), TODAY);
    let server = serve(&site, settings);
    (site, server)
}

fn serve(site: &Site, settings: &str) -> Server {
    let settings = site.settings(&format!(
        "[plans.api]\nrequests_per_day = 10000000\nexports_per_day = 100000\n\
         [metrics]\nlisten = \"127.0.0.1:0\"\n[server]\n{settings}"
    ));
    site.serve_with(&["--today", TODAY, "--config", &settings])
}
