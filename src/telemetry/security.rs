//! The security log: log-ins, failed log-ins, and changes of accounts, keys and passwords. Every line has
//! the target [`TARGET`] and the address of the client, and contains no secret.

use std::net::IpAddr;

use metrics::counter;

use crate::current::with_current;
use crate::vocab::named::named_enum;

/// Target and message of the lines, for filters such as `[log] level = "warn,security=info"`.
pub const TARGET: &str = "security";
/// Placeholder address for commands, which use the admin socket.
const LOCAL: &str = "local";

named_enum! {
    /// A security event.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum SecurityEvent {
        LogIn = "log_in",
        LogInFailed = "log_in_failed",
        /// A log-in refused without checking the password, after too many attempts.
        LogInLimited = "log_in_limited",
        LogOutEverywhere = "log_out_everywhere",
        SessionEnded = "session_ended",
        SignUp = "sign_up",
        PasswordChanged = "password_changed",
        PasswordChangeFailed = "password_change_failed",
        PasswordResetRequested = "password_reset_requested",
        PasswordReset = "password_reset",
        KeyMade = "key_made",
        KeyReplaced = "key_replaced",
        KeyRevoked = "key_revoked",
        AccountAdded = "account_added",
        AccountInvited = "account_invited",
        AccountDisabled = "account_disabled",
        AccountDeleted = "account_deleted",
        AccountRestored = "account_restored",
        AccountExported = "account_exported",
        AccountErased = "account_erased",
        PlanSet = "plan_set",
    }
}

/// The client of a request, stored in its extensions by the server.
#[derive(Clone, Copy, Debug)]
pub struct ClientAddress(pub IpAddr);

/// Logs and counts an event of the account of `email`, with the client of the request that this thread
/// works on.
pub fn record(event: SecurityEvent, email: &str) {
    record_with(event, email, "");
}

/// [`record`] with a detail, such as the new plan or the name of a key.
pub fn record_with(event: SecurityEvent, email: &str, detail: &str) {
    let name = event.as_str();
    counter!("dropdex_security_events_total", "event" => name).increment(1);
    let client = with_current(|current| current.and_then(|current| current.client()));
    let address =
        client.map_or_else(|| LOCAL.to_owned(), |address| address.to_canonical().to_string());
    if detail.is_empty() {
        tracing::info!(target: TARGET, event = %name, email = %email, %address, "security");
    } else {
        tracing::info!(target: TARGET, event = %name, email = %email, %address, detail = %detail, "security");
    }
}
