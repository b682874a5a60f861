//! Every operation of the API, once: its route, what the index says of it, and what the OpenAPI
//! document does ([`crate::http::openapi`]). What is not in the table is not routed.

use axum::Router;
use axum::routing::{MethodRouter, delete, get, patch, post, put};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

use crate::http::allowance::guarded;
use crate::http::{
    App, alerts, appraise, domain, drops, error, export, health, portfolio, search, shapes,
    unsubscribe, watchlist,
};
use crate::vocab::limits::{
    CLAIMS_OFFSET_MAX, DROPS_LIMIT_DEFAULT, DROPS_LIMIT_MAX, DROPS_OFFSET_MAX, ENTRIES_OFFSET_MAX,
    EXPORT_ROWS_MAX, OWNED_LIMIT_DEFAULT, OWNED_LIMIT_MAX, SEARCH_LIMIT_DEFAULT, SEARCH_LIMIT_MAX,
    SEARCH_OFFSET_MAX,
};

/// One method of one path.
pub struct Operation {
    pub method: &'static str,
    pub path: &'static str,
    pub access: Access,
    /// Whether it writes anything down; a POST may only ask.
    pub changes: bool,
    /// Whether its answers have tags, so that a client that holds one is told so (304).
    pub tagged: bool,
    /// Whether its answers say which generation of the index made them.
    pub of_index: bool,
    /// A name for programs that are made from the document.
    pub id: &'static str,
    pub group: Group,
    /// A few words, without a full stop.
    pub summary: &'static str,
    /// What else there is to know; may be empty.
    pub description: &'static str,
    pub parameters: &'static [Parameter],
    pub body: Option<Shape>,
    /// What it answers, 2xx first, but for what the access and the body bring along.
    pub answers: &'static [Answer],
    route: fn() -> MethodRouter<App>,
}

/// Who may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Everybody,
    /// A key of plan Pro or above; counts one request.
    Key,
    /// A key or a session of plan Core or above; counts one export.
    Export,
}

/// What belongs together in the document, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    Names,
    Watchlist,
    Alerts,
    Portfolio,
    Exports,
    Service,
}

impl Group {
    pub const ALL: [Group; 6] = [
        Group::Names,
        Group::Watchlist,
        Group::Alerts,
        Group::Portfolio,
        Group::Exports,
        Group::Service,
    ];

    /// Its heading.
    pub fn as_str(self) -> &'static str {
        match self {
            Group::Names => "Names",
            Group::Watchlist => "Watchlist",
            Group::Alerts => "Alerts",
            Group::Portfolio => "Portfolio",
            Group::Exports => "Exports",
            Group::Service => "Service",
        }
    }
}

/// A parameter in the path or the query.
pub struct Parameter {
    pub name: &'static str,
    pub place: ParameterPlace,
    pub kind: ParameterKind,
    pub required: bool,
    pub description: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterPlace {
    Path,
    Query,
    Header,
}

/// What a parameter may hold.
#[derive(Clone, Copy, Debug)]
pub enum ParameterKind {
    Integer {
        min: u32,
        max: u32,
        default: Option<u32>,
    },
    Id,
    Text {
        chars_max: u32,
    },
    /// Text that reads as this word says, for people and tests; no format that validators know.
    Format(&'static str),
    /// Some of these, separated by commas.
    SomeOf(&'static [&'static str]),
    Date,
    OneOf {
        words: &'static [&'static str],
        default: Option<&'static str>,
    },
}

/// A status and what comes with it.
pub struct Answer {
    pub status: u16,
    pub description: &'static str,
    pub content: Content,
}

