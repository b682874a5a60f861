//! Whoever started this process and watches over it: systemd, if it did. It is told when the service
//! is ready, alive, at reading its files again and at its end, and may hand over sockets that it
//! listens on. Without it nothing of this does anything.

use std::net::TcpListener;
use std::time::Duration;

use anyhow::Context;
use listenfd::ListenFd;
use sd_notify::NotifyState;

/// Beats in the time that the supervisor allows between two.
const BEATS: u32 = 3;

/// The sockets that were handed over; none without socket activation.
///
/// # Errors
/// One that was handed over is no TCP listener.
pub fn sockets() -> anyhow::Result<Vec<TcpListener>> {
    let mut inherited = ListenFd::from_env();
    let mut sockets = Vec::new();
    for place in 0..inherited.len() {
        let socket = inherited.take_tcp_listener(place).with_context(|| {
            format!("socket {place} that was handed over is no TCP listener: see ListenStream= of its unit")
        })?;
        sockets.extend(socket);
    }
    Ok(sockets)
}

/// Requests are answered.
pub fn ready() {
    tell(&[NotifyState::Ready]);
}

/// Files are read again; [`ready`] follows.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(err) => tracing::debug!(error = %err, "there is no monotonic clock"),
    }
}

/// The end has begun, and may take `longest`.
pub fn stopping(longest: Duration) {
    let longest = u32::try_from(longest.as_micros()).unwrap_or(u32::MAX);
    tell(&[NotifyState::Stopping, NotifyState::ExtendTimeoutUsec(longest)]);
}

/// Says that the event loop goes round, for as long as it does and somebody wants to know.
pub async fn beat() {
    let Some(period) = sd_notify::watchdog_enabled() else { return };
    let mut beats = tokio::time::interval(period / BEATS);
    loop {
        beats.tick().await;
        tell(&[NotifyState::Watchdog]);
    }
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(err) = sd_notify::notify(state) {
        tracing::warn!(error = %err, "the supervisor cannot be told how things stand");
    }
}
