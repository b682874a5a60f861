//! Patterns, regular expressions and similar labels in the drop list, the export and the search;
//! label families, suffixes and batches of searches. Unit tests of the matchers cover how
//! they read a label.

use serde_json::{Value, json};

use crate::common::http::escape;
use crate::common::json::error;
use crate::common::{Client, Server, Site, TODAY};

const LIST: &str = "\
domain,drop_date,release_date,status
solar.com,2026-03-10,,
solars.com,2026-03-10,,
solar.de,2026-01-12,,
so-lar.com,2026-03-01,,
sloar.com,2026-03-01,,
polar.io,2026-03-02,,
mybank.com,2026-03-03,,
bank.com,2026-03-03,,
2026.com,2026-03-04,,
münchen.de,2026-03-01,,
kept-solar.org,,,registered
solar.org,,,registered
";

fn served(site: &Site) -> (Server, Client) {
    let list = site.write("list.csv", LIST);
    site.ingest(&list, "2026-03-15T00:00:00Z");
    let key = site.account("owner@example.com", "api");
    let server = site.serve(TODAY);
    let client = server.client_with(&key);
    (server, client)
}

/// Returns the names of a page, sorted.
fn names(body: &Value, list: &str, member: &str) -> Vec<String> {
    let rows = body[list].as_array().unwrap_or_else(|| panic!("{body}"));
    let mut names: Vec<String> =
        rows.iter().map(|row| row[member].as_str().expect("a name").to_owned()).collect();
    names.sort();
    names
}

#[test]
fn labels_are_matched_in_drops_search_and_export() {
    let site = Site::new();
    let (_server, mut client) = served(&site);
    for (query, dropped, others) in [
        ("pattern=CVCVC", &["polar.io", "solar.com", "solar.de"][..], &["solar.org"][..]),
        ("pattern=*bank", &["bank.com", "mybank.com"], &[]),
        ("pattern=NNNN", &["2026.com"], &[]),
        ("pattern=m%C3%BCL*", &["xn--mnchen-3ya.de"], &[]),
        ("pattern=xn--*", &["xn--mnchen-3ya.de"], &[]),
        ("regex=bank", &["bank.com", "mybank.com"], &[]),
        ("regex=%5Es.%2Blar%24", &["so-lar.com", "solar.com", "solar.de"], &["solar.org"]),
        ("regex=%5Em.nchen%24", &["xn--mnchen-3ya.de"], &[]),
        ("regex=(SOLAR%7Cbank)s", &["solars.com"], &[]),
        (
            "like=solar",
            &["polar.io", "sloar.com", "so-lar.com", "solar.com", "solar.de", "solars.com"],
            &["solar.org"],
        ),
        ("like=bankk&distance=2&max_len=4", &["bank.com"], &[]),
        ("like=solar&pattern=*s&tld=com", &["solars.com"], &[]),
    ] {
        let (status, body) = client.get(&format!("/api/v1/drops?view=all&{query}")).answer();
        assert_eq!(status, 200, "{query}: {body}");
        assert_eq!(names(&body, "drops", "name"), dropped, "{query}");
        assert_eq!(body["total"], dropped.len(), "{query}");
        let csv = client.get(&format!("/api/export/drops?view=all&{query}"));
        assert_eq!(csv.text().lines().count(), dropped.len() + 1, "{query}");
        let (status, body) = client.get(&format!("/api/v1/search?{query}")).answer();
        assert_eq!(status, 200, "{query}: {body}");
        let mut all = [dropped, others].concat();
        all.sort_unstable();
        assert_eq!(names(&body, "results", "domain"), all, "{query}");
        assert_eq!((&body["total"], &body["query"]), (&json!(all.len()), &json!("")), "{query}");
        let (_, body) = client.get(&format!("/api/v1/search?q=sol&{query}")).answer();
        let below: Vec<&str> = all.into_iter().filter(|name| name.starts_with("sol")).collect();
        assert_eq!(names(&body, "results", "domain"), below, "{query} below a prefix");
    }
}

