//! The one mail that goes to an address nobody has verified: the link that does.

use std::time::Duration;

use chrono::{DateTime, Utc};
use maud::html;
use tokio::time::timeout;

use crate::accounts::LINK_AGE_MAX;
use crate::accounts::{Caller, Email, Token, VerificationLink};
use crate::outbound::SendError;
use crate::outbound::email::{Mail, Mailer};
use crate::web::Web;
use crate::web::error::PageError;

/// A page waits this long for the mail server; what takes longer goes on by itself.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// What asking for a link came to.
pub enum Sent {
    /// It is on its way.
    Done,
    /// There is nothing to verify.
    Verified,
    /// Too soon after the last one, or too many today.
    Wait,
    /// The mail server did not take it.
    Failed,
    /// The operator has set up no mail, or no address for links.
    NotSetUp,
}

/// Whether links can be mailed: there is a mail server, and an address that they begin with.
pub fn is_set_up(web: &Web) -> bool {
    web.outside.mailer.is_some() && web.outside.home.is_some()
}

/// Makes a link and mails it.
///
/// # Errors
/// Nothing can be written now.
pub async fn send(web: &Web, caller: &Caller, now: DateTime<Utc>) -> Result<Sent, PageError> {
    let (Some(mailer), Some(home)) = (web.outside.mailer.clone(), &web.outside.home) else {
        return Ok(Sent::NotSetUp);
    };
    let (token, email) = match web.app.store.ask_verification(caller, now).await? {
        VerificationLink::Made { token, email } => (token, email),
        VerificationLink::Verified => return Ok(Sent::Verified),
        VerificationLink::Wait(_) => return Ok(Sent::Wait),
    };
    let link = format!("{}/verify/{}", home.as_str(), token.reveal());
    let sending = tokio::spawn(async move { hand_over(&mailer, &email, &link, now).await });
    Ok(match timeout(WAIT_MAX, sending).await {
        Ok(Ok(Err(_)) | Err(_)) => Sent::Failed,
        Ok(Ok(Ok(()))) | Err(_) => Sent::Done,
    })
}

/// The first link of an account, without anybody waiting: another can be asked for.
pub async fn send_first(web: &Web, caller: &Caller, now: DateTime<Utc>) {
    if !is_set_up(web) {
        return;
    }
    let (web, caller) = (web.clone(), caller.clone());
    tokio::spawn(async move {
        if send(&web, &caller, now).await.is_err() {
            tracing::warn!("no link could be made for a new account");
        }
    });
}

async fn hand_over(
    mailer: &Mailer,
    email: &Email,
    link: &str,
    now: DateTime<Utc>,
) -> Result<(), SendError> {
    // An id of its own, which says nothing of the link.
    let id = Token::generate()
        .map_or_else(|_| now.timestamp_millis().to_string(), |id| id.reveal()[..32].to_owned());
    let mail = Mail {
        id: &id,
        to: email.as_str(),
        subject: "Verify your e-mail address for dropdex",
        text: text(link),
        html: markup(link),
        unsubscribe: None,
        at: now,
    };
    let sent = mailer.send(mail).await;
    if let Err(err) = &sent {
        tracing::warn!(error = %err, "a link to verify an address was not taken");
    }
    sent
}

fn text(link: &str) -> String {
    format!(
        "Somebody, most likely you, made an account at dropdex with this address.\n\n\
         Open this link within {} hours to have alerts mailed here:\n\n{link}\n\n\
         If it was not you, do nothing: no alerts will be mailed here.\n",
        LINK_AGE_MAX.num_hours()
    )
}

fn markup(link: &str) -> String {
    let page = html! {
        p { "Somebody, most likely you, made an account at dropdex with this address." }
        p {
            "Open this link within " (LINK_AGE_MAX.num_hours()) " hours to have alerts mailed here: "
            a href=(link) { (link) }
        }
        p { "If it was not you, do nothing: no alerts will be mailed here." }
    };
    page.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parts_have_the_link() {
        let link = "https://drops.example/verify/00ff";
        assert!(text(link).lines().any(|line| line == link), "on a line of its own");
        assert!(markup(link).contains(&format!("<a href=\"{link}\">{link}</a>")));
    }
}
