//! What bodies and answers look like, for the OpenAPI document: described here, never made. Tests
//! hold real answers against these; what is refused is for the handlers to say.
#![expect(dead_code, reason = "shapes are described, not made")]

use serde::Serialize;
use utoipa::ToSchema;

/// Every refusal: `error` says what is wrong, for people.
#[derive(ToSchema)]
#[schema(example = json!({"error": "min_dqs: must be an integer from 0 to 100"}))]
pub struct Error {
    /// What is wrong, and where: `channels[0].url: …` names a member of the body.
    error: String,
    /// For programs, where there is more than one reason for a status: `PLAN_REQUIRED`,
    /// `PLAN_LIMIT`, `TEST_LIMIT`.
    code: Option<String>,
    /// The caller's plan, where it is about the plan.
    plan: Option<String>,
    /// What the plan allows, where it is about a number.
    limit: Option<u32>,
    /// When the day's allowance starts anew, in Unix milliseconds.
    #[schema(rename = "resetAt")]
    reset_at: Option<i64>,
}

/// A page of the ranked drop list.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct Drops {
    /// The newest drop date in the corpus, not after today.
    #[schema(format = Date)]
    date: String,
    /// Rows of this page.
    count: u32,
    limit: u32,
    offset: u32,
    /// The TLDs in the view before other filters, sorted.
    available_tlds: Vec<String>,
    drops: Vec<Drop>,
}

/// A row of the drop list.
#[derive(ToSchema)]
pub struct Drop {
    /// The registrable domain; IDNs as A-labels (`xn--…`).
    name: String,
    /// The public suffix, without a leading dot.
    tld: String,
    /// Characters of the label; of an IDN, in Unicode.
    length: u8,
    /// Domain Quality Score.
    #[schema(minimum = 0, maximum = 100)]
    dqs: u8,
    /// One sentence of at most 160 characters.
    #[schema(max_length = 160)]
    explanation: String,
    signals: Signals,
}

/// What the score was made from. Varies by `scorerVersion`: ignore members you do not know.
#[derive(Serialize, ToSchema)]
pub struct Signals {
    #[schema(rename = "scorerVersion")]
    scorer_version: u32,
    /// `1-3`, `4-5`, `6-8`, `9-12`, `13-20` or `21+`.
    #[schema(rename = "lengthBand")]
    length_band: String,
    /// How well dictionaries know it.
    #[schema(minimum = 0, maximum = 1)]
    dictionary_quality: f32,
    /// The words it was read as.
    words: Vec<String>,
    /// ISO 639-1, where the words are of one language.
    #[schema(required)]
    language: Option<String>,
    digits: u32,
    hyphens: u32,
    #[schema(minimum = 0, maximum = 1)]
    pronounceability: f32,
    #[schema(minimum = 0, maximum = 1)]
    tld_weight: f32,
    /// In how many TLDs the corpus holds the label.
    #[schema(rename = "tldSpread")]
    tld_spread: u32,
    points: Points,
    /// Limits that apply whatever the points say.
    caps: Vec<Cap>,
}

/// What each part added to the score or took from it; they sum to it before the caps.
#[derive(Serialize, ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct Points {
    start: i32,
    length: i32,
    dictionary: i32,
    market: i32,
    language: i32,
    pronounceability: i32,
    digits: i32,
    hyphens: i32,
    idn: i32,
    tld: i32,
    tld_spread: i32,
    scale: i32,
}

/// The most that a name of a kind can score.
#[derive(Serialize, ToSchema)]
pub struct Cap {
    name: String,
    max: i32,
}

/// Names by prefix: whole matches first, then best first.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct SearchResults {
    /// As it was sent.
    query: String,
    /// Matches, exact up to 10,000.
    #[schema(maximum = 10000)]
    total: u32,
    /// There are more than `total`.
    total_capped: bool,
    count: u32,
    limit: u32,
    offset: u32,
    results: Vec<SearchResult>,
}

