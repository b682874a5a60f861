//! `GET /api/v1/tlds`: all suffixes in the data.

use std::cmp::Reverse;

use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use crate::edge::error::Refusal;
use crate::edge::etag;
use crate::index::query::index::Contains;
use crate::json;
use crate::outbound::whois;
use crate::query::params::Params;
use crate::query::text::Substring;
use crate::scorer::Scorer;
use crate::service::app::App;
use crate::service::app::Now;
use crate::service::error::ApiError;
use crate::service::work;
use crate::vocab::limits::TLDS_LIMIT_MAX;
use crate::vocab::name::{DomainName, to_unicode};
use crate::vocab::stage::Periods;

/// Estimated cost in microseconds, since the day's counts are computed on first use.
const COST_US: u32 = 10_000;

/// Every suffix of the data, most names first.
#[derive(Serialize, ToSchema)]
#[schema(as = TldTable)]
pub struct TldsResponse<'a> {
    /// Number of rows on this page.
    #[schema(value_type = u32)]
    count: usize,
    /// Number of suffixes that match `q`, or of all.
    #[schema(value_type = u32)]
    total: usize,
    /// Names in which `contains`, `ends`, `pattern`, `regex` and `like` find text anywhere by an index: `all`,
    /// or `drops` if a search without `q` has to read every name.
    contains: Contains,
    tlds: Vec<TldRow<'a>>,
}

/// A suffix.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TldRow)]
pub struct TldRow<'a> {
    tld: &'a str,
    /// Number of names in the data.
    names: u32,
    /// Names that dropped and were not registered again, by stage.
    pipeline: PipelineCounts,
    /// Days after a drop in which its owner can restore the name.
    redemption_days: u16,
    /// Further days until the registry releases the name.
    pending_delete_days: u16,
    /// Source of these periods; `default` for a suffix without its own.
    periods_from: &'static str,
    registration: Registration,
    /// Whether the suffix has an RDAP server.
    rdap: bool,
    /// Sources of the availability of names: `rdap`; `whois`; `dns`, the name servers of the suffix;
    /// `list`, lists of dropped names. A name is verified as free only if two of the first three agree.
    sources: Vec<&'static str>,
    /// Time of the newest list with a new drop under the suffix; `null` without drops.
    #[schema(required, format = DateTime)]
    newest_list: Option<String>,
}

/// Who can register names under a suffix.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Registration {
    /// The public.
    Open,
    /// Only members, such as authorities, universities or the owner of a brand.
    Restricted,
}

/// Names by stage.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PipelineCounts {
    redemption: u32,
    pending_delete: u32,
    catchable: u32,
    released: u32,
}

/// The requested suffixes.
struct SuffixRequest {
    /// Part of the suffix, as an A-label and in Unicode; empty for all.
    part: Option<Substring>,
    rows_max: usize,
}

impl SuffixRequest {
    fn parse(query: Option<&str>) -> Result<SuffixRequest, ApiError> {
        let params = Params::new(query);
        let limit = params.integer("limit", 1..=TLDS_LIMIT_MAX)?;
        Ok(SuffixRequest {
            part: params.suffix_part("q")?,
            rows_max: limit.map_or(usize::MAX, |limit| limit as usize),
        })
    }

    fn matches(&self, tld: &str) -> bool {
        let Some(part) = &self.part else { return true };
        tld.contains(part.as_str()) || to_unicode(tld).contains(part.as_str())
    }

    /// Whether `q` is the whole suffix.
    fn is(&self, tld: &str) -> bool {
        let is_it = |part: &Substring| part.as_str() == tld || part.as_str() == to_unicode(tld);
        self.part.as_ref().is_some_and(is_it)
    }
}

/// `GET /api/v1/tlds`: names, pipeline and periods of every suffix, or of those that contain `q`.
pub async fn list_tlds(
    State(app): State<App>,
    Extension(now): Extension<Now>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let asked = SuffixRequest::parse(query.as_deref())?;
    let (index, as_of) = (app.live.current(), app.as_of(now));
    let (served, bootstrap) = (index.clone(), app.reach.bootstrap.current());
    let (verifies, asks_whois) = (app.reach.checks.is_some(), app.reach.whois);
    let body = work::run(COST_US, move || {
        let overview = index.overview(as_of);
        let mut counted: Vec<_> =
            overview.all_tlds().filter(|counted| asked.matches(counted.tld)).collect();
        counted.sort_by_cached_key(|it| (!asked.is(it.tld), Reverse(it.names), it.tld));
        let total = counted.len();
        let tlds: Vec<TldRow<'_>> = counted
            .into_iter()
            .take(asked.rows_max)
            .map(|counted| {
                let tld = counted.tld;
                let [redemption, pending_delete, catchable, released] = counted.stages;
                let Periods { redemption_days, pending_delete_days } = Periods::for_tld(tld);
                let name = DomainName::parse(&format!("example.{tld}"));
                let rdap = name.is_ok_and(|name| bootstrap.is_checkable(&name));
                let sources = [
                    ("rdap", verifies && rdap),
                    ("whois", verifies && asks_whois && whois::is_known(tld)),
                    ("dns", verifies),
                    ("list", counted.newest_list.is_some()),
                ];
                TldRow {
                    tld,
                    names: counted.names,
                    pipeline: PipelineCounts { redemption, pending_delete, catchable, released },
                    redemption_days,
                    pending_delete_days,
                    periods_from: Periods::source(tld).unwrap_or("default"),
                    registration: match Scorer::shared().is_open(tld) {
                        true => Registration::Open,
                        false => Registration::Restricted,
                    },
                    newest_list: counted.newest_list.map(|at| at.to_string()),
                    rdap,
                    sources: sources
                        .into_iter()
                        .filter(|(_, is_asked)| *is_asked)
                        .map(|(it, _)| it)
                        .collect(),
                }
            })
            .collect();
        json::json_bytes(&TldsResponse {
            count: tlds.len(),
            total,
            contains: index.contains(),
            tlds,
        })
    });
    Ok(etag::from_generation(&served, json::json_response(body.await?)))
}
