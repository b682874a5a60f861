//! The whole service in this process, over a small index. Bytes become a request. No response may be a
//! server error, and a response that claims to be JSON must be JSON.

use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::path::Path;
use std::rc::Rc;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::body::Body;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE};
use axum::http::{HeaderName, HeaderValue, Request, Uri};
use dropdex::accounts::{Attempt, Email, IfLeaving, Password, SessionLife, Store};
use dropdex::app;
use dropdex::config::{Config, Given};
use dropdex::corpus::Corpus;
use dropdex::corpus::ingest::Source;
use dropdex::edge::home::Origin;
use dropdex::edge::peer::Client;
use dropdex::feeds::{Feed, ReadOptions};
use dropdex::http::cursor::QueryDigest;
use dropdex::http::{self, cursor};
use dropdex::index::filter::{RowPosition, SortKey};
use dropdex::index::generation::live::LiveIndex;
use dropdex::index::generation::{build, open};
use dropdex::query::params::{Limits, Params};
use dropdex::service::site::CookieKind;
use dropdex::vocab::clock::Clock;
use dropdex::vocab::day::Day;
use dropdex::vocab::plan::Plan;
use dropdex::vocab::secret::Secret;
use dropdex::web::{self, Web, WebSettings};
use http_body_util::BodyExt as _;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

use crate::nameless;
use crate::targets::scratch_folder;

/// Number of requests after which the service is restarted, to bound the data that they add.
const REQUESTS_PER_SERVICE: u32 = 20_000;
const TODAY: &str = "2026-10-03";
const EMAIL: &str = "fuzz@dropdex.example";
const PASSWORD: &str = "a long pass phrase 4711";
/// Names of the index in both forms, of several TLDs, dropped and registered.
const LIST: &str = "domain,drop_date,release_date,registered_again\n\
    solar.com,2026-10-03,,\nsolarium.de,2026-10-01,2026-10-20,\nshop.co.uk,2026-09-20,,\n\
    münchen.de,2026-10-02,,\nxn--e1afmkfd.xn--p1ai,2026-10-03,,\na-b.com,2026-10-03,,\n\
    again.com,2026-08-01,,true\nold.net,2025-01-01,,\n123.com,2026-10-03,,\n\
    a-very-long-name-that-goes-on-and-on-and-on-for-sixty-three-char.com,2026-10-03,,\n";

struct Service {
    router: Router,
    key: HeaderValue,
    cookie: HeaderValue,
    sent: Cell<u32>,
    _folder: TempDir,
}

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime starts")
});

/// Returns the service of this thread.
fn service() -> Rc<Service> {
    thread_local! {
        static SERVICE: RefCell<Option<Rc<Service>>> = const { RefCell::new(None) };
    }
    SERVICE.with_borrow_mut(|held| {
        if let Some(service) = held.as_ref()
            && service.sent.get() < REQUESTS_PER_SERVICE
        {
            service.sent.set(service.sent.get() + 1);
            return Rc::clone(service);
        }
        Rc::clone(held.insert(Rc::new(start())))
    })
}

fn start() -> Service {
    let folder = scratch_folder();
    let mut config = config(folder.path());
    let clock = config.clock;
    let index = index(folder.path(), clock);
    config.plans.limits_mut(Plan::Api).requests_per_day = u32::MAX / 2;
    config.plans.limits_mut(Plan::Api).exports_per_day = u32::MAX / 2;
    config.plans.limits_mut(Plan::Api).concurrent_exports = u32::MAX;
    let store = Store::open(&config.data, config.plans.clone(), clock).expect("a store opens");
    let email: Email = EMAIL.parse().expect("an address");
    let secret = || Secret::new(PASSWORD.to_owned());
    let password = Password::new(secret()).and_then(|it| it.hash()).expect("a good password");
    store.add_account(&email, Plan::Api, Some(password)).expect("an account is added");
    let key = store.issue_key(&email).expect("a key is issued");
    let token = RUNTIME.block_on(store.log_in(
        &email,
        secret(),
        SessionLife::default(),
        IfLeaving::Ask,
        Attempt::FIRST_VISIT,
        clock.now(),
    ));
    let token = token.expect("a log-in is attempted").token().expect("the password is right");
    let (_, changes) = app::open_changes(&config).expect("a log opens");
    let live = Arc::new(LiveIndex::new(Arc::new(index)));
    let app = app::build(&config, live, store, changes, None).expect("the settings are valid");
    let header = |text: String| HeaderValue::from_str(&text).expect("plain text");
    Service {
        router: web::router(
            Web::new(app.clone(), WebSettings::default()),
            http::router(app),
            http::description(),
        ),
        key: header(format!("Bearer {}", key.key.reveal())),
        cookie: header(format!("{}={}", CookieKind::Secure.name(), token.reveal())),
        sent: Cell::new(0),
        _folder: folder,
    }
}

