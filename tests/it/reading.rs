//! Public pages: drops, search, dossier, overview. The rows of the pages are compared with the API
//! and the CSV export of the same list.

pub mod html;

use std::collections::{HashMap, HashSet};
use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::common::http::{escape, with_query};
use crate::common::{Client, Response, Server, Site};
use html::{Element, Page};

const TODAY: &str = "2026-11-20";
const EMAIL: &str = "reader@example.com";
const PASSWORD: &str = "correct horse battery";

const HEADER: &str = "domain,drop_date,release_date,registered_again\n";

/// Names that cover everything that pages show: every stage, other scripts, a name with two drops.
const OWN_ROWS: &str = "\
    müller.de,2026-11-19,,\n\
    xn--pple-43d.com,2026-11-18,,\n\
    oldharbor.com,2019-03-01,,true\n\
    oldharbor.com,2026-11-17,,\n\
    oldharbor.net,2026-10-01,,\n\
    oldharbor.de,2026-03-01,,\n\
    пример.рф,2026-11-10,,\n";

/// Returns a list of 250 generated names and [`OWN_ROWS`].
fn list() -> String {
    const WORDS: [&str; 10] =
        ["solar", "harbor", "night", "paper", "stone", "river", "cloud", "green", "swift", "amber"];
    let mut text = HEADER.to_owned();
    for at in 0..250usize {
        let (first, second) = (WORDS[at % 10], WORDS[at / 10 % 10]);
        let tld = ["com", "net", "de", "co.uk", "shop"][at / 50];
        let day = 20 - at % 20;
        text.push_str(&format!("{first}{second}{}.{tld},2026-11-{day:02},,\n", at / 100));
    }
    text + OWN_ROWS
}

struct World {
    /// Keeps the folder as long as this value exists.
    _site: Site,
    server: Server,
    key: String,
}

impl World {
    fn new() -> World {
        let site = Site::new();
        let list = site.write("list.csv", list());
        site.ingest(&list, "2026-11-20T06:00:00Z");
        add_account(&site);
        let key = site.new_key(EMAIL);
        let settings = site.settings("[web]\nplain_http = true\n");
        let server = site.serve_with(&["--config", &settings, "--today", TODAY]);
        World { _site: site, server, key }
    }

    fn client(&self) -> Client {
        self.server.client()
    }

    #[track_caller]
    fn page(&self, target: &str) -> Page {
        self.page_as(target, &[])
    }

    #[track_caller]
    fn page_as(&self, target: &str, headers: &[(&str, &str)]) -> Page {
        let response = self.client().request("GET", target, headers);
        assert_eq!(response.status, 200, "{target}: {}", response.text());
        Page::read(response.text())
    }

    #[track_caller]
    fn api(&self, target: &str) -> Value {
        let (status, body) = self.server.client_with(&self.key).get(target).answer();
        assert_eq!(status, 200, "{target}: {body}");
        body
    }

    /// Logs in and returns the session cookie.
    fn log_in(&self) -> String {
        let form = format!("email={}&password={}", escape(EMAIL), escape(PASSWORD));
        let response = self.post("/login", &form, None);
        assert_eq!(response.status, 303, "{}", response.text());
        let cookie = response.header("set-cookie").expect("a session");
        cookie.split(';').next().expect("a split has a first part").to_owned()
    }

    fn post(&self, target: &str, form: &str, cookie: Option<&str>) -> Response {
        let mut headers = vec![
            ("Content-Type", "application/x-www-form-urlencoded"),
            ("Sec-Fetch-Site", "same-origin"),
        ];
        headers.extend(cookie.map(|cookie| ("Cookie", cookie)));
        self.client().send_with("POST", target, &headers, form.as_bytes())
    }
}

fn add_account(site: &Site) {
    let mut command = site.command(&["account", "add", EMAIL, "--plan", "api", "--password-stdin"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
    let mut input = child.stdin.take().expect("it is piped");
    writeln!(input, "{PASSWORD}").expect("it reads");
    drop(input);
    assert!(child.wait().expect("it ends").success());
}

/// Returns the names in the rows of a drops page.
pub fn names(page: &Page) -> Vec<String> {
    let boxes = page.all(|element| element.get("form") == Some("bulk") && is_box(element));
    boxes.into_iter().filter_map(|it| it.get("value")).map(str::to_owned).collect()
}

fn is_box(element: &Element) -> bool {
    element.get("type") == Some("checkbox")
}

/// Returns the row of a name.
#[track_caller]
fn row<'a>(page: &'a Page, name: &str) -> &'a Element {
    let is_its = |element: &Element| is_box(element) && element.get("value") == Some(name);
    let rows = page.all(|element| element.name == "tr");
    let found = rows.into_iter().find(|row| !page.within(row, is_its).is_empty());
    found.unwrap_or_else(|| panic!("no row of {name}"))
}

