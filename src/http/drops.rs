//! `GET /api/v1/drops`.

use std::borrow::Cow;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::Uri;
use axum::response::Response;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::cursor::{self, QueryDigest};
use crate::edge::error::Refusal;
use crate::edge::etag::Tag;
use crate::fact_rows::{FactSourceResponse, push_fact_sources, push_facts, shown_facts};
use crate::index::filter::{Counting, DropFilter, Facet};
use crate::index::query::facets::CountedFacets;
use crate::index::query::rows::{DropRow, FacetValue};
use crate::index::{DropsPage, Total};
use crate::json;
use crate::json::{push_flag, push_member};
use crate::parse;
use crate::query::narrow::{self, Scope};
use crate::query::params::{Limits, Params};
use crate::query::request::FACT_SORT;
use crate::response::link_next;
use crate::rows::{
    DROP_JSON_BYTES, DROP_MEMBERS, JsonArray, Member, members, push_day, push_drops,
    push_json_text, tlds_json,
};
use crate::service::app::App;
use crate::service::app::Now;
use crate::service::error::ApiError;
use crate::service::fact_book::{ShownFacts, SourceColumn};
use crate::service::work;
use crate::telemetry::query::{QueryKind, QueryTimer};
use crate::vocab::day::Day;
use crate::vocab::fact::FactName;
use crate::vocab::limits::{DROPS_LIMIT_DEFAULT, DROPS_LIMIT_MAX};

const LIMITS: Limits = Limits { default: DROPS_LIMIT_DEFAULT, max: DROPS_LIMIT_MAX };

/// Bytes of a response without its rows and TLDs.
const FRAME_BYTES: usize = 512;
/// Estimated cost of a facet in microseconds, which is enough to need the blocking pool.
const FACET_US: u32 = 1_000;

/// `GET /api/v1/drops`: the ranked drop list.
pub async fn list_drops(
    State(app): State<App>,
    Extension(now): Extension<Now>,
    request: Request,
) -> Result<Response, Refusal> {
    let (index, as_of) = (app.live.current(), app.as_of(now));
    let parse = move |uri: &Uri| DropsRequest::parse(uri, as_of.today);
    let mut asked = parse::parameters(request.uri(), parse).await?;
    let mut used = Vec::new();
    if asked.needs_facts() {
        let visible = app.visible_facts();
        used = visible.resolve_drops(&mut asked.filter, as_of.today)?;
        asked.facts = visible.shown(&asked.fact_names)?;
        asked.fact_facets = visible.counted(&asked.counted_names)?;
        used.extend(asked.fact_facets.iter().map(|facet| Arc::clone(&facet.source)));
    }
    let editions: Vec<u64> =
        used.iter().map(|it| it.id().0).chain(asked.facts.editions()).collect();
    let tag = Tag::for_query(&index, as_of, request.uri(), &editions);
    if let Some(not_modified) = tag.not_modified(request.headers()) {
        return Ok(not_modified);
    }
    let timer = QueryTimer::start(if asked.filter.contains.is_some() {
        QueryKind::Substring
    } else {
        QueryKind::Drops
    });
    let facets_us = asked.facets.len() as u32 * FACET_US;
    let cost_us = index.drops_cost_us(&asked.filter, as_of, asked.counting) + facets_us;
    let scans = asked.filter.common.label.has_text() || !used.is_empty() || !asked.facts.is_empty();
    let make = move || {
        app.facts.join(&index, &used)?;
        let page = index.drops(&asked.filter, as_of, asked.counting)?;
        let facets = index.facets(&asked.filter, &asked.facets, as_of, asked.counting)?;
        let count = |facet: &SourceColumn| {
            Ok((facet.name.clone(), facet.count(&index, &asked.filter, as_of)?))
        };
        let of_facts = asked.fact_facets.iter().map(count).collect::<Result<_, ApiError>>()?;
        let response = DropsResponse::new(&asked, &page, facets, of_facts);
        let next = response.next_cursor.clone();
        let body = response.into_json();
        timer.finish(page.count() as usize, &asked.filter);
        Ok((body, next))
    };
    let found = work::run_or_scan(scans, cost_us, make).await;
    let found = found.map_err(|err| err.narrowed(|| narrowing(request.uri(), LIMITS, as_of.today)));
    let (body, next) = found?;
    let mut response = json::json_response(body);
    if let Some(cursor) = next {
        link_next(&mut response, request.uri(), ("cursor", &cursor));
    }
    Ok(tag.on(response))
}

