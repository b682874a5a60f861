//! Captures of a name in the web archive, asked for on demand.

use std::time::Duration;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Redirect;
use maud::{Markup, html};

use crate::Web;
use crate::components::{counted, dossier_path};
use crate::dossier::name_in;
use crate::error::PageError;
use crate::logged_in::LoggedIn;
use crate::notice::Notice;
use crate::outbound::archive::Captures;
use crate::service::archive::Looked;
use crate::service::checks::Refused;
use crate::vocab::ids::AccountId;
use crate::vocab::name::DomainName;

/// Maximum wait of the page for the archive. A later result is shown on the next page load.
const WAIT: Duration = Duration::from_secs(5);

const KNOWN: Notice = Notice::new("archive", "The web archive has answered.");
const WAITING: Notice = Notice::new(
    "archive-waiting",
    "The question to the web archive is queued. Reload this page in a minute to see the result.",
);
const FAILED: Notice = Notice::new(
    "archive-failed",
    "The web archive gave no usable response. It is not asked about this name for a day.",
);
const BUSY: Notice = Notice::new(
    "archive-limit",
    "You have used up this hour's questions to the web archive. Try again later.",
);
const OFF: Notice = Notice::new("archive-off", "This server asks no web archive.");
pub const NOTICES: [Notice; 5] = [KNOWN, WAITING, FAILED, BUSY, OFF];

/// Renders the button that asks, with what the archive last answered to the account; nothing if no archive is asked.
pub fn question(web: &Web, account: Option<AccountId>, domain: &DomainName) -> Option<Markup> {
    let (archive, account) = web.app.reach.archive.as_ref().zip(account)?;
    let answer = match archive.checks.result(account, domain) {
        _ if archive.checks.is_waiting(account, domain) => {
            Some("The question to the web archive is queued.".to_owned())
        }
        Some(Looked::Known(captures)) => Some(sentence(captures)),
        Some(Looked::Failed) => Some("The web archive gave no usable response.".to_owned()),
        None => None,
    };
    Some(html! {
        @if let Some(answer) = answer { p { (answer) } }
        form method="post" action={ (dossier_path(domain.as_str())) "/archive" } {
            button.quiet.small type="submit" { "Ask the web archive" }
        }
    })
}

fn sentence(captures: Option<Captures>) -> String {
    let Some(Captures { first, last, days, is_cut, .. }) = captures else {
        return "The web archive has no captures of this name.".to_owned();
    };
    let days = counted(days.into(), "day");
    let or_more = if is_cut { " or more" } else { "" };
    match last {
        Some(last) if last == first => format!("Captured on {days}{or_more}, all in {first}."),
        Some(last) => format!("Captured on {days}{or_more}, from {first} to {last}."),
        None => format!("Captured on {days}{or_more} since {first}."),
    }
}

/// `POST /domain/{name}/archive`: asks the web archive, unless a fresh result exists.
pub async fn ask(
    State(web): State<Web>,
    member: LoggedIn,
    path: Result<Path<String>, PathRejection>,
) -> Result<Redirect, PageError> {
    let (domain, _) = name_in(path)?;
    let notice = match &web.app.reach.archive {
        None => OFF,
        Some(archive) => match archive.checks.check(member.caller.account, &domain, WAIT).await {
            Ok(Some(Looked::Known(_))) => KNOWN,
            Ok(Some(Looked::Failed)) => FAILED,
            Ok(None) => WAITING,
            Err(Refused) => BUSY,
        },
    };
    Ok(notice.at(&dossier_path(domain.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_says_no_more_than_the_archive() {
        let captures = Captures {
            first: 1998,
            last: Some(2010),
            days: 12,
            is_cut: false,
            redirects: None,
            gap: Some(3),
        };
        assert_eq!(sentence(Some(captures)), "Captured on 12 days, from 1998 to 2010.");
        let one = Captures { last: Some(1998), days: 1, ..captures };
        assert_eq!(sentence(Some(one)), "Captured on 1 day, all in 1998.");
        let cut = Captures { last: None, days: 2_000, is_cut: true, gap: None, ..captures };
        assert_eq!(sentence(Some(cut)), "Captured on 2,000 days or more since 1998.");
        assert_eq!(sentence(None), "The web archive has no captures of this name.");
    }
}
