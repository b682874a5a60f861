//! `/domain/{name}`: the dossier of a name: score, lifecycle, other TLDs and votes. An unknown name is a
//! 404 that shows its score.

mod lifecycle;
mod points;
mod votes;

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use maud::{Markup, html};

use crate::accounts::UserData;
use crate::http::error::ApiError;
use crate::http::work;
use crate::index::Index;
use crate::index::filter::AsOf;
use crate::index::query::appraise::{Appraisal, cost_us};
use crate::index::query::profile::{Profile, Sibling};
use crate::index::query::rows::Status;
use crate::scorer::Signals;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::name::{DomainName, to_unicode};
use crate::web::Web;
use crate::web::components::{
    actions, counted, dossier_path, name, name_linked, panel, part_bars, query, score, standing,
    watch_form,
};
use crate::web::error::{PageError, sentence};
use crate::web::fragment::{self, Wanted};
use crate::web::layout::Page;
use crate::web::notice;
use crate::web::viewer::Viewer;
use votes::Votes;

/// Maximum number of other TLDs shown.
const SIBLINGS: usize = 25;

pub fn routes() -> Router<Web> {
    Router::new()
        .route("/domain/{name}", get(find_domain))
        .route("/domain/{name}/vote", post(votes::vote))
}

/// `GET /domain/{name}`: the dossier. Other spellings redirect to the canonical one.
async fn find_domain(
    State(web): State<Web>,
    viewer: Viewer,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, PageError> {
    let (domain, sent) = name_in(path)?;
    if sent != domain.as_str() {
        return Ok(Redirect::permanent(&dossier_path(domain.as_str())).into_response());
    }
    let votes = Votes::find(&web, &viewer, &domain);
    let wanted = fragment::wanted(&headers);
    if !matches!(wanted, Wanted::Page | Wanted::Parts) {
        return Ok(fragment::vary(votes.section(&domain).into_response()));
    }
    let (index, as_of) = (web.app.live.current(), web.app.as_of(viewer.now));
    let owned = viewer.member.as_ref().map(|member| web.user_data(member));
    let cost = cost_us(&[sent]);
    let (status, page) = work::run(cost, move || {
        let known = Known::find(&index, &domain, as_of);
        let status = if known.profile().is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
        let dossier = Dossier { domain: &domain, known, as_of, owned: owned.as_deref() };
        if wanted == Wanted::Parts {
            let (_, _, signals) = dossier.known.scored();
            return Ok((status, part_bars(&signals.points, &signals.caps)));
        }
        let notice = notice::shown(&votes::NOTICES, query.as_deref());
        Ok((status, dossier.page(&viewer, &index, &votes, &notice)))
    })
    .await?;
    Ok(fragment::vary((status, page).into_response()))
}

/// Parses the name in a path. Also returns it as sent.
fn name_in(path: Result<Path<String>, PathRejection>) -> Result<(DomainName, String), ApiError> {
    let Path(sent) =
        path.map_err(|_| ApiError::parameter("name", "is not percent-encoded UTF-8"))?;
    let domain = DomainName::parse(&sent).map_err(|err| ApiError::parameter("name", err))?;
    Ok((domain, sent))
}

/// Data about a name.
enum Known {
    Seen(Profile),
    Unseen(Appraisal),
}

impl Known {
    fn find(index: &Index, domain: &DomainName, as_of: AsOf) -> Known {
        match index.profile(domain, as_of) {
            Some(profile) => Known::Seen(profile),
            None => Known::Unseen(index.appraise(domain)),
        }
    }

    fn profile(&self) -> Option<&Profile> {
        match self {
            Known::Seen(profile) => Some(profile),
            Known::Unseen(_) => None,
        }
    }

    /// Score, explanation and signals.
    fn scored(&self) -> (Dqs, &str, &Signals<'static>) {
        match self {
            Known::Seen(Profile { dqs, explanation, signals, .. })
            | Known::Unseen(Appraisal { dqs, explanation, signals, .. }) => {
                (*dqs, explanation, signals)
            }
        }
    }
}

/// Input of the page.
struct Dossier<'a> {
    domain: &'a DomainName,
    known: Known,
    as_of: AsOf,
    owned: Option<&'a UserData>,
}