/// A parsed request.
struct DropsRequest {
    filter: DropFilter,
    digest: QueryDigest,
    /// The members of each row.
    members: Cow<'static, [Member]>,
    /// Whether the response has `availableTlds`.
    has_tlds: bool,
    facets: Vec<Facet>,
    counting: Counting,
    /// Facts that rows show, by name and, once the caller is known, with their columns.
    fact_names: Vec<FactName>,
    facts: ShownFacts,
    /// Facts whose values are counted: their names and, once the caller is known, their columns.
    counted_names: Vec<FactName>,
    fact_facets: Vec<SourceColumn>,
}

impl DropsRequest {
    fn needs_facts(&self) -> bool {
        self.filter.needs_facts() || !self.fact_names.is_empty() || !self.counted_names.is_empty()
    }

    fn parse(uri: &Uri, today: Day) -> Result<DropsRequest, ApiError> {
        let params = Params::new(uri.query());
        let filter = cursor::page(&params, LIMITS, today)?;
        let (members, has_tlds) = match members(&params, "fields", Some("availableTlds"))? {
            Some((members, has_tlds)) => (Cow::Owned(members), has_tlds),
            None => (Cow::Borrowed(DROP_MEMBERS), filter.after.is_none()),
        };
        let (digest, facets) = (QueryDigest::of(&filter), params.facets()?);
        let counting = params.one("total")?.unwrap_or_default();
        let (fact_names, counted_names) = (params.fact_names()?, params.fact_facets()?);
        Ok(DropsRequest {
            filter,
            digest,
            members,
            has_tlds,
            facets,
            counting,
            fact_names,
            facts: ShownFacts::default(),
            counted_names,
            fact_facets: Vec::new(),
        })
    }
}

/// Returns what narrows a query of the drop list that exceeded its time budget.
pub fn narrowing(uri: &Uri, limits: Limits, today: Day) -> Option<String> {
    let filter = cursor::page(&Params::new(uri.query()), limits, today).ok()?;
    Some(narrow::advice(&filter.common, Scope::Drops))
}

/// A page of the ranked drop list.
#[derive(ToSchema)]
#[schema(as = Drops, rename_all = "camelCase")]
pub struct DropsResponse<'a> {
    /// The newest drop date in the corpus that is not after today.
    #[schema(value_type = String, format = Date)]
    date: Day,
    /// Number of rows on this page.
    count: u32,
    limit: u32,
    offset: u32,
    /// Number of names that pass the filters; `null` with `total=none`.
    #[schema(required)]
    total: Option<u32>,
    /// Whether `total` is exact, and no estimate. Estimates of more than 100,000 names are within 2 % for 99 of
    /// 100 filters, and equal for equal filters on the same day and generation.
    total_exact: bool,
    /// Cursor of the next page; `null` on the last.
    #[schema(required)]
    next_cursor: Option<String>,
    /// Number of the index generation that served the response.
    generation: u64,
    /// TLDs in the view before any other filter, sorted. Omitted on pages of a cursor, and if
    /// `fields` does not contain it.
    #[schema(value_type = Option<Vec<String>>, nullable = false)]
    available_tlds: Option<Cow<'a, str>>,
    /// Values of each requested facet by number of names, most frequent first.
    #[schema(value_type = Option<BTreeMap<String, Vec<FacetCount>>>, nullable = false)]
    facets: Vec<(Facet, Vec<FacetValue>)>,
    #[schema(ignore)]
    fact_facets: Vec<(FactName, Vec<(String, u32)>)>,
    /// Whether no number of the facets is an estimate.
    #[schema(value_type = Option<bool>, nullable = false)]
    facets_exact: bool,
    #[schema(value_type = Vec<SelectedDrop>)]
    drops: (&'a DropsPage<'a>, &'a [Member]),
    /// The sources of the facts that rows show; only with `facts`.
    #[schema(value_type = Option<Vec<FactSourceResponse<'static>>>, nullable = false)]
    fact_sources: &'a ShownFacts,
}

/// Schema of a row: all members of a drop, or those named by `fields`.
enum SelectedDrop {}

impl PartialSchema for SelectedDrop {
    fn schema() -> RefOr<Schema> {
        let mut schema = DropRow::schema();
        if let RefOr::T(Schema::Object(row)) = &mut schema {
            row.required.clear();
            row.properties.insert("facts".to_owned(), shown_facts());
            row.description = Some("All members of a drop, or those that `fields` names.".into());
        }
        schema
    }
}