/// A name that was seen.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct SearchResult {
    domain: String,
    tld: String,
    length: u8,
    current_status: Status,
    /// `null` for a name that never dropped.
    #[schema(required)]
    latest_drop: Option<LatestDrop>,
}

/// The last drop of a name.
#[derive(ToSchema)]
pub struct LatestDrop {
    #[schema(format = Date)]
    date: String,
    #[schema(minimum = 0, maximum = 100)]
    dqs: u8,
    explanation: String,
}

/// Where a name stands.
#[derive(ToSchema)]
#[schema(rename_all = "kebab-case")]
pub enum Status {
    Registered,
    Redemption,
    PendingDelete,
    Available,
    Unknown,
}

/// Where a dropped name stands on its way back to the market.
#[derive(ToSchema)]
#[schema(rename_all = "kebab-case")]
pub enum Stage {
    Redemption,
    PendingDelete,
    Catchable,
    Released,
}

/// All that is known of one name.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct Dossier {
    domain: String,
    tld: String,
    length: u8,
    current_status: Status,
    /// The day the registry frees the name, while that is ahead.
    #[schema(required, format = Date)]
    drop_predicted_at: Option<String>,
    /// `null` when the name is not in the active pipeline.
    #[schema(required)]
    latest_drop: Option<PipelineDrop>,
    feedback: Feedback,
}

/// The drop that a name is in the pipeline for.
#[derive(ToSchema)]
pub struct PipelineDrop {
    #[schema(format = Date)]
    date: String,
    #[schema(minimum = 0, maximum = 100)]
    dqs: u8,
    explanation: String,
    signals: Signals,
}

/// Votes of all accounts.
#[derive(ToSchema)]
pub struct Feedback {
    up: u64,
    down: u64,
}

/// A vote; `null` takes it back.
#[derive(ToSchema)]
#[schema(example = json!({"vote": "up"}))]
#[serde(deny_unknown_fields)]
pub struct VoteBody {
    #[schema(required)]
    vote: Option<Vote>,
}

/// For or against.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub enum Vote {
    Up,
    Down,
}

/// Your vote, and the totals it led to.
#[derive(ToSchema)]
pub struct VoteResult {
    domain: String,
    #[schema(required)]
    vote: Option<Vote>,
    feedback: Feedback,
}

/// Names to appraise.
#[derive(ToSchema)]
#[schema(example = json!({"domains": ["solar.com", "münchen.de"]}))]
#[serde(deny_unknown_fields)]
pub struct AppraiseBody {
    /// Texts of any kind: each that is no name gets its reason.
    #[schema(min_items = 1, max_items = 100)]
    domains: Vec<String>,
}

/// One appraisal a name, in the order they were asked for.
#[derive(ToSchema)]
pub struct Appraisals {
    count: u32,
    appraisals: Vec<Appraisal>,
}

/// A score, or why a text is no name.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[expect(clippy::large_enum_variant, reason = "described, not made")]
pub enum Appraisal {
    Name {
        domain: String,
        tld: String,
        length: u8,
        #[schema(minimum = 0, maximum = 100)]
        dqs: u8,
        explanation: String,
        signals: Signals,
        /// The corpus holds the name.
        known: bool,
    },
    Refused {
        domain: String,
        error: String,
    },
}

/// A backorder claim.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct Claim {
    id: u64,
    domain: String,
    tld: String,
    status: ClaimStatus,
    #[schema(required)]
    registrar: Option<String>,
    #[schema(required)]
    acquired_price_usd: Option<f64>,
    #[schema(required)]
    resale_price_usd: Option<f64>,
    #[schema(required, format = DateTime)]
    sold_at: Option<String>,
    #[schema(format = DateTime)]
    reported_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
    /// Empty for none.
    user_notes: String,
    alert_rule: Option<Attribution>,
}

/// How it went with a name.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub enum ClaimStatus {
    Attempted,
    Caught,
    Registered,
    Lost,
    Sold,
}

/// The rule that led to a claim, as it was called then.
#[derive(ToSchema)]
pub struct Attribution {
    id: u64,
    name: String,
}

