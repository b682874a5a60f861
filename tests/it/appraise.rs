//! Scores of names, whether or not a list ever contained them: `POST /api/v1/appraise` and `dropdex
//! score`, which agree.
//!
//! Tests of the scorer cover how a score is computed, so these tests contain no figures.

use serde_json::{Value, json};

use crate::common::json::error;
use crate::common::{Client, Response, Server, Site, TODAY};

const PATH: &str = "/api/v1/appraise";
const JSON: (&str, &str) = ("Content-Type", "application/json");

const LIST: &str = "\
domain,drop_date,release_date,status
solar.com,2026-03-10,,
solar.de,2026-01-12,,
solar-panel24.io,2026-03-01,,
münchen.de,2026-03-01,,
kept.org,,,registered
";

fn site() -> Site {
    let site = Site::new();
    let list = site.write("list.csv", LIST);
    site.ingest(&list, "2026-03-15T00:00:00Z");
    site
}

/// Starts a server over [`LIST`] on [`TODAY`]; returns it with a client of plan `api`.
fn served(site: &Site) -> (Server, Client) {
    let key = site.account("owner@example.com", "api");
    let server = site.serve(TODAY);
    let client = server.client_with(&key);
    (server, client)
}

fn appraise(client: &mut Client, domains: &Value) -> Response {
    client.send("POST", PATH, &json!({ "domains": domains }))
}

/// Returns the output of `dropdex score --json` with more arguments.
fn scored<const N: usize>(site: &Site, names: [&str; N], more: &[&str]) -> [Value; N] {
    let lines = site.ok(&[&["score", "--json"], more, &names].concat());
    let scores: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    scores.try_into().expect("one line per name")
}

/// Returns the appraisals of names, each with whether the corpus has the name.
fn appraisals<const N: usize>(site: &Site, names: [(&str, bool); N]) -> [Value; N] {
    let mut expected = scored(site, names.map(|(name, _)| name), &[]);
    for (appraisal, (_, known)) in expected.iter_mut().zip(names) {
        appraisal["known"] = known.into();
        // `rank` orders names with the same score in lists; an appraisal omits it.
        appraisal.as_object_mut().expect("an object").remove("rank");
    }
    expected
}

fn refused(sent: &str, reason: &str) -> Value {
    json!({ "domain": sent, "error": reason })
}

#[test]
fn appraisals_keep_the_order_of_the_names() {
    let site = site();
    let (_server, mut client) = served(&site);
    let sent = json!([
        "never-seen.com",
        "solar.com",
        "",
        "xn--mnchen-3ya.de",
        " MÜNCHEN.de. ",
        "www.solar.com",
        "kept.org",
        "solar.com",
        "no such name",
        "łódź.pl"
    ]);
    let [never, solar, munich, kept, lodz] = appraisals(
        &site,
        [
            ("never-seen.com", false),
            ("solar.com", true),
            ("xn--mnchen-3ya.de", true),
            ("kept.org", true),
            ("xn--d-uga0v4h.pl", false),
        ],
    );
    let expected = json!({"count": 10, "appraisals": [
        never,
        solar,
        refused("", "the name is empty"),
        munich,
        munich,
        refused("www.solar.com", "the name is a host below a registrable name"),
        kept,
        solar,
        refused("no such name", "the name holds a NUL, control or white-space character"),
        lodz,
    ]});
    let response = appraise(&mut client, &sent);
    assert_eq!(response.answer(), (200, expected));
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert_eq!([&munich["tld"], &munich["length"]], [&json!("de"), &json!(7)]);
    // The same query gets the same response, repeated or batched with others.
    let again = appraise(&mut client, &json!(["solar.com"])).json();
    assert_eq!(again, json!({"count": 1, "appraisals": [solar]}));
}

#[test]
fn appraisals_of_known_names_match_their_dossiers() {
    let site = site();
    let (_server, mut client) = served(&site);
    let names = ["solar.com", "solar-panel24.io", "xn--mnchen-3ya.de"];
    let appraised = appraise(&mut client, &json!(names)).json()["appraisals"].take();
    for (at, name) in names.into_iter().enumerate() {
        let dossier = client.get(&format!("/api/v1/domain/{name}")).json();
        for member in ["domain", "tld", "length"] {
            assert_eq!(appraised[at][member], dossier[member], "{name}");
        }
        for member in ["dqs", "explanation", "signals"] {
            assert_eq!(appraised[at][member], dossier["latestDrop"][member], "{name}");
        }
    }
    let listed = client.get("/api/v1/drops?q=solar.com&tld=com").json()["drops"][0].take();
    assert_eq!(appraised[0]["dqs"], listed["dqs"]);
}

