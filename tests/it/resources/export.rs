//! `/api/export/watchlist` and `/api/export/portfolio`, byte for byte.

use serde_json::{Value, json};

use super::{TODAY, add_claim, error, serve_with, served, site, watch};
use crate::common::{Client, Response};

const WATCHLIST: &str = "/api/export/watchlist";
const PORTFOLIO: &str = "/api/export/portfolio";

/// Returns the body of a successful export as text.
#[track_caller]
fn csv(response: &Response, file: &str) -> String {
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(response.header("content-type"), Some("text/csv; charset=utf-8"));
    let disposition = format!("attachment; filename=\"{file}-{TODAY}.csv\"");
    assert_eq!(response.header("content-disposition"), Some(disposition.as_str()));
    response.text().to_owned()
}

/// Parses CSV; the header comes first.
fn records(text: &str) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    reader
        .records()
        .map(|record| record.expect("RFC 4180").iter().map(str::to_owned).collect())
        .collect()
}

#[test]
fn a_watchlist_is_exported() {
    let site = site();
    let (_server, mut client) = served(&site);
    let empty = csv(&client.get(WATCHLIST), "watchlist");
    let header = "domain,source,stage,drop_date,dqs,rdap_state,rdap_verified_at,added_at,\
                  release_date,tags,max_bid_usd,venue,note,release_at,release_certainty,release_window_minutes\r\n";
    assert_eq!(empty, header);
    for name in ["nowhere.com", "pending.com", "kept.de", "back.com", "free-early.com"] {
        watch(&mut client, name);
    }
    let noted = json!({
        "note": "=1, or \"2\"", "tags": ["flip", "garden shop"], "maxBidUsd": 420.5, "venue": "DropCatch",
    });
    assert_eq!(client.send("PATCH", "/api/v1/watchlist/nowhere.com", &noted).status, 200);
    let list = client.get("/api/v1/watchlist").json();
    let text = csv(&client.get(WATCHLIST), "watchlist");
    // Only the export contains the time at which a name was added; the format of that time is
    // checked here, the order below.
    let rows = records(&text);
    let added_at = |name: &str| {
        let row = rows.iter().find(|row| row[0] == name).expect("the name has a row");
        let at = row[7].clone();
        assert!(at.starts_with("2026-03-15T") && at.ends_with('Z') && at.len() == 24, "{at}");
        at
    };
    let dqs = |name: &str| {
        let entries = list["watchlist"].as_array().expect("an array");
        let entry = entries.iter().find(|entry| entry["domain"] == name).expect("is on the list");
        entry["dqs"].as_i64().expect("a score")
    };
    let line = |name: &str, cells: String| {
        let entries = list["watchlist"].as_array().expect("an array");
        let entry = entries.iter().find(|entry| entry["domain"] == name).expect("is on the list");
        let release = entry["releaseDate"].as_str().unwrap_or_default();
        let notes = match name {
            "nowhere.com" => "\"flip, garden shop\",420.5,DropCatch,\"'=1, or \"\"2\"\"\"",
            _ => ",,,",
        };
        let hours = ["releaseAt", "releaseCertainty", "releaseWindowMinutes"].map(|member| {
            let value = &entry[member];
            value.as_str().map_or_else(|| value.to_string().replace("null", ""), str::to_owned)
        });
        let hours = hours.join(",");
        format!("{name},{cells},,,{},{release},{notes},{hours}\r\n", added_at(name))
    };
    let free =
        line("free-early.com", format!("corpus,catchable,2026-02-06,{}", dqs("free-early.com")));
    let pending =
        line("pending.com", format!("corpus,pending-delete,2026-02-10,{}", dqs("pending.com")));
    let back = line("back.com", format!("corpus,,2026-02-01,{}", dqs("back.com")));
    let kept = line("kept.de", format!("corpus,,,{}", dqs("kept.de")));
    let nowhere = line("nowhere.com", "external,,,".into());
    let expected = [header, &free, &pending, &back, &kept, &nowhere].concat();
    assert_eq!(text, expected);
    let added: Vec<_> = ["nowhere.com", "pending.com", "kept.de", "back.com", "free-early.com"]
        .map(added_at)
        .into();
    assert!(added.is_sorted(), "{added:?}");

    let page = csv(&client.get(&format!("{WATCHLIST}?sort=name&limit=2&offset=1")), "watchlist");
    assert_eq!(page, [header, &free, &kept].concat());
}

