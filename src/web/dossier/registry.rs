//! The registry state of a name, and the check on demand.

use std::time::Duration;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Redirect;
use maud::{Markup, html};

use crate::Web;
use crate::components::{ago, dossier_path, query, seen_basis, seen_class, seen_word};
use crate::dossier::name_in;
use crate::error::PageError;
use crate::logged_in::LoggedIn;
use crate::notice::Notice;
use crate::service::app::Now;
use crate::service::checks::{Checked, Refused};
use crate::service::watchlist::WatchRow;
use crate::vocab::day::Day;
use crate::vocab::ids::AccountId;
use crate::vocab::name::DomainName;
use crate::vocab::observation::{LatestRegistration, Observation};

/// Maximum wait of the page for a registry. A later result is shown on the next page load.
const WAIT: Duration = Duration::from_secs(5);

const CHECKED: Notice = Notice::new("checked", "Checked with the registry.");
const WAITING: Notice = Notice::new(
    "check-waiting",
    "The check is queued. Reload this page in a minute to see the result.",
);
const FAILED: Notice =
    Notice::new("check-failed", "The registry gave no usable response. Try again later.");
const BUSY: Notice =
    Notice::new("check-limit", "You have used up this hour's registry checks. Try again later.");
pub const NOTICES: [Notice; 4] = [CHECKED, WAITING, FAILED, BUSY];

/// The state of a name at its registry, for one viewer.
pub enum RegistryView {
    /// Verification is off on this server.
    Off,
    NoServer,
    NotChecked,
    Seen(Observation),
    Failed,
}

impl RegistryView {
    /// Returns the newest state among the viewer's watchlist and checks. `viewer` is `None` for a
    /// visitor who is not logged in.
    pub fn find(
        web: &Web,
        viewer: Option<AccountId>,
        domain: &DomainName,
        watched: Option<&WatchRow>,
    ) -> RegistryView {
        let seen = watched.and_then(WatchRow::seen).copied();
        let checked = web.app.reach.checks.as_ref().zip(viewer);
        let checked = checked.and_then(|(checks, viewer)| checks.result(viewer, domain));
        match (checked, seen) {
            (Some(Checked::Seen(it)), seen) => match seen {
                Some(seen) if seen.at > it.at => RegistryView::Seen(seen),
                _ => RegistryView::Seen(it),
            },
            (_, Some(seen)) => RegistryView::Seen(seen),
            (Some(Checked::Failed), None) => RegistryView::Failed,
            (None, None) if !web.app.reach.bootstrap.current().is_checkable(domain) => {
                RegistryView::NoServer
            }
            (None, None) if web.app.reach.checks.is_none() => RegistryView::Off,
            (None, None) => RegistryView::NotChecked,
        }
    }

    /// Renders the state with the button that checks it.
    pub fn cell(
        &self,
        domain: &DomainName,
        release: Option<Day>,
        is_member: bool,
        now: Now,
    ) -> Markup {
        let path = dossier_path(domain.as_str());
        let today = Day::nearest(now.0);
        html! {
            @match self {
                RegistryView::Seen(seen) => {
                    p.value.(seen_class(seen)) { (seen_word(seen)) }
                    @if let Some(basis) = seen_basis(seen, release, today) { p.detail { (basis) } }
                    @if let Some(registration) = registration(seen) { p.detail { (registration) } }
                    p.detail { @if seen.is_verified() { span.confirmed { "✓ " } "Confirmed " } @else { "Checked " } (ago(seen.at, now)) }
                }
                RegistryView::Off => { p.value.soft { "Not checked" } p.detail { "Registry checks are off on this server." } }
                RegistryView::NoServer => { p.value.soft { "No RDAP server" } p.detail { "The DNS can show that the name is taken." } }
                RegistryView::NotChecked => { p.value.soft { "Not checked" } p.detail { "The dates come from the calendar." } }
                RegistryView::Failed => { p.value.soft { "No response" } p.detail { "The last check failed." } }
            }
            @if !matches!(self, RegistryView::Off) {
                @if is_member {
                    form.check method="post" action={ (path) "/check" } { button.quiet.small type="submit" { "Check now" } }
                } @else {
                    p.detail { a href=(query::with(&[("next", &path)], "/login")) { "Log in to check now" } }
                }
            }
        }
    }
}

/// Returns when and by whom the name was last registered: `Registered 24 Nov 2026 19:00:03 UTC at Example`.
fn registration(seen: &Observation) -> Option<String> {
    let LatestRegistration { at, registrar } = seen.registration;
    let at = at.map(|at| at.instant().format(" %-d %b %Y %H:%M:%S UTC").to_string());
    let by = registrar.map(|registrar| format!(" at {}", registrar.as_str()));
    let is_known = seen.state.is_held() && (at.is_some() || by.is_some());
    is_known.then(|| format!("Registered{}{}", at.unwrap_or_default(), by.unwrap_or_default()))
}

/// `POST /domain/{name}/check`: queries the registry, unless a fresh result exists.
pub async fn check(
    State(web): State<Web>,
    member: LoggedIn,
    path: Result<Path<String>, PathRejection>,
) -> Result<Redirect, PageError> {
    let (domain, _) = name_in(path)?;
    let notice = match &web.app.reach.checks {
        None => FAILED,
        Some(checks) => match checks.check(member.caller.account, &domain, WAIT).await {
            Ok(Some(Checked::Seen(_))) => CHECKED,
            Ok(Some(Checked::Failed)) => FAILED,
            Ok(None) => WAITING,
            Err(Refused) => BUSY,
        },
    };
    Ok(notice.at(&dossier_path(domain.as_str())))
}
