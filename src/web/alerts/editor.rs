//! The form of an alert rule, with a preview of its matches.

use maud::{Markup, html};

use super::EditorPage;
use super::form::{OWN_FIELDS, chat_field, chat_part, webhook_field};
use crate::outbound::chat;
use crate::outbound::chat::service::About;
use crate::vocab::chat::Part;
use crate::vocab::limits::{
    LABEL_CHARS_MAX, RULE_CHANNELS_MAX, RULE_NAME_CHARS_MAX, RULE_TLDS_MAX, SUBSTRING_CHARS_MAX,
};
use crate::vocab::plan::Plan;
use crate::vocab::stage::Stage;
use crate::web::components::stage_word;
use crate::web::docs;
use crate::web::drops::state::State;
use crate::web::drops::words;
use crate::web::error::sentence_case;
use crate::web::field::{Field, FormError, Input};
use crate::web::layout::{NavItem, Page};
use crate::web::owned::{STYLES, idempotency_field};

/// Path of the rules.
pub const PATH: &str = "/alerts";

/// Input of the form.
pub struct Editor<'a> {
    pub page: &'a EditorPage,
    pub error: Option<&'a FormError>,
    /// Matches of the form.
    pub preview: Markup,
}

/// Renders the page of a new rule.
pub fn new_page(editor: &Editor<'_>) -> Markup {
    Page::new("New alert rule", "Describe the names you want and where alerts about them are sent.")
        .at(NavItem::Alerts)
        .styles(STYLES)
        .scripts(&["alerts.js"])
        .show(
            Some(&editor.page.member.viewer),
            html! {
                p.trail { a href=(PATH) { "Alerts" } }
                h1 { "New alert rule" }
                p.soft.lead { "You get one message for each new list with matching names." }
                @if let Some(error) = editor.error { (error.shown()) }
                (editor.shown())
            },
        )
}

