//! `/api/export/*`: streamed CSV. A request first collects the positions of its rows, a few bytes each,
//! and writes the rows from one immutable snapshot as the client reads.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::Uri;
use axum::response::Response;

use crate::accounts::{Claim, Commission, Price};
use crate::cursor::{self, QueryDigest};
use crate::drops::narrowing;
use crate::edge::csv::{DROPS_CSV_HEADER, cell, csv_header, push_drop_csv, user_cell};
use crate::edge::error::Refusal;
use crate::edge::etag;
use crate::edge::export::{
    Begun, Export, ExportFormat, chunks, csv_response, file_response, no_rows,
};
use crate::fact_rows::{exported, push_fact_columns, push_facts};
use crate::index::filter::DropFilter;
use crate::index::query::rows::DropRow;
use crate::parse;
use crate::query::error::BadParameter;
use crate::query::params::{Limits, Params};
use crate::response::link_next;
use crate::rows::{EXPORT_MEMBERS, members, push_drop, push_drop_columns};
use crate::service::app::App;
use crate::service::error::ApiError;
use crate::service::fact_book::ShownFacts;
use crate::service::portfolio::ClaimFilter;
use crate::service::watchlist::{WatchQuery, WatchRow, sorted_rows};
use crate::service::work;
use crate::telemetry::query::{QueryKind, QueryTimer};
use crate::vocab::limits::EXPORT_ROWS_MAX;
use crate::vocab::money::Amount;
use crate::vocab::tag::Tag;

const LIMITS: Limits = Limits { default: EXPORT_ROWS_MAX, max: EXPORT_ROWS_MAX };
/// Header line of the watchlist export.
pub const WATCHLIST_HEADER: &str = "domain,source,stage,drop_date,dqs,rdap_state,rdap_verified_at,added_at,release_date,tags,\
     max_bid_usd,venue,note,release_at,release_certainty,release_window_minutes\r\n";
/// Header line of the portfolio export.
pub const PORTFOLIO_HEADER: &str = "id,domain,tld,status,registrar,acquired_price_usd,\
    resale_price_usd,sold_at,reported_at,updated_at,user_notes,bid_usd,venue,renews_on,renewal_usd,\
    other_acquired_price,other_resale_price,other_bid,other_renewal,commission,sold_venue\r\n";

/// Writes one row of the watchlist export.
pub fn write_watch(row: &WatchRow, out: &mut impl Write) -> io::Result<()> {
    let (name, source, added_at) = (row.name(), row.source(), row.added_at());
    let (stage, drop_date) = (cell(row.stage()), cell(row.latest_drop()));
    let (state, seen_at) = row.rdap().unzip();
    write!(out, "{name},{source},{stage},{drop_date},{},", cell(row.dqs()))?;
    write!(out, "{},{},{added_at},", cell(state), cell(seen_at))?;
    let details = row.details();
    let text =
        |text: &Option<Box<str>>| user_cell(text.as_deref().unwrap_or_default()).into_owned();
    let tags = details.tags.iter().map(Tag::as_str).collect::<Vec<_>>().join(", ");
    let (tags, bid) = (user_cell(&tags), cell(details.max_bid));
    let release = cell(row.release().map(|release| release.day));
    write!(out, "{release},{tags},{bid},{},{},", text(&details.venue), text(&details.note))?;
    let time = row.release_time();
    let (at, certainty) = (time.and_then(|it| it.at), time.map(|it| it.certainty));
    write!(out, "{},{},{}\r\n", cell(at), cell(certainty), cell(time.map(|it| it.window_minutes)))
}

/// Writes one row of the portfolio export.
pub fn write_claim(claim: &Claim, out: &mut impl Write) -> io::Result<()> {
    let (domain, tld, status) = (&claim.domain, claim.domain.tld(), claim.status);
    let registrar = user_cell(claim.registrar.as_deref().unwrap_or_default());
    let (acquired, resale) = (cell(claim.acquired_price), cell(claim.resale_price));
    write!(out, "{},{domain},{tld},{status},{registrar},{acquired},{resale},", claim.id)?;
    let notes = user_cell(claim.user_notes.as_deref().unwrap_or_default());
    let (sold_at, reported_at, updated_at) =
        (cell(claim.sold_at), claim.reported_at, claim.updated_at);
    let venue = user_cell(claim.venue.as_deref().unwrap_or_default());
    let (bid, renews_on, renewal) = (cell(claim.bid), cell(claim.renews_on), cell(claim.renewal));
    write!(
        out,
        "{sold_at},{reported_at},{updated_at},{notes},{bid},{venue},{renews_on},{renewal},"
    )?;
    for price in [Price::Acquired, Price::Resale, Price::Bid, Price::Renewal] {
        let other = claim.amount(price).filter(|amount| amount.usd().is_none());
        write!(out, "{},", cell(other.map(stated)))?;
    }
    let (commission, sold_venue) = claim.sale_terms();
    let commission = commission.map(|commission| match commission {
        Commission::Percent(percent) => format!("{percent} %"),
        Commission::Amount(fee) => stated(fee),
    });
    write!(out, "{},{}\r\n", cell(commission), user_cell(sold_venue.unwrap_or_default()))
}