/// There are two ways to find a label: the drop list narrows by trigrams and reads the remaining
/// labels; the search walks all names in order and skips prefixes.
#[test]
fn drops_and_search_find_the_same_labels() {
    let mut rng = fastrand::Rng::with_seed(7);
    let syllables = ["so", "lar", "x", "xa", "ba", "nk", "1", "-", "ü", "日", "sh", "op", "e"];
    let mut list = String::from("domain,drop_date,release_date,status\n");
    for at in 0..1_500 {
        let parts = (0..rng.usize(1..5)).map(|_| syllables[rng.usize(..syllables.len())]);
        let label: String = parts.collect();
        // Numbers make most labels distinct, and fewer than one name in ten is invalid.
        let number = if at % 3 == 0 { String::new() } else { at.to_string() };
        let label = format!("{}{number}", label.trim_matches('-')).replace("--", "-");
        if !label.is_empty() {
            list += &format!("{label}.com,2026-03-10,,\n");
        }
    }
    let site = Site::new();
    let list = site.write("list.csv", &list);
    site.ingest(&list, "2026-03-15T00:00:00Z");
    let key = site.account("owner@example.com", "api");
    let server = site.serve(TODAY);
    let mut client = server.client_with(&key);
    let mut found = 0;
    for query in [
        "pattern=ü*",
        "pattern=LL",
        "pattern=*NN",
        "pattern=sh*",
        "pattern=x*N",
        "pattern=?ü*",
        "pattern=CV*bank*",
        "pattern=L-L*",
        "pattern=xn--*",
        "pattern=日L*",
        "regex=^ü",
        "regex=bank$",
        "regex=(solar|shop)",
        "regex=^x(a|n)*[0-9]+$",
        "regex=.日",
        "regex=^.{2}$",
        "regex=a[^0-9]*1",
        "regex=^[^x]",
        "regex=sh?o",
        "like=solar",
        "like=shop&distance=2",
        "like=bank1",
        "like=ü日ü",
        "starts=ü,xa",
        "ends=ü,nk",
        "contains=日,olar",
        "not_contains=a",
        "pattern=L*&not_ends=1",
        "regex=sol&max_len=6",
        "pattern=*ü*&min_len=3",
    ] {
        let (name, rest) = query.split_once('=').expect("a parameter");
        let (value, more) = rest.split_once('&').unwrap_or((rest, ""));
        let query = format!("{name}={}&{more}", escape(value));
        let (_, drops) = client.get(&format!("/api/v1/drops?limit=100&{query}")).answer();
        // Without another condition on the text, a search needs a prefix.
        let all = if name.starts_with("not_") { "regex=." } else { "" };
        let target = format!("/api/v1/search?limit=100&{query}&{all}");
        let (status, search) = client.get(&target).answer();
        assert_eq!((status, &search["total"]), (200, &drops["total"]), "{query}: {search}");
        let named = |body: &Value, list: &str, member: &str| -> Vec<Value> {
            let rows = body[list].as_array().expect("an array");
            rows.iter().map(|row| row[member].clone()).collect()
        };
        let mut one = named(&search, "results", "domain");
        let mut other = named(&drops, "drops", "name");
        // Names with the same score are ordered differently in the two lists.
        if one.len() < 100 {
            one.sort_by_key(Value::to_string);
            other.sort_by_key(Value::to_string);
            assert_eq!(one, other, "{query}");
        }
        found += usize::from(!one.is_empty());
    }
    assert!(found > 20, "{found} queries found something");
}

