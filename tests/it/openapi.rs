//! The OpenAPI document: valid, the same from the command and over HTTP, complete, and consistent
//! with the server's responses, according to third-party validators (`tests/it/openapi/check.py`).

mod compat;

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::{Client, Response, Site, TODAY, tools, wait};
use crate::sales;

const GOLDEN: &str = "tests/golden/openapi.json";

fn document(site: &Site) -> Value {
    serde_json::from_str(&site.ok(&["openapi"])).expect("JSON")
}

/// The document as last reviewed. After a change of the API, run `DROPDEX_BLESS=1 cargo test --test it
/// openapi::`, and review the difference.
#[test]
fn no_member_changes_unnoticed() {
    let printed = Site::new().ok(&["openapi"]);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(GOLDEN);
    if env::var_os("DROPDEX_BLESS").is_some() {
        fs::write(&path, &printed).expect("the golden file can be written");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let differs = kept.lines().zip(printed.lines()).find(|(kept, printed)| kept != printed);
    assert!(
        kept == printed,
        "the document changed: {differs:?}; if it is meant, \
         DROPDEX_BLESS=1 cargo test --test it openapi::"
    );
}

/// The document of the last release (`data/docs/stability.md`).
const RELEASED: &str = "tests/golden/openapi-released.json";

#[test]
fn a_difference_that_breaks_clients_is_named() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| fs::read_to_string(root.join(path)).expect("the file");
    let parse = |path: &str| serde_json::from_str::<Value>(&read(path)).expect("JSON");
    let changes = read("data/docs/api-changes.md");
    let mut unnamed = compat::breaking(&parse(RELEASED), &parse(GOLDEN));
    unnamed.retain(|line| !changes.contains(line.as_str()));
    assert!(
        unnamed.is_empty(),
        "keep what clients rely on, or name each line in data/docs/api-changes.md:\n{}",
        unnamed.join("\n")
    );
}

/// Recorded responses, each under its path in the document.
#[derive(Default)]
struct Answers {
    lines: Vec<String>,
    told: BTreeSet<(String, String, u16)>,
}

impl Answers {
    fn add(&mut self, method: &str, path: &str, response: Response) -> Value {
        let kind = response.header("content-type").unwrap_or_default().to_owned();
        let names: Vec<_> = response.headers.iter().map(|(name, _)| name.clone()).collect();
        let is_json = kind.starts_with("application/json");
        let body = if is_json { response.json() } else { Value::Null };
        self.told.insert((method.to_owned(), path.to_owned(), response.status));
        let line = json!({
            "method": method, "path": path, "status": response.status, "contentType": kind,
            "body": body, "headers": names,
        });
        self.lines.push(line.to_string());
        body
    }

    fn get(&mut self, client: &mut Client, path: &str, target: &str) -> Value {
        let response = client.get(target);
        self.add("GET", path, response)
    }

    fn send(
        &mut self,
        client: &mut Client,
        method: &str,
        (path, target): (&str, &str),
        body: &Value,
    ) -> Value {
        let response = client.send(method, target, body);
        self.add(method, path, response)
    }
}

