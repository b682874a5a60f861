//! The list of rules, with their state.

use maud::{Markup, html};

use super::editor::PATH;
use super::{NOTICES, words};
use crate::accounts::{Channel, Delivery, DeliveryStatus, MessageKind, Rule, UserData};
use crate::components::{counted, grouped, query};
use crate::feeds;
use crate::layout::{NavItem, Page};
use crate::logged_in::LoggedIn;
use crate::notice;
use crate::owned::{STYLES, instant, pager};
use crate::query::params::Paging;
use crate::vocab::ids::RuleId;
use crate::vocab::plan::Plan;

/// Number of deliveries shown per rule.
const LAST: usize = 3;

/// State of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleStanding {
    Working,
    Paused,
    /// Active, but over the limit of the current plan.
    BeyondPlan,
    /// Active, but without a usable channel.
    WithoutChannel,
}

impl RuleStanding {
    /// Determines the state of `rule` under a plan with at most `limit` active rules.
    pub fn new(rule: &Rule, owned: &UserData, plan: Plan, limit: u32) -> RuleStanding {
        if !rule.active {
            return RuleStanding::Paused;
        }
        let older = owned.rules().rev().filter(|other| other.active);
        if older.take(limit as usize).all(|other| other.id != rule.id) {
            return RuleStanding::BeyondPlan;
        }
        if rule.channels.iter().any(|channel| is_used(owned, rule.id, channel, plan)) {
            RuleStanding::Working
        } else {
            RuleStanding::WithoutChannel
        }
    }

    /// Renders the state as a badge.
    pub fn badge(self) -> Markup {
        let (class, word) = match self {
            // What is normal needs no colour.
            RuleStanding::Working => return html! { span.soft { "active" } },
            RuleStanding::Paused => ("", "paused"),
            RuleStanding::BeyondPlan => ("warn", "over plan limit"),
            RuleStanding::WithoutChannel => ("bad", "no active channel"),
        };
        html! { span.badge.(class) { (word) } }
    }

    /// Returns advice on how to fix the state.
    pub fn hint(self) -> Option<Markup> {
        match self {
            RuleStanding::Working | RuleStanding::Paused => None,
            RuleStanding::BeyondPlan => Some(html! {
                "You have more active rules than your plan allows, so this one is not used. Pause an older rule or "
                a href="/account/plan" { "compare plans" } "."
            }),
            RuleStanding::WithoutChannel => Some(html! {
                "No alerts are sent: every channel of this rule is off or not included in your plan."
            }),
        }
    }
}

/// Returns true if messages are sent through a channel.
pub fn is_used(owned: &UserData, rule: RuleId, channel: &Channel, plan: Plan) -> bool {
    let within_plan = plan != Plan::Free || *channel == Channel::Email;
    within_plan && owned.switched_off(rule, channel).is_none()
}

/// Renders the whole page.
pub fn show(
    member: &LoggedIn,
    owned: &UserData,
    limit: u32,
    rows: Paging,
    query: Option<&str>,
) -> Markup {
    let total = owned.rule_count();
    let active = owned.rules().filter(|rule| rule.active).count();
    let plan = member.caller.plan;
    let at = |offset: u32| query::with(&[("offset", &query::offset(offset))], PATH);
    Page::new("Alerts", "Your alert rules: which names you hear about when they drop, and how.").at(NavItem::Alerts).styles(STYLES).show(
        Some(&member.viewer),
        html! {
            div.head {
                h1 { "Alerts" }
                @if total > 0 { p { a.button href="/alerts/new" { "Create alert" } } }
            }
            (notice::undoable(&NOTICES, query, PATH))
            @if total == 0 {
                div.panel.empty {
                    h2 { "Get alerts when good names drop" }
                    p { "Describe the names you want. When a new list has matches, you get a message by e-mail, webhook, Telegram, Slack and others." }
                    p { a.button href="/alerts/new" { "Create alert" } }
                }
            } @else {
                p.soft.lead {
                    (grouped(active as u64)) " of " (counted(limit, "active rule")) " in your plan. "
                    @if active >= limit as usize { a href="/account/plan" { "See your plan" } }
                }
                ul.rules { @for rule in rows.rows(owned.rules()) { (item(rule, owned, plan, limit)) } }
                (pager(rows, total, at))
            }
        },
    )
}

fn item(rule: &Rule, owned: &UserData, plan: Plan, limit: u32) -> Markup {
    let standing = RuleStanding::new(rule, owned, plan, limit);
    let last: Vec<_> = owned.deliveries(rule.id).take(LAST).collect();
    html! {
        li.panel {
            div.head {
                h2 { a href={ (PATH) "/" (rule.id) } { (rule.name) } }
                p { (standing.badge()) " " (feeds::button(&format!("{PATH}/{}", rule.id), &rule.name)) }
            }
            @if let Some(hint) = standing.hint() { p.hint { (hint) } }
            p { (words::filter(&rule.filter)) ". " (search(rule, owned)) }
            (channels(rule, owned, plan))
            @if last.is_empty() {
                p.soft { "No messages sent yet." }
            } @else {
                ul.last {
                    @for delivery in last {
                        li { (instant(delivery.message.at)) " " (status(delivery)) " " span.soft { (summary(delivery)) } }
                    }
                }
            }
        }
    }
}

/// Returns the saved search that a rule was created from, if it still exists.
pub fn search(rule: &Rule, owned: &UserData) -> Markup {
    let search = rule.search.and_then(|id| owned.search(id));
    html! { @if let Some(search) = search { "From the search " a href={ "/searches/" (search.id) } { (search.name) } ". " } }
}

/// Renders the channels of a rule, with reasons for unused ones.
pub fn channels(rule: &Rule, owned: &UserData, plan: Plan) -> Markup {
    html! {
        ul.channels {
            @for channel in &rule.channels {
                @let off = owned.switched_off(rule.id, channel);
                @let is_used = is_used(owned, rule.id, channel, plan);
                li {
                    span.badge.(if is_used { "info" } else { "bad" }) { (words::channel(channel)) }
                    @if let Some(off) = off {
                        " " span.soft { "off since " (instant(off.at)) ": " (words::switched_off(channel, off)) }
                    } @else if !is_used {
                        " " span.soft { "not included in the " (plan) " plan" }
                    } @else if let Some((since, problem)) = owned.failing(rule.id, channel) {
                        " " span.soft { "failing since " (instant(since)) ": " (words::problem(channel, problem)) }
                    }
                }
            }
        }
    }
}

/// Renders the status of a delivery as a badge.
pub fn status(delivery: &Delivery) -> Markup {
    let (class, word) = match delivery.status {
        DeliveryStatus::Delivered => return html! { span.soft { "delivered" } },
        DeliveryStatus::Failed => ("bad", "failed"),
        DeliveryStatus::Pending { .. } if delivery.attempts > 0 => ("warn", "retrying"),
        DeliveryStatus::Pending { .. } => ("info", "queued"),
    };
    html! { span.badge.(class) { (word) } }
}

/// Renders the summary of a delivery: names and channel.
fn summary(delivery: &Delivery) -> String {
    let names = counted(delivery.message.total, "name");
    let kind = match delivery.message.kind {
        MessageKind::Match | MessageKind::Changes => "",
        MessageKind::Test => "test, ",
    };
    format!("{kind}{names}, {}", words::channel(&delivery.channel))
}