/// Claims, newest first.
#[derive(ToSchema)]
pub struct Portfolio {
    count: u32,
    claims: Vec<Claim>,
}

/// One claim.
#[derive(ToSchema)]
pub struct OneClaim {
    claim: Claim,
}

/// The claim that was added.
#[derive(ToSchema)]
pub struct AddedClaim {
    id: u64,
    claim: Claim,
}

/// A claim to be added. Prices have at most two decimals.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase", example = json!({
    "domain": "solar.com", "status": "caught", "registrar": "Example", "acquiredPriceUsd": 69.5
}))]
#[serde(deny_unknown_fields)]
pub struct ClaimBody {
    #[schema(format = "domain")]
    domain: String,
    status: ClaimStatus,
    #[schema(max_length = 200)]
    registrar: Option<String>,
    #[schema(minimum = 0, maximum = 1000000000)]
    acquired_price_usd: Option<f64>,
    #[schema(minimum = 0, maximum = 1000000000)]
    resale_price_usd: Option<f64>,
    /// Only with status `sold`; now, unless given.
    #[schema(format = DateTime)]
    sold_at: Option<String>,
    #[schema(max_length = 10000)]
    user_notes: Option<String>,
    /// One of your rules.
    #[schema(minimum = 1, maximum = 9007199254740991i64)]
    alert_rule_id: Option<u64>,
}

/// What to change: an absent member stays, `null` takes the value away.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase", example = json!({"status": "sold", "resalePriceUsd": 950}))]
#[serde(deny_unknown_fields)]
pub struct ClaimPatchBody {
    #[schema(nullable = false)]
    status: Option<ClaimStatus>,
    #[schema(max_length = 200)]
    registrar: Option<String>,
    #[schema(minimum = 0, maximum = 1000000000)]
    acquired_price_usd: Option<f64>,
    #[schema(minimum = 0, maximum = 1000000000)]
    resale_price_usd: Option<f64>,
    #[schema(format = DateTime)]
    sold_at: Option<String>,
    #[schema(max_length = 10000)]
    user_notes: Option<String>,
    /// One of your rules.
    #[schema(minimum = 1, maximum = 9007199254740991i64)]
    alert_rule_id: Option<u64>,
}

/// What was removed.
#[derive(ToSchema)]
pub struct Deleted {
    id: u64,
    deleted: bool,
}

/// A page of the watchlist.
#[derive(ToSchema)]
pub struct Watchlist {
    count: u32,
    limit: u32,
    offset: u32,
    sort: WatchSort,
    summary: WatchSummary,
    watchlist: Vec<WatchEntry>,
}

/// The order of a watchlist.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub enum WatchSort {
    Lifecycle,
    Name,
    Dqs,
    Added,
}

/// Counts over the whole list.
#[derive(ToSchema)]
pub struct WatchSummary {
    total: u32,
    /// Names that no list has brought.
    external: u32,
    /// Registered again since they were put on the list.
    renewed: u32,
    /// Names that RDAP can verify.
    checkable: u32,
}

/// A watched name. Members that the corpus would know are `null` for an external one.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct WatchEntry {
    domain: String,
    source: WatchSource,
    #[schema(required)]
    rdap_observed_state: Option<String>,
    #[schema(required, format = DateTime)]
    rdap_verified_at: Option<String>,
    #[schema(required, format = Date)]
    latest_drop_date: Option<String>,
    #[schema(required, minimum = 0, maximum = 100)]
    dqs: Option<u8>,
}

/// Whether the corpus holds a watched name.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub enum WatchSource {
    Corpus,
    External,
}

/// A name to watch.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase", example = json!({"domainName": "solar.com"}))]
#[serde(deny_unknown_fields)]
pub struct WatchBody {
    #[schema(format = "domain")]
    domain_name: String,
}

/// A name that is no longer watched.
#[derive(ToSchema)]
pub struct WatchRemoved {
    domain: String,
    removed: bool,
}