#[test]
fn the_spread_includes_the_names_own_suffix() {
    let site = site();
    let (_server, mut client) = served(&site);
    let names = ["solar.com", "solar.de", "solar.net", "solarpanel.com", "kept.org", "kept.com"];
    let appraised = appraise(&mut client, &json!(names)).json()["appraisals"].take();
    let standings = [(true, 2), (true, 2), (false, 3), (false, 1), (true, 1), (false, 2)];
    let expected = scored(&site, names, &[]);
    for (at, (known, spread)) in standings.into_iter().enumerate() {
        let seen = (&appraised[at]["known"], &appraised[at]["signals"]["tldSpread"]);
        assert_eq!(seen, (&json!(known), &json!(spread)), "{}", names[at]);
        assert_eq!(appraised[at]["signals"], expected[at]["signals"]);
    }
}

#[test]
fn a_hundred_names_count_as_one_request() {
    let site = site();
    let (_server, mut client) = served(&site);
    let left = |response: &Response| response.number("x-ratelimit-remaining").expect("a number");
    let one = appraise(&mut client, &json!(["solar.com"]));
    let before = left(&one);
    // The longest allowed body, of the longest possible names: none of them is registrable.
    let long = format!("{}.com", "a.".repeat(124) + "b");
    assert_eq!(long.len(), 253);
    let hundred = appraise(&mut client, &json!(vec![long.as_str(); 100]));
    let reason = "the name is a host below a registrable name";
    let expected = json!({"count": 100, "appraisals": vec![refused(&long, reason); 100]});
    assert_eq!(hundred.answer(), (200, expected));
    assert_eq!(left(&hundred), before - 1);
    let hundred = appraise(&mut client, &json!(vec!["never-seen.com"; 100]));
    let [never] = appraisals(&site, [("never-seen.com", false)]);
    let expected = json!({"count": 100, "appraisals": vec![never; 100]});
    assert_eq!(hundred.answer(), (200, expected));
    assert_eq!(left(&hundred), before - 2);
    let bad = appraise(&mut client, &json!([]));
    assert_eq!((bad.status, left(&bad)), (400, before - 3));
    assert_eq!(bad.number("x-ratelimit-limit"), Some(10_000));
    assert!(bad.number("x-ratelimit-reset").is_some());
}

#[test]
fn clients_may_appraise_at_once_before_anything_was_scored() {
    let site = site();
    let key = site.account("owner@example.com", "api");
    let server = site.serve(TODAY);
    let clients: Vec<Client> = (0..8).map(|_| server.client_with(&key)).collect();
    let body = &json!({"domains": ["never-seen.com", "solar.com"]});
    let answers: Vec<(u16, Value)> = std::thread::scope(|scope| {
        let ask = |mut client: Client| client.send("POST", PATH, body).answer();
        let asking: Vec<_> =
            clients.into_iter().map(|client| scope.spawn(move || ask(client))).collect();
        asking.into_iter().map(|asked| asked.join().expect("answered")).collect()
    });
    let expected = appraisals(&site, [("never-seen.com", false), ("solar.com", true)]);
    for answer in answers {
        assert_eq!(answer, (200, json!({"count": 2, "appraisals": expected})));
    }
}