/// The settings of a server that many use, with all channels.
fn config(folder: &Path) -> Config {
    let path = folder.join("dropdex.toml");
    let text = format!(
        "listen = \"0.0.0.0:80\"\ntoday = \"{TODAY}\"\n[smtp]\nhost = \"localhost\"\nfrom = \"{EMAIL}\"\n\
         [telegram]\ntoken = \"1:a\"\n[rdap]\nenabled = false\n[dns]\nservers = [\"{}\"]\n",
        nameless::address()
    );
    std::fs::write(&path, text).expect("the scratch folder is writable");
    let data = Some(folder.join("accounts"));
    Config::load(Given { config: Some(path), data, ..Given::default() }).expect("valid settings")
}

fn index(folder: &Path, clock: Clock) -> dropdex::index::Index {
    let list = folder.join("list.csv");
    std::fs::write(&list, LIST).expect("the scratch folder is writable");
    let now = clock.now();
    let options = ReadOptions { format: None, drop_date: None, observed_at: None, now };
    let feed = Feed::open(&list, &options).expect("a good list");
    let corpus = Corpus::open(&folder.join("data")).expect("a corpus opens");
    let source = Source {
        name: "list.csv".to_owned(),
        sha256: [0; 32],
        format: "native".to_owned(),
        observed_at: now,
        ingested_at: now,
        origin: None,
        day: None,
        replaces: Vec::new(),
        zone: None,
    };
    corpus.ingest(&source, feed).expect("the list is taken");
    let batches = corpus.batches().expect("one batch");
    let settings = build::BuildSettings::default();
    build::rebuild(&folder.join("index"), &batches, &[], settings, now).expect("an index is built");
    open::open_current(&folder.join("index")).expect("it opens").index
}

/// Parses these bytes as a target or header; `None` if no client can send them.
fn uri(text: &str) -> Option<Uri> {
    Uri::from_str(text).ok()
}

/// Sends a request and checks the response.
fn ask(service: &Service, request: Request<Body>) {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    RUNTIME.block_on(async {
        let Ok(response) = service.router.clone().oneshot(request).await;
        let status = response.status();
        assert!(!status.is_server_error(), "{method} {uri}: {status}");
        let kind = response.headers().get(CONTENT_TYPE).cloned();
        let body = response.into_body().collect().await.expect("a whole body").to_bytes();
        if kind.is_some_and(|kind| kind == "application/json") {
            let json: Result<serde_json::Value, _> = serde_json::from_slice(&body);
            let json = json.unwrap_or_else(|err| panic!("{method} {uri}: {err}: {body:?}"));
            let refused = status.is_client_error();
            assert_eq!(refused, json["error"].is_string(), "{method} {uri}: {status} {json}");
        }
    });
}

/// Query strings; the first byte selects the route.
pub fn queries(bytes: &[u8]) {
    const PATHS: [&str; 14] = [
        "/api/v1/search?",
        "/api/v1/search?q=s&",
        "/api/v1/drops?",
        "/api/v1/drops?view=all&",
        "/api/v1/portfolio?",
        "/api/v1/watchlist?",
        "/api/v1/alerts?",
        "/api/v1/domain/",
        "/api/export/drops?",
        "/api/export/portfolio?",
        "/api/export/watchlist?",
        "/?",
        "/search?",
        "/domain/",
    ];
    let Some((&first, rest)) = bytes.split_first() else { return };
    let Ok(rest) = std::str::from_utf8(rest) else { return };
    let path = PATHS[usize::from(first) % PATHS.len()];
    let Some(uri) = uri(&format!("{path}{rest}")) else { return };
    let service = service();
    let request = Request::get(uri).header(AUTHORIZATION, &service.key);
    ask(&service, request.body(Body::empty()).expect("a request"));
}

