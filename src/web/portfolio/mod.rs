//! `/portfolio`: backorder claims with their cost and revenue.

mod currency;
mod form;
mod import;
mod page;
mod summary;

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts, RawQuery, State};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use maud::Markup;

use crate::Web;
use crate::accounts::{Claim, ClaimPatch, Post, Store, UserData};
use crate::components::query;
use crate::confirm::Asking;
use crate::error::PageError;
use crate::field::FormError;
use crate::form::{Fields, Form, LargeForm};
use crate::index::Index;
use crate::index::filter::AsOf;
use crate::layout::NavItem;
use crate::logged_in::LoggedIn;
use crate::notice::Notice;
use crate::owned::{ROW_LIMITS, idempotent_post, path_param};
use crate::query::params::Params;
use crate::service::error::ApiError;
use crate::service::portfolio::{ClaimFilter, claims_cost_us};
use crate::service::receipt;
use crate::service::work;
use crate::undo::Acting;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::expected_taken::ExpectedTaken;
use crate::vocab::ids::ClaimId;
use crate::vocab::money::Currency;
use crate::vocab::name::DomainName;
use crate::vocab::release_time::ReleaseTime;
use form::ClaimForm;
use summary::{GroupBy, HowSoon, KnownName, Summary};

/// Path of the page.
const PATH: &str = "/portfolio";
const CURRENCY_PATH: &str = "/portfolio/currency";
const IMPORT_PATH: &str = "/portfolio/import";

const ADDED: Notice = Notice::new("added", "Claim added.");
const SAVED: Notice = Notice::new("saved", "Claim saved.");
const DECIDED: Notice =
    Notice::new("decided", "Decision saved. You are not reminded of this renewal.");
const REMOVED: Notice = Notice::new("removed", "Claim deleted.");
const CURRENCY_SAVED: Notice = Notice::new("currency", "Currency and rates saved.");
const IMPORTED: Notice = Notice::new("imported", "The file is imported.");
const NOTICES: [Notice; 6] = [ADDED, SAVED, REMOVED, CURRENCY_SAVED, IMPORTED, DECIDED];

/// Fields with prices, and their labels.
const PRICES: [(&str, &str); 5] = [
    ("bid", "Your bid"),
    ("acquired", "Cost"),
    ("renewal", "Renewal fee"),
    ("resale", "Sold for"),
    ("commission", "Commission"),
];

/// Routes of the portfolio.
pub fn routes() -> Router<Web> {
    Router::new()
        .route(PATH, get(list_claims))
        .route("/portfolio/new", get(new_claim).post(add))
        .route(IMPORT_PATH, get(import::show).post(import::preview))
        .route("/portfolio/import/save", post(import::save))
        .route(CURRENCY_PATH, get(currency::show).post(currency::save))
        .route("/portfolio/{id}", get(show_claim).post(save))
        .route("/portfolio/{id}/renewal", post(decide))
        .route("/portfolio/{id}/delete", get(confirm_delete).post(remove))
}

/// The days in which the claims of a page were added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Period {
    from: Option<Day>,
    /// The last day.
    through: Option<Day>,
}

impl Period {
    /// Parses a query string: `from` and `to` as in the API, or `through` for the last day itself.
    fn parse(fields: &Fields) -> Result<Period, ApiError> {
        let day = |name: &'static str| match fields.text(name) {
            "" => Ok(None),
            text => text.parse::<Day>().map(Some).map_err(|err| ApiError::parameter(name, err)),
        };
        let through = day("through")?.or(day("to")?.map(|to| to.plus(-1)));
        Ok(Period { from: day("from")?, through })
    }

    /// The month or year (`%Y-%m`, `%Y`) of a day.
    fn of(format: &str, today: Day) -> Period {
        let of = |day: Day| day.start().format(format).to_string();
        let days = |step: i32| (0..366).map(move |at| today.plus(at * step));
        let last = |step| days(step).take_while(|day| of(*day) == of(today)).last();
        Period { from: last(-1), through: last(1) }
    }

    /// The parameters of the API.
    fn parameters(self) -> [(&'static str, String); 2] {
        let text = |day: Option<Day>| day.map(|day| day.to_string()).unwrap_or_default();
        [("from", text(self.from)), ("to", text(self.through.map(|day| day.plus(1))))]
    }
}

