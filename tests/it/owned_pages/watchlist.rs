//! `/watchlist`, and names watched from any page.

use std::time::Duration;

use serde_json::json;

use super::person::{Person, between};
use super::{HTML, World};
use crate::common::wait::until;

#[test]
fn a_name_can_be_watched_and_removed_from_a_page() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "free");
    ann.get("/watchlist").assert_says(200, "Your watchlist is empty");
    let fields = [("domain", " SOLAR.com "), ("next", "/domain/solar.com?a=b")];
    ann.post("/watch", &fields).assert_goes_to("/domain/solar.com?a=b");
    let page = ann.get("/watchlist");
    page.assert_says(200, "solar.com");
    assert_eq!(page.chosen_by(), ["solar.com"]);
    ann.post("/unwatch", &fields).assert_goes_to("/domain/solar.com?a=b");
    assert_eq!(ann.get("/watchlist").chosen_by(), [] as [&str; 0]);
    // Repeating the request changes nothing.
    ann.post("/unwatch", &fields).assert_goes_to("/domain/solar.com?a=b");

    for next in ["//evil.example", "/\\evil.example", "https://evil.example/", ""] {
        let fields = [("domain", "solar.com"), ("next", next)];
        ann.post("/watch", &fields).assert_goes_to("/");
        ann.post("/unwatch", &fields).assert_goes_to("/");
    }
    assert_eq!(ann.post_by_script("/watch", &[("domain", "solar.com")]).status, 204);
    assert_eq!(ann.get("/watchlist").chosen_by(), ["solar.com"]);
    assert_eq!(ann.post_by_script("/unwatch", &[("domain", "solar.com")]).status, 204);
    ann.post("/watch", &[("domain", "www.solar.com")])
        .assert_says(400, "host below a registrable name");
    // The free plan allows no external names.
    ann.post("/watch", &[("domain", "unseen.com")])
        .assert_says(403, "The free plan has no watchlist names");
}

#[test]
fn a_thousand_names_can_be_pasted_at_once() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "api");
    let names: Vec<_> = (0..998).map(|at| format!("name{at}.com")).collect();
    let [lines, spaces, commas] = ["\r\n", "  ", ", "].map(|separator| separator);
    let (first, rest) = names.split_at(300);
    let (second, third) = rest.split_at(300);
    let text = [first.join(lines), second.join(spaces), third.join(commas)].join(";");
    let text = format!("{text}\n{HTML} solar.com");
    // The pasted HTML contains a space and a quote, which are separators too.
    let page = ann.post("/watchlist/add", &[("names", &text.replace(HTML, "<b>x</b>"))]);
    page.assert_says(200, "999 names added");
    page.assert_says(200, "1 name not added");
    page.assert_says(200, "The name holds `<`; letters, digits, hyphens and dots are allowed.");
    page.assert_lacks("<b>x");
    // Refused names stay in the field.
    assert_eq!(
        between(&page.text, "spellcheck=\"false\"", "</textarea>").lines().last(),
        Some("&lt;b&gt;x&lt;/b&gt;")
    );
    page.assert_says(200, "1 to 100 of 999");

    // Repeating the request changes nothing. One more name exceeds the limit of a request.
    let page = ann.post("/watchlist/add", &[("names", &names.join("\n"))]);
    page.assert_says(200, "998 names already on your watchlist");
    let many = format!("{} a.com b.com c.com", names.join(" "));
    let page = ann.post("/watchlist/add", &[("names", &many)]);
    page.assert_says(400, "You entered 1,001 names. Add at most 1,000 at a time.");
    assert!(page.text.contains("b.com c.com</textarea>"), "the field keeps the sent text");
    assert!(page.text.contains("aria-invalid=\"true\""));

    // Everything survives a restart, from the single record that was written.
    let World { site, server } = world;
    server.kill();
    let server = site.serve_with(&["--config", &site.settings(""), "--today", super::TODAY]);
    let mut ann = Person::logged_in(&server, "ann@example.com");
    ann.get("/watchlist?offset=900").assert_says(200, "901 to 999 of 999");
}