/// An alert rule.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct AlertRule {
    id: u64,
    name: String,
    filter: AlertFilter,
    channels: Vec<RuleChannel>,
    active: bool,
    #[schema(format = DateTime)]
    created_at: String,
}

/// What a rule asks of a name; an absent member does not filter.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct AlertFilter {
    #[schema(max_items = 100, nullable = false)]
    tlds: Option<Vec<String>>,
    #[schema(minimum = 0, maximum = 100, nullable = false)]
    min_dqs: Option<u8>,
    #[schema(minimum = 1, maximum = 63, nullable = false)]
    max_length: Option<u8>,
    /// Part of the name.
    #[schema(nullable = false)]
    contains: Option<String>,
    #[schema(nullable = false)]
    stages: Option<Vec<Stage>>,
}

/// Where messages of a rule go, and whether that is off.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct RuleChannel {
    r#type: ChannelType,
    /// Of a webhook.
    #[schema(nullable = false)]
    url: Option<String>,
    /// Of a Telegram chat.
    #[schema(nullable = false)]
    chat_id: Option<String>,
    #[schema(nullable = false)]
    switched_off: Option<SwitchedOff>,
}

/// A kind of channel.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub enum ChannelType {
    Email,
    Webhook,
    Telegram,
}

/// Why nothing is sent through a channel, since when.
#[derive(ToSchema)]
pub struct SwitchedOff {
    /// `gone` (the receiver answered 410) or `unsubscribed`.
    reason: String,
    #[schema(format = DateTime)]
    at: String,
}

/// Alert rules, newest first.
#[derive(ToSchema)]
pub struct Alerts {
    count: u32,
    limit: u32,
    offset: u32,
    alerts: Vec<AlertRule>,
}

/// One rule. Signing secrets are shown when a webhook is new, and never again.
#[derive(ToSchema)]
pub struct OneAlert {
    alert: AlertRule,
    /// Of the first new webhook.
    #[schema(nullable = false)]
    secret: Option<String>,
    #[schema(nullable = false)]
    secrets: Option<Vec<WebhookSecret>>,
}

/// The rule that was added, with the secrets of its webhooks, shown this once.
#[derive(ToSchema)]
pub struct AddedAlert {
    id: u64,
    alert: AlertRule,
    #[schema(nullable = false)]
    secret: Option<String>,
    #[schema(nullable = false)]
    secrets: Option<Vec<WebhookSecret>>,
}

/// What a webhook's messages are signed with (Standard Webhooks).
#[derive(ToSchema)]
pub struct WebhookSecret {
    url: String,
    secret: String,
}

/// A channel, as sent: `url` belongs to a webhook, `chatId` to Telegram.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[serde(deny_unknown_fields)]
pub struct ChannelBody {
    r#type: ChannelType,
    /// https, at port 443 or 8443 of a public host.
    url: Option<String>,
    chat_id: Option<ChatId>,
}

/// A chat of Telegram: a number, or the name of a public one.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub enum ChatId {
    Name(String),
    Number(i64),
}

/// What a rule is to ask of a name; an absent member, or `null`, does not filter.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[serde(deny_unknown_fields)]
pub struct AlertFilterBody {
    #[schema(max_items = 100)]
    tlds: Option<Vec<Tld>>,
    #[schema(minimum = 0, maximum = 100)]
    min_dqs: Option<u8>,
    #[schema(minimum = 1, maximum = 63)]
    max_length: Option<u8>,
    /// Part of the name, 1 to 63 characters.
    #[schema(format = "name-part")]
    contains: Option<String>,
    stages: Option<Vec<Stage>>,
}

/// A public suffix in any case, with or without a leading dot.
#[derive(ToSchema)]
#[schema(format = "tld")]
pub struct Tld(String);

/// A rule to be added.
#[derive(ToSchema)]
#[schema(example = json!({
    "name": "short .de", "filter": {"tlds": ["de"], "maxLength": 5}, "channels": [{"type": "email"}]
}))]
#[serde(deny_unknown_fields)]
pub struct RuleBody {
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    filter: AlertFilterBody,
    #[schema(min_items = 1, max_items = 5)]
    channels: Vec<ChannelBody>,
}

