//! `/account/notifications`: whether mails can go to the address, the Telegram chat that new alert
//! rules begin with, and what the operator has set up.

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde::Deserialize;

use crate::accounts::{Profile, WriteError};
use crate::http::ConfiguredChannels;
use crate::vocab::plan::Plan;
use crate::web::Web;
use crate::web::account::field::Field;
use crate::web::account::mail::{self, Sent};
use crate::web::account::verify::VERIFIED;
use crate::web::account::{Tab, profile_of, tab_page};
use crate::web::error::PageError;
use crate::web::form::Form;
use crate::web::notice::{self, Notice};
use crate::web::viewer::LoggedIn;

const SENT: Notice = Notice::new(
    "sent",
    "The link is on its way to your address. Open it within 24 hours; look among unwanted mail, too.",
);
const WAIT: Notice = Notice::new(
    "wait",
    "A link was sent a short while ago, or five were sent today. Look for it, or ask again later.",
);
const FAILED: Notice = Notice::new(
    "failed",
    "The mail server did not take the mail. Try again later; if it stays so, tell whoever runs this server.",
);
const CHAT_SET: Notice = Notice::new("chat", "New alert rules begin with this Telegram chat.");
const CHAT_GONE: Notice = Notice::new("no-chat", "New alert rules begin without a Telegram chat.");
const NOTICES: [Notice; 6] = [SENT, WAIT, FAILED, CHAT_SET, CHAT_GONE, VERIFIED];

/// The form, as sent.
#[derive(Deserialize)]
pub struct Chat {
    #[serde(default)]
    chat: String,
}

/// `GET /account/notifications`.
pub async fn show(
    State(web): State<Web>,
    member: LoggedIn,
    RawQuery(query): RawQuery,
) -> Result<Markup, PageError> {
    let notice = notice::shown(&NOTICES, query.as_deref());
    page(&web, &member, &notice, None)
}

/// `POST /account/email/send`: mails the link that verifies the address.
pub async fn send_link(State(web): State<Web>, member: LoggedIn) -> Result<Redirect, PageError> {
    let sent = mail::send(&web, &member.caller, member.viewer.now.0).await?;
    let notice = match sent {
        Sent::Done => SENT,
        Sent::Verified => VERIFIED,
        Sent::Wait => WAIT,
        Sent::Failed => FAILED,
        // The page says so by itself.
        Sent::NotSetUp => return Ok(Redirect::to("/account/notifications")),
    };
    Ok(notice.at("/account/notifications"))
}

/// `POST /account/telegram`: the chat that new alert rules begin with; none where it is empty.
pub async fn set_chat(
    State(web): State<Web>,
    member: LoggedIn,
    Form(sent): Form<Chat>,
) -> Result<Response, PageError> {
    let chat = Some(sent.chat.trim()).filter(|chat| !chat.is_empty()).map(str::to_owned);
    let notice = if chat.is_some() { CHAT_SET } else { CHAT_GONE };
    match web.app.store.set_telegram_chat(&member.caller, chat).await {
        Ok(()) => Ok(notice.at("/account/notifications").into_response()),
        Err(WriteError::Invalid { .. }) => {
            let what =
                "This is no chat: give its number, such as -1001234567890, or @ and its name.";
            let again = page(&web, &member, &html! {}, Some((&sent.chat, what)))?;
            Ok((StatusCode::BAD_REQUEST, again).into_response())
        }
        Err(err) => Err(err.into()),
    }
}

/// The page; `refused` is what was sent as a chat, and what is wrong with it.
fn page(
    web: &Web,
    member: &LoggedIn,
    notice: &Markup,
    refused: Option<(&str, &str)>,
) -> Result<Markup, PageError> {
    let profile = profile_of(web, member)?;
    let main = html! {
        div.columns {
            (email_panel(web, &profile))
            (telegram_panel(web.app.channels, &profile, refused))
        }
        p { "Which names lead to a message, and where it goes, is for your " a href="/alerts" { "alert rules" } " to say." }
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
            @if !web.app.channels.email {
                p.hint { "Mail is not set up on this server, so alert rules cannot send any. Whoever runs it can set it up." }
            }
            @if !profile.is_verified {
                @if mail::is_set_up(web) {
                    p { "Alerts are mailed to an address once its owner has said that it is theirs." }
                    @if let Some(until) = profile.link_until {
                        p.soft {
                            "The newest link works until "
                            time datetime=(until.to_rfc3339()) { (until.format("%Y-%m-%d %H:%M")) " UTC" } "."
                        }
                    }
                    form method="post" action="/account/email/send" {
                        button type="submit" {
                            @if profile.link_until.is_some() { "Send another link" } @else { "Send the link" }
                        }
                    }
                } @else {
                    p.hint { "This server cannot mail the link that verifies an address. Whoever runs it has to set up mail and the address people reach it at." }
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
    let field = Field {
        name: "chat",
        label: "Chat",
        kind: "text",
        value: refused.map_or(kept, |(sent, _)| sent),
        autocomplete: "off",
        chars_max: 40,
        help: Some(
            "A number, negative for a group, or @ and the name of a public channel. Leave it empty for none.",
        ),
        error: refused.map(|(_, what)| what),
        required: false,
    };
    html! {
        section.panel {
            h2 { "Telegram" }
            @if !channels.telegram {
                p.hint { "Telegram is not set up on this server, so alert rules cannot use it. Whoever runs it can set it up." }
            }
            @if profile.plan == Plan::Free {
                p.hint { "Alerts by Telegram and webhook begin with the plan core. " a href="/account/plan" { "See the plans" } }
            }
            p { "New alert rules begin with this chat; each can have another." }
            form method="post" action="/account/telegram" {
                (field.show())
                button type="submit" { "Save" }
            }
            details {
                summary { "How to find the number of a chat" }
                ol {
                    li { "Write any message to this server's bot, or add it to your group. Ask whoever runs the server for its name." }
                    li { "For yourself: write to a bot that tells numbers, such as @userinfobot. For a group: the digits in the address of the group in Telegram's web client, with the minus sign." }
                    li { "Enter the number here, and send a test message from an alert rule." }
                }
            }
        }
    }
}
