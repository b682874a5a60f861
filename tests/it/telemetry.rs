//! How a running server is watched: `/metrics` on its own listener, judged by the parser of Prometheus'
//! own client, alerts and the dashboard by Prometheus; request ids; the log.

mod alerts;
mod catalogue;
mod metrics;
mod requests;
