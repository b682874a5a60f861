//! Who may ask, and how often: accounts, their keys and what they used today.
//!
//! Commands come in; [`decide`] reads the state and refuses or names an [`event::Event`]; the event
//! goes to the journal; once it is on disk [`state`] applies it, which cannot fail and is all that a
//! restart runs. [`store::Store`] is those three in order, and the one door for everybody else.
//!
//! Nothing here knows of HTTP, of sockets or of the index.

pub mod admin;
pub mod decide;
pub mod email;
pub mod event;
pub mod keys;
pub mod password;
pub mod quota;
pub mod secret;
pub mod state;
pub mod store;

pub use email::Email;
pub use keys::ApiKey;
pub use password::{Password, PasswordHash};
pub use quota::Allowance;
pub use store::{AccountSummary, Caller, CommandError, IssuedKey, Store, StoreError};
