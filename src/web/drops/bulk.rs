//! Bulk actions on the selected names of the list, or on all names that a search finds. The form
//! contains the search, so that it covers the same names on every page of the list, even without
//! scripts.

use axum::extract::{RawQuery, State as WebState};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

use crate::Web;
use crate::components::{grouped, total, totalled};
use crate::drops::csv::NotedFile;
use crate::drops::state::DropsParams;
use crate::drops::{Shown, columns, new};
use crate::edge::csv::csv_header;
use crate::edge::error::Refusal;
use crate::edge::export::{Export, export_names};
use crate::error::PageError;
use crate::form::{Fields, Form, LargeForm};
use crate::fragment::{Wanted, wanted};
use crate::index::Total;
use crate::index::filter::{Counting, DropFilter};
use crate::layout::NavItem;
use crate::logged_in::LoggedIn;
use crate::owned::for_excel;
use crate::query::params::Params;
use crate::service::error::ApiError;
use crate::service::marks::{self, Mark};
use crate::service::watchlist::watch_all;
use crate::service::work;
use crate::undo::{self, Acting};
use crate::vocab::limits::{
    EXPORT_ROWS_MAX, VENUE_CHARS_MAX, WATCH_NOTE_CHARS_MAX, WATCHES_PASTED_MAX,
};
use crate::vocab::name::DomainName;
use crate::vocab::named::{named_enum, parse_named};
use crate::watchlist::{MAX_BID_LABEL, added_notes, asking, next, parse_name};

/// Maximum names of a search to change at once.
pub const NAMES_MAX: usize = WATCHES_PASTED_MAX;
/// Tooltip of the buttons that copy names.
const COPY_TITLE: &str =
    "A name a line, for the bulk forms of DropCatch, NameJet, SnapNames, Dynadot and Gname";
/// The value of the field `mark` that withdraws marks.
pub const NO_MARK: &str = "none";

named_enum! {
    /// A completed bulk action, as named in the redirect after the form.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Done {
        Watched = "watched",
        Hidden = "hidden",
        Shown = "shown",
        Marked = "marked",
        Unmarked = "unmarked",
    }
}
parse_named!(Done);

impl Done {
    fn text(self, names: u32) -> String {
        let names_are = match names {
            1 => "1 name is".to_owned(),
            _ => format!("{} names are", grouped(names.into())),
        };
        match self {
            Done::Watched => format!("{names_are} on your watchlist now."),
            Done::Hidden => format!("{names_are} hidden now."),
            Done::Shown => format!("{names_are} shown again."),
            Done::Marked => format!("{names_are} marked now."),
            Done::Unmarked => format!("{names_are} without a mark now."),
        }
    }

    /// Returns the response to a form about `names` names: a redirect to its page, with a notice if the
    /// form belongs to a list. Scripts get 204.
    fn response(
        self,
        acting: &Acting<'_>,
        headers: &HeaderMap,
        fields: &Fields,
        names: usize,
    ) -> Response {
        if wanted(headers) != Wanted::Page {
            return acting.no_content();
        }
        let is_list = fields.all("search").next().is_some();
        let names = names.to_string();
        let said = [("done", self.as_str()), ("names", names.as_str())];
        acting.redirect(next(fields), if is_list { &said } else { &[] })
    }
}

/// Renders the notice of the action that led to this `page`, from the query string.
pub fn notice(sent: &Fields, page: &str) -> Markup {
    let done = sent.text("done").parse::<Done>().ok().zip(sent.text("names").parse().ok());
    undo::shown(sent, page, done.map(|(done, names)| done.text(names)).as_deref())
}

