//! `/account/notifications`: verification of the e-mail address, the morning digest, the default Telegram
//! chat of new alert rules, and the channels that this server has configured.

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};

use crate::Web;
use crate::account::digest::{self, DigestForm};
use crate::account::mail::{self, Sent};
use crate::account::verify::VERIFIED;
use crate::account::{Tab, profile_of, tab_page};
use crate::accounts::{Profile, WriteError};
use crate::error::PageError;
use crate::field::{Field, FormError, Input};
use crate::form::{Fields, Form};
use crate::logged_in::LoggedIn;
use crate::notice::{self, Notice};
use crate::owned::instant;
use crate::service::app::ConfiguredChannels;
use crate::service::error::ApiError;
use crate::vocab::plan::Plan;
use crate::vocab::time::UnixMs;

const SENT: Notice = Notice::new(
    "sent",
    "We sent you a verification link. Open it within 24 hours. If it does not arrive, check your spam folder.",
);
const WAIT: Notice = Notice::new(
    "wait",
    "A link was sent recently, or the limit of five a day is reached. Check your inbox or try again later.",
);
const FAILED: Notice = Notice::new(
    "failed",
    "The e-mail could not be sent. Try again later. If the problem persists, contact the administrator of this server.",
);
const CHAT_SET: Notice = Notice::new("chat", "Saved. New alert rules use this Telegram chat.");
const CHAT_GONE: Notice = Notice::new("no-chat", "Removed. New alert rules have no Telegram chat.");
const NOTICES: [Notice; 8] =
    [SENT, WAIT, FAILED, CHAT_SET, CHAT_GONE, VERIFIED, digest::SAVED, digest::STOPPED];

/// Path of the page.
const PATH: &str = "/account/notifications";

/// `GET /account/notifications`.
pub async fn show(
    State(web): State<Web>,
    member: LoggedIn,
    RawQuery(query): RawQuery,
) -> Result<Markup, PageError> {
    let notice = notice::shown(&NOTICES, query.as_deref());
    page(&web, &member, &notice, None)
}

/// `POST /account/email/send`: e-mails a verification link.
pub async fn send_link(State(web): State<Web>, member: LoggedIn) -> Result<Redirect, PageError> {
    let sent = mail::send(&web, &member, member.viewer.now.0).await?;
    let notice = match sent {
        Sent::Done => SENT,
        Sent::Verified => VERIFIED,
        Sent::Wait => WAIT,
        Sent::Failed => FAILED,
        // The page itself explains this case.
        Sent::NotSetUp => return Ok(Redirect::to(PATH)),
    };
    Ok(notice.at(PATH))
}

/// `POST /account/telegram`: sets the default chat of new alert rules. An empty value removes it.
pub async fn set_chat(
    State(web): State<Web>,
    member: LoggedIn,
    Form(fields): Form<Fields>,
) -> Result<Response, PageError> {
    let chat = Some(fields.text("chat").trim()).filter(|chat| !chat.is_empty()).map(str::to_owned);
    let notice = if chat.is_some() { CHAT_SET } else { CHAT_GONE };
    match web.app.store.set_telegram_chat(&member.caller, chat).await {
        Ok(()) => Ok(notice.at(PATH).into_response()),
        Err(WriteError::Invalid { .. }) => {
            let what = "Enter a chat ID, such as -1001234567890, or @ and a channel name.";
            let again = page(&web, &member, &html! {}, Some((fields.text("chat"), what)))?;
            Ok((StatusCode::BAD_REQUEST, again).into_response())
        }
        Err(err) => Err(err.into()),
    }
}

/// `POST /account/digest`: saves the morning digest, or turns it off.
pub async fn set_digest(
    State(web): State<Web>,
    member: LoggedIn,
    Form(fields): Form<Fields>,
) -> Result<Response, PageError> {
    let is_off = !fields.text("off").is_empty();
    let form = DigestForm::sent(&fields);
    let batch = web.app.live.current().manifest().batches;
    let now = UnixMs::from_instant(member.viewer.now.0);
    let saved = match (!is_off).then(|| form.parse()).transpose() {
        Ok(new) => {
            let saved = web.app.store.set_digest(&member.caller, new, batch, now).await;
            saved.map_err(ApiError::from)
        }
        Err(err) => Err(err),
    };
    let Err(err) = saved else {
        let notice = if is_off { digest::STOPPED } else { digest::SAVED };
        return Ok(notice.at(PATH).into_response());
    };
    let error = FormError::new(err, |field| Some(field.to_owned()));
    let (profile, owned) = (profile_of(&web, &member)?, web.user_data(&member));
    let panel = digest::panel(&web, &profile, &owned, &form, Some(&error));
    let page = page_with(&web, &member, &error.shown(), None, &panel)?;
    Ok(error.into_page(page))
}

