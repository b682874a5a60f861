//! The state of the drops page as its address holds it: parameters of the API as sent in, the filter
//! they mean and the addresses of other states out.

use compact_str::CompactString;
use url::form_urlencoded::parse;

use crate::http::error::ApiError;
use crate::http::params::{Limits, Params};
use crate::index::filter::{DropFilter, View};
use crate::vocab::limits::{DROPS_OFFSET_MAX, EXPORT_ROWS_MAX, LABEL_CHARS_MAX};
use crate::vocab::query::fold_tld;
use crate::vocab::stage::Stage;
use crate::web::components::query;

/// Rows of a page.
pub const ROWS: u32 = 100;
const LIMITS: Limits = Limits { default: ROWS, max: ROWS };

/// Parameters as sent; what is not sent is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// From chips and from the field for others, each once.
    pub tlds: Vec<CompactString>,
    pub contains: String,
    pub min_dqs: String,
    pub max_len: String,
    stage: String,
    view: String,
    offset: String,
}

impl State {
    /// Of a query string. A form sends `tld` once for each chip, which the API would refuse; a link
    /// made here sends them in one.
    pub fn parse(query: Option<&str>) -> State {
        let mut state = State::default();
        for (name, value) in parse(query.unwrap_or_default().as_bytes()) {
            let value = value.trim();
            let field = match &*name {
                "tld" => {
                    for tld in value.split([',', ' ']).filter_map(fold_tld) {
                        if !state.tlds.contains(&tld) {
                            state.tlds.push(tld);
                        }
                    }
                    continue;
                }
                "q" => &mut state.contains,
                "min_dqs" => &mut state.min_dqs,
                "max_len" => &mut state.max_len,
                "stage" => &mut state.stage,
                "view" => &mut state.view,
                "offset" => &mut state.offset,
                _ => continue,
            };
            value.clone_into(field);
        }
        state
    }

    /// The filter that it means.
    ///
    /// # Errors
    /// The first parameter that is not as it should be, as the API refuses it.
    pub fn filter(&self) -> Result<DropFilter, ApiError> {
        let path = self.path();
        let query = path.split_once('?').map(|(_, query)| query);
        Params::new(query).drops(LIMITS)
    }

    /// The part of the pipeline, as far as it is one.
    pub fn view(&self) -> View {
        match (self.stage.parse::<Stage>(), self.view.as_str()) {
            (Ok(stage), _) => View::Stage(stage),
            (_, "today") => View::Today,
            (_, "all") => View::All,
            _ => View::Active,
        }
    }

    /// `stage` and `view` as the form sends them.
    pub fn pipeline_fields(&self) -> [(&'static str, &str); 2] {
        [("stage", &self.stage), ("view", &self.view)]
    }

    /// True when anything but the part of the pipeline narrows the list.
    pub fn is_narrowed(&self) -> bool {
        !self.tlds.is_empty() || !self.narrowing().is_empty()
    }

    /// The address of this state.
    pub fn path(&self) -> String {
        let offset = if self.offset == "0" { "" } else { &self.offset };
        self.path_with("/", &[("offset", offset)])
    }

    /// The address of the page from `offset` on.
    pub fn page(&self, offset: u32) -> String {
        let offset = offset.min(DROPS_OFFSET_MAX).to_string();
        let offset = if offset == "0" { "" } else { &offset };
        self.path_with("/", &[("offset", offset)])
    }

    /// The address of the same filters on another part of the pipeline.
    pub fn on(&self, view: View) -> String {
        let (stage, view) = match view {
            View::Stage(stage) => (stage.as_str(), ""),
            View::Today => ("", "today"),
            View::All => ("", "all"),
            View::Active => ("", ""),
        };
        let moved = State { stage: stage.into(), view: view.into(), ..self.clone() };
        moved.path_with("/", &[])
    }

    /// The address without filters, on the same part of the pipeline.
    pub fn cleared(&self) -> String {
        State::default().on(self.view())
    }

    /// The CSV of the rows from `offset` on that are shown.
    pub fn csv_of_page(&self, offset: u32) -> String {
        let (limit, offset) = (ROWS.to_string(), offset.to_string());
        self.path_with("/api/export/drops", &[("limit", &limit), ("offset", &offset)])
    }

    /// The CSV of all that match, as far as one file goes.
    pub fn csv_of_all(&self) -> String {
        self.path_with("/api/export/drops", &[("limit", &EXPORT_ROWS_MAX.to_string())])
    }

    /// What narrows the list, without TLDs: defaults left out.
    fn narrowing(&self) -> Vec<(&'static str, &str)> {
        let longest = LABEL_CHARS_MAX.to_string();
        let fields = [
            ("q", self.contains.as_str(), ""),
            ("min_dqs", &self.min_dqs, "0"),
            ("max_len", &self.max_len, &longest),
        ];
        let told =
            fields.into_iter().filter(|(_, value, default)| !value.is_empty() && value != default);
        told.map(|(name, value, _)| (name, value)).collect()
    }

    fn path_with(&self, path: &str, more: &[(&str, &str)]) -> String {
        let tlds = self.tlds.join(",");
        let view = if self.stage.is_empty() && self.view != "active" { &self.view } else { "" };
        let mut parameters: Vec<(&str, &str)> =
            vec![("stage", self.stage.as_str()), ("view", view), ("tld", &tlds)];
        parameters.extend(self.narrowing());
        parameters.extend(more);
        parameters.retain(|(_, value)| !value.is_empty());
        query::with(&parameters, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(query: &str) -> String {
        State::parse(Some(query)).path()
    }

    #[test]
    fn an_address_is_the_shortest_of_its_state() {
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
    fn it_means_what_the_api_means() {
        let sent = "tld=com&tld=de&q=Shop&min_dqs=40&max_len=9&stage=pending-delete&offset=300";
        let filter = State::parse(Some(sent)).filter().expect("valid");
        let asked = "tld=com,de&q=shop&min_dqs=40&max_len=9&stage=pending-delete&offset=300";
        assert_eq!(filter, Params::new(Some(asked)).drops(LIMITS).expect("valid"));
        for (sent, parameter) in [
            ("min_dqs=101", "min_dqs"),
            ("max_len=x", "max_len"),
            ("view=none", "view"),
            ("stage=gone", "stage"),
            ("offset=-1", "offset"),
            ("q=a%00b", "q"),
        ] {
            let refused = State::parse(Some(sent)).filter().expect_err(sent);
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
            "/api/export/drops?view=today&tld=com&q=so&limit=100&offset=100"
        );
        assert_eq!(state.csv_of_all(), "/api/export/drops?view=today&tld=com&q=so&limit=10000");
    }
}
