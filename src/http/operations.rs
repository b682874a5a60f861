//! All operations of the API, in one table. The router, the index of endpoints, the OpenAPI document
//! and the reference page are generated from it; no other routes exist.

use std::sync::{LazyLock, OnceLock};

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, patch, post, put};
use axum::{Json, Router};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::alerts::watchlist as watch_alerts;
use crate::edge::class::Class;
use crate::edge::code::Code;
use crate::edge::error;
use crate::edge::etag::{self, Tag};
use crate::edge::export::ExportFormat;
use crate::edge::operation::{
    Access, Content, Cost, Group, Operation, Parameter, ParameterKind, ParameterPlace,
    ResponseSpec, Shape,
};
use crate::guarded::guarded;
use crate::index::filter::{Counting, Facet, SortKey};
use crate::index::query::outcome_tables::ScoreBand;
use crate::query::conditions::{CONDITIONS, Condition, Kind, SHARED};
use crate::response::Deleted;
use crate::rows::Member;
use crate::service::app::App;
use crate::vocab::change::ChangeKind;
use crate::vocab::kind::Kind as Kinds;
use crate::vocab::limits::{
    CHANGES_LIMIT_DEFAULT, CHANGES_LIMIT_MAX, CHANGES_WAIT_SECONDS_MAX, CLAIMS_OFFSET_MAX,
    DROPS_LIMIT_DEFAULT, DROPS_LIMIT_MAX, DROPS_OFFSET_MAX, ENTRIES_OFFSET_MAX, EXPORT_ROWS_MAX,
    HIDDEN_MAX, LABEL_CHARS_MAX, LIKE_CHARS, OWNED_LIMIT_DEFAULT, OWNED_LIMIT_MAX,
    PATTERN_SYMBOLS_MAX, REGEX_CHARS_MAX, SEARCH_LIMIT_DEFAULT, SEARCH_LIMIT_MAX,
    SEARCH_OFFSET_MAX, SEARCH_QUERY_CHARS_MAX, SUBSTRING_CHARS_MAX, SUGGEST_LIMIT_DEFAULT,
    SUGGEST_LIMIT_MAX, TLDS_LIMIT_MAX,
};
use crate::vocab::name::NAME_OCTETS_MAX;
use crate::vocab::outcome::Horizon;
use crate::{
    account, alerts, appraise, archive, batch, changes, check, domain, drops, export, facts, feeds,
    files, health, hidden, label, openapi, outcomes, portfolio, search, searches, suggest, tlds,
    unsubscribe, watchlist,
};

const fn json<T: ToSchema>(status: u16, description: &'static str) -> ResponseSpec {
    ResponseSpec { status, description, content: Content::Json(Shape::of::<T>()) }
}

const fn text(status: u16, description: &'static str, kind: &'static str) -> ResponseSpec {
    ResponseSpec { status, description, content: Content::Text(kind) }
}

const fn refusal(code: Code, description: &'static str) -> ResponseSpec {
    ResponseSpec { status: code.status(), description, content: Content::Refusal }
}

const fn query(
    name: &'static str,
    kind: ParameterKind,
    example: &'static str,
    description: &'static str,
) -> Parameter {
    Parameter { name, place: ParameterPlace::Query, kind, required: false, example, description }
}

const fn needed(
    name: &'static str,
    kind: ParameterKind,
    example: &'static str,
    description: &'static str,
) -> Parameter {
    Parameter { required: true, ..query(name, kind, example, description) }
}

const fn in_path(name: &'static str, kind: ParameterKind, description: &'static str) -> Parameter {
    Parameter { place: ParameterPlace::Path, ..needed(name, kind, "", description) }
}

const fn formatted(format: &'static str, chars_max: u32) -> ParameterKind {
    ParameterKind::Format { format, chars_max: Some(chars_max) }
}

const fn limit(default: u32, max: u32) -> Parameter {
    let kind = ParameterKind::Integer { min: 1, max, default: Some(default) };
    query("limit", kind, "20", "Maximum number of rows.")
}

const fn offset(max: u32) -> Parameter {
    let kind = ParameterKind::Integer { min: 0, max, default: Some(0) };
    query("offset", kind, "0", "Number of rows to skip.")
}

const STAGES: &[&str] = &["redemption", "pending-delete", "catchable", "released"];

const fn one_of(words: &'static [&'static str]) -> ParameterKind {
    ParameterKind::OneOf { words, default: None }
}

/// Returns the parameter of a condition.
const fn condition(of: &Condition) -> Parameter {
    let kind = match of.kind {
        Kind::Number { least: min, most: max, default, .. } => {
            ParameterKind::Integer { min, max, default }
        }
        Kind::OneOf(words, _) => one_of(words),
        Kind::SomeOf(words, _) => ParameterKind::SomeOf(words),
        Kind::Tlds(_) => ParameterKind::List { format: "tld" },
        Kind::Texts(..) => ParameterKind::List { format: "text" },
        Kind::Facts(_) => ParameterKind::List { format: "fact" },
        Kind::NamePart => formatted("name-part", SUBSTRING_CHARS_MAX as u32),
        Kind::Pattern => formatted("pattern", PATTERN_SYMBOLS_MAX as u32),
        Kind::Regex => formatted("regex", REGEX_CHARS_MAX as u32),
        Kind::Like => formatted("label", *LIKE_CHARS.end() as u32),
        Kind::Day(_) => formatted("day", 10),
        Kind::Release(_) | Kind::Instant(_) => {
            ParameterKind::Format { format: "instant", chars_max: None }
        }
    };
    query(of.parameter, kind, of.example, of.text)
}

/// The parameters of these conditions, plus others.
const fn with_more<const N: usize>(of: &[Condition], more: &[Parameter]) -> [Parameter; N] {
    let mut all = [VIEW; N];
    let mut at = 0;
    while at < N {
        all[at] = if at < of.len() { condition(&of[at]) } else { more[at - of.len()] };
        at += 1;
    }
    all
}

/// Returns the parameters of some conditions, plus others.
macro_rules! filters {
    ($of:expr; $($more:expr),* $(,)?) => {{
        const MORE: &[Parameter] = &[$($more),*];
        const ALL: [Parameter; $of.len() + MORE.len()] = with_more($of, MORE);
        &ALL
    }};
}

/// Options of `dropdex export drops`.
pub const EXPORT_OPTIONS: &[Parameter] =
    filters![CONDITIONS; VIEW, DROPS_SORT, ORDER, EXPORT_FORMAT, COLUMNS, FACTS, BOM];
/// The conditions on drops, and the view.
pub const FILTERS: &[Parameter] = filters![CONDITIONS; VIEW];
const DROPS_SORT: Parameter = query(
    "sort",
    ParameterKind::Sort { words: SORTS, default: "dqs" },
    "release",
    "Ties are sorted by score, then unrounded score, then length, then name. `fact:SOURCE.FACT` sorts by a fact; names without it come last in both directions.",
);
/// Orders of the drops list without that by a fact, which is the last key.
const SORTS: &[&str] = SortKey::NAMES.split_at(SortKey::NAMES.len() - 1).0;
const FACTS: Parameter = query(
    "facts",
    ParameterKind::List { format: "fact-name" },
    "acme.rank",
    "Facts that each row shows in `facts`, at most 20, separated by commas: those of `GET /api/v1/facts`.",
);
const ORDER: Parameter = query(
    "order",
    one_of(&["asc", "desc"]),
    "asc",
    "By default the best, soonest, shortest or newest first, names from a to z, and the most popular first.",
);
const SECRETS_REPLACED: &str = "Every webhook gets a new secret. For 24 hours, messages are also signed with the former one: `webhook-signature` has both, \
     so a receiver that accepts either of them can change to the new secret at any time.";