#[test]
fn responses_match_the_document() {
    let site = Site::with_a_name_of_each_kind();
    let key = site.account("owner@example.com", "api");
    let free = site.account("free@example.com", "free");
    sales::write(&site);
    let files = site.settings("[export_files]\nenabled = true\n");
    let server = site.serve_with(&["--today", TODAY, "--config", &files]);
    let (mut owner, mut poor) = (server.client_with(&key), server.client_with(&free));
    let mut nobody = server.client();
    let mut all = Answers::default();

    changes(&mut all, &site, &mut owner);
    read_names(&mut all, &mut owner);
    claims(&mut all, &mut owner);
    watches(&mut all, &mut owner);
    searches(&mut all, &mut owner);
    rules(&mut all, &mut owner);
    feeds(&mut all, &mut owner, &mut nobody);
    facts(&mut all, &mut owner);
    for export in ["drops", "watchlist", "portfolio"] {
        let path = format!("/api/export/{export}");
        all.get(&mut owner, &path, &path);
        all.get(&mut poor, &path, &path);
        all.get(&mut nobody, &path, &path);
        all.get(&mut owner, &path, &format!("{path}?limit=0"));
    }
    export_files(&mut all, &mut owner);
    for path in [
        "/api/v1",
        "/api/health",
        "/api/ready",
        "/api/ready/reads",
        "/api/ready/ingest",
        "/api/docs",
    ] {
        all.get(&mut nobody, path, path);
    }
    all.get(&mut nobody, "/unsubscribe/{delivery}", "/unsubscribe/none");
    all.send(&mut nobody, "POST", ("/unsubscribe/{delivery}", "/unsubscribe/none"), &json!({}));
    let served = all.get(&mut nobody, "/api/openapi.json", "/api/openapi.json");
    let document = document(&site);
    assert_eq!(served, document, "the command and the server agree");
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("operations") {
            let method = method.to_uppercase();
            if operation["security"] != json!([]) {
                let target = path.replace("{name}", "solar.com").replace("{id}", "1");
                let target = target.replace("{label}", "solar");
                let target = target.replace("{delivery}", "none");
                let target = target.replace("{source}", "acme").replace("{fingerprint}", PRINT);
                for client in [&mut nobody, &mut poor] {
                    let response = client.request(&method, &target, &[]);
                    all.add(&method, path, response);
                }
            }
            // Only a failed delivery can be retried; `tests/it/deliver` covers that.
            if path.ends_with("/retry") {
                continue;
            }
            let seen = |status: &u16| all.told.contains(&(method.clone(), path.clone(), *status));
            assert!([200, 201, 202].iter().any(seen), "{method} {path} was not tried");
        }
    }
    judge(&site, &document, &all);
}

const PRINT: &str = "0123456789abcdef";

fn facts(all: &mut Answers, owner: &mut Client) {
    let path = "/api/v1/facts";
    let mut upload = |owner: &mut Client, query: &str, file: &str| {
        let kind = [("Content-Type", "text/csv")];
        let response = owner.send_with("POST", &format!("{path}{query}"), &kind, file.as_bytes());
        all.add("POST", path, response)
    };
    let file = "domain,acme.rank:int:rank:less,acme.price:money:EUR,acme.kind:enum\nsolar.com,5,1.50,red\n\
                blog.solar.com,1,,\n";
    upload(owner, "?dry_run=true&date_order=dmy&currency=EUR", file);
    upload(owner, "", file);
    upload(owner, "", "Domain,Visits\nsolar.com,5\n");
    upload(owner, "?currency=gold", file);
    all.get(owner, path, path);
    for query in ["facts=acme.rank,acme.price&has=acme.rank", "sort=fact:acme.rank", "has=no.fact"]
    {
        all.get(owner, "/api/v1/drops", &format!("/api/v1/drops?view=all&{query}"));
    }
    let mapping = "/api/v1/facts/mappings/{fingerprint}";
    let one = format!("/api/v1/facts/mappings/{PRINT}");
    let columns = json!({"columns": ["domain", "acme.visits:int"]});
    all.send(owner, "PUT", (mapping, &one), &columns);
    all.send(owner, "PUT", (mapping, &one), &json!({"columns": []}));
    all.get(owner, path, path);
    for (path, target) in
        [(mapping, one.as_str()), ("/api/v1/facts/{source}", "/api/v1/facts/acme")]
    {
        for _ in 0..2 {
            let response = owner.request("DELETE", target, &[]);
            all.add("DELETE", path, response);
        }
    }
}

fn export_files(all: &mut Answers, owner: &mut Client) {
    let (path, one) = ("/api/export/files", "/api/export/files/{name}");
    wait::until(Duration::from_secs(60), "export files", || owner.get(path).json()["total"] == 3);
    let listed = all.get(owner, path, path);
    all.get(owner, path, &format!("{path}?limit=1"));
    all.get(owner, path, &format!("{path}?limit=0"));
    for file in listed["files"].as_array().expect("files") {
        let target = file["url"].as_str().expect("a path");
        for range in ["bytes=0-9", "bytes=9999999-", "bytes=0-1,4-5"] {
            let response = owner.request("GET", target, &[("Range", range)]);
            all.add("GET", one, response);
        }
    }
    all.get(owner, one, &format!("{path}/none"));
}

