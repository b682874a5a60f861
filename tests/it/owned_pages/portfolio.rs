//! The portfolio page and its forms.

use std::time::Duration;

use serde_json::{Value, json};

use super::person::{between, form, what};
use super::{HTML, World};
use crate::common::rdap::{RdapServer, Says};
use crate::common::wait::until;

#[test]
fn claims_can_be_created_changed_and_deleted() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "free");
    ann.get("/portfolio").assert_says(200, "Track your backorders");
    let page = ann.get("/portfolio/new?domain=solar.com");
    assert!(page.text.contains("value=\"solar.com\""), "{}", page.visible());
    let rule = ann.add_rule("short ones", &[("email", "on")]);
    let fields = [
        ("status", "sold"),
        ("registrar", "Gandi"),
        ("acquired", "12.50"),
        ("resale", "1999"),
        ("sold_on", "2026-03-01"),
        ("notes", "first line\r\nsecond line"),
        ("rule", &rule),
    ];
    let id = ann.add_claim("münchen.de", &fields);
    let page = ann.get("/portfolio");
    for words in [
        "münchen.de xn--mnchen-3ya.de",
        "by short ones",
        "first line …",
        "$12.50",
        "$1,999",
        "+$1,986.50",
        "159.9×",
    ] {
        page.assert_says(200, words);
    }
    let editor = format!("/portfolio/{id}");
    let page = ann.get(&editor).text;
    for value in [
        "value=\"Gandi\"",
        "value=\"12.5\"",
        "value=\"1999\"",
        "value=\"2026-03-01\"",
        "\nfirst line\nsecond line</textarea>",
    ] {
        assert!(page.contains(value), "no {value} in {page}");
    }

    // Another status removes the sale, although the form still sends its fields.
    let lost: Vec<_> = fields
        .iter()
        .map(|&(name, value)| (name, if name == "status" { "lost" } else { value }))
        .collect();
    ann.post(&editor, &lost).assert_goes_to("/portfolio?notice=saved");
    ann.get("/portfolio").assert_says(200, "Lost");
    let page = ann.get(&editor).text;
    assert!(!page.contains("1999") && page.contains("value=\"Gandi\""), "{page}");
    // A sale without a date gets today's.
    ann.post(&editor, &[("status", "sold"), ("resale", "5")])
        .assert_goes_to("/portfolio?notice=saved");
    let page = ann.get(&editor).text;
    assert!(page.contains("value=\"2026-03-15\"") && !page.contains("Gandi\""), "{page}");

    ann.get(&format!("{editor}/delete")).assert_says(200, "Delete this claim?");
    ann.post(&format!("{editor}/delete"), &[]).assert_goes_to("/portfolio?notice=removed");
    assert_eq!(ann.get(&editor).status, 404);
}