const CURSOR: Parameter = query(
    "cursor",
    ParameterKind::Format { format: "cursor", chars_max: None },
    "AWqRk3VYd2Zk8gAAAAAAAEYAAAAAAAAABwAAAHNvbGFyLmNvbQ",
    "`nextCursor` of the page before, or the cursor in its `Link`, with the same filters and order. Not with an \
     `offset` above 0.",
);
/// Members of a row, and the list beside the rows.
const FIELD_NAMES: [&str; Member::NAMES.len() + 1] = {
    let mut names = ["availableTlds"; Member::NAMES.len() + 1];
    let mut at = 0;
    while at < Member::NAMES.len() {
        names[at] = Member::NAMES[at];
        at += 1;
    }
    names
};
const FIELDS: Parameter = query(
    "fields",
    ParameterKind::SomeOf(&FIELD_NAMES),
    "name,dqs,releaseDate",
    "Comma-separated members of a row; others are omitted. `availableTlds` keeps that list in the response.",
);
const FACETS: Parameter = query(
    "facets",
    ParameterKind::Facets { words: &Facet::NAMES },
    "tld,stage",
    "Counts by value, each with all filters but its own: at most 100 values, most frequent first. Scores are counted in tens. \
     For `stage`, the `view` counts as its own. `fact:SOURCE.FACT` counts the values of a fact, in ten ranges if there are many.",
);
const TOTAL: Parameter = query(
    "total",
    ParameterKind::OneOf { words: &Counting::NAMES, default: Some("estimate") },
    "exact",
    "How names are counted: `estimate` may estimate `total` and facets on a list of a million names or more, `exact` \
     counts them, and `none` leaves `total` null.",
);
const EXPORT_FORMAT: Parameter = query(
    "format",
    ParameterKind::OneOf { words: &ExportFormat::NAMES, default: Some("csv") },
    "ndjson",
    "CSV, or one JSON object per line.",
);
const BOM: Parameter = query(
    "bom",
    ParameterKind::Flag,
    "true",
    "`true`: the CSV begins with a byte order mark, without which Excel reads UTF-8 as another encoding.",
);
const COLUMNS: Parameter = query(
    "columns",
    ParameterKind::SomeOf(&Member::NAMES),
    "name,releaseDate",
    "Comma-separated members of a row, in this order. By default name, tld, length, dqs and explanation.",
);

const DATE_ORDER: Parameter = query(
    "date_order",
    one_of(&["dmy", "mdy"]),
    "dmy",
    "Order of day and month in dates such as 03/04/2026, for columns that do not show it.",
);
const CURRENCY: Parameter = query(
    "currency",
    ParameterKind::Format { format: "currency", chars_max: Some(3) },
    "EUR",
    "Currency of amounts, for columns and rows that state none.",
);
const DRY_RUN: Parameter =
    query("dry_run", ParameterKind::Flag, "true", "Report on the file, and keep nothing.");
const FACT_SOURCE: Parameter = in_path(
    "source",
    ParameterKind::Text { chars_max: 40 },
    "Name of the source, such as `majestic`.",
);
const FINGERPRINT: Parameter = in_path(
    "fingerprint",
    ParameterKind::Text { chars_max: 16 },
    "Fingerprint of the header row, as an error or report names it.",
);

const VIEWS: &[&str] = &["active", "today", "all"];
const VIEW: Parameter = query(
    "view",
    ParameterKind::OneOf { words: VIEWS, default: Some("active") },
    "active",
    "`active`: not yet released and not registered again. `today`: dropped today. `all`: every drop.",
);
const SEARCH_VIEW: Parameter = query(
    "view",
    ParameterKind::OneOf { words: VIEWS, default: None },
    "active",
    "`active` or `today` limits the search to the pipeline. By default it covers every name ever seen.",
);
const CHANGES_VIEW: Parameter = query(
    "view",
    ParameterKind::OneOf { words: VIEWS, default: None },
    "active",
    "`active` or `today` leaves out names that are no longer in the pipeline, or did not drop today.",
);
const PREFIX: Parameter = query(
    "q",
    formatted("name-prefix", SEARCH_QUERY_CHARS_MAX as u32),
    "solar",
    "Prefix of the name, 1 to 253 characters. Required unless `contains`, `starts`, `ends`, `pattern`, `regex` or `like` is given.",
);
const REQUIRED_PREFIX: Parameter =
    Parameter { required: true, description: "Prefix of the name, 1 to 253 characters.", ..PREFIX };
const SUGGEST_TLD: Parameter = query(
    "tld",
    ParameterKind::List { format: "tld" },
    "com,io",
    "Only names under these suffixes.",
);
const SUGGEST_DQS: Parameter = query(
    "min_dqs",
    ParameterKind::Integer { min: 0, max: 100, default: None },
    "50",
    "Only names with this score or a higher one.",
);
const SUGGEST_LENGTH: Parameter = query(
    "max_len",
    ParameterKind::Integer { min: 1, max: LABEL_CHARS_MAX as u32, default: None },
    "12",
    "Only labels of at most this many characters.",
);
const ALL_SUFFIXES: Parameter =
    query("all_suffixes", ParameterKind::Flag, "true", "Shows a label under each of its suffixes.");
/// Parameters of a search.
const SEARCH_PARAMETERS: &[Parameter] = filters![SHARED;
    PREFIX,
    SEARCH_VIEW,
    limit(SEARCH_LIMIT_DEFAULT, SEARCH_LIMIT_MAX),
    offset(SEARCH_OFFSET_MAX),
];
const TLD_PART: Parameter = query(
    "q",
    formatted("name-part", SUBSTRING_CHARS_MAX as u32),
    "uk",
    "Part of the suffix, in Unicode or as an A-label: `uk` finds `uk` and `co.uk`.",
);
const TLDS_LIMIT: Parameter = query(
    "limit",
    ParameterKind::Integer { min: 1, max: TLDS_LIMIT_MAX, default: None },
    "20",
    "Maximum number of rows; by default all.",
);
const OUTCOMES_TLD: Parameter = query(
    "tld",
    formatted("tld", NAME_OCTETS_MAX as u32),
    "nu",
    "One suffix. Without it, one row for each suffix.",
);
const OUTCOMES_BAND: Parameter =
    query("band", one_of(&ScoreBand::NAMES), "40-49", "Only names with these scores.");
const OUTCOMES_KIND: Parameter =
    query("kind", one_of(&Kinds::NAMES), "word", "Only labels of this kind.");