#[test]
fn a_portfolio_is_exported_and_no_cell_is_a_formula() {
    let site = site();
    let (_server, mut client) = served(&site);
    let header = "id,domain,tld,status,registrar,acquired_price_usd,resale_price_usd,sold_at,\
                  reported_at,updated_at,user_notes,bid_usd,venue,renews_on,renewal_usd,other_acquired_price,\
                  other_resale_price,other_bid,other_renewal,commission,sold_venue\r\n";
    assert_eq!(csv(&client.get(PORTFOLIO), "portfolio"), header);
    let notes = [
        ("plain", "plain"),
        ("a, b", "\"a, b\""),
        ("say \"hi\"", "\"say \"\"hi\"\"\""),
        ("two\r\nlines", "\"two\r\nlines\""),
        ("=1+2", "'=1+2"),
        ("+49 30", "'+49 30"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\tindented", "'\tindented"),
        ("\rreturned", "\"'\rreturned\""),
        ("=HYPERLINK(\"x\",1)", "\"'=HYPERLINK(\"\"x\"\",1)\""),
        ("1 = 1", "1 = 1"),
        ("ünïcode ✓", "ünïcode ✓"),
    ];
    for (note, _) in notes {
        add_claim(
            &mut client,
            &json!({
                "domain": "MÜNCHEN.de", "status": "sold", "registrar": "-O'Reilly, Inc",
                "acquiredPriceUsd": 12.5, "resalePriceUsd": 1000, "soldAt": "2026-01-02T03:04:05Z",
                "userNotes": note, "renewsOn": "2027-01-02", "renewalUsd": 11.5,
                "otherAmounts": {"bid": {"amount": 20, "currency": "eur"}}, "commissionPercent": 12.5,
                "soldVenue": "=Sedo",
            }),
        );
    }
    add_claim(
        &mut client,
        &json!({"domain": "bestshop.co.uk", "status": "lost", "bidUsd": 30, "venue": "=a, b"}),
    );
    let claims = client.get("/api/v1/portfolio").json()["claims"].take();
    let cell_of = |note: &Value| {
        let (_, cell) = notes.iter().find(|(sent, _)| note == sent).expect("a note that was sent");
        *cell
    };
    let line = |claim: &Value| {
        let text = |member: &str| claim[member].as_str().expect("text");
        let (id, reported, updated) = (&claim["id"], text("reportedAt"), text("updatedAt"));
        if claim["status"] == "lost" {
            return format!(
                "{id},bestshop.co.uk,co.uk,lost,,,,,{reported},{updated},,30,\"'=a, b\",,,,,,,,\r\n"
            );
        }
        let notes = cell_of(&claim["userNotes"]);
        format!(
            "{id},xn--mnchen-3ya.de,de,sold,\"'-O'Reilly, Inc\",12.5,1000,\
             2026-01-02T03:04:05.000Z,{reported},{updated},{notes},,,2027-01-02,11.5,,,20 EUR,,12.5 %,'=Sedo\r\n"
        )
    };
    let lines: Vec<String> = claims.as_array().expect("an array").iter().map(line).collect();
    let text = csv(&client.get(PORTFOLIO), "portfolio");
    assert_eq!(text, format!("{header}{}", lines.concat()));
    assert_eq!(records(&text).len(), 15, "another program reads as many rows");

    let some = csv(&client.get(&format!("{PORTFOLIO}?status=sold&limit=2&offset=1")), "portfolio");
    let sold: Vec<_> = lines.iter().filter(|line| line.contains(",sold,")).cloned().collect();
    assert_eq!(some, format!("{header}{}", sold[1..3].concat()));
    assert_eq!(csv(&client.get(&format!("{PORTFOLIO}?to=2026-03-15")), "portfolio"), header);
}

#[test]
fn exports_larger_than_a_chunk_are_complete() {
    let site = site();
    let (_server, mut client) = served(&site);
    for at in 0..1_201 {
        add_claim(&mut client, &json!({"domain": format!("n{at}.com"), "status": "lost"}));
    }
    let rows = records(&csv(&client.get(PORTFOLIO), "portfolio"));
    let ids: Vec<_> = rows[1..].iter().map(|row| row[0].clone()).collect();
    let mut pages = Vec::new();
    for offset in [0, 1_000] {
        let page = client.get(&format!("/api/v1/portfolio?limit=1000&offset={offset}")).json();
        pages.extend(
            page["claims"].as_array().expect("an array").iter().map(|c| c["id"].to_string()),
        );
    }
    assert_eq!((ids.len(), &ids), (1_201, &pages));
}

#[test]
fn exports_are_for_core_and_above_and_share_a_budget() {
    let site = site();
    let keys = ["free", "core"].map(|plan| site.account(&format!("{plan}@example.com"), plan));
    let server = serve_with(&site, "[plans.core]\nexports_per_day = 3\n", TODAY);
    let refused = |client: &mut Client, target: &str| {
        let (status, body) = client.get(target).answer();
        assert_eq!((status, &body["plan"]), (403, &json!("free")), "{body}");
        let error = body["error"].as_str().unwrap_or_default();
        assert!(error.contains("CSV export") && error.contains("Core plan or above"), "{body}");
    };
    let [free, core] = keys;
    let mut free = server.client_with(&free);
    let mut core = server.client_with(&core);
    for target in [WATCHLIST, PORTFOLIO] {
        // The plan is checked before the parameters.
        refused(&mut free, target);
        refused(&mut free, &format!("{target}?limit=0"));
        let answer = server.client().get(target).answer();
        assert_eq!(answer, (401, error("authentication required")));
    }
    // A malformed request does not count.
    for (target, refusal) in [
        (format!("{WATCHLIST}?limit=10001"), "limit: must be an integer from 1 to 10000"),
        (
            format!("{WATCHLIST}?sort=x"),
            "sort: must be one of lifecycle, name, dqs, added, release, bid, venue",
        ),
        (format!("{PORTFOLIO}?limit=0"), "limit: must be an integer from 1 to 10000"),
        (
            format!("{PORTFOLIO}?status=x"),
            "status: must be one of attempted, caught, registered, lost, sold",
        ),
    ] {
        assert_eq!(core.get(&target).answer(), (400, error(refusal)), "{target}");
    }
    for (target, left) in [(WATCHLIST, 2), (PORTFOLIO, 1), ("/api/export/drops", 0)] {
        let response = core.get(target);
        assert_eq!(response.status, 200, "{target}: {}", response.text());
        assert_eq!(response.number("x-ratelimit-limit"), Some(3));
        assert_eq!(response.number("x-ratelimit-remaining"), Some(left), "{target}");
    }
    for target in [WATCHLIST, PORTFOLIO, "/api/export/drops"] {
        let (status, body) = core.get(target).answer();
        assert_eq!((status, &body["error"]), (429, &json!("rate limit exceeded")), "{target}");
        assert_eq!((&body["limit"], &body["plan"]), (&json!(3), &json!("core")));
    }
}

#[test]
fn a_head_request_does_not_count_as_an_export() {
    let site = site();
    let key = site.account("core@example.com", "core");
    let server = serve_with(&site, "[plans.core]\nexports_per_day = 1\n", TODAY);
    let mut core = server.client_with(&key);
    for target in [WATCHLIST, PORTFOLIO, "/api/export/drops", "/api/export/drops?format=ndjson"] {
        let head = core.request("HEAD", target, &[]);
        assert_eq!((head.status, head.body.len()), (200, 0), "{target}");
        assert_eq!(head.number("x-ratelimit-remaining"), Some(1), "{target}");
        let name = head.header("content-disposition").expect("a file name");
        assert!(name.starts_with("attachment; filename="), "{target}: {name}");
    }
    let wrong = core.request("HEAD", "/api/export/drops?limit=0", &[]);
    assert_eq!(wrong.status, 400, "parameters are checked as for GET");
    assert_eq!(core.get("/api/export/drops").number("x-ratelimit-remaining"), Some(0));
    assert_eq!(core.request("HEAD", "/api/export/drops", &[]).status, 429, "as for GET");
}

#[test]
fn exports_for_excel_begin_with_a_byte_order_mark() {
    let site = site();
    let (_server, mut client) = served(&site);
    let note = json!({"domain": "pending.com", "status": "caught", "userNotes": "Käse · fünf"});
    super::add_claim(&mut client, &note);
    for target in
        [WATCHLIST, PORTFOLIO, "/api/export/drops", "/api/export/drops?columns=name,words"]
    {
        let joint = if target.contains('?') { '&' } else { '?' };
        let plain = client.get(target);
        let marked = client.get(&format!("{target}{joint}bom=true"));
        let expected = [b"\xef\xbb\xbf", plain.body.as_slice()].concat();
        assert_eq!((marked.status, &marked.body), (200, &expected), "{target}");
        assert_eq!(marked.header("content-type"), plain.header("content-type"));
        for unmarked in ["bom=false", "bom="] {
            assert_eq!(client.get(&format!("{target}{joint}{unmarked}")).body, plain.body);
        }
        let refused = client.get(&format!("{target}{joint}bom=1")).answer();
        assert_eq!(refused, (400, error("bom: must be one of true, false")), "{target}");
    }
    let refused = client.get("/api/export/drops?format=ndjson&bom=true").answer();
    assert_eq!(refused, (400, error("bom: must be false, unless the format is csv")));
}

#[test]
fn an_export_links_to_the_next_file() {
    let site = site();
    let (_server, mut client) = served(&site);
    let whole = client.get("/api/export/drops?columns=name&sort=name&view=all");
    assert_eq!(whole.header("link"), None, "nothing follows");
    for (path, bom) in
        [("/api/export/drops?view=all", ""), ("/api/export/drops?view=all&bom=true", "\u{feff}")]
    {
        let mut target = format!("{path}&columns=name&sort=name&limit=2&offset=0");
        let (mut names, mut files) = (String::new(), 0);
        loop {
            let file = client.get(&target);
            assert_eq!(file.status, 200, "{target}: {}", file.text());
            let rows = file.text().strip_prefix(bom).and_then(|text| text.strip_prefix("name\r\n"));
            names.push_str(rows.expect("a header line"));
            files += 1;
            let Some(link) = file.header("link") else { break };
            let next = link.strip_prefix('<').and_then(|link| link.strip_suffix(">; rel=\"next\""));
            target = next.expect("an address").to_owned();
        }
        assert_eq!(format!("name\r\n{names}"), whole.text());
        assert!(files > 2, "{files}");
    }
    let other = client.get("/api/v1/drops?view=all&limit=1").json()["nextCursor"].clone();
    let cursor = other.as_str().expect("there are more");
    let page = client.get(&format!("/api/export/drops?view=all&cursor={cursor}"));
    assert_eq!(page.status, 200, "the list and its export share cursors: {}", page.text());
}