#[test]
fn forms_and_the_api_return_the_same_errors() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "api");
    let mut api = world.server.client_with(&world.site.new_key("ann@example.com"));
    let id = ann.add_claim("solar.com", &[("status", "attempted")]);
    let long = "x".repeat(201);
    let cases: [(&str, &str, &str, Value); 10] = [
        ("domain", "www.a.com", "domain", json!("www.a.com")),
        ("status", "gone", "status", json!("gone")),
        ("registrar", &long, "registrar", json!(long)),
        ("registrar", "a\u{7}b", "registrar", json!("a\u{7}b")),
        ("acquired", "-1", "acquiredPriceUsd", json!(-1)),
        ("acquired", "1.234", "acquiredPriceUsd", json!(1.234)),
        ("resale", "5", "resalePriceUsd", json!(5)),
        ("sold_on", "2026-03-01", "soldAt", json!("2026-03-01T00:00:00.000Z")),
        ("notes", "a\u{0}b", "userNotes", json!("a\u{0}b")),
        ("rule", "12345", "alertRuleId", json!(12345)),
    ];
    for (field, text, member, value) in cases {
        let mut sent = json!({"domain": "a.com", "status": "attempted"});
        sent[member] = value.clone();
        let (status, body) = api.send("POST", "/api/v1/portfolio", &sent).answer();
        assert_eq!(status, 400, "{sent}");
        let mut fields = vec![("domain", "a.com"), ("status", "attempted")];
        fields.retain(|(name, _)| *name != field);
        fields.push((field, text));
        let page = ann.post("/portfolio/new", &fields);
        assert_eq!(page.status, 400, "{fields:?}");
        let error = page.error_of(field).unwrap_or_else(|| panic!("{field}: {}", page.visible()));
        let error = error.trim_end_matches('.').to_lowercase();
        // If an amount cannot be parsed, the page also shows how to write it.
        let (expected, more) = (what(&body).to_lowercase(), ["", ", not", "; write"]);
        let rest = error.strip_prefix(&expected).unwrap_or_else(|| panic!("{field}: {error}"));
        let is_known =
            more.iter().any(|it| rest.starts_with(it) && rest.is_empty() == it.is_empty());
        assert!(is_known, "{error}");
        assert!(page.text.contains("aria-invalid=\"true\""), "{field}");
        if field == "domain" {
            continue;
        }
        let (status, _) =
            api.send("PATCH", &format!("/api/v1/portfolio/{id}"), &json!({member: value})).answer();
        let page = ann.post(&format!("/portfolio/{id}"), &fields);
        assert_eq!((status, page.status), (400, 400), "{fields:?}");
        assert!(page.error_of(field).is_some(), "{field}: {}", page.visible());
    }
    assert_eq!(api.get("/api/v1/portfolio").json()["count"], json!(1));
}

#[test]
fn html_in_every_field_stays_text() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "api");
    let rule = ann.add_rule(HTML, &[("email", "on")]);
    let fields = [("status", "caught"), ("registrar", HTML), ("notes", HTML), ("rule", &rule)];
    let id = ann.add_claim("solar.com", &fields);
    let bad = [
        ("domain", HTML),
        ("status", HTML),
        ("registrar", HTML),
        ("acquired", HTML),
        ("resale", HTML),
        ("sold_on", HTML),
        ("notes", HTML),
        ("rule", HTML),
    ];
    let pages = [
        ann.get("/portfolio"),
        ann.get("/portfolio?by=registrar"),
        ann.get("/portfolio?by=rule"),
        ann.get(&format!("/portfolio/{id}")),
        ann.get(&format!("/portfolio/{id}/delete")),
        ann.get(&format!("/portfolio/new?{}", form(&[("domain", HTML)]))),
        ann.post("/portfolio/new", &bad),
        ann.post(&format!("/portfolio/{id}"), &bad),
        ann.get(&format!("/portfolio?{}", form(&[("by", HTML), ("status", HTML), ("from", HTML)]))),
    ];
    for page in pages {
        page.assert_lacks("<img");
        page.assert_lacks("=x onerror=alert(1)>");
    }
    ann.get("/portfolio?by=registrar").assert_says(200, HTML);
}

#[test]
fn bids_are_grouped_by_how_soon_names_were_taken() {
    let world = World::new();
    let dropped = "domain,drop_date,release_date\nsoon.de,2026-01-02,2026-02-02\nlate.de,2026-01-02,2026-02-02\n";
    let lists = [
        ("dropped.csv", dropped),
        ("registered-2026-02-03.txt", "soon.de\n"),
        ("registered-2026-02-20.txt", "late.de\n"),
    ];
    for (name, text) in lists {
        let list = world.site.write(name, text);
        world.site.ok(&["ingest", list.to_str().expect("UTF-8")]);
    }
    let mut ann = world.person("ann@example.com", "core");
    for (domain, status) in [("soon.de", "lost"), ("late.de", "caught"), ("other.de", "lost")] {
        ann.add_claim(domain, &[("status", status), ("venue", "DropCatch")]);
    }
    until(Duration::from_secs(20), "the lists are served", || {
        ann.get("/portfolio?by=taken").text.contains("Within a month")
    });
    let page = ann.get("/portfolio?by=taken");
    for row in ["Within a day 1 0 1 0", "Within a month 1 1 0 0", "Not seen taken 1 0 1 0"] {
        page.assert_says(200, row);
    }
}