const OUTCOMES_HORIZON: Parameter = query(
    "horizon",
    one_of(&Horizon::NAMES),
    "30",
    "Only this number of days after the release. Rows that lists cannot show for it are absent.",
);
const AS_OF: Parameter = query(
    "asOf",
    formatted("past-day", 10),
    "2026-01-31",
    "Counts only lists up to this day, as if it were today. Not in the future.",
);
const SINCE: Parameter = query(
    "since",
    ParameterKind::Sequence,
    "0",
    "Returns events after this one: `next` of the previous page. 0 stands for the oldest event kept.",
);
const EVENT: Parameter = query(
    "event",
    ParameterKind::SomeOf(&ChangeKind::NAMES),
    "drops-tomorrow,renewed",
    "Kinds of events: any of these.",
);
const CHANGES_DOMAIN: Parameter = query(
    "domain",
    formatted("domain", NAME_OCTETS_MAX as u32),
    "solar.com",
    "Only events of this name.",
);
const CHANGES_WATCHED: Parameter = query(
    "watched",
    ParameterKind::Flag,
    "true",
    "`true`: only events of names on your watchlist.",
);
const WAIT: Parameter = query(
    "wait",
    ParameterKind::Integer { min: 0, max: CHANGES_WAIT_SECONDS_MAX, default: Some(0) },
    "1",
    "Seconds to wait for an event if none is available (long poll).",
);
const LAST_EVENT_ID: Parameter = Parameter {
    name: "Last-Event-ID",
    place: ParameterPlace::Header,
    kind: formatted("sequence", 19),
    required: false,
    example: "",
    description: "Returns events after this one; replaces `since`. Clients of a stream send it when they reconnect.",
};
const LABEL: Parameter = in_path(
    "label",
    formatted("label", 63),
    "The part of a name before its suffix, in any case, in Unicode or as an A-label.",
);
const NAME: Parameter = in_path(
    "name",
    formatted("domain", NAME_OCTETS_MAX as u32),
    "A registrable domain in any case, in Unicode or as A-labels.",
);
const WATCHED_NAME: Parameter = needed(
    "domain",
    formatted("domain", NAME_OCTETS_MAX as u32),
    "solar.com",
    "The domain to remove.",
);
const CLAIM_ID: Parameter = in_path("id", ParameterKind::Id, "Claim id.");
const RULE_ID: Parameter = in_path("id", ParameterKind::Id, "Alert rule id.");
const SEARCH_ID: Parameter = in_path("id", ParameterKind::Id, "Saved search id.");
const DELIVERY_ID: Parameter =
    in_path("delivery", ParameterKind::Text { chars_max: 64 }, "Delivery id.");
// All links get the same response, so no value is invalid.
const LINK: Parameter = in_path(
    "delivery",
    ParameterKind::Format { format: "delivery", chars_max: None },
    "The ID from the link in the mail.",
);
const STATUS_LIST: Parameter = query(
    "status",
    ParameterKind::SomeOf(&["attempted", "caught", "registered", "lost", "sold"]),
    "attempted,caught",
    "One or more statuses, separated by commas.",
);
const FROM: Parameter = query(
    "from",
    ParameterKind::Date,
    "2026-01-01",
    "Reported on or after this day (1985 to 2164).",
);
const TO: Parameter =
    query("to", ParameterKind::Date, "2026-12-31", "Reported before this day (1985 to 2164).");
const SORT: Parameter = query(
    "sort",
    ParameterKind::OneOf {
        words: &["lifecycle", "name", "dqs", "added", "release", "bid", "venue"],
        default: Some("lifecycle"),
    },
    "dqs",
    "`lifecycle`: catchable first, then pending delete, redemption, released; within each as \
     `release`. `dqs`: highest first. `added`: newest first. `release`: soonest first, then by score. `bid`: \
     highest first.",
);
const TAG: Parameter = query(
    "tag",
    ParameterKind::List { format: "tag" },
    "shop,ai",
    "One or more tags, separated by commas: entries with any of them.",
);
const VENUE: Parameter =
    query("venue", ParameterKind::Text { chars_max: 60 }, "DropCatch", "Entries with this venue.");
const BID: Parameter = query(
    "bid",
    ParameterKind::OneOf { words: &["none", "some"], default: None },
    "some",
    "`none` for entries without a maximum bid, `some` for entries with one.",
);
const STAGE_LIST: Parameter = query(
    "stage",
    ParameterKind::SomeOf(STAGES),
    "catchable",
    "One or more lifecycle stages, separated by commas.",
);
const WATCHED: Parameter = in_path(
    "domain",
    formatted("domain", NAME_OCTETS_MAX as u32),
    "A domain on your watchlist, in any case, in Unicode or as A-labels.",
);
const HIDDEN_NAME: Parameter = needed(
    "domain",
    formatted("domain", NAME_OCTETS_MAX as u32),
    "solar.com",
    "The domain to show again.",
);
const IDEMPOTENCY: Parameter = Parameter {
    name: "Idempotency-Key",
    place: ParameterPlace::Header,
    kind: ParameterKind::Text { chars_max: 255 },
    required: false,
    example: "",
    description: "A name for the request, chosen by you. A repeat within 24 hours returns the first \
                  response and changes nothing.",
};

/// Filters of the drops list and its export.
macro_rules! drop_parameters {
    ($limit:expr, $($more:expr),*) => {
        filters![CONDITIONS; VIEW, DROPS_SORT, ORDER, $limit, offset(DROPS_OFFSET_MAX), $($more),*]
    };
}

/// Filters of the claims and their export.
macro_rules! claim_parameters {
    ($limit:expr $(, $more:expr)*) => {
        &[STATUS_LIST, FROM, TO, $limit, offset(CLAIMS_OFFSET_MAX) $(, $more)*]
    };
}

const OWNED_LIMIT: Parameter = limit(OWNED_LIMIT_DEFAULT, OWNED_LIMIT_MAX);
const EXPORT_LIMIT: Parameter = limit(EXPORT_ROWS_MAX, EXPORT_ROWS_MAX);

const NOT_FOUND: ResponseSpec = refusal(Code::NotFound, "No such resource in your account.");
const UNKNOWN_NAME: ResponseSpec = refusal(Code::NotFound, "The name has never been observed.");
const PLAN_LIMIT: ResponseSpec =
    refusal(Code::PlanLimit, "Your plan does not include it, or its quota is used up.");
const KEY_REUSED: ResponseSpec =
    refusal(Code::IdempotencyConflict, "The idempotency key was used with another request.");
const CSV: ResponseSpec = text(200, "UTF-8 CSV with a header line and CRLF line ends.", "text/csv");
const NDJSON: ResponseSpec =
    text(200, "With `format=ndjson`, one JSON object per line.", "application/x-ndjson");

