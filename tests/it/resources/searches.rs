//! `/api/v1/searches`, and filters of every kind in rules and previews.

use dropdex::query::conditions::CONDITIONS;
use serde_json::{Value, json};

use super::{add, added_id, column, error, hide_times, served, site};
use crate::common::{Site, TODAY, wait};

const PATH: &str = "/api/v1/searches";

/// A filter with every member, in the form of responses.
fn every_member() -> Value {
    json!({
        "tlds": ["com", "xn--p1ai"], "notTlds": ["de"], "minDqs": 0, "maxDqs": 90,
        "minLength": 3, "maxLength": 20, "contains": ["a", "b,c"], "q": "shop",
        "starts": ["get", "say \"hi\""], "ends": ["s"], "notContains": ["x"], "notStarts": ["the"],
        "notEnds": ["24"], "pattern": "CVC*", "regex": "^g", "like": "getshops", "distance": 2,
        "stages": ["catchable", "redemption"], "digits": "none", "hyphens": "some", "idn": "none",
        "minWords": 1, "maxWords": 3, "languages": ["en", "de"], "kinds": ["word", "words"],
        "caps": "none", "minTlds": 0, "maxTlds": 5, "minDrops": 2, "releaseWithinDays": 9,
        "droppedFrom": "-30d", "droppedTo": "2026-03-20", "listedSince": "2026-01-01",
        "maxRank": 100_000,
        "maxSuffixRank": 50, "expectedTaken": 30,
        "typo": "none", "facts": ["acme.rank:1..9"], "has": ["acme.rank", "!acme.kind"],
        "adult": "include",
    })
}

#[test]
fn searches_are_saved_counted_changed_and_deleted() {
    let site = site();
    let (server, mut client) = served(&site);
    let empty = json!({"count": 0, "total": 0, "limit": 100, "offset": 0, "searches": []});
    assert_eq!(client.get(PATH).answer(), (200, empty.clone()));
    let sent = json!({"name": "Free", "filter": {"tlds": [".COM"], "contains": "FREE"}, "sort": "release"});
    let response = add(&mut client, PATH, &sent);
    let id = added_id(&response, PATH);
    let mut search = response.json()["search"].take();
    hide_times(&mut search, &["createdAt"]);
    let mut expected = json!({
        "id": id, "name": "Free", "filter": {"tlds": ["com"], "contains": "free"}, "sort": "release",
        "order": "asc", "total": 2, "totalExact": true, "newSinceSeen": 0, "createdAt": "now",
    });
    assert_eq!(search, expected);

    // Names of a new list count as new until the search is seen.
    let list = site
        .write("next.csv", "domain,drop_date\nfree-more.com,2026-03-01\nother.com,2026-03-01\n");
    site.ingest(&list, "2026-03-16T00:00:00Z");
    wait::until_ok(std::time::Duration::from_secs(60), || {
        let found = client.get(PATH).json()["searches"][0].take();
        match found["newSinceSeen"] == json!(1) {
            true => Ok(()),
            false => Err(found.to_string()),
        }
    });
    let one = format!("{PATH}/{id}");
    let patch = json!({"name": "Free ones", "order": "desc", "seen": true});
    let (status, mut body) = client.send("PATCH", &one, &patch).answer();
    hide_times(&mut body["search"], &["createdAt"]);
    for (member, value) in
        [("name", json!("Free ones")), ("order", json!("desc")), ("total", json!(3))]
    {
        expected[member] = value;
    }
    assert_eq!((status, body), (200, json!({"search": expected})));
    let filter = json!({"filter": {"maxLength": 9, "releaseFrom": "tomorrow"}});
    let body = client.send("PATCH", &one, &filter).json();
    assert_eq!(body["search"]["filter"], filter["filter"]);
    assert_eq!((&body["search"]["sort"], &body["search"]["total"]), (&json!("release"), &json!(5)));

    // Other accounts have none of these searches.
    let mut other = server.client_with(&site.account("other@example.com", "api"));
    assert_eq!(other.get(PATH).answer(), (200, empty));
    assert_eq!(other.send("PATCH", &one, &json!({"name": "x"})).status, 404);
    assert_eq!(other.request("DELETE", &one, &[]).status, 404);
    let deleted = client.request("DELETE", &one, &[]).answer();
    assert_eq!(deleted, (200, json!({"id": id, "deleted": true})));
    assert_eq!(client.request("DELETE", &one, &[]).status, 404);
}

