//! The verification e-mail, the only one sent to an unverified address.

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

/// Maximum time a page waits for the mail server. A slower delivery continues in the background.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Outcome of a request for a verification link.
pub enum Sent {
    /// The mail server accepted the e-mail or is still receiving it.
    Done,
    /// The address is already verified.
    Verified,
    /// Rate limited: too soon after the last link, or too many today.
    Wait,
    /// The mail server rejected the e-mail or was unreachable.
    Failed,
    /// No mail server or no public URL is configured.
    NotSetUp,
}

/// Returns true if a mail server and a public URL for links are configured.
pub fn is_set_up(web: &Web) -> bool {
    web.outside.mailer.is_some() && web.outside.home.is_some()
}

/// Creates a verification link and e-mails it.
///
/// # Errors
/// The journal refuses writes.
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

/// Sends the first link of a new account in the background. The owner can request another one.
pub async fn send_first(web: &Web, caller: &Caller, now: DateTime<Utc>) {
    if !is_set_up(web) {
        return;
    }
    let (web, caller) = (web.clone(), caller.clone());
    tokio::spawn(async move {
        if send(&web, &caller, now).await.is_err() {
            tracing::warn!("verification link of a new account could not be created");
        }
    });
}

async fn hand_over(
    mailer: &Mailer,
    email: &Email,
    link: &str,
    now: DateTime<Utc>,
) -> Result<(), SendError> {
    // A random message id, so that it reveals nothing about the link.
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
        tracing::warn!(error = %err, "verification e-mail could not be sent");
    }
    sent
}

fn text(link: &str) -> String {
    format!(
        "You signed up for dropdex with this address.\n\n\
         Open this link within {} hours to verify it and to receive alerts here:\n\n{link}\n\n\
         If you did not sign up, ignore this e-mail: no alerts will be sent here.\n",
        LINK_AGE_MAX.num_hours()
    )
}

fn markup(link: &str) -> String {
    let page = html! {
        p { "You signed up for dropdex with this address." }
        p {
            "Open this link within " (LINK_AGE_MAX.num_hours()) " hours to verify it and to receive alerts here: "
            a href=(link) { (link) }
        }
        p { "If you did not sign up, ignore this e-mail: no alerts will be sent here." }
    };
    page.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parts_contain_the_link() {
        let link = "https://drops.example/verify/00ff";
        assert!(text(link).lines().any(|line| line == link), "on a line of its own");
        assert!(markup(link).contains(&format!("<a href=\"{link}\">{link}</a>")));
    }
}
