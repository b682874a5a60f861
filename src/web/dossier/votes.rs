//! What people think of a name: totals, and the viewer's own vote.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Redirect;
use maud::{Markup, html};
use serde::Deserialize;

use crate::http::error::ApiError;
use crate::vocab::claim::Vote;
use crate::vocab::name::DomainName;
use crate::web::Web;
use crate::web::components::{dossier_path, grouped, query};
use crate::web::dossier::name_in;
use crate::web::error::PageError;
use crate::web::form::Form;
use crate::web::notice::Notice;
use crate::web::viewer::{LoggedIn, Viewer};

const VOTED: Notice = Notice::new("voted", "Your vote is counted.");
const TAKEN_BACK: Notice = Notice::new("vote-taken-back", "Your vote is taken back.");
pub const NOTICES: [Notice; 2] = [VOTED, TAKEN_BACK];

/// What is shown of votes.
pub struct Votes {
    up: u64,
    down: u64,
    own: Option<Vote>,
    may_vote: bool,
}

/// A vote as sent.
#[derive(Debug, Deserialize)]
pub struct VoteSent {
    #[serde(default)]
    vote: String,
}

impl TryFrom<VoteSent> for Option<Vote> {
    type Error = ApiError;

    fn try_from(sent: VoteSent) -> Result<Option<Vote>, ApiError> {
        match sent.vote.as_str() {
            "up" => Ok(Some(Vote::Up)),
            "down" => Ok(Some(Vote::Down)),
            "none" => Ok(None),
            _ => Err(ApiError::parameter("vote", "must be up, down or none")),
        }
    }
}

/// `POST /domain/{name}/vote`: the viewer's one vote on a name that was seen.
pub async fn vote(
    State(web): State<Web>,
    member: LoggedIn,
    path: Result<Path<String>, PathRejection>,
    Form(sent): Form<VoteSent>,
) -> Result<Redirect, PageError> {
    let (domain, _) = name_in(path)?;
    let vote = Option::<Vote>::try_from(sent)?;
    if !web.app.live.current().holds(&domain) {
        return Err(ApiError::NotFound.into());
    }
    web.app.store.vote(&member.caller, &domain, vote).await?;
    let notice = if vote.is_some() { VOTED } else { TAKEN_BACK };
    Ok(notice.at(&dossier_path(domain.as_str())))
}

impl Votes {
    /// Of a name, for a viewer.
    pub fn of(web: &Web, viewer: &Viewer, domain: &DomainName) -> Votes {
        let totals = web.app.store.feedback(domain);
        let member = viewer.member.as_ref();
        let own = member.and_then(|member| web.app.store.own_vote(&member.caller, domain));
        Votes { up: totals.up, down: totals.down, own, may_vote: member.is_some() }
    }

    /// The totals, as buttons for whoever may vote.
    pub fn section(&self, domain: &DomainName) -> Markup {
        let path = dossier_path(domain.as_str());
        html! {
            section #votes.panel aria-labelledby="votes-title" {
                h2 #votes-title { "What people think" }
                @if self.may_vote {
                    form.votes method="post" action={ (path) "/vote" } data-votes {
                        (self.button(Vote::Up, "Good name", self.up))
                        (self.button(Vote::Down, "Not for me", self.down))
                    }
                    @if self.own.is_some() { p.soft { "Press your vote again to take it back." } }
                } @else {
                    p { b { (grouped(self.up)) } " good name, " b { (grouped(self.down)) } " not for me" }
                    p { a href=(query::with(&[("next", &path)], "/login")) { "Log in to vote" } }
                }
            }
        }
    }

    fn button(&self, vote: Vote, word: &str, count: u64) -> Markup {
        let pressed = self.own == Some(vote);
        let sent = match vote {
            _ if pressed => "none",
            Vote::Up => "up",
            Vote::Down => "down",
        };
        html! {
            button.quiet type="submit" name="vote" value=(sent) aria-pressed=(pressed) {
                (word) " " b { (grouped(count)) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn votes_are_words() {
        let parse = |vote: &str| Option::<Vote>::try_from(VoteSent { vote: vote.into() }).ok();
        assert_eq!(parse("up"), Some(Some(Vote::Up)));
        assert_eq!(parse("none"), Some(None));
        assert_eq!((parse(""), parse("UP")), (None, None));
    }

    #[test]
    fn the_vote_that_is_there_can_be_taken_back() {
        let votes = Votes { up: 1_200, down: 3, own: Some(Vote::Up), may_vote: true };
        let html = votes.section(&DomainName::parse("solar.com").expect("a name")).into_string();
        assert!(
            html.contains("value=\"none\" aria-pressed=\"true\">Good name <b>1,200</b>"),
            "{html}"
        );
        assert!(
            html.contains("value=\"down\" aria-pressed=\"false\">Not for me <b>3</b>"),
            "{html}"
        );
    }
}