#[test]
fn invalid_texts_are_refused_with_code_and_position() {
    let site = Site::new();
    let (_server, mut client) = served(&site);
    for (query, parameter, code, what) in [
        ("pattern=CVX".to_owned(), "pattern", "invalid_pattern", "symbol 3 is \"X\""),
        ("pattern=*a*a*a*a*".to_owned(), "pattern", "invalid_pattern", "at most 4 `*`"),
        (format!("pattern={}", "a".repeat(64)), "pattern", "invalid_pattern", "1 to 63 symbols"),
        ("regex=ab(c".to_owned(), "regex", "invalid_regex", "at character 3: unclosed group"),
        ("regex=(a)%5C1".to_owned(), "regex", "invalid_regex", "backreferences"),
        (format!("regex={}", "a".repeat(201)), "regex", "invalid_regex", "1 to 200 characters"),
        (
            format!("regex={}", escape("[a-z]*a[a-z]{20}")),
            "regex",
            "regex_too_large",
            "its automaton exceeds 1 MiB",
        ),
        ("like=ab".to_owned(), "like", "invalid_value", "3 to 30 characters"),
        ("like=solar&distance=3".to_owned(), "distance", "invalid_value", "from 1 to 2"),
    ] {
        for path in ["/api/v1/drops", "/api/v1/search", "/api/export/drops"] {
            let target = format!("{path}?{query}");
            // Refusals are cached, so the second request takes no time.
            for _ in 0..2 {
                let (status, body) = client.get(&target).answer();
                assert_eq!(status, 400, "{target}: {body}");
                assert_eq!((&body["code"], &body["parameter"]), (&json!(code), &json!(parameter)));
                let text = body["error"].as_str().unwrap_or_default();
                assert!(text.starts_with(&format!("{parameter}: ")), "{target}: {body}");
                assert!(text.contains(what), "{target}: {body}");
            }
        }
    }
}

#[test]
fn addresses_and_decomposed_texts_find_the_name() {
    let site = Site::new();
    let (_server, mut client) = served(&site);
    for q in
        ["solar.com.", "http://solar.com/", "HTTPS://www.Solar.com/path?x=1#y", "www.solar.com"]
    {
        let q = escape(q);
        for (target, list, member) in [
            (format!("/api/v1/search?q={q}"), "results", "domain"),
            (format!("/api/v1/drops?q={q}"), "drops", "name"),
        ] {
            let (status, body) = client.get(&target).answer();
            assert_eq!(status, 200, "{target}: {body}");
            assert_eq!(names(&body, list, member), ["solar.com"], "{target}");
        }
        let (_, body) = client.get(&format!("/api/v1/suggest?q={q}")).answer();
        assert_eq!(body["names"][0]["name"], "solar.com", "{q}");
    }
    for query in ["regex", "pattern", "starts", "contains", "like"] {
        let text = if query == "regex" { "^mu\u{308}nchen" } else { "mu\u{308}nchen" };
        let (_, body) = client.get(&format!("/api/v1/drops?{query}={}", escape(text))).answer();
        assert_eq!(names(&body, "drops", "name"), ["xn--mnchen-3ya.de"], "{query}");
    }
    let sent =
        json!({"domains": ["https://www.solar.com/path", "uk.com", "a.uk.com", "www.solar.com"]});
    let (_, body) = client.send("POST", "/api/v1/appraise", &sent).answer();
    let rows = body["appraisals"].as_array().unwrap_or_else(|| panic!("{body}"));
    assert_eq!((&rows[0]["domain"], &rows[1]["domain"]), (&json!("solar.com"), &json!("uk.com")));
    assert!(rows[2]["error"].is_string() && rows[3]["error"].is_string(), "{body}");
}

