//! Commands and what they lead to. Only reads; what it returns is what gets written.

use thiserror::Error;

use super::email::Email;
use super::event::{Event, StoredDay};
use super::keys::StoredKey;
use super::password::PasswordHash;
use super::state::{Account, State};
use crate::vocab::day::Day;
use crate::vocab::ids::AccountId;
use crate::vocab::plan::Plan;

/// What an operator wants done to one account.
pub enum Command {
    /// Add it, under a number that was not used before.
    Add {
        /// The number.
        account: AccountId,
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
    /// A shut account gets no key.
    #[error("the account for {0} is disabled, which is for good; add another for another address")]
    Disabled(Email),
}

/// What `command` on the account of `email` leads to, on the UTC day `today`; `None` when all is as
/// wanted already.
///
/// # Errors
/// [`Refusal`].
pub fn decide(
    state: &State,
    email: &Email,
    command: Command,
    today: Day,
) -> Result<Option<Event>, Refusal> {
    let on = StoredDay(today);
    match command {
        Command::Add { account, plan, password } => match state.by_email(email) {
            Some(_) => Err(Refusal::EmailTaken(email.clone())),
            None => {
                let email = email.clone();
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
    }
}

fn existing<'a>(state: &'a State, email: &Email) -> Result<&'a Account, Refusal> {
    state.by_email(email).ok_or_else(|| Refusal::NoSuchAccount(email.clone()))
}
