//! The page of a rule: state, deliveries and editor.

use std::sync::Arc;

use maud::{Markup, html};

use super::editor::{Editor, PATH};
use super::list::{RuleStanding, channels, is_used, search, status};
use super::{EditorPage, NOTICES, words};
use crate::accounts::{
    Delivery, MatchedName, MessageKind, MessageRows, Rule, UserData, WebhookSecret,
};
use crate::components::Column::{self, Hidden, Number, Text};
use crate::components::{self, counted, grouped};
use crate::field::FormError;
use crate::layout::{NavItem, Page};
use crate::logged_in::LoggedIn;
use crate::notice;
use crate::outbound::alert::settings_page;
use crate::owned::{Deletion, STYLES, day, instant};
use crate::vocab::day::Day;
use crate::vocab::ids::RuleId;
use crate::vocab::limits::DELIVERIES_KEPT_MAX;
use crate::vocab::watched_change::WatchedChange;

/// Maximum changes of a delivery shown without expanding it.
const CHANGES_OPEN_MAX: usize = 3;
/// Maximum names shown per delivery; the message contains all.
const NAMES_SHOWN_MAX: usize = 100;

const DELIVERY_COLUMNS: [Column<'_>; 7] = [
    Text("Queued"),
    Text("Status"),
    Text("Names"),
    Text("Channel"),
    Number("Attempts"),
    Text("Last attempt"),
    Hidden("Retry"),
];

/// Renders the page. `action_error` is the error of an action other than saving.
pub fn show(
    rule: &Rule,
    editor: &Editor<'_>,
    action_error: Option<&FormError>,
    query: Option<&str>,
) -> Markup {
    let EditorPage { web, member, owned, .. } = editor.page;
    let limit = web.app.store.limits(&member.caller).active_rules;
    let plan = member.caller.plan;
    let standing = RuleStanding::new(rule, owned, plan, limit);
    Page::new(&rule.name, "An alert rule, its matches and its deliveries.")
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
                @for error in action_error.into_iter().chain(editor.error) { (error.shown()) }
                @if let Some(hint) = standing.hint() { p.hint { (hint) } }
                p.lead { (words::filter(&rule.filter)) ". " (search(rule, owned)) span.soft { "Added " (day(rule.created_at)) "." } }
                (channels(rule, owned, plan))
                (deliveries(rule.id, owned, member))
                h2 #edit { "Edit rule" }
                (editor.shown())
            },
        )
}

fn actions(rule: &Rule) -> Markup {
    let path = |what: &str| format!("{PATH}/{}/{what}", rule.id);
    let (what, word) = if rule.active { ("pause", "Pause") } else { ("resume", "Resume") };
    html! {
        div.actions {
            a.button.quiet href=(path("feed")) { "Feed" }
            form method="post" action=(path("test")) { button.quiet type="submit" { "Send test" } }
            (new_secret(rule, &path("secrets")))
            form method="post" action=(path(what)) { button.quiet type="submit" { (word) } }
            a.button.danger href=(path("delete")) { "Delete" }
        }
    }
}

/// A button for new signing secrets, if there are webhooks.
pub fn new_secret(rule: &Rule, path: &str) -> Markup {
    html! {
        @if !rule.secrets.is_empty() {
            form method="post" action=(path) { button.quiet type="submit" { "New signing secret" } }
        }
    }
}

/// Renders sent and queued messages, newest first.
pub fn deliveries(rule: RuleId, owned: &UserData, member: &LoggedIn) -> Markup {
    let today = Day::from_instant(member.viewer.now.0);
    let plan = member.caller.plan;
    let channels = owned.sender(rule).map_or(&[][..], |sender| &sender.channels);
    // Other rules would be refused, because they have no usable channel.
    let can_be_retried = |delivery: &Delivery| {
        let channel = &*delivery.channel;
        let is_left = channels.contains(channel) && is_used(owned, rule, channel, plan);
        is_left && delivery.can_be_retried()
    };
    let sent: Vec<_> = owned.deliveries(rule).collect();
    let is_pending = sent.iter().any(|delivery| delivery.is_pending());
    html! {
        section #deliveries aria-labelledby="deliveries-title" data-pending[is_pending] {
            h2 #deliveries-title { "Deliveries" }
            @if sent.is_empty() {
                p.panel.empty {
                    "No messages sent yet. "
                    @if rule != RuleId::WATCHLIST { "Matching names are sent with the next list. " }
                    "Send a test to see what a message looks like."
                }
            } @else {
                (components::table("Table of deliveries", "cards", &DELIVERY_COLUMNS, html! {
                    tbody { @for delivery in &sent { (row(rule, delivery, can_be_retried(delivery), today)) } }
                }))
                @if sent.len() >= DELIVERIES_KEPT_MAX {
                    p.soft { "Only the last " (DELIVERIES_KEPT_MAX) " messages are kept." }
                }
            }
        }
    }
}