/// ETags, and responses to clients that already have a response: the document lists them where they
/// occur, but nowhere else. HEAD returns the head of GET and no body.
#[test]
fn response_headers_match_the_document() {
    let site = Site::with_a_name_of_each_kind();
    let key = site.account("owner@example.com", "api");
    let server = site.serve(TODAY);
    let mut owner = server.client_with(&key);
    let document = document(&site);
    let mut tagged = 0;
    for (path, item) in document["paths"].as_object().expect("paths") {
        let Some(operation) = item.get("get") else { continue };
        // Files have names of their own.
        let target = path.replace("files/{name}", "files/{file}").replace("{name}", "solar.com");
        let target = target.replace("{delivery}", "none").replace("{label}", "solar");
        if target.contains('{') {
            // These operations need existing objects.
            continue;
        }
        let takes_prefix = path.ends_with("/search") || path.ends_with("/suggest");
        let target = if takes_prefix { format!("{path}?q=so") } else { target };
        let answer = owner.get(&target);
        assert_eq!(answer.status, 200, "{path}");
        let told = &operation["responses"]["200"]["headers"];
        for name in ["ETag", "X-Index-Generation", "X-RateLimit-Reset", "X-Request-Id"] {
            let sent = answer.header(&name.to_lowercase()).is_some();
            assert_eq!(sent, !told[name].is_null(), "{name} of GET {path}");
        }
        let head = owner.request("HEAD", &target, &[]);
        assert_eq!((head.status, head.body.len()), (200, 0), "HEAD {path}");
        assert_eq!(head.header("content-type"), answer.header("content-type"), "HEAD {path}");
        let Some(tag) = answer.header("etag") else {
            assert!(operation["responses"]["304"].is_null(), "304 of {path}");
            continue;
        };
        let held = owner.request("GET", &target, &[("If-None-Match", tag)]);
        assert_eq!((held.status, held.body.len()), (304, 0), "GET {path} with its tag");
        assert!(!operation["responses"]["304"].is_null(), "304 of {path}");
        tagged += 1;
    }
    assert_eq!(tagged, 8);
}

fn feeds(all: &mut Answers, owner: &mut Client, nobody: &mut Client) {
    let path = "/api/v1/feeds";
    let made = all.send(owner, "POST", (path, path), &json!({}));
    all.send(owner, "POST", (path, path), &json!({ "searchId": 999 }));
    all.send(owner, "POST", (path, path), &json!({ "searchId": 999, "ruleId": 999 }));
    all.send(owner, "POST", (path, path), &json!({ "searchId": "x" }));
    all.get(owner, path, path);
    for form in ["atom", "calendar"] {
        let address = made[form].as_str().expect("an address");
        all.get(nobody, "/feeds/{address}", address);
    }
    all.get(nobody, "/feeds/{address}", "/feeds/none.atom");
    all.send(owner, "DELETE", (path, path), &Value::Null);
    all.send(owner, "DELETE", (path, "/api/v1/feeds?search_id=999"), &Value::Null);
    all.send(owner, "DELETE", (path, "/api/v1/feeds?search_id=x"), &Value::Null);
}

/// Records events of a list that is ingested while the server runs.
fn changes(all: &mut Answers, site: &Site, owner: &mut Client) {
    const PATH: &str = "/api/v1/changes";
    let list =
        site.write("later.csv", "domain,drop_date,release_date\nlunar.com,2026-02-01,2026-03-16\n");
    let list = list.to_str().expect("UTF-8");
    site.ok(&["ingest", "--observed-at", "2026-03-15T01:00:00Z", list]);
    wait::until(Duration::from_secs(60), "events", || {
        owner.get(PATH).json()["data"].as_array().is_some_and(|rows| rows.len() == 2)
    });
    for query in
        ["", "?wait=1&event=left-zone", "?limit=1&tld=com", "?since=1", "?wait=31", "?event=x"]
    {
        all.get(owner, PATH, &format!("{PATH}{query}"));
    }
}