/// Writes an amount with its currency: `12.5 EUR`.
fn stated(amount: Amount) -> String {
    format!("{} {}", amount.number(), amount.currency().as_str())
}

/// `GET /api/export/drops`: the drops list as CSV.
pub async fn export_drops(
    State(app): State<App>,
    export: Export,
    uri: Uri,
) -> Result<Response, Refusal> {
    let (index, as_of) = (app.live.current(), app.as_of(export.now));
    let parse = move |uri: &Uri| {
        let params = Params::new(uri.query());
        let filter = cursor::page(&params, LIMITS, as_of.today)?;
        Ok::<_, ApiError>((filter, params.fact_names()?))
    };
    let (mut filter, names) = parse::parameters(&uri, parse).await?;
    let (mut used, mut shown) = (Vec::new(), ShownFacts::default());
    if filter.needs_facts() || !names.is_empty() {
        let visible = app.visible_facts();
        used = visible.resolve_drops(&mut filter, as_of.today)?;
        shown = exported(visible.shown(&names)?)?;
    }
    let (format, header, line) = export_lines(&Params::new(uri.query()), shown)?;
    let started = match export.start(&app).await? {
        Begun::Counted(started) => started,
        Begun::HeadersOnly(allowance) => {
            let response = file_response("drops", format, as_of.today, no_rows(), &allowance);
            return Ok(etag::from_generation(&index, response));
        }
    };
    let (searched, timer) = (Arc::clone(&index), QueryTimer::start(QueryKind::Export));
    let served = Arc::clone(&index);
    // Only the positions of rows are collected, four bytes each; rows are written as the client
    // reads.
    let scans = filter.common.label.has_text();
    let exports_internal = app.limits.exports_internal;
    let book = app.clone();
    let found = work::run_or_scan(scans, u32::MAX, move || {
        book.facts.join(&searched, &used)?;
        // One extra row is requested, to find out whether more rows follow.
        let rows = filter.limit as usize;
        let more = DropFilter { limit: filter.limit.saturating_add(1), ..filter.clone() };
        let mut places = match exports_internal {
            true => searched.drop_places(&more, as_of),
            false => searched.exported_places(&more, as_of),
        }?;
        let follows = places.len() > rows;
        places.truncate(rows);
        timer.finish(places.len(), &filter);
        let last = places.last().filter(|_| follows);
        let position = last.map(|&place| searched.position_of(filter.sort, place));
        let next = position.map(|next| cursor::encode(&next, QueryDigest::of(&filter)));
        Ok((places, next))
    });
    let found = found.await.map_err(|err| err.narrowed(|| narrowing(&uri, LIMITS, as_of.today)));
    let (places, next) = started.forgiven(found)?;
    let allowance = started.allowance;
    let body = chunks(started, header, places, move |places, out| {
        index.shape_drops(places, as_of, |_, row| line(row, out));
        Ok(())
    });
    let mut response = file_response("drops", format, as_of.today, body, &allowance);
    if let Some(cursor) = next {
        link_next(&mut response, &uri, ("cursor", &cursor));
    }
    Ok(etag::from_generation(&served, response))
}