#[test]
fn names_above_the_plans_limit_are_listed() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "core");
    let names: Vec<_> = (0..12).map(|at| format!("unseen{at:02}.com")).collect();
    let text = format!("{} solar.com unseen00.com", names.join(" "));
    let page = ann.post("/watchlist/add", &[("names", &text)]);
    page.assert_says(200, "11 names added");
    page.assert_says(200, "2 names not added");
    page.assert_says(200, "The core plan allows 10 watchlist names that are not in the corpus");
    assert!(page.text.contains("\nunseen10.com\nunseen11.com</textarea>"), "{}", page.visible());
    page.assert_says(200, "10 of 10 names outside our data");
    // Nothing was added, so the form returns an error.
    let page = ann.post("/watchlist/add", &[("names", "unseen10.com")]);
    page.assert_says(400, "No names were added");
    ann.post("/watchlist/add", &[("names", " ;, ")]).assert_says(400, "Enter at least one name.");
    // Removing a name frees its quota.
    ann.post("/unwatch", &[("domain", "unseen00.com"), ("next", "/watchlist")])
        .assert_goes_to("/watchlist?notice=removed");
    ann.post("/watchlist/add", &[("names", "unseen10.com")])
        .assert_goes_to("/watchlist?notice=added");
    ann.post("/watchlist/add", &[("names", "unseen10.com")])
        .assert_goes_to("/watchlist?notice=there");
}

#[test]
fn the_page_matches_the_api_in_every_order() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "api");
    let mut api = world.server.client_with(&world.site.new_key("ann@example.com"));
    let names = "released.com catchable.com pending.com solar.com teapots.net fresh.com münchen.de unseen.com";
    ann.post("/watchlist/add", &[("names", names)]);
    for sort in ["lifecycle", "name", "dqs", "added"] {
        let body = api.get(&format!("/api/v1/watchlist?sort={sort}")).json();
        let rows = body["watchlist"].as_array().expect("rows").iter();
        let expected: Vec<_> = rows.map(|row| row["domain"].as_str().expect("a name")).collect();
        assert_eq!(ann.get(&format!("/watchlist?sort={sort}")).chosen_by(), expected, "{sort}");
    }
    let page = ann.get("/watchlist");
    page.assert_says(200, "münchen.de xn--mnchen-3ya.de");
    page.assert_says(200, "just dropped 15 Mar Expected to be available, not verified");
    // Said once, not in each row.
    page.assert_says(200, "names not checked yet at the registry");
    page.assert_says(200, "external");
    for (target, error) in [
        ("/watchlist?sort=none", "must be one of lifecycle, name, dqs, added, release, bid, venue"),
        ("/watchlist?offset=-1", "must be an integer from 0 to 10000"),
    ] {
        let (status, body) = api.get(&format!("/api/v1{target}")).answer();
        assert_eq!(status, 400);
        assert!(body["error"].as_str().is_some_and(|text| text.ends_with(error)), "{body}");
        ann.get(target).assert_says(400, error);
    }

    // Several names are removed at once, and one by its own button, which ignores the selection.
    let several = [("domain", "solar.com"), ("domain", "fresh.com"), ("next", "/watchlist")];
    ann.post("/unwatch", &several).assert_goes_to("/watchlist?notice=removed");
    let only = [("only", "unseen.com"), ("domain", "pending.com"), ("next", "/watchlist")];
    ann.post("/unwatch", &only).assert_goes_to("/watchlist?notice=removed");
    let left = ["catchable.com", "pending.com", "released.com", "teapots.net", "xn--mnchen-3ya.de"];
    assert_eq!(ann.get("/watchlist?sort=name").chosen_by(), left);
    assert_eq!(api.get("/api/v1/watchlist").json()["summary"]["total"], json!(5));
}

#[test]
fn names_of_a_day_are_in_the_order_of_hour_and_score() {
    let world = World::new();
    // Names of .nu are released at 04:00 UTC, those of .com later.
    let names = ["a-0q7xzk.com", "harbor.com", "zebra.nu", "garden.nu", "a-0q7xzk.nu"];
    let rows = names.map(|name| format!("{name},2026-01-02,2026-03-18\n")).concat();
    let list = world.site.write("day.csv", format!("domain,drop_date,release_date\n{rows}"));
    world.site.ingest(&list, "2026-03-15T02:00:00Z");
    let is_served = || world.server.client().get("/domain/harbor.com").status == 200;
    until(Duration::from_secs(30), "the list is served", is_served);
    let mut ann = world.person("ann@example.com", "api");
    ann.post("/watchlist/add", &[("names", &names.join(" "))]);
    let mut api = world.server.client_with(&world.site.new_key("ann@example.com"));
    let body = api.get("/api/v1/watchlist?sort=lifecycle").json();
    let rows = body["watchlist"].as_array().expect("rows");
    let key = |row: &serde_json::Value| {
        let [hour, score] = [&row["releaseAt"], &row["dqs"]];
        let hour = hour.as_str().unwrap_or_default().to_owned();
        (hour, std::cmp::Reverse(score.as_u64()), row["domain"].to_string())
    };
    assert!(rows.iter().map(key).is_sorted(), "{body}");
    assert!(rows.iter().all(|row| row["releaseAt"].is_string()), "{body}");
    let order = ann.get("/watchlist").chosen_by();
    assert_eq!(order[2..], ["a-0q7xzk.nu", "harbor.com", "a-0q7xzk.com"], "{order:?}");
    assert_eq!(ann.get("/watchlist?sort=release").chosen_by(), order);
}

