//! Load over HTTP by `wrk`, which takes less of the shared cores than a Rust client would here.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::Deserialize;

use crate::timing::Timing;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/wrk.lua");
/// Concurrent keep-alive connections.
pub const CONNECTIONS: u32 = 16;

/// Results of a load run, as `wrk.lua` prints them.
#[derive(Clone, Debug, Deserialize)]
pub struct Load {
    requests: u64,
    seconds: f64,
    /// Responses outside 2xx and 3xx, and failed connections.
    errors: u64,
    p50_us: f64,
    p99_us: f64,
    worst_us: f64,
}

impl Load {
    /// Returns responses per second.
    pub fn per_second(&self) -> f64 {
        self.requests as f64 / self.seconds
    }

    /// Returns the times from the first byte sent to the last one received.
    pub fn timing(&self) -> Timing {
        let &Load { p50_us, p99_us, worst_us, .. } = self;
        Timing { p50_us, p99_us, worst_us, count: self.requests as usize }
    }
}

/// Whether `wrk` is installed.
pub fn is_there() -> bool {
    let run =
        Command::new("wrk").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    // `wrk --version` prints the version and exits with 1.
    run.is_ok()
}

/// Cycles through the request targets of the file `targets` for `duration`, in whole seconds, with
/// `key` if one is given.
///
/// # Errors
///
/// `wrk` fails, or a response is an error.
pub fn drive(
    address: SocketAddr,
    targets: &Path,
    key: Option<&str>,
    duration: Duration,
) -> anyhow::Result<Load> {
    let mut command = Command::new("wrk");
    command.arg("-t1").arg(format!("-c{CONNECTIONS}"));
    command.arg(format!("-d{}s", duration.as_secs())).arg("-s").arg(SCRIPT);
    command.arg(format!("http://{address}")).arg("--").arg(targets).args(key);
    let output = command.output().context("cannot run wrk")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| line.starts_with('{'));
    let line = line.with_context(|| {
        format!(
            "{command:?} ended with {}: {text}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        )
    })?;
    let load: Load = serde_json::from_str(line)?;
    ensure!(load.errors == 0 && load.requests > 0, "{load:?}");
    Ok(load)
}