#[test]
fn a_label_has_its_names_and_variants() {
    let site = Site::new();
    let (_server, mut client) = served(&site);
    let (status, body) = client.get("/api/v1/label/SOLAR").answer();
    assert_eq!((status, &body["label"], &body["count"]), (200, &json!("solar"), &json!(3)));
    assert_eq!(names(&body, "names", "domain"), ["solar.com", "solar.de", "solar.org"]);
    for name in body["names"].as_array().expect("an array") {
        let (_, search) = client
            .get(&format!("/api/v1/search?q={}", name["domain"].as_str().expect("a name")))
            .answer();
        let row = &search["results"][0];
        assert_eq!(name["currentStatus"], row["currentStatus"], "{name}");
        assert_eq!(name["dropDate"], row["latestDrop"]["date"], "{name}");
        if !row["latestDrop"].is_null() {
            assert_eq!(name["dqs"], row["latestDrop"]["dqs"], "{name}");
        }
    }
    let com = body["names"].as_array().and_then(|names| names.iter().find(|it| it["tld"] == "com"));
    let com = com.expect("solar.com");
    assert_eq!((&com["stage"], &com["dropDate"]), (&json!("redemption"), &json!("2026-03-10")));
    let hour = ["releaseDate", "releaseAt", "releaseCertainty", "releaseWindowMinutes"];
    let hour = hour.map(|member| com[member].clone());
    assert_eq!(json!(hour), json!(["2026-04-14", "2026-04-14T18:00:00.000Z", "window", 60]));
    let variants = body["variants"].as_array().expect("an array");
    let shown: Vec<(&Value, &Value, &Value)> =
        variants.iter().map(|it| (&it["label"], &it["kind"], &it["names"][0]["domain"])).collect();
    let expected = [("so-lar", "hyphen"), ("solars", "plural")]
        .map(|(label, kind)| (json!(label), json!(kind), json!(format!("{label}.com"))));
    let expected: Vec<_> = expected.iter().map(|(label, kind, name)| (label, kind, name)).collect();
    assert_eq!(shown, expected);
    let (_, idn) = client.get(&format!("/api/v1/label/{}", escape("München"))).answer();
    assert_eq!(names(&idn, "names", "domain"), ["xn--mnchen-3ya.de"]);
    let (status, unknown) = client.get("/api/v1/label/nothing").answer();
    let empty = json!({"label": "nothing", "count": 0, "names": [], "variants": []});
    assert_eq!((status, unknown), (200, empty));
    let answer = client.get("/api/v1/label/solar.com").answer();
    assert_eq!(answer, (400, error("label: must be one label, without a dot")));
}

#[test]
fn suffixes_have_names_stages_and_periods() {
    let site = Site::new();
    let (_server, mut client) = served(&site);
    let (status, body) = client.get("/api/v1/tlds").answer();
    assert_eq!((status, &body["count"]), (200, &json!(4)), "{body}");
    let tlds = body["tlds"].as_array().expect("an array");
    let counts: Vec<(&Value, &Value)> = tlds.iter().map(|it| (&it["tld"], &it["names"])).collect();
    assert_eq!(counts[0], (&json!("com"), &json!(7)));
    for row in tlds {
        let tld = row["tld"].as_str().expect("a TLD");
        for stage in ["redemption", "pending-delete", "catchable", "released"] {
            let target = format!("/api/v1/drops?tld={tld}&stage={stage}");
            let (_, drops) = client.get(&target).answer();
            assert_eq!(row["pipeline"][stage], drops["total"], "{target}");
        }
    }
    let com = &tlds[0];
    assert_eq!((&com["redemptionDays"], &com["pendingDeleteDays"]), (&json!(30), &json!(5)));
    assert_eq!(com["rdap"], true);
    assert_eq!(com["registration"], "open");
    let (_, newest) = client.get("/api/v1/drops?view=all&tld=com&sort=listed&limit=1").answer();
    assert_eq!(com["newestList"], newest["drops"][0]["listedAt"]);
}

