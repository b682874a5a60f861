//! The pages on a phone: what fits on its screen, and stories with one thumb on an emulated touch screen.

use std::cell::Cell;

use serde_json::{Value, json};

use super::access::{OPEN, OWN, fill};
use super::driver::{Browser, Look};
use super::drops::names;
use super::find::Target;
use super::world::World;
use crate::common::mailbox::Mailbox;
use crate::common::receiver::{Receiver, Reply};

/// A thumb on the touch screen of a browser.
struct Thumb<'a> {
    browser: &'a Browser,
    /// Number of taps and swipes so far.
    actions: Cell<u32>,
}

impl Thumb<'_> {
    fn on(browser: &Browser) -> Thumb<'_> {
        browser.look(Look::PHONE);
        let touch = json!({"enabled": true, "maxTouchPoints": 1});
        browser.cdp("Emulation.setTouchEmulationEnabled", touch);
        Thumb { browser, actions: Cell::new(0) }
    }

    fn touch(&self, what: &str, points: Value) {
        let event = json!({"type": what, "touchPoints": points});
        self.browser.cdp("Input.dispatchTouchEvent", event);
    }

    /// Puts the thumb on a target, moves it sideways, and lifts it.
    #[track_caller]
    fn drag(&self, target: &Target<'_>, by: f64) {
        let [x, y] = target.middle();
        self.actions.update(|count| count + 1);
        self.touch("touchStart", json!([{"x": x, "y": y}]));
        // The thumb comes to rest: Chromium ignores a tap that ends a fling.
        let parts = [0.2, 0.4, 0.6, 0.8, 1.0, 0.99, 1.0, 0.99, 1.0];
        for part in parts.into_iter().filter(|_| by != 0.0) {
            self.touch("touchMove", json!([{"x": x + by * part, "y": y}]));
        }
        self.touch("touchEnd", json!([]));
    }

    #[track_caller]
    fn tap(&self, target: &Target<'_>) {
        self.drag(target, 0.0);
    }

    /// Taps a link to another page.
    #[track_caller]
    fn follow(&self, target: &Target<'_>) {
        self.browser.leave(|| self.tap(target));
    }

    /// Presses a target until `reaction` shows.
    #[track_caller]
    fn hold(&self, target: &Target<'_>, reaction: &Target<'_>) {
        let [x, y] = target.middle();
        self.actions.update(|count| count + 1);
        self.touch("touchStart", json!([{"x": x, "y": y}]));
        reaction.wait();
        self.touch("touchEnd", json!([]));
    }
}

/// Rows that are completely on the screen: neither cut nor below the bar at its bottom.
const SEEN: &str = "
    const bar = document.querySelector('header.site nav').getBoundingClientRect().top;
    return [...document.querySelectorAll('#list tbody tr:has(> .sel)')].filter((row) => {
        const box = row.getBoundingClientRect();
        return box.height > 0 && box.top >= 0 && box.bottom <= bar;
    }).map((row) => row.querySelector('.sel input').value)";

fn seen(browser: &Browser) -> Vec<String> {
    serde_json::from_value(browser.script(SEEN, &[])).expect("names")
}

#[test]
fn nine_names_fit_on_the_screen_of_a_phone() {
    let mailbox = Mailbox::new();
    let world = World::market_of_tomorrow(&mailbox);
    let browser = world.member("ann@example.com", "pro");
    Thumb::on(&browser);
    for path in ["/", "/?view=active", "/?stage=catchable"] {
        browser.open(path);
        let above = browser.script(
            "return document.querySelector('#list .top').getBoundingClientRect().bottom + scrollY",
            &[],
        );
        let above = above.as_f64().expect("a number");
        assert!(above <= 120.0, "{path}: header, tabs and tools take {above} px");
        assert!(seen(&browser).len() >= 9, "{path}: {:?}", seen(&browser));
    }
}

