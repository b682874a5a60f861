//! Checks of every page: in every look, without scripts, and with the keyboard only.

use serde_json::{Value, json};

use super::driver::{Browser, Look};
use super::find::{ENTER, TAB};
use super::world::{PASSWORD, World};
use crate::common::Site;
use crate::common::receiver::{Receiver, Reply};
use crate::sources::{DAY, settings_of};

/// Pages that need no log-in: the names of their pictures, and their paths.
pub const OPEN: [(&str, &str); 20] = [
    ("drops", "/"),
    ("drops-pipeline", "/?view=active"),
    ("drops-narrowed", "/?view=active&tld=com,net&q=a&min_dqs=40&max_len=9"),
    ("drops-none", "/?q=zzzzzzzz"),
    ("drops-long", "/?view=active&idn=only&min_len=12"),
    ("search", "/search?q=harbor"),
    ("search-empty", "/search"),
    ("dossier", "/domain/oldharbor.com"),
    ("dossier-german", "/domain/xn--mller-kva.de"),
    ("dossier-long", "/domain/xn--donaudampfschifffahrtsgesellschaftskapitnsmtze-p4d96i.de"),
    ("dossier-lookalike", "/domain/xn--pple-43d.com"),
    ("dossier-unseen", "/domain/never-seen-by-anybody.com"),
    ("overview", "/overview"),
    ("outcomes", "/outcomes"),
    ("login", "/login"),
    ("signup", "/signup"),
    ("reference", "/docs"),
    ("reference-watchlist", "/docs/reference/watchlist"),
    ("status", "/status"),
    ("nowhere", "/nowhere"),
];

/// Pages of a user with rules, names and claims.
pub const OWN: [(&str, &str); 19] = [
    ("dossier-watched", "/domain/harborlight.com"),
    (
        "drops-facts",
        "/?view=all&contains=harbor&columns=due&facts=market.name,market.price,market.ends,\
         majestic.tf,majestic.cf,majestic.backlinks,majestic.ref_domains,majestic.indexed_urls,\
         majestic.ref_ips,majestic.ref_subnets",
    ),
    ("watchlist-tag", "/watchlist?tag=none-has-it"),
    ("signed-in-drops", "/?stage=catchable"),
    ("watchlist", "/watchlist"),
    ("watch-alerts", "/watchlist/alerts"),
    ("searches", "/searches"),
    ("alerts", "/alerts"),
    ("alert-new", "/alerts/new"),
    ("portfolio", "/portfolio"),
    ("portfolio-import", "/portfolio/import"),
    ("portfolio-currency", "/portfolio/currency"),
    ("portfolio-new", "/portfolio/new?domain=harborlight.com"),
    ("account", "/account"),
    ("account-plan", "/account/plan"),
    ("account-api", "/account/security"),
    ("account-facts", "/account/facts"),
    ("account-notifications", "/account/notifications"),
    ("account-data", "/account/data"),
];