/// Claims that match a filter, with their sums.
struct ClaimsPage {
    filter: ClaimFilter,
    period: Period,
    by: GroupBy,
    owned: Arc<UserData>,
    today: Day,
    summary: Summary,
    /// Claims of the page.
    claims: Vec<Claim>,
}

impl ClaimsPage {
    /// Appends this filter, the grouping and the offset to `path`.
    fn address(&self, path: &str, by: Option<GroupBy>, offset: u32) -> String {
        self.address_in(self.period, path, by, offset)
    }

    /// As [`ClaimsPage::address`], in another period.
    fn address_in(&self, period: Period, path: &str, by: Option<GroupBy>, offset: u32) -> String {
        let by = by.filter(|by| *by != GroupBy::default()).map(GroupBy::as_str).unwrap_or_default();
        let statuses: Vec<_> =
            self.filter.statuses().iter().map(|status| status.as_str()).collect();
        let [from, to] = period.parameters();
        let parameters = [
            ("status", statuses.join(",")),
            from,
            to,
            ("by", by.to_owned()),
            ("offset", query::offset(offset)),
        ];
        query::with(&parameters.each_ref().map(|(name, value)| (*name, value.as_str())), path)
    }

    /// The periods that links lead to.
    fn usual_periods(&self) -> [(&'static str, Period); 3] {
        [
            ("This month", Period::of("%Y-%m", self.today)),
            ("This year", Period::of("%Y", self.today)),
            ("All", Period::default()),
        ]
    }

    fn is_custom(&self) -> bool {
        self.usual_periods().iter().all(|(_, period)| *period != self.period)
    }

    fn is_filtered(&self) -> bool {
        !self.filter.statuses().is_empty() || self.period != Period::default()
    }
}

/// The editor of a claim, which is new or the one in the path.
struct EditorPage {
    web: Web,
    member: LoggedIn,
    owned: Arc<UserData>,
    /// The claim that is edited; `None` for a new one.
    claim: Option<Claim>,
    form: ClaimForm,
}

impl FromRequestParts<Web> for EditorPage {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, web: &Web) -> Result<EditorPage, PageError> {
        let member = LoggedIn::from_request_parts(parts, web).await?;
        let id = path_param(parts, "id", ClaimId::parse).await?;
        let owned = web.user_data(&member);
        let claim = owned.claim(id).ok_or(ApiError::NotFound)?.clone();
        let form = ClaimForm::for_claim(&claim, owned.money().currency);
        Ok(EditorPage { web: web.clone(), member, owned, claim: Some(claim), form })
    }
}

impl EditorPage {
    fn for_new(web: Web, member: LoggedIn, form: ClaimForm) -> EditorPage {
        let owned = web.user_data(&member);
        EditorPage { web, member, owned, claim: None, form }
    }

    /// Redirects to the list, or shows the form again with the error.
    fn finish<T>(&self, result: Result<T, ApiError>, notice: Notice) -> Response {
        let Err(err) = result else { return notice.at(PATH).into_response() };
        let error = FormError::new(err, ClaimForm::field_of);
        let page = page::editor(self, Some(&error));
        error.into_page(page)
    }
}

/// `GET /portfolio`.
async fn list_claims(
    State(web): State<Web>,
    member: LoggedIn,
    RawQuery(query): RawQuery,
) -> Result<Markup, PageError> {
    let list = list(&web, &member, &Fields::from_query(query.as_deref())).await?;
    Ok(page::show(&member, &list, query.as_deref()))
}

/// `GET /portfolio/new`: an empty form, or one for the name in the link.
async fn new_claim(State(web): State<Web>, member: LoggedIn, RawQuery(query): RawQuery) -> Markup {
    let fields = Fields::from_query(query.as_deref());
    let domain = fields.text("domain").trim();
    let owned = web.user_data(&member);
    let watched = DomainName::parse(domain).ok().and_then(|name| owned.watch_details(&name));
    let form = match watched {
        Some(details) => ClaimForm::for_watched(domain, details, owned.money().currency),
        None => ClaimForm::blank(domain),
    };
    page::editor(&EditorPage::for_new(web, member, form), None)
}

