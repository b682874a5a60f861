//! `/`: the list of drops. If the query string selects no part, order or page, the page shows the best
//! names of each of the next days. Otherwise it shows one page of rows. Parameters are those
//! of the API and of the CSV export, so the URL, the list and the file agree. The fragment contains
//! the parts that filters change.

pub(crate) mod bulk;
mod chips;
mod columns;
mod completion;
mod csv;
mod list;
pub(crate) mod new;
pub mod presets;
pub mod saved;
mod sets;
mod side;
pub mod state;
pub mod why;
pub mod words;

use std::cell::Cell;
use std::sync::Arc;

use axum::Router;
use axum::extract::{RawQuery, State as WebState};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use maud::{Markup, html};

use crate::Web;
use crate::accounts::{UserData, Visit};
use crate::components::{self, watch_form};
use crate::error::PageError;
use crate::form::Fields;
use crate::fragment::{self, Wanted};
use crate::index::error::QueryError;
use crate::index::filter::{AsOf, Counting, DropFilter, Facet, Sort, View};
use crate::index::query::rows::FacetValue;
use crate::index::{DropsPage, Index, Total};
use crate::layout::{NavItem, Page, shrunk};
use crate::query::filter::{DayRange, Filter};
use crate::query::narrow::{self, Scope};
use crate::service::app::App;
use crate::service::app::Now;
use crate::service::checks::{Checked, Checks};
use crate::service::error::ApiError;
use crate::service::fact_book::{ShownFacts, VisibleFacts};
use crate::service::searches::SearchCounts;
use crate::service::work;
use crate::telemetry::query::{QueryKind, QueryTimer};
use crate::viewer::Viewer;
use crate::vocab::columns::Columns;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::ids::AccountId;
use crate::vocab::limits::DROPS_OFFSET_MAX;
use crate::vocab::name::DomainName;
use crate::vocab::plan::Plan;
use crate::vocab::time::UnixMs;
use saved::Counted;
use state::{AUCTION_END, AUCTIONS, COLUMNS, DAYS_AHEAD, DropsParams, FACTS, NEW};

/// Number of names for each day of the digest.
const BEST_OF_DAY: u32 = 12;
/// Maximum rows that a page sends at once. The rest of its rows is not on the screen yet: a script loads
/// it after the first paint, and without scripts a link leads to all of them.
const FIRST_ROWS: u32 = 25;
/// Score that few names reach. The digest counts the names with this score or a higher one.
const HIGH: u8 = 90;

pub fn routes() -> Router<Web> {
    Router::new()
        .route("/", get(list_drops))
        .route("/columns", post(columns::choose))
        .route("/watch", post(bulk::watch))
        .route("/hide", post(bulk::hide))
        .route("/unhide", post(bulk::unhide))
        .route("/mark", post(bulk::mark))
        .route("/selected.csv", post(bulk::csv))
        .route("/selected.txt", post(bulk::text))
        .route(new::PATH, post(new::mark_seen))
}

