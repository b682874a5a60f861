//! Integration with systemd: readiness, watchdog, reload and stop notifications, and socket activation.
//! Without systemd every function does nothing.

use std::net::TcpListener;
use std::time::Duration;

use anyhow::Context;
use listenfd::ListenFd;
use sd_notify::NotifyState;

/// Number of notifications per watchdog timeout.
const NOTIFICATIONS_PER_TIMEOUT: u32 = 3;

/// Returns the sockets passed by socket activation.
///
/// # Errors
/// A passed descriptor is not a TCP listener.
pub fn sockets() -> anyhow::Result<Vec<TcpListener>> {
    let mut inherited = ListenFd::from_env();
    let mut sockets = Vec::new();
    for index in 0..inherited.len() {
        let socket = inherited.take_tcp_listener(index).with_context(|| {
            format!(
                "inherited socket {index} is not a TCP listener; see ListenStream= of the socket unit"
            )
        })?;
        sockets.extend(socket);
    }
    Ok(sockets)
}

/// Reports that the server is ready.
pub fn ready() {
    notify(&[NotifyState::Ready]);
}

/// Reports a reload, to be followed by [`ready`].
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(err) => tracing::debug!(error = %err, "no monotonic clock"),
    }
}

/// Reports a shutdown that takes at most `longest`.
pub fn stopping(longest: Duration) {
    let longest = u32::try_from(longest.as_micros()).unwrap_or(u32::MAX);
    notify(&[NotifyState::Stopping, NotifyState::ExtendTimeoutUsec(longest)]);
}

/// Notifies the watchdog if the unit has one.
pub async fn feed_watchdog() {
    let Some(timeout) = sd_notify::watchdog_enabled() else { return };
    let mut ticks = tokio::time::interval(timeout / NOTIFICATIONS_PER_TIMEOUT);
    loop {
        ticks.tick().await;
        notify(&[NotifyState::Watchdog]);
    }
}

fn notify(state: &[NotifyState<'_>]) {
    if let Err(err) = sd_notify::notify(state) {
        tracing::warn!(error = %err, "sd_notify failed");
    }
}