fn read_names(all: &mut Answers, owner: &mut Client) {
    wait::until(Duration::from_secs(60), "comparable sales", || {
        !owner.get("/api/v1/domain/solar.com").json()["comparables"].is_null()
    });
    for target in ["/api/v1/drops", "/api/v1/drops?view=all&limit=1", "/api/v1/drops?min_dqs=101"] {
        all.get(owner, "/api/v1/drops", target);
    }
    for target in ["/api/v1/search?q=so", "/api/v1/search?q=kept", "/api/v1/search"] {
        all.get(owner, "/api/v1/search", target);
    }
    for name in ["solar.com", "kept.org", "never-seen.com", "www.solar.com"] {
        all.get(owner, "/api/v1/domain/{name}", &format!("/api/v1/domain/{name}"));
    }
    let feedback = ("/api/v1/domain/{name}/feedback", "/api/v1/domain/solar.com/feedback");
    for body in [json!({"vote": "up"}), json!({"vote": null}), json!({"vote": 1})] {
        all.send(owner, "PUT", feedback, &body);
    }
    for target in
        ["/api/v1/search?regex=^sol", "/api/v1/search?regex=(", "/api/v1/search?pattern=X"]
    {
        all.get(owner, "/api/v1/search", target);
    }
    for target in ["/api/v1/suggest?q=so", "/api/v1/suggest?limit=0"] {
        all.get(owner, "/api/v1/suggest", target);
    }
    for label in ["solar", "kept", "never-seen", "a.b"] {
        all.get(owner, "/api/v1/label/{label}", &format!("/api/v1/label/{label}"));
    }
    all.get(owner, "/api/v1/tlds", "/api/v1/tlds");
    all.get(owner, "/api/v1/account", "/api/v1/account");
    for query in ["", "?tld=com", "?tld=none-such", "?horizon=3"] {
        all.get(owner, "/api/v1/outcomes", &format!("/api/v1/outcomes{query}"));
    }
    let batch = ("/api/v1/search/batch", "/api/v1/search/batch");
    for queries in [json!([{"q": "so"}, {"like": "solar", "tld": ["com"], "limit": 1}]), json!([])]
    {
        all.send(owner, "POST", batch, &json!({ "queries": queries }));
    }
    let appraise = ("/api/v1/appraise", "/api/v1/appraise");
    all.send(owner, "POST", appraise, &json!({"domains": ["solar.com", "münchen.de", "www.a.de"]}));
    all.send(owner, "POST", appraise, &json!({"domains": []}));
    let typeless = owner.request("POST", appraise.1, &[]);
    all.add("POST", appraise.0, typeless);
    let check = ("/api/v1/check", "/api/v1/check");
    all.send(owner, "POST", check, &json!({"domains": ["solar.com", "münchen.de", "www.a.de"]}));
    all.send(owner, "POST", check, &json!({"domains": []}));
    let archive = ("/api/v1/archive", "/api/v1/archive");
    all.send(owner, "POST", archive, &json!({"domain": "solar.com"}));
    all.send(owner, "POST", archive, &json!({"domain": "com"}));
}

fn claims(all: &mut Answers, owner: &mut Client) {
    let (path, one) = ("/api/v1/portfolio", "/api/v1/portfolio/{id}");
    let claim = json!({
        "domain": "solar.com", "status": "sold", "registrar": "Example", "acquiredPriceUsd": 69.5,
        "resalePriceUsd": 950, "userNotes": "a note", "bidUsd": 60, "venue": "DropCatch",
        "renewsOn": "2027-03-14", "otherAmounts": {"renewal": {"amount": 11.5, "currency": "EUR"}},
        "commission": {"amount": 60, "currency": "EUR"}, "soldVenue": "Sedo",
    });
    let id = all.send(owner, "POST", (path, path), &claim)["id"].to_string();
    all.send(owner, "POST", (path, path), &json!({"domain": "solar.com", "status": "won"}));
    let target = format!("{path}/{id}");
    all.get(owner, path, path);
    all.get(owner, one, &target);
    all.get(owner, one, &format!("{path}/1"));
    all.send(owner, "PATCH", (one, &target), &json!({"status": "lost"}));
    all.send(owner, "PATCH", (one, &target), &json!({"status": null}));
    all.send(owner, "DELETE", (one, &target), &json!({}));
}