#[test]
fn a_malformed_body_is_refused_with_its_path() {
    let site = site();
    let (_server, mut client) = served(&site);
    let too_many = json!({"domains": vec!["solar.com"; 101]}).to_string();
    for (body, refusal) in [
        ("{}", "domains: is required"),
        (r#"{"domains": null}"#, "domains: is required"),
        (r#"{"domains": []}"#, "domains: must have 1 to 100 names, not 0"),
        (&too_many, "domains: must have 1 to 100 names, not 101"),
        (
            r#"{"domains": "solar.com"}"#,
            "domains: invalid type: string \"solar.com\", expected a sequence",
        ),
        (
            r#"{"domains": ["solar.com", 5]}"#,
            "domains[1]: invalid type: integer `5`, expected a string",
        ),
        (r#"{"domains": [null]}"#, "domains[0]: invalid type: null, expected a string"),
        (r#"{"domains": ["a.com"], "domains": []}"#, "domains: is given more than once"),
        (r#"{"domains": ["a.com"], "tld": "com"}"#, "tld: unknown field `tld`, expected `domains`"),
        (r#"["a.com"]"#, "body: must be a JSON object"),
        ("", "body: must be a JSON object"),
        (r#"{"domains"}"#, "body: is not valid JSON: expected `:` at line 1 column 11"),
    ] {
        let answer = client.send_with("POST", PATH, &[JSON], body.as_bytes()).answer();
        assert_eq!(answer, (400, error(refusal)), "{body}");
    }
    let good = r#"{"domains": ["a.com"]}"#;
    let kind = "Content-Type: must be application/json, without an encoding";
    let plain = [("Content-Type", "text/plain")];
    for headers in [&[][..], &plain, &[JSON, ("Content-Encoding", "gzip")]] {
        let answer = client.send_with("POST", PATH, headers, good.as_bytes()).answer();
        assert_eq!(answer, (415, error(kind)), "{headers:?}");
    }
    let full = format!("{good}{}", " ".repeat(64 * 1024 - good.len()));
    assert_eq!(client.send_with("POST", PATH, &[JSON], full.as_bytes()).status, 200);
    let over = format!("{full} ");
    let answer = client.send_with("POST", PATH, &[JSON], over.as_bytes()).answer();
    assert_eq!(answer, (413, error("body: must have at most 65536 bytes")));
}

#[test]
fn an_appraisal_needs_json_access_and_counts_one_request() {
    let site = site();
    let settings = site.settings("[plans.pro]\nrequests_per_day = 1\n");
    let keys = ["free", "core", "pro"].map(|plan| site.account(&format!("{plan}@a.com"), plan));
    let server = site.serve_with(&["--config", &settings, "--today", TODAY]);
    let solar = json!(["solar.com"]);
    let response = appraise(&mut server.client(), &solar);
    assert_eq!(response.answer(), (401, error("authentication required")));
    assert_eq!(response.header("www-authenticate"), Some("Bearer"));
    for (plan, key) in ["free", "core"].into_iter().zip(&keys) {
        let response = appraise(&mut server.client_with(key), &solar);
        let refusal = json!({
            "error": "JSON API access requires the Pro plan or above",
            "code": "PLAN_REQUIRED",
            "plan": plan,
        });
        assert_eq!(response.answer(), (403, refusal));
        assert_eq!(response.header("x-ratelimit-limit"), None);
    }
    let mut client = server.client_with(&keys[2]);
    assert_eq!(appraise(&mut client, &solar).status, 200);
    let response = appraise(&mut client, &solar);
    assert_eq!((response.status, &response.json()["error"]), (429, &json!("rate limit exceeded")));
}

#[test]
fn appraise_accepts_only_post_and_is_listed() {
    let site = site();
    let (server, mut client) = served(&site);
    for method in ["GET", "PUT", "PATCH", "DELETE"] {
        let response = client.send_with(method, PATH, &[JSON], b"{}");
        assert_eq!(response.answer(), (405, error("method not allowed")), "{method}");
        assert_eq!(response.header("allow"), Some("POST"), "{method}");
    }
    let endpoints = server.client().get("/api/v1").json()["endpoints"].take();
    let listed = endpoints.as_array().expect("an array").iter().any(|endpoint| {
        endpoint["method"] == "POST" && endpoint["path"] == PATH && endpoint["auth"] == true
    });
    assert!(listed, "{endpoints}");
    assert!(server.client().get("/api/docs").text().contains(&format!("## POST {PATH}\n")));
}

/// Splits the output into the tables of its names.
fn tables(printed: &str) -> Vec<Vec<&str>> {
    printed.split("\n\n").map(|table| table.lines().collect()).collect()
}

/// Asserts that a table matches the JSON of its name: score, explanation, and each part that moved
/// the score, with those that moved it most first.
#[track_caller]
fn assert_tells(table: &[&str], score: &Value) {
    let first =
        format!("{:>3}  {}", score["dqs"].to_string(), score["domain"].as_str().expect("a name"));
    assert_eq!(table[0].split(" (").next(), Some(first.as_str()));
    assert_eq!(table[1].trim_start(), score["explanation"].as_str().expect("a sentence"));
    let points = score["signals"]["points"].as_object().expect("parts");
    let points =
        points.iter().map(|(part, points)| (part.as_str(), points.as_i64().expect("whole")));
    let mut parts: Vec<_> = points.filter(|(_, points)| *points != 0).collect();
    parts.sort_by_key(|(_, points)| -points.abs());
    let told: Vec<(&str, i64)> = table[2..]
        .iter()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .take_while(|words| words.get(2).is_some_and(|bar| bar.starts_with(['█', '▌', '░'])))
        .map(|words| (words[0], words[1].parse().expect("points")))
        .collect();
    assert_eq!(told, parts, "{table:#?}");
}

#[test]
fn the_table_and_the_json_agree() {
    let site = site();
    let names = ["solar.com", "münchen.de", "a-b-c-d.com", "never-seen24.org"];
    let printed = site.ok(&[&["score"][..], &names].concat());
    assert!(printed.ends_with('\n') && !printed.ends_with("\n\n"), "{printed}");
    assert!(!printed.contains('\u{1b}'), "no colours: {printed}");
    let tables = tables(&printed);
    assert_eq!(tables.len(), names.len(), "{printed}");
    for (table, score) in tables.iter().zip(scored(&site, names, &[])) {
        assert_tells(table, &score);
    }
    assert!(tables[1][0].ends_with("xn--mnchen-3ya.de (münchen.de)"), "{printed}");
    assert!(!printed.contains("otherwise"), "not requested: {printed}");

    // Refused names are reported on standard error and leave no gap.
    let finished = site.run(&["score", "no name", "solar.com", "com", "kept.org"]);
    finished.assert_failed(1, &["names refused: 2 of 4"]);
    assert!(finished.stderr.contains("no name: the name holds"), "{finished}");
    let alone = site.ok(&["score", "solar.com", "kept.org"]);
    assert_eq!(finished.stdout, alone);
}

#[test]
fn why_not_scores_variants_of_the_name() {
    let site = site();
    let name = "solar-panel24.io";
    let [plain] = scored(&site, [name], &[]);
    let [mut asked, mut held] = scored(&site, [name, "solar.com"], &["--why-not"]);
    let why_not = asked["whyNot"].take();
    let changes = [
        ("solarpanel24.io", "without its hyphens"),
        ("solar-panel.io", "without its digits"),
        ("solar-panel24.com", "in .com"),
        ("solar-panel24.net", "in .net"),
        ("solar-panel24.org", "in .org"),
        ("solar-panel24.de", "in .de"),
    ];
    let points = |score: &Value| score["dqs"].as_i64().expect("a score");
    let others = scored(&site, changes.map(|(domain, _)| domain), &[]);
    let otherwise = |((domain, change), other): ((&str, &str), &Value)| {
        let (dqs, difference) = (points(other), points(other) - points(&plain));
        json!({"domain": domain, "change": change, "dqs": dqs, "difference": difference})
    };
    let expected: Vec<Value> = changes.into_iter().zip(&others).map(otherwise).collect();
    assert_eq!(why_not, json!(expected));
    asked.as_object_mut().expect("an object").remove("whyNot");
    assert_eq!(asked, plain, "the rest is the same");

    let printed = site.ok(&["score", "--why-not", name, "solar.com"]);
    let tables = tables(&printed);
    assert_eq!(tables.len(), 2, "{printed}");
    assert_tells(&tables[0], &plain);
    let from = tables[0].iter().position(|line| line.trim() == "otherwise:").expect("asked for");
    for (line, other) in tables[0][from + 1..].iter().zip(&expected) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let text = |member: &str| other[member].as_str().expect("text").to_owned();
        assert_eq!(words[0], other["dqs"].to_string(), "{line}");
        assert_eq!(words[2..].join(" "), format!("{} {}", text("domain"), text("change")));
    }
    assert_eq!(tables[0].len() - from - 1, expected.len(), "{printed}");
    // The label is in two TLDs, so the queried name would add a third one.
    let net = held["whyNot"][0].take();
    let [seen_thrice] = scored(&site, ["solar.net"], &[]);
    assert_eq!(seen_thrice["signals"]["tldSpread"], 3);
    assert_eq!((&net["change"], &net["dqs"]), (&json!("in .net"), &seen_thrice["dqs"]));
}

#[test]
fn a_refused_name_keeps_its_place_in_the_json() {
    let site = Site::new();
    let finished = site.run(&["score", "--json", "--why-not", "solar.com", "com", "a.de"]);
    finished.assert_failed(1, &["names refused: 1 of 3"]);
    let lines: Vec<Value> = finished
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect();
    assert_eq!(lines[1], refused("com", "the name is a public suffix itself"));
    // No index exists, so the label is known in no other TLD.
    for (at, domain) in [(0, "solar.com"), (2, "a.de")] {
        let seen = (&lines[at]["domain"], &lines[at]["signals"]["tldSpread"]);
        assert_eq!(seen, (&json!(domain), &json!(1)));
        assert_eq!(lines[at]["whyNot"].as_array().map(Vec::len), Some(4));
    }
}
