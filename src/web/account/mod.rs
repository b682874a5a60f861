//! Accounts, as their owners see them: signing up, logging in and out, and the tabs of one's own.

mod login;

use axum::Router;
use axum::routing::{get, post};

use crate::web::Web;

/// Pages about the account of whoever looks.
pub fn routes() -> Router<Web> {
    Router::new()
        .route("/login", get(login::ask).post(login::log_in))
        .route("/logout", post(login::log_out))
}
