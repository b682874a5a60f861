//! Limits of the public interface, each defined once (`data/docs/api.md`, Limits).

/// Default rows of a drops page.
pub const DROPS_LIMIT_DEFAULT: u32 = 100;
/// Maximum rows of a drops page.
pub const DROPS_LIMIT_MAX: u32 = 1_000;
/// Maximum `offset` of drops. In rank order, deep pages need a walk but no sort.
pub const DROPS_OFFSET_MAX: u32 = 1_000_000;
/// Default and maximum events of a page of changes.
pub const CHANGES_LIMIT_DEFAULT: u32 = 100;
pub const CHANGES_LIMIT_MAX: u32 = 1_000;
/// Maximum seconds of a long poll: less than the timeout of proxies.
pub const CHANGES_WAIT_SECONDS_MAX: u32 = 30;
/// Default rows of a search page.
pub const SEARCH_LIMIT_DEFAULT: u32 = 20;
/// Maximum rows of a search page.
pub const SEARCH_LIMIT_MAX: u32 = 100;
/// Default and maximum names of a suggestion.
pub const SUGGEST_LIMIT_DEFAULT: u32 = 8;
pub const SUGGEST_LIMIT_MAX: u32 = 20;
/// Maximum `limit` of the list of suffixes, more than exist.
pub const TLDS_LIMIT_MAX: u32 = 10_000;
/// Maximum searches of a batch, which share the time budget of one search.
pub const BATCH_MAX: usize = 50;
/// Maximum `offset` of a search: a request keeps the best `offset + limit` names.
pub const SEARCH_OFFSET_MAX: u32 = 10_000;
/// Matches are counted up to this number; above it `totalCapped` is true.
pub const SEARCH_TOTAL_MAX: u32 = 10_000;
/// Maximum and default rows of a CSV export.
pub const EXPORT_ROWS_MAX: u32 = 10_000;
/// Maximum characters of a search prefix: the longest name (RFC 1035 §2.3.4).
pub const SEARCH_QUERY_CHARS_MAX: usize = 253;
/// Maximum characters of a drops substring: the longest label (RFC 1035 §2.3.4).
pub const SUBSTRING_CHARS_MAX: usize = 63;
/// Maximum symbols of a pattern: as many as the longest label has characters.
pub const PATTERN_SYMBOLS_MAX: usize = 63;
/// Maximum stars of a pattern.
pub const PATTERN_STARS_MAX: usize = 4;
/// Maximum characters of a regular expression.
pub const REGEX_CHARS_MAX: usize = 200;
/// Range of the length, in characters, of a label that others are compared with by edit distance.
/// Shorter labels are nearly all within a few edits of each other.
pub const LIKE_CHARS: std::ops::RangeInclusive<usize> = 3..=30;
/// Maximum edits between a label and the one it is compared with.
pub const LIKE_DISTANCE_MAX: u8 = 2;
/// Maximum characters of a label, and the largest `max_len`.
pub const LABEL_CHARS_MAX: u8 = 63;
/// Maximum TLDs in a `tld` filter; each costs a lookup.
pub const TLD_FILTER_MAX: usize = 1_000;
/// Maximum texts in each of `contains`, `starts` and `ends`.
pub const LABEL_TEXTS_MAX: usize = 20;
/// Maximum texts in each of `not_contains`, `not_starts` and `not_ends`.
pub const EXCLUDED_TEXTS_MAX: usize = 50;
/// Largest `min_drops`: drops are only counted up to this number.
pub const MIN_DROPS_MAX: u32 = 255;
/// Largest `min_words` and `max_words`: words are only counted up to this number.
pub const WORDS_MAX: u8 = 15;
/// Largest `min_tlds` and `max_tlds`: more than the number of TLDs.
pub const OTHER_TLDS_MAX: u32 = 10_000;
/// Maximum active API keys of an account.
pub const KEYS_MAX: u32 = 10;
/// Maximum days until an API key expires.
pub const KEY_DAYS_MAX: u16 = 3_650;
/// Maximum bytes of a request body (`data/docs/api.md`). The server reads no more.
pub const BODY_BYTES_MAX: usize = 64 * 1024;
/// Maximum bytes of a form, except for the large forms below.
pub const FORM_BYTES_MAX: usize = 16 * 1024;
/// Maximum bytes of a form with a list of names or a note: a thousand pasted names of maximum length,
/// half of each escaped.
pub const LARGE_FORM_BYTES_MAX: usize = 256 * 1024;
/// Maximum nesting of objects and arrays in a body; the API's own requests have three levels.
pub const BODY_DEPTH_MAX: u32 = 16;
/// Maximum names of one appraisal, so that the response is about as large as a page of drops.
pub const APPRAISED_MAX: usize = 100;
/// Default rows of a page of claims, watchlist entries or alert rules.
pub const OWNED_LIMIT_DEFAULT: u32 = 100;
/// Maximum rows of such a page.
pub const OWNED_LIMIT_MAX: u32 = 1_000;
/// Maximum `offset` of claims.
pub const CLAIMS_OFFSET_MAX: u32 = DROPS_OFFSET_MAX;
/// Maximum `offset` of watchlist entries and alert rules: no account has more.
pub const ENTRIES_OFFSET_MAX: u32 = WATCHES_MAX;
/// Age of the newest list, in hours, beyond which the data is stale.
pub const STALE_AFTER_HOURS: i64 = 48;
/// Default days for which a name is catchable after its effective release.
pub const CATCH_DAYS_DEFAULT: u16 = 5;
/// Maximum rows of a file of claims. The page that shows them before they are saved holds them all.
pub const IMPORT_ROWS_MAX: usize = 5_000;
/// Maximum claims of an account.
pub const CLAIMS_MAX: u32 = 100_000;
/// Maximum names on a watchlist.
pub const WATCHES_MAX: u32 = 10_000;
/// Maximum names added to a watchlist at once, by a form and in one journal record.
pub const WATCHES_PASTED_MAX: usize = 1_000;
/// Maximum alert rules of an account, inactive ones included: each takes memory permanently.
pub const RULES_MAX: u32 = 1_000;
/// Maximum votes of an account: each takes memory permanently.
pub const VOTES_MAX: u32 = 100_000;
/// Maximum characters of a rule's name.
pub const RULE_NAME_CHARS_MAX: usize = 100;
/// Maximum TLDs in a rule's filter.
pub const RULE_TLDS_MAX: usize = 100;
/// Maximum channels of a rule.
pub const RULE_CHANNELS_MAX: usize = 5;
/// Number of drop dates that the preview of a rule covers: a month of lists.
pub const PREVIEW_DAYS: usize = 30;
/// Number of sample names in the preview of a rule.
pub const PREVIEW_SAMPLES: usize = 10;
/// Maximum names in one alert, best first; the alert also gives the total. A mail or webhook body
/// with this many names has about 60 KB.
pub const MESSAGE_NAMES_MAX: usize = 500;
/// Number of the best new names in a morning digest.
pub const DIGEST_BEST: usize = 20;
/// Number of the best new names of each saved search in a morning digest.
pub const DIGEST_SEARCH_NAMES: usize = 5;
/// Number of finished deliveries kept per rule.
pub const DELIVERIES_KEPT_MAX: usize = 100;
/// Number of newest failed deliveries of a rule that keep their names, so that they can be sent
/// again. Names make up most of the size of a delivery.
pub const FAILED_WITH_NAMES_MAX: usize = 10;
/// Maximum test messages of an account per UTC day: each makes the server call an address that the
/// user chose.
pub const TESTS_PER_DAY_MAX: u32 = 30;
/// Maximum names in a test message.
pub const TEST_NAMES_MAX: usize = 10;
/// Maximum characters of a claim's registrar.
pub const REGISTRAR_CHARS_MAX: usize = 200;
/// Maximum characters of a claim's note.
pub const NOTES_CHARS_MAX: usize = 10_000;
/// Maximum characters of the venue of a claim or watched name.
pub const VENUE_CHARS_MAX: usize = 60;
/// Maximum characters of the note on a watched name.
pub const WATCH_NOTE_CHARS_MAX: usize = 2_000;
/// Maximum tags of a watched name.
pub const TAGS_MAX: usize = 10;
/// Maximum characters of a tag.
pub const TAG_CHARS_MAX: usize = 30;
/// Maximum saved searches of an account; their page counts the names of each.
pub const SEARCHES_MAX: u32 = 100;
/// Maximum concurrent long polls and streams of events of an account.
pub const STREAMS_PER_ACCOUNT: u32 = 100;
/// Largest `releaseWithinDays`.
pub const RELEASE_WITHIN_DAYS_MAX: u16 = 366;
/// Maximum hidden names of an account: each takes memory permanently.
pub const HIDDEN_MAX: u32 = 10_000;
/// Maximum bytes of a file of facts, which is read into memory.
pub const FACTS_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Maximum rows of a file of facts.
pub const FACTS_ROWS_MAX: u64 = 100_000;
/// Maximum sales of all files of sales of a server: each takes a few hundred bytes, and a dossier compares its
/// name with all sales of names of its kind.
pub const SALES_MAX: usize = 100_000;
/// Maximum columns of a file of facts that are read: rows keep a cell for each.
pub const FACTS_COLUMNS_MAX: usize = 64;
/// Maximum sources of facts of an account, and of a server.
pub const FACT_SOURCES_MAX: u32 = 32;
/// Maximum descriptions of files of facts of an account.
pub const FACT_MAPPINGS_MAX: u32 = 100;
/// Maximum facts that rows show.
pub const FACTS_SHOWN_MAX: usize = 20;
/// Maximum conditions on facts of a query.
pub const FACT_CONDITIONS_MAX: usize = 20;
/// Maximum distinct values of a column of words.
pub const FACTS_WORDS_MAX: usize = 1_000;

// A request to appraise the longest names, with quotes and commas, fits in a body.
const _: () = assert!(APPRAISED_MAX * (SEARCH_QUERY_CHARS_MAX + 3) + 64 <= BODY_BYTES_MAX);
const _: () = assert!(DROPS_LIMIT_DEFAULT <= DROPS_LIMIT_MAX);
const _: () = assert!(OWNED_LIMIT_DEFAULT <= OWNED_LIMIT_MAX);
const _: () = assert!(SEARCH_LIMIT_DEFAULT <= SEARCH_LIMIT_MAX);