/// Clicks links to parts of the page, in turn, and returns those that do not lead there. Chromium refuses more
/// than 200 of them within ten seconds.
const CLICK_ALL: &str = "
    const calls = new Set();
    const real = window.fetch;
    window.fetch = (...args) => {
        const call = real(...args);
        calls.add(call);
        return call;
    };
    const turn = () => new Promise((done) => setTimeout(done));
    const links = [...document.querySelectorAll('a[href^=\"#\"]')].map((it) => it.getAttribute('href'));
    const paths = new Set(links.slice(0, 60));
    return (async () => {
        const wrong = [];
        for (const path of paths) {
            const changed = new Promise((done) => addEventListener('hashchange', done, {once: true}));
            document.querySelector(`a[href=\"${path}\"]`).click();
            await Promise.race([changed, new Promise((done) => setTimeout(done, 5000))]);
            await turn();
            await Promise.allSettled([...calls]);
            await turn();
            const target = document.querySelector(':target');
            if (location.hash !== path || !target?.checkVisibility()) wrong.push(path);
        }
        return [paths.size, wrong];
    })();";

#[test]
fn links_to_a_part_of_the_page_lead_there() {
    let receiver = Receiver::https(&["127.0.0.1"], |_, _| Reply::status(500));
    let world = World::that_calls(&receiver);
    let browser = world.member("ann@example.com", "api");
    let rule = fill(&world, &world.site.new_key("ann@example.com"), &receiver.url("/hook"));
    let rule = format!("/alerts/{rule}");
    let pages = OPEN.iter().chain(&OWN).map(|(_, path)| *path);
    let errors = ["/watchlist?add=a", "/docs/queries", "/?view=active&min_dqs=x"];
    let pages: Vec<&str> = pages.chain(errors).chain([rule.as_str()]).collect();
    let mut clicked = 0;
    for look in [Look::DESKTOP, Look::PHONE] {
        browser.look(look);
        for path in &pages {
            browser.open(path);
            let done = browser.script(CLICK_ALL, &[]);
            assert_eq!(done[1], json!([]), "{path} {}", look.word());
            clicked += done[0].as_u64().expect("a number");
        }
    }
    assert!(clicked > 2 * pages.len() as u64, "{clicked} links");
}

#[test]
fn the_filters_of_a_phone_open_over_the_list() {
    let world = World::new();
    for browser in [Browser::new(&world.server), Browser::without_scripts(&world.server)] {
        let thumb = Thumb::on(&browser);
        browser.open("/?view=active");
        let com = browser.main().at("//aside//a[starts-with(normalize-space(.), '.com')]");
        assert!(!com.is_shown());
        thumb.tap(&browser.button("Filters"));
        thumb.tap(&com);
        browser.is_at("/?view=active&tld=com");
        // Without scripts, the list is another page.
        if com.is_shown() {
            thumb.tap(&browser.main().at("//aside/button[starts-with(., 'Show ')]"));
        }
        com.wait_gone();
        browser.link("Remove the filter: TLD com").wait();
        // The fields below the facets close over the first row.
        browser.script("scrollTo(0, 2000)", &[]);
        thumb.tap(&browser.button("Filters"));
        thumb.tap(&browser.main().button("All filters"));
        browser.field("Length at most").fill("8");
        thumb.tap(&browser.main().button("Apply"));
        browser.link("Remove the filter: length ≤ 8").wait();
        com.wait_gone();
        browser.until("the first row is on the screen", || {
            let first = browser.main().at("//tbody/tr[1]//input");
            Ok(seen(&browser)
                .first()
                .is_some_and(|it| *it == first.property("value"))
                .then_some(()))
        });
    }
}