/// `POST /portfolio/new`.
async fn add(
    State(web): State<Web>,
    member: LoggedIn,
    Form(fields): LargeForm<Fields>,
) -> Response {
    let usual = web.user_data(&member).money().currency;
    if let Some(question) = asking(&member, "/portfolio/new", &fields, usual).about_prices() {
        return question.into_response();
    }
    let post = idempotent_post(&fields, member.viewer.now);
    let page = EditorPage::for_new(web, member, ClaimForm::new(fields));
    let added = page.add(post).await;
    page.finish(added, ADDED)
}

/// Describes a form with the prices of a claim, which may have to be confirmed.
fn asking<'a>(
    member: &'a LoggedIn,
    path: &'a str,
    fields: &'a Fields,
    usual: Currency,
) -> Asking<'a> {
    let (item, currency) = (NavItem::Portfolio, Some(usual));
    Asking { member, item, path, back: PATH, fields, prices: &PRICES, currency }
}

/// `GET /portfolio/{id}`.
async fn show_claim(page: EditorPage) -> Markup {
    page::editor(&page, None)
}

/// `POST /portfolio/{id}`: saves the form.
async fn save(page: EditorPage, Form(fields): LargeForm<Fields>) -> Response {
    let path = format!("{PATH}/{}", page.claim.as_ref().map_or(0, |claim| claim.id.get()));
    let usual = page.owned.money().currency;
    if let Some(question) = asking(&page.member, &path, &fields, usual).about_prices() {
        return question.into_response();
    }
    let page = EditorPage { form: ClaimForm::new(fields), ..page };
    let saved = page.save().await;
    page.finish(saved, SAVED)
}

impl EditorPage {
    async fn add(&self, post: Post) -> Result<(), ApiError> {
        let claim = self.form.new_claim(self.owned.money().currency)?;
        let draft = self.web.app.store.add_claim(&self.member.caller, claim, post).await?;
        draft.respond(|claim| receipt::of_id(claim.id.get())).await?;
        Ok(())
    }

    async fn save(&self) -> Result<(), ApiError> {
        let claim = self.claim.as_ref().ok_or(ApiError::NotFound)?;
        let patch = self.form.patch(claim, self.owned.money().currency)?;
        let now = self.member.viewer.now.0;
        self.web.app.store.change_claim(&self.member.caller, claim.id, patch, now).await?;
        Ok(())
    }
}

/// `GET /portfolio/{id}/delete`.
async fn confirm_delete(page: EditorPage) -> Result<Markup, PageError> {
    let claim = page.claim.as_ref().ok_or(ApiError::NotFound)?;
    Ok(page::confirm_delete(&page.member, claim))
}

/// `POST /portfolio/{id}/delete`.
async fn remove(page: EditorPage) -> Result<Response, PageError> {
    let claim = page.claim.as_ref().ok_or(ApiError::NotFound)?;
    let acting = Acting::new(&page.web, &page.member)?;
    page.web.app.store.remove_claim(&acting.caller, claim.id).await?;
    Ok(acting.redirect(PATH, &[REMOVED.parameter()]))
}

/// `POST /portfolio/{id}/renewal`: keeps or drops the name at its next renewal, or takes that back.
async fn decide(page: EditorPage, Form(fields): Form<Fields>) -> Result<Redirect, PageError> {
    let id = page.claim.as_ref().ok_or(ApiError::NotFound)?.id;
    let decision = match fields.text("decision") {
        "" => None,
        text => Some(text.parse().map_err(|err| ApiError::parameter("decision", err))?),
    };
    let patch = ClaimPatch { decision: Some(decision), ..ClaimPatch::default() };
    let (caller, now) = (&page.member.caller, page.member.viewer.now.0);
    page.web.app.store.change_claim(caller, id, patch, now).await?;
    Ok(DECIDED.at(PATH))
}