/// What to change of a rule: an absent member stays.
#[derive(ToSchema)]
#[schema(example = json!({"active": false}))]
#[serde(deny_unknown_fields)]
pub struct RulePatchBody {
    #[schema(min_length = 1, max_length = 100, nullable = false)]
    name: Option<String>,
    #[schema(nullable = false)]
    filter: Option<AlertFilterBody>,
    #[schema(min_items = 1, max_items = 5, nullable = false)]
    channels: Option<Vec<ChannelBody>>,
    #[schema(nullable = false)]
    active: Option<bool>,
}

/// A rule that is tried: its filter counts, its other members may be absent.
#[derive(ToSchema)]
#[schema(example = json!({"filter": {"tlds": ["de"], "maxLength": 5}}))]
#[serde(deny_unknown_fields)]
pub struct PreviewBody {
    name: Option<String>,
    filter: AlertFilterBody,
    channels: Option<Vec<ChannelBody>>,
}

/// What a rule would tell.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct Preview {
    /// Names that match now.
    today: u32,
    /// Of the last drop dates, how many matched.
    per_day: Vec<DayCount>,
    /// The best of them.
    samples: Vec<Drop>,
}

/// How many on a day.
#[derive(ToSchema)]
pub struct DayCount {
    #[schema(format = Date)]
    date: String,
    count: u32,
}

/// A message to one channel, and its fate.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct Delivery {
    /// The same in every try; receivers tell repeats by it.
    id: String,
    channel: ChannelBody,
    /// `match` or `test`.
    kind: String,
    /// `pending`, `delivered` or `failed`.
    status: String,
    attempts: u32,
    /// How many names matched.
    names: u32,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(required, format = DateTime)]
    last_attempt_at: Option<String>,
    #[schema(required, format = DateTime)]
    next_attempt_at: Option<String>,
    /// Of the last try: `refused`, `timeout`, `unreachable`, `tls`, `3xx`, `4xx`, `5xx`, `bad-status`,
    /// `gone`, `rejected`, `not-configured`, `switched-off`.
    #[schema(required)]
    problem: Option<String>,
}

/// The last deliveries of a rule, newest first.
#[derive(ToSchema)]
pub struct Deliveries {
    count: u32,
    deliveries: Vec<Delivery>,
}

/// What was queued.
#[derive(ToSchema)]
pub struct QueuedDeliveries {
    deliveries: Vec<Delivery>,
}

/// One delivery.
#[derive(ToSchema)]
pub struct OneDelivery {
    delivery: Delivery,
}

/// Liveness, and how fresh the data is.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct Health {
    /// `ok` or `stale`.
    status: String,
    #[schema(required, format = Date)]
    latest_drop_date: Option<String>,
    stale: bool,
    /// Whole seconds since the start.
    uptime: u64,
}

/// Whether this instance can do all its work.
#[derive(ToSchema)]
pub struct Ready {
    ready: bool,
    uptime: u64,
    /// The name of the instance.
    node: String,
    checks: Checks,
}

/// Each `ok` or a short reason.
#[derive(ToSchema)]
pub struct Checks {
    database: String,
    drops: String,
    environment: String,
}

/// How old the newest list is.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct Ingest {
    /// `ok` or `stale`.
    status: String,
    #[schema(required, format = Date)]
    latest_drop_date: Option<String>,
    /// `null` before any list.
    #[schema(required)]
    hours_old: Option<i64>,
    stale_after_hours: i64,
}

/// What there is.
#[derive(ToSchema)]
pub struct ApiIndex {
    name: String,
    version: String,
    endpoints: Vec<Endpoint>,
    /// How to authenticate.
    auth: String,
    /// Where this is explained.
    docs: String,
}

/// A public endpoint.
#[derive(ToSchema)]
pub struct Endpoint {
    method: String,
    path: String,
    /// Whether it needs a key.
    auth: bool,
    description: String,
}
