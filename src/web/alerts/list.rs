//! The rules of an account, and how each stands.

use maud::{Markup, html};

use super::editor::PATH;
use super::{NOTICES, words};
use crate::accounts::{Channel, Delivery, DeliveryStatus, MessageKind, Rule, UserData};
use crate::http::params::Page as Rows;
use crate::vocab::ids::RuleId;
use crate::vocab::plan::Plan;
use crate::web::components::{counted, grouped};
use crate::web::layout::{NavItem, Page};
use crate::web::notice;
use crate::web::owned::{STYLES, address, instant, pager};
use crate::web::viewer::LoggedIn;

/// Deliveries shown of each rule.
const LAST: usize = 3;

/// How a rule stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Working,
    Paused,
    /// Active, but the plan has shrunk since.
    BeyondPlan,
    /// Active, but no channel of it is used.
    WithoutChannel,
}

impl Standing {
    /// How `rule` stands, of an account whose plan runs `limit` rules.
    pub fn of(rule: &Rule, owned: &UserData, plan: Plan, limit: u32) -> Standing {
        if !rule.active {
            return Standing::Paused;
        }
        let older = owned.rules().rev().filter(|other| other.active);
        if older.take(limit as usize).all(|other| other.id != rule.id) {
            return Standing::BeyondPlan;
        }
        if rule.channels.iter().any(|channel| is_used(owned, rule.id, channel, plan)) {
            Standing::Working
        } else {
            Standing::WithoutChannel
        }
    }

    /// As a word in its colour.
    pub fn badge(self) -> Markup {
        let (class, word) = match self {
            Standing::Working => ("good", "active"),
            Standing::Paused => ("", "paused"),
            Standing::BeyondPlan => ("warn", "beyond your plan"),
            Standing::WithoutChannel => ("bad", "no channel"),
        };
        html! { span.badge.(class) { (word) } }
    }

    /// What to do about it.
    pub fn hint(self) -> Option<Markup> {
        match self {
            Standing::Working | Standing::Paused => None,
            Standing::BeyondPlan => Some(html! {
                "Your plan runs fewer rules than are active: this one waits. Pause an older one, or "
                a href="/account/plan" { "see what other plans allow" } "."
            }),
            Standing::WithoutChannel => Some(html! {
                "Nothing is sent: every channel of this rule is off or not in your plan."
            }),
        }
    }
}

/// Whether anything is sent through a channel.
fn is_used(owned: &UserData, rule: RuleId, channel: &Channel, plan: Plan) -> bool {
    let within_plan = plan != Plan::Free || *channel == Channel::Email;
    within_plan && owned.switched_off(rule, channel).is_none()
}

/// The whole page.
pub fn show(
    member: &LoggedIn,
    owned: &UserData,
    limit: u32,
    rows: Rows,
    query: Option<&str>,
) -> Markup {
    let total = owned.rules().len();
    let active = owned.rules().filter(|rule| rule.active).count();
    let plan = member.caller.plan;
    let at = |offset: u32| {
        let offset = if offset == 0 { String::new() } else { offset.to_string() };
        address(PATH, &[("offset", &offset)])
    };
    Page::new("Alerts").at(NavItem::Alerts).styles(STYLES).show(
        Some(&member.viewer),
        html! {
            div.head {
                h1 { "Alerts" }
                @if total > 0 { p { a.button href="/alerts/new" { "New rule" } } }
            }
            (notice::shown(&NOTICES, query))
            @if total == 0 {
                div.panel.empty {
                    h2 { "Be told when a good name drops" }
                    p { "A rule says which names you are after. Each new list is matched with it, and what matches is sent to you: by mail, to a webhook or to a Telegram chat." }
                    p { a.button href="/alerts/new" { "Make your first rule" } }
                }
            } @else {
                p.soft.lead {
                    (grouped(active as u64)) " of " (counted(limit, "active rule")) " in your plan. "
                    @if active >= limit as usize { a href="/account/plan" { "See what other plans allow" } }
                }
                ul.rules { @for rule in rows.rows(owned.rules()) { (item(rule, owned, plan, limit)) } }
                (pager(rows, total, at))
            }
        },
    )
}

fn item(rule: &Rule, owned: &UserData, plan: Plan, limit: u32) -> Markup {
    let standing = Standing::of(rule, owned, plan, limit);
    let last: Vec<_> = owned.deliveries(rule.id).take(LAST).collect();
    html! {
        li.panel {
            div.head {
                h2 { a href={ (PATH) "/" (rule.id) } { (rule.name) } }
                p { (standing.badge()) }
            }
            @if let Some(hint) = standing.hint() { p.hint { (hint) } }
            p { (words::filter(&rule.filter)) "." }
            (channels(rule, owned, plan))
            @if last.is_empty() {
                p.soft { "Nothing sent yet." }
            } @else {
                ul.last {
                    @for delivery in last {
                        li { (instant(delivery.message.at)) " " (status(delivery)) " " span.soft { (what(delivery)) } }
                    }
                }
            }
        }
    }
}

/// The channels of a rule, and why one is not used.
pub fn channels(rule: &Rule, owned: &UserData, plan: Plan) -> Markup {
    html! {
        ul.channels {
            @for channel in &rule.channels {
                @let off = owned.switched_off(rule.id, channel);
                @let is_used = is_used(owned, rule.id, channel, plan);
                li {
                    span.badge.(if is_used { "info" } else { "bad" }) { (words::channel(channel)) }
                    @if let Some(off) = off {
                        " " span.soft { "off since " (instant(off.at)) ": " (words::switched_off(off)) }
                    } @else if !is_used {
                        " " span.soft { "not in the " (plan) " plan" }
                    }
                }
            }
        }
    }
}

/// How a delivery stands, as a word in its colour.
pub fn status(delivery: &Delivery) -> Markup {
    let (class, word) = match delivery.status {
        DeliveryStatus::Delivered => ("good", "delivered"),
        DeliveryStatus::Failed => ("bad", "failed"),
        DeliveryStatus::Pending { .. } if delivery.attempts > 0 => ("warn", "to be tried again"),
        DeliveryStatus::Pending { .. } => ("info", "on its way"),
    };
    html! { span.badge.(class) { (word) } }
}

/// What a delivery brings, and where.
fn what(delivery: &Delivery) -> String {
    let names = counted(delivery.message.total, "name");
    let kind = match delivery.message.kind {
        MessageKind::Match => "",
        MessageKind::Test => "test, ",
    };
    format!("{kind}{names}, {}", words::channel(&delivery.channel))
}