/// The run of .nu starts at 04:00 UTC, and the registry has registrations at that time.
#[test]
fn bids_on_watched_names_are_grouped_by_the_second() {
    let nu = RdapServer::start();
    nu.publish_servers(&[(&["nu"], &nu)]);
    nu.say("soon.nu", Says::held_since("2026-03-10"));
    nu.say("unseen.nu", Says::held_since("2026-03-10"));
    nu.say("late.nu", Says::held_since("2026-03-12"));
    let (bootstrap, allow) = (nu.bootstrap_url(), nu.allowed());
    let rdap = format!("[rdap]\nbootstrap = \"{bootstrap}\"\nallow = [{allow:?}]\n");
    let world = World::with(&rdap);
    let names = ["soon.nu", "unseen.nu", "late.nu"];
    let rows = names.map(|name| format!("{name},2026-01-02,2026-03-10\n")).concat();
    let list = world.site.write("dropped.csv", format!("domain,drop_date,release_date\n{rows}"));
    world.site.ok(&["ingest", list.to_str().expect("UTF-8")]);
    let (mut ann, mut ben) =
        (world.person("ann@example.com", "api"), world.person("ben@example.com", "api"));
    for name in names {
        ann.add_claim(name, &[("status", "lost")]);
    }
    for (name, is_of_ann) in [("soon.nu", true), ("late.nu", true), ("unseen.nu", false)] {
        let person = if is_of_ann { &mut ann } else { &mut ben };
        person.post("/watchlist/entry", &[("domain", name)]);
        until(Duration::from_secs(60), "the answer of the registry", || {
            person.get(&format!("/domain/{name}")).text.contains("04:00:00 UTC at")
        });
    }
    until(Duration::from_secs(20), "the list is served", || {
        ann.get("/portfolio?by=taken").text.contains("Within a minute")
    });
    let page = ann.get("/portfolio?by=taken");
    page.assert_says(200, "Within a minute 1 0 1 0");
    // One was taken after two days, which no list shows; the other is watched by another account.
    page.assert_says(200, "Not seen taken 2 0 2 0");
    let label = "Within a minute: 0 of 1 bid, 0 to 79 % in the long run, 0 %";
    assert!(page.text.contains(&format!("aria-label=\"{label}\"")), "{}", page.text);
}

#[test]
fn claims_are_filtered_and_summed() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "core");
    for (domain, fields) in [
        (
            "a.com",
            [("status", "sold"), ("registrar", "Gandi"), ("acquired", "100"), ("resale", "400")],
        ),
        (
            "b.com",
            [("status", "caught"), ("registrar", "Gandi"), ("acquired", "50.25"), ("resale", "")],
        ),
        ("c.de", [("status", "lost"), ("registrar", "Porkbun"), ("acquired", ""), ("resale", "")]),
        (
            "d.de",
            [("status", "attempted"), ("venue", "DropCatch"), ("bid", "5"), ("acquired", "7")],
        ),
    ] {
        ann.add_claim(domain, &fields);
    }
    let page = ann.get("/portfolio?by=registrar");
    // A bid is not a cost, and an unsold name is inventory.
    for words in [
        "Sales $400 1 name",
        "Cost of names sold $100",
        "Realised profit +$300 4.0× on names sold",
        "Inventory at cost $50.25 1 name held",
        "Open bids $5 1 bid",
        "Gandi 2 2 0 1 $100 $400 +$300 4.0×",
        "Porkbun 1 0 1 0 $0 $0 $0 –",
        "None 1 0 0 0 $0 $0 $0 –",
        "All 4 2 1 1 $100 $400 +$300 4.0×",
    ] {
        page.assert_says(200, words);
    }
    for label in [
        "Gandi: 2 of 2 bids, 34 to 100 % in the long run, 100 %",
        "Porkbun: 0 of 1 bid, 0 to 79 % in the long run, 0 %",
        "Gandi: $400 on $100, 4.0×",
    ] {
        assert!(page.text.contains(&format!("aria-label=\"{label}\"")), "{label}: {}", page.text);
    }
    ann.get("/portfolio?by=tld").assert_says(200, ".com 2 2 0 1 $100 $400 +$300 4.0×");
    ann.get("/portfolio?by=status").assert_says(200, "Sold 1 1 0 1 $100 $400 +$300 4.0×");
    ann.get("/portfolio?by=rule").assert_says(200, "None 4 2 1 1");
    ann.get("/portfolio?by=score").assert_says(200, "Not in our data 4 2 1 1");
    ann.get("/portfolio?by=taken").assert_says(200, "Not seen taken 4 2 1 1");
    ann.get("/portfolio?by=expected").assert_says(200, "No expectation 4 2 1 1");
    // Grouped by venue, or by registrar for claims without a venue.
    let page = ann.get("/portfolio");
    page.assert_says(200, "Gandi 2 2 0 1");
    page.assert_says(200, "DropCatch 1 0 0 0");

    // A form sends one `status` for each ticked box.
    let page = ann.get("/portfolio?status=lost&status=attempted&from=2026-03-15&to=2026-03-16");
    page.assert_says(200, "c.de");
    page.assert_says(200, "All 2 0 1 0 $0");
    page.assert_lacks("b.com");
    let csv = between(&page.text, "href=\"/api/export/portfolio?", "\"").replace("&amp;", "&");
    assert_eq!(csv, "status=lost%2Cattempted&from=2026-03-15&to=2026-03-16");
    ann.get("/portfolio?to=2026-03-15").assert_says(200, "No claims match this filter.");
    for (query, error) in [
        ("status=gone", "must be one of attempted, caught, registered, lost, sold"),
        ("from=yesterday", "is not a date"),
        ("by=month", "must be one of venue, tld, score, taken, expected, rule, registrar, status"),
    ] {
        ann.get(&format!("/portfolio?{query}")).assert_says(400, error);
    }
}

