//! `/account`: e-mail address and plan.

use axum::extract::State;
use maud::{Markup, html};

use crate::Web;
use crate::account::plan::word;
use crate::account::{Tab, profile_of, tab_page};
use crate::accounts::Profile;
use crate::components::date;
use crate::error::PageError;
use crate::logged_in::LoggedIn;
use crate::vocab::day::Day;

/// `GET /account`.
pub async fn show(State(web): State<Web>, member: LoggedIn) -> Result<Markup, PageError> {
    let profile = profile_of(&web, &member)?;
    let today = Day::nearest(member.viewer.now.0);
    let main = facts(&profile, member.is_owner, today);
    Ok(tab_page(&member.viewer, Tab::Profile, &html! {}, &main))
}

fn facts(profile: &Profile, is_owner: bool, today: Day) -> Markup {
    html! {
        section.panel {
            h2 { "Profile" }
            dl.facts {
                dt { "E-mail address" }
                dd {
                    (profile.email) " "
                    @if profile.is_verified { span.badge.good { "verified" } }
                    @else { a href="/account/notifications" { "not verified yet" } }
                }
                @if !is_owner {
                    dt { "Plan" }
                    dd { a href="/account/plan" { (word(profile.plan)) } }
                }
                dt { "Member since" }
                dd { (date(profile.created, today)) }
            }
        }
    }
}