fn watches(all: &mut Answers, owner: &mut Client) {
    let path = "/api/v1/watchlist";
    for name in ["solar.com", "solar.com", "never-seen.com", "no name"] {
        all.send(owner, "POST", (path, path), &json!({"domainName": name}));
    }
    all.get(owner, path, path);
    all.get(owner, path, &format!("{path}?sort=best"));
    let one = ("/api/v1/watchlist/{domain}", "/api/v1/watchlist/solar.com");
    let noted = json!({"note": "n", "tags": ["flip"], "maxBidUsd": 9.5, "venue": "DropCatch"});
    for body in [noted, json!({"note": null, "tags": null}), json!({"tags": [1]})] {
        all.send(owner, "PATCH", one, &body);
    }
    let batch = ("/api/v1/watchlist/batch", "/api/v1/watchlist/batch");
    let sent = json!({"domainNames": ["solar.com", "no name"], "tags": ["keep"], "maxBidUsd": 5});
    all.send(owner, "POST", batch, &sent);
    all.send(owner, "POST", batch, &json!({"domainNames": []}));
    let hidden = "/api/v1/hidden";
    all.send(owner, "POST", (hidden, hidden), &json!({"domainNames": ["solar.com"]}));
    all.get(owner, hidden, hidden);
    for _ in 0..2 {
        all.send(owner, "DELETE", (hidden, &format!("{hidden}?domain=solar.com")), &json!({}));
    }
    let own = json!({"alerts": {"kinds": ["available"], "channels": ["email"]}});
    for body in [own, json!({"alerts": {"kinds": []}}), json!({"alerts": null})] {
        all.send(owner, "PATCH", one, &body);
    }
    let alerts = "/api/v1/watchlist/alerts";
    all.get(owner, alerts, alerts);
    let hook = json!({"type": "webhook", "url": "https://93.184.215.14/hook"});
    let full = json!({
        "kinds": ["rescored"], "channels": [hook], "digestHour": 8,
        "quietHours": {"from": 22, "to": 7}, "timeZone": "Europe/Berlin",
    });
    for body in [full.clone(), json!({"kinds": []}), json!({"kinds": [], "channels": []})] {
        all.send(owner, "PUT", (alerts, alerts), &body);
    }
    let test = &*format!("{alerts}/test");
    all.send(owner, "POST", (test, test), &json!({}));
    all.send(owner, "PUT", (alerts, alerts), &full);
    let secrets = &*format!("{alerts}/secrets");
    all.send(owner, "POST", (secrets, secrets), &json!({}));
    let mail = json!({"kinds": [], "channels": [{"type": "email"}]});
    all.send(owner, "PUT", (alerts, alerts), &mail);
    let queued = all.send(owner, "POST", (test, test), &json!({}));
    let deliveries = &*format!("{alerts}/deliveries");
    all.get(owner, deliveries, deliveries);
    let delivery = queued["deliveries"][0]["id"].as_str();
    let delivery = delivery.unwrap_or_else(|| panic!("no delivery: {queued}"));
    let retry = format!("{deliveries}/{delivery}/retry");
    all.send(owner, "POST", (&format!("{deliveries}/{{delivery}}/retry"), &retry), &json!({}));
    for target in [format!("{path}?domain=solar.com"), format!("{path}?domain=solar.com")] {
        all.send(owner, "DELETE", (path, &target), &json!({}));
    }
}

