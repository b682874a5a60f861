//! State of the drops page, read from the query string and written to the links of the page.

use compact_str::CompactString;

use crate::http::error::ApiError;
use crate::http::params::{Limits, Params};
use crate::index::filter::{DropFilter, View};
use crate::vocab::day::Day;
use crate::vocab::limits::{DROPS_OFFSET_MAX, EXPORT_ROWS_MAX, LABEL_CHARS_MAX};
use crate::vocab::query::fold_tld;
use crate::vocab::stage::Stage;
use crate::web::components::query;
use crate::web::form::Fields;

/// Rows per page.
pub const ROWS: u32 = 40;
const LIMITS: Limits = Limits { default: ROWS, max: ROWS };

/// Parameters as sent. Absent ones are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Distinct TLDs of the chips and the text field.
    pub tlds: Vec<CompactString>,
    pub contains: String,
    pub min_dqs: String,
    pub max_len: String,
    stage: String,
    view: String,
    offset: String,
}

impl State {
    /// Parses a query string. Forms send `tld` once per chip; links have one list, as in the API.
    pub fn parse(query: Option<&str>) -> State {
        let sent = Fields::from_query(query);
        let text = |name| sent.text(name).trim().to_owned();
        let mut tlds = Vec::new();
        for tld in sent.all("tld").flat_map(|list| list.split([',', ' '])).filter_map(fold_tld) {
            if !tlds.contains(&tld) {
                tlds.push(tld);
            }
        }
        State {
            tlds,
            contains: text("q"),
            min_dqs: text("min_dqs"),
            max_len: text("max_len"),
            stage: text("stage"),
            view: text("view"),
            offset: text("offset"),
        }
    }

    /// Validates the parameters as the API does.
    ///
    /// # Errors
    /// The first invalid parameter.
    pub fn filter(&self, today: Day) -> Result<DropFilter, ApiError> {
        let tlds = self.tlds.join(",");
        let mut parameters = self.parameters(&tlds);
        parameters.push(("offset", &self.offset));
        Params::from_pairs(&parameters).drops(LIMITS, today)
    }

    /// The view. Invalid values give the default.
    pub fn view(&self) -> View {
        match (self.stage.parse::<Stage>(), self.view.as_str()) {
            (Ok(stage), _) => View::Stage(stage),
            (_, "today") => View::Today,
            (_, "all") => View::All,
            _ => View::Active,
        }
    }