/// Reads the claims for a query string. Forms send `status` once per checkbox; links contain one
/// list, as in the API.
async fn list(web: &Web, member: &LoggedIn, fields: &Fields) -> Result<ClaimsPage, PageError> {
    let period = Period::parse(fields)?;
    let [from, to] = period.parameters();
    let statuses = fields.all("status").collect::<Vec<_>>().join(",");
    let parameters = [
        ("status", statuses.as_str()),
        ("from", &from.1),
        ("to", &to.1),
        ("offset", fields.text("offset")),
    ];
    let filter = ClaimFilter::parse(Params::from_pairs(&parameters), ROW_LIMITS)?;
    let by = match fields.text("by") {
        "" => GroupBy::default(),
        text => text.parse().map_err(|err| ApiError::parameter("by", err))?,
    };
    let owned = web.user_data(member);
    let (index, as_of) = (web.app.live.current(), web.app.as_of(member.viewer.now));
    let store = web.app.store.clone();
    let list = work::run(claims_cost_us(&owned).saturating_mul(2), move || {
        let known = NamesOfDay { index: &index, as_of, store: &store, owned: &owned };
        let summary = Summary::new(filter.matching(&owned), by, &owned, &known);
        let claims = filter.page_of(&owned).cloned().collect();
        Ok(ClaimsPage { filter, period, by, owned, today: as_of.today, summary, claims })
    });
    Ok(list.await?)
}

/// The data of a day.
struct NamesOfDay<'a> {
    index: &'a Index,
    as_of: AsOf,
    store: &'a Store,
    owned: &'a UserData,
}

impl NamesOfDay<'_> {
    /// Returns how soon a name was registered, to the second. Its registry was asked for the account only if
    /// the account watches it.
    fn to_the_second(&self, name: &DomainName) -> Option<HowSoon> {
        self.owned.watch(name)?;
        let release = self.index.release_of(name.as_str())?;
        let registered = self.store.observations([name]).pop()??.registration.at?;
        let seconds = ReleaseTime::of(name.tld(), release).seconds_to(registered)?;
        HowSoon::of_seconds(seconds)
    }
}

impl KnownName for NamesOfDay<'_> {
    fn score(&self, name: &DomainName) -> Option<Dqs> {
        self.index.facts(name, self.as_of).map(|facts| facts.dqs)
    }

    fn taken(&self, name: &DomainName) -> Option<HowSoon> {
        let of_lists = || {
            let latest = self.index.drops_of(name).into_iter().next()?;
            latest.returned.map(|returned| HowSoon::Days(returned.time))
        };
        self.to_the_second(name).or_else(of_lists)
    }

    fn expected(&self, name: &DomainName) -> Option<ExpectedTaken> {
        let (expected, _) = self.index.expectation_of(name)?;
        Some(ExpectedTaken::of_share(expected.share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_begin_and_end_with_their_days() {
        let day = |text: &str| text.parse::<Day>().expect("a day");
        for (format, today, from, through) in [
            ("%Y-%m", "2028-02-15", "2028-02-01", "2028-02-29"),
            ("%Y-%m", "2026-12-31", "2026-12-01", "2026-12-31"),
            ("%Y", "2028-01-01", "2028-01-01", "2028-12-31"),
            ("%Y", "2026-12-31", "2026-01-01", "2026-12-31"),
        ] {
            let period = Period { from: Some(day(from)), through: Some(day(through)) };
            assert_eq!(Period::of(format, day(today)), period, "{today}");
        }
        let parse = |text| Period::parse(&Fields::from_query(Some(text)));
        let march = Period { from: Some(day("2026-03-01")), through: Some(day("2026-03-31")) };
        for text in ["from=2026-03-01&to=2026-04-01", "from=2026-03-01&through=2026-03-31&to="] {
            assert_eq!(parse(text).expect("a period"), march);
        }
        assert_eq!(march.parameters().map(|(_, day)| day), ["2026-03-01", "2026-04-01"]);
        assert!(parse("from=yesterday").is_err());
    }
}