#[test]
fn the_summary_leaves_out_zeros() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "api");
    ann.post("/watchlist/add", &[("names", "fresh.com")]);
    let page = ann.get("/watchlist");
    page.assert_lacks("0 </b>");
    for words in ["drop tomorrow", "in maximum bids", "outside our data"] {
        page.assert_lacks(words);
    }
    ann.post("/watchlist/add", &[("names", "domain,max_bid_usd\nunseen.com,12\n")]);
    let page = ann.get("/watchlist");
    page.assert_says(200, "$12 in maximum bids · 1 of ");
    page.assert_lacks("of this week without a bid");
}

#[test]
fn downloads_need_a_plan_with_exports() {
    let world = World::new();
    for (plan, link) in [("free", "/account/plan"), ("core", "/api/export/watchlist?sort=dqs")] {
        let mut person = world.person(&format!("{plan}@example.com"), plan);
        person.post("/watch", &[("domain", "solar.com")]);
        let page = person.get("/watchlist?sort=dqs").text;
        assert!(page.contains(&format!("href=\"{link}\"")), "{plan}: {page}");
    }
}

#[test]
fn an_exported_csv_file_can_be_pasted_again() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "api");
    let mut bob = world.person("bob@example.com", "api");
    let file = "domain,tags,max_bid_usd,venue,note\n\
                solar.com,\"flip, keep\",\"1,420.50\",DropCatch,\"two\nlines, \"\"=1\"\"\"\n\
                münchen.de,,,,=SUM(A1)\n\
                unseen.com,,12,,\n";
    ann.post("/watchlist/add", &[("names", file)]).assert_says(200, "3 names added");
    let export = |email: &str| {
        let mut api = world.server.client_with(&world.site.new_key(email));
        api.get("/api/export/watchlist").text().to_owned()
    };
    let of_ann = export("ann@example.com");
    bob.post("/watchlist/add", &[("names", &of_ann)]).assert_says(200, "3 names added");
    let notes = |file: &str| {
        let mut reader = csv::Reader::from_reader(file.as_bytes());
        let rows = reader.records().map(|row| row.expect("a row"));
        let cells = |row: csv::StringRecord| {
            [0, 9, 10, 11, 12].map(|at| row.get(at).unwrap_or_default().to_owned())
        };
        rows.map(cells).collect::<Vec<_>>()
    };
    assert_eq!(notes(&of_ann), notes(&export("bob@example.com")));
    let first = notes(&of_ann).into_iter().find(|row| row[0] == "solar.com").expect("a row");
    assert_eq!(first[1..], ["flip, keep", "1420.5", "DropCatch", "two\nlines, \"=1\""]);
}

#[test]
fn bad_rows_of_a_file_are_reported_and_stay_in_the_field() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "core");
    let file = "domain;tags;max_bid_usd;note\r\n\
                solar.com;flip;120;first\r\n\
                www.solar.com;flip;;\r\n\
                fresh.com;flip;a lot;ask <Hanna>\r\n\
                \r\n\
                pending.com;flip;;one;two\r\n\
                solar.com;;80;again\r\n";
    let page = ann.post("/watchlist/add", &[("names", file)]);
    page.assert_says(200, "1 name added");
    page.assert_says(200, "4 names not added");
    for row in [
        "3 www.solar.com ",
        "4 fresh.com Column max_bid_usd must be ",
        "6 pending.com The row has 5 cells and the header has 4; put quotes around cells with separators.",
        "7 solar.com Line 2 has this name already.",
    ] {
        page.assert_says(200, row);
    }
    let (_, left) = page.text.rsplit_once("</textarea>").map_or(("", ""), |(field, _)| {
        field
            .rsplit_once("<textarea")
            .and_then(|(_, field)| field.split_once('>'))
            .expect("a field")
    });
    let rows = [
        "domain;tags;max_bid_usd;note",
        "www.solar.com;flip;;",
        "fresh.com;flip;a lot;ask &lt;Hanna&gt;",
        "pending.com;flip;;one;two",
        "solar.com;;80;again",
    ];
    assert_eq!(left.trim_start().lines().collect::<Vec<_>>(), rows);
    // After corrections, the other rows are added with their notes.
    let rest =
        "domain;tags;max_bid_usd;note\nfresh.com;flip;95;ask Hanna\npending.com;flip;;\"one;two\"";
    ann.post("/watchlist/add", &[("names", rest)]).assert_says(200, "2 names added");
    ann.get("/watchlist?tag=flip").assert_says(200, "one;two");
}

