//! One rule: how it stands, what was and will be sent for it, and its editor.

use maud::{Markup, html};

use super::editor::{Editor, PATH};
use super::list::{Standing, channels, status};
use super::{NOTICES, words};
use crate::accounts::{Delivery, MatchedName, MessageKind, Rule, UserData, WebhookSecret};
use crate::vocab::limits::DELIVERIES_KEPT_MAX;
use crate::web::components::{self, counted, grouped};
use crate::web::field::FormError;
use crate::web::layout::{NavItem, Page};
use crate::web::notice;
use crate::web::owned::{STYLES, day, instant};
use crate::web::viewer::LoggedIn;

/// Names of a delivery that are shown; a mail has them all.
const NAMES_SHOWN_MAX: usize = 100;

/// A webhook and the secret that its messages are signed with.
pub struct ShownSecret {
    pub url: String,
    pub secret: String,
}

impl From<&WebhookSecret> for ShownSecret {
    fn from(of: &WebhookSecret) -> ShownSecret {
        ShownSecret { url: of.url.as_str().to_owned(), secret: of.secret.reveal().to_owned() }
    }
}

/// The whole page. `problem` is what was wrong with something else than the editor's form.
pub fn show(
    rule: &Rule,
    editor: &Editor<'_>,
    problem: Option<&FormError>,
    query: Option<&str>,
) -> Markup {
    let member = editor.member;
    let limit = editor.web.app.store.limits(&member.caller).active_rules;
    let plan = member.caller.plan;
    let standing = Standing::of(rule, editor.owned, plan, limit);
    Page::new(&rule.name)
        .at(NavItem::Alerts)
        .styles(STYLES)
        .scripts(&["alerts.js"])
        .show(
            Some(&member.viewer),
            html! {
                p.trail { a href=(PATH) { "Alerts" } }
                div.head {
                    h1 { (rule.name) " " (standing.badge()) }
                    (actions(rule))
                }
                (notice::shown(&NOTICES, query))
                @for fault in problem.into_iter().chain(editor.fault) { (fault.shown()) }
                @if let Some(hint) = standing.hint() { p.hint { (hint) } }
                p.lead { (words::filter(&rule.filter)) ". " span.soft { "Added " (day(rule.created_at)) "." } }
                (channels(rule, editor.owned, plan))
                (deliveries(rule, editor.owned))
                h2 #edit { "Edit this rule" }
                (editor.shown())
            },
        )
}

fn actions(rule: &Rule) -> Markup {
    let path = |what: &str| format!("{PATH}/{}/{what}", rule.id);
    let (what, word) = if rule.active { ("pause", "Pause") } else { ("resume", "Resume") };
    html! {
        div.actions {
            form method="post" action=(path("test")) { button.quiet type="submit" { "Send a test" } }
            form method="post" action=(path(what)) { button.quiet type="submit" { (word) } }
            a.button.danger href=(path("delete")) { "Delete" }
        }
    }
}

/// What was and will be sent, newest first.
pub fn deliveries(rule: &Rule, owned: &UserData) -> Markup {
    let sent: Vec<_> = owned.deliveries(rule.id).collect();
    let is_pending = sent.iter().any(|delivery| delivery.is_pending());
    html! {
        section #deliveries aria-labelledby="deliveries-title" data-pending[is_pending] {
            h2 #deliveries-title { "Deliveries" }
            @if sent.is_empty() {
                p.panel.empty {
                    "Nothing sent yet. Names that match are sent when the next list comes; a test shows you now what a message looks like."
                }
            } @else {
                div.table tabindex="0" role="region" aria-label="Table of deliveries" {
                    table.cards {
                        thead {
                            tr {
                                th scope="col" { "Queued" }
                                th scope="col" { "Status" }
                                th scope="col" { "Names" }
                                th scope="col" { "Where to" }
                                th.number scope="col" { "Tries" }
                                th scope="col" { "Last try" }
                                th scope="col" { span.hidden { "Retry" } }
                            }
                        }
                        tbody { @for delivery in &sent { (row(rule, delivery)) } }
                    }
                }
                @if sent.len() >= DELIVERIES_KEPT_MAX {
                    p.soft { "The last " (DELIVERIES_KEPT_MAX) " are kept." }
                }
            }
        }
    }
}

