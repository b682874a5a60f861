//! Every limit of the public interface, written once (decisions.md §3, §6; api.md, Limits).

use crate::vocab::name::NAME_OCTETS_MAX;

/// Rows of a drops page when the client names none.
pub const DROPS_LIMIT_DEFAULT: u32 = 100;
/// Rows of a drops page at most.
pub const DROPS_LIMIT_MAX: u32 = 1_000;
/// The deepest drops row that can be asked for. Rank order makes deep pages a walk, not a sort.
pub const DROPS_OFFSET_MAX: u32 = 1_000_000;
/// Rows of a search page when the client names none.
pub const SEARCH_LIMIT_DEFAULT: u32 = 20;
/// Rows of a search page at most.
pub const SEARCH_LIMIT_MAX: u32 = 100;
/// Deeper search pages are refused: a prefix keeps its best `offset + limit` names per request.
pub const SEARCH_OFFSET_MAX: u32 = 10_000;
/// Matches are counted up to here; above it `totalCapped` is true.
pub const SEARCH_TOTAL_MAX: u32 = 10_000;
/// Rows of a CSV export at most, and when the client names no limit.
pub const EXPORT_ROWS_MAX: u32 = 10_000;
/// Characters of a search prefix at most: no name is longer (RFC 1035 §2.3.4).
pub const SEARCH_QUERY_CHARS_MAX: usize = 253;
/// Characters of a drops substring at most: no label is longer (RFC 1035 §2.3.4).
pub const SUBSTRING_CHARS_MAX: usize = 63;
/// Characters of a label at most, and the largest `max_len`.
pub const LABEL_CHARS_MAX: u8 = 63;
/// Items of a `tld` filter at most: more is a client gone wrong, and each costs a look-up.
pub const TLD_FILTER_MAX: usize = 1_000;
/// Octets of a request's body at most (decisions.md §5). More is never read.
pub const BODY_BYTES_MAX: usize = 64 * 1024;
/// Octets of a form at most: a thousand names, pasted, take 256 KiB where each is as long as a name
/// can be and half of it is escaped.
pub const FORM_BYTES_MAX: usize = 256 * 1024;
/// Objects and arrays within each other in a body at most: the API's own shapes have three.
pub const BODY_DEPTH_MAX: u32 = 16;
/// Names of one appraisal at most: their answer is about as large as a page of drops.
pub const APPRAISED_MAX: usize = 100;
/// Rows of a page of claims, watchlist entries or alert rules when the client names none.
pub const OWNED_LIMIT_DEFAULT: u32 = 100;
/// Rows of such a page at most.
pub const OWNED_LIMIT_MAX: u32 = 1_000;
/// The deepest claim that can be asked for: as deep as a drop.
pub const CLAIMS_OFFSET_MAX: u32 = DROPS_OFFSET_MAX;
/// The deepest watchlist entry or alert rule that can be asked for: no account has more.
pub const ENTRIES_OFFSET_MAX: u32 = WATCHES_MAX;
/// Age of the newest list, in hours, beyond which the data counts as stale.
pub const STALE_AFTER_HOURS: i64 = 48;
/// Days a name counts as catchable after its effective release, unless configured.
pub const CATCH_DAYS_DEFAULT: u16 = 5;
/// Claims of an account (decisions.md §4).
pub const CLAIMS_MAX: u32 = 100_000;
/// Names on a watchlist (decisions.md §4).
pub const WATCHES_MAX: u32 = 10_000;
/// Names that are put on a watchlist at once: with a page's form, and as one record of the journal.
pub const WATCHES_PASTED_MAX: usize = 1_000;
/// Alert rules of an account, those not at work included: each costs memory for ever.
pub const RULES_MAX: u32 = 1_000;
/// Names an account has a vote on: each costs memory for ever.
pub const VOTES_MAX: u32 = 100_000;
/// Characters of a rule's name at most (decisions.md §5).
pub const RULE_NAME_CHARS_MAX: usize = 100;
/// TLDs of a rule's filter at most (decisions.md §5).
pub const RULE_TLDS_MAX: usize = 100;
/// Channels of a rule at most (decisions.md §5).
pub const RULE_CHANNELS_MAX: usize = 5;
/// Drop dates that the preview of a rule tells of: a month of lists.
pub const PREVIEW_DAYS: usize = 30;
/// Names that it shows.
pub const PREVIEW_SAMPLES: usize = 10;
/// Names of one alert at most, the best ones; it says how many there were. A mail or a webhook's
/// body of these is about 60 KB.
pub const MESSAGE_NAMES_MAX: usize = 500;
/// Deliveries kept of a rule, those still to be sent aside.
pub const DELIVERIES_KEPT_MAX: usize = 100;
/// Failed deliveries of a rule that keep their names, the newest ones, so that they can be sent
/// after all: names are most of what a delivery weighs.
pub const FAILED_WITH_NAMES_MAX: usize = 10;
/// Test messages of an account in a UTC day: each makes the server call an address of the account's
/// choice.
pub const TESTS_PER_DAY_MAX: u32 = 30;
/// Names of a test message at most: enough to see what one looks like.
pub const TEST_NAMES_MAX: usize = 10;
/// Characters of a claim's registrar at most.
pub const REGISTRAR_CHARS_MAX: usize = 200;
/// Characters of a claim's note at most: several pages.
pub const NOTES_CHARS_MAX: usize = 10_000;

// As many names of full length, each in quotes and with a comma, fit in a body.
const _: () = assert!(APPRAISED_MAX * (NAME_OCTETS_MAX + 3) + 64 <= BODY_BYTES_MAX);
const _: () = assert!(DROPS_LIMIT_DEFAULT <= DROPS_LIMIT_MAX);
const _: () = assert!(OWNED_LIMIT_DEFAULT <= OWNED_LIMIT_MAX);
const _: () = assert!(SEARCH_LIMIT_DEFAULT <= SEARCH_LIMIT_MAX);
