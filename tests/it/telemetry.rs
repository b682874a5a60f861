//! Monitoring: `/metrics` on its own listener, parsed by Prometheus' own client; alerts and the dashboard,
//! checked by `promtool`; request ids; the log.

mod alerts;
mod catalogue;
mod log;
mod metrics;
mod requests;