/// `GET /`: the drops that pass the filters in the query string. `add` is the text of the query bar and
/// `page` the number of a page; both become parameters of the URL.
async fn list_drops(
    WebState(web): WebState<Web>,
    viewer: Viewer,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, PageError> {
    let sent = Fields::from_query(query.as_deref());
    let state = DropsParams::of(&sent);
    let (index, as_of) = (web.app.live.current(), web.app.as_of(viewer.now));
    let wanted = fragment::wanted(&headers);
    if wanted == Wanted::Options {
        let (app, text) = (web.app.clone(), sent.text("add").to_owned());
        let complete = move || completion::options(&app, &index, &state, &text, as_of);
        return Ok(fragment::vary(work::scan(complete).await?.into_response()));
    }
    let not_understood = match next(&state, &sent) {
        Ok(Some(next)) => return Ok(Redirect::to(&next.path()).into_response()),
        Ok(None) => None,
        Err(why) => Some(NotUnderstood { text: sent.text("add").to_owned(), why }),
    };
    let batch = index.manifest().batches;
    let visit = match &viewer.member {
        Some(member) => {
            let now = UnixMs::from_instant(viewer.now.0);
            web.app.store.visit(&member.caller, batch, now).await
        }
        None => None,
    };
    let owned = viewer.member.as_ref().map(|member| web.user_data(member));
    let mut shown = Shown {
        not_understood,
        notice: bulk::notice(&sent, &state.path()),
        exports: viewer.member.as_ref().is_some_and(|member| member.caller.plan >= Plan::Core),
        depth: components::depth(&viewer, DROPS_OFFSET_MAX),
        today: as_of.today,
        now: viewer.now,
        checks: viewer
            .member
            .as_ref()
            .and_then(|member| Some((web.app.reach.checks.clone()?, member.caller.account))),
        columns: state.columns().unwrap_or_else(|| columns::chosen(owned.as_deref(), &headers)),
        part: match wanted {
            Wanted::Rows => RowsPart::Rest,
            _ if sent.text("rows") == "all" => RowsPart::All,
            _ => RowsPart::First,
        },
        facts: ShownFacts::default(),
        visible: VisibleFacts::default(),
        hidden: HiddenRows { are_shown: sent.text("hidden") == "show", left_out: Cell::new(0) },
        owned,
        visit,
        state,
    };
    let is_text = !shown.state.get("q").is_empty();
    let timer = QueryTimer::start(if is_text { QueryKind::Substring } else { QueryKind::Drops });
    let (app, caller) = (web.app.clone(), viewer.member.as_ref().map(|it| it.caller.clone()));
    let make = move || {
        shown.visible = app.visible_facts();
        let facts = shown.state.fact_names().and_then(|names| shown.visible.shown(&names));
        let facts = facts.map(|facts| shown.facts = facts).map_err(ApiError::from);
        if wanted == Wanted::Rows {
            let listing = find_rows(&app, &index, &shown, as_of, timer)?;
            return Ok((StatusCode::OK, list::rest(&shown, &listing), None));
        }
        let found = facts.and_then(|()| find(&app, &index, &shown, as_of, timer));
        let found = match found {
            Err(ApiError::BadParameter { name, what, .. }) => Err(side::problem(&name, &what)),
            found => Ok(found?),
        };
        let owned = shown.owned.as_deref();
        let mut saved =
            owned.map(|owned| saved::counted(&app, owned, &index, as_of)).unwrap_or_default();
        let is_bad = shown.not_understood.is_some() || found.is_err();
        let status = if is_bad { StatusCode::BAD_REQUEST } else { StatusCode::OK };
        let at_end = found.as_ref().is_ok_and(|found| new::is_at_end(&found.listing));
        let seen = owned.filter(|_| at_end).and_then(|owned| new::search_of(&shown.state, owned));
        for (_, counts) in saved.iter_mut().filter(|(search, _)| Some(search.id) == seen) {
            *counts = counts.map(|counts| SearchCounts { new: Total::Exact(0), ..counts });
        }
        let page = show(&shown, &found, &saved, (wanted == Wanted::Page).then_some(&viewer));
        Ok((status, page, seen))
    };
    let narrowing = || {
        let filter = DropsParams::of(&sent).listed().filter(as_of.today).ok()?;
        Some(narrow::advice(&filter.common, Scope::Drops))
    };
    let (status, page, seen) = work::scan(make).await.map_err(|err| err.narrowed(narrowing))?;
    // The list is shown even if the write fails.
    if let Some((id, caller)) = seen.zip(caller)
        && let Err(err) = new::search_seen(&web, &caller, id, batch).await
    {
        tracing::warn!(error = %err, "cannot mark a saved search as seen");
    }
    Ok(fragment::vary((status, page).into_response()))
}

/// Returns the state of the URL to redirect to: that with the terms of the query bar, or the page
/// with the number that was sent; `None` if neither was.
///
/// # Errors
/// A sentence about the first invalid term.
fn next(state: &DropsParams, sent: &Fields) -> Result<Option<DropsParams>, String> {
    let added = words::add(state, sent.text("add"));
    match (added, sent.text("page").parse()) {
        (Ok(next), _) if !sent.text("add").is_empty() => Ok(Some(next)),
        (_, Ok(page)) => Ok(Some(state.numbered(page))),
        (added, Err(_)) => added.map(|_| None),
    }
}

/// Renders the query bar, the sidebar and the list, in a page for `viewer` if there is one.
fn show(
    shown: &Shown,
    found: &Result<DropsResults<'_>, String>,
    saved: &[Counted],
    viewer: Option<&Viewer>,
) -> Markup {
    let path = shown.state.path();
    let frame = html! {
        div.frame #frame data-path=(path) {
            (side::show(shown, found.as_ref().ok(), saved))
            div.rest { (shown.notice) (list::show(shown, found)) }
        }
    };
    let new_names = found.as_ref().map_or(Total::Exact(0), |found| found.new_names);
    let bar = chips::bar(shown, new_names);
    if viewer.is_none() {
        return shrunk(html! { (bar) (frame) });
    }
    let about = "Domain names that are leaving registration, by release date and score.";
    let main = html! {
        h1.hidden { "Drops" }
        (frame)
        (watch_form(&path))
    };
    Page::new("Drops", about)
        .at(NavItem::Drops)
        .bar(bar)
        .styles(&["components.css", "drops.css"])
        .scripts(&["drops.js"])
        .show(viewer, main)
}