#[test]
fn a_batch_keeps_the_order_and_counts_each_search() {
    let site = Site::new();
    let (_server, mut client) = served(&site);
    let remaining = |client: &mut Client| {
        let response = client.get("/api/v1/search?q=solar");
        response.number("x-ratelimit-remaining").expect("counted")
    };
    let before = remaining(&mut client);
    let queries = json!([
        {"q": "solar", "limit": 2},
        {"pattern": "*bank"},
        {"contains": ["solar", "a,b"], "tld": ["com", "de"], "min_dqs": 0},
    ]);
    let response = client.send("POST", "/api/v1/search/batch", &json!({ "queries": queries }));
    assert_eq!(response.number("x-ratelimit-remaining"), Some(before - 3));
    let (status, body) = response.answer();
    assert_eq!((status, &body["count"]), (200, &json!(3)), "{body}");
    for (at, target) in [
        "/api/v1/search?q=solar&limit=2",
        "/api/v1/search?pattern=*bank",
        "/api/v1/search?contains=solar&tld=com,de",
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(body["results"][at], client.get(target).json(), "{target}");
    }
    for (queries, expected) in [
        (json!([]), error("queries: must have 1 to 50 searches, not 0")),
        (json!(vec![json!({"q": "a"}); 51]), error("queries: must have 1 to 50 searches, not 51")),
        (
            json!([{"q": "a"}, {"q": "a", "min_dqs": 101}]),
            error("queries[1].min_dqs: must be an integer from 0 to 100"),
        ),
        (
            json!([{"q": "a", "min_dsq": 1}]),
            json!({
                "error": "unknown parameter \"queries[0].min_dsq\"; did you mean \"min_dqs\"?",
                "code": "unknown_parameter",
                "parameter": "queries[0].min_dsq",
            }),
        ),
    ] {
        let sent = json!({ "queries": queries });
        let answer = client.send("POST", "/api/v1/search/batch", &sent).answer();
        assert_eq!(answer, (400, expected));
    }
}

/// Without trigrams of all names, a search reads every name, and the list of suffixes says so.
#[test]
fn an_index_without_trigrams_finds_the_same_and_says_so() {
    let site = Site::new();
    let (server, mut client) = served(&site);
    let targets = ["contains=ola", "ends=nk", "pattern=*bank", "regex=ola.s?$", "like=solarr"];
    let targets = targets.map(|query| format!("/api/v1/search?{query}"));
    let answers = targets.each_ref().map(|target| client.get(target).json());
    assert_eq!(client.get("/api/v1/tlds").json()["contains"], "all");
    server.stop();
    let settings = site.settings("[index]\ncontains = \"drops\"\n");
    site.ok(&["rebuild", "--config", &settings]);
    let server = site.serve(TODAY);
    let key = site.account("other@example.com", "api");
    let mut client = server.client_with(&key);
    assert_eq!(client.get("/api/v1/tlds").json()["contains"], "drops");
    for (target, before) in targets.iter().zip(answers) {
        assert_ne!(before["total"], 0, "{target}");
        assert_eq!(client.get(target).json(), before, "{target}");
    }
}

#[test]
fn an_account_sees_its_limits_and_what_it_used_for_nothing() {
    let site = Site::with_a_name_of_each_kind();
    let key = site.account("owner@example.com", "pro");
    let server = site.serve(TODAY);
    let mut client = server.client_with(&key);
    let begun = client.get("/api/v1/account");
    assert_eq!((begun.status, begun.json()["requests"]["used"].clone()), (200, json!(0)));
    client.send("POST", "/api/v1/watchlist", &json!({"domainName": "solar.com"}));
    let used = 1
        + (0..200).position(|_| client.get("/api/v1/tlds?limit=1").status == 429).expect("bounded");
    assert_eq!(used, 100, "the day's allowance");
    let response = client.get("/api/v1/account");
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(response.header("ratelimit"), Some("\"day\";r=0"));
    assert_eq!(response.header("ratelimit-policy"), Some("\"day\";q=100;w=86400"));
    let expected = json!({
        "plan": "pro",
        "scopes": ["read", "export", "watchlist", "alerts", "portfolio", "feeds", "mcp"],
        "requests": {"used": 100, "limit": 100},
        "exports": {"used": 0, "limit": 50},
        "resetsAt": response.json()["resetsAt"],
        "concurrentExports": 2,
        "writesPerMinute": 600,
        "suggestionsPerMinute": 6_000,
        "activeRules": {"used": 0, "limit": 25},
        "externalNames": {"used": 0, "limit": 100},
        "watches": {"used": 1, "limit": response.json()["watches"]["limit"]},
        "claims": {"used": 0, "limit": response.json()["claims"]["limit"]},
    });
    assert_eq!(response.json(), expected);
    assert_eq!(server.client().get("/api/v1/account").status, 401);
}