/// All operations, in the order of the endpoint index.
pub const OPERATIONS: &[Operation] = &[
    Operation::get("/api/v1", |of| get(guarded(of, api_index)))
        .named(Group::Service, "getIndex", "List of endpoints")
        .description("Method, path and summary of each endpoint, and how to authenticate. Needs no key.")
        .public()
        .responses(&[json::<IndexResponse>(200, "Every endpoint, and how to authenticate.")]),
    Operation::get("/api/v1/drops", |of| get(guarded(of, drops::list_drops)))
        .named(Group::Names, "listDrops", "Ranked drops")
        .description("Highest score first; ties by the unrounded score, by length, then by name.")
        .parameters(drop_parameters![
            limit(DROPS_LIMIT_DEFAULT, DROPS_LIMIT_MAX),
            CURSOR,
            FIELDS,
            FACETS,
            FACTS,
            TOTAL
        ])
        .tagged()
        .of_index()
        .responses(&[json::<drops::DropsResponse<'_>>(200, "A page of the list.")]),
    Operation::get("/api/v1/search", |of| get(guarded(of, search::search_names)))
        .named(Group::Names, "searchNames", "Prefix search over every name ever seen")
        .description(
            "Names or labels equal to the prefix come first, then the highest scores; names of one score by \
             length, then by name, since the unrounded score that orders the drops list is stored only for drops. \
             A dot is literal: `exam.co` finds `exam.com`. IDNs match in Unicode and as A-labels.",
        )
        .parameters(SEARCH_PARAMETERS)
        .tagged()
        .of_index()
        .responses(&[json::<search::SearchResponse<'_>>(200, "A page of the matches.")]),
    Operation::post("/api/v1/search/batch", |of| post(guarded(of, batch::search_batch)))
        .named(Group::Names, "searchBatch", "Up to 50 searches in one request")
        .description(
            "The members of a query are the parameters of a search, by name; a list is an array or text with \
             commas. Each query counts as a request, and all share the time of one. All are answered from one \
             generation of the index, in order.",
        )
        .read_only()
        .class(Class::Read)
        .of_index()
        .queries(SEARCH_PARAMETERS)
        .body::<batch::BatchRequest>()
        .responses(&[json::<batch::BatchResponse<'_>>(200, "A page of matches per query, in request order.")]),
    Operation::get("/api/v1/suggest", |of| get(guarded(of, suggest::suggest_names)))
        .named(Group::Names, "suggestNames", "Names for type-ahead")
        .description(
            "At most two names with the typed label, then the best names of other labels that begin with it, each \
             label once. From four characters on, one edit is forgiven if fewer than five match. A text with a dot \
             is completed by suffixes. Does not count as a request: a plan has suggestions a minute instead.",
        )
        .costs(Cost::Suggestion)
        .parameters(&[
            REQUIRED_PREFIX, SUGGEST_TLD, SEARCH_VIEW, SUGGEST_DQS, SUGGEST_LENGTH, ALL_SUFFIXES,
            limit(SUGGEST_LIMIT_DEFAULT, SUGGEST_LIMIT_MAX),
        ])
        .tagged()
        .of_index()
        .responses(&[json::<suggest::SuggestResponse>(200, "The names.")]),
    Operation::get("/api/v1/label/{label}", |of| get(guarded(of, label::find_label)))
        .named(Group::Names, "findLabel", "Every name with a label")
        .description(
            "Suffix, stage, dates and score of each name, and the names of labels that differ in a hyphen or a plural.",
        )
        .parameters(&[LABEL])
        .tagged()
        .of_index()
        .responses(&[json::<label::LabelResponse<'_>>(200, "The names of the label and of its variants.")]),
    Operation::get("/api/v1/tlds", |of| get(guarded(of, tlds::list_tlds)))
        .named(Group::Names, "listTlds", "Suffixes of the data")
        .parameters(&[TLD_PART, TLDS_LIMIT])
        .description("Most names first, but a suffix that equals `q` comes before all others. Names, pipeline by stage, redemption and pending-delete days, whether the public can register under it, whether names can be verified by RDAP, and the newest list.")
        .of_index()
        .responses(&[json::<tlds::TldsResponse<'_>>(200, "The suffixes, most names first.")]),
    Operation::get("/api/v1/outcomes", |of| get(guarded(of, outcomes::list_outcomes)))
        .named(Group::Names, "listOutcomes", "Outcomes of dropped names")
        .parameters(&[OUTCOMES_TLD, OUTCOMES_BAND, OUTCOMES_KIND, OUTCOMES_HORIZON, AS_OF])
        .description(
            "Shares of names that were registered again after their release, with 95 % intervals, by suffix, score, kind, \
             words and length. With `tld` alone: every group of the suffix with 100 names or more. With `band` or `kind`, or \
             without `tld`: one row for each suffix; if the group has fewer names, the row is that of a larger group, which \
             `fallback` names. Suffixes with a random sample have rows of their own for it, by score alone. Rows of different \
             labels are never added up.",
        )
        .tagged()
        .of_index()
        .responses(&[json::<outcomes::OutcomesResponse<'_>>(200, "The shares.")]),
    Operation::get("/api/v1/changes", |of| get(guarded(of, changes::list_changes)))
        .named(Group::Names, "listChanges", "Changes of names")
        .class(Class::Stream)
        .description(
            "Events in the order in which they were derived, kept for 90 days. Filters and `view` are about \
             the facts of today; a name that never dropped passes none. With `Accept: text/event-stream` the \
             response is a stream of the same rows as server-sent events, which begins with the next event \
             unless `since` or `Last-Event-ID` is given. Events from the registry are shown for names that you watch.",
        )
        .parameters(filters![SHARED;
            SINCE,
            EVENT,
            CHANGES_DOMAIN,
            CHANGES_WATCHED,
            CHANGES_VIEW,
            limit(CHANGES_LIMIT_DEFAULT, CHANGES_LIMIT_MAX),
            WAIT,
            LAST_EVENT_ID
        ])
        .responses(&[
            json::<changes::ChangesResponse<'_>>(200, "A page of events, oldest first."),
            text(200, "The same rows as server-sent events.", "text/event-stream"),
            refusal(Code::ChangesGone, "Events after `since` are no longer kept; `oldest` is the first one kept."),
        ]),
    Operation::get("/api/v1/domain/{name}", |of| get(guarded(of, domain::find_domain)))
        .named(Group::Names, "findDomain", "Dossier of a name")
        .description("What is known about an observed name: an estimate of its status, with the stage and the release that it follows \
             from; its latest drop with score and signals; and the votes on it. No registry is queried.")
        .parameters(&[NAME])
        .tagged()
        .of_index()
        .responses(&[json::<domain::DossierResponse<'_>>(200, "The dossier."), UNKNOWN_NAME]),
    Operation::put("/api/v1/domain/{name}/feedback", |of| put(guarded(of, domain::vote)))
        .named(Group::Names, "voteDomain", "Vote on a name")
        .description("An account has one vote per name; a new vote replaces it.")
        .parameters(&[NAME])
        .body::<domain::VoteRequest>()
        .responses(&[
            json::<domain::VoteResponse>(200, "Your vote and the new totals."),
            PLAN_LIMIT,
            UNKNOWN_NAME,
        ]),
    Operation::post("/api/v1/appraise", |of| post(guarded(of, appraise::appraise_names)))
        .named(Group::Names, "appraiseNames", "Score up to 100 names, observed or not")
        .description(
            "Counts as one request. An invalid name gets an error in its place; the others get their scores.",
        )
        .read_only()
        .class(Class::Read)
        .of_index()
        .body::<appraise::AppraiseRequest>()
        .responses(&[json::<appraise::AppraisalsResponse<'_>>(200, "One appraisal per name, in request order.")]),
    Operation::post("/api/v1/check", |of| post(guarded(of, check::check_names)))
        .named(Group::Names, "checkNames", "Ask registries about up to 100 names")
        .description(
            "Queues a check of each name at its registry and in the DNS, within the limits of each server, and \
             returns what is known. Results are kept for hours, with time and evidence; one younger than ten \
             minutes is returned again. With `Accept: text/event-stream`, the response is a stream with an event \
             `check` for each name when its result comes, and an event `done` at the end, within ten minutes. \
             An account has 100 checks an hour.",
        )
        .read_only()
        .class(Class::Stream)
        .body::<check::CheckRequest>()
        .responses(&[
            json::<check::ChecksResponse>(200, "One row per name, in request order."),
            text(200, "The same rows as server-sent events.", "text/event-stream"),
        ]),
    Operation::post("/api/v1/archive", |of| post(guarded(of, archive::ask_archive)))
        .named(Group::Names, "askArchive", "Ask the web archive about a name")
        .description(
            "Queues a question to the Wayback Machine of the Internet Archive, which is asked at most 24 times a minute \
             for all accounts, and returns what is known. Results are kept for hours; one younger than ten minutes is \
             returned again. An account has 100 questions an hour.",
        )
        .read_only()
        .class(Class::Read)
        .body::<archive::ArchiveRequest>()
        .responses(&[json::<archive::ArchiveResponse>(200, "The question and its result.")]),
    Operation::get("/api/v1/portfolio", |of| get(guarded(of, portfolio::list_claims)))
        .named(Group::Portfolio, "listClaims", "List your backorder claims")
        .description("Newest first.")
        .parameters(claim_parameters![OWNED_LIMIT])
        .responses(&[json::<portfolio::ClaimList<'_>>(200, "A page of your claims.")]),
    Operation::post("/api/v1/portfolio", |of| post(guarded(of, portfolio::add_claim)))
        .named(Group::Portfolio, "addClaim", "Add a claim")
        .description("Records a backorder and its outcome. The domain need not be in the data.")
        .parameters(&[IDEMPOTENCY])
        .body::<portfolio::ClaimRequest>()
        .responses(&[json::<portfolio::AddedClaim<'_>>(201, "The new claim."), PLAN_LIMIT, KEY_REUSED]),
    Operation::get("/api/v1/portfolio/{id}", |of| get(guarded(of, portfolio::find_claim)))
        .named(Group::Portfolio, "findClaim", "Get a claim")
        .description("A claim that was deleted or belongs to another account returns 404.")
        .parameters(&[CLAIM_ID])
        .tagged()
        .represents()
        .responses(&[json::<portfolio::OneClaim<'_>>(200, "The claim."), NOT_FOUND]),
    Operation::patch("/api/v1/portfolio/{id}", |of| patch(guarded(of, portfolio::change_claim)))
        .named(Group::Portfolio, "changeClaim", "Change a claim")
        .description("A status other than `sold` clears `soldAt` and `resalePriceUsd`.")
        .parameters(&[CLAIM_ID])
        .body::<portfolio::ClaimPatchRequest>()
        .represents()
        .current(|_| get(portfolio::find_claim))
        .responses(&[json::<portfolio::OneClaim<'_>>(200, "The changed claim."), NOT_FOUND]),
    Operation::delete("/api/v1/portfolio/{id}", |of| delete(guarded(of, portfolio::remove_claim)))
        .named(Group::Portfolio, "removeClaim", "Delete a claim")
        .description("Deletes it permanently.")
        .parameters(&[CLAIM_ID])
        .current(|_| get(portfolio::find_claim))
        .responses(&[json::<Deleted>(200, "The claim was deleted."), NOT_FOUND]),
    Operation::get("/api/v1/watchlist", |of| get(guarded(of, watchlist::list_watches)))
        .named(Group::Watchlist, "listWatches", "List your watchlist")
        .description("In the order of `sort`, with counts over the whole list. The drop and the score come from the newest list, `rdapObservedState` from the registry.")
        .parameters(&[TAG, VENUE, BID, STAGE_LIST, SORT, OWNED_LIMIT, offset(ENTRIES_OFFSET_MAX)])
        .responses(&[json::<watchlist::WatchlistResponse<'_>>(200, "A page of entries, and counts over the whole list.")]),
    Operation::post("/api/v1/watchlist", |of| post(guarded(of, watchlist::add_watch)))
        .named(Group::Watchlist, "addWatch", "Watch a name")
        .description("A name that is not in the corpus uses one of your plan's external names.")
        .parameters(&[IDEMPOTENCY])
        .body::<watchlist::WatchRequest>()
        .responses(&[
            json::<watchlist::WatchResponse<'_>>(201, "The new entry."),
            json::<watchlist::WatchResponse<'_>>(200, "The name was already on the list; no quota is used."),
            PLAN_LIMIT,
            KEY_REUSED,
        ]),
    Operation::patch("/api/v1/watchlist/{domain}", |of| patch(guarded(of, watchlist::change_watch)))
        .named(Group::Watchlist, "changeWatch", "Change the notes on a watched name")
        .description("Changes note, tags, maximum bid, venue, and alert settings of the name. Absent members are unchanged; `tags` are replaced as a whole.")
        .parameters(&[WATCHED])
        .body::<watchlist::WatchPatchRequest>()
        .responses(&[json::<watchlist::WatchResponse<'_>>(200, "The changed entry."), PLAN_LIMIT, NOT_FOUND]),
    Operation::post("/api/v1/watchlist/batch", |of| post(guarded(of, watchlist::add_batch)))
        .named(Group::Watchlist, "addWatches", "Watch up to 1,000 names")
        .description(
            "Counts as one request. An invalid name, or one beyond a limit, is refused in its place; the \
             others are added. Tags, maximum bid, venue and `alerts` are set on all of them, also on names that \
             were on the list.",
        )
        .parameters(&[IDEMPOTENCY])
        .body::<watchlist::WatchBatchRequest>()
        .responses(&[json::<watchlist::BatchResponse>(200, "One result per name, in request order."), PLAN_LIMIT, KEY_REUSED]),
    Operation::get("/api/v1/hidden", |of| get(guarded(of, hidden::list_hidden)))
        .named(Group::Watchlist, "listHidden", "List your hidden names")
        .description("In name order. For clients that show lists: drops and exports still contain these names.")
        .parameters(&[OWNED_LIMIT, offset(HIDDEN_MAX)])
        .responses(&[json::<hidden::HiddenResponse>(200, "A page of names.")]),
    Operation::post("/api/v1/hidden", |of| post(guarded(of, hidden::hide)))
        .named(Group::Watchlist, "hideNames", "Hide up to 1,000 names")
        .description("Hides all names or none: the request is refused if any name is invalid.")
        .parameters(&[IDEMPOTENCY])
        .body::<hidden::HideRequest>()
        .responses(&[json::<hidden::HideResponse>(200, "How many were added."), PLAN_LIMIT, KEY_REUSED]),
    Operation::delete("/api/v1/hidden", |of| delete(guarded(of, hidden::show)))
        .named(Group::Watchlist, "showName", "Show a hidden name again")
        .description("Lists have it again.")
        .parameters(&[HIDDEN_NAME])
        .responses(&[json::<hidden::ShowResponse>(200, "The name is no longer hidden."), NOT_FOUND]),
    Operation::delete("/api/v1/watchlist", |of| delete(guarded(of, watchlist::remove_watch)))
        .named(Group::Watchlist, "removeWatch", "Stop watching a name")
        .description("Removing an external name frees its quota.")
        .parameters(&[WATCHED_NAME])
        .responses(&[json::<watchlist::RemovedWatch>(200, "The name was removed from the list."), NOT_FOUND]),
    Operation::get("/api/v1/facts", |of| get(guarded(of, facts::list_facts)))
        .named(Group::Facts, "listFacts", "List the facts that you can filter, sort and show")
        .description("Sources of the server, and your own. An own source takes precedence over one of the server with the same name.")
        .responses(&[json::<facts::FactSourcesResponse<'_>>(200, "The sources with their facts.")]),
    Operation::post("/api/v1/facts", |of| post(guarded(of, facts::add_facts)))
        .named(Group::Facts, "addFacts", "Add a file of facts")
        .description(
            "Exports of known tools are recognised; any other file needs a canonical header, or a description of its \
             columns (`unmapped_columns` names the fingerprint for it). Columns with personal data are not read. Rows \
             replace those of the same key; others are kept. The facts are in use with the response, and only you see \
             them.",
        )
        .parameters(&[DATE_ORDER, CURRENCY, DRY_RUN])
        .file_body()
        .responses(&[
            json::<facts::AddedResponse<'_>>(201, "The facts are kept."),
            json::<facts::AddedResponse<'_>>(200, "With `dry_run`: what would be kept."),
            PLAN_LIMIT,
        ]),
    Operation::delete("/api/v1/facts/{source}", |of| delete(guarded(of, facts::remove_facts)))
        .named(Group::Facts, "removeFacts", "Remove one of your sources of facts")
        .description("Rules and searches that use its facts find nothing until it is back.")
        .parameters(&[FACT_SOURCE])
        .responses(&[json::<facts::RemovedResponse>(200, "The source was removed."), NOT_FOUND]),
    Operation::put("/api/v1/facts/mappings/{fingerprint}", |of| put(guarded(of, facts::put_mapping)))
        .named(Group::Facts, "describeFacts", "Describe the columns of a file")
        .description("Files with the same header row are then read without asking again.")
        .parameters(&[FINGERPRINT])
        .body::<facts::MappingRequest>()
        .responses(&[json::<facts::MappedResponse>(200, "The description."), NOT_FOUND]),
    Operation::delete("/api/v1/facts/mappings/{fingerprint}", |of| delete(guarded(of, facts::remove_mapping)))
        .named(Group::Facts, "forgetDescription", "Forget the description of a file")
        .description("Files with this header row are asked about again; facts that were added are kept.")
        .parameters(&[FINGERPRINT])
        .responses(&[json::<facts::RemovedResponse>(200, "The description was removed."), NOT_FOUND]),
    Operation::get("/api/v1/searches", |of| get(guarded(of, searches::list_searches)))
        .named(Group::Searches, "listSearches", "List your saved searches")
        .description("Newest first, each with the number of names that match now.")
        .parameters(&[OWNED_LIMIT, offset(ENTRIES_OFFSET_MAX)])
        .responses(&[json::<searches::SearchList<'_>>(200, "A page of your saved searches.")]),
    Operation::post("/api/v1/searches", |of| post(guarded(of, searches::add_search)))
        .named(Group::Searches, "addSearch", "Save a search")
        .description("Up to 100 per account. Relative days, such as `tomorrow` and `+3d`, move with the day.")
        .parameters(&[IDEMPOTENCY])
        .body::<searches::SearchRequest>()
        .responses(&[json::<searches::AddedSearch<'_>>(201, "The saved search."), PLAN_LIMIT, KEY_REUSED]),
    Operation::patch("/api/v1/searches/{id}", |of| patch(guarded(of, searches::change_search)))
        .named(Group::Searches, "changeSearch", "Change a saved search")
        .description("Absent members are unchanged; `filter` is replaced as a whole. `seen` marks its names as seen.")
        .parameters(&[SEARCH_ID])
        .body::<searches::SearchPatchRequest>()
        .responses(&[json::<searches::OneSearch<'_>>(200, "The changed search."), PLAN_LIMIT, NOT_FOUND]),
    Operation::delete("/api/v1/searches/{id}", |of| delete(guarded(of, searches::remove_search)))
        .named(Group::Searches, "removeSearch", "Delete a saved search")
        .description("Alert rules created from it stay.")
        .parameters(&[SEARCH_ID])
        .responses(&[json::<Deleted>(200, "The search was deleted."), NOT_FOUND]),
    Operation::get("/api/v1/watchlist/alerts", |of| get(guarded(of, watch_alerts::find_watch_alerts)))
        .named(Group::Alerts, "findWatchAlerts", "Get the alert settings of watched names")
        .description("Returns the defaults until settings are saved.")
        .responses(&[json::<watch_alerts::OneWatchAlerts<'_>>(200, "The settings.")]),
    Operation::put("/api/v1/watchlist/alerts", |of| put(guarded(of, watch_alerts::set_watch_alerts)))
        .named(Group::Alerts, "setWatchAlerts", "Replace the alert settings of watched names")
        .description("Replaces all settings. They apply to every watched name without `alerts` of its own.")
        .body::<watch_alerts::WatchAlertsRequest>()
        .responses(&[
            json::<watch_alerts::OneWatchAlerts<'_>>(200, "The settings, with the secrets of new webhooks."),
            PLAN_LIMIT,
        ]),
    Operation::post("/api/v1/watchlist/alerts/test", |of| post(guarded(of, watch_alerts::test_watch_alerts)))
        .named(Group::Alerts, "testWatchAlerts", "Send a test message about watched names")
        .description("Sends it to every channel in the settings that is not switched off. The message is marked as a test.")
        .parameters(&[IDEMPOTENCY])
        .responses(&[
            json::<alerts::deliveries::QueuedDeliveries<'_>>(202, "The queued deliveries."),
            refusal(Code::Conflict, "All channels are switched off, or the idempotency key was used with another request."),
        ]),
    Operation::post("/api/v1/watchlist/alerts/secrets", |of| post(guarded(of, watch_alerts::replace_watch_secrets)))
        .named(Group::Alerts, "replaceWatchSecrets", "Replace the signing secrets of the watchlist's webhooks")
        .description(SECRETS_REPLACED)
        .parameters(&[IDEMPOTENCY])
        .responses(&[
            json::<alerts::ReplacedSecrets<'_>>(200, "The new secrets, shown once."),
            refusal(Code::Conflict, "No webhook is set, or the idempotency key was used with another request."),
        ]),
    Operation::get("/api/v1/watchlist/alerts/deliveries", |of| get(guarded(of, watch_alerts::list_watch_deliveries)))
        .named(Group::Alerts, "listWatchDeliveries", "List the messages about watched names")
        .description("The last 100 and all pending ones. A pending message has all its changes, a delivered one the first 20.")
        .responses(&[json::<alerts::deliveries::DeliveryList<'_>>(200, "The most recent deliveries, newest first.")]),
    Operation::post("/api/v1/watchlist/alerts/deliveries/{delivery}/retry", |of| post(guarded(of, watch_alerts::retry_watch_delivery)))
        .named(Group::Alerts, "retryWatchDelivery", "Retry a failed message about watched names")
        .description("Queues it with all its attempts, while its channel is on. The newest ten that failed can be retried.")
        .parameters(&[DELIVERY_ID, IDEMPOTENCY])
        .responses(&[
            json::<alerts::deliveries::OneDelivery<'_>>(202, "The delivery is queued again."),
            NOT_FOUND,
            refusal(Code::Conflict, "The delivery has not failed, its channel is switched off, or the idempotency key was used with another request."),
        ]),
    Operation::get("/api/v1/alerts", |of| get(guarded(of, alerts::list_alerts)))
        .named(Group::Alerts, "listAlerts", "List your alert rules")
        .description("Newest first.")
        .parameters(&[OWNED_LIMIT, offset(ENTRIES_OFFSET_MAX)])
        .responses(&[json::<alerts::RuleList<'_>>(200, "A page of your rules.")]),
    Operation::post("/api/v1/alerts", |of| post(guarded(of, alerts::add_alert)))
        .named(Group::Alerts, "addAlert", "Add an alert rule")
        .description(
            "The rule is active at once. `searchId` copies the filter of a saved search. Only this response contains the signing secrets of its webhooks.",
        )
        .parameters(&[IDEMPOTENCY])
        .body::<alerts::RuleRequest>()
        .responses(&[json::<alerts::AddedRule<'_>>(201, "The new rule."), PLAN_LIMIT, KEY_REUSED]),
    Operation::get("/api/v1/alerts/{id}", |of| get(guarded(of, alerts::find_alert)))
        .named(Group::Alerts, "findAlert", "Get an alert rule")
        .description("A rule that was deleted or belongs to another account returns 404.")
        .parameters(&[RULE_ID])
        .tagged()
        .represents()
        .responses(&[json::<alerts::OneRule<'_>>(200, "The rule."), NOT_FOUND]),
    Operation::patch("/api/v1/alerts/{id}", |of| patch(guarded(of, alerts::change_alert)))
        .named(Group::Alerts, "changeAlert", "Change an alert rule")
        .description("Absent members are unchanged; `filter` and `channels` are replaced as a whole. New `channels` switch on those that were switched off.")
        .parameters(&[RULE_ID])
        .body::<alerts::RulePatchRequest>()
        .current(|_| get(alerts::find_alert))
        .responses(&[
            json::<alerts::OneRule<'_>>(200, "The changed rule, with the secrets of new webhooks."),
            PLAN_LIMIT,
            NOT_FOUND,
        ]),
    Operation::delete("/api/v1/alerts/{id}", |of| delete(guarded(of, alerts::remove_alert)))
        .named(Group::Alerts, "removeAlert", "Delete an alert rule")
        .description("Claims attributed to the rule keep its name.")
        .parameters(&[RULE_ID])
        .current(|_| get(alerts::find_alert))
        .responses(&[json::<Deleted>(200, "The rule was deleted."), NOT_FOUND]),
    Operation::post("/api/v1/alerts/preview", |of| post(guarded(of, alerts::preview::preview_alert)))
        .named(Group::Alerts, "previewAlert", "Preview the matches of an alert rule")
        .description("Takes the body of a rule and uses its filter. Nothing is stored.")
        .read_only()
        .class(Class::Read)
        .body::<alerts::PreviewRequest>()
        .responses(&[json::<alerts::preview::PreviewResponse>(200, "Names that match now, and counts for recent drop dates.")]),
    Operation::post("/api/v1/alerts/backtest", |of| post(guarded(of, alerts::backtest::backtest_alert)))
        .named(Group::Alerts, "backtestAlert", "Try a rule on past releases")
        .description(
            "Counts names of past releases that match a filter, and those of them that were registered again within a \
             horizon. One at a time and 30 an hour for each account. Nothing is stored.",
        )
        .read_only()
        .class(Class::Read)
        .body::<alerts::backtest::BacktestRequest>()
        .responses(&[
            json::<alerts::backtest::BacktestResponse<'_>>(200, "The names, and their outcomes."),
            refusal(Code::TooManyBacktests, "A backtest of the account is running, or it ran 30 in an hour."),
        ]),
    Operation::post("/api/v1/alerts/{id}/test", |of| post(guarded(of, alerts::deliveries::test_alert)))
        .named(Group::Alerts, "testAlert", "Send a test message")
        .description("Sends it to every channel of the rule that is not switched off. The message is marked as a test.")
        .parameters(&[RULE_ID, IDEMPOTENCY])
        .responses(&[
            json::<alerts::deliveries::QueuedDeliveries<'_>>(202, "The queued deliveries."),
            NOT_FOUND,
            refusal(Code::Conflict, "All channels of the rule are switched off, or the idempotency key was used with another request."),
        ]),
    Operation::post("/api/v1/alerts/{id}/secrets", |of| post(guarded(of, alerts::replace_secrets)))
        .named(Group::Alerts, "replaceSecrets", "Replace the signing secrets of a rule's webhooks")
        .description(SECRETS_REPLACED)
        .parameters(&[RULE_ID, IDEMPOTENCY])
        .responses(&[
            json::<alerts::ReplacedSecrets<'_>>(200, "The new secrets, shown once."),
            NOT_FOUND,
            refusal(Code::Conflict, "No webhook is set, or the idempotency key was used with another request."),
        ]),
    Operation::get("/api/v1/alerts/{id}/deliveries", |of| get(guarded(of, alerts::deliveries::list_deliveries)))
        .named(Group::Alerts, "listDeliveries", "List the deliveries of an alert rule")
        .description("The last 100 and all pending ones.")
        .parameters(&[RULE_ID])
        .responses(&[json::<alerts::deliveries::DeliveryList<'_>>(200, "The most recent deliveries, newest first."), NOT_FOUND]),
    Operation::post("/api/v1/alerts/{id}/deliveries/{delivery}/retry", |of| post(guarded(of, alerts::deliveries::retry_delivery)))
        .named(Group::Alerts, "retryDelivery", "Retry a failed delivery")
        .description("Queues it with all its attempts, while its channel is on. The newest ten failed deliveries of a rule can be retried.")
        .parameters(&[RULE_ID, DELIVERY_ID, IDEMPOTENCY])
        .responses(&[
            json::<alerts::deliveries::OneDelivery<'_>>(202, "The delivery is queued again."),
            NOT_FOUND,
            refusal(Code::Conflict, "The delivery has not failed, its channel is switched off, or the idempotency key was used with another request."),
        ]),
    Operation::get("/api/v1/feeds", |of| get(guarded(of, feeds::list_feeds)))
        .named(Group::Feeds, "listFeeds", "List your feeds")
        .description("Their addresses are not included, because they are shown only once.")
        .responses(&[json::<feeds::FeedList>(200, "Your feeds, oldest first.")]),
    Operation::post("/api/v1/feeds", |of| post(guarded(of, feeds::make_feed)))
        .named(Group::Feeds, "makeFeed", "Create a feed, or replace its address")
        .description("The feed of the watchlist, a saved search or an alert rule, for readers (Atom) and calendars (iCalendar). The previous address stops working.")
        .parameters(&[IDEMPOTENCY])
        .body::<feeds::FeedRequest>()
        .responses(&[json::<feeds::FeedAddresses>(201, "The addresses, shown once."), NOT_FOUND, KEY_REUSED]),
    Operation::delete("/api/v1/feeds", |of| delete(guarded(of, feeds::revoke_feed)))
        .named(Group::Feeds, "revokeFeed", "Revoke a feed")
        .description("Its addresses stop working at once.")
        .parameters(&[
            query("search_id", ParameterKind::Id, "1234", "The saved search."),
            query("rule_id", ParameterKind::Id, "1234", "The alert rule. Without a search or a rule, the watchlist."),
        ])
        .responses(&[json::<feeds::RevokedFeed>(200, "Its addresses no longer work."), NOT_FOUND]),
    Operation::get("/api/export/drops", |of| get(guarded(of, export::export_drops)))
        .named(Group::Exports, "exportDrops", "Ranked drops as CSV")
        .description("Columns: domain, tld, length, dqs, explanation. While rows follow, `Link` has the address of the next file.")
        .export()
        .parameters(drop_parameters![EXPORT_LIMIT, CURSOR, EXPORT_FORMAT, COLUMNS, FACTS, BOM])
        .of_index()
        .responses(&[CSV, NDJSON]),
    Operation::get("/api/export/watchlist", |of| get(guarded(of, export::export_watchlist)))
        .named(Group::Exports, "exportWatchlist", "Your watchlist as CSV")
        .description(
            "Columns: domain, source, stage, drop_date, dqs, rdap_state, rdap_verified_at, added_at, \
             release_date, tags, max_bid_usd, venue, note.",
        )
        .export()
        .parameters(&[TAG, VENUE, BID, STAGE_LIST, SORT, EXPORT_LIMIT, offset(ENTRIES_OFFSET_MAX), BOM])
        .responses(&[CSV]),
    Operation::get("/api/export/portfolio", |of| get(guarded(of, export::export_portfolio)))
        .named(Group::Exports, "exportPortfolio", "Your backorder claims as CSV")
        .description(
            "Columns: id, domain, tld, status, registrar, acquired_price_usd, resale_price_usd, sold_at, \
             reported_at, updated_at, user_notes, bid_usd, venue, renews_on, renewal_usd, \
             other_acquired_price, other_resale_price, other_bid, other_renewal, commission, sold_venue.",
        )
        .export()
        .parameters(claim_parameters![EXPORT_LIMIT, BOM])
        .responses(&[CSV]),
    Operation::get("/api/export/files", |of| get(guarded(of, files::list_files)))
        .named(Group::Exports, "listExportFiles", "Dated files for whole copies")
        .description(
            "Files with every drop in the pipeline, and with the changes of a day, the newest first. `lastSeq` plus one of \
             a day is `firstSeq` of the next. Empty unless the server makes files. Free of charge.",
        )
        .export()
        .costs(Cost::Nothing)
        .parameters(&[OWNED_LIMIT, offset(ENTRIES_OFFSET_MAX)])
        .responses(&[json::<files::FileList>(200, "The files, and how many there are.")]),
    Operation::get("/api/export/files/{name}", |of| get(guarded(of, files::read_file)))
        .named(Group::Exports, "readExportFile", "Download a dated file")
        .description("With `Range`, a part of it. Ranges of a file that you downloaded on the same day count nothing.")
        .export()
        .tagged()
        .parameters(&[in_path("name", ParameterKind::Text { chars_max: 80 }, "Name of the file.")])
        .responses(&[
            text(200, "The file.", "application/gzip"),
            text(200, "The file.", "application/vnd.apache.parquet"),
            text(206, "The part of the file that `Content-Range` names.", "application/gzip"),
            text(206, "The part of the file that `Content-Range` names.", "application/vnd.apache.parquet"),
            refusal(Code::NotFound, "There is no such file."),
            refusal(Code::RangeNotSatisfiable, "The range is behind the end of the file."),
        ]),
    Operation::get("/unsubscribe/{delivery}", |_| get(unsubscribe::ask))
        .named(Group::Alerts, "askUnsubscribe", "Page for stopping the mails of an alert")
        .description("Target of the link in alert mails. Opening it changes nothing.")
        .page()
        .parameters(&[LINK])
        .responses(&[text(200, "A page with a button.", "text/html")]),
    Operation::post("/unsubscribe/{delivery}", |_| post(unsubscribe::unsubscribe))
        .named(Group::Alerts, "unsubscribe", "Stop the mails of an alert")
        .description("One-click unsubscription (RFC 8058). Every link gets the same response, valid or not.")
        .page()
        .parameters(&[LINK])
        .responses(&[text(200, "A confirmation page.", "text/html"), refusal(Code::WritesUnavailable, "Writes are unavailable; try again later.")]),
    Operation::get("/feeds/{address}", |of| get(guarded(of, feeds::read_feed)))
        .named(Group::Feeds, "readFeed", "Names of a feed")
        .description("Atom at `….atom`, iCalendar at `….ics`. The address is the secret. At most 20 requests at once, and one a minute after that.")
        .public()
        .parameters(&[in_path("address", ParameterKind::Text { chars_max: 80 }, "Address of the feed, with its ending.")])
        .tagged()
        .responses(&[
            text(200, "Atom.", "application/atom+xml"),
            text(200, "iCalendar.", "text/calendar"),
            refusal(Code::NotFound, "No such feed."),
            refusal(Code::TooManyFeedRequests, "Read too often."),
        ]),
    Operation::get("/api/v1/account", |of| get(guarded(of, account::show)))
        .named(Group::Service, "getAccount", "Plan, limits and use of your account")
        .description("What your key may do, and how much of each limit is in use. Does not count as a request.")
        .costs(Cost::Nothing)
        .responses(&[json::<account::AccountResponse>(200, "The account.")]),
    Operation::get("/api/health", |of| get(guarded(of, health::health)))
        .named(Group::Service, "getHealth", "Liveness and data freshness; always 200")
        .description("For monitoring: whether the newest list is older than 48 hours, and how long the server has been running.")
        .health()
        .responses(&[json::<health::HealthResponse>(200, "The server is running.")]),
    Operation::get("/api/ready", |of| get(guarded(of, health::ready)))
        .named(Group::Service, "getReady", "Readiness of this instance")
        .description("For load balancers: 503 when writes would fail and while the server shuts down. Each check is `ok` or a short reason.")
        .health()
        .responses(&[
            json::<health::ReadyResponse>(200, "Ready."),
            json::<health::ReadyResponse>(503, "Not ready; `checks` gives the reason."),
        ]),
    Operation::get("/api/ready/reads", |of| get(guarded(of, health::ready_reads)))
        .named(Group::Service, "getReadyReads", "Readiness of this instance for reads")
        .description("For load balancers, when no instance is ready: 503 only when reads would fail or may miss what other nodes wrote before this one started. Each check is `ok` or a short reason.")
        .health()
        .responses(&[
            json::<health::ReadyResponse>(200, "Ready for reads."),
            json::<health::ReadyResponse>(503, "Not ready; `checks` gives the reason."),
        ]),
    Operation::get("/api/ready/ingest", |of| get(guarded(of, health::ready_ingest)))
        .named(Group::Service, "getReadyIngest", "503 when the newest list is over 48 hours old")
        .description("For alerts on missing lists: the age of the newest list in hours.")
        .health()
        .responses(&[
            json::<health::IngestResponse>(200, "The newest list is fresh."),
            json::<health::IngestResponse>(503, "The newest list is stale, or no list was ingested."),
        ]),
    Operation::get("/api/docs", |of| get(guarded(of, health::api_docs)))
        .named(Group::Service, "getDocs", "Documentation of this API")
        .description("The same text as a web page: `/docs`.")
        .public()
        .tagged()
        .responses(&[text(200, "Markdown.", "text/markdown")]),
    Operation::get("/api/openapi.json", |of| get(guarded(of, openapi_json)))
        .named(Group::Service, "getOpenapi", "OpenAPI document of this API")
        .description("This document, for client generators.")
        .public()
        .tagged()
        .responses(&[text(200, "OpenAPI 3.1.", "application/json")]),
];

/// An endpoint of the API.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct Endpoint {
    pub method: &'static str,
    pub path: &'static str,
    /// Whether it requires an API key.
    pub auth: bool,
    pub description: &'static str,
}

/// Every operation, as the index lists it.
pub fn endpoints() -> impl Iterator<Item = Endpoint> {
    OPERATIONS.iter().map(|operation| Endpoint {
        method: operation.method,
        path: operation.path,
        auth: operation.access != Access::Everybody,
        description: operation.summary,
    })
}

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| openapi::describe(OPERATIONS));

/// The OpenAPI document of this build.
pub fn document() -> &'static Value {
    &DOCUMENT
}

/// The endpoints of the API.
#[derive(Serialize, ToSchema)]
#[schema(as = ApiIndex)]
struct IndexResponse {
    name: &'static str,
    version: &'static str,
    endpoints: Vec<Endpoint>,
    /// How to authenticate.
    auth: &'static str,
    /// Path of the documentation.
    docs: String,
}

/// `GET /api/v1`: the index of endpoints.
async fn api_index(State(app): State<App>) -> impl IntoResponse {
    Json(IndexResponse {
        name: "dropdex",
        version: "1.0",
        endpoints: endpoints().collect(),
        auth: "Send your API key with every request, in the header `Authorization: Bearer <API_KEY>`.",
        docs: format!("{}/api/docs", app.site.base()),
    })
}

/// `GET /api/openapi.json`: the OpenAPI document.
async fn openapi_json(State(app): State<App>, headers: HeaderMap) -> Response {
    static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| document().to_string().into_bytes());
    static TAG: LazyLock<Tag> = LazyLock::new(|| Tag::for_bytes(&BYTES));
    if !app.site.base().is_empty() {
        // Built once, because a process has only one public address.
        static MOVED: OnceLock<(Vec<u8>, Tag)> = OnceLock::new();
        let (bytes, tag) = MOVED.get_or_init(|| {
            let mut document = document().clone();
            document["servers"][0]["url"] = app.site.base().into();
            document["components"]["securitySchemes"]["session"]["name"] =
                app.site.cookie.name().into();
            let bytes = document.to_string().into_bytes();
            let tag = Tag::for_bytes(&bytes);
            (bytes, tag)
        });
        return etag::constant(tag, &headers, "application/json", bytes);
    }
    etag::constant(&TAG, &headers, "application/json", &BYTES)
}

/// The routes of the API, without a fallback for unknown paths. Guards wrap handlers, not routes, so
/// that a wrong method gets 405 with or without a key.
pub fn router(app: App) -> Router {
    OPERATIONS
        .iter()
        .fold(Router::new(), |routes, operation| {
            routes.route(operation.path, (operation.route)(operation))
        })
        .method_not_allowed_fallback(error::method_not_allowed)
        .with_state(app)
}