/// Input of the markup functions.
struct Shown {
    state: DropsParams,
    not_understood: Option<NotUnderstood>,
    /// The notice of the action that led here.
    notice: Markup,
    /// Whether the plan includes CSV exports.
    exports: bool,
    /// Offset from which the viewer sees no rows.
    depth: u32,
    today: Day,
    now: Now,
    /// Checks, and the account that may have asked for some; `None` if they are off.
    checks: Option<(Arc<Checks>, AccountId)>,
    columns: Columns,
    /// The facts that rows show.
    facts: ShownFacts,
    /// All facts that the viewer may see.
    visible: VisibleFacts,
    part: RowsPart,
    /// Watches, rules and claims of the viewer; `None` if not logged in.
    owned: Option<Arc<UserData>>,
    /// The visit of the viewer.
    visit: Option<Visit>,
    hidden: HiddenRows,
}

/// The text of the query bar that is not understood, and the reason as a sentence.
struct NotUnderstood {
    text: String,
    why: String,
}

/// Rows of a page to render.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowsPart {
    First,
    /// The rows after the first ones.
    Rest,
    All,
}

impl RowsPart {
    /// Whether the row at this place of the page, from 0, is one of them.
    fn has(self, place: u32) -> bool {
        match self {
            RowsPart::First => place < FIRST_ROWS,
            RowsPart::Rest => place >= FIRST_ROWS,
            RowsPart::All => true,
        }
    }
}

/// Names that the viewer hid.
struct HiddenRows {
    /// Whether hidden names are shown nevertheless.
    are_shown: bool,
    /// Number of rows of this page left out so far.
    left_out: Cell<u32>,
}

impl Shown {
    /// Returns the filter of a state. Resolves its conditions on the facts that the viewer sees, which are joined
    /// with the index, and on the lists that the viewer has seen.
    ///
    /// # Errors
    /// An invalid parameter.
    fn filter(
        &self,
        app: &App,
        index: &Index,
        state: &DropsParams,
        today: Day,
    ) -> Result<DropFilter, ApiError> {
        let mut filter = state.filter(today)?;
        new::apply(state, self.owned.as_deref(), self.visit, &mut filter)?;
        app.facts.apply_drops(index, || self.visible.clone(), &mut filter, today)?;
        Ok(filter)
    }

    /// The only day on which names of the list are released, if its filters leave one.
    fn release_day(&self) -> Option<Day> {
        let day_of = |name| Day::parse_from(self.state.get(name), self.today).ok();
        day_of("release_from").filter(|from| day_of("release_to") == Some(*from))
    }

    /// The result of the last check of a name, while it is kept, if the viewer asked for it.
    fn checked(&self, name: &str) -> Option<Checked> {
        let (checks, account) = self.checks.as_ref()?;
        checks.result(*account, &DomainName::parse(name).ok()?)
    }

