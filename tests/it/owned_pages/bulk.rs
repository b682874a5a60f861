//! Bulk actions of forms, on the selected names of the list and on all names of a search.

use serde_json::json;

use super::World;
use super::person::{Page, Person, between, visible};

/// Adds a list of names that drop tomorrow; shorter ones score better.
fn add_names(world: &World, count: usize) {
    let rows: String = (0..count).map(|at| format!("bulk{at:04}.com,2026-02-14\n")).collect();
    let list = world.site.write("bulk.csv", format!("domain,drop_date\n{rows}"));
    world.site.ingest(&list, &format!("{}T01:00:00Z", super::TODAY));
}

/// Waits until the server has the names of [`add_names`], and returns the page's text about all names.
fn all_of(person: &mut Person, search: &str) -> String {
    let wait = std::time::Duration::from_millis(50);
    for _ in 0..600 {
        let page = person.get(&format!("/?{search}"));
        if let Some((_, rest)) = page.text.split_once("data-total=\"") {
            return rest.split('<').next().unwrap_or_default().to_owned();
        }
        std::thread::sleep(wait);
    }
    panic!("the names do not arrive");
}

const SEARCH: &str = "starts=bulk&view=all";

#[test]
fn all_names_of_a_search_are_watched_tagged_hidden_and_downloaded() {
    let world = World::new();
    add_names(&world, 150);
    let mut ann = world.person("ann@example.com", "api");
    assert!(all_of(&mut ann, SEARCH).starts_with("150\">All 150"));
    // The page lists 100 of the names, and the selection on the page does not limit the search.
    let page = ann.get(&format!("/?{SEARCH}&rows=all"));
    assert_eq!(page.text.matches("aria-label=\"Select bulk").count(), 100);
    let hidden = [("domain", "bulk0003.com"), ("search", SEARCH), ("next", "/?starts=bulk")];
    ann.post("/hide", &hidden).assert_goes_to("/?starts=bulk&done=hidden&names=1");
    ann.get("/?starts=bulk&done=hidden&names=1").assert_says(200, "1 name is hidden now.");

    let all = [
        ("all", "yes"),
        ("search", SEARCH),
        ("domain", "bulk0001.com"),
        ("tags", "flip"),
        ("bid", "$120"),
        ("next", "/"),
    ];
    ann.post("/watch", &all).assert_goes_to("/?done=watched&names=149");
    ann.get("/?done=watched&names=149").assert_says(200, "149 names are on your watchlist now.");
    let mut api = world.server.client_with(&world.site.new_key("ann@example.com"));
    let listed = api.get("/api/v1/watchlist?tag=flip&bid=some&limit=1000").json();
    assert_eq!(listed["total"], json!(149));
    let names = listed["watchlist"].as_array().expect("a list");
    assert!(
        names
            .iter()
            .all(|row| row["domain"] != "bulk0003.com" && row["maxBidUsd"].as_f64() == Some(120.0))
    );

    // The file has the rows and the order of the export.
    let first = |text: &str| {
        let all = text.lines().map(|line| line.split(',').next().unwrap_or_default().to_owned());
        all.collect::<Vec<_>>()
    };
    let export = first(api.get(&format!("/api/export/drops?{SEARCH}")).text());
    let file = ann.post("/selected.csv", &all);
    assert_eq!(file.header("content-type"), Some("text/csv; charset=utf-8"));
    let mut without_hidden = export.clone();
    without_hidden.retain(|name| name != "bulk0003.com");
    assert_eq!(first(&file.text), without_hidden);
    // Hidden names are part of a list that shows them.
    let file = ann.post("/selected.csv", &[&all[..], &[("hidden", "show")]].concat());
    assert_eq!(first(&file.text), export);
    let names = ann.post("/selected.txt", &all);
    assert_eq!(names.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(names.text.lines().count(), 149);

    // Without `all`, the file has the selected names in the order of the form. A name that never
    // dropped has no row.
    let some = [
        ("domain", "bulk0009.com"),
        ("domain", "solar.com"),
        ("domain", "unseen.com"),
        ("search", SEARCH),
    ];
    let file = ann.post("/selected.csv", &some).text;
    let first: Vec<_> = file.lines().map(|line| line.split(',').next().unwrap_or("")).collect();
    assert_eq!(first, ["domain", "bulk0009.com", "solar.com"]);
    assert_eq!(ann.post("/selected.txt", &some).text, "bulk0009.com\nsolar.com\nunseen.com\n");
    let bids = ann.post("/selected.txt?with=bid", &some).text;
    assert_eq!(bids, "bulk0009.com,120\nsolar.com\nunseen.com\n");

    ann.post("/hide", &all).assert_goes_to("/?done=hidden&names=149");
    ann.get(&format!("/?{SEARCH}")).assert_says(200, "100 hidden on this page.");
    let shown = [("all", "yes"), ("search", SEARCH), ("hidden", "show"), ("next", "/")];
    ann.post("/unhide", &shown).assert_goes_to("/?done=shown&names=150");
    ann.get(&format!("/?{SEARCH}")).assert_lacks("hidden on this page");
}

#[test]
fn an_error_for_too_many_names_says_what_to_do() {
    let world = World::new();
    add_names(&world, 1_001);
    let mut ann = world.person("ann@example.com", "core");
    let says = all_of(&mut ann, SEARCH);
    assert!(says.starts_with("1001\" disabled"), "{says}");
    let page = ann.get(&format!("/?{SEARCH}"));
    page.assert_says(200, "All 1,001 : at most 1,000 at once, narrow the filters or export");
    let all = [("all", "yes"), ("search", SEARCH), ("next", "/"), ("mark", "spam")];
    for form in ["/watch", "/hide", "/mark", "/selected.csv", "/selected.txt"] {
        ann.post(form, &all).assert_says(
            400,
            "the search finds 1,001 names, and at most 1,000 are changed at once; narrow the filters, \
             or export up to 10,000 as CSV.",
        );
    }
    assert!(ann.get("/watchlist").chosen_by().is_empty());
    // A thousand names are accepted.
    let fewer = [("all", "yes"), ("search", "starts=bulk&ends=0,1,2&view=all"), ("next", "/")];
    ann.post("/watch", &fewer).assert_goes_to("/?done=watched&names=301");
    // Errors of a search are shown.
    let wrong = [("all", "yes"), ("search", "min_dqs=101"), ("next", "/")];
    ann.post("/watch", &wrong).assert_says(400, "in_dqs: must be");
}

/// Returns the texts of the cells of each row of the list, without those of the box and the facts.
fn screen(page: &Page) -> Vec<Vec<String>> {
    let rows = page.text.split("<tr>").filter(|row| row.contains("name=\"domain\" value=\""));
    let cells = |row: &str| {
        let name = between(row, "name=\"domain\" value=\"", "\"").to_owned();
        let row = row.split("</tr>").next().unwrap_or_default();
        let texts = row.split("<td").skip(2).map(|cell| visible(&format!("<td{cell}")));
        let mut texts: Vec<_> = texts.map(|text| text.trim().replace('–', "")).collect();
        texts.insert(0, name);
        texts
    };
    rows.map(cells).collect()
}

#[test]
fn the_file_equals_the_screen() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "api");
    let noted = [
        ("domain", "xn--mnchen-3ya.de"),
        ("tags", "flip, keep"),
        ("bid", "12.5"),
        ("venue", "DropCatch"),
        ("note", "=1+1, \"quoted\""),
        ("next", "/"),
    ];
    ann.post("/watchlist/entry", &noted).assert_goes_to("/");
    let search = "view=all&sort=name&columns=length.tlds.words.language.kind.drops.days";
    let shown = screen(&ann.get(&format!("/?{search}&rows=all")));
    assert_eq!(shown.len(), 7, "{shown:?}");
    let file = ann.post("/selected.csv?bom=true", &[("all", "yes"), ("search", search)]);
    let text = file.text.strip_prefix('\u{feff}').expect("a byte order mark");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header: Vec<_> = reader.headers().expect("a header").iter().map(str::to_owned).collect();
    let expected = "domain,unicode,dqs,length,otherTlds,words,language,kind,dropCount,daysToRelease,\
                    dropDate,releaseDate,stage,tags,max_bid_usd,venue,note";
    assert_eq!(header.join(","), expected);
    let rows: Vec<_> = reader.records().map(|row| row.expect("a row")).collect();
    for (on_screen, row) in shown.iter().zip(&rows) {
        let cells: Vec<_> = row.iter().collect();
        let in_file = [&cells[..1], &cells[2..10]].concat();
        // The screen has the rarity beside the score.
        let mut shown = on_screen[..9].to_vec();
        shown[1] = shown[1].split(' ').next().unwrap_or_default().to_owned();
        assert_eq!(shown, in_file, "{row:?}");
    }
    let row = rows.iter().find(|row| &row[0] == "xn--mnchen-3ya.de").expect("the name");
    assert_eq!(
        (&row[1], &row[10], &row[13], &row[14]),
        ("münchen.de", "2026-03-15", "flip, keep", "12.5")
    );
    assert_eq!((&row[15], &row[16]), ("DropCatch", "'=1+1, \"quoted\""));
    // The list of all results has the same columns, without notes.
    let page = ann.get(&format!("/?{search}"));
    let link = between(&page.text, "/api/export/drops?", "\"").replace("&amp;", "&");
    let mut api = world.server.client_with(&world.site.new_key("ann@example.com"));
    let all = api.get(&format!("/api/export/drops?{link}"));
    let first = all.text().lines().next().unwrap_or_default();
    assert_eq!(
        first,
        expected.replace("domain,", "name,").replace(",tags,max_bid_usd,venue,note", "")
    );
}

