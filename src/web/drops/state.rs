//! State of the drops page: the parameters of the API's drops list, parsed from the query string
//! and written to the links of the page.

use std::sync::LazyLock;

use maud::{Markup, html};

use crate::components::query;
use crate::form::Fields;
use crate::index::filter::DropFilter;
use crate::query::conditions::{CONDITIONS, Condition};
use crate::query::error::BadParameter;
use crate::query::params::{Limits, Params};
use crate::vocab::columns::Columns;
use crate::vocab::day::Day;
use crate::vocab::fact::FactName;
use crate::vocab::limits::EXPORT_ROWS_MAX;
use crate::vocab::stage::Stage;
use crate::vocab::tld::fold_tld;

/// Default number of rows per page.
pub const ROWS: u32 = 100;
/// Choices of rows per page.
pub const ROW_CHOICES: [u32; 4] = [50, 100, 200, 500];
const LIMITS: Limits = Limits { default: ROWS, max: 500 };

/// Number of days on the tab *Dropping soon*.
pub const DAYS_AHEAD: i32 = 7;

/// Parameters that choose a part of the list, an order or a page; the others are filters.
const PLACE: [&str; 10] = [
    "view",
    "stage",
    "sort",
    "order",
    "release_from",
    "release_to",
    "dropped_from",
    "dropped_to",
    "limit",
    "offset",
];

/// The view of offers of auction houses, which the API expresses by a condition: [`OFFERS`].
pub const AUCTIONS: &str = "auctions";
/// The fact by which a name is at auction: the day on which its offer ends.
pub const AUCTION_END: &str = "market.ends";
/// The condition of offers that have not ended.
const OFFERS: &str = "market.ends:today..";

/// The facts that rows show.
pub const FACTS: &str = "facts";
/// The other columns that rows show, in the text form of [`Columns`]; without it, the columns that the viewer chose.
pub const COLUMNS: &str = "columns";
/// The filter by the lists that the account has not seen yet, which only pages have.
pub const NEW: &str = "new";

/// Parameters about columns: neither filters nor a part of the list.
const SHOWN: [&str; 2] = [FACTS, COLUMNS];

/// Values that have no effect as filters.
const OPEN: [(&str, &str); 6] = [
    ("min_dqs", "0"),
    ("max_dqs", "100"),
    ("min_len", "1"),
    ("max_len", "63"),
    ("limit", "100"),
    ("offset", "0"),
];

/// Parameters of a page, in the order used in links: those of the API's drops list.
static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let conditions = CONDITIONS.iter().map(|condition| condition.parameter);
    let filters = conditions.filter(|name| DropsParams::filters_by(name));
    PLACE[..2]
        .iter()
        .copied()
        .chain([NEW])
        .chain(filters)
        .chain(PLACE[2..].iter().copied())
        .chain(SHOWN)
        .collect()
});

/// Parameters as sent, without empty ones and those without effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DropsParams(Vec<(&'static str, String)>);

impl DropsParams {
    /// Parses the parameters. Forms may repeat a parameter; links contain a list.
    pub fn of(sent: &Fields) -> DropsParams {
        DropsParams::from_values(|name| {
            let values = sent.all(name).map(str::trim).filter(|value| !value.is_empty());
            values.collect::<Vec<_>>().join(",")
        })
    }

    /// Creates the state from parameters, each at most once.
    pub fn from_pairs<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> DropsParams {
        let pairs: Vec<_> = pairs.collect();
        DropsParams::from_values(|name| {
            let value = pairs.iter().find(|(set, _)| *set == name);
            value.map_or("", |(_, value)| *value).to_owned()
        })
    }

    fn from_values(value_of: impl Fn(&'static str) -> String) -> DropsParams {
        let value = |&name: &&'static str| {
            let value = value_of(name);
            (name, if name.ends_with("tld") { tlds(&value) } else { value })
        };
        let is_set = |(name, value): &(&str, String)| {
            !value.is_empty() && !OPEN.contains(&(*name, value.as_str()))
        };
        DropsParams(NAMES.iter().map(value).filter(is_set).collect())
    }

    /// Whether the drops list has this parameter.
    pub fn has(name: &str) -> bool {
        NAMES.contains(&name)
    }

    /// Returns the value of a parameter; empty if it is not set.
    pub fn get(&self, name: &str) -> &str {
        let value = self.0.iter().find(|(set, _)| *set == name);
        value.map_or("", |(_, value)| value.as_str())
    }