#[test]
fn sums_are_in_the_currency_of_the_account() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "api");
    let sold = [
        ("status", "sold"),
        ("acquired", "100 EUR"),
        ("resale", "500"),
        ("commission", "10 %"),
        ("sold_venue", "Sedo"),
    ];
    let id = ann.add_claim("a.com", &sold);
    ann.add_claim("b.com", &[("status", "caught"), ("acquired", "50 GBP")]);
    let page = ann.get("/portfolio");
    page.assert_says(200, "2 claims in EUR, GBP not in these sums: give a rate");
    page.assert_says(200, "Sales $0 1 name");
    page.assert_says(200, "$500 at Sedo, less 10 %");

    let rates = [("currency", "USD"), ("rate-EUR", "1.1"), ("rate-GBP", "")];
    ann.post("/portfolio/currency", &rates).assert_goes_to("/portfolio?notice=currency");
    let page = ann.get("/portfolio");
    page.assert_says(200, "1 claim in GBP not in these sums");
    page.assert_says(200, "Sales $500 1 name Cost of names sold $160");
    page.assert_says(200, "Realised profit +$340");
    // Amounts stay as they were entered.
    page.assert_says(200, "100 EUR");
    for operator in ["−", "="] {
        assert!(page.text.contains(&format!("data-op=\"{operator}\"")), "{operator}");
    }
    let wrong = [("currency", "USD"), ("rate-EUR", "a lot")];
    ann.post("/portfolio/currency", &wrong).assert_says(400, "The rate of EUR must be a number");
    ann.post("/portfolio/currency", &[("currency", "euros")]).assert_says(400, "such as EUR");

    // Another currency asks for its rates, and forms take it for amounts without one.
    ann.post("/portfolio/currency", &[("currency", "eur"), ("rate-EUR", "1.1")])
        .assert_goes_to("/portfolio/currency?notice=currency");
    ann.get("/portfolio/currency").assert_says(200, "1 USD in EUR");
    let rates = [("currency", "EUR"), ("rate-USD", "0,5"), ("rate-GBP", "1.2")];
    ann.post("/portfolio/currency", &rates).assert_goes_to("/portfolio?notice=currency");
    let page = ann.get("/portfolio");
    page.assert_says(200, "Sales 250 EUR 1 name Cost of names sold 125 EUR");
    page.assert_says(200, "Realised profit +125 EUR 2.0× on names sold");
    page.assert_says(200, "Inventory at cost 60 EUR");
    let editor = ann.get(&format!("/portfolio/{id}"));
    editor.assert_says(200, "Cost (EUR)");
    assert!(editor.text.contains("value=\"100\""), "{}", editor.text);
    assert!(editor.text.contains("value=\"500 USD\""), "{}", editor.text);
    let mut api = world.server.client_with(&world.site.new_key("ann@example.com"));
    let claim = api.get(&format!("/api/v1/portfolio/{id}")).json()["claim"].clone();
    assert_eq!(claim["acquiredPriceUsd"], json!(null));
    let cost = json!({"acquiredPrice": {"amount": 100, "currency": "EUR"}});
    assert_eq!((&claim["otherAmounts"], &claim["commissionPercent"]), (&cost, &json!(10)));
    let csv = api.get("/api/export/portfolio").text().to_owned();
    assert!(csv.contains(",100 EUR,,,,10 %,Sedo\r\n"), "{csv}");
}