#[test]
fn searches_without_time_to_count_have_no_total() {
    const SEARCHES: usize = 60;
    let names = (0..20_000).map(|number| format!("{:x}name{number:05}.com", number * 7_919));
    let site = Site::with_names(names, TODAY);
    let key = site.account("a@example.com", "api");
    let server = site.serve(TODAY);
    let mut client = server.client_with(&key);
    for number in 0..SEARCHES {
        let filter = json!({"regex": format!(".*[a-f]1.*{number}.*"), "maxLength": 20});
        let saved = add(&mut client, PATH, &json!({"name": format!("{number}"), "filter": filter}));
        assert_eq!(saved.status, 201, "{}", saved.text());
    }
    drop(server);
    // Counts are not kept across a restart.
    let server = site.serve(TODAY);
    let mut client = server.client_with(&key);
    let mut counted_before = 0;
    wait::until_ok(std::time::Duration::from_secs(120), || {
        let answer = client.get(PATH);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let searches = answer.json()["searches"].take();
        let searches = searches.as_array().expect("searches");
        assert_eq!(searches.len(), SEARCHES);
        for search in searches {
            assert_eq!(search["total"].is_null(), search["newSinceSeen"].is_null(), "{search}");
        }
        let counted = searches.iter().filter(|search| search["total"].is_u64()).count();
        assert!(counted > counted_before || counted == SEARCHES, "{counted}: no progress");
        counted_before = counted;
        if counted == SEARCHES { Ok(()) } else { Err(format!("{counted} have a total")) }
    });
}

#[test]
fn every_member_of_a_filter_is_kept_and_has_its_parameter() {
    let site = site();
    let (_server, mut client) = served(&site);
    let facts = "domain,acme.rank:int,acme.kind:enum\nfree-early.com,5,\npending.com,50,red\n";
    let kind = [("Content-Type", "text/csv")];
    assert_eq!(client.send_with("POST", "/api/v1/facts", &kind, facts.as_bytes()).status, 201);
    let all = every_member();
    let missing = CONDITIONS.iter().map(|it| it.member).filter(|&member| all.get(member).is_none());
    assert_eq!(
        missing.collect::<Vec<_>>(),
        ["releaseFrom", "releaseTo"],
        "`releaseWithinDays` stands for them"
    );
    let body = client.send("POST", PATH, &json!({"name": "all", "filter": all})).json();
    assert_eq!(body["search"]["filter"], all);
    let rule = json!({"name": "all", "filter": all, "channels": [{"type": "email"}]});
    let body = client.send("POST", "/api/v1/alerts", &rule).json();
    assert_eq!(body["alert"]["filter"], all);
    // Each member on its own finds the same names as its parameter.
    for (filter, query) in [
        (json!({"notTlds": ["de"]}), "not_tld=de"),
        (json!({"minLength": 7, "maxLength": 9}), "min_len=7&max_len=9"),
        (json!({"contains": "e.c"}), "q=e.c"),
        (json!({"contains": ["ree", "inchen"]}), "contains=ree,inchen"),
        (json!({"starts": ["mü"]}), "starts=m%C3%BC"),
        (json!({"notEnds": ["early", "late"]}), "not_ends=early,late"),
        (json!({"pattern": "CV*"}), "pattern=CV*"),
        (json!({"regex": "^(free|redeem)"}), "regex=%5E(free%7Credeem)"),
        (json!({"like": "pendign"}), "like=pendign"),
        (json!({"hyphens": "some"}), "hyphens=some"),
        (json!({"idn": "only"}), "idn=only"),
        (json!({"kinds": ["word", "invented"]}), "kind=word,invented"),
        (json!({"languages": ["en"]}), "language=en"),
        (json!({"minWords": 1, "caps": "none"}), "min_words=1&caps=none"),
        (json!({"maxTlds": 0, "minDrops": 1}), "max_tlds=0&min_drops=1"),
        (json!({"expectedTaken": 0}), "expected_taken=0"),
        (json!({"facts": ["acme.rank:1..9"]}), "fact.acme.rank=1..9"),
        (json!({"has": ["!acme.kind", "acme.rank"]}), "has=acme.rank,!acme.kind"),
        (json!({"releaseWithinDays": 5}), "release_from=today&release_to=%2B5d"),
        (json!({"stages": ["released"]}), "stage=released"),
        (json!({"droppedFrom": "2026-02-09"}), "dropped_from=2026-02-09"),
    ] {
        let listed = client.get(&format!("/api/v1/drops?{query}")).json()["total"].take();
        let preview = client.send("POST", "/api/v1/alerts/preview", &json!({"filter": filter}));
        assert_eq!(preview.json()["today"], listed, "{query}: {}", preview.text());
        let saved = client.send("POST", PATH, &json!({"name": "one", "filter": filter})).json();
        assert_eq!((&saved["search"]["total"], &saved["search"]["filter"]), (&listed, &filter));
    }
}

