//! The page of facts: files sent by a form, descriptions of unknown files, and removal.

use std::time::Duration;

use super::person::{Page, Person, between};
use super::{HTML, World};
use crate::common::wait;

const MAJESTIC: &str = "\
Item,TrustFlow,CitationFlow,Title,RootDomainIPAddress,LastCrawlDate
solar.com,24,31,x,192.0.2.1,03/04/2026
fresh.com,many,9,x,192.0.2.2,05/04/2026
missing.com,99,99,x,192.0.2.3,06/04/2026
blog.solar.com,1,1,PRIVATE,192.0.2.4,07/04/2026
";

#[test]
fn a_file_is_added_with_a_report_and_removed() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "core");
    ann.get("/account/facts").assert_says(200, "You have not added a file yet");
    let page = ann.upload("/account/facts", &[], MAJESTIC);
    for words in [
        "Rows 4",
        "Usable rows 3",
        "Refused rows 1",
        "2 of 3 rows are about names in the data",
        "Ignored columns: Title",
        "hold personal data or secrets: RootDomainIPAddress",
        "LastCrawlDate",
        "3 TrustFlow",
        "did you mean solar.com?",
    ] {
        page.assert_says(200, words);
    }
    page.assert_lacks("PRIVATE");
    let dated = ann.upload("/account/facts", &[("date_order", "dmy")], MAJESTIC);
    dated.assert_says(200, "majestic.crawled");
    dated.assert_lacks("Columns that were not read");
    let page = ann.get("/account/facts");
    page.assert_says(200, "3 of 100,000 rows are in use");
    page.assert_says(200, "4 rows: 3 new or replaced, 1 refused");
    ann.get("/domain/solar.com").assert_says(200, "24 of 100");

    let mut bob = world.person("bob@example.com", "core");
    bob.get("/account/facts").assert_lacks("majestic.tf");
    bob.post("/account/facts/remove", &[("source", "majestic")])
        .assert_goes_to("/account/facts?notice=gone");
    ann.post("/account/facts/remove", &[("source", "majestic")])
        .assert_goes_to("/account/facts?notice=removed");
    ann.get("/account/facts").assert_lacks("majestic.tf");
}

#[test]
fn refused_files_and_choices_are_explained_beside_their_field() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "core");
    let page = ann.upload("/account/facts", &[("currency", "gold")], MAJESTIC);
    page.assert_says(400, "code of a currency in use");
    assert!(page.error_of("currency").is_some());
    let page = ann.upload("/account/facts", &[], "no table");
    page.assert_says(400, "None of the first rows is a header");
    assert!(page.error_of("file").is_some());
    assert_eq!(ann.post("/account/facts", &[("file", MAJESTIC)]).status, 400);
    ann.get("/account/facts").assert_says(200, "You have not added a file yet");
}

#[test]
fn columns_of_an_unknown_file_are_described_without_its_cells() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "core");
    let file = format!("Domain,Visits {HTML},Buyer\nsolar.com,7,CELL\n").replace('"', "'");
    let page = ann.upload("/account/facts", &[], &file);
    page.assert_says(200, "Describe the columns");
    page.assert_lacks("CELL");
    page.assert_lacks("<img");
    let print = between(&page.text, "name=\"fingerprint\" value=\"", "\"").to_owned();
    let form = |second: &'static str| {
        [
            ("fingerprint", print.as_str()),
            ("header", "Domain"),
            ("column", "domain"),
            ("header", "Visits"),
            ("column", second),
            ("header", "Buyer"),
            ("column", ""),
        ]
    };
    let again = ann.post("/account/facts/mapping", &form("visits"));
    again.assert_says(400, "Visits");
    assert!(again.text.contains("value=\"visits\""), "{}", again.text);
    ann.post("/account/facts/mapping", &form("acme.visits:int"))
        .assert_goes_to("/account/facts?notice=mapped");
    let page = ann.upload("/account/facts", &[], &file);
    page.assert_says(200, "acme.visits");
    page.assert_says(200, "Usable rows 1");
    let mut bad = form("acme.visits:int");
    bad[0].1 = "nothing";
    assert_eq!(ann.post("/account/facts/mapping", &bad).status, 404);
}