/// Renders the page. `refused` holds a rejected chat and its error.
fn page(
    web: &Web,
    member: &LoggedIn,
    notice: &Markup,
    refused: Option<(&str, &str)>,
) -> Result<Markup, PageError> {
    let profile = profile_of(web, member)?;
    let owned = web.user_data(member);
    let digest = digest::panel(web, &profile, &owned, &DigestForm::of(&owned), None);
    page_with(web, member, notice, refused, &digest)
}

/// As [`page`], with the panel of the morning digest.
fn page_with(
    web: &Web,
    member: &LoggedIn,
    notice: &Markup,
    refused: Option<(&str, &str)>,
    digest: &Markup,
) -> Result<Markup, PageError> {
    let profile = profile_of(web, member)?;
    let main = html! {
        div.columns {
            (email_panel(web, &profile))
            (digest)
            (telegram_panel(web.app.reach.channels, &profile, refused))
        }
        p { "Your " a href="/alerts" { "alert rules" } " decide which names you hear about and where messages go." }
    };
    Ok(tab_page(&member.viewer, Tab::Notifications, notice, &main))
}

fn email_panel(web: &Web, profile: &Profile) -> Markup {
    html! {
        section.panel {
            h2 { "E-mail" }
            p {
                (profile.email) " "
                @if profile.is_verified { span.badge.good { "verified" } }
                @else { span.badge.warn { "not verified" } }
            }
            @if !web.app.reach.channels.email {
                p.hint { "E-mail is not set up on this server, so alerts cannot be sent by e-mail. Ask the administrator to set it up." }
            }
            @if !profile.is_verified {
                @if mail::is_set_up(web) {
                    p { "Verify your address to receive alerts by e-mail." }
                    @if let Some(until) = profile.link_until {
                        p.soft {
                            "The latest link is valid until "
                            (instant(UnixMs::from_instant(until))) " UTC."
                        }
                    }
                    form method="post" action="/account/email/send" {
                        button type="submit" {
                            @if profile.link_until.is_some() { "Send another link" } @else { "Send verification link" }
                        }
                    }
                } @else {
                    p.hint { "This server cannot send verification links. Ask the administrator to set up e-mail and the public URL." }
                }
            }
        }
    }
}

fn telegram_panel(
    channels: ConfiguredChannels,
    profile: &Profile,
    refused: Option<(&str, &str)>,
) -> Markup {
    let kept = profile.telegram_chat.as_deref().unwrap_or_default();
    let value = refused.map_or(kept, |(sent, _)| sent);
    let help = "A chat ID (negative for groups), or @ and the name of a public channel. Leave empty to remove.";
    let field =
        Field::new("chat", "Default chat").help(help).problem(refused.map(|(_, what)| what));
    html! {
        section.panel {
            h2 { "Telegram" }
            @if !channels.telegram {
                p.hint { "Telegram is not set up on this server. Ask the administrator to set it up." }
            }
            @if profile.plan == Plan::Free {
                p.hint { "Your plan has alerts by e-mail only. " a href="/account/plan" { "See your plan" } }
            }
            p { "New alert rules use this chat by default. You can change it in each rule." }
            form method="post" action="/account/telegram" {
                (field.input(value, Input { longest: Some(40), ..Input::TEXT }))
                button type="submit" { "Save" }
            }
            details {
                summary { "How to find a chat ID" }
                ol {
                    li { "Send any message to this server's bot, or add the bot to your group. Ask the administrator for the name of the bot." }
                    li { "For a private chat, ask a bot such as @userinfobot for your ID. For a group, open it in Telegram Web and copy the number from the address bar, including the minus sign." }
                    li { "Enter the ID above, then send a test message from an alert rule." }
                }
            }
        }
    }
}