#[test]
fn a_rule_takes_the_filter_of_a_search() {
    let site = site();
    let (_server, mut client) = served(&site);
    let search =
        json!({"name": "mine", "filter": {"starts": ["free"], "minDqs": 1}, "sort": "name"});
    let id = added_id(&client.send("POST", PATH, &search), PATH);
    let rule = |search: Value| json!({"name": "from it", "searchId": search, "channels": [{"type": "email"}]});
    let body = client.send("POST", "/api/v1/alerts", &rule(json!(id))).json();
    assert_eq!(body["alert"]["filter"], search["filter"]);
    assert_eq!(body["alert"]["searchId"], json!(id));
    // Once the rule has its own filter, it no longer belongs to the search.
    let target = format!("/api/v1/alerts/{}", body["id"]);
    let same = client.send("PATCH", &target, &json!({"name": "renamed"})).json();
    assert_eq!(same["alert"]["searchId"], json!(id));
    let other = client.send("PATCH", &target, &json!({"filter": {"minDqs": 1}})).json();
    assert_eq!(other["alert"].get("searchId"), None);
    for (body, refusal) in [
        (rule(json!(id + 1)), "searchId: must be one of your saved searches"),
        (rule(json!(-1)), "searchId: must be one of your saved searches"),
        (
            json!({"name": "a", "searchId": id, "filter": {}, "channels": [{"type": "email"}]}),
            "searchId: must not be given with filter",
        ),
    ] {
        let answer = client.send("POST", "/api/v1/alerts", &body).answer();
        assert_eq!(answer, (400, error(refusal)));
    }
}

#[test]
fn invalid_searches_are_refused() {
    let site = site();
    let (_server, mut client) = served(&site);
    let good = json!({"name": "a", "filter": {}});
    let one = format!("{PATH}/{}", added_id(&client.send("POST", PATH, &good), PATH));
    let crossed = |refusal: &str, code: &str| {
        let parameter = refusal.split(':').next().unwrap_or_default();
        json!({"error": refusal, "code": code, "parameter": parameter})
    };
    for (member, value, refusal) in [
        ("name", json!(""), error("name: must have 1 to 100 characters")),
        (
            "sort",
            json!("best"),
            error(
                "sort: must be one of dqs, release, dropped, length, name, tlds, listed, rank, suffix_rank, expected_taken, fact",
            ),
        ),
        ("order", json!("up"), error("order: must be one of asc, desc")),
        (
            "filter",
            json!({"minDqs": 5, "maxDqs": 4}),
            crossed("filter.minDqs: must not be above maxDqs", "crossed_range"),
        ),
        (
            "filter",
            json!({"regex": "a.{20}$"}),
            crossed(
                "filter.regex: is too large: its automaton exceeds 1 MiB; anchor it with ^ or $, or shorten its repetitions",
                "regex_too_large",
            ),
        ),
        ("filter", json!({"regex": " "}), error("filter.regex: must not be empty")),
        (
            "filter",
            json!({"starts": ["a", ""]}),
            error("filter.starts[1]: must have 1 to 63 characters"),
        ),
        (
            "filter",
            json!({"releaseWithinDays": 367}),
            error("filter.releaseWithinDays: must be an integer from 0 to 366"),
        ),
    ] {
        let mut body = good.clone();
        body[member] = value.clone();
        assert_eq!(client.send("POST", PATH, &body).answer(), (400, refusal.clone()), "{value}");
        let patch = json!({member: value});
        assert_eq!(client.send("PATCH", &one, &patch).answer(), (400, refusal), "{patch}");
    }
    for body in
        [json!({"name": "a"}), json!({"filter": {}}), json!({"name": "a", "filter": {}, "id": 1})]
    {
        assert_eq!(client.send("POST", PATH, &body).status, 400, "{body}");
    }
    assert_eq!(
        client.send("PATCH", &one, &json!({"seen": false})).answer(),
        (400, error("seen: must be true"))
    );
    for at in 1..100 {
        let body = json!({"name": format!("s{at}"), "filter": {}});
        assert_eq!(client.send("POST", PATH, &body).status, 201);
    }
    let full = client.send("POST", PATH, &good);
    assert_eq!(
        (full.status, &full.json()["code"], &full.json()["limit"]),
        (403, &json!("PLAN_LIMIT"), &json!(100))
    );
    let names = column(&client.get(&format!("{PATH}?limit=2&offset=1")).json()["searches"], "name");
    assert_eq!(names, ["s98", "s97"]);
}