    /// Whether the viewer has hidden a name.
    fn hides(&self, name: &str) -> bool {
        let owned = self.owned.as_deref().filter(|owned| owned.hidden_count() > 0);
        owned.is_some_and(|owned| DomainName::parse(name).is_ok_and(|name| owned.hides(&name)))
    }
}

/// Results of the index for a page.
struct DropsResults<'a> {
    listing: Listing<'a>,
    /// The newest list.
    batch: u64,
    /// Number of listed names that are new since the last visit.
    new_names: Total,
    /// The tabs that the viewer sees, in their order.
    tabs: Vec<TabPlace>,
    /// Number of releases on each of the next days; empty on other tabs.
    days: Vec<(Day, Total)>,
    facets: Vec<(Facet, Vec<FacetValue>)>,
    /// Whether no number of the facets is an estimate.
    facets_are_exact: bool,
    /// Number of adult names that the list omits, if that is known without counting.
    adult: u32,
    /// If no name matches: filters whose removal would show names, with the number of names.
    ways: Vec<(words::Chip, Total)>,
}

impl DropsResults<'_> {
    /// Number of names on all pages of the list.
    fn total(&self) -> Total {
        match &self.listing {
            Listing::Digest(_) => self.soon(),
            Listing::Rows { total, .. } => *total,
        }
    }

    /// Number of matching names that drop soon.
    fn soon(&self) -> Total {
        let soon = self.tabs.iter().find(|it| it.tab == Tab::Soon);
        soon.map_or(Total::Exact(0), |it| it.names)
    }
}

/// A tab with the names that its link shows.
struct TabPlace {
    tab: Tab,
    state: DropsParams,
    names: Total,
}

enum Listing<'a> {
    /// The best names of each of the next days.
    Digest(Vec<BestOfDay<'a>>),
    Rows {
        /// `None` beyond the viewer's limit.
        page: Option<DropsPage<'a>>,
        sort: Sort,
        offset: u32,
        total: Total,
    },
}

impl Listing<'_> {
    /// Number of rows on this page.
    fn rows(&self) -> u32 {
        match self {
            Listing::Digest(best) => best.iter().map(|best| best.page.count()).sum(),
            Listing::Rows { page, .. } => page.as_ref().map_or(0, DropsPage::count),
        }
    }
}

struct BestOfDay<'a> {
    day: Day,
    page: DropsPage<'a>,
    total: Total,
    /// Number of names with a high score.
    high: Total,
}

/// Tabs of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tab {
    Soon,
    Dropped,
    Redemption,
    /// Offers of auction houses.
    Auctions,
    AllStages,
}

impl Tab {
    const ALL: [Tab; 5] = [Tab::Soon, Tab::Dropped, Tab::Redemption, Tab::Auctions, Tab::AllStages];

    fn word(self) -> &'static str {
        match self {
            Tab::Soon => "Dropping soon",
            Tab::Dropped => "Just dropped",
            Tab::Redemption => "In redemption",
            Tab::Auctions => "Auctions",
            Tab::AllStages => "All stages",
        }
    }

    /// Returns the tab of a state; `None` for another part of the list, such as one with an
    /// additional stage.
    fn of(state: &DropsParams) -> Option<Tab> {
        match (state.get("stage"), state.get("view")) {
            ("catchable", _) => Some(Tab::Dropped),
            ("redemption", _) => Some(Tab::Redemption),
            ("", AUCTIONS) => Some(Tab::Auctions),
            ("", "all") => Some(Tab::AllStages),
            ("", "") => Some(Tab::Soon),
            _ => None,
        }
    }

    /// Returns the filters of `state` on this tab; `None` if the viewer does not see it.
    fn with(self, state: &DropsParams, visible: &VisibleFacts) -> Option<DropsParams> {
        // The columns of auctions belong to their tab.
        let is_left = Tab::of(state) == Some(Tab::Auctions);
        let without: &[_] = if is_left { &[(FACTS, ""), (COLUMNS, "")] } else { &[] };
        let state = state.anywhere().with(without);
        Some(match self {
            Tab::Soon => state,
            Tab::Dropped => state.with(&[("stage", "catchable")]),
            Tab::Redemption => state.with(&[("stage", "redemption")]),
            Tab::Auctions => {
                visible.names().iter().find(|name| *name == AUCTION_END)?;
                let sort = format!("fact:{AUCTION_END}");
                let state = state.with(&[("view", AUCTIONS), ("sort", &sort), ("order", "asc")]);
                sets::markets(&state, visible)
            }
            Tab::AllStages => state.with(&[("view", "all")]),
        })
    }
}