#[test]
fn a_newer_result_closes_an_open_bid() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "free");
    ann.add_claim("a.com", &[("status", "attempted"), ("bid", "40")]);
    ann.add_claim("b.com", &[("status", "attempted"), ("bid", "5")]);
    ann.get("/portfolio").assert_says(200, "Open bids $45 2 bids");
    ann.add_claim("a.com", &[("status", "sold"), ("resale", "90")]);
    ann.get("/portfolio").assert_says(200, "Open bids $5 1 bid");
    // A filter hides the newer claim, but the bid stays closed.
    ann.get("/portfolio?status=attempted").assert_says(200, "Open bids $5 1 bid");
    // After a sale, the name can drop again.
    ann.add_claim("a.com", &[("status", "attempted"), ("bid", "7")]);
    ann.get("/portfolio").assert_says(200, "Open bids $12 2 bids");
}

#[test]
fn periods_are_chosen_in_words() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "free");
    ann.add_claim("a.com", &[("status", "lost")]);
    let page = ann.get("/portfolio");
    page.assert_says(200, "This month This year All Added at any time");
    let month = "/portfolio?from=2026-03-01&to=2026-04-01";
    assert!(
        page.text.contains(&format!("href=\"{}\"", month.replace('&', "&amp;"))),
        "{}",
        page.text
    );
    let page = ann.get(month);
    page.assert_says(200, "Added from 1 Mar to 31 Mar");
    page.assert_says(200, "a.com");
    ann.get("/portfolio?from=2026-03-15&through=2026-03-15").assert_says(200, "Added on 15 Mar");
    let page = ann.get("/portfolio?through=2026-03-14");
    page.assert_says(200, "Added until 14 Mar");
    page.assert_says(200, "No claims match this filter.");
    ann.get("/portfolio?through=tomorrow-ish").assert_says(400, "is not a date");
}