#[test]
fn names_are_watched_hidden_and_shared_with_one_thumb() {
    let world = World::new();
    let browser = world.member("ann@example.com", "pro");
    let thumb = Thumb::on(&browser);
    browser.open("/?view=active");
    let all = names(&browser);
    let row = |name: &str| browser.main().at(&format!("//tr[.//input[@value='{name}']]"));
    let star = |name: &str| row(name).button(&format!("Watching {name}: stop"));

    // A swipe to the right watches a name, as does its star. A swipe that turns back does nothing.
    thumb.drag(&row(&all[0]), 150.0);
    star(&all[0]).wait();
    thumb.tap(&row(&all[1]).button(&format!("Watch {}", all[1])));
    star(&all[1]).wait();
    thumb.drag(&row(&all[2]), 40.0);
    // A swipe to the left hides a name.
    thumb.drag(&row(&all[3]), -150.0);
    row(&all[3]).wait_gone();
    assert!(!star(&all[2]).is_shown());
    // A long press selects a name, and a tap hides it.
    let hidden = browser.text("2 hidden on this page.");
    thumb.hold(&row(&all[4]), &browser.text("1 selected"));
    thumb.tap(&browser.main().button("Hide"));
    hidden.wait();
    assert_eq!(names(&browser)[..4], [0, 1, 2, 5].map(|at: usize| all[at].clone()));

    // A tap opens a name, whose address is shared, or copied where a browser cannot share.
    thumb.follow(&row(&all[0]).link(&all[0]));
    browser.is_at(&format!("/domain/{}", all[0]));
    browser.script(
        "navigator.share = (what) => { window.shared = what; return Promise.resolve(); }",
        &[],
    );
    thumb.tap(&browser.main().button("Share"));
    let shared = browser.until("it is shared", || {
        let shared = browser.try_script("return window.shared", &[])?;
        Ok(Some(shared).filter(|it| !it.is_null()))
    });
    assert_eq!(shared["title"], all[0]);
    assert!(
        shared["url"].as_str().is_some_and(|url| url.ends_with(&format!("/domain/{}", all[0])))
    );
    let clipboard = json!({"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]});
    browser.cdp("Browser.grantPermissions", clipboard);
    browser.script("navigator.share = undefined", &[]);
    thumb.tap(&browser.main().button("Share"));
    browser.text("Copied the address of this page").wait();
    assert_eq!(browser.script("return navigator.clipboard.readText()", &[]), shared["url"]);

    // The bar leads to the other places.
    thumb.follow(&browser.link("Watchlist"));
    browser.is_at("/watchlist");
    browser.main().link(&all[1]).wait();
    thumb.tap(&browser.button("More"));
    thumb.follow(&browser.link("Overview"));
    browser.is_at("/overview");
    thumb.tap(&browser.button("More"));
    thumb.follow(&browser.link("Account"));
    browser.is_at("/account");
    thumb.follow(&browser.link("Drops"));
    browser.is_at("/");
}

#[test]
fn four_taps_find_the_eight_best_com_names_of_tomorrow() {
    let mailbox = Mailbox::new();
    let world = World::market_of_tomorrow(&mailbox);
    world.add_account("ann@example.com", "pro");
    let mut api = world.server.client_with(&world.site.new_key("ann@example.com"));
    let query = "tld=com&release_from=tomorrow&release_to=tomorrow&limit=8";
    let best = api.get(&format!("/api/v1/drops?{query}")).json();
    let best = best["drops"].as_array().expect("a list").iter();
    let best: Vec<_> = best.filter_map(|row| row["name"].as_str()).map(str::to_owned).collect();
    let browser = Browser::new(&world.server);
    let thumb = Thumb::on(&browser);
    browser.open("/");
    let days = browser.main().at("//nav[@aria-label='Release days']");
    thumb.tap(&days.at("//a[starts-with(normalize-space(.), 'Tomorrow')]"));
    browser.is_at("/?release_from=2026-11-21&release_to=2026-11-21");
    thumb.tap(&browser.button("Filters"));
    thumb.tap(&browser.main().at("//aside//a[starts-with(normalize-space(.), '.com')]"));
    browser.is_at("/?tld=com&release_from=2026-11-21&release_to=2026-11-21");
    thumb.tap(&browser.main().at("//aside/button[starts-with(., 'Show ')]"));
    let shown = browser.until("eight names", || {
        let shown = seen(&browser);
        Ok((shown.len() >= 8).then_some(shown))
    });
    assert_eq!((best.len(), &shown[..8]), (8, &best[..]));
    assert_eq!(thumb.actions.get(), 4);
}