/// Returns the target of the link with these words.
#[track_caller]
fn link(page: &Page, words: &str) -> String {
    let end = format!(">{words}");
    let before = page.text.split_once(&end).unwrap_or_else(|| panic!("no link {words}")).0;
    let target = before.rsplit_once("href=\"").expect("a link").1;
    target.split('"').next().expect("a target").replace("&amp;", "&")
}

/// Adds a file of facts to a server, and waits until it has a fact of it.
fn add_to_server(world: &World, file: &str, fact: &str) {
    let path = world.site.write("server.csv", file);
    world.site.ok(&["facts", "add", path.to_str().expect("UTF-8")]);
    let mut nobody = Person::nobody(&world.server);
    let shown = format!("value=\"{fact}\"");
    wait::until(Duration::from_secs(20), fact, || nobody.get("/").text.contains(&shown));
}

#[test]
fn a_link_shows_a_set_of_columns() {
    let world = World::new();
    let mut nobody = Person::nobody(&world.server);
    let acme = "domain,acme.note,acme.paid:money:USD\nsolar.com,bought twice,12.50\n";
    add_to_server(&world, acme, "acme.note");
    let mut ann = world.person("ann@example.com", "core");
    let all = ann.get("/?view=all&sort=name");
    all.assert_lacks(">Links<");
    assert_eq!(
        link(&all, "Markets"),
        "/?view=all&sort=name&facts=acme.paid&columns=due",
        "amounts are about markets"
    );
    ann.upload("/account/facts", &[("date_order", "dmy")], MAJESTIC);

    let all = ann.get("/?view=all&sort=name&tld=com&offset=1");
    let links = ann.get(&link(&all, "Links"));
    for words in ["majestic.tf", "majestic.cf", "24 of 100", "majestic.crawled", "Majestic"] {
        links.assert_says(200, words);
    }
    links.assert_lacks(">acme.\u{200b}paid</a>");
    links.assert_lacks("<th class=\"length\"");
    assert_eq!(link(&links, "Mine"), link(&all, "Links"), "only the tool's facts are Ann's own");
    assert_eq!(link(&links, "Letters</a>"), "/?view=all&tld=com&sort=name&offset=1");
    let letters = ann.get(&link(&links, "Letters</a>")).text;
    assert!(
        letters.contains("<th class=\"length\"") && !letters.contains(">majestic.\u{200b}tf</a>")
    );
    // The address alone has the columns of a set, and a choice of others changes it.
    let next = link(&links, "Mine");
    let chosen = [("next", next.as_str()), ("column", "length"), ("fact", "majestic.tf")];
    let place = "/?view=all&tld=com&sort=name&offset=1";
    ann.post("/columns", &chosen)
        .assert_goes_to(&format!("{place}&facts=majestic.tf&columns=length"));
    assert!(ann.get(place).text.contains("<th class=\"why\""), "the own choice is as it was");
    ann.post("/columns", &[&chosen[..], &[("reset", "yes")]].concat()).assert_goes_to(place);

    let page = nobody.get("/");
    page.assert_lacks(">Links<");
    page.assert_lacks(">Mine<");
    page.assert_lacks("Add facts");
    assert_eq!(link(&page, "Markets"), "/?facts=acme.paid&columns=due");
}

#[test]
fn auctions_are_a_tab_once_markets_are_known() {
    let world = World::new();
    let mut nobody = Person::nobody(&world.server);
    nobody.get("/").assert_lacks("Auctions");
    let rows =
        "solar.com,godaddy,62,2026-03-20\nteapots.net,sedo,5,2026-03-14\nfresh.com,,9,2026-03-15\n";
    let head = "domain,market.name:enum,market.price:money:USD,market.ends:date";
    add_to_server(&world, &format!("{head}\n{rows}"), "market.ends");

    let first = nobody.get("/?tld=com");
    first.assert_says(200, "Auctions 2");
    let tab = link(&first, "Auctions <span class=\"count\"");
    let auctions = nobody.get(&tab);
    assert_eq!(auctions.chosen_by(), ["fresh.com", "solar.com"], "the first to end comes first");
    for words in ["market.price", "62.00 USD", "godaddy"] {
        auctions.assert_says(200, words);
    }
    assert!(auctions.text.contains("aria-sort=\"ascending\""), "{}", auctions.visible());
    // Other tabs have the columns of the viewer again.
    assert_eq!(link(&auctions, "All stages <span class=\"count\""), "/?view=all&tld=com");
    let rule = between(&auctions.text, "href=\"/alerts/new?", "\"");
    assert_eq!(rule, "tld=com&amp;fact=market.ends%3Atoday..");
}

