//! Commands and what they lead to. Only reads (and draws ids and secrets, which nobody can foresee);
//! what it returns is what gets written. An operator's commands are here, what accounts do with
//! their own things in the files beside.

pub(super) mod access;
pub(super) mod claims;
pub(super) mod deliveries;
pub(super) mod replies;
pub(super) mod rules;
pub(super) mod watches;

use std::ops::RangeInclusive;

use thiserror::Error;

use super::email::Email;
use super::event::{Event, StoredDay};
use super::keys::StoredKey;
use super::password::PasswordHash;
use super::state::{Account, State};
use super::write::WriteError;
use crate::vocab::day::Day;
use crate::vocab::ids::AccountId;
use crate::vocab::plan::Plan;

/// What an operator wants done to one account.
pub enum Command {
    /// Add it, under a number that was not used before.
    Add {
        /// What it pays for.
        plan: Plan,
        /// For a log-in, where one is wanted.
        password: Option<PasswordHash>,
    },
    /// Let it pay for something else.
    SetPlan(Plan),
    /// Give it a key in place of the one it has.
    IssueKey(StoredKey),
    /// Shut it.
    Disable,
    /// Give it another password; all its sessions end.
    SetPassword(PasswordHash),
}

/// Why a command was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The address is taken.
    #[error("there is an account for {0} already")]
    EmailTaken(Email),
    /// The address is unknown.
    #[error("there is no account for {0}; `dropdex account list` shows all")]
    NoSuchAccount(Email),
    /// A shut account gets no key and no password.
    #[error("the account for {0} is disabled, which is for good; add another for another address")]
    Disabled(Email),
}

/// What a write leads to.
pub(super) struct Decided<T> {
    /// What gets written, as one transaction; nothing where all is as wanted already.
    pub(super) events: Vec<Event>,
    /// What the writer is told once it is durable.
    pub(super) answer: T,
}

/// What `command` on the account of `email` leads to, on the UTC day `today`; `None` when all is as
/// wanted already. `number` gives a number that no account has had, and is asked once and only for
/// an account that gets it.
///
/// # Errors
/// [`Refusal`].
pub fn decide(
    state: &State,
    email: &Email,
    command: Command,
    today: Day,
    number: impl FnOnce() -> AccountId,
) -> Result<Option<Event>, Refusal> {
    let on = StoredDay(today);
    match command {
        Command::Add { plan, password } => match state.by_email(email) {
            Some(_) => Err(Refusal::EmailTaken(email.clone())),
            None => {
                let (account, email) = (number(), email.clone());
                Ok(Some(Event::AccountAdded { account, email, plan, password, on }))
            }
        },
        Command::SetPlan(plan) => {
            let account = existing(state, email)?;
            Ok((account.plan != plan).then_some(Event::PlanSet { account: account.id, plan }))
        }
        Command::IssueKey(key) => match existing(state, email)? {
            account if account.disabled => Err(Refusal::Disabled(email.clone())),
            account => Ok(Some(Event::KeyIssued { account: account.id, key, on })),
        },
        Command::Disable => {
            let account = existing(state, email)?;
            Ok((!account.disabled).then_some(Event::AccountDisabled { account: account.id }))
        }
        Command::SetPassword(password) => match existing(state, email)? {
            account if account.disabled => Err(Refusal::Disabled(email.clone())),
            account => Ok(Some(Event::PasswordSet { account: account.id, password })),
        },
    }
}

fn existing<'a>(state: &'a State, email: &Email) -> Result<&'a Account, Refusal> {
    state
        .by_email(email)
        .map(|account| &**account)
        .ok_or_else(|| Refusal::NoSuchAccount(email.clone()))
}

/// Draws ids until one is not taken: in 9 * 10^15, the first hardly ever is.
fn draw_id<T: Copy>(
    id: impl Fn(u64) -> Option<T>,
    is_taken: impl Fn(T) -> bool,
) -> Result<T, WriteError> {
    loop {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(WriteError::Random)?;
        // Eleven bits less: 53 are left.
        if let Some(id) = id(u64::from_le_bytes(bytes) >> 11).filter(|id| !is_taken(*id)) {
            return Ok(id);
        }
    }
}

/// Whether a text somebody wrote has 1 to `chars_max` characters, none of them `bad`, and not only
/// white space.
fn check_text(
    field: &str,
    text: &str,
    chars: RangeInclusive<usize>,
    bad: impl Fn(char) -> bool,
) -> Result<(), WriteError> {
    let is_blank = *chars.start() > 0 && text.trim().is_empty();
    if is_blank || !chars.contains(&text.chars().count()) {
        let (min, max) = (chars.start(), chars.end());
        return Err(invalid(field, format!("must have {min} to {max} characters")));
    }
    if text.contains(bad) {
        return Err(invalid(field, "must not hold control characters"));
    }
    Ok(())
}

fn invalid(field: impl Into<String>, what: impl Into<String>) -> WriteError {
    WriteError::Invalid { field: field.into(), what: what.into() }
}
