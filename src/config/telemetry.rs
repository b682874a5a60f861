//! The sections `[metrics]` and `[log]`.

use std::time::Duration;

use serde::Deserialize;

use crate::config::ListenAddress;
use crate::telemetry::logs::Logs;

/// Delays from a tenth of a second on are noticeable.
const SLOW_MS_DEFAULT: u32 = 100;

/// Settings of metrics and logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telemetry {
    /// Address of `/metrics`; `None` disables it.
    pub listen: Option<ListenAddress>,
    pub logs: Logs,
    /// Enables the access log.
    pub access: bool,
    /// Threshold of the slow-query log.
    pub slow: Duration,
}

/// The section `[metrics]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct MetricsFile {
    listen: Option<ListenAddress>,
}

/// The section `[log]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LogFile {
    json: bool,
    level: Option<String>,
    access: bool,
    slow_ms: Option<u32>,
}

/// Merges the sections with the flag `--log-json`.
pub(super) fn settings(metrics: MetricsFile, log: LogFile, json: bool) -> Telemetry {
    Telemetry {
        listen: metrics.listen,
        logs: Logs { json: json || log.json, level: log.level },
        access: log.access,
        slow: Duration::from_millis(log.slow_ms.unwrap_or(SLOW_MS_DEFAULT).into()),
    }
}