impl Dossier<'_> {
    fn page(&self, viewer: &Viewer, index: &Index, votes: &Votes, notice: &Markup) -> Markup {
        let (siblings, others) = index.siblings(self.domain, self.as_of, SIBLINGS);
        let main = html! {
            (notice)
            (self.head())
            div.dossier {
                div.main {
                    (self.score())
                    @if let Some(profile) = self.known.profile() { (self.drops(profile)) }
                }
                div.side {
                    @if self.known.profile().is_some() { (votes.section(self.domain)) }
                    (self.siblings(&siblings, others))
                    (self.signals())
                }
            }
            (watch_form(&dossier_path(self.domain.as_str())))
        };
        let (dqs, explanation, _) = self.known.scored();
        let domain = self.domain.unicode();
        let about = format!(
            "{domain} scores {} of 100. {} Lifecycle, earlier drops and other TLDs.",
            dqs.points(),
            sentence(explanation)
        );
        Page::new(&domain, &about)
            .styles(&["components.css", "dossier.css"])
            .scripts(&["dossier.js"])
            .show(Some(viewer), main)
    }

    fn head(&self) -> Markup {
        let (domain, text) = (self.domain, self.domain.as_str());
        let profile = self.known.profile();
        let drop = profile.and_then(|profile| profile.drop.as_ref());
        let held = profile.is_some_and(|profile| profile.status == Status::Registered);
        html! {
            div.head.title {
                h1 { (name(text, domain.tld())) }
                div.actions { (actions(self.owned, domain, &dossier_path(text))) }
            }
            p.lead {
                @if profile.is_some() { (standing(drop, held, self.as_of.today)) }
                @else { span.badge { "unknown" } " This name isn't in our data yet. This is its estimated score." }
            }
        }
    }

    fn score(&self) -> Markup {
        let (dqs, explanation, signals) = self.known.scored();
        let content = html! {
            div.verdict {
                div.big { (score(dqs)) }
                p { (explanation) }
            }
            (points::table(signals))
        };
        panel("score-title", "Score", content)
    }

    fn drops(&self, profile: &Profile) -> Markup {
        let none = html! { p { "No known drop." } };
        let Some(drop) = &profile.drop else { return panel("lifecycle-title", "Lifecycle", none) };
        html! {
            (panel("lifecycle-title", "Lifecycle", lifecycle::timeline(drop, self.as_of)))
            (panel("earlier-title", "Earlier drops", lifecycle::earlier(&profile.earlier, self.as_of.today)))
        }
    }

    fn siblings(&self, siblings: &[Sibling], total: u32) -> Markup {
        let label = self.domain.label();
        let content = html! {
            @if siblings.is_empty() {
                p.soft { "No other TLDs in our data." }
            } @else {
                table.siblings {
                    thead.hidden { tr { th scope="col" { "Name" } th scope="col" { "DQS" } th scope="col" { "Stage" } } }
                    tbody { @for sibling in siblings { (sibling_row(sibling, label, self.as_of.today)) } }
                }
                @if total as usize > siblings.len() {
                    p { a href=(query::with(&[("q", &format!("{label}."))], "/search")) { "Show all " (counted(total, "name")) } }
                }
            }
        };
        panel("siblings-title", "Same name in other TLDs", content)
    }

    fn signals(&self) -> Markup {
        let (_, _, signals) = self.known.scored();
        let words: Vec<&str> = signals.words.iter().collect();
        let facts = html! {
            dl.facts {
                dt { "Words" } dd { bdi { (words.join(" · ")) } }
                dt { "Language" } dd { (signals.language.map_or("unknown", language)) }
                dt { "Length" } dd { (self.domain.length()) " characters, length band " (signals.length_band) }
                dt { "Dictionary" } dd { (signals.dictionary_quality.get()) " of 100" }
                dt { "Pronounceability" } dd { (signals.pronounceability.get()) " of 100" }
                dt { "Digits, hyphens" } dd { (signals.digits) ", " (signals.hyphens) }
                dt { "Value of ." (to_unicode(self.domain.tld())) } dd { (signals.tld_weight.get()) " of 100" }
                dt { "Registered in" } dd { (counted(signals.tld_spread, "TLD")) }
                dt { "Scorer" } dd { "version " (signals.scorer_version) }
            }
        };
        panel("signals-title", "Score details", facts)
    }
}

fn sibling_row(sibling: &Sibling, label: &str, today: Day) -> Markup {
    let tld = sibling.name.get(label.len() + 1..).unwrap_or_default();
    html! {
        tr {
            th scope="row" { (name_linked(&sibling.name, tld)) }
            td { (score(sibling.dqs)) }
            td.where { (standing(sibling.drop.as_ref(), sibling.status == Status::Registered, today)) }
        }
    }
}

/// English name of an ISO 639-1 code. Returns the code itself for other languages.
fn language(code: &'static str) -> &'static str {
    const LANGUAGES: [(&str, &str); 14] = [
        ("en", "English"),
        ("de", "German"),
        ("fr", "French"),
        ("es", "Spanish"),
        ("it", "Italian"),
        ("nl", "Dutch"),
        ("pl", "Polish"),
        ("pt", "Portuguese"),
        ("sv", "Swedish"),
        ("da", "Danish"),
        ("no", "Norwegian"),
        ("fi", "Finnish"),
        ("cs", "Czech"),
        ("tr", "Turkish"),
    ];
    LANGUAGES.iter().find(|(known, _)| *known == code).map_or(code, |(_, name)| name)
}
