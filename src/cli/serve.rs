//! `dropdex serve`: runs the server.

use clap::Args;

use crate::app;
use crate::config::{Config, ListenAddress};

/// Serve the pages and the API until SIGTERM or SIGINT
///
/// Prints `listening on http://ADDR` on standard output when it accepts requests. Switches to a new
/// index generation within two seconds, without dropping a request.
#[derive(Args, Debug)]
pub struct ServeArgs {
    /// Address and port, also from DROPDEX_LISTEN; port 0 takes a free one [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<ListenAddress>,
    /// Seconds to keep accepting requests after SIGTERM, while `/api/ready` returns 503 [default: 5]
    #[arg(long, env = "DROPDEX_DRAIN_DELAY", value_name = "SECONDS")]
    pub drain_delay: Option<f64>,
}

/// Serves until a signal arrives.
///
/// # Errors
/// The message to print before exit 1.
pub fn run(config: &Config) -> anyhow::Result<()> {
    app::serve(config, |address, _store| {
        app::print_ready(address);
        Ok(())
    })
}