impl ToSchema for SelectedDrop {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("SelectedDrop")
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        DropRow::schemas(schemas);
    }
}

/// A value of a facet.
#[derive(ToSchema)]
#[expect(dead_code, reason = "written by hand; the schema describes it")]
struct FacetCount {
    value: String,
    /// Number of names that pass all filters except those on this facet.
    count: u32,
}

impl<'a> DropsResponse<'a> {
    fn new(
        asked: &'a DropsRequest,
        page: &'a DropsPage<'a>,
        facets: CountedFacets,
        fact_facets: Vec<(FactName, Vec<(String, u32)>)>,
    ) -> DropsResponse<'a> {
        DropsResponse {
            date: page.date,
            count: page.count(),
            limit: asked.filter.limit,
            offset: asked.filter.offset,
            total: page.total.map(Total::count),
            total_exact: page.total.is_some_and(Total::is_exact),
            next_cursor: page.next.as_ref().map(|next| cursor::encode(next, asked.digest)),
            generation: page.generation(),
            available_tlds: asked.has_tlds.then(|| tlds_json(page)),
            facets: asked.facets.iter().copied().zip(facets.values).collect(),
            fact_facets,
            facets_exact: facets.are_exact,
            drops: (page, &asked.members),
            fact_sources: &asked.facts,
        }
    }

    /// Builds the response as JSON, in one buffer. The JSON is written by hand, like its rows.
    fn into_json(self) -> Vec<u8> {
        let tlds = self.available_tlds.as_deref().unwrap_or_default();
        let rows = self.count as usize * DROP_JSON_BYTES;
        let mut out = Vec::with_capacity(FRAME_BYTES + tlds.len() + rows);
        out.extend_from_slice(b"{\"date\":\"");
        push_day(&mut out, self.date);
        out.push(b'"');
        push_member(&mut out, "count", self.count);
        push_member(&mut out, "limit", self.limit);
        push_member(&mut out, "offset", self.offset);
        match self.total {
            Some(total) => push_member(&mut out, "total", total),
            None => out.extend_from_slice(b",\"total\":null"),
        }
        push_flag(&mut out, "totalExact", self.total_exact);
        out.extend_from_slice(b",\"nextCursor\":");
        match &self.next_cursor {
            Some(cursor) => push_json_text(&mut out, cursor),
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(format!(",\"generation\":{}", self.generation).as_bytes());
        if !tlds.is_empty() {
            out.extend_from_slice(b",\"availableTlds\":");
            out.extend_from_slice(tlds.as_bytes());
        }
        if !self.facets.is_empty() || !self.fact_facets.is_empty() {
            push_facets(&mut out, &self.facets, &self.fact_facets);
            push_flag(&mut out, "facetsExact", self.facets_exact);
        }
        out.extend_from_slice(b",\"drops\":");
        let facts = self.fact_sources;
        let also = |row: &DropRow<'_>, out: &mut Vec<u8>| push_facts(row.name, facts, out);
        push_drops(self.drops.0, self.drops.1, also, &mut out);
        push_fact_sources(&mut out, self.fact_sources);
        out.push(b'}');
        out
    }
}

fn push_facets(
    out: &mut Vec<u8>,
    facets: &[(Facet, Vec<FacetValue>)],
    of_facts: &[(FactName, Vec<(String, u32)>)],
) {
    let mut before = b",\"facets\":{".as_slice();
    let mut push = |name: &str, values: &mut dyn Iterator<Item = (&str, u32)>| {
        out.extend_from_slice(before);
        push_json_text(out, name);
        out.extend_from_slice(b":");
        let mut array = JsonArray::open(out);
        for (value, count) in values {
            let out = array.item();
            out.extend_from_slice(b"{\"value\":");
            push_json_text(out, value);
            push_member(out, "count", count);
            out.push(b'}');
        }
        array.close();
        before = b",";
    };
    for (facet, values) in facets {
        push(facet.as_str(), &mut values.iter().map(|it| (&*it.value, it.count)));
    }
    for (name, values) in of_facts {
        let values = &mut values.iter().map(|(value, count)| (value.as_str(), *count));
        push(&format!("{FACT_SORT}{name}"), values);
    }
    out.push(b'}');
}