/// Cursors to rows at which no list ends; the first byte selects the order, and the next sixteen are
/// numbers.
pub fn cursor_pages(bytes: &[u8]) {
    let Some((&first, rest)) = bytes.split_first() else { return };
    let Some((numbers, name)) = rest.split_first_chunk::<16>() else { return };
    let (value, key) = numbers.split_at(8);
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let name = String::from_utf8_lossy(name).into_owned();
    // The last order is that by a fact, which this service does not have.
    let sort = SortKey::NAMES[usize::from(first) % (SortKey::NAMES.len() - 1)];
    let order = if first >= 128 { "asc" } else { "desc" };
    let listed = format!("view=all&sort={sort}&order={order}");
    let limits = Limits { default: 100, max: 100 };
    let filter = Params::new(Some(&listed)).drops(limits, Day::MIN).expect("a query");
    let query = QueryDigest::of(&filter);
    // Small numbers are similar to those of real rows.
    for value in [number(value), u64::from(value[0])] {
        let position = RowPosition { value, key: number(key), name: name.clone() };
        let cursor = cursor::encode(&position, query);
        let target = format!("/api/v1/drops?{listed}&cursor={cursor}");
        let Some(uri) = uri(&target) else { continue };
        let service = service();
        let request = Request::get(uri).header(AUTHORIZATION, &service.key);
        ask(&service, request.body(Body::empty()).expect("a request"));
    }
}

/// Headers of a read and of a write, one per line.
pub fn headers(bytes: &[u8]) {
    let service = service();
    let mut read = Request::get("/api/v1/search?q=s");
    let mut write = Request::post("/api/v1/watchlist");
    for line in bytes.split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let Ok(name) = HeaderName::from_bytes(&line[..colon]) else { continue };
        let Ok(value) = HeaderValue::from_bytes(&line[colon + 1..]) else { continue };
        read = read.header(name.clone(), value.clone());
        write = write.header(name, value);
    }
    ask(&service, read.body(Body::empty()).expect("a request"));
    // The server reads these before it routes a request.
    let address = IpAddr::from([127, 0, 0, 1]);
    let sent = write.headers_ref().expect("the lines are valid");
    let client = Client::from_headers(address, sent, &[address]);
    assert!(client.through_proxy && !(client.is_hidden && client.address != address));
    let origin = Origin::new(sent, false, &client);
    let write = write.extension(origin).extension(client);
    let body = Body::from(r#"{"domainName":"solar.com"}"#);
    let write = write.header(AUTHORIZATION, &service.key);
    ask(&service, write.body(body).expect("a request"));
}

/// JSON bodies; the first byte selects the route.
pub fn bodies(bytes: &[u8]) {
    const OPERATIONS: [(&str, &str); 9] = [
        ("POST", "/api/v1/watchlist"),
        ("POST", "/api/v1/portfolio"),
        ("PATCH", "/api/v1/portfolio/1"),
        ("POST", "/api/v1/alerts"),
        ("PATCH", "/api/v1/alerts/1"),
        ("POST", "/api/v1/alerts/preview"),
        ("POST", "/api/v1/appraise"),
        ("PUT", "/api/v1/domain/solar.com/vote"),
        ("POST", "/api/v1/alerts/1/test"),
    ];
    let Some((&first, body)) = bytes.split_first() else { return };
    let (method, path) = OPERATIONS[usize::from(first) % OPERATIONS.len()];
    let service = service();
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(AUTHORIZATION, &service.key)
        .header(CONTENT_TYPE, "application/json");
    ask(&service, request.body(Body::from(body.to_vec())).expect("a request"));
}

/// Forms of pages; the first byte selects the form.
pub fn forms(bytes: &[u8]) {
    const PATHS: [&str; 8] = [
        "/watch",
        "/unwatch",
        "/watchlist/add",
        "/alerts/new",
        "/alerts/preview",
        "/portfolio/new",
        "/domain/solar.com/vote",
        "/account/telegram",
    ];
    let Some((&first, form)) = bytes.split_first() else { return };
    let service = service();
    let request = Request::post(PATHS[usize::from(first) % PATHS.len()])
        .header(COOKIE, &service.cookie)
        .header("Sec-Fetch-Site", "same-origin")
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
    ask(&service, request.body(Body::from(form.to_vec())).expect("a request"));
}
