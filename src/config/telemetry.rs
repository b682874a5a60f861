//! The sections for those who watch the service: `[metrics]` and `[log]`.

use std::time::Duration;

use serde::Deserialize;

use crate::config::ListenAddress;
use crate::telemetry::logs::Logs;

/// Longer than this a question to the index should not take: a tenth of a second is what people notice.
const SLOW_MS_DEFAULT: u32 = 100;

/// What is told of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telemetry {
    /// Where `/metrics` is; `None`: nowhere.
    pub listen: Option<ListenAddress>,
    pub logs: Logs,
    /// Whether each answer is a line of the log.
    pub access: bool,
    /// From when on a question to the index is a line of the log.
    pub slow: Duration,
}

/// The sections of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct MetricsFile {
    listen: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LogFile {
    json: Option<bool>,
    level: Option<String>,
    access: Option<bool>,
    slow_ms: Option<u32>,
}

/// Puts the settings together; `json` is the flag, which can only ask for it.
///
/// # Errors
/// The setting by its name, and what is wrong with it.
pub(super) fn settings(
    metrics: MetricsFile,
    log: LogFile,
    json: bool,
) -> anyhow::Result<Telemetry> {
    let listen = metrics.listen.map(|text| text.parse::<ListenAddress>()).transpose();
    let slow_ms = log.slow_ms.unwrap_or(SLOW_MS_DEFAULT);
    Ok(Telemetry {
        listen: listen.map_err(|err| anyhow::anyhow!("metrics.listen: {err}"))?,
        logs: Logs { json: json || log.json.unwrap_or(false), level: log.level },
        access: log.access.unwrap_or(false),
        slow: Duration::from_millis(slow_ms.into()),
    })
}
