//! How a running server is watched: `/metrics` on its own listener, judged by the parser of Prometheus'
//! own client, alerts and the dashboard by Prometheus; request ids; the log.

mod common;

#[path = "telemetry/alerts.rs"]
mod alerts;
#[path = "telemetry/catalogue.rs"]
mod catalogue;
#[path = "telemetry/metrics.rs"]
mod metrics;
#[path = "telemetry/requests.rs"]
mod requests;