/// Returns the filter of the releases from `first` to `last`, with the conditions of `filter`.
fn soon(filter: &DropFilter, first: Day, last: Day) -> DropFilter {
    part(filter, View::Active, DayRange { from: Some(first), to: Some(last) })
}

/// Returns the conditions of `filter` on another part of the list.
fn part(filter: &DropFilter, view: View, release: DayRange) -> DropFilter {
    let mut filter = DropFilter { view, offset: 0, ..filter.clone() };
    (filter.common.drop.release, filter.common.drop.dropped) =
        (release.into(), DayRange::default());
    filter
}

/// Returns the facets of the sidebar, in order.
const FACETS: [Facet; 6] =
    [Facet::DqsBand, Facet::SuffixRank, Facet::Tld, Facet::Length, Facet::Kind, Facet::Language];

fn find<'a>(
    app: &App,
    index: &'a Index,
    shown: &Shown,
    as_of: AsOf,
    timer: QueryTimer,
) -> Result<DropsResults<'a>, ApiError> {
    let (state, today) = (&shown.state, as_of.today);
    let filter = shown.filter(app, index, &state.listed(), today)?;
    let mut tabs = Vec::with_capacity(Tab::ALL.len());
    for tab in Tab::ALL {
        let Some(state) = tab.with(state, &shown.visible) else { continue };
        let filter = shown.filter(app, index, &state.listed(), today)?;
        let names = index.estimate_drops(&filter, as_of)?;
        tabs.push(TabPlace { tab, state, names });
    }
    let facets = index.facets(&filter, &FACETS, as_of, Counting::Estimate)?;
    let listing = listing(index, shown, &filter, as_of)?;
    let mut days = Vec::new();
    match &listing {
        Listing::Digest(best) => days.extend(best.iter().map(|best| (best.day, best.total))),
        Listing::Rows { .. } if Tab::of(state) == Some(Tab::Soon) => {
            for day in coming(today) {
                days.push((day, index.estimate_drops(&soon(&filter, day, day), as_of)?));
            }
        }
        Listing::Rows { .. } => {}
    }
    timer.finish(listing.rows() as usize, &filter);
    let facets_are_exact = facets.are_exact;
    let facets = FACETS.into_iter().zip(facets.values).collect();
    let is_part = filter.contains.is_none() && filter.common == Filter::default();
    let is_counted = is_part && filter.view.place().is_some();
    let adult = if is_counted { index.overview(as_of).adult(filter.view) } else { 0 };
    let batch = index.manifest().batches;
    let since = shown.visit.and_then(|visit| visit.since).filter(|(_, seen)| *seen < batch);
    let new_names = match since.filter(|_| state.get(NEW).is_empty()) {
        Some((_, seen)) => {
            let mut filter = filter;
            filter.common.drop.after_batch = Some(seen);
            index.estimate_drops(&filter, as_of)?
        }
        None => Total::Exact(0),
    };
    let mut results = DropsResults {
        listing,
        batch,
        new_names,
        tabs,
        days,
        facets,
        facets_are_exact,
        adult,
        ways: Vec::new(),
    };
    if results.total().count() == 0 {
        results.ways = ways_out(app, index, shown, as_of)?;
    }
    Ok(results)
}

/// Finds only the rows of a page.
fn find_rows<'a>(
    app: &App,
    index: &'a Index,
    shown: &Shown,
    as_of: AsOf,
    timer: QueryTimer,
) -> Result<Listing<'a>, ApiError> {
    let filter = shown.filter(app, index, &shown.state.listed(), as_of.today)?;
    let listing = listing(index, shown, &filter, as_of)?;
    timer.finish(listing.rows() as usize, &filter);
    Ok(listing)
}

