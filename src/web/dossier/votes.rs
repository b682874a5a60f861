//! Votes on a name: totals and the viewer's own vote.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Redirect;
use maud::{Markup, html};

use crate::Web;
use crate::components::{dossier_path, grouped, query};
use crate::dossier::name_in;
use crate::error::PageError;
use crate::form::{Fields, Form};
use crate::logged_in::LoggedIn;
use crate::notice::Notice;
use crate::service::error::ApiError;
use crate::viewer::Viewer;
use crate::vocab::claim::Vote;
use crate::vocab::name::DomainName;

const VOTED: Notice = Notice::new("voted", "Your vote was saved.");
const TAKEN_BACK: Notice = Notice::new("vote-taken-back", "Your vote was removed.");
pub const NOTICES: [Notice; 2] = [VOTED, TAKEN_BACK];

/// Votes on a name, for one viewer.
pub struct Votes {
    up: u64,
    down: u64,
    own: Option<Vote>,
    may_vote: bool,
}

fn parse_vote(text: &str) -> Result<Option<Vote>, ApiError> {
    match text {
        "up" => Ok(Some(Vote::Up)),
        "down" => Ok(Some(Vote::Down)),
        "none" => Ok(None),
        _ => Err(ApiError::parameter("vote", "must be up, down or none")),
    }
}

/// `POST /domain/{name}/vote`: sets or removes the viewer's vote on a known name.
pub async fn vote(
    State(web): State<Web>,
    member: LoggedIn,
    path: Result<Path<String>, PathRejection>,
    Form(fields): Form<Fields>,
) -> Result<Redirect, PageError> {
    let (domain, _) = name_in(path)?;
    let vote = parse_vote(fields.text("vote"))?;
    if !web.app.live.current().holds(&domain) {
        return Err(ApiError::NotFound.into());
    }
    web.app.store.vote(&member.caller, &domain, vote).await?;
    let notice = if vote.is_some() { VOTED } else { TAKEN_BACK };
    Ok(notice.at(&dossier_path(domain.as_str())))
}

impl Votes {
    /// Reads the votes on a name.
    pub fn find(web: &Web, viewer: &Viewer, domain: &DomainName) -> Votes {
        let totals = web.app.store.feedback(domain);
        let member = viewer.member.as_ref();
        let own = member.and_then(|member| web.app.store.own_vote(&member.caller, domain));
        Votes { up: totals.up, down: totals.down, own, may_vote: member.is_some() }
    }

    /// Renders the totals, as buttons for logged-in viewers.
    pub fn section(&self, domain: &DomainName) -> Markup {
        let path = dossier_path(domain.as_str());
        html! {
            section #votes.panel aria-labelledby="votes-title" {
                h2 #votes-title { "Votes" }
                @if self.may_vote {
                    form.votes method="post" action={ (path) "/vote" } data-votes {
                        (self.button(Vote::Up, "Good name", self.up))
                        (self.button(Vote::Down, "Not for me", self.down))
                    }
                    @if self.own.is_some() { p.soft { "Select your vote again to remove it." } }
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
    fn votes_parse() {
        let parse = |vote: &str| parse_vote(vote).ok();
        assert_eq!(parse("up"), Some(Some(Vote::Up)));
        assert_eq!(parse("none"), Some(None));
        assert_eq!((parse(""), parse("UP")), (None, None));
    }

    #[test]
    fn an_existing_vote_can_be_removed() {
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
