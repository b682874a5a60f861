//! Form fields for the channels of a rule, or of the watchlist.

use maud::{Markup, html};

use super::form::{RuleForm, chat_field, chat_part, webhook_field};
use crate::field::{Field, FormError, Input};
use crate::logged_in::LoggedIn;
use crate::outbound::chat;
use crate::outbound::chat::service::About;
use crate::vocab::chat::Part;
use crate::vocab::limits::RULE_CHANNELS_MAX;
use crate::vocab::plan::Plan;
use crate::{Web, docs};

/// Input for rendering the fields.
pub struct Channels<'a> {
    pub web: &'a Web,
    pub member: &'a LoggedIn,
    pub form: &'a RuleForm,
    pub error: Option<&'a FormError>,
    /// Minimum number of channels.
    pub least: usize,
    /// Whether any channel is switched off.
    pub is_off: bool,
}

impl Channels<'_> {
    fn field<'f>(&'f self, id: &'f str, label: &'f str) -> Field<'f> {
        Field::new(id, label).error(self.error)
    }

    /// True if the e-mail address of the account is verified.
    fn is_verified(&self) -> bool {
        let profile = self.web.app.store.profile(&self.member.caller, self.member.viewer.now.0);
        profile.is_some_and(|profile| profile.is_verified)
    }

    /// Renders the fields of all channels.
    pub fn fields(&self) -> Markup {
        let all = self.error.and_then(|error| error.about("channels"));
        let email = self.error.and_then(|error| error.about("email"));
        let configured = self.web.app.reach.channels;
        html! {
            fieldset.group #channels {
                legend { "Send to" }
                p.help { "Choose " (self.least) " to " (RULE_CHANNELS_MAX) " channels." }
                @if let Some(error) = all { p.error { (error) } }
                p.line {
                    label for="email" {
                        input #email type="checkbox" name="email" value="on" checked[self.form.is_on("email")]
                            aria-invalid=[email.map(|_| "true")] aria-describedby=[email.map(|_| "email-error")];
                        "E-mail to " span.address { (self.member.email) }
                    }
                }
                @if !configured.email {
                    p.help { "E-mail is not set up on this server. Ask the administrator." }
                } @else if !self.is_verified() {
                    p.help { a href="/account/notifications" { "Verify your e-mail address" } " to receive alerts by e-mail." }
                }
                @if let Some(error) = email { p.error #email-error { (error) } }
                (self.lines(&ValueFields {
                    name: "webhook",
                    kind: "url",
                    one: "Webhook URL",
                    many: "Webhooks",
                    placeholder: "https://example.com/hook",
                    help: "Messages are signed JSON, sent by POST. Requires https on port 443 or 8443.",
                    values: &self.form.filled("webhook"),
                    id: webhook_field,
                    is_configured: configured.webhook,
                }))
                (self.lines(&ValueFields {
                    name: "chat",
                    kind: "text",
                    one: "Telegram chat",
                    many: "Telegram",
                    placeholder: "-1001234567890 or @channel",
                    help: "A chat ID, or @ and the name of a public channel.",
                    values: &self.form.filled("chat"),
                    id: chat_field,
                    is_configured: configured.telegram,
                }))
                (self.chats())
                @if self.is_off {
                    p.line {
                        label for="switch_on" {
                            input #switch_on type="checkbox" name="switch_on" value="on" checked[self.form.is_on("switch_on")];
                            "Turn channels back on that were switched off"
                        }
                    }
                }
            }
        }
    }

    /// Renders the fields of all chat services.
    fn chats(&self) -> Markup {
        let services = || chat::SERVICES.iter().map(|service| service.about());
        let lines: Vec<_> = services().map(|about| self.form.chats(about)).collect();
        let is_used = lines.iter().any(|lines| !lines.is_empty());
        if self.member.caller.plan == Plan::Free && !is_used {
            return html! {
                p.help.off {
                    "Slack, Discord, Teams and others: not included in your plan. "
                    a href="/account/plan" { "See your plan" }
                }
            };
        }
        html! {
            details.chats open[is_used] {
                summary { "Slack, Discord, Teams and others" }
                @for (about, lines) in services().zip(&lines) { (self.chat(about, lines)) }
            }
        }
    }

    /// Renders the fields of a chat service, with empty ones for another receiver.
    fn chat(&self, about: &About, lines: &[Vec<&str>]) -> Markup {
        let empty = vec![""; about.parts.len()];
        let help = format!("/docs/channels#{}", docs::slug(about.label));
        html! {
            fieldset.field {
                legend { (about.label) }
                p.help { (about.help) " " a href=(help) { "More about " (about.label) } }
                @for (at, values) in lines.iter().chain([&empty]).enumerate() {
                    div.pair {
                        @for (asked, value) in about.parts.iter().zip(values) {
                            @let name = chat_part(about, asked.part);
                            @let id = format!("{name}-{at}");
                            @let number = if at == 0 { String::new() } else { format!(" {}", at + 1) };
                            @let label = format!("{} {}{number}", about.label, asked.label);
                            @let kind = if asked.part == Part::Url { "url" } else { "text" };
                            (self.field(&id, &label).named(&name).input(value, Input { kind, placeholder: Some(asked.placeholder), ..Input::TEXT }))
                        }
                    }
                }
            }
        }
    }

    /// Renders the fields of a channel type, with an empty one, or the reason why it is
    /// unavailable.
    fn lines(&self, lines: &ValueFields<'_>) -> Markup {
        let plan = self.member.caller.plan;
        let values = lines.values;
        let room = if values.len() < RULE_CHANNELS_MAX { 1 } else { 0 };
        let empty = std::iter::repeat_n("", room);
        let why_not = if plan == Plan::Free {
            Some(
                html! { (lines.many) ": not included in your plan. " a href="/account/plan" { "See your plan" } },
            )
        } else if !lines.is_configured {
            Some(html! { (lines.many) ": not set up on this server. Ask the administrator." })
        } else {
            None
        };
        html! {
            @match why_not {
                Some(why) if values.is_empty() => { p.help.off { (why) } }
                _ => div.lines {
                    @for (at, value) in values.iter().copied().chain(empty).enumerate() {
                        @let label = if at == 0 { lines.one.to_owned() } else { format!("{} {}", lines.one, at + 1) };
                        @let id = (lines.id)(at);
                        @let field = self.field(&id, &label).named(lines.name);
                        @let field = if at == 0 { field.help(lines.help) } else { field };
                        (field.input(value, Input { kind: lines.kind, placeholder: Some(lines.placeholder), ..Input::TEXT }))
                    }
                }
            }
        }
    }
}

/// Renders the fields of a channel type with several values.
struct ValueFields<'a> {
    name: &'a str,
    kind: &'a str,
    one: &'a str,
    many: &'a str,
    placeholder: &'a str,
    help: &'a str,
    values: &'a [&'a str],
    id: fn(usize) -> String,
    is_configured: bool,
}