#[test]
fn files_of_selected_names_need_a_plan_with_exports_and_count() {
    let world = World::with("[plans.core]\nexports_per_day = 1\n");
    let some = [("domain", "solar.com"), ("search", "")];
    let mut free = world.person("free@example.com", "free");
    free.get("/").assert_lacks("/selected.csv");
    free.post("/selected.csv", &some).assert_says(403, "plan");
    assert_eq!(free.post("/selected.txt", &some).text, "solar.com\n");
    let mut core = world.person("core@example.com", "core");
    assert!(core.get("/").text.contains("formaction=\"/selected.csv\""));
    let file = core.post("/selected.csv", &some);
    let header = "domain,unicode,dqs,explanation,length,releaseDate,stage,dropDate,\
                  tags,max_bid_usd,venue,note\r\nsolar.com,solar.com,";
    assert!(file.text.starts_with(header), "{}", file.text);
    assert_eq!(core.post("/selected.csv", &some).status, 429);
}

#[test]
fn an_account_keeps_its_columns() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "free");
    let heads = |page: &str| {
        let has = |word: &str| page.contains(&format!("scope=\"col\">{word}</th>"));
        (has("Language"), has("Why"))
    };
    assert_eq!(heads(&ann.get("/?view=all").text), (false, true));
    let chosen =
        [("column", "language"), ("column", "state"), ("column", "none"), ("next", "/?q=a")];
    let page = ann.post("/columns", &chosen);
    page.assert_goes_to("/?q=a");
    // The cookie is replaced; otherwise this browser's earlier columns would return with the
    // defaults.
    assert!(page.header("set-cookie").is_some_and(|set| set.contains("Max-Age=0")), "{page:?}");
    assert_eq!(heads(&ann.get("/?view=all").text), (true, false));
    // The choice also applies in another browser, and after a restart from the journal or from a
    // snapshot.
    let World { site, server } = world;
    site.ask_for_snapshot().expect("a snapshot");
    server.kill();
    let server = site.serve_with(&["--config", &site.settings(""), "--today", super::TODAY]);
    let mut ann = Person::logged_in(&server, "ann@example.com");
    assert_eq!(heads(&ann.get("/?view=all").text), (true, false));
    ann.post("/columns", &[("reset", "yes"), ("column", "language"), ("next", "/")]);
    assert_eq!(heads(&ann.get("/?view=all").text), (false, true));

    // Without an account, the browser keeps the choice.
    let mut nobody = Person::nobody(&server);
    let page = nobody.post("/columns", &chosen);
    let cookie = page.header("set-cookie").expect("a cookie");
    assert!(
        cookie.starts_with("columns=language.state; ") && !cookie.contains("Max-Age=0"),
        "{cookie}"
    );
}
