//! `/account/plan`: the limits of each plan and the current usage of the account.

use axum::extract::State;
use chrono::{DateTime, Utc};
use maud::{Markup, html};

use crate::Web;
use crate::account::{Tab, profile_of, tab_page};
use crate::accounts::Profile;
use crate::components::grouped;
use crate::error::PageError;
use crate::logged_in::LoggedIn;
use crate::vocab::limits::{CLAIMS_MAX, WATCHES_MAX};
use crate::vocab::plan::{Plan, PlanLimits, Plans};

const NOT_INCLUDED: &str = "Not included in your plan";

/// Current usage of the limits that are not counted per day.
struct Usage {
    active_rules: usize,
    external_names: usize,
    watches: usize,
    claims: usize,
}

/// `GET /account/plan`.
pub async fn show(State(web): State<Web>, member: LoggedIn) -> Result<Markup, PageError> {
    let profile = profile_of(&web, &member)?;
    let owned = web.user_data(&member);
    let in_use = Usage {
        active_rules: owned.rules().filter(|rule| rule.active).count(),
        external_names: owned.external_names().count(),
        watches: owned.watch_count(),
        claims: owned.claim_count(),
    };
    let plans = web.app.store.plans();
    let is_public = web.settings.public_plans;
    let main = html! {
        (usage(&profile, plans.limits(profile.plan), &in_use, is_public, member.viewer.now.0))
        (table(plans, profile.plan, is_public))
        p.soft { "External names are names that are not in our data yet. To change your plan, ask the administrator of this server. Your watchlist, rules and claims are kept when your plan changes." }
    };
    Ok(tab_page(&member.viewer, Tab::Plan, &html! {}, &main))
}

fn usage(
    profile: &Profile,
    limits: &PlanLimits,
    in_use: &Usage,
    is_public: bool,
    now: DateTime<Utc>,
) -> Markup {
    let required = |plan| if is_public { plan } else { NOT_INCLUDED };
    let left_minutes = (profile.resets_at - now).num_minutes().max(0);
    let (hours, minutes) = (left_minutes / 60, left_minutes % 60);
    html! {
        section.panel {
            div.head {
                h2 { "Your plan: " (word(profile.plan)) }
                p.soft {
                    "Resets at "
                    time datetime=(profile.resets_at.to_rfc3339()) { "00:00 UTC" }
                    ", in " (hours) " h " (minutes) " min"
                }
            }
            ul.meters {
                (meter("API requests today", profile.requests_today, limits.requests_per_day, required("Requires the Pro plan")))
                (meter("CSV exports today", profile.exports_today, limits.exports_per_day, required("Requires the Core plan")))
                (meter("Active alert rules", count(in_use.active_rules), limits.active_rules, NOT_INCLUDED))
                (meter("External names watched", count(in_use.external_names), limits.external_names, NOT_INCLUDED))
                (meter("Watched names", count(in_use.watches), WATCHES_MAX, ""))
                (meter("Claims", count(in_use.claims), CLAIMS_MAX, ""))
            }
        }
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Renders usage as text and a bar, or `without` if the plan does not include it.
fn meter(label: &str, used: u32, limit: u32, without: &str) -> Markup {
    let percent = (u64::from(used) * 100).checked_div(u64::from(limit)).unwrap_or(0).min(100);
    let class = if used >= limit { "full" } else { "some" };
    html! {
        li {
            span.label { (label) }
            @if limit == 0 && used == 0 {
                span.soft { (without) }
            } @else {
                span.number { (grouped(used.into())) " of " (grouped(limit.into())) }
                svg.(class) viewBox="0 0 100 8" height="8" preserveAspectRatio="none" aria-hidden="true" focusable="false" {
                    rect.track width="100" height="8" {}
                    rect.bar width=(percent) height="8" {}
                }
            }
        }
    }
}

/// Renders the limits of all plans with their prices, or of the caller's plan only.
fn table(plans: &Plans, own: Plan, is_public: bool) -> Markup {
    type Limit = fn(&PlanLimits) -> u32;
    let rows: [(&str, Limit); 4] = [
        ("JSON API requests per day", |limits| limits.requests_per_day),
        ("CSV exports per day", |limits| limits.exports_per_day),
        ("Active alert rules", |limits| limits.active_rules),
        ("External names watched", |limits| limits.external_names),
    ];
    let webhooks = |plan| {
        if plan == Plan::Free { "e-mail" } else { "e-mail, webhook, Telegram, Slack and others" }
    };
    let shown = || Plan::ALL.into_iter().filter(|plan| is_public || *plan == own);
    html! {
        div.table tabindex="0" role="region" aria-label="Plans" {
            table.plans {
                caption { "Plan limits" }
                thead {
                    tr {
                        td {}
                        @for plan in shown() {
                            th scope="col" {
                                (word(plan))
                                @if plan == own { " " span.badge.info { "current" } }
                            }
                        }
                    }
                }
                tbody {
                    @if is_public {
                        tr {
                            th scope="row" { "Price per month" }
                            @for plan in shown() { td { (price(plans.limits(plan))) } }
                        }
                    }
                    @for (label, of) in rows {
                        tr {
                            th scope="row" { (label) }
                            @for plan in shown() { td { (amount(of(plans.limits(plan)))) } }
                        }
                    }
                    tr {
                        th scope="row" { "Alert channels" }
                        @for plan in shown() { td { (webhooks(plan)) } }
                    }
                    tr {
                        th scope="row" { "Pages, watchlist, portfolio" }
                        @for _ in shown() { td { "yes" } }
                    }
                }
            }
        }
    }
}

/// Display name of a plan.
pub fn word(plan: Plan) -> &'static str {
    match plan {
        Plan::Free => "Free",
        Plan::Core => "Core",
        Plan::Pro => "Pro",
        Plan::Api => "API",
    }
}

fn price(limits: &PlanLimits) -> String {
    match limits.price_usd {
        0 => "Free".to_owned(),
        dollars => format!("${}", grouped(dollars.into())),
    }
}

fn amount(number: u32) -> String {
    if number == 0 { "–".to_owned() } else { grouped(number.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meter_without_a_limit_names_the_required_plan() {
        let none = meter("Exports", 0, 0, "Requires the Core plan").into_string();
        assert!(none.contains("Requires the Core plan") && !none.contains("<svg"), "{none}");
        let over = meter("Rules", 5, 1, "").into_string();
        assert!(over.contains("5 of 1") && over.contains("width=\"100\""), "a plan that shrank");
    }
}