/// Function that writes the line of a row.
type WriteLine = Box<dyn Fn(&DropRow<'_>, &mut Vec<u8>) + Send + Sync>;

/// Returns the format of a drops export, the start of the file, and the writer of its lines.
///
/// # Errors
/// 400 for an invalid `format`, `columns` or `bom`.
pub fn export_lines(
    params: &Params<'_>,
    facts: ShownFacts,
) -> Result<(ExportFormat, Cow<'static, str>, WriteLine), BadParameter> {
    let format = params.one("format")?.unwrap_or_default();
    let columns = members(params, "columns", None)?.map(|(members, _)| members);
    let bom = params.flag("bom")?;
    if bom && format != ExportFormat::Csv {
        // RFC 8259 §8.1 forbids byte order marks in JSON.
        return Err(BadParameter::new("bom", "must be false, unless the format is csv"));
    }
    Ok(match (format, columns) {
        (ExportFormat::Csv, None) if facts.is_empty() => {
            (format, csv_header(DROPS_CSV_HEADER, bom), Box::new(push_drop_csv))
        }
        (ExportFormat::Csv, members) => {
            let is_default = members.is_none();
            let members = members.unwrap_or_else(|| EXPORT_MEMBERS.to_vec());
            let mut names: Vec<&str> = members.iter().map(|member| member.as_str()).collect();
            if is_default {
                // As in the header without facts.
                names[0] = "domain";
            }
            names.extend(facts.columns().iter().map(|column| column.name.as_str()));
            let header = format!("{}\r\n", names.join(","));
            let write = move |row: &DropRow<'_>, out: &mut Vec<u8>| {
                push_drop_columns(row, &members, out);
                push_fact_columns(row.name, &facts, members.is_empty(), out);
            };
            (format, csv_header(header, bom), Box::new(write))
        }
        (ExportFormat::Ndjson, members) => {
            let members = members.unwrap_or_else(|| EXPORT_MEMBERS.to_vec());
            let write = move |row: &DropRow<'_>, out: &mut Vec<u8>| {
                push_drop(row, &members, out);
                push_facts(row.name, &facts, out);
                out.push(b'\n');
            };
            (format, "".into(), Box::new(write))
        }
    })
}

/// `GET /api/export/watchlist`: the caller's watchlist, as CSV.
pub async fn export_watchlist(
    State(app): State<App>,
    export: Export,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let params = Params::new(query.as_deref());
    let header = csv_header(WATCHLIST_HEADER, params.flag("bom")?);
    let asked = WatchQuery::parse(params, LIMITS)?;
    let (index, as_of) = (app.live.current(), app.as_of(export.now));
    let owned = app.store.user_data(&export.caller);
    let started = match export.start(&app).await? {
        Begun::Counted(started) => started,
        Begun::HeadersOnly(left) => {
            return Ok(csv_response("watchlist", as_of.today, no_rows(), &left));
        }
    };
    let (listed, searched, store) = (Arc::clone(&owned), Arc::clone(&index), app.store.clone());
    let observed = store.clone();
    let names = work::run(u32::MAX, move || {
        let mut rows = sorted_rows(&listed, &searched, &observed, as_of, asked.sort);
        rows.retain(|row| asked.filter.passes(row));
        Ok(asked.page.rows(rows.iter()).map(|row| row.name().clone()).collect())
    });
    let (names, allowance) = (started.forgiven(names.await)?, started.allowance);
    let body = chunks(started, header, names, move |names, out| {
        let entries = names.iter().filter_map(|name| owned.watch(name)).collect();
        let rows = WatchRow::all(entries, &owned, &index, &store, as_of);
        rows.iter().try_for_each(|row| write_watch(row, out))
    });
    Ok(csv_response("watchlist", as_of.today, body, &allowance))
}

/// `GET /api/export/portfolio`: the caller's claims, as CSV.
pub async fn export_portfolio(
    State(app): State<App>,
    export: Export,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let params = Params::new(query.as_deref());
    let header = csv_header(PORTFOLIO_HEADER, params.flag("bom")?);
    let filter = ClaimFilter::parse(params, LIMITS)?;
    let today = app.as_of(export.now).today;
    let owned = app.store.user_data(&export.caller);
    let started = match export.start(&app).await? {
        Begun::Counted(started) => started,
        Begun::HeadersOnly(left) => {
            return Ok(csv_response("portfolio", today, no_rows(), &left));
        }
    };
    let listed = Arc::clone(&owned);
    let ids =
        work::run(u32::MAX, move || Ok(filter.page_of(&listed).map(|claim| claim.id).collect()));
    let (ids, allowance) = (started.forgiven(ids.await)?, started.allowance);
    let body = chunks(started, header, ids, move |ids, out| {
        let mut claims = ids.iter().filter_map(|&id| owned.claim(id));
        claims.try_for_each(|claim| write_claim(claim, out))
    });
    Ok(csv_response("portfolio", today, body, &allowance))
}
