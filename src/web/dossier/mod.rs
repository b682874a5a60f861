//! `/domain/{name}`: the dossier of a name. Shows score, release and registry state first, then the
//! reasons for the score, other TLDs, the viewer's notes, external links, history and votes. An unknown
//! name gets a 404 that shows its score.

mod archive;
mod comparables;
mod facts;
mod lifecycle;
mod points;
mod price_chart;
mod registry;
mod risks;
mod votes;

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use maud::{Markup, html};

use crate::Web;
use crate::accounts::{UserData, WatchDetails};
use crate::components::{
    History, actions, bell_choice, countdown, counted, date, dossier_path, grouped, language, name,
    name_linked, panel, part_bars, query, rarity, score, standing, typo_of, upper_first,
    watch_form,
};
use crate::error::{PageError, sentence};
use crate::fragment::{self, Wanted};
use crate::index::Index;
use crate::index::filter::AsOf;
use crate::index::query::appraise::{Appraisal, cost_us};
use crate::index::query::profile::{Profile, Sibling, Siblings};
use crate::index::query::rows::{Lifecycle, Status};
use crate::layout::Page;
use crate::links::{Link, Links};
use crate::notice;
use crate::sales::Comparables;
use crate::scorer::Signals;
use crate::service::app::Now;
use crate::service::error::ApiError;
use crate::service::watchlist::WatchRow;
use crate::service::work;
use crate::viewer::Viewer;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::limits::{VENUE_CHARS_MAX, WATCH_NOTE_CHARS_MAX};
use crate::vocab::money::Usd;
use crate::vocab::name::{DomainName, to_unicode};
use crate::vocab::release_time::ReleaseTime;
use crate::vocab::stage::Stage;
use crate::vocab::tag::Tag;
use crate::vocab::time::UnixMs;
use crate::watchlist::MAX_BID_LABEL;
use registry::RegistryView;
use votes::Votes;

/// Maximum number of other TLDs shown.
const SIBLINGS: usize = 25;

pub fn routes() -> Router<Web> {
    Router::new()
        .route("/domain/{name}", get(find_domain))
        .route("/domain/{name}/vote", post(votes::vote))
        .route("/domain/{name}/check", post(registry::check))
        .route("/domain/{name}/archive", post(archive::ask))
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
    let account = viewer.member.as_ref().map(|member| member.caller.account);
    let is_alone =
        web.app.site.single_user && viewer.member.as_ref().is_some_and(|member| member.is_owner);
    let cost = cost_us(&[sent]);
    let (status, page) = work::run(cost, move || {
        let known = Known::find(&index, &domain, as_of);
        let status = if known.profile().is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
        if wanted == Wanted::Parts {
            let (_, _, signals) = known.scored();
            return Ok((status, part_bars(&signals.points, &signals.caps)));
        }
        let watched = owned.as_deref().and_then(|owned| {
            let entry = owned.watch(&domain)?;
            WatchRow::all(vec![entry], owned, &index, &web.app.store, as_of).pop()
        });
        let registry = RegistryView::find(&web, account, &domain, watched.as_ref());
        let links = &web.settings.links;
        let (dqs, _, signals) = known.scored();
        let outcome = index.outcome_of(domain.tld(), dqs, signals.kind, as_of.today);
        let outcome = outcome.map(|row| row.sentence(domain.tld()));
        let expected = index.expectation_of(&domain);
        let expected = expected.map(|(of, model)| model.sentence(of, domain.tld()));
        let visible = web.app.visible_facts();
        let returned = index.last_returned(&domain);
        let drops: Vec<Day> = known.profile().map_or_else(Vec::new, |profile| {
            let latest = profile.drop.iter().map(|drop| drop.dropped);
            latest.chain(profile.earlier.iter().map(|it| it.date)).collect()
        });
        let question = archive::question(&web, account, &domain);
        let (owned, now) = (owned.as_deref(), viewer.now);
        let sales = web.app.sales.current().filter(|_| owned.is_some());
        let own_sales = web.app.own_sales.among(&visible);
        let own_sales = own_sales.map_err(|err| ApiError::Internal(err.into()))?;
        let own_comparables = own_sales.as_ref().map(|it| it.comparables(&domain, as_of.today));
        let comparables = sales.as_ref().map(|it| it.comparables(&domain, as_of.today));
        let dossier = DossierPage {
            domain: &domain,
            known,
            as_of,
            now,
            owned,
            watched,
            registry,
            links,
            outcome,
            expected,
            is_alone,
            own_comparables: own_comparables.unwrap_or_default(),
            comparables: comparables.unwrap_or_default(),
            facts: facts::section(
                &visible,
                &domain,
                returned,
                as_of.today,
                question,
                owned.is_some(),
                &drops,
            )?,
        };
        let all = [&votes::NOTICES[..], &registry::NOTICES, &archive::NOTICES].concat();
        let at = crate::components::dossier_path(domain.as_str());
        let notice = notice::undoable(&all, query.as_deref(), &at);
        Ok((status, dossier.page(&viewer, &index, &votes, &notice)))
    })
    .await?;
    Ok(fragment::vary((status, page).into_response()))
}