/// A body of an answer.
pub enum Content {
    Json(Shape),
    /// Of this media type.
    Text(&'static str),
    /// The `Error` of every refusal.
    Refusal,
}

/// A shape of JSON, by its type.
#[derive(Clone, Copy)]
pub struct Shape {
    pub name: fn() -> std::borrow::Cow<'static, str>,
    pub schema: fn() -> RefOr<Schema>,
    /// Adds what it is made of.
    pub parts: fn(&mut Vec<(String, RefOr<Schema>)>),
}

impl Shape {
    /// The shape that a type describes.
    pub const fn of<T: ToSchema>() -> Shape {
        Shape { name: T::name, schema: T::schema, parts: T::schemas }
    }
}

const fn json<T: ToSchema>(status: u16, description: &'static str) -> Answer {
    Answer { status, description, content: Content::Json(Shape::of::<T>()) }
}

const fn text(status: u16, description: &'static str, kind: &'static str) -> Answer {
    Answer { status, description, content: Content::Text(kind) }
}

const fn refusal(status: u16, description: &'static str) -> Answer {
    Answer { status, description, content: Content::Refusal }
}

const fn query(name: &'static str, kind: ParameterKind, description: &'static str) -> Parameter {
    Parameter { name, place: ParameterPlace::Query, kind, required: false, description }
}

const fn needed(name: &'static str, kind: ParameterKind, description: &'static str) -> Parameter {
    Parameter { name, place: ParameterPlace::Query, kind, required: true, description }
}

const fn in_path(name: &'static str, kind: ParameterKind, description: &'static str) -> Parameter {
    Parameter { name, place: ParameterPlace::Path, kind, required: true, description }
}

const fn limit(default: u32, max: u32) -> Parameter {
    let kind = ParameterKind::Integer { min: 1, max, default: Some(default) };
    query("limit", kind, "Rows at most.")
}

const fn offset(max: u32) -> Parameter {
    let kind = ParameterKind::Integer { min: 0, max, default: Some(0) };
    query("offset", kind, "Rows to leave out before the first.")
}

const TLD: Parameter = query(
    "tld",
    ParameterKind::Format("tlds"),
    "Public suffixes, separated by commas, at most 1,000: `com,co.uk`. `uk` matches `uk` only.",
);
const MIN_DQS: Parameter = query(
    "min_dqs",
    ParameterKind::Integer { min: 0, max: 100, default: None },
    "Domain Quality Score at least.",
);
const MAX_LEN: Parameter = query(
    "max_len",
    ParameterKind::Integer { min: 1, max: 63, default: None },
    "Characters of the label at most.",
);
const STAGES: &[&str] = &["redemption", "pending-delete", "catchable", "released"];
const STAGE: Parameter = query(
    "stage",
    ParameterKind::OneOf { words: STAGES, default: None },
    "Where the name stands today; makes `view` ignored.",
);
const VIEWS: &[&str] = &["active", "today", "all"];
const VIEW: Parameter = query(
    "view",
    ParameterKind::OneOf { words: VIEWS, default: Some("active") },
    "`active`: not yet released, not registered again. `today`: dropped today. `all`: every drop.",
);
const SEARCH_VIEW: Parameter = query(
    "view",
    ParameterKind::OneOf { words: VIEWS, default: None },
    "`active` or `today` limits to the pipeline; without it every name ever seen.",
);
const CONTAINS: Parameter = query(
    "q",
    ParameterKind::Format("name-part"),
    "Part of the full name, 1 to 63 characters, in any case; Unicode matches the Unicode form.",
);
const NAME: Parameter = in_path(
    "name",
    ParameterKind::Format("domain"),
    "A registrable domain in any spelling: Unicode or A-labels, any case.",
);
const CLAIM_ID: Parameter = in_path("id", ParameterKind::Id, "The id of a claim.");
const RULE_ID: Parameter = in_path("id", ParameterKind::Id, "The id of a rule.");
const DELIVERY_ID: Parameter =
    in_path("delivery", ParameterKind::Text { chars_max: 64 }, "The id of a delivery.");
// Every link is answered alike, so nothing is wrong with any.
const LINK: Parameter =
    in_path("delivery", ParameterKind::Format("delivery"), "What the link in the mail says.");
const STATUS_LIST: Parameter = query(
    "status",
    ParameterKind::SomeOf(&["attempted", "caught", "registered", "lost", "sold"]),
    "One or more of these, separated by commas.",
);
const FROM: Parameter =
    query("from", ParameterKind::Date, "Reported on this day or later, 1985 to 2164.");
const TO: Parameter = query("to", ParameterKind::Date, "Reported before this day, 1985 to 2164.");
const SORT: Parameter = query(
    "sort",
    ParameterKind::OneOf {
        words: &["lifecycle", "name", "dqs", "added"],
        default: Some("lifecycle"),
    },
    "`lifecycle`: what can be caught first.",
);
const IDEMPOTENCY: Parameter = Parameter {
    name: "Idempotency-Key",
    place: ParameterPlace::Header,
    kind: ParameterKind::Text { chars_max: 255 },
    required: false,
    description: "Your name for the request: sent again within 24 h, it gets the same answer and does \
                  nothing.",
};

const NOT_FOUND: Answer = refusal(404, "There is no such thing, or it is not yours.");
const PLAN_LIMIT: Answer = refusal(403, "Not in your plan, or more than it allows.");
const KEY_REUSED: Answer = refusal(409, "The idempotency key came with another request before.");

/// All of them, in the order the index lists them.
pub const OPERATIONS: &[Operation] = &[
    Operation {
        method: "GET",
        path: "/api/v1",
        access: Access::Everybody,
        changes: false,
        tagged: false,
        of_index: false,
        id: "getIndex",
        group: Group::Service,
        summary: "This index",
        description: "",
        parameters: &[],
        body: None,
        answers: &[json::<shapes::ApiIndex>(200, "What there is.")],
        route: || get(health::api_index),
    },
    Operation {
        method: "GET",
        path: "/api/v1/drops",
        access: Access::Key,
        changes: false,
        tagged: true,
        of_index: true,
        id: "listDrops",
        group: Group::Names,
        summary: "Ranked drops",
        description: "Best first: by score, then shorter, then by name.",
        parameters: &[
            TLD,
            MIN_DQS,
            MAX_LEN,
            CONTAINS,
            STAGE,
            VIEW,
            limit(DROPS_LIMIT_DEFAULT, DROPS_LIMIT_MAX),
            offset(DROPS_OFFSET_MAX),
        ],
        body: None,
        answers: &[json::<shapes::Drops>(200, "A page of the list.")],
        route: || get(guarded(drops::list_drops)),
    },
    Operation {
        method: "GET",
        path: "/api/v1/search",
        access: Access::Key,
        changes: false,
        tagged: true,
        of_index: true,
        id: "searchNames",
        group: Group::Names,
        summary: "Prefix search over every name ever seen",
        description: "Names or labels that are the prefix itself come first, then the best. A dot is \
                      literal: `exam.co` finds `exam.com`. IDNs are found by either form.",
        parameters: &[
            needed(
                "q",
                ParameterKind::Format("name-prefix"),
                "What names start with, 1 to 253 characters.",
            ),
            TLD,
            MIN_DQS,
            MAX_LEN,
            STAGE,
            SEARCH_VIEW,
            limit(SEARCH_LIMIT_DEFAULT, SEARCH_LIMIT_MAX),
            offset(SEARCH_OFFSET_MAX),
        ],
        body: None,
        answers: &[json::<shapes::SearchResults>(200, "A page of the matches.")],
        route: || get(guarded(search::search_names)),
    },
    Operation {
        method: "GET",
        path: "/api/v1/domain/{name}",
        access: Access::Key,
        changes: false,
        tagged: true,
        of_index: true,
        id: "findDomain",
        group: Group::Names,
        summary: "The dossier of one name",
        description: "",
        parameters: &[NAME],
        body: None,
        answers: &[json::<shapes::Dossier>(200, "All that is known."), NOT_FOUND],
        route: || get(guarded(domain::find_domain)),
    },
    Operation {
        method: "PUT",
        path: "/api/v1/domain/{name}/feedback",
        access: Access::Key,
        changes: true,
        tagged: false,
        of_index: false,
        id: "voteDomain",
        group: Group::Names,
        summary: "Your vote on a name",
        description: "One a name and account; sent again it replaces the one before.",
        parameters: &[NAME],
        body: Some(Shape::of::<shapes::VoteBody>()),
        answers: &[
            json::<shapes::VoteResult>(200, "Your vote and the totals."),
            PLAN_LIMIT,
            NOT_FOUND,
        ],
        route: || put(guarded(domain::vote)),
    },
    Operation {
        method: "POST",
        path: "/api/v1/appraise",
        access: Access::Key,
        changes: false,
        tagged: false,
        of_index: true,
        id: "appraiseNames",
        group: Group::Names,
        summary: "The scores of up to 100 names, seen or not",
        description: "Counts as one request. A text that is no name gets its reason, the others their \
                      scores.",
        parameters: &[],
        body: Some(Shape::of::<shapes::AppraiseBody>()),
        answers: &[json::<shapes::Appraisals>(200, "In the order they were asked for.")],
        route: || post(guarded(appraise::appraise_names)),
    },
    Operation {
        method: "GET",
        path: "/api/v1/portfolio",
        access: Access::Key,
        changes: false,
        tagged: false,
        of_index: false,
        id: "listClaims",
        group: Group::Portfolio,
        summary: "Your backorder claims",
        description: "Newest first.",
        parameters: &[
            STATUS_LIST,
            FROM,
            TO,
            limit(OWNED_LIMIT_DEFAULT, OWNED_LIMIT_MAX),
            offset(CLAIMS_OFFSET_MAX),
        ],
        body: None,
        answers: &[json::<shapes::Portfolio>(200, "A page of the claims.")],
        route: || get(guarded(portfolio::list_claims)),
    },
    Operation {
        method: "POST",
        path: "/api/v1/portfolio",
        access: Access::Key,
        changes: true,
        tagged: false,
        of_index: false,
        id: "addClaim",
        group: Group::Portfolio,
        summary: "Add a claim",
        description: "",
        parameters: &[IDEMPOTENCY],
        body: Some(Shape::of::<shapes::ClaimBody>()),
        answers: &[json::<shapes::AddedClaim>(201, "The claim."), PLAN_LIMIT, KEY_REUSED],
        route: || post(guarded(portfolio::add_claim)),
    },
    Operation {
        method: "GET",
        path: "/api/v1/portfolio/{id}",
        access: Access::Key,
        changes: false,
        tagged: false,
        of_index: false,
        id: "findClaim",
        group: Group::Portfolio,
        summary: "One claim",
        description: "",
        parameters: &[CLAIM_ID],
        body: None,
        answers: &[json::<shapes::OneClaim>(200, "The claim."), NOT_FOUND],
        route: || get(guarded(portfolio::find_claim)),
    },
    Operation {
        method: "PATCH",
        path: "/api/v1/portfolio/{id}",
        access: Access::Key,
        changes: true,
        tagged: false,
        of_index: false,
        id: "changeClaim",
        group: Group::Portfolio,
        summary: "Change a claim",
        description: "Leaving `sold` clears `soldAt` and `resalePriceUsd`.",
        parameters: &[CLAIM_ID],
        body: Some(Shape::of::<shapes::ClaimPatchBody>()),
        answers: &[json::<shapes::OneClaim>(200, "The claim as it is now."), NOT_FOUND],
        route: || patch(guarded(portfolio::change_claim)),
    },
    Operation {
        method: "DELETE",
        path: "/api/v1/portfolio/{id}",
        access: Access::Key,
        changes: true,
        tagged: false,
        of_index: false,
        id: "removeClaim",
        group: Group::Portfolio,
        summary: "Remove a claim",
        description: "",
        parameters: &[CLAIM_ID],
        body: None,
        answers: &[json::<shapes::Deleted>(200, "It is gone."), NOT_FOUND],
        route: || delete(guarded(portfolio::remove_claim)),
    },
    Operation {
        method: "GET",
        path: "/api/v1/watchlist",
        access: Access::Key,
        changes: false,
        tagged: false,
        of_index: false,
        id: "listWatches",
        group: Group::Watchlist,
        summary: "Your watchlist",
        description: "",
        parameters: &[
            SORT,
            limit(OWNED_LIMIT_DEFAULT, OWNED_LIMIT_MAX),
            offset(ENTRIES_OFFSET_MAX),
        ],
        body: None,
        answers: &[json::<shapes::Watchlist>(
            200,
            "A page of the list, and counts over all of it.",
        )],
        route: || get(guarded(watchlist::list_watches)),
    },
    Operation {
        method: "POST",
        path: "/api/v1/watchlist",
        access: Access::Key,
        changes: true,
        tagged: false,
        of_index: false,
        id: "addWatch",
        group: Group::Watchlist,
        summary: "Watch a name",
        description: "A name that no list has brought takes one of the plan's external names.",
        parameters: &[IDEMPOTENCY],
        body: Some(Shape::of::<shapes::WatchBody>()),
        answers: &[
            json::<shapes::WatchEntry>(201, "It is on the list now."),
            json::<shapes::WatchEntry>(200, "It was there; nothing is taken."),
            PLAN_LIMIT,
            KEY_REUSED,
        ],
        route: || post(guarded(watchlist::add_watch)),
    },
    Operation {
        method: "DELETE",
        path: "/api/v1/watchlist",
        access: Access::Key,
        changes: true,
        tagged: false,
        of_index: false,
        id: "removeWatch",
        group: Group::Watchlist,
        summary: "Stop watching a name",
        description: "",
        parameters: &[needed("domain", ParameterKind::Format("domain"), "The name.")],
        body: None,
        answers: &[json::<shapes::WatchRemoved>(200, "It is off the list."), NOT_FOUND],
        route: || delete(guarded(watchlist::remove_watch)),
    },
    Operation {
        method: "GET",
        path: "/api/v1/alerts",
        access: Access::Key,
        changes: false,
        tagged: false,
        of_index: false,
        id: "listAlerts",
        group: Group::Alerts,
        summary: "Your alert rules",
        description: "Newest first.",
        parameters: &[limit(OWNED_LIMIT_DEFAULT, OWNED_LIMIT_MAX), offset(ENTRIES_OFFSET_MAX)],
        body: None,
        answers: &[json::<shapes::Alerts>(200, "A page of the rules.")],
        route: || get(guarded(alerts::list_alerts)),
    },
    Operation {
        method: "POST",
        path: "/api/v1/alerts",
        access: Access::Key,
        changes: true,
        tagged: false,
        of_index: false,
        id: "addAlert",
        group: Group::Alerts,
        summary: "Add an alert rule",
        description: "It is active. The signing secrets of its webhooks are in this answer alone.",
        parameters: &[IDEMPOTENCY],
        body: Some(Shape::of::<shapes::RuleBody>()),
        answers: &[json::<shapes::AddedAlert>(201, "The rule."), PLAN_LIMIT, KEY_REUSED],
        route: || post(guarded(alerts::add_alert)),
    },
    Operation {
        method: "GET",
        path: "/api/v1/alerts/{id}",
        access: Access::Key,
        changes: false,
        tagged: false,
        of_index: false,
        id: "findAlert",
        group: Group::Alerts,
        summary: "One alert rule",
        description: "",
        parameters: &[RULE_ID],
        body: None,
        answers: &[json::<shapes::OneAlert>(200, "The rule."), NOT_FOUND],
        route: || get(guarded(alerts::find_alert)),
    },
    Operation {
        method: "PATCH",
        path: "/api/v1/alerts/{id}",
        access: Access::Key,
        changes: true,
        tagged: false,
        of_index: false,
        id: "changeAlert",
        group: Group::Alerts,
        summary: "Change an alert rule",
        description: "",
        parameters: &[RULE_ID],
        body: Some(Shape::of::<shapes::RulePatchBody>()),
        answers: &[
            json::<shapes::OneAlert>(200, "The rule as it is now, with secrets of new webhooks."),
            PLAN_LIMIT,
            NOT_FOUND,
        ],
        route: || patch(guarded(alerts::change_alert)),
    },
    Operation {
        method: "DELETE",
        path: "/api/v1/alerts/{id}",
        access: Access::Key,
        changes: true,
        tagged: false,
        of_index: false,
        id: "removeAlert",
        group: Group::Alerts,
        summary: "Remove an alert rule",
        description: "Claims it led to keep its name.",
        parameters: &[RULE_ID],
        body: None,
        answers: &[json::<shapes::Deleted>(200, "It is gone."), NOT_FOUND],
        route: || delete(guarded(alerts::remove_alert)),
    },
    Operation {
        method: "POST",
        path: "/api/v1/alerts/preview",
        access: Access::Key,
        changes: false,
        tagged: false,
        of_index: false,
        id: "previewAlert",
        group: Group::Alerts,
        summary: "What an alert rule would match",
        description: "Takes the body of a rule, of which the filter counts; adds nothing.",
        parameters: &[],
        body: Some(Shape::of::<shapes::PreviewBody>()),
        answers: &[json::<shapes::Preview>(200, "What matches now, and did of the last lists.")],
        route: || post(guarded(alerts::preview::preview_alert)),
    },
    Operation {
        method: "POST",
        path: "/api/v1/alerts/{id}/test",
        access: Access::Key,
        changes: true,
        tagged: false,
        of_index: false,
        id: "testAlert",
        group: Group::Alerts,
        summary: "Send a test message",
        description: "To every channel that is on, marked as a test.",
        parameters: &[RULE_ID, IDEMPOTENCY],
        body: None,
        answers: &[
            json::<shapes::QueuedDeliveries>(202, "What was queued."),
            NOT_FOUND,
            refusal(409, "No channel is on, or the idempotency key came with another request."),
        ],
        route: || post(guarded(alerts::deliveries::test_alert)),
    },
    Operation {
        method: "GET",
        path: "/api/v1/alerts/{id}/deliveries",
        access: Access::Key,
        changes: false,
        tagged: false,
        of_index: false,
        id: "listDeliveries",
        group: Group::Alerts,
        summary: "What was sent, and what will be",
        description: "",
        parameters: &[RULE_ID],
        body: None,
        answers: &[json::<shapes::Deliveries>(200, "The last ones, newest first."), NOT_FOUND],
        route: || get(guarded(alerts::deliveries::list_deliveries)),
    },
    Operation {
        method: "POST",
        path: "/api/v1/alerts/{id}/deliveries/{delivery}/retry",
        access: Access::Key,
        changes: true,
        tagged: false,
        of_index: false,
        id: "retryDelivery",
        group: Group::Alerts,
        summary: "Try a failed delivery again",
        description: "",
        parameters: &[RULE_ID, DELIVERY_ID, IDEMPOTENCY],
        body: None,
        answers: &[
            json::<shapes::OneDelivery>(202, "It is queued."),
            NOT_FOUND,
            refusal(409, "It has not failed, its channel is off, or the key was used before."),
        ],
        route: || post(guarded(alerts::deliveries::retry_delivery)),
    },
    Operation {
        method: "GET",
        path: "/api/export/drops",
        access: Access::Export,
        changes: false,
        tagged: false,
        of_index: true,
        id: "exportDrops",
        group: Group::Exports,
        summary: "Ranked drops as CSV",
        description: "Columns: domain, tld, length, dqs, explanation.",
        parameters: &[
            TLD,
            MIN_DQS,
            MAX_LEN,
            CONTAINS,
            STAGE,
            VIEW,
            limit(EXPORT_ROWS_MAX, EXPORT_ROWS_MAX),
            offset(DROPS_OFFSET_MAX),
        ],
        body: None,
        answers: &[text(200, "UTF-8, CRLF, with a header line.", "text/csv")],
        route: || get(export::export_drops),
    },
    Operation {
        method: "GET",
        path: "/api/export/watchlist",
        access: Access::Export,
        changes: false,
        tagged: false,
        of_index: false,
        id: "exportWatchlist",
        group: Group::Exports,
        summary: "Your watchlist as CSV",
        description: "Columns: domain, source, stage, drop_date, dqs, rdap_state, rdap_verified_at, \
                      added_at.",
        parameters: &[SORT, limit(EXPORT_ROWS_MAX, EXPORT_ROWS_MAX), offset(ENTRIES_OFFSET_MAX)],
        body: None,
        answers: &[text(200, "UTF-8, CRLF, with a header line.", "text/csv")],
        route: || get(export::export_watchlist),
    },
    Operation {
        method: "GET",
        path: "/api/export/portfolio",
        access: Access::Export,
        changes: false,
        tagged: false,
        of_index: false,
        id: "exportPortfolio",
        group: Group::Exports,
        summary: "Your backorder claims as CSV",
        description: "Columns: id, domain, tld, status, registrar, acquired_price_usd, \
                      resale_price_usd, sold_at, reported_at, updated_at, user_notes.",
        parameters: &[
            STATUS_LIST,
            FROM,
            TO,
            limit(EXPORT_ROWS_MAX, EXPORT_ROWS_MAX),
            offset(CLAIMS_OFFSET_MAX),
        ],
        body: None,
        answers: &[text(200, "UTF-8, CRLF, with a header line.", "text/csv")],
        route: || get(export::export_portfolio),
    },
    Operation {
        method: "GET",
        path: "/unsubscribe/{delivery}",
        access: Access::Everybody,
        changes: false,
        tagged: false,
        of_index: false,
        id: "askUnsubscribe",
        group: Group::Alerts,
        summary: "A page to stop the mails of an alert",
        description: "The link in alert mails; changes nothing.",
        parameters: &[LINK],
        body: None,
        answers: &[text(200, "A page with a button.", "text/html")],
        route: || get(unsubscribe::ask),
    },
    Operation {
        method: "POST",
        path: "/unsubscribe/{delivery}",
        access: Access::Everybody,
        changes: true,
        tagged: false,
        of_index: false,
        id: "unsubscribe",
        group: Group::Alerts,
        summary: "Stop the mails of an alert",
        description: "One-click unsubscription (RFC 8058). Every link is answered alike.",
        parameters: &[LINK],
        body: None,
        answers: &[
            text(200, "A page that says so.", "text/html"),
            refusal(503, "Try again later."),
        ],
        route: || post(unsubscribe::unsubscribe),
    },
    Operation {
        method: "GET",
        path: "/api/health",
        access: Access::Everybody,
        changes: false,
        tagged: false,
        of_index: false,
        id: "getHealth",
        group: Group::Service,
        summary: "Liveness and freshness, always 200",
        description: "",
        parameters: &[],
        body: None,
        answers: &[json::<shapes::Health>(200, "Alive.")],
        route: || get(health::health),
    },
    Operation {
        method: "GET",
        path: "/api/ready",
        access: Access::Everybody,
        changes: false,
        tagged: false,
        of_index: false,
        id: "getReady",
        group: Group::Service,
        summary: "Readiness of this instance",
        description: "",
        parameters: &[],
        body: None,
        answers: &[
            json::<shapes::Ready>(200, "It can do all its work."),
            json::<shapes::Ready>(503, "It cannot; `checks` says why."),
        ],
        route: || get(health::ready),
    },
    Operation {
        method: "GET",
        path: "/api/ready/ingest",
        access: Access::Everybody,
        changes: false,
        tagged: false,
        of_index: false,
        id: "getReadyIngest",
        group: Group::Service,
        summary: "503 when the newest list is over 48 hours old",
        description: "",
        parameters: &[],
        body: None,
        answers: &[
            json::<shapes::Ingest>(200, "The newest list is fresh."),
            json::<shapes::Ingest>(503, "It is stale, or there is none."),
        ],
        route: || get(health::ready_ingest),
    },
    Operation {
        method: "GET",
        path: "/api/docs",
        access: Access::Everybody,
        changes: false,
        tagged: true,
        of_index: false,
        id: "getDocs",
        group: Group::Service,
        summary: "The documentation of this API",
        description: "For people to read as a page: `/docs`.",
        parameters: &[],
        body: None,
        answers: &[text(200, "Markdown.", "text/markdown")],
        route: || get(health::api_docs),
    },
    Operation {
        method: "GET",
        path: "/api/openapi.json",
        access: Access::Everybody,
        changes: false,
        tagged: true,
        of_index: false,
        id: "getOpenapi",
        group: Group::Service,
        summary: "The OpenAPI document of this API",
        description: "",
        parameters: &[],
        body: None,
        answers: &[text(200, "OpenAPI 3.1.", "application/json")],
        route: || get(health::openapi),
    },
];

/// An operation, as the index lists it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Endpoint {
    pub method: &'static str,
    pub path: &'static str,
    /// Whether it needs a key.
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

/// Every route of the API; whoever adds pages answers what is not routed. Guards stand before
/// handlers, not before routes: a wrong method is 405 without a key.
pub fn router(app: App) -> Router {
    OPERATIONS
        .iter()
        .fold(Router::new(), |routes, operation| routes.route(operation.path, (operation.route)()))
        // The index, as some write it.
        .route("/api/v1/", get(health::api_index))
        .method_not_allowed_fallback(error::method_not_allowed)
        .with_state(app)
}