    /// Returns the parameters that are set, in the order of links.
    pub fn parameters(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// Renders the parameters as fields of a form.
    pub fn hidden_inputs(&self) -> Markup {
        html! {
            @for (name, value) in self.parameters() { input type="hidden" name=(name) value=(value); }
        }
    }

    /// Returns the active filters: all parameters except those for paging.
    pub fn filters(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.parameters().filter(|(name, _)| DropsParams::filters_by(name))
    }

    /// Whether a parameter is a filter, and not one that sorts, pages or selects a part of the
    /// list.
    pub fn filters_by(name: &str) -> bool {
        !PLACE.contains(&name) && !SHOWN.contains(&name)
    }

    /// Returns the state with other values, on its first page. An empty value removes a parameter.
    #[must_use]
    pub fn with(&self, values: &[(&'static str, &str)]) -> DropsParams {
        DropsParams::from_values(|name| {
            let other = values.iter().find(|(set, _)| *set == name);
            let kept = if name == "offset" { "" } else { self.get(name) };
            other.map_or(kept, |(_, value)| *value).to_owned()
        })
    }

    /// Returns only the filters.
    #[must_use]
    pub fn anywhere(&self) -> DropsParams {
        self.with(&PLACE.map(|name| (name, "")))
    }

    /// Returns the same part of the list without filters.
    #[must_use]
    pub fn unfiltered(&self) -> DropsParams {
        let none: Vec<_> = self.filters().map(|(name, _)| (name, "")).collect();
        self.with(&none)
    }

    /// Returns the filters that a rule or a saved search stores, without view, order, page and what was seen.
    #[must_use]
    pub fn conditions(&self) -> DropsParams {
        let none = ["view", "sort", "order", "limit", "offset", NEW].into_iter().chain(SHOWN);
        let kept = self.with(&none.map(|name| (name, "")).collect::<Vec<_>>());
        match (self.get("stage"), self.get("view")) {
            ("", "all") => kept.with(&[("stage", &Stage::NAMES.join(","))]),
            ("", AUCTIONS) => kept.with(&[("fact", &self.facts_of_offers())]),
            ("", "today") => kept.with(&[("dropped_from", "today"), ("dropped_to", "today")]),
            _ => kept,
        }
    }

    /// Returns the state in which a range of only today and tomorrow is written with relative days.
    #[must_use]
    pub fn moving(&self, today: Day) -> DropsParams {
        let word = |name: &str| match self.get(name).parse::<Day>().ok()?.days_since(today) {
            0 => Some("today"),
            1 => Some("tomorrow"),
            _ => None,
        };
        let ranges = [("release_from", "release_to"), ("dropped_from", "dropped_to")];
        let moved = ranges.into_iter().filter_map(|(from, to)| {
            let (first, last) = word(from).zip(word(to))?;
            Some([(from, first), (to, last)])
        });
        let offset = ("offset", self.get("offset"));
        self.with(&moved.flatten().chain([offset]).collect::<Vec<_>>())
    }

    /// Whether a filter is set.
    pub fn is_filtered(&self) -> bool {
        self.filters().next().is_some()
    }

    /// Whether the best names of each day are shown, because no part of the list, order or page is
    /// chosen.
    pub fn is_digest(&self) -> bool {
        PLACE.iter().all(|name| *name == "limit" || self.get(name).is_empty())
    }

    /// Returns the releases of the next days as one list.
    #[must_use]
    pub fn soon(&self) -> DropsParams {
        let last = format!("+{DAYS_AHEAD}d");
        self.anywhere().with(&[("release_from", "tomorrow"), ("release_to", &last)])
    }

    /// Returns the state whose rows the page shows; the digest shows some of the next days.
    #[must_use]
    pub fn listed(&self) -> DropsParams {
        if self.is_digest() { self.soon() } else { self.clone() }
    }

    /// Returns the releases of one day.
    #[must_use]
    pub fn on_day(&self, day: Day) -> DropsParams {
        let day = day.to_string();
        self.anywhere().with(&[("release_from", &day), ("release_to", &day)])
    }

    /// Whether the filters need the text of names.
    pub fn reads_text(&self) -> bool {
        let reads = |condition: &Condition| condition.kind.reads_text();
        CONDITIONS.iter().any(|it| reads(it) && !self.get(it.parameter).is_empty())
    }

    /// Returns the conditions on facts with that of offers.
    fn facts_of_offers(&self) -> String {
        match self.get("fact") {
            "" => OFFERS.to_owned(),
            facts => format!("{facts},{OFFERS}"),
        }
    }

    /// Returns the same rows in parameters of the API.
    fn in_api(&self) -> DropsParams {
        if self.get("view") != AUCTIONS {
            return self.clone();
        }
        let (facts, offset) = (self.facts_of_offers(), self.get("offset"));
        self.with(&[("view", "all"), ("fact", &facts), ("offset", offset)])
    }

    /// Validates the parameters like the API.
    ///
    /// # Errors
    /// The first invalid parameter.
    pub fn filter(&self, today: Day) -> Result<DropFilter, BadParameter> {
        let state = self.in_api();
        let parameters: Vec<_> = state.parameters().collect();
        Params::from_pairs(&parameters).drops(LIMITS, today)
    }

    /// Returns the facts that rows show.
    ///
    /// # Errors
    /// A text that is not the name of a fact, or too many.
    pub fn fact_names(&self) -> Result<Vec<FactName>, BadParameter> {
        Params::from_pairs(&[(FACTS, self.get(FACTS))]).fact_names()
    }

    /// Returns the columns beside the facts, if the address chooses them.
    pub fn columns(&self) -> Option<Columns> {
        let text = self.get(COLUMNS);
        (!text.is_empty()).then(|| Columns::from(text.to_owned()))
    }

    /// URL of this state.
    pub fn path(&self) -> String {
        self.path_at("/", &[])
    }

    /// Returns the page with this number, from 1.
    #[must_use]
    pub fn numbered(&self, page: u32) -> DropsParams {
        let size = self.get("limit").parse().unwrap_or(ROWS);
        let offset = query::offset(page.saturating_sub(1).saturating_mul(size));
        self.with(&[("offset", &offset)])
    }

    /// URL of this state with parameters of the page, such as `hidden`.
    pub fn path_with(&self, page: &[(&str, &str)]) -> String {
        self.path_at("/", page)
    }

    /// URL of the page at `offset`.
    pub fn page(&self, offset: u32) -> String {
        self.with(&[("offset", &query::offset(offset))]).path()
    }

    /// URL of the CSV file of all results, up to the export limit, with these members of the rows.
    pub fn csv(&self, members: &str) -> String {
        let all = self.in_api().with(&[("limit", ""), (COLUMNS, "")]);
        let limit = EXPORT_ROWS_MAX.to_string();
        all.path_at("/api/export/drops", &[(COLUMNS, members), ("limit", &limit)])
    }

    fn path_at(&self, path: &str, more: &[(&str, &str)]) -> String {
        let mut parameters: Vec<(&str, &str)> = self.parameters().collect();
        parameters.extend(more);
        query::with(&parameters, path)
    }
}

/// Returns the distinct TLDs of a list in the spelling of the index.
fn tlds(list: &str) -> String {
    let mut tlds = Vec::new();
    for tld in list.split([',', ' ']).filter_map(fold_tld) {
        if !tlds.contains(&tld) {
            tlds.push(tld);
        }
    }
    tlds.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TODAY: Day = Day::MIN;

    fn state(query: &str) -> DropsParams {
        DropsParams::of(&Fields::from_query(Some(query)))
    }

    #[test]
    fn days_move_if_the_whole_range_does() {
        let today: Day = "2026-11-22".parse().expect("a day");
        for (sent, moved) in [
            (
                "release_from=2026-11-23&release_to=2026-11-23",
                "release_from=tomorrow&release_to=tomorrow",
            ),
            (
                "release_from=2026-11-23&release_to=2026-11-30",
                "release_from=2026-11-23&release_to=2026-11-30",
            ),
            (
                "dropped_from=2026-11-22&dropped_to=2026-11-22",
                "dropped_from=today&dropped_to=today",
            ),
            ("tld=com&release_from=%2B3d", "tld=com&release_from=%2B3d"),
        ] {
            assert_eq!(state(sent).moving(today).path(), format!("/?{moved}"));
        }
    }

    #[test]
    fn links_omit_what_does_not_filter() {
        for (sent, shown) in [
            ("", "/"),
            ("q=&min_dqs=0&max_len=63&stage=&tld=&limit=100", "/"),
            ("tld=com&tld=de&tld=.COM,+io", "/?tld=com%2Cde%2Cio"),
            ("min_dqs=40&view=today", "/?view=today&min_dqs=40"),
            ("q=%D0%BF%26&offset=200", "/?q=%D0%BF%26&offset=200"),
            ("tld=%D1%80%D1%84", "/?tld=xn--p1ai"),
            ("release_to=%2B3d&digits=none", "/?digits=none&release_to=%2B3d"),
            ("notice=x&facets=tld&offset=0", "/"),
        ] {
            assert_eq!(state(sent).path(), shown, "{sent}");
            let again = shown.split_once('?').map_or("", |(_, query)| query);
            assert_eq!(state(again).path(), shown, "{sent}");
        }
    }

    #[test]
    fn filters_match_those_of_the_api() {
        let sent = "tld=com&tld=de&q=Shop&min_dqs=40&max_len=9&stage=pending-delete&offset=300";
        let filter = state(sent).filter(TODAY).expect("valid");
        let asked = "tld=com,de&q=shop&min_dqs=40&max_len=9&stage=pending-delete&offset=300";
        assert_eq!(filter, Params::new(Some(asked)).drops(LIMITS, TODAY).expect("valid"));
        for (sent, parameter) in [
            ("min_dqs=101", "min_dqs"),
            ("max_len=x", "max_len"),
            ("view=none", "view"),
            ("stage=gone", "stage"),
            ("offset=-1", "offset"),
            ("q=a%00b", "q"),
            ("release_from=soon", "release_from"),
        ] {
            let refused = state(sent).filter(TODAY).expect_err(sent);
            assert_eq!(refused.name, parameter);
        }
    }

    #[test]
    fn auctions_are_a_condition_of_the_api() {
        let auctions = state("view=auctions&tld=com&fact=a.b:1..&sort=fact:market.ends&order=asc");
        let fact = "fact=a.b:1..,market.ends:today..";
        let asked = format!("view=all&tld=com&{fact}&sort=fact:market.ends&order=asc");
        let filter = Params::new(Some(&asked)).drops(LIMITS, TODAY).expect("valid");
        assert_eq!(auctions.filter(TODAY).expect("valid"), filter);
        assert_eq!(auctions.filters().count(), 2, "the condition cannot be removed");
        let fact = "a.b%3A1..%2Cmarket.ends%3Atoday..";
        assert_eq!(auctions.conditions().path(), format!("/?tld=com&fact={fact}"));
        assert!(auctions.csv("").contains(&format!("view=all&tld=com&fact={fact}&sort=")));
        assert_eq!(auctions.anywhere().path(), "/?tld=com&fact=a.b%3A1..");
    }

    #[test]
    fn links_keep_the_filters_and_start_on_the_first_page() {
        let shown = state("tld=com&q=so&view=today&sort=length&offset=100");
        assert!(!shown.is_digest() && shown.anywhere().is_digest());
        assert_eq!(shown.page(200), "/?view=today&tld=com&q=so&sort=length&offset=200");
        assert_eq!(shown.page(0), "/?view=today&tld=com&q=so&sort=length");
        assert_eq!(shown.numbered(3), shown.with(&[("offset", "200")]));
        assert_eq!([shown.numbered(1), shown.numbered(0)], [shown.with(&[]), shown.with(&[])]);
        assert_eq!(
            shown.with(&[("min_dqs", "80")]).path(),
            "/?view=today&tld=com&min_dqs=80&q=so&sort=length"
        );
        assert_eq!(shown.unfiltered().path(), "/?view=today&sort=length");
        let columns = shown.with(&[(FACTS, "a.b"), (COLUMNS, "due.state")]);
        assert_eq!(columns.columns().map(|it| it.to_string()).as_deref(), Some("due.state"));
        assert_eq!((columns.conditions(), shown.columns()), (shown.conditions(), None));
        assert_eq!(columns.anywhere().path(), "/?tld=com&q=so&facts=a.b&columns=due.state");
        assert_eq!(columns.with(&[(FACTS, "")]).csv("dqs"), shown.csv("dqs"));
        assert_eq!(shown.soon().path(), "/?tld=com&q=so&release_from=tomorrow&release_to=%2B7d");
        assert_eq!(
            shown.csv("name"),
            "/api/export/drops?view=today&tld=com&q=so&sort=length&columns=name&limit=10000"
        );
    }
}