fn row(rule: RuleId, delivery: &Delivery, can_be_retried: bool, today: Option<Day>) -> Markup {
    let kind =
        (delivery.message.kind == MessageKind::Test).then(|| html! { " " span.badge { "test" } });
    html! {
        tr {
            th scope="row" data-label="Queued" { (instant(delivery.message.at)) @if let Some(kind) = kind { (kind) } }
            td.wide data-label="Status" {
                (status(delivery))
                @if let Some(problem) = delivery.last_problem {
                    div.why { (words::problem(&delivery.channel, problem)) }
                }
                @if let Some(next) = delivery.next_at().filter(|_| delivery.attempts > 0) {
                    div.why { "Next attempt " (instant(next)) }
                }
                @if let Some(due) = delivery.next_at().filter(|due| delivery.attempts == 0 && *due > delivery.message.at) {
                    div.why { "Due " (instant(due)) }
                }
            }
            td data-label="Names" {
                @match &delivery.message.content {
                    Some(MessageRows::Names(names)) if !names.is_empty() => { (named(delivery.message.total, names.iter().map(|it| &**it), today)) }
                    Some(MessageRows::Changes(changes)) if !changes.is_empty() => { (changed(delivery.message.total, changes)) }
                    _ => { (counted(delivery.message.total, "name")) }
                }
            }
            td data-label="Channel" { (words::channel(&delivery.channel)) }
            td.number data-label="Attempts" { (delivery.attempts) }
            td data-label="Last attempt" {
                @if let Some(at) = delivery.last_attempt_at { (instant(at)) } @else { span.soft { "none yet" } }
            }
            td.do {
                @if can_be_retried {
                    form method="post" action={ (settings_page("", rule)) "/deliveries/" (delivery.id) "/retry" } {
                        button.quiet.small type="submit" { "Retry" }
                    }
                }
            }
        }
    }
}

fn named<'a>(
    total: u32,
    names: impl ExactSizeIterator<Item = &'a MatchedName>,
    today: Option<Day>,
) -> Markup {
    let left = (total as usize).saturating_sub(names.len().min(NAMES_SHOWN_MAX));
    html! {
        details.names {
            summary { (counted(total, "name")) }
            ul {
                @for matched in names.take(NAMES_SHOWN_MAX) {
                    li { (components::name_linked(matched.name.as_str(), matched.name.tld())) " " (components::score(matched.dqs)) " " (components::stage(matched.stage, matched.release, today.unwrap_or(matched.release))) }
                }
            }
            @if left > 0 { p.soft { "and " (grouped(left as u64)) " more" } }
        }
    }
}

/// Renders changes of watched names.
fn changed(total: u32, changes: &[Arc<WatchedChange>]) -> Markup {
    let left = (total as usize).saturating_sub(changes.len());
    html! {
        details.names open[changes.len() <= CHANGES_OPEN_MAX] {
            summary { (counted(total, "change")) }
            ul {
                @for change in changes {
                    li { (components::name_linked(change.name.as_str(), change.name.tld())) " " span.soft { (change.words()) } }
                }
            }
            @if left > 0 { p.soft { "and " (grouped(left as u64)) " more" } }
        }
    }
}

/// Shows the signing secrets of new webhooks, once.
pub fn secrets(member: &LoggedIn, rule: RuleId, secrets: &[WebhookSecret]) -> Markup {
    let is_replaced = secrets.iter().any(|it| it.former.is_some());
    let (title, back) = match rule {
        RuleId::WATCHLIST => ("Settings saved", "Go to the settings"),
        _ => ("Rule saved", "Go to the rule"),
    };
    let title = if is_replaced { "New signing secrets" } else { title };
    let is_one = secrets.len() == 1;
    Page::new(title, "The signing secrets of new webhooks, shown once.").at(NavItem::Alerts).styles(STYLES).show(
        Some(&member.viewer),
        html! {
            section.middling {
                h1 { (title) }
                p.hint {
                    "Copy the signing " (if is_one { "secret" } else { "secrets" }) " now: "
                    (if is_one { "it is" } else { "they are" }) " not shown again. Your receiver uses "
                    (if is_one { "it" } else { "them" }) " to "
                    a href="/docs/reference/webhooks" { "verify messages" } "."
                    @if is_replaced { " For 24 hours, messages are also signed with the former one." }
                }
                @for (at, shown) in secrets.iter().enumerate() {
                    div.panel.secret {
                        p.soft { "Signing secret for " span.address { (shown.url.as_str()) }  }
                        p { code id={ "secret-" (at) } { (shown.secret.reveal()) } }
                        p { button.quiet.small type="button" data-copy-from={ "secret-" (at) } { "Copy" } }
                    }
                }
                p { a.button href=(settings_page("", rule)) { (back) } }
            }
        },
    )
}

/// Asks for confirmation before a rule is deleted.
pub fn confirm_delete(member: &LoggedIn, rule: &Rule) -> Markup {
    let deletion = Deletion {
        item: NavItem::Alerts,
        noun: "rule",
        path: &format!("{PATH}/{}", rule.id),
        description: html! { p { b { (rule.name) } } p { (words::filter(&rule.filter)) "." } },
        consequence: "Queued messages are cancelled and the delivery history is deleted. Claims keep \
                      the name of the rule.",
    };
    deletion.page(member)
}