fn searches(all: &mut Answers, owner: &mut Client) {
    let (path, one) = ("/api/v1/searches", "/api/v1/searches/{id}");
    let filter =
        json!({"starts": ["sol"], "contains": ["o"], "minDqs": 1, "stages": ["redemption"]});
    let search = json!({"name": "solar", "filter": filter, "sort": "release", "order": "desc"});
    let id = all.send(owner, "POST", (path, path), &search)["id"].clone();
    all.send(owner, "POST", (path, path), &json!({"name": "solar"}));
    all.get(owner, path, path);
    let target = format!("{path}/{id}");
    all.send(owner, "PATCH", (one, &target), &json!({"seen": true, "filter": {}}));
    all.send(owner, "PATCH", (one, &format!("{path}/1")), &json!({"name": "a"}));
    let alerts = "/api/v1/alerts";
    let rule = json!({"name": "from it", "searchId": id, "channels": [{"type": "email"}]});
    let rule = all.send(owner, "POST", (alerts, alerts), &rule)["id"].to_string();
    let alert = ("/api/v1/alerts/{id}", &*format!("{alerts}/{rule}"));
    all.send(owner, "DELETE", alert, &json!({}));
    for _ in 0..2 {
        all.send(owner, "DELETE", (one, &target), &json!({}));
    }
}

fn rules(all: &mut Answers, owner: &mut Client) {
    let (path, one) = ("/api/v1/alerts", "/api/v1/alerts/{id}");
    let filter = json!({"tlds": ["com"], "minDqs": 1, "maxLength": 9, "contains": "sol", "stages": ["redemption"]});
    let rule = json!({
        "name": "solar", "filter": filter,
        "channels": [
            {"type": "email"},
            {"type": "webhook", "url": "https://93.184.215.14/hook"},
            {"type": "telegram", "chatId": "-100"},
        ],
    });
    let id = all.send(owner, "POST", (path, path), &rule)["id"].to_string();
    all.send(owner, "POST", (path, path), &json!({"name": "solar"}));
    let target = format!("{path}/{id}");
    all.get(owner, path, path);
    all.get(owner, one, &target);
    all.get(owner, one, &format!("{path}/1"));
    let new = json!({"channels": [{"type": "webhook", "url": "https://93.184.215.14/new"}]});
    all.send(owner, "PATCH", (one, &target), &new);
    let preview = ("/api/v1/alerts/preview", "/api/v1/alerts/preview");
    all.send(owner, "POST", preview, &json!({"filter": {}}));
    let backtest = ("/api/v1/alerts/backtest", "/api/v1/alerts/backtest");
    for body in
        [json!({"filter": {}, "horizon": 1, "score": "base"}), json!({"filter": {}, "months": 0})]
    {
        all.send(owner, "POST", backtest, &body);
    }
    let secrets = ("/api/v1/alerts/{id}/secrets", &*format!("{target}/secrets"));
    all.send(owner, "POST", secrets, &json!({}));
    let test = ("/api/v1/alerts/{id}/test", &*format!("{target}/test"));
    let queued = all.send(owner, "POST", test, &json!({}));
    let deliveries = "/api/v1/alerts/{id}/deliveries";
    all.get(owner, deliveries, &format!("{target}/deliveries"));
    let delivery = queued["deliveries"][0]["id"].as_str();
    let delivery = delivery.unwrap_or_else(|| panic!("no delivery: {queued}"));
    let retry = format!("{target}/deliveries/{delivery}/retry");
    all.send(owner, "POST", (&format!("{deliveries}/{{delivery}}/retry"), &retry), &json!({}));
    all.send(owner, "DELETE", (one, &target), &json!({}));
}

fn judge(site: &Site, document: &Value, all: &Answers) {
    let document = site.write("openapi.json", document.to_string());
    let answers = site.write("answers.jsonl", all.lines.join("\n"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/openapi/check.py");
    let judged = Command::new(tools::python()).arg(script).args([document, answers]).output();
    let judged = judged.expect("Python runs");
    assert!(
        judged.status.success(),
        "{}{}",
        String::from_utf8_lossy(&judged.stdout),
        String::from_utf8_lossy(&judged.stderr)
    );
    assert!(all.lines.len() > 100, "{}", all.lines.len());
}