/// Parses the name in a path. Also returns the name as sent.
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
struct DossierPage<'a> {
    domain: &'a DomainName,
    known: Known,
    as_of: AsOf,
    now: Now,
    owned: Option<&'a UserData>,
    /// The entry in the viewer's watchlist.
    watched: Option<WatchRow>,
    registry: RegistryView,
    links: &'a Links,
    /// Outcomes of names like this one, in a sentence.
    outcome: Option<String>,
    expected: Option<String>,
    /// Whether the viewer is the only user of the server.
    is_alone: bool,
    /// Sales in the viewer's own files.
    own_comparables: Vec<Comparables<'a>>,
    /// Sales in the operator's files.
    comparables: Vec<Comparables<'a>>,
    facts: Markup,
}

impl DossierPage<'_> {
    fn page(&self, viewer: &Viewer, index: &Index, votes: &Votes, notice: &Markup) -> Markup {
        let siblings = index.siblings(self.domain, self.as_of, SIBLINGS);
        let main = html! {
            (notice)
            (self.head())
            div.dossier {
                div.main {
                    (self.first())
                    (self.score(&siblings))
                    (comparables::section(&self.own_comparables, &self.comparables, self.max_bid(), self.as_of.today))
                    (self.outcomes())
                    (self.facts)
                    (self.popularity())
                }
                div.side {
                    (self.watching())
                    (self.open_at())
                    (self.siblings(&siblings))
                    (self.history())
                    // Who is alone has no one to compare votes with.
                    @if self.known.profile().is_some() && !self.is_alone { (votes.section(self.domain)) }
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

    /// Returns the latest drop, unless the name was registered again.
    fn drop(&self) -> Option<&Lifecycle> {
        self.known.profile()?.drop.as_ref()
    }

    fn max_bid(&self) -> Option<Usd> {
        self.watched.as_ref()?.details().max_bid
    }

    fn is_prohibited(&self) -> bool {
        self.known.scored().2.caps.iter().any(|cap| cap.name == "minors")
    }

    /// Returns true if the release is past and no registry holds the name: it is registered, not ordered.
    fn is_released(&self) -> bool {
        let today = self.as_of.today;
        let is_past =
            self.drop().is_some_and(|drop| !drop.registered_again && drop.release.day < today);
        let is_held = matches!(&self.registry, RegistryView::Seen(seen) if !seen.is_free());
        is_past && !is_held
    }

    /// Returns how the name can be had now, and the sites for it.
    fn way_to_get(&self) -> (&'static str, &[Link]) {
        match self.is_released() {
            true => ("Register at", &self.links.registrar),
            false => ("Backorder", &self.links.backorder),
        }
    }

    fn head(&self) -> Markup {
        let (domain, text) = (self.domain, self.domain.as_str());
        let (word, links) = self.way_to_get();
        let first = self.served(links).into_iter().next();
        html! {
            div.head.title {
                h1 { (name(text, domain.tld())) }
                div.actions {
                    (actions(self.owned, domain, &dossier_path(text)))
                    button.act.needs-js type="button" data-share=(text) { "Share" }
                    @if let Some((link, address)) = first {
                        a.act.main href=(address) target="_blank" rel="noreferrer noopener" { (word) " " @if word == "Backorder" { "at " } (link.name) }
                    }
                }
            }
            @if self.is_prohibited() {
                p.lead { span.badge { "not listed" } " dropdex lists no names that join minors and sex: this one is in no list, search, count or file." }
            } @else if self.known.profile().is_none() {
                p.lead { span.badge { "unknown" } " This name isn't in our data yet. This is its estimated score." }
            }
        }
    }

    /// Renders score, release and registry state, and the lifecycle below them.
    fn first(&self) -> Markup {
        let (dqs, explanation, _) = self.known.scored();
        html! {
            section.panel.first aria-label="At a glance" {
                div.cells {
                    div.cell.big {
                        h2 { "Score" }
                        p.value { (score(dqs)) " " span.rarity { (rarity(dqs)) } }
                        p.detail { (explanation) }
                    }
                    div.cell { h2 { "Drops" } (self.release()) }
                    div.cell { h2 { "Registry (RDAP)" } (self.registry.cell(self.domain, self.drop().map(|drop| drop.release.day), self.owned.is_some(), self.now)) }
                }
                @if let Some(drop) = self.drop() {
                    (lifecycle::timeline(drop, self.as_of))
                }
            }
        }
    }

    /// Renders when the name drops. Dates that come only from the calendar are labelled as
    /// expected.
    fn release(&self) -> Markup {
        let today = self.as_of.today;
        let Some(drop) = self.drop() else {
            let held = self.known.profile().is_some_and(|it| it.status == Status::Registered);
            let word = if held { "Registered" } else { "No known drop" };
            return html! { p.value.soft { (word) } };
        };
        if drop.registered_again {
            return html! {
                p.value.soft { "Renewed or registered again" }
                p.detail { "Dropped on " (date(drop.dropped, today)) "." }
            };
        }
        let release = drop.release.day;
        let days = release.days_since(today);
        if days < 0 {
            return html! {
                p.value.soft { "Since " (date(release, today)) }
                @if matches!(&self.registry, RegistryView::Seen(seen) if seen.is_free()) {
                    p.detail { "Two sources confirm that it is free." }
                } @else {
                    p.detail { "Expected to be available since " (date(release, today)) ", not verified." }
                }
            };
        }
        let word = lifecycle::relative(release, today);
        let day = release.date().format("%a %-d %b");
        let exact = match ReleaseTime::of(self.domain.tld(), drop.release).words() {
            Some(hour) => format!("{day}, {hour}"),
            None => format!("{day} (UTC); the hour is not known"),
        };
        html! {
            p.value.urgent[days <= 1] { (upper_first(&word)) }
            p.detail { (exact) ", " (countdown(self.domain.tld(), drop.release, self.now)) }
            @if drop.stage == Stage::Redemption { p.detail.warn { "The owner can still restore it." } }
        }
    }

    fn score(&self, siblings: &Siblings) -> Markup {
        let (dqs, _, signals) = self.known.scored();
        let content = html! {
            (points::reasons(self.domain, signals, siblings))
            details.parts-of {
                summary { "Show the parts" }
                (points::table(signals))
                (self.signals())
            }
        };
        panel("score-title", &format!("Why {}", dqs.points()), content)
    }

    /// Renders what became of names like this one.
    fn outcomes(&self) -> Markup {
        let sentences: Vec<_> = self.outcome.iter().chain(&self.expected).collect();
        if sentences.is_empty() {
            return html! {};
        }
        let content = html! {
            @for sentence in sentences { p.outcome { (sentence) } }
            p.soft { a href="/docs/outcomes" { "How it is counted" } }
        };
        panel("outcomes-title", "What became of names like it", content)
    }

    /// Renders the viewer's notes on the name.
    fn watching(&self) -> Markup {
        let none = WatchDetails::default();
        let Some(_) = self.owned else {
            let next = dossier_path(self.domain.as_str());
            let content = html! {
                p { a href=(query::with(&[("next", &next)], "/login")) { "Log in" } " to watch this name and to note a bid." }
            };
            return panel("watching", "Watchlist", content);
        };
        let details = self.watched.as_ref().map_or(&none, WatchRow::details);
        let bid = details.max_bid.map(|bid| bid.to_string()).unwrap_or_default();
        let tags: Vec<_> = details.tags.iter().map(Tag::as_str).collect();
        let venues = self.links.backorder.iter().filter(|it| it.address(self.domain).is_some());
        let title = if self.watched.is_some() { "Watching" } else { "Watch this name" };
        let content = html! {
            form.notes method="post" action="/watchlist/entry" {
                input type="hidden" name="domain" value=(self.domain);
                input type="hidden" name="next" value={ (dossier_path(self.domain.as_str())) };
                div.pair {
                    label { (MAX_BID_LABEL) input type="text" name="bid" inputmode="decimal" value=(bid) autocomplete="off"; }
                    label { "Venue" input type="text" name="venue" list="venues" maxlength=(VENUE_CHARS_MAX) value=(details.venue.as_deref().unwrap_or_default()) autocomplete="off"; }
                }
                datalist #venues { @for link in venues { option value=(link.name) {} } }
                label { "Tags" input type="text" name="tags" value=(tags.join(", ")) placeholder="flip, keep" autocomplete="off"; }
                div { label for="note" { "Note" } textarea #note name="note" rows="2" maxlength=(WATCH_NOTE_CHARS_MAX) { "\n" (details.note.as_deref().unwrap_or_default()) } }
                p.send {
                    button.quiet type="submit" { @if self.watched.is_some() { "Save" } @else { "Watch and save" } }
                    @if let Some(watched) = &self.watched { span.soft { "since " (date(day_of(watched.added_at(), self.as_of.today), self.as_of.today)) } }
                }
            }
            @if let (Some(watched), Some(owned)) = (&self.watched, self.owned) {
                (bell_choice(self.domain, watched.alerts(), owned.watch_sender(), &dossier_path(self.domain.as_str())))
            }
        };
        panel("watching", title, content)
    }

    /// Whether a link leads to the venue noted in the watchlist.
    fn is_venue(&self, link: &Link) -> bool {
        let venue = self.watched.as_ref().and_then(|it| it.details().venue.as_deref());
        venue.is_some_and(|venue| venue.eq_ignore_ascii_case(&link.name))
    }

    /// Returns the links that serve the name, with their addresses: the noted venue first.
    fn served<'a>(&self, links: &'a [Link]) -> Vec<(&'a Link, String)> {
        let address = |link: &'a Link| Some((link, link.address(self.domain)?));
        let mut served: Vec<_> = links.iter().filter_map(address).collect();
        served.sort_by_key(|(link, _)| !self.is_venue(link));
        served
    }

    /// Renders links to other sites.
    fn open_at(&self) -> Markup {
        let group = |word: &str, links: &[Link]| {
            let served = self.served(links);
            html! {
                @if !served.is_empty() {
                    dt { (word) }
                    dd { @for (link, address) in &served { a.out.on[self.is_venue(link)] href=(address) target="_blank" rel="noreferrer noopener" { (link.name) } " " } }
                }
            }
        };
        let (word, links) = self.way_to_get();
        let content = html! {
            dl.open {
                (group(word, links))
                (group("Research", &self.links.research))
                @if !self.is_released() { (group("Registrar", &self.links.registrar)) }
            }
        };
        panel("open-at", "Open at", content)
    }

    /// Renders the events of the name, newest first.
    fn history(&self) -> Markup {
        let today = self.as_of.today;
        let Some(profile) = self.known.profile() else { return html! {} };
        let seen = match &self.registry {
            RegistryView::Seen(seen) => Some(seen),
            _ => None,
        };
        let history =
            History { drop: self.drop(), earlier: &[], seen, watched: self.watched.as_ref() };
        let content = html! {
            (history.shown(today))
            h3 { "Earlier drops" }
            (lifecycle::earlier(&profile.earlier, today))
        };
        panel("history-title", "History", content)
    }

    /// Renders ranks on popularity lists.
    fn popularity(&self) -> Markup {
        let Some(profile) = self.known.profile() else { return html! {} };
        let (facts, typo) = (&profile.popularity, &profile.typo_of);
        if facts.is_empty() && typo.is_none() {
            return html! {};
        }
        let content = html! {
            @if let Some(popular) = typo { p { (typo_of(popular)) "." } }
            dl.facts {
                @for fact in facts {
                    dt { (fact.list.title()) }
                    dd {
                        (grouped(fact.rank.into())) " on " (date(fact.date, self.as_of.today))
                        @if let Some(id) = &fact.list_id { " (list ID " (id.as_str()) ")" }
                    }
                }
            }
            p.soft { "Not part of the score." }
        };
        panel("popularity-title", "Popularity", content)
    }

    fn siblings(&self, Siblings { best: siblings, total, .. }: &Siblings) -> Markup {
        if siblings.is_empty() {
            return html! {};
        }
        let label = self.domain.label();
        // An adult label is found only by a search that includes adult names.
        let text = format!("{label}.");
        let all = query::with(&[("q", &text), ("adult", "include")], "/search");
        let content = html! {
            table.siblings {
                thead { tr { th scope="col" { "Name" } th scope="col" { "Score" } th scope="col" { "Registry" } } }
                tbody { @for sibling in siblings { (sibling_row(sibling, label, self.as_of.today)) } }
            }
            @if *total as usize > siblings.len() {
                p { a href=(all) { "Show all " (counted(*total, "name")) } }
            }
        };
        panel("siblings-title", "Same name in other TLDs", content)
    }

    fn signals(&self) -> Markup {
        let (_, _, signals) = self.known.scored();
        let words: Vec<&str> = signals.words.iter().collect();
        html! {
            dl.facts {
                dt { "Words" } dd { bdi { (words.join(" · ")) } }
                dt { "Language" } dd { (signals.language.map_or_else(|| "unknown".to_owned(), language)) }
                dt { "Length" } dd { (self.domain.length()) " characters, length band " (signals.length_band) }
                dt { "Dictionary" } dd { (signals.dictionary_quality.get()) " of 100" }
                dt { "Pronounceability" } dd { (signals.pronounceability.get()) " of 100" }
                dt { "Digits, hyphens" } dd { (signals.digits) ", " (signals.hyphens) }
                dt { "Value of ." (to_unicode(self.domain.tld())) } dd { (signals.tld_weight.get()) " of 100" }
                dt { "Registered in" } dd { (counted(signals.tld_spread, "TLD")) }
                dt { "Scorer" } dd { "version " (signals.scorer_version) }
            }
        }
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

fn day_of(at: UnixMs, today: Day) -> Day {
    Day::from_instant(at.instant()).unwrap_or(today)
}