/// Renders the form for selected names, which appears when a name is selected. `names` match the
/// search.
pub(super) fn form(shown: &Shown, names: Total) -> Markup {
    let listed = shown.state.listed().with(&[("limit", "")]).path();
    let search = listed.strip_prefix("/?").unwrap_or_default();
    html! {
        form #bulk.bulk method="post" action="/watch" autocomplete="off" aria-label="Selected names" {
            input type="hidden" name="next" value=(shown.state.path());
            span.picked role="status" { "Selected names" }
            @if shown.owned.is_some() {
                input type="hidden" name="search" value=(search);
                @if shown.hidden.are_shown { input type="hidden" name="hidden" value="show"; }
                @if names.count() > 0 { (every(names)) }
            }
            button { "Watch" }
            @if shown.owned.is_some() {
                label { "Tags " input #tags name="tags" maxlength="400" autocapitalize="none" placeholder="flip, garden"; }
                label { (MAX_BID_LABEL) " " input #bid name="bid" inputmode="decimal" maxlength="16"; }
                label { "Venue " input name="venue" maxlength=(VENUE_CHARS_MAX) autocapitalize="none"; }
                label { "Note " input name="note" maxlength=(WATCH_NOTE_CHARS_MAX); }
                button { "Save notes" }
                @if shown.hidden.are_shown { button formaction="/unhide" { "Unhide" } }
                @else { button formaction="/hide" { "Hide" } }
                button formaction="/mark" name="mark" value=(Mark::Clean) { "Mark clean" }
                button formaction="/mark" name="mark" value=(Mark::Spam) { "Mark spam" }
                button formaction="/mark" name="mark" value=(NO_MARK) { "Unmark" }
                button formaction="/checks" { "Check now" }
                button #copy formaction="/selected.txt" title=(COPY_TITLE) { "Copy" }
                button.copy formaction="/selected.txt?with=bid" title={ (COPY_TITLE) ", with your maximum bids" } { "Copy with bids" }
                @if shown.exports {
                    button formaction="/selected.csv" { "CSV" }
                    button formaction=(for_excel("/selected.csv")) { "CSV for Excel" }
                }
            } @else { button.needs-js #copy type="button" { "Copy" } }
            button.needs-js #clear type="reset" { "Clear" }
        }
    }
}

/// Renders the box that selects every name of the search, on all pages.
fn every(names: Total) -> Markup {
    let is_possible = names.is_exact() && names.count() as usize <= NAMES_MAX;
    html! {
        label.every {
            input #every type="checkbox" name="all" value="yes" data-total=(names.count()) disabled[!is_possible];
            "All " (total(names))
            @if !is_possible {
                span.why-not { ": at most " (grouped(NAMES_MAX as u64)) " at once, narrow the filters or export" }
            }
        }
    }
}

/// Returns the names that a form refers to: those in its field `domain`, or all names that its search
/// finds now, except those that the page omitted as hidden.
///
/// # Errors
/// 400 for an invalid name or search, and if more names match than are changed at once.
pub async fn names(
    web: &Web,
    member: &LoggedIn,
    fields: &Fields,
) -> Result<Vec<DomainName>, PageError> {
    if fields.text("all") != "yes" {
        return fields.all("domain").map(parse_name).collect();
    }
    let state = DropsParams::of(&Fields::from_query(Some(fields.text("search"))));
    let shows_hidden = fields.text("hidden") == "show";
    let (index, as_of) = (web.app.live.current(), web.app.as_of(member.viewer.now));
    let (owned, app) = (web.user_data(member), web.app.clone());
    let find = move || {
        let filter = state.filter(as_of.today)?;
        let mut filter = DropFilter { limit: NAMES_MAX as u32, offset: 0, ..filter };
        new::apply(&state, Some(&owned), owned.visit(), &mut filter)?;
        app.apply_drop_facts(&index, &mut filter, as_of.today)?;
        let page = index.drops(&filter, as_of, Counting::Estimate)?;
        if let Some(names) = page.total.filter(|_| page.next.is_some()) {
            return Err(too_many(names));
        }
        let mut names = Vec::with_capacity(page.count() as usize);
        page.for_each(|row| names.extend(DomainName::parse(row.name)));
        names.retain(|name| shows_hidden || !owned.hides(name));
        Ok(names)
    };
    Ok(work::scan(find).await?)
}

fn too_many(names: Total) -> ApiError {
    let (count, most) = (totalled(names, "name"), grouped(NAMES_MAX as u64));
    let rows = grouped(EXPORT_ROWS_MAX.into());
    let what = format!(
        "the search finds {count}, and at most {most} are changed at once; narrow the filters, or export up to {rows} as CSV"
    );
    ApiError::parameter("all", what)
}

/// `POST /watch`: adds names from any page.
pub async fn watch(
    WebState(web): WebState<Web>,
    member: LoggedIn,
    headers: HeaderMap,
    Form(fields): LargeForm<Fields>,
) -> Result<Response, PageError> {
    let mut patch = added_notes(&fields)?;
    let names = names(&web, &member, &fields).await?;
    let changes = names.iter().map(|name| (name, &patch));
    let asking = asking(&member, NavItem::Drops, "/watch", &fields);
    patch.keeps = match asking.about_changes(&web.user_data(&member), changes) {
        Ok(keeps) => keeps,
        Err(question) => return Ok(question.into_response()),
    };
    let count = names.len();
    let names = names.into_iter().map(|name| (name, patch.clone())).collect();
    let acting = Acting::new(&web, &member)?;
    let outcomes = watch_all(&web.app, &acting.caller, names, member.viewer.now).await?;
    // The names up to the limit were added.
    outcomes.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(Done::Watched.response(&acting, &headers, &fields, count))
}

/// `POST /hide`: hides names in lists.
pub async fn hide(
    WebState(web): WebState<Web>,
    member: LoggedIn,
    headers: HeaderMap,
    Form(fields): LargeForm<Fields>,
) -> Result<Response, PageError> {
    let names = names(&web, &member, &fields).await?;
    let count = names.len();
    let acting = Acting::new(&web, &member)?;
    web.app.store.hide(&acting.caller, names).await.map_err(ApiError::from)?;
    Ok(Done::Hidden.response(&acting, &headers, &fields, count))
}

/// `POST /unhide`: shows names in lists again.
pub async fn unhide(
    WebState(web): WebState<Web>,
    member: LoggedIn,
    headers: HeaderMap,
    Form(fields): LargeForm<Fields>,
) -> Result<Response, PageError> {
    let names = names(&web, &member, &fields).await?;
    let count = names.len();
    let acting = Acting::new(&web, &member)?;
    web.app.store.unhide_all(&acting.caller, names).await.map_err(ApiError::from)?;
    Ok(Done::Shown.response(&acting, &headers, &fields, count))
}

/// `POST /mark`: marks names from any page as clean or spam, or withdraws their marks.
pub async fn mark(
    WebState(web): WebState<Web>,
    member: LoggedIn,
    headers: HeaderMap,
    Form(fields): LargeForm<Fields>,
) -> Result<Response, PageError> {
    let mark = match fields.text("mark") {
        NO_MARK => None,
        text => Some(text.parse().map_err(|_| {
            ApiError::parameter(
                "mark",
                format!("must be one of {}, {NO_MARK}", Mark::NAMES.join(", ")),
            )
        })?),
    };
    let names = names(&web, &member, &fields).await?;
    let count = names.len();
    let acting = Acting::new(&web, &member)?;
    marks::mark(&web.app, &acting.caller, names, mark, member.viewer.now).await?;
    let done = if mark.is_some() { Done::Marked } else { Done::Unmarked };
    Ok(done.response(&acting, &headers, &fields, count))
}

/// `POST /selected.csv`: the names with the columns on the screen, dates and notes, in the order of the
/// list, with `bom=true` for Excel. Counts as an export.
pub async fn csv(
    WebState(web): WebState<Web>,
    member: LoggedIn,
    headers: HeaderMap,
    export: Result<Export, Refusal>,
    RawQuery(query): RawQuery,
    Form(fields): LargeForm<Fields>,
) -> Result<Response, PageError> {
    let bom = Params::new(query.as_deref()).flag("bom")?;
    let names = names(&web, &member, &fields).await?;
    let search = DropsParams::of(&Fields::from_query(Some(fields.text("search"))));
    let owned = web.user_data(&member);
    let columns = search.columns().unwrap_or_else(|| columns::chosen(Some(&owned), &headers));
    let visible = web.app.facts.visible(Some(&owned));
    let facts = visible.shown(&search.fact_names()?)?.exported();
    let checks = web.app.reach.checks.clone().map(|checks| (checks, member.caller.account));
    let file = NotedFile::new(&columns, facts, owned, checks);
    let header = csv_header(file.header(), bom);
    Ok(export_names(&web.app, export?, names, header, move |row, out| file.push(row, out)).await?)
}

/// `POST /selected.txt`: the names, one per line, for copying and for the forms of venues that take many
/// names. With `with=bid`, each line has the maximum bid of the watchlist after a comma, if there is one.
pub async fn text(
    WebState(web): WebState<Web>,
    member: LoggedIn,
    RawQuery(query): RawQuery,
    Form(fields): LargeForm<Fields>,
) -> Result<Response, PageError> {
    let names = names(&web, &member, &fields).await?;
    let owned = web.user_data(&member);
    let has_bids = Params::new(query.as_deref()).get("with")? == Some("bid");
    let bid = |name| owned.watch_details(name).and_then(|details| details.max_bid);
    let line = |name| match bid(name).filter(|_| has_bids) {
        Some(bid) => format!("{name},{bid}\n"),
        None => format!("{name}\n"),
    };
    let lines: String = names.iter().map(line).collect();
    Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], lines).into_response())
}