fn listing<'a>(
    index: &'a Index,
    shown: &Shown,
    filter: &DropFilter,
    as_of: AsOf,
) -> Result<Listing<'a>, QueryError> {
    if shown.state.is_digest() {
        let best = coming(as_of.today).map(|day| best_of_day(index, filter, day, as_of));
        return Ok(Listing::Digest(best.collect::<Result<_, _>>()?));
    }
    let page = (filter.offset < shown.depth)
        .then(|| index.drops(filter, as_of, Counting::Estimate))
        .transpose()?;
    let total = match page.as_ref().and_then(|page| page.total) {
        Some(total) => total,
        None => index.estimate_drops(filter, as_of)?,
    };
    // A member can select every name of a search if their number is exact and small.
    let total = match total {
        Total::About(names) if shown.owned.is_some() && names as usize <= 2 * bulk::NAMES_MAX => {
            Total::Exact(index.count_drops(filter, as_of)?)
        }
        total => total,
    };
    Ok(Listing::Rows { page, sort: filter.sort, offset: filter.offset, total })
}

/// Returns the days of the tab *Dropping soon*.
fn coming(today: Day) -> impl Iterator<Item = Day> {
    (1..=DAYS_AHEAD).map(move |ahead| today.plus(ahead))
}

fn best_of_day<'a>(
    index: &'a Index,
    filter: &DropFilter,
    day: Day,
    as_of: AsOf,
) -> Result<BestOfDay<'a>, QueryError> {
    let mut filter = DropFilter { limit: BEST_OF_DAY, ..soon(filter, day, day) };
    let page = index.drops(&filter, as_of, Counting::Estimate)?;
    let total = page.total.unwrap_or(Total::Exact(0));
    let least = Dqs::clamped(HIGH.into());
    filter.common.min_dqs = filter.common.min_dqs.max(least);
    let high = match total.count() == 0 || filter.common.max_dqs < least {
        true => Total::Exact(0),
        false => index.estimate_drops(&filter, as_of)?,
    };
    Ok(BestOfDay { day, page, total, high })
}

/// Returns the active filters, each with the number of names without it, highest first.
fn ways_out(
    app: &App,
    index: &Index,
    shown: &Shown,
    as_of: AsOf,
) -> Result<Vec<(words::Chip, Total)>, ApiError> {
    let (state, mut ways) = (&shown.state, Vec::new());
    for chip in words::chips(state, Some(as_of.today)) {
        let without = chips::without(state, &chip).listed();
        let filter = shown.filter(app, index, &without, as_of.today)?;
        let count = index.estimate_drops(&filter, as_of)?;
        if count.count() > 0 {
            ways.push((chip, count));
        }
    }
    ways.sort_by_key(|(_, count)| std::cmp::Reverse(count.count()));
    Ok(ways)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_the_names_that_its_link_shows() {
        let today: Day = "2026-11-22".parse().expect("a day");
        let rows = |filter: DropFilter| (filter.common, filter.view, filter.contains);
        let place = "view=today&sort=length&dropped_to=today&offset=100";
        let filters = "tld=com&min_dqs=40&q=shop&listed_since=2026-11-01";
        for query in [filters.to_owned(), format!("{filters}&{place}")] {
            let state = DropsParams::of(&Fields::from_query(Some(&query)));
            let filter = state.listed().filter(today).expect("valid");
            let day = today.plus(3);
            let shown = state.on_day(day).filter(today).expect("valid");
            assert_eq!(rows(soon(&filter, day, day)), rows(shown), "{query}");
        }
    }

    #[test]
    fn a_tab_is_where_its_link_leads() {
        let visible = VisibleFacts::default();
        for query in ["tld=com&offset=100", "view=auctions&sort=fact:market.ends&facts=market.name"]
        {
            let state = DropsParams::of(&Fields::from_query(Some(query)));
            for tab in Tab::ALL.into_iter().filter(|tab| *tab != Tab::Auctions) {
                let there = tab.with(&state, &visible).expect("all see it");
                assert_eq!((Tab::of(&there), there.get(FACTS)), (Some(tab), ""), "{query}");
            }
            assert_eq!(Tab::Auctions.with(&state, &visible), None, "no source is here");
        }
    }
}