    /// Hidden fields of the form.
    pub fn view_fields(&self) -> [(&'static str, &str); 2] {
        [("stage", &self.stage), ("view", &self.view)]
    }

    /// Returns true if a filter other than the view is set.
    pub fn is_narrowed(&self) -> bool {
        !self.tlds.is_empty() || !self.narrowing().is_empty()
    }

    /// URL of this state.
    pub fn path(&self) -> String {
        let offset = if self.offset == "0" { "" } else { &self.offset };
        self.path_with("/", &[("offset", offset)])
    }

    /// URL of the page at `offset`.
    pub fn page(&self, offset: u32) -> String {
        self.path_with("/", &[("offset", &query::offset(offset.min(DROPS_OFFSET_MAX)))])
    }

    /// URL of the same filters in another view.
    pub fn on(&self, view: View) -> String {
        let (stage, view) = match view {
            View::Stage(stage) => (stage.as_str(), ""),
            View::Today => ("", "today"),
            View::All => ("", "all"),
            View::Active | View::Stages(_) => ("", ""),
        };
        let moved = State { stage: stage.into(), view: view.into(), ..self.clone() };
        moved.path_with("/", &[])
    }

    /// URL of the same view without filters.
    pub fn cleared(&self) -> String {
        State::default().on(self.view())
    }

    /// URL of the CSV file of the page at `offset`.
    pub fn csv_of_page(&self, offset: u32) -> String {
        let (limit, offset) = (ROWS.to_string(), offset.to_string());
        self.path_with("/api/export/drops", &[("limit", &limit), ("offset", &offset)])
    }

    /// URL of the CSV file of all results, up to the export limit.
    pub fn csv_of_all(&self) -> String {
        self.path_with("/api/export/drops", &[("limit", &EXPORT_ROWS_MAX.to_string())])
    }

    /// Filters other than TLDs, without default values.
    fn narrowing(&self) -> Vec<(&'static str, &str)> {
        let longest = LABEL_CHARS_MAX.to_string();
        let fields = [
            ("q", self.contains.as_str(), ""),
            ("min_dqs", &self.min_dqs, "0"),
            ("max_len", &self.max_len, &longest),
        ];
        let is_set = |field: &(_, &str, &str)| !field.1.is_empty() && field.1 != field.2;
        fields.into_iter().filter(is_set).map(|(name, value, _)| (name, value)).collect()
    }

    fn path_with(&self, path: &str, more: &[(&str, &str)]) -> String {
        let tlds = self.tlds.join(",");
        let mut parameters = self.parameters(&tlds);
        parameters.extend(more);
        query::with(&parameters, path)
    }

    /// View and filters, without default values.
    fn parameters<'a>(&'a self, tlds: &'a str) -> Vec<(&'a str, &'a str)> {
        let view = if self.stage.is_empty() && self.view != "active" { &self.view } else { "" };
        let mut parameters = vec![("stage", self.stage.as_str()), ("view", view), ("tld", tlds)];
        parameters.extend(self.narrowing());
        parameters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(query: &str) -> String {
        State::parse(Some(query)).path()
    }

    #[test]
    fn links_omit_default_values() {
        for (sent, shown) in [
            ("", "/"),
            ("q=&min_dqs=0&max_len=63&view=active&stage=&tld=", "/"),
            ("tld=com&tld=de&tld=.COM,+io", "/?tld=com%2Cde%2Cio"),
            ("view=today&min_dqs=40", "/?view=today&min_dqs=40"),
            ("view=all&stage=catchable", "/?stage=catchable"),
            ("q=%D0%BF%26&offset=200", "/?q=%D0%BF%26&offset=200"),
            ("tld=%D1%80%D1%84", "/?tld=xn--p1ai"),
            ("notice=x&limit=7&offset=0", "/"),
        ] {
            assert_eq!(path(sent), shown, "{sent}");
            let again = shown.split_once('?').map_or("", |(_, query)| query);
            assert_eq!(path(again), shown, "{sent}");
        }
    }

    #[test]
    fn filters_match_those_of_the_api() {
        let sent = "tld=com&tld=de&q=Shop&min_dqs=40&max_len=9&stage=pending-delete&offset=300";
        let today = "2026-11-23".parse().expect("a date");
        let filter = State::parse(Some(sent)).filter(today).expect("valid");
        let asked = "tld=com,de&q=shop&min_dqs=40&max_len=9&stage=pending-delete&offset=300";
        assert_eq!(filter, Params::new(Some(asked)).drops(LIMITS, today).expect("valid"));
        for (sent, parameter) in [
            ("min_dqs=101", "min_dqs"),
            ("max_len=x", "max_len"),
            ("view=none", "view"),
            ("stage=gone", "stage"),
            ("offset=-1", "offset"),
            ("q=a%00b", "q"),
        ] {
            let refused = State::parse(Some(sent)).filter(today).expect_err(sent);
            let ApiError::BadParameter { name, .. } = refused else { panic!("{refused:?}") };
            assert_eq!(name, parameter);
        }
    }

    #[test]
    fn links_keep_the_filters() {
        let state = State::parse(Some("tld=com&q=so&view=today&offset=100"));
        assert_eq!(state.page(200), "/?view=today&tld=com&q=so&offset=200");
        assert_eq!(state.page(0), "/?view=today&tld=com&q=so");
        assert_eq!(state.on(View::Active), "/?tld=com&q=so");
        assert_eq!(state.on(View::Stage(Stage::Catchable)), "/?stage=catchable&tld=com&q=so");
        assert_eq!(state.cleared(), "/?view=today");
        assert_eq!(
            state.csv_of_page(100),
            "/api/export/drops?view=today&tld=com&q=so&limit=40&offset=100"
        );
        assert_eq!(state.csv_of_all(), "/api/export/drops?view=today&tld=com&q=so&limit=10000");
    }
}