fn row(rule: &Rule, delivery: &Delivery) -> Markup {
    let kind =
        (delivery.message.kind == MessageKind::Test).then(|| html! { " " span.badge { "test" } });
    html! {
        tr {
            th scope="row" data-label="Queued" { (instant(delivery.message.at)) @if let Some(kind) = kind { (kind) } }
            td.wide data-label="Status" {
                (status(delivery))
                @if let Some(problem) = delivery.last_problem {
                    div.why { (words::problem(problem)) }
                }
                @if let Some(next) = delivery.next_at().filter(|_| delivery.attempts > 0) {
                    div.why { "Next try " (instant(next)) }
                }
            }
            td data-label="Names" {
                @match &delivery.message.names {
                    Some(names) if !names.is_empty() => { (named(delivery.message.total, names.iter().map(|it| &**it))) }
                    _ => { (counted(delivery.message.total, "name")) }
                }
            }
            td data-label="Where to" { (words::channel(&delivery.channel)) }
            td.number data-label="Tries" { (delivery.attempts) }
            td data-label="Last try" {
                @if let Some(at) = delivery.last_attempt_at { (instant(at)) } @else { span.soft { "none yet" } }
            }
            td.do {
                @if delivery.can_be_retried() {
                    form method="post" action={ (PATH) "/" (rule.id) "/deliveries/" (delivery.id) "/retry" } {
                        button.quiet.small type="submit" { "Try again" }
                    }
                }
            }
        }
    }
}

fn named<'a>(total: u32, names: impl ExactSizeIterator<Item = &'a MatchedName>) -> Markup {
    let left = (total as usize).saturating_sub(names.len().min(NAMES_SHOWN_MAX));
    html! {
        details.names {
            summary { (counted(total, "name")) }
            ul {
                @for matched in names.take(NAMES_SHOWN_MAX) {
                    li { (components::name_linked(matched.name.as_str(), matched.name.tld())) " " (components::score(matched.dqs)) " " (components::stage(matched.stage, matched.release)) }
                }
            }
            @if left > 0 { p.soft { "and " (grouped(left as u64)) " more" } }
        }
    }
}

/// What is shown once: the secrets of webhooks that are new.
pub fn secrets(member: &LoggedIn, rule: &str, secrets: &[ShownSecret]) -> Markup {
    let is_one = secrets.len() == 1;
    Page::new("Rule saved").at(NavItem::Alerts).styles(STYLES).show(
        Some(&member.viewer),
        html! {
            section.middling {
                h1 { "Rule saved" }
                p.hint {
                    "Copy the signing " (if is_one { "secret" } else { "secrets" }) " now: "
                    (if is_one { "it is" } else { "they are" }) " not shown again. Your receiver needs "
                    (if is_one { "it" } else { "them" }) " to tell our messages from those of others; "
                    a href="/docs#webhooks" { "how to verify a message" } "."
                }
                @for (at, shown) in secrets.iter().enumerate() {
                    div.panel.secret {
                        p.soft { "Messages to " span.address { (shown.url) } " are signed with" }
                        p { code id={ "secret-" (at) } { (shown.secret) } }
                        p { button.quiet.small type="button" data-copy-from={ "secret-" (at) } { "Copy" } }
                    }
                }
                p { a.button href={ (PATH) "/" (rule) } { "Go on to the rule" } }
            }
        },
    )
}

/// Asks whether a rule is to go.
pub fn removal(member: &LoggedIn, rule: &Rule) -> Markup {
    Page::new("Delete alert rule").at(NavItem::Alerts).styles(STYLES).show(
        Some(&member.viewer),
        html! {
            section.narrow.panel {
                h1 { "Delete this rule?" }
                p { b { (rule.name) } }
                p { (words::filter(&rule.filter)) "." }
                p.soft { "What it has queued is not sent any more, and its deliveries are forgotten. Claims it led to keep its name." }
                form.actions method="post" action={ (PATH) "/" (rule.id) "/delete" } {
                    button.danger type="submit" { "Delete" }
                    a.button.quiet href={ (PATH) "/" (rule.id) } { "Keep it" }
                }
            }
        },
    )
}