#[test]
fn unused_columns_are_reported_and_unknown_tables_are_refused() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "api");
    let mut paste = |text: &str| ann.post("/watchlist/add", &[("names", text)]);
    let page =
        paste("sep=;\r\nDomain;Höchstgebot;Bemerkung\r\nsolar.com;12,50;x\r\nfresh.com;1;y\r\n");
    page.assert_says(200, "2 names added");
    page.assert_says(200, "not used: Höchstgebot, Bemerkung");
    // A single name also leads to a page, not to a notice.
    let page = paste("Nom de domaine;bid;maxBidUsd\npending.com;7;80,5\n");
    page.assert_says(200, "1 name added");
    page.assert_says(200, "not used: bid");
    let page = paste("Domänename;Gebot;Händler\nreleased.com;12,50;sedo.com\n");
    page.assert_says(400, "none of its columns is called domain (Domänename;Gebot;Händler)");
    assert!(
        page.text.contains("released.com;12,50;sedo.com\n</textarea>"),
        "it stays in the field"
    );
    let page = paste("domain;max_bid_usd\nreleased.com;12.505\nteapots.net;12,50 €\n");
    page.assert_says(400, "write 12505 or 12.51, not");
    page.assert_says(400, "is in EUR: convert it, and write it as 12.50 is written.");
    let mut api = world.server.client_with(&world.site.new_key("ann@example.com"));
    let listed = api.get("/api/v1/watchlist?sort=name").json();
    let rows = listed["watchlist"].as_array().expect("rows").iter();
    let bids: Vec<_> = rows.map(|row| (row["domain"].clone(), row["maxBidUsd"].clone())).collect();
    let expected = [
        (json!("fresh.com"), json!(null)),
        (json!("pending.com"), json!(80.5)),
        (json!("solar.com"), json!(null)),
    ];
    assert_eq!(bids, expected);
}

#[test]
fn errors_of_forms_name_the_label_of_the_field() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "core");
    let fields = [("domain", "solar.com"), ("bid", "1.250"), ("next", "/watchlist")];
    for path in ["/watch", "/watchlist/notes", "/watchlist/entry"] {
        ann.post(path, &fields).assert_says(400, "Max bid (USD): must be a number");
    }
    let fields = [("domain", "solar.com"), ("bid", "12.50 usd"), ("next", "/watchlist")];
    ann.post("/watchlist/entry", &fields).assert_goes_to("/watchlist");
    ann.get("/watchlist").assert_says(200, "12.5");
    ann.get("/domain/solar.com").assert_says(200, "Max bid (USD)");
}

#[test]
fn prices_are_shown_as_they_are_read_before_they_are_saved() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "api");
    ann.post("/watch", &[("domain", "solar.com"), ("domain", "fresh.com")]);
    let mut api = world.server.client_with(&world.site.new_key("ann@example.com"));
    let mut list = || api.get("/api/v1/watchlist").json()["watchlist"].clone();
    for path in ["/watch", "/watchlist/notes", "/watchlist/entry"] {
        for (written, read) in [("12,50", "$12.50"), ("1.250,00", "$1,250"), ("1,250", "$1,250")] {
            let before = list();
            let fields = [("domain", "solar.com"), ("bid", written), ("next", "/watchlist")];
            let page = ann.post(path, &fields);
            page.assert_says(200, &format!("Max bid (USD) {read} written as {written}"));
            assert!(page.text.contains(&format!("action=\"{path}\"")));
            assert_eq!(list(), before, "nothing is saved before the answer");
        }
    }
    let exact = [("domain", "solar.com"), ("bid", "$1,250.50"), ("next", "/watchlist")];
    ann.post("/watch", &exact).assert_goes_to("/watchlist");
    let claim =
        [("domain", "solar.com"), ("status", "attempted"), ("bid", "12,50"), ("acquired", "7")];
    let page = ann.post("/portfolio/new", &claim);
    page.assert_says(200, "Your bid (USD) $12.50 written as 12,50");
    assert!(page.text.contains("name=\"bid\" value=\"12.5\""));
    assert!(page.text.contains("name=\"acquired\" value=\"7\""));
}