impl Editor<'_> {
    /// Renders the form and the preview.
    pub fn shown(&self) -> Markup {
        let action = match &self.page.rule {
            Some(rule) => format!("{PATH}/{}", rule.id),
            None => format!("{PATH}/new"),
        };
        html! {
            div.editor {
                form #rule.panel method="post" action=(action) {
                    @match &self.page.rule {
                        Some(rule) => { input type="hidden" name="rule" value=(rule.id); }
                        None => { (idempotency_field()) }
                    }
                    (self.name())
                    (self.filter())
                    (self.channels())
                    p.send {
                        button type="submit" { @if self.page.rule.is_some() { "Save" } @else { "Create alert" } }
                        button.quiet #look type="submit" formaction="/alerts/preview" { "Preview" }
                    }
                }
                section.panel.preview aria-labelledby="preview-title" {
                    h2 #preview-title { "Preview" }
                    div #preview aria-live="polite" { (self.preview) }
                }
            }
        }
    }

    fn field<'f>(&'f self, id: &'f str, label: &'f str) -> Field<'f> {
        Field::new(id, label).error(self.error)
    }

    fn name(&self) -> Markup {
        let input = Input { longest: Some(RULE_NAME_CHARS_MAX), is_required: true, ..Input::TEXT };
        self.field("name", "Name")
            .help("Shown in the subject of its messages.")
            .input(self.page.form.text("name"), input)
    }

    fn filter(&self) -> Markup {
        let form = &self.page.form;
        let tlds_help = format!("Up to {RULE_TLDS_MAX}, separated by commas. Leave empty for all.");
        let text = Input::TEXT;
        let number =
            |range| Input { kind: "number", mode: Some("numeric"), range: Some(range), ..text };
        html! {
            fieldset.group {
                legend { "Names" }
                (self.field("tld", "TLDs").help(&tlds_help).input(&form.shown("tld"), Input { placeholder: Some("com, net, co.uk"), ..text }))
                div.pair {
                    (self.field("min_dqs", "Minimum score").help("DQS, 0 to 100.").input(form.text("min_dqs"), number((0, 100))))
                    (self.field("max_len", "Maximum length").help("Characters before the first dot.").input(form.text("max_len"), number((1, u32::from(LABEL_CHARS_MAX)))))
                }
                (self.field("q", "Contains").help("Text anywhere in the name.").input(form.text("q"), Input { longest: Some(SUBSTRING_CHARS_MAX), ..text }))
                (self.stages())
                (self.others())
            }
        }
    }

    fn stages(&self) -> Markup {
        let error = self.error.and_then(|error| error.about("stages"));
        let chosen = self.page.form.filled("stage");
        html! {
            fieldset.field #stages {
                legend { "Stages" }
                div.chips {
                    @for stage in Stage::ALL {
                        label.chip {
                            input type="checkbox" name="stage" value=(stage) checked[chosen.contains(&stage.as_str())];
                            span { (sentence_case(stage_word(stage))) }
                        }
                    }
                }
                p.help { "Select none for all stages except released." }
                @if let Some(error) = error { p.error { (error) } }
            }
        }
    }

    /// The other filters as chips, and the query bar that adds some. A chip that is not checked is not
    /// sent.
    fn others(&self) -> Markup {
        let state = self.page.form.state();
        let is_other = |(name, _): &(&str, &str)| !OWN_FIELDS.contains(name);
        let others: Vec<_> = state.parameters().filter(is_other).collect();
        let help = "Such as starts:my, -hyphens or len:4-8, in the words of the list of drops.";
        html! {
            @if !others.is_empty() {
                fieldset.field {
                    legend { "More filters" }
                    div.chips {
                        @for pair @ (name, value) in others {
                            @for chip in words::chips(&State::from_pairs([pair].into_iter()), None) {
                                label.chip {
                                    input type="checkbox" name=(name) value=(value) checked;
                                    span { (chip.word) " " (chip.value) }
                                }
                            }
                        }
                    }
                    p.help { "Uncheck a filter to remove it." }
                }
            }
            (self.field("add", "Add filters").help(help).input(self.page.form.text("add"), Input { placeholder: Some("starts:my -hyphens"), ..Input::TEXT }))
            @if self.page.form.is_on("search") { input type="hidden" name="search" value=(self.page.form.text("search")); }
        }
    }

    fn channels(&self) -> Markup {
        let all = self.error.and_then(|error| error.about("channels"));
        let email = self.error.and_then(|error| error.about("email"));
        let configured = self.page.web.app.channels;
        let is_off = self.page.rule.as_ref().is_some_and(|rule| {
            rule.channels.iter().any(|it| self.page.owned.switched_off(rule.id, it).is_some())
        });
        html! {
            fieldset.group #channels {
                legend { "Send to" }
                p.help { "Choose 1 to " (RULE_CHANNELS_MAX) " channels." }
                @if let Some(error) = all { p.error { (error) } }
                p.line {
                    label for="email" {
                        input #email type="checkbox" name="email" value="on" checked[self.page.form.is_on("email")]
                            aria-invalid=[email.map(|_| "true")] aria-describedby=[email.map(|_| "email-error")];
                        "E-mail to " span.address { (self.page.member.email) }
                    }
                }
                @if !configured.email {
                    p.help { "E-mail is not set up on this server. Ask the administrator." }
                } @else if !self.page.is_verified() {
                    p.help { a href="/account/notifications" { "Verify your e-mail address" } " to receive alerts by e-mail." }
                }
                @if let Some(error) = email { p.error #email-error { (error) } }
                (self.lines(&Lines {
                    name: "webhook",
                    kind: "url",
                    one: "Webhook URL",
                    many: "Webhooks",
                    placeholder: "https://example.com/hook",
                    help: "Messages are signed JSON, sent by POST. Requires https on port 443 or 8443.",
                    values: &self.page.form.filled("webhook"),
                    id: webhook_field,
                    is_configured: configured.webhook,
                }))
                (self.lines(&Lines {
                    name: "chat",
                    kind: "text",
                    one: "Telegram chat",
                    many: "Telegram",
                    placeholder: "-1001234567890 or @channel",
                    help: "A chat ID, or @ and the name of a public channel.",
                    values: &self.page.form.filled("chat"),
                    id: chat_field,
                    is_configured: configured.telegram,
                }))
                (self.chats())
                @if is_off {
                    p.line {
                        label for="switch_on" {
                            input #switch_on type="checkbox" name="switch_on" value="on" checked[self.page.form.is_on("switch_on")];
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
        let lines: Vec<_> = services().map(|about| self.page.form.chats(about)).collect();
        let is_used = lines.iter().any(|lines| !lines.is_empty());
        if self.page.member.caller.plan == Plan::Free && !is_used {
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

    /// Renders the fields of a chat service, and empty ones for another receiver.
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

    /// Renders the fields of a channel type and an empty one, or the reason why it is unavailable.
    fn lines(&self, lines: &Lines<'_>) -> Markup {
        let plan = self.page.member.caller.plan;
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

/// Fields of a channel type with several values.
struct Lines<'a> {
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