#[test]
fn a_file_of_a_registrar_is_shown_before_it_is_saved_and_comes_twice_without_harm() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "api");
    ann.add_claim("solar.com", &[("status", "caught"), ("renewal", "9")]);
    let file = "Domain Name,Expiration Date,Auto-renew,Status,Renewal Price,Admin Email\n\
                solar.com,2027-01-26,On,Active,$ 22.99,secret@example.com\n\
                fresh.com,2026-04-02,On,Active,$ 11.99,secret@example.com\n\
                shop.a.com,2026-04-02,On,Active,,\n\
                teapots.net,soon,On,Active,12.50,\n";
    let currency = [("currency", "EUR")];
    let page = ann.upload("/portfolio/import", &currency, file);
    page.assert_says(200, "2 names to add 1 name to complete 1 name not read");
    page.assert_says(200, "4 whole row ");
    page.assert_says(200, "5 Expiration Date ");
    page.assert_says(200, "12.50 EUR");
    page.assert_lacks("secret@example.com");
    ann.get("/portfolio").assert_lacks("fresh.com");

    let rows = between(&page.text, "name=\"file\" value=\"", "\"").replace("&quot;", "\"");
    ann.upload("/portfolio/import/save", &[], &rows).assert_goes_to("/portfolio?notice=imported");
    let mut api = world.server.client_with(&world.site.new_key("ann@example.com"));
    let mut claims = || api.get("/api/v1/portfolio").json()["claims"].clone();
    let saved = claims();
    let of = |name: &str| {
        let mut rows = saved.as_array().expect("claims").iter();
        rows.find(|it| it["domain"] == name).expect("a claim")
    };
    // What was entered stays, and what was missing is added.
    let solar = of("solar.com");
    assert_eq!((&solar["status"], &solar["renewalUsd"]), (&json!("caught"), &json!(9)));
    assert_eq!(
        (&solar["renewsOn"], &solar["registrar"]),
        (&json!("2027-01-26"), &json!("GoDaddy"))
    );
    let fresh = of("fresh.com");
    assert_eq!((&fresh["status"], &fresh["renewalUsd"]), (&json!("registered"), &json!(11.99)));
    let teapots = json!({"renewal": {"amount": 12.5, "currency": "EUR"}});
    assert_eq!(of("teapots.net")["otherAmounts"], teapots);

    let again = ann.upload("/portfolio/import", &currency, file);
    again.assert_says(200, "3 names as in your portfolio 1 name not read");
    again.assert_says(200, "Your portfolio has all of it already.");
    ann.upload("/portfolio/import/save", &[], &rows).assert_goes_to("/portfolio?notice=imported");
    assert_eq!(claims(), saved);

    ann.upload("/portfolio/import", &currency, "Target,URL Rating,Domain Rating\na.com/,1,2\n")
        .assert_says(400, "Has no column with days of renewal, costs or sales.");
    ann.upload("/portfolio/import", &[("currency", "euro")], file).assert_says(400, "such as EUR");
    ann.upload("/portfolio/import/save", &[], "[{\"domain\": \"-\"}]")
        .assert_says(400, "choose the file again");
}

#[test]
fn a_form_that_is_sent_twice_adds_one_claim() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "free");
    let page = ann.get("/portfolio/new").text;
    let once = between(&page, "name=\"once\" value=\"", "\"");
    let fields = [("once", once), ("domain", "a.com"), ("status", "lost")];
    ann.post("/portfolio/new", &fields).assert_goes_to("/portfolio?notice=added");
    ann.post("/portfolio/new", &fields).assert_goes_to("/portfolio?notice=added");
    ann.get("/portfolio").assert_says(200, "Lost 1");
    let fields = [("once", once), ("domain", "b.com"), ("status", "lost")];
    let page = ann.post("/portfolio/new", &fields);
    page.assert_says(409, "This form was already submitted");
    assert_ne!(
        between(&page.text, "name=\"once\" value=\"", "\""),
        once,
        "the next try is another"
    );
}

#[test]
fn a_renewal_that_comes_near_is_decided_in_its_row() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "api");
    let id = ann.add_claim("solar.com", &[("status", "caught"), ("renews_on", "2026-04-20")]);
    let far = [("status", "caught"), ("renews_on", "2027-04-20")];
    ann.add_claim("lunar.com", &far);
    let page = ann.get("/portfolio").text;
    assert_eq!(page.matches("value=\"keep\"").count(), 1, "{page}");
    let path = format!("/portfolio/{id}/renewal");
    ann.post(&path, &[("decision", "drop")]).assert_goes_to("/portfolio?notice=decided");
    ann.get("/portfolio").assert_says(200, "will drop Change");
    let mut api = world.server.client_with(&world.site.new_key("ann@example.com"));
    let claim = format!("/api/v1/portfolio/{id}");
    let dropped = "\"renewalDecision\":\"drop\"";
    assert_eq!(api.get("/api/v1/portfolio").text().matches(dropped).count(), 1);
    let keep = json!({"renewalDecision": "keep"});
    let kept = api.send("PATCH", &claim, &keep).json();
    assert_eq!(kept["claim"]["renewalDecision"], "keep", "{kept}");
    let (status, body) = api.send("PATCH", &claim, &json!({"renewalDecision": "sell"})).answer();
    assert_eq!((status, &body["parameter"]), (400, &json!("renewalDecision")), "{body}");
    ann.post(&path, &[("decision", "")]).assert_goes_to("/portfolio?notice=decided");
    assert_eq!(api.get("/api/v1/portfolio").text().matches("renewalDecision").count(), 0);
}
