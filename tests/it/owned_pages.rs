//! Watchlist, alert and portfolio pages without a browser: forms sent with a cookie, and the same
//! validation as the API. The `browser` module tests layout and scripts.

mod alerts;
mod bulk;
mod dossier;
mod facts;
mod limits;
mod new_names;
pub(crate) mod person;
mod portfolio;
mod searches;
mod undo;
mod watch_alerts;
mod watchlist;

use std::path::PathBuf;

use crate::common::{Server, Site, TODAY};
use person::{PASSWORD, Person};

/// Markup that must be shown as text.
const HTML: &str = "<img src=x onerror=alert(1)>\"'&amp;";

/// An installation with a few names of each stage, and its server.
struct World {
    site: Site,
    server: Server,
}

impl World {
    fn new() -> World {
        World::with("")
    }

    /// Starts a server with more settings.
    fn with(settings: &str) -> World {
        World::with_files(&[], |_| settings.to_owned())
    }

    /// Starts a server with these files, and settings that name their paths.
    fn with_files(files: &[(&str, &str)], settings: impl FnOnce(&[PathBuf]) -> String) -> World {
        let site = Site::new();
        let paths: Vec<_> = files.iter().map(|(name, text)| site.write(name, text)).collect();
        let settings = settings(&paths);
        let rows = [
            ("fresh.com", "2026-03-15"),
            ("solar.com", "2026-03-14"),
            ("teapots.net", "2026-03-10"),
            ("xn--mnchen-3ya.de", "2026-03-15"),
            ("pending.com", "2026-02-12"),
            ("catchable.com", "2026-02-08"),
            ("released.com", "2026-01-01"),
        ];
        let rows: String = rows.iter().map(|(name, day)| format!("{name},{day}\n")).collect();
        let list = site.write("list.csv", format!("domain,drop_date\n{rows}"));
        site.ingest(&list, &format!("{TODAY}T00:00:00Z"));
        let settings = site.settings(&settings);
        let server = site.serve_with(&["--config", &settings, "--today", TODAY]);
        World { site, server }
    }

    /// Creates an account of this plan and logs it in.
    fn person(&self, email: &str, plan: &str) -> Person {
        self.site.account_with_password(email, plan, PASSWORD);
        Person::logged_in(&self.server, email)
    }
}

/// Every form that changes something, with valid fields.
const FORMS: [(&str, &str); 41] = [
    ("/account/delete", "password=correct+horse+battery"),
    ("/account/digest", "off=yes"),
    ("/account/facts", ""),
    ("/account/facts/mapping", "fingerprint=0011223344556677&column=domain&column=a.b"),
    ("/account/facts/remove", "source=a"),
    ("/watchlist/notes", "domain=solar.com&tags=flip"),
    ("/watchlist/entry", "domain=solar.com&tags=flip"),
    ("/domain/solar.com/check", ""),
    ("/domain/solar.com/archive", ""),
    ("/watch", "domain=a.com"),
    ("/unwatch", "domain=solar.com"),
    ("/watchlist/add", "names=a.com"),
    ("/alerts/new", "name=a&email=on"),
    ("/alerts/preview", "name=a"),
    ("/alerts/backtest", "name=a"),
    ("/alerts/{rule}", "name=changed&email=on"),
    ("/alerts/{rule}/delete", ""),
    ("/alerts/{rule}/test", ""),
    ("/alerts/{rule}/secrets", ""),
    ("/alerts/{rule}/pause", ""),
    ("/alerts/{rule}/resume", ""),
    ("/alerts/{rule}/deliveries/00112233445566778899aabbccddeeff/retry", ""),
    ("/hide", "domain=a.com"),
    ("/unhide", "domain=a.com"),
    ("/mark", "domain=a.com&mark=spam"),
    ("/undo", "id=1"),
    ("/selected.csv", "domain=a.com"),
    ("/selected.txt", "all=yes&search=tld%3Dcom"),
    ("/watch", "all=yes&search=tld%3Dcom"),
    ("/seen", "batch=1"),
    ("/searches", "name=a&tld=com"),
    ("/searches/{search}", "name=changed"),
    ("/searches/{search}/delete", ""),
    ("/portfolio/new", "domain=a.com&status=lost"),
    ("/portfolio/currency", "currency=EUR"),
    ("/portfolio/import", ""),
    ("/portfolio/import/save", ""),
    ("/portfolio/{claim}", "status=lost"),
    ("/portfolio/{claim}/renewal", "decision="),
    ("/portfolio/{claim}/delete", ""),
    ("/alerts/{rule}/nowhere", ""),
];
/// Every page of user data.
const PAGES: [&str; 14] = [
    "/account/data",
    "/account/facts",
    "/watchlist",
    "/alerts",
    "/alerts/new",
    "/alerts/{rule}",
    "/alerts/{rule}/delete",
    "/searches",
    "/searches/{search}/delete",
    "/portfolio",
    "/portfolio/currency",
    "/portfolio/import",
    "/portfolio/{claim}",
    "/portfolio/{claim}/delete",
];