#[test]
fn values_of_ended_offers_are_outdated() {
    let world = World::new();
    let rows = "solar.com,62,2026-03-15,2026-03-12\nteapots.net,5,2026-03-14,2026-03-12\n";
    let head = "domain,market.price:money:USD,market.ends:date,as_of";
    add_to_server(&world, &format!("{head}\n{rows}"), "market.ends");
    let mut nobody = Person::nobody(&world.server);
    let page = nobody.get("/?view=all&facts=market.price");
    for cell in [
        "<td class=\"n amount\" title=\"as of 2026-03-12\">62.00 USD</td>",
        "<td class=\"n amount old\" title=\"as of 2026-03-12, outdated\">5.00 USD</td>",
    ] {
        assert!(page.text.contains(cell), "{cell} in\n{}", page.text);
    }
    nobody.get("/domain/teapots.net").assert_says(200, "5.00 USD 12 Mar outdated");
    nobody.get("/domain/solar.com").assert_lacks("outdated");
}

#[test]
fn a_mark_precedes_lists_and_is_a_fact_of_its_account() {
    let world = World::new();
    add_to_server(
        &world,
        "domain,ut1.category:enum,as_of\nsolar.com,gambling,2026-03-12\n",
        "ut1.category",
    );
    let mut ann = world.person("ann@example.com", "core");
    let dossier = "/domain/solar.com";
    let mark = |mark: &'static str| [("domain", "solar.com"), ("next", dossier), ("mark", mark)];
    ann.get(dossier).assert_says(200, "Mark as clean Mark as spam");
    let listed = "Listed as gambling by ut1, 2026-03-12.";
    ann.get(dossier).assert_says(200, listed);
    ann.post("/mark", &mark("clean")).assert_goes_to(dossier);
    let page = ann.get(dossier);
    page.assert_says(
        200,
        "Marked by you clean 15 Mar ut1 category gambling 12 Mar overruled by your mark",
    );
    page.assert_lacks(listed);
    assert!(page.text.contains("value=\"none\" aria-pressed=\"true\">Mark as clean"));
    ann.post("/mark", &mark("spam")).assert_goes_to(dossier);
    let page = ann.get(dossier);
    page.assert_says(200, "Marked by you spam");
    page.assert_lacks("overruled");
    ann.post("/mark", &mark("good")).assert_says(400, "must be one of clean, spam, none");

    let some = [("domain", "fresh.com"), ("domain", "teapots.net"), ("search", "view=all")];
    let some = [&some[..], &[("next", "/?view=all"), ("mark", "clean")]].concat();
    ann.post("/mark", &some).assert_goes_to("/?view=all&done=marked&names=2");
    for (query, names) in [
        ("has=mine.mark", &["fresh.com", "solar.com", "teapots.net"][..]),
        ("fact=mine.mark:clean", &["fresh.com", "teapots.net"]),
    ] {
        let mut marked = ann.get(&format!("/?view=all&sort=name&{query}")).chosen_by();
        // The button to watch a name has it too.
        marked.dedup();
        assert_eq!(marked, names, "{query}");
    }

    let mut bob = world.person("bob@example.com", "core");
    bob.get(dossier).assert_lacks("Marked by you");
    assert_eq!(bob.get("/?has=mine.mark").status, 400);
    let all = [("all", "yes"), ("search", "view=all"), ("next", "/"), ("mark", "none")];
    ann.post("/mark", &all).assert_goes_to("/?done=unmarked&names=7");
    ann.get(dossier).assert_lacks("Marked by you");
    ann.get("/account/facts").assert_says(200, "You have not added a file yet");
}