#[test]
fn notes_set_by_hand_are_replaced_only_after_a_question() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "api");
    let text = "domain,max_bid_usd,venue,note\n\
                solar.com,300,DropCatch,mine\nfresh.com,50,,\npending.com,100,,\n";
    ann.post("/watchlist/add", &[("names", text)]).assert_says(200, "3 names added");
    let mut api = world.server.client_with(&world.site.new_key("ann@example.com"));
    let mut rows = || {
        let body = api.get("/api/v1/watchlist?sort=name").json();
        let all = body["watchlist"].as_array().expect("rows").iter();
        let row = |row: &serde_json::Value| {
            let text = |name: &str| row[name].as_str().unwrap_or("-").to_owned();
            format!("{} {} {} {}", text("domain"), row["maxBidUsd"], text("venue"), text("note"))
        };
        all.map(row).collect::<Vec<_>>()
    };
    let before = rows();
    let names = ["solar.com", "fresh.com", "pending.com", "released.com"];
    let mut fields: Vec<_> = names.iter().map(|name| ("domain", *name)).collect();
    fields.extend([("bid", "100"), ("venue", "NameJet"), ("note", "all"), ("next", "/watchlist")]);
    for path in ["/watch", "/watchlist/notes"] {
        let page = ann.post(path, &fields);
        page.assert_says(200, "2 of the 4 names already have notes of yours:");
        page.assert_says(200, "2 have another maximum bid, 1 of them a higher one");
        page.assert_says(200, "1 has another venue");
        page.assert_says(200, "1 has another note");
        assert_eq!(rows(), before, "nothing is saved before the answer");
    }
    let with = |answer: &[(&'static str, &'static str)]| [&fields[..], answer].concat();
    // An answer about another number of names is asked for again.
    ann.post("/watch", &with(&[("existing", "replace"), ("counted", "1")]))
        .assert_says(200, "2 of the 4 names");
    ann.post("/watch", &with(&[("existing", "keep"), ("counted", "2")]))
        .assert_goes_to("/watchlist");
    let kept = rows();
    assert_eq!(kept[2..], ["released.com 100 NameJet all", "solar.com 300 DropCatch mine"]);
    assert_eq!(kept[..2], ["fresh.com 50 NameJet all", "pending.com 100 NameJet all"]);
    // The same values replace nothing, and need no answer.
    let same = [("domain", "pending.com"), ("bid", "100"), ("next", "/watchlist")];
    ann.post("/watch", &same).assert_goes_to("/watchlist");
    ann.post("/watchlist/notes", &with(&[("existing", "replace"), ("counted", "2")]))
        .assert_goes_to("/watchlist?notice=saved");
    assert!(rows().iter().all(|row| row.ends_with(" 100 NameJet all")));
    // A pasted file asks, too.
    let text = "domain,max_bid_usd\nsolar.com,12\nfresh.com,12\n";
    ann.post("/watchlist/add", &[("names", text)]).assert_says(200, "2 of the 2 names");
    let keep = [("names", text), ("existing", "keep")];
    ann.post("/watchlist/add", &keep).assert_says(200, "2 names already on your watchlist");
    assert!(rows().iter().all(|row| row.ends_with(" 100 NameJet all")));
}

#[test]
fn the_state_of_a_name_opens_to_its_history() {
    let world = World::new();
    let rows = "domain,drop_date,release_date,status,registered_again\n\
                pending.com,2019-03-01,,,true\npending.com,2026-02-12,,,\n";
    let list = world.site.write("old.csv", rows);
    world.site.ingest(&list, "2026-03-15T02:00:00Z");
    let mut ann = world.person("ann@example.com", "core");
    ann.post("/watch", &[("domain", "pending.com"), ("domain", "released.com")]);
    let history = "19 Mar Drops, expected 15 Mar You added it to your watchlist \
                   14 Mar Pending delete 12 Feb Left the zone \
                   1 Mar 2019 Left the zone, renewed or registered again";
    let wait = std::time::Duration::from_millis(50);
    for _ in 0..200 {
        if ann.get("/watchlist").visible().contains("1 Mar 2019") {
            break;
        }
        std::thread::sleep(wait);
    }
    let page = ann.get("/watchlist");
    page.assert_says(200, history);
    page.assert_says(
        200,
        "5 Feb Expected to be available, not verified 31 Jan Pending delete 1 Jan Left the zone",
    );
    // The dossier shows the same, and the earlier drop below it.
    ann.get("/domain/pending.com").assert_says(200, "19 Mar Drops, expected 15 Mar You added it to your watchlist 14 Mar Pending delete 12 Feb Left the zone Earlier drops Dropped Freed Afterwards 1 Mar 2019");
}
