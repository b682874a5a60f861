//! Every limit of the public interface, written once (decisions.md §3, §6; api.md, Limits).

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
/// Age of the newest list, in hours, beyond which the data counts as stale.
pub const STALE_AFTER_HOURS: i64 = 48;
/// Days a name counts as catchable after its effective release, unless configured.
pub const CATCH_DAYS_DEFAULT: u16 = 5;

const _: () = assert!(DROPS_LIMIT_DEFAULT <= DROPS_LIMIT_MAX);
const _: () = assert!(SEARCH_LIMIT_DEFAULT <= SEARCH_LIMIT_MAX);