/// Creates a user with one name, one rule and one claim, and a function that inserts their ids into
/// paths.
fn owner(world: &World) -> (Person, impl Fn(&str) -> String + use<>) {
    let mut owner = world.person("owner@example.com", "api");
    owner.post("/watch", &[("domain", "solar.com")]).assert_goes_to("/");
    let rule = owner.add_rule("mine", &[("email", "on")]);
    let claim = owner.add_claim("solar.com", &[("status", "attempted")]);
    let search = owner.add_search("mine", &[("tld", "com")]);
    (owner, move |path: &str| {
        let path = path.replace("{rule}", &rule).replace("{search}", &search);
        path.replace("{claim}", &claim)
    })
}

#[test]
fn other_accounts_pages_return_404() {
    let world = World::new();
    let (mut owner, with_ids) = owner(&world);
    let before = PAGES.map(|page| owner.get(&with_ids(page)).text);
    let mut other = world.person("other@example.com", "api");
    for page in PAGES.into_iter().filter(|page| page.contains('{')) {
        assert_eq!(other.get(&with_ids(page)).status, 404, "{page}");
    }
    for (path, fields) in FORMS.into_iter().filter(|(path, _)| path.contains('{')) {
        let answer = other.post_text(&with_ids(path), fields);
        assert!(matches!(answer.status, 404 | 405), "{path}: {}", answer.status);
    }
    let after = PAGES.map(|page| owner.get(&with_ids(page)).text);
    for (page, (before, after)) in PAGES.into_iter().zip(before.into_iter().zip(after)) {
        assert_eq!(person::without_drawn(&before), person::without_drawn(&after), "{page}");
    }
}

#[test]
fn forms_need_a_log_in_and_the_same_site() {
    let world = World::new();
    let (mut owner, with_ids) = owner(&world);
    let before = PAGES.map(|page| owner.get(&with_ids(page)).text);
    let mut nobody = Person::nobody(&world.server);
    for page in PAGES {
        let page = with_ids(page);
        let next = page.replace('/', "%2F");
        nobody.get(&page).assert_goes_to(&format!("/login?next={next}"));
    }
    let alone =
        [("", "nothing"), ("sec-fetch-site", "cross-site"), ("origin", "https://evil.example")];
    for (path, fields) in FORMS.into_iter().filter(|(path, _)| !path.ends_with("nowhere")) {
        let path = with_ids(path);
        nobody.post_text(&path, fields).assert_goes_to("/login");
        for (name, value) in alone {
            let answer = owner.post_from(&path, fields, &[(name, value)]);
            assert_eq!(answer.status, 403, "{path} with {name}: {value}");
        }
    }
    let after = PAGES.map(|page| owner.get(&with_ids(page)).text);
    for (page, (before, after)) in PAGES.into_iter().zip(before.into_iter().zip(after)) {
        assert_eq!(person::without_drawn(&before), person::without_drawn(&after), "{page}");
    }
}