fn api_names(answer: &Value, list: &str, name: &str) -> Vec<String> {
    let rows = answer[list].as_array().expect("a list");
    rows.iter().map(|row| row[name].as_str().expect("a name").to_owned()).collect()
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

const FILTERS: [&str; 10] = [
    "view=active",
    "view=active&tld=com",
    "view=active&tld=com,net,xn--p1ai",
    "view=active&q=harbor&min_dqs=20",
    "view=active&max_len=11&digits=none",
    "release_from=2026-12-10&release_to=2026-12-20&sort=release",
    "stage=catchable",
    "stage=released",
    "view=today",
    "view=all&q=%D0%BF%D1%80",
];

#[test]
fn the_list_matches_the_api_and_the_csv() {
    let world = World::new();
    let cookie = world.log_in();
    for filter in FILTERS {
        let whole = world.api(&format!("/api/v1/drops?{filter}&limit=1000"));
        let total = whole["count"].as_u64().expect("a count") as usize;
        let mut seen = 0;
        let mut next = Some(format!("/?{filter}"));
        while let Some(target) = next {
            let page = world.page_as(&format!("{target}&rows=all"), &[("Cookie", &cookie)]);
            let rows = names(&page);
            let answer = world.api(&format!("/api/v1/drops?{filter}&limit=100&offset={seen}"));
            assert_eq!(rows, api_names(&answer, "drops", "name"), "{target}");
            for drop in answer["drops"].as_array().expect("a list") {
                assert_row(&page, drop);
                if filter == "view=active" {
                    assert_parts(&world, drop);
                }
            }
            if !rows.is_empty() {
                let shown = format!("{} to {} of {total}", seen + 1, seen + rows.len());
                assert!(page.id("list").text.contains(&shown), "{target}: {shown}");
            }
            seen += rows.len();
            next = rel(&page, "next");
        }
        assert_eq!(seen, total, "{filter}");
        if total > 1 {
            let page = world.page_as(&format!("/?{filter}"), &[("Cookie", &cookie)]);
            let all = csv_names(&world, &page, &format!("CSV: {total} names"));
            assert_eq!(all, api_names(&whole, "drops", "name"));
        }
    }
}

/// Maximum elements of a row, itself included. An IDN has five more within its link and beside it, or
/// four.
const ROW_ELEMENTS: usize = 12;

/// Checks that a row shows score, reasons and length of its drop, and links to the parts of its score.
#[track_caller]
fn assert_row(page: &Page, drop: &Value) {
    let name = drop["name"].as_str().expect("a name");
    let row = row(page, name);
    let cell =
        |class: &str| squeezed(&page.within(row, |element| element.has_class(class))[0].text);
    assert_eq!(cell("length"), drop["length"].to_string(), "{name}");
    let score = page.within(row, |element| element.has_class("score"))[0];
    assert_eq!(score.text, drop["dqs"].to_string(), "{name}");
    let why = squeezed(&page.within(row, |element| element.has_class("why"))[0].text);
    let reasons = why.rsplit(". ").next().expect("there").split(" · ").count();
    assert!(!why.is_empty() && reasons <= 2, "{name}: {why}");
    let head = page.within(row, |element| element.name == "th")[0];
    assert_eq!(head.get("scope"), Some("row"), "{name}");
    let links = page.within(head, |element| element.name == "a");
    assert_eq!(links[0].get("href"), Some(format!("/domain/{name}").as_str()));
    let elements = page.within(row, |_| true).len() + 1;
    let is_idn = name.contains("xn--");
    assert!(elements <= if is_idn { ROW_ELEMENTS + 4 } else { ROW_ELEMENTS }, "{name}: {elements}");
}

/// Returns the parts of a score, which a script puts into the row.
#[track_caller]
fn assert_parts(world: &World, drop: &Value) {
    let name = drop["name"].as_str().expect("a name");
    let page = world.page_as(&format!("/domain/{name}"), &[("X-Fragment", "parts")]);
    let points = drop["signals"]["points"].as_object().expect("parts");
    let parts: Vec<i64> = points
        .iter()
        .filter(|(part, _)| *part != "base")
        .map(|(_, points)| points)
        .filter_map(Value::as_i64)
        .filter(|&part| part != 0)
        .collect();
    let shown = page.all(|element| element.name == "rect" && element.has_class("plus"));
    let taken = page.all(|element| element.name == "rect" && element.has_class("minus"));
    assert_eq!(shown.len(), parts.iter().filter(|&&part| part > 0).count(), "{name}");
    assert_eq!(taken.len(), parts.iter().filter(|&&part| part < 0).count(), "{name}");
}

fn rel(page: &Page, rel: &str) -> Option<String> {
    let links = page.all(|element| element.get("rel") == Some(rel));
    links.first().and_then(|link| link.get("href")).map(str::to_owned)
}

/// Checks that a page sends its first rows, and the others to a script or on a link.
#[track_caller]
fn assert_parts_agree(world: &World, target: &str, first: usize) {
    let page = world.page(target);
    let mut shown = names(&page);
    assert_eq!(shown.len(), first, "{target}");
    let link = page.within(page.id("others"), |element| element.name == "a")[0];
    let link = link.get("href").expect("a link");
    let all = names(&world.page(link));
    assert_eq!(page.id("others").text, format!("Show all {} rows", all.len()));
    shown.extend(names(&world.page_as(link, &[("X-Fragment", "rows")])));
    assert_eq!(shown, all, "{target}");
    assert!(world.page(link).maybe_id("others").is_none(), "{link}");
}

/// Returns the names in the linked file.
#[track_caller]
fn csv_names(world: &World, page: &Page, link: &str) -> Vec<String> {
    let links = page.all(|element| element.get("aria-label") == Some(link));
    let target = links.first().and_then(|it| it.get("href"));
    let target = target.unwrap_or_else(|| panic!("no link {link:?}"));
    let response = world.server.client_with(&world.key).get(target);
    assert_eq!(response.status, 200, "{target}: {}", response.text());
    let rows = response.text().lines().skip(1);
    rows.filter_map(|row| row.split(',').next()).map(str::to_owned).collect()
}

#[test]
fn rows_show_stage_and_date() {
    let world = World::new();
    for (name, shown) in [
        ("oldharbor.com", ["22 Dec", "restorable"]),
        ("oldharbor.net", ["5 Nov", "released"]),
        ("oldharbor.de", ["31 Mar", "released"]),
    ] {
        let page = world.page(&format!("/?view=all&q={name}"));
        let row = row(&page, name);
        let cell = |class: &str| {
            squeezed(
                &page.within(row, |element| element.name == "td" && element.has_class(class))[0]
                    .text,
            )
        };
        assert_eq!([cell("due"), cell("state")], shown, "{name}");
    }
}

#[test]
fn links_keep_the_filters_and_the_bar_shows_them() {
    let world = World::new();
    // The query string that a form sends: one parameter twice, and empty values for unset fields.
    let page =
        world.page("/?view=all&q=r&min_dqs=1&max_len=63&tld=com&tld=net&tld=de%2C+co.uk&stage=");
    let filters = "tld=com%2Cnet%2Cde%2Cco.uk";
    let next = rel(&page, "next").expect("more rows");
    for part in ["/?view=all&", filters, "q=r", "min_dqs=1", "offset=100"] {
        assert!(next.contains(part), "{next}");
    }
    assert!(!next.contains("max_len") && !next.contains("stage"), "{next}");
    let bar = page.id("bar");
    for word in ["score ≥ 1", "name contains r", "TLD com, net, de, co.uk"] {
        assert!(squeezed(&bar.text).contains(word), "{word}: {}", bar.text);
    }
    // Links that remove one of the filters, or lead to another tab.
    let links = page.all(|element| element.name == "a");
    let leads = |says: &str| {
        let link = links.iter().find(|link| {
            squeezed(&link.text).starts_with(says)
                || link.get("aria-label").is_some_and(|label| label.contains(says))
        });
        link.and_then(|link| link.get("href")).unwrap_or_else(|| panic!("no link {says:?}"))
    };
    assert!(!leads("Remove the filter: score ≥ 1").contains("min_dqs"));
    let dropped = leads("Just dropped");
    assert!(dropped.starts_with("/?stage=catchable&") && dropped.contains(filters), "{dropped}");
    assert!(leads("Dropping soon").starts_with(&format!("/?{filters}")));
    assert_eq!(leads("Clear filters"), "/?view=all");
    let second = world.page(&next);
    assert!(rel(&second, "prev").is_some_and(|path| !path.contains("offset")));
    let jump = world.client().get("/?view=all&limit=100&page=2");
    assert_eq!((jump.status, jump.header("location")), (303, Some("/?view=all&offset=100")));
    let beyond = world.page("/?view=all&offset=900");
    assert!(beyond.id("list").text.contains("There are no more names."));
    let cookie = world.log_in();
    let beyond = world.page_as("/?view=all&offset=100000", &[("Cookie", &cookie)]);
    assert!(beyond.id("list").text.contains("There are no more names."));
}

#[test]
fn the_query_bar_writes_the_address() {
    let world = World::new();
    let response = world.client().get("/?view=all&tld=com&add=solar+-hyphens+len%3A%3C%3D12");
    assert_eq!(response.status, 303);
    let path = response.header("location").expect("an address").to_owned();
    for part in ["view=all", "tld=com", "contains=solar", "hyphens=none", "max_len=12"] {
        assert!(path.contains(part), "{path}");
    }
    let (query, shown) =
        (path.trim_start_matches("/?"), names(&world.page(&format!("{path}&rows=all"))));
    let answer = world.api(&format!("/api/v1/drops?{query}"));
    assert_eq!(shown, api_names(&answer, "drops", "name"));
    assert!(!shown.is_empty());
    // An unknown term stays in the bar, and the list does not change.
    let response = world.client().get("/?view=all&add=colour%3Ared");
    assert_eq!(response.status, 400);
    let page = Page::read(response.text());
    assert!(page.id("problem").text.contains("Unknown filter “colour”."));
    assert_eq!(page.id("find").get("value"), Some("colour:red"));
    assert_eq!(names(&page), names(&world.page("/?view=all")));
}

#[test]
fn the_first_page_lists_the_best_names_of_each_coming_day() {
    let site = Site::new();
    let mut text = HEADER.to_owned();
    // Names released in one to nine days, 20 of them on the second day.
    for ahead in 1..=9 {
        for at in 0..(if ahead == 2 { 20 } else { 6 }) {
            text.push_str(&format!("solar{ahead}x{at}.com,2026-10-20,2026-11-{},\n", 20 + ahead));
        }
    }
    let list = site.write("list.csv", text);
    site.ingest(&list, "2026-11-20T06:00:00Z");
    add_account(&site);
    let key = site.new_key(EMAIL);
    let server = site.serve_with(&["--today", TODAY]);
    let world = World { _site: site, server, key };
    let page = world.page("/?rows=all");
    let shown = names(&page);
    assert_eq!(shown.len(), 6 * 6 + 12, "at most twelve per day");
    assert_parts_agree(&world, "/", 6 + 12 + 6);
    let mut expected = Vec::new();
    for ahead in 1..=7 {
        let day = format!("2026-11-{}", 20 + ahead);
        let best =
            world.api(&format!("/api/v1/drops?release_from={day}&release_to={day}&limit=12"));
        expected.extend(api_names(&best, "drops", "name"));
    }
    assert_eq!(shown, expected);
    let heads = page.all(|element| element.has_class("group"));
    assert_eq!(heads.len(), 7);
    assert!(
        squeezed(&heads[0].text).starts_with("Tomorrow Sat 21 Nov 6 names"),
        "{}",
        heads[0].text
    );
    assert!(heads[1].text.contains("20 names") && heads[1].text.contains("Show all 20"));
    let tabs = page.all(|element| element.has_class("tabs"))[0];
    assert!(squeezed(&tabs.text).starts_with("Dropping soon 56"), "{}", tabs.text);
    let day = world.page("/?release_from=2026-11-22&release_to=2026-11-22");
    assert_eq!(names(&day).len(), 20);
    // Without matches, the page says what to do.
    let none = world.page("/?digits=none&starts=solar");
    let list = squeezed(&none.id("list").text);
    assert!(list.contains("No names match these filters"), "{list}");
    assert!(list.contains("no digits 56 names"), "{list}");
}

#[test]
fn errors_are_shown_above_the_list() {
    let world = World::new();
    for (query, says) in [
        ("min_dqs=101", "Score at least: must be an integer from 0 to 100."),
        ("max_len=0", "Length at most: must be an integer from 1 to 63."),
        ("q=a%00b", "The parameter q must not hold NUL or control characters."),
        ("stage=gone", "The parameter stage "),
        ("view=x", "The parameter view "),
        ("offset=-1", "The parameter offset "),
        ("release_from=%2B3d&release_to=tomorrow", "Drops from: "),
    ] {
        let response = world.client().get(&format!("/?{query}&tld=de"));
        assert_eq!(response.status, 400, "{query}");
        let page = Page::read(response.text());
        assert!(page.id("problem").text.contains(says), "{query}: {}", page.id("problem").text);
        assert!(names(&page).is_empty());
    }
}

/// Markup that must be escaped.
const MARKUP: &str = "\"><script>alert(1)</script><b id=own>&amp;";

#[test]
fn user_input_stays_text() {
    let world = World::new();
    for target in [
        with_query("/", &[("q", MARKUP.to_owned()), ("tld", MARKUP.to_owned())]),
        with_query("/search", &[("q", MARKUP.to_owned())]),
        format!("/domain/{}", escape(MARKUP)),
        with_query("/domain/solarsolar0.com", &[("notice", MARKUP.to_owned())]),
    ] {
        let response = world.client().get(&target);
        assert!(!response.text().contains("<script>alert"), "{target}");
        let page = Page::read(response.text());
        assert!(page.maybe_id("own").is_none(), "{target}");
        let scripts = page.all(|element| element.name == "script");
        assert!(scripts.iter().all(|script| script.get("src").is_some()), "{target}");
        assert!(page.all(|element| element.get("style").is_some()).is_empty(), "{target}");
        assert!(response.header("content-security-policy").is_some(), "{target}");
    }
    let page =
        Page::read(world.client().get(&with_query("/search", &[("q", MARKUP.into())])).text());
    assert_eq!(page.id("q").get("value"), Some(MARKUP));
}

#[test]
fn scripts_receive_only_the_changed_part() {
    let world = World::new();
    for (target, wanted, parts) in [
        ("/?tld=com", "1", vec!["set", "frame", "filters", "places", "rows"]),
        ("/search?q=solar", "1", vec!["results"]),
        ("/search?q=solar", "options", vec!["find-0", "find-8"]),
        ("/domain/oldharbor.com", "1", vec!["votes"]),
    ] {
        let response = world.client().request("GET", target, &[("X-Fragment", wanted)]);
        assert_eq!(response.status, 200, "{target}");
        let vary: Vec<&str> = response
            .headers
            .iter()
            .filter(|(name, _)| name == "vary")
            .flat_map(|(_, value)| value.split(", "))
            .collect();
        assert!(vary.contains(&"x-fragment") && vary.contains(&"cookie"), "{vary:?}");
        let part = Page::read(response.text());
        assert!(part.all(|element| element.name == "html" || element.name == "h1").is_empty());
        parts.into_iter().for_each(|id| assert!(part.maybe_id(id).is_some(), "{target}: {id}"));
    }
    let part = world.page_as("/?view=all&tld=com", &[("X-Fragment", "1")]);
    assert_eq!(names(&part), names(&world.page("/?view=all&tld=com")));
    let bad = world.client().request("GET", "/?min_dqs=101", &[("X-Fragment", "rows")]);
    assert_eq!(bad.status, 400);
}

#[test]
fn idns_are_shown_in_unicode_with_their_a_label() {
    let world = World::new();
    for target in ["/?view=all&q=m%C3%BCl", "/search?q=m%C3%BC", "/domain/xn--mller-kva.de"] {
        let page = world.page(target);
        let names = page.all(|element| element.has_class("name"));
        assert!(names.iter().any(|name| name.text == "müller.de"), "{target}");
        let labels = page.all(|element| element.has_class("alabel"));
        assert!(labels.iter().any(|label| label.text == "xn--mller-kva.de"), "{target}");
        assert!(!page.id("main").text.contains("mixed scripts "), "{target}");
    }
    for target in ["/?view=all&tld=com&q=xn--p", "/search?q=xn--p", "/domain/xn--pple-43d.com"] {
        let page = world.page(target);
        let marks = page.all(|element| element.has_class("bad") && element.text == "mixed scripts");
        assert_eq!(marks.len(), 1, "{target}");
    }
    assert_eq!(names(&world.page("/?view=all&tld=%D1%80%D1%84")), ["xn--e1afmkfd.xn--p1ai"]);
}

#[test]
fn search_results_match_the_api() {
    let world = World::new();
    let plain = ["q=s", "q=solar&stage=catchable", "q=oldharbor", "q=%D0%BF", "q=none-such"];
    let others = [
        ("contains=harbor&tld=com", "q=harbor&by=contains&tld=com"),
        ("ends=r&digits=none&max_len=9", "q=r&by=ends&digits=none&max_len=9"),
        ("pattern=CVCCV*", "q=CVCCV*&by=pattern"),
        ("like=oldharbur", "q=oldharbur&by=like"),
        ("regex=%5Eold", "q=%5Eold&by=regex"),
    ];
    for (asked, query) in plain.into_iter().map(|query| (query, query)).chain(others) {
        let answer = world.api(&format!("/api/v1/search?{asked}&limit=50"));
        let page = world.page(&format!("/search?{query}"));
        let rows = page.within(page.id("results"), |element| {
            element.name == "a"
                && element.get("href").is_some_and(|href| href.starts_with("/domain/"))
        });
        let found: Vec<String> = rows
            .iter()
            .filter_map(|link| link.get("href")?.strip_prefix("/domain/"))
            .map(str::to_owned)
            .collect();
        assert_eq!(found, api_names(&answer, "results", "domain"), "{query}");
    }
    let first = world.page("/search?q=s");
    let next = rel(&first, "next").expect("there are more than fifty");
    assert_eq!(next, "/search?q=s&offset=50");
    assert_eq!(rel(&world.page(&next), "prev").as_deref(), Some("/search?q=s"));
    assert!(world.page("/search").maybe_id("q").is_some());
    let response = world.client().get("/search?q=a%00");
    assert_eq!(response.status, 400);
    assert!(Page::read(response.text()).maybe_id("q-error").is_some());
}

#[test]
fn suggestions_link_to_names_and_to_all_results() {
    let world = World::new();
    let options = |query: &str| {
        let target = format!("/search?{query}");
        let page = world.page_as(&target, &[("X-Fragment", "options")]);
        let options = page.all(|element| element.get("role") == Some("option"));
        let shown = |option: &&Element| {
            (option.get("data-href").expect("leads somewhere").to_owned(), squeezed(&option.text))
        };
        options.iter().map(shown).collect::<Vec<_>>()
    };
    let solar = options("q=solar");
    assert_eq!(solar.len(), 9);
    assert!(solar[..8].iter().all(|(path, _)| path.starts_with("/domain/solar")), "{solar:?}");
    assert_eq!(solar[8].0, "/search?q=solar");
    assert_eq!(
        options("q=never-seen.com"),
        [("/domain/never-seen.com".to_owned(), "Score never-seen.com".to_owned())]
    );
    assert_eq!(options("q=zzzz")[0].1, "No names found");
    assert!(options("q=").is_empty());
}

#[test]
fn a_dossier_shows_score_lifecycle_and_earlier_drops() {
    let world = World::new();
    let page = world.page("/domain/oldharbor.com");
    let dossier = world.api("/api/v1/domain/oldharbor.com");
    let drop = &dossier["latestDrop"];
    assert_eq!(page.all(|element| element.name == "h1").len(), 1);
    let main = squeezed(&page.id("main").text);
    assert!(main.contains(drop["explanation"].as_str().expect("a sentence")), "{main}");
    assert_eq!(page.all(|element| element.has_class("score"))[0].text, drop["dqs"].to_string());
    let points = drop["signals"]["points"].as_object().expect("parts");
    let rows = page.all(|element| element.name == "tr" && element.text.starts_with("Sum"));
    let sum: i64 = points.values().filter_map(Value::as_i64).sum();
    assert!(rows[0].text.contains(&sum.to_string()), "{}", rows[0].text);
    let days: Vec<_> = page
        .all(|element| element.name == "time")
        .into_iter()
        .filter_map(|time| time.get("datetime"))
        .collect();
    for day in ["2026-11-17", "2026-12-17", "2026-12-22", "2026-12-27", "2019-03-01"] {
        assert!(days.contains(&day), "{day} in {days:?}");
    }
    assert!(main.contains("renewed or registered again"), "{main}");
    let others = page.all(|element| element.has_class("siblings"))[0];
    for name in ["oldharbor.net", "oldharbor.de"] {
        assert!(others.text.contains(name), "{}", others.text);
    }
    assert!(!others.text.contains("oldharbor.com"));
    let timeline = squeezed(&page.all(|element| element.has_class("timeline"))[0].text);
    assert_eq!(
        timeline,
        "Redemption, 30 days Pending delete, 5 days Just dropped, 5 days Released, 2 days Today"
    );
}

#[test]
fn a_released_name_is_registered_and_not_ordered() {
    let world = World::new();
    for (name, word) in [("oldharbor.com", "Backorder"), ("oldharbor.de", "Register at")] {
        let page = world.page(&format!("/domain/{name}"));
        let main = page.all(|it| it.name == "a" && it.has_class("main"));
        assert_eq!(main.len(), 1, "{name}");
        assert!(main[0].text.starts_with(word), "{name}: {}", main[0].text);
    }
}

#[test]
fn all_spellings_of_a_name_lead_to_one_page() {
    let world = World::new();
    for spelling in ["m%C3%BCller.de", "M%C3%9CLLER.DE", "xn--mller-kva.de."] {
        let response = world.client().get(&format!("/domain/{spelling}"));
        assert_eq!(response.status, 308, "{spelling}");
        assert_eq!(response.header("location"), Some("/domain/xn--mller-kva.de"));
    }
    for bad in ["com", "a..b", "www.example.com", "%ff"] {
        let response = world.client().get(&format!("/domain/{bad}"));
        assert_eq!(response.status, 400, "{bad}");
        assert!(response.text().contains("<h1>"), "{bad}");
    }
}

#[test]
fn an_unseen_name_shows_its_score() {
    let world = World::new();
    let response = world.client().get("/domain/goldenhorse.com");
    assert_eq!(response.status, 404);
    let page = Page::read(response.text());
    let body = json!({ "domains": ["goldenhorse.com"] });
    let answer =
        world.server.client_with(&world.key).send("POST", "/api/v1/appraise", &body).json();
    let appraised = &answer["appraisals"][0];
    assert_eq!(
        page.all(|element| element.has_class("score"))[0].text,
        appraised["dqs"].to_string()
    );
    let text = squeezed(&page.id("main").text);
    assert!(text.contains(appraised["explanation"].as_str().expect("a sentence")), "{text}");
    assert!(text.contains("This name isn't in our data yet."), "{text}");
    assert!(page.maybe_id("votes").is_none(), "no votes for a name that is not in the data");
    assert_eq!(page.links("Watch"), ["/login?next=%2Fdomain%2Fgoldenhorse.com"]);
}

#[test]
fn members_can_vote_and_see_whether_they_watch_a_name() {
    let world = World::new();
    let response = world.post("/domain/oldharbor.com/vote", "vote=up", None);
    assert_eq!((response.status, response.header("location")), (303, Some("/login")));
    let cookie = world.log_in();
    let vote = |vote: &str| {
        world.post("/domain/oldharbor.com/vote", &format!("vote={vote}"), Some(&cookie))
    };
    let response = vote("up");
    assert_eq!(response.header("location"), Some("/domain/oldharbor.com?notice=voted"));
    let page = world.page_as("/domain/oldharbor.com?notice=voted", &[("Cookie", &cookie)]);
    assert!(page.id("main").text.contains("Your vote was saved."));
    let pressed = page.all(|element| element.get("aria-pressed") == Some("true"));
    assert_eq!((pressed.len(), pressed[0].get("value")), (1, Some("none")));
    assert_eq!(
        world.api("/api/v1/domain/oldharbor.com")["feedback"],
        json!({ "up": 1, "down": 0 })
    );
    vote("none");
    assert_eq!(
        world.api("/api/v1/domain/oldharbor.com")["feedback"],
        json!({ "up": 0, "down": 0 })
    );
    assert_eq!(vote("maybe").status, 400);
    assert_eq!(world.post("/domain/unseen.com/vote", "vote=up", Some(&cookie)).status, 404);

    let watch = json!({ "domainName": "oldharbor.com" });
    world.server.client_with(&world.key).send("POST", "/api/v1/watchlist", &watch);
    for target in ["/?q=oldharbor.com&view=all", "/search?q=oldharbor.com", "/domain/oldharbor.com"]
    {
        let page = world.page_as(target, &[("Cookie", &cookie)]);
        let button = page.all(|element| {
            element.name == "button" && element.get("value") == Some("oldharbor.com")
        });
        assert_eq!(button.len(), 1, "{target}");
        assert_eq!(button[0].get("formaction"), Some("/unwatch"), "{target}");
        let shown = if target.starts_with("/domain/") { "Watching" } else { "★" };
        assert_eq!(button[0].text, shown, "{target}");
    }
}

#[test]
fn the_overview_counts_match_the_api() {
    let world = World::new();
    let page = world.page("/overview");
    for (path, query, word) in [
        ("/?view=today", "view=today", "left the zone today"),
        ("/?stage=redemption", "stage=redemption", "in redemption"),
        ("/?stage=pending-delete", "stage=pending-delete", "pending delete"),
        ("/?stage=catchable", "stage=catchable", "just dropped"),
    ] {
        let count = world.api(&format!("/api/v1/drops?{query}&limit=1000"))["count"].to_string();
        let tile = page.all(|element| element.name == "a" && element.get("href") == Some(path));
        let told = squeezed(&tile[0].text);
        assert!(told.starts_with(&format!("{count} {word}")), "{told}");
    }
    let pictures = page.all(|element| element.has_class("chart"));
    assert_eq!(pictures.len(), 3);
    for picture in pictures {
        assert_eq!(picture.get("role"), Some("img"));
        assert!(picture.get("aria-label").is_some_and(|told| told.len() > 20));
    }
    let tomorrow = "/api/v1/drops?release_from=tomorrow&release_to=tomorrow&limit=1";
    let best = world.api(tomorrow)["drops"][0]["name"].clone();
    let best = best.as_str().unwrap_or("No known name drops tomorrow");
    let list = page.all(|element| element.has_class("best"))[0];
    assert!(list.text.contains(best), "{best} in {}", list.text);
    // The second request is served from the cache.
    assert_eq!(page.id("main").text, world.page("/overview").id("main").text);
}

#[test]
fn the_first_page_is_small() {
    let world = World::new();
    let mut client = world.client();
    let mut transferred = 0;
    let gzip = [("Accept-Encoding", "gzip")];
    let page = client.request("GET", "/?view=all", &gzip);
    assert_eq!(page.header("content-encoding"), Some("gzip"));
    transferred += page.body.len();
    assert_parts_agree(&world, "/?view=all", 25);
    let whole = client.get("/?view=all").text().len();
    assert!(whole < 30_000, "{whole} bytes of HTML");
    let read = world.page("/?view=all");
    let files = read.all(|element| matches!(element.name.as_str(), "link" | "script"));
    for path in files.iter().filter_map(|file| file.get("href").or(file.get("src"))) {
        let file = client.request("GET", path, &gzip);
        assert_eq!(file.status, 200, "{path}");
        transferred += file.body.len();
    }
    let first = files[0].get("href").or(files[0].get("src")).expect("a file");
    let folder = first.rsplit_once('/').map_or("", |(folder, _)| folder);
    // Modules import this one.
    transferred += client.request("GET", &format!("{folder}/names.js"), &gzip).body.len();
    assert!(transferred < 60_000, "{transferred} bytes");
}

#[test]
fn lists_end_after_a_thousand_names_without_an_account() {
    let site = Site::new();
    let names = (0..1_200).map(|at| format!("solar{at:04}.com,{TODAY},,"));
    let list =
        site.write("list.csv", names.fold(HEADER.to_owned(), |text, row| text + &row + "\n"));
    site.ingest(&list, "2026-11-20T06:00:00Z");
    add_account(&site);
    let key = site.new_key(EMAIL);
    let settings = site.settings("[web]\nplain_http = true\n");
    let server = site.serve_with(&["--config", &settings, "--today", TODAY]);
    let world = World { _site: site, server, key };
    let cookie = world.log_in();
    let lists = [("/?view=active&q=solar", "list", 100), ("/search?q=solar", "results", 50)];
    for (list, id, rows) in lists {
        let (start, all) = (1_000 - rows, rows + 1);
        let last = world.page(&format!("{list}&offset={start}&rows=all"));
        assert_eq!(last.all(|element| element.name == "tr").len(), all, "{list}: rows and a head");
        assert_eq!(rel(&last, "next"), None, "{list}");
        let log_in = last.links("Log in to see more");
        let here =
            list.replace('/', "%2F").replace('?', "%3F").replace('=', "%3D").replace('&', "%26");
        assert_eq!(log_in, [format!("/login?next={here}%26offset%3D{start}")], "{list}");
        let beyond = world.page(&format!("{list}&offset=1000"));
        assert!(beyond.id(id).text.contains("Without an account"), "{list}");
        assert!(beyond.all(|element| element.name == "tr").is_empty(), "{list}");
        // A logged-in user sees all of them.
        let cookie = [("Cookie", cookie.as_str())];
        let last = world.page_as(&format!("{list}&offset={start}&rows=all"), &cookie);
        assert_eq!(rel(&last, "next"), Some(format!("{list}&offset=1000")));
        let beyond = world.page_as(&format!("{list}&offset=1000&rows=all"), &cookie);
        assert_eq!(beyond.all(|element| element.name == "tr").len(), all, "{list}");
    }
}

/// Whether `Vary` names a request header.
fn varies(response: &Response, name: &str) -> bool {
    let values = response.headers.iter().filter(|(header, _)| header == "vary");
    values.into_iter().flat_map(|(_, value)| value.split(", ")).any(|value| value == name)
}

/// Public pages and pages of an account.
const PAGES: [&str; 32] = [
    "/",
    "/search",
    "/search?q=harbor",
    "/domain/oldharbor.com",
    "/domain/never-seen-by-anybody.com",
    "/overview",
    "/outcomes",
    "/login",
    "/signup",
    "/forgot",
    "/status",
    "/docs",
    "/docs/reference/watchlist",
    "/docs/reference/schemas",
    "/docs/api",
    "/docs/configuration",
    "/docs/metrics",
    "/docs/architecture",
    "/nowhere",
    "/watchlist",
    "/alerts",
    "/alerts/new",
    "/portfolio",
    "/portfolio/new",
    "/portfolio/currency",
    "/portfolio/import",
    "/account",
    "/account/plan",
    "/account/security",
    "/account/facts",
    "/account/notifications",
    "/account/data",
];

#[test]
fn every_page_has_a_description_headings_in_order_and_valid_labels() {
    let world = World::new();
    let cookie = world.log_in();
    let mut descriptions = HashMap::new();
    for path in PAGES {
        let is_public = matches!(path, "/login" | "/signup" | "/forgot");
        let mut headers = vec![("Accept", "text/html")];
        headers.extend((!is_public).then_some(("Cookie", cookie.as_str())));
        let response = world.client().request("GET", path, &headers);
        let page = Page::read(response.text());
        let about = page.all(|it| it.name == "meta" && it.get("name") == Some("description"));
        let about = about.first().and_then(|it| it.get("content")).unwrap_or_default().to_owned();
        assert!((20..=260).contains(&about.len()), "{path}: {about}");
        if let Some(other) = descriptions.insert(about, path.split('?').next().unwrap_or(path)) {
            assert_eq!(path.split('?').next(), Some(other), "two pages share a description");
        }
        let headings = page.all(|it| matches!(it.name.as_str(), "h1" | "h2" | "h3" | "h4" | "h5"));
        let levels: Vec<_> = headings.iter().map(|it| it.name.as_bytes()[1] - b'0').collect();
        assert_eq!(levels.iter().filter(|level| **level == 1).count(), 1, "{path}: {levels:?}");
        assert_eq!(levels[0], 1, "{path}: {levels:?}");
        assert!(levels.is_sorted_by(|above, below| *below <= above + 1), "{path}: {levels:?}");
        // These elements have no role, and an ARIA label has no effect without a role.
        let is_generic = |name: &str| matches!(name, "pre" | "div" | "span" | "p" | "code");
        let unnamed = page.all(|it| {
            is_generic(&it.name) && it.get("role").is_none() && it.get("aria-label").is_some()
        });
        assert!(unnamed.is_empty(), "{path}: {unnamed:?}");
        let with_id = page.all(|it| it.get("id").is_some());
        let ids: HashSet<_> = with_id.iter().filter_map(|it| it.get("id")).collect();
        assert_eq!(ids.len(), with_id.len(), "{path}: an id is used twice");
        assert!(varies(&response, "cookie"), "{path}");
        // An error is a page or JSON.
        assert_eq!(varies(&response, "accept"), response.status >= 400, "{path}");
    }
    let json = world.client().request("GET", "/nowhere", &[("Accept", "application/json")]);
    assert!(json.json()["error"].is_string() && varies(&json, "accept"));
    for method in ["PUT", "DELETE", "TRACE"] {
        assert_eq!(world.client().request(method, "/", &[]).status, 405, "{method}");
    }
}

#[test]
fn columns_are_chosen_in_the_browser() {
    let world = World::new();
    let heads = |cookie: &str| {
        let page = world.page_as("/?view=all", &[("Cookie", cookie)]);
        let heads = page.all(|it| it.name == "th" && it.get("scope") == Some("col"));
        heads.iter().map(|it| squeezed(&it.text)).collect::<Vec<_>>()
    };
    assert_eq!(heads("")[1..], ["Name", "Score", "Why", "Length", "Drops", "Registry"]);
    let form = "next=%2F%3Fview%3Dall&column=kind&column=days&column=nonsense";
    let headers =
        [("Sec-Fetch-Site", "same-origin"), ("Content-Type", "application/x-www-form-urlencoded")];
    let chosen = world.client().send_with("POST", "/columns", &headers, form.as_bytes());
    assert_eq!((chosen.status, chosen.header("location")), (303, Some("/?view=all")));
    let cookie = chosen.header("set-cookie").expect("a cookie");
    let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
    assert_eq!(heads(&cookie)[1..], ["Name", "Score", "Kind", "Days to drop"]);
    let reset = format!("{form}&reset=yes");
    let reset = world.client().send_with("POST", "/columns", &headers, reset.as_bytes());
    assert!(reset.header("set-cookie").is_some_and(|it| it.contains("Max-Age=0")));
}