fn judge(browser: &Browser, pages: &[(&str, &str)]) {
    let found = pages.iter().flat_map(|(name, path)| browser.problems_everywhere(name, path));
    let found: Vec<String> = found.collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn public_pages_pass_every_page_check() {
    let world = World::new();
    judge(&Browser::new(&world.server), &OPEN);
}

/// Facts about some names: outdated and current ones, and sales of similar names.
const FACTS: [&str; 3] = [
    "domain,market.name:enum,market.price:money:USD,market.ends:date,as_of\n\
     harborlight.com,godaddy,1290,2026-11-24,2026-11-19\noldharbor.com,sedo,12,2026-11-18,2026-11-17\n",
    "Item,TrustFlow,CitationFlow,ExtBackLinks,RefDomains,IndexedURLs,RefIPs,RefSubNets\n\
     harborlight.com,24,31,120400,310,12,290,250\n",
    "domain,price,currency,date,venue\nrivergarden.com,140,USD,2026-01-10,NameJet\n\
     solarmarket.com,310,USD,2025-01-10,NameJet\ngreenhouse.com,2300,USD,2025-06-10,NameJet\n",
];

/// Gives the account with this key facts, names, a rule that was tested, and claims with prices.
pub fn fill(world: &World, key: &str, hook: &str) -> String {
    let mut client = world.server.client_with(key);
    let mut post = |path: &str, body: Value| {
        let answer = client.send("POST", path, &body);
        assert!(answer.status < 300, "{path}: {}", answer.text());
        answer.json()
    };
    for file in FACTS {
        let csv = [("Content-Type", "text/csv")];
        let added =
            world.server.client_with(key).send_with("POST", "/api/v1/facts", &csv, file.as_bytes());
        assert_eq!(added.status, 201, "{}", added.text());
    }
    for domain in [
        "harborlight.com",
        "harborlight.net",
        "oldharbor.com",
        "xn--pple-43d.com",
        "not-in-any-list.com",
        "xn--donaudampfschifffahrtsgesellschaftskapitnsmtze-p4d96i.de",
        "xn--zagljaprzedsibiorstwo-mcc03bpb96ala60i2bw4bg3aqb.pl",
        "xn--fiq7ivcs4l5ucyvb561byjdo5k38ew6e4x8duqgbls8rdb65jyia.com",
    ] {
        post("/api/v1/watchlist", json!({"domainName": domain}));
    }
    post(
        "/api/v1/watchlist/batch",
        json!({
            "domainNames": ["harborlight.com", "oldharbor.com"], "tags": ["flip", "garden shop"],
            "maxBidUsd": 420, "venue": "DropCatch",
        }),
    );
    for name in ["Short harbors", "Donaudampfschifffahrtsgesellschaft tomorrow"] {
        let filter = json!({"tlds": ["com"], "releaseFrom": "tomorrow", "releaseTo": "+3d"});
        post("/api/v1/searches", json!({"name": name, "filter": filter}));
    }
    let rule = post(
        "/api/v1/alerts",
        json!({
            "name": "Short harbors",
            "filter": {
                "tlds": ["com", "net"], "minDqs": 60, "maxLength": 12, "contains": "harbor",
                "hyphens": "none", "ends": ["light", "bor"],
            },
            "channels": [{"type": "email"}, {"type": "webhook", "url": hook}],
        }),
    );
    post(
        "/api/v1/alerts",
        json!({"name": "Anything catchable", "filter": {"stages": ["catchable"]}, "channels": [{"type": "email"}]}),
    );
    let id = rule["alert"]["id"].to_string();
    post(&format!("/api/v1/alerts/{id}/test"), json!({}));
    let claims = [
        ("harborlight.com", "sold", "Dynadot", Some(69.0), Some(1_250.0)),
        ("oldharbor.com", "registered", "Gandi", Some(12.5), None),
        ("quietmarket.net", "sold", "Dynadot", Some(60.0), Some(480.0)),
        ("brightfield.de", "lost", "INWX", None, None),
        ("papercrane.io", "caught", "Porkbun", Some(99.0), None),
        ("saltmarsh.org", "attempted", "Porkbun", None, None),
    ];
    for (domain, status, registrar, cost, price) in claims {
        let mut claim =
            json!({"domain": domain, "status": status, "registrar": registrar, "bidUsd": 120});
        if status == "caught" {
            claim["renewsOn"] = json!("2026-12-12");
            claim["renewalUsd"] = json!(12.5);
        }
        if let Some(cost) = cost {
            claim["acquiredPriceUsd"] = json!(cost);
        }
        if let Some(price) = price {
            claim["resalePriceUsd"] = json!(price);
        }
        post("/api/v1/portfolio", claim);
    }
    id
}

#[test]
fn pages_of_a_new_server_pass_every_page_check() {
    let publisher = Receiver::http(|_, _| Reply::Silence);
    let lists = settings_of(&publisher);
    let site = Site::new();
    let server = site.serve_with(&["--today", DAY, "--config", &site.settings(&lists)]);
    let browser = Browser::new(&server);
    judge(&browser, &[("setup", "/setup")]);
    browser.open("/");
    browser.main().button("Create account and fetch").follow();
    browser.heading("Fetching your first lists").wait();
    judge(&browser, &[("setup-progress", "/setup?still"), ("setup-choose", "/setup?choose")]);
}

#[test]
fn member_pages_pass_every_page_check() {
    let receiver = Receiver::https(&["127.0.0.1"], |_, _| Reply::status(500));
    let world = World::that_calls(&receiver);
    let browser = world.member("ann@example.com", "api");
    let key = world.site.new_key("ann@example.com");
    let rule = fill(&world, &key, &receiver.url("/hook"));
    receiver.wait_for(1);
    let rule = format!("/alerts/{rule}");
    let removal = format!("{rule}/delete");
    let pages = [&OWN[..], &[("alert", &rule), ("alert-delete", &removal)]].concat();
    judge(&browser, &pages);
}

#[test]
fn empty_pages_pass_every_page_check() {
    let world = World::new();
    let browser = world.member("ann@example.com", "free");
    let pages = ["/watchlist", "/searches", "/alerts", "/portfolio"];
    let named = pages.map(|path| (format!("empty-{}", &path[1..]), path));
    judge(&browser, &named.each_ref().map(|(name, path)| (name.as_str(), *path)));
}

#[test]
fn pages_are_read_and_forms_work_without_scripts() {
    let world = World::new();
    world.add_account("ann@example.com", "core");
    let browser = Browser::without_scripts(&world.server);
    browser.look(Look::PHONE);
    browser.open("/?view=active");
    browser.field("Search or filter names").fill("harbor");
    browser.leave(|| browser.press(ENTER));
    browser.main().row("harborlight.com").wait();
    browser.main().row("harborlight.com").link("Watch harborlight.com: log in first").follow();
    browser.field("E-mail address").fill("ann@example.com");
    browser.field("Password").fill(PASSWORD);
    browser.main().button("Log in").follow();
    browser.main().row("harborlight.com").button("Watch harborlight.com").follow();
    browser.main().row("harborlight.com").button("Watching harborlight.com: stop").wait();

    browser.open("/?view=active&starts=s&limit=50");
    assert_eq!(browser.main().at("//tbody/tr").count(), 25);
    browser.link("Show all 50 rows").follow();
    assert_eq!(browser.main().at("//tbody/tr").count(), 50);
    browser.main().at("//*[@id='every']").click();
    browser.field("Tags").fill("coast");
    browser.main().button("Save notes").follow();
    browser.text("names are on your watchlist now.").wait();

    browser.open("/status");
    browser.field("Search names").type_keys("oldharbor");
    browser.leave(|| browser.press(ENTER));
    browser.main().link("oldharbor.com").follow();
    browser.is_at("/domain/oldharbor.com");

    browser.open("/alerts/new");
    browser.field("Name").fill("Harbors");
    browser.field("Contains").fill("harbor");
    browser.main().button("Preview").follow();
    browser.main().text("harborlight.com").wait();
    browser.main().button("Create alert").follow();
    browser.heading("Harbors").wait();

    browser.look(Look::DESKTOP);
    browser.open("/?view=active&tld=com");
    browser.main().at("//summary[.='Save this search']").click();
    browser.main().button("Save search").follow();
    browser.main().at("//aside//a[contains(., 'TLD com')]").wait();
    browser.open("/portfolio/new?domain=oldharbor.com");
    browser.field("Your bid (USD)").fill("12");
    browser.main().button("Add claim").follow();
    browser.main().row("oldharbor.com").text("$12").wait();
    browser.button("Log out").follow();
    browser.text("You are logged out.").wait();
}

#[test]
fn everything_is_reachable_by_keyboard_with_visible_focus() {
    let world = World::new();
    world.add_account("ann@example.com", "free");
    let browser = Browser::new(&world.server);
    browser.open("/login?next=/watchlist");
    browser.press(TAB);
    assert_eq!(browser.focused(), "a Skip to content");
    browser.press(ENTER);
    // The focus starts at the beginning of the main content.
    let mut met = Vec::new();
    while met.last().is_none_or(|last| last != "input E-mail address") {
        browser.press(TAB);
        met.push(browser.focused());
        assert!(met.len() < 5, "{met:?}");
    }
    browser.press("ann@example.com");
    browser.press(TAB);
    browser.press(PASSWORD);
    browser.leave(|| browser.press(ENTER));
    browser.is_at("/watchlist");

    // Every focus stop is visible, and all controls are reached.
    let mut stops = Vec::new();
    loop {
        browser.press(TAB);
        let stop = browser.focused();
        if stop.starts_with("body") || stops.len() > 60 {
            break;
        }
        assert!(browser.focus_is_seen(), "{stop}, after {stops:?}");
        stops.push(stop);
    }
    for wanted in [
        "a Drops",
        "a Portfolio",
        "input Search names",
        "a Account",
        "button Log out",
        "textarea Names",
        "button Add names",
        "a Status",
    ] {
        assert!(stops.iter().any(|stop| stop == wanted), "no {wanted} in {stops:?}");
    }
}
