//! The e-mails of the account pages, with links that create an account, verify an address or set a
//! password.

use std::time::Duration;

use chrono::{DateTime, Utc};
use maud::html;
use tokio::time::timeout;

use crate::Web;
use crate::account::mailed_links::{INVITE_AGE_MAX, Purpose, RESET_AGE_MAX};
use crate::accounts::{Email, LINK_AGE_MAX, Person, Token, VerificationLink};
use crate::error::PageError;
use crate::outbound::SendError;
use crate::outbound::email::Mail;

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
    web.mailer.is_some() && web.app.site.home.is_some()
}

/// Creates a verification link and e-mails it.
///
/// # Errors
/// The journal refuses writes.
pub async fn send(web: &Web, person: &Person, now: DateTime<Utc>) -> Result<Sent, PageError> {
    if !is_set_up(web) {
        return Ok(Sent::NotSetUp);
    }
    if web.throttle.verification_mail(&person.email).is_err() {
        return Ok(Sent::Wait);
    }
    let (token, email) = match web.app.store.ask_verification(&person.caller, now).await? {
        VerificationLink::Made { token, email } => (token, email),
        VerificationLink::Verified => return Ok(Sent::Verified),
        VerificationLink::Wait(_) => return Ok(Sent::Wait),
    };
    let (web, letter) = (web.clone(), Letter::verification(format!("/verify/{}", token.reveal())));
    let sending = tokio::spawn(async move { letter.send(&web, &email, now).await });
    Ok(match timeout(WAIT_MAX, sending).await {
        Ok(Ok(Err(_)) | Err(_)) => Sent::Failed,
        Ok(Ok(Ok(()))) | Err(_) => Sent::Done,
    })
}

/// E-mails in the background the link that creates an account, or a note that the address already has
/// one.
pub fn send_sign_up(web: &Web, email: Email, now: DateTime<Utc>) {
    send_later(web, email, now, |web, email, now| {
        if web.app.store.has_account(email) {
            return Some(Letter::existing_account());
        }
        let link = web.mailed_links.link(Purpose::SignUp, email, now)?;
        Some(Letter::sign_up(format!("/signup/{link}")))
    });
}

/// E-mails the link that sets the first password of an account added by an operator.
///
/// # Errors
/// The mail was not accepted; the account stays.
pub async fn send_invitation(web: &Web, email: &Email, now: DateTime<Utc>) -> Result<(), String> {
    let seal = web.app.store.password_seal(email).ok_or("the account is disabled")?;
    let link = web.mailed_links.link(Purpose::Invite(seal), email, now);
    let link = link.ok_or("the system has no random bytes")?;
    let letter = Letter::invitation(format!("/reset/{link}"));
    letter.send(web, email, now).await.map_err(|err| err.to_string())
}

/// E-mails in the background the link that sets a new password, if the address has an account.
pub fn send_reset(web: &Web, email: Email, now: DateTime<Utc>) {
    send_later(web, email, now, |web, email, now| {
        let seal = web.app.store.password_seal(email)?;
        let link = web.mailed_links.link(Purpose::Reset(seal), email, now)?;
        Some(Letter::reset(format!("/reset/{link}")))
    });
}

/// E-mails a letter in the background, if there is one. Sends nothing to an address that has
/// received many e-mails recently.
fn send_later(
    web: &Web,
    email: Email,
    now: DateTime<Utc>,
    letter: fn(&Web, &Email, DateTime<Utc>) -> Option<Letter>,
) {
    let web = web.clone();
    tokio::spawn(async move {
        let Some(letter) = letter(&web, &email, now) else { return };
        if web.throttle.sign_up_mail(&email).is_ok() {
            // Failures are logged; the owner can request another link.
            let _ = letter.send(&web, &email, now).await;
        }
    });
}

/// An e-mail: text around a link to a path of this server.
struct Letter {
    subject: &'static str,
    before: String,
    path: String,
    after: &'static str,
}

impl Letter {
    fn verification(path: String) -> Letter {
        let hours = LINK_AGE_MAX.num_hours();
        Letter {
            subject: "Verify your e-mail address for dropdex",
            before: format!(
                "You signed up for dropdex with this address. Open this link within {hours} hours to verify \
                 it and to receive alerts here:"
            ),
            path,
            after: "If you did not sign up, ignore this e-mail: no alerts will be sent here.",
        }
    }

    fn sign_up(path: String) -> Letter {
        let hours = LINK_AGE_MAX.num_hours();
        Letter {
            subject: "Create your dropdex account",
            before: format!(
                "You signed up for dropdex with this address. Open this link within {hours} hours to choose \
                 a password and create your account:"
            ),
            path,
            after: "If you did not sign up, ignore this e-mail: no account will be created.",
        }
    }

    fn reset(path: String) -> Letter {
        let minutes = RESET_AGE_MAX.num_minutes();
        Letter {
            subject: "Reset your dropdex password",
            before: format!(
                "A new password was requested for your dropdex account. Open this link within {minutes} \
                 minutes to choose one:"
            ),
            path,
            after: "If you did not request it, ignore this e-mail: your password stays as it is.",
        }
    }

    fn invitation(path: String) -> Letter {
        let days = INVITE_AGE_MAX.num_days();
        Letter {
            subject: "Your dropdex account",
            before: format!(
                "An account was created for you on dropdex. Open this link within {days} days to choose a \
                 password and log in:"
            ),
            path,
            after: "If the link no longer works, ask for another with \"Forgot your password?\" on the login \
                    page. If you did not expect this e-mail, ignore it.",
        }
    }

    fn existing_account() -> Letter {
        Letter {
            subject: "You already have a dropdex account",
            before:
                "You signed up for dropdex with this address, which already has an account. Log in \
                     here:"
                    .to_owned(),
            path: "/login".to_owned(),
            after: "If you forgot your password, the login page has a link to reset it. If you did not sign \
                    up, ignore this e-mail.",
        }
    }

    async fn send(&self, web: &Web, to: &Email, now: DateTime<Utc>) -> Result<(), SendError> {
        let (Some(mailer), Some(home)) = (&web.mailer, &web.app.site.home) else {
            return Ok(());
        };
        let link = format!("{}{}", home.as_str(), self.path);
        // Returns a random message ID, which reveals nothing about the link.
        let id = Token::generate()
            .map_or_else(|_| now.timestamp_millis().to_string(), |id| id.reveal()[..32].to_owned());
        let mail = Mail {
            id: &id,
            to: to.as_str(),
            subject: self.subject,
            text: self.text(&link),
            html: self.html(&link),
            unsubscribe: None,
            at: now,
        };
        let sent = mailer.send(mail).await;
        if let Err(err) = &sent {
            tracing::warn!(error = %err, "e-mail with a link could not be sent");
        }
        sent
    }

    fn text(&self, link: &str) -> String {
        format!("{}\n\n{link}\n\n{}\n", self.before, self.after)
    }

    fn html(&self, link: &str) -> String {
        let page = html! {
            p { (self.before) " " a href=(link) { (link) } }
            p { (self.after) }
        };
        page.into_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parts_contain_the_link() {
        let link = "https://drops.example/verify/00ff";
        let letters = [Letter::verification, Letter::sign_up, Letter::reset, Letter::invitation]
            .map(|letter| letter(String::new()));
        for letter in letters.into_iter().chain([Letter::existing_account()]) {
            assert!(letter.text(link).lines().any(|line| line == link), "on a line of its own");
            assert!(letter.html(link).contains(&format!("<a href=\"{link}\">{link}</a>")));
        }
    }
}
