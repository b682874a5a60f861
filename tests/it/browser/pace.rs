//! Response times of the suggestions below a search field, and of the drop list after a change of its
//! filters. Times are printed, not asserted: CI measures a debug build.

use std::time::Instant;

use serde_json::json;

use super::driver::Browser;
use super::world::World;
use crate::common::mailbox::Mailbox;
use crate::common::runs::{figure, say};

/// Types letter by letter into the search field of every page, and returns for each letter the
/// milliseconds from the key to the painted list.
const TYPE: &str = "
    const [text] = arguments;
    const field = document.querySelector('#find');
    field.focus();
    const list = () => document.getElementById(field.getAttribute('aria-controls'));
    const paint = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    return (async () => {
        const took = [];
        for (let end = 1; end <= text.length; end++) {
            const begun = performance.now();
            const changed = new Promise((done) => {
                const watch = new MutationObserver(() => { watch.disconnect(); done(); });
                watch.observe(list(), {childList: true, subtree: true, characterData: true});
            });
            field.value = text.slice(0, end);
            field.dispatchEvent(new InputEvent('input', {bubbles: true}));
            await changed;
            const answered = performance.now() - begun;
            await paint();
            took.push([answered, performance.now() - begun]);
        }
        return took;
    })();
";

#[test]
fn typeahead_is_measured() {
    let world = World::new();
    let browser = Browser::new(&world.server);
    browser.open("/status");
    browser.field("Search names").type_keys("q");
    browser.page().at("//*[@role='option']").wait();
    let mut answered = Vec::new();
    let mut painted = Vec::new();
    for text in ["solar", "market", "harbor", "digital", "photo"] {
        let took = browser.script(TYPE, &[json!(text)]);
        for pair in took.as_array().expect("figures") {
            answered.push(pair[0].as_f64().expect("milliseconds"));
            painted.push(pair[1].as_f64().expect("milliseconds"));
        }
    }
    tell("as one types: answered", answered);
    tell("as one types: painted", painted);
}

fn tell(what: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let at = |part: usize| times[(times.len() - 1) * part / 100];
    let [median, slow, slowest] = [50, 95, 99].map(at);
    let count = times.len();
    say(&format!(
        "{what} after {median:.1} ms (median), {slow:.1} (p95), {slowest:.1} (p99), {count} times"
    ));
}

/// Follows a link of the list as a click does, and returns the milliseconds to the response and to the
/// painted rows.
const FOLLOW: &str = "
    const link = document.querySelector(arguments[0]);
    const rows = document.querySelector('#rows');
    const paint = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    return (async () => {
        await paint();
        const begun = performance.now();
        const changed = new Promise((done) => {
            const watch = new MutationObserver(() => {
                if (!rows.isConnected) { watch.disconnect(); done(); }
            });
            watch.observe(document.body, {childList: true, subtree: true});
        });
        link.click();
        await changed;
        const load = performance.getEntriesByType('resource').at(-1);
        await paint();
        return [load.responseEnd - begun, performance.now() - begun];
    })();
";

/// Successive changes of filters, like those made with the sidebar, the days and the tabs.
const CHANGES: [&str; 12] = [
    ".days li:nth-child(2) a",
    ".side section:not(.presets) a[href*='tld=com']",
    ".side a[href*='digits=none']",
    ".side a[href*='max_len=13']",
    ".side a[href*='_dqs=']",
    ".tools .clear",
    ".days li:nth-child(4) a",
    ".side section:not(.presets) a[href*='tld=net']",
    ".side a[href*='hyphens=none']",
    ".tools .clear",
    ".tabs li:nth-child(3) a",
    ".tabs li:nth-child(1) a",
];

#[test]
fn a_change_of_filters_is_measured() {
    let world = World::market(&Mailbox::new());
    let browser = world.member("ann@example.com", "api");
    let (mut answered, mut painted) = (Vec::new(), Vec::new());
    // The first round computes the day's tables.
    for round in 0..=figure(1, 10) {
        browser.open("/");
        for change in CHANGES {
            let took = browser.script(FOLLOW, &[json!(change)]);
            let at =
                |place: usize| took[place].as_f64().unwrap_or_else(|| panic!("{change}: {took}"));
            if round > 0 {
                answered.push(at(0));
                painted.push(at(1));
            }
        }
    }
    tell("filter change: answered", answered);
    tell("filter change: painted", painted);

    // Requests without the browser: a list of 100 rows with facets, over a connection that stays
    // open.
    let mut api = world.server.client_with(&world.site.new_key("ann@example.com"));
    let filters = ["", "&tld=com", "&tld=com,net&digits=none", "&max_len=8&min_dqs=60"];
    let days = ["release_from=tomorrow&release_to=%2B7d", "release_from=%2B2d&release_to=%2B2d"];
    let mut served = Vec::new();
    for round in 0..=figure(1, 100) {
        for day in days {
            for filter in filters {
                let facets = "facets=dqs,tld,length,kind,language";
                let target = format!("/api/v1/drops?limit=100&{facets}&{day}{filter}");
                let begun = Instant::now();
                let answer = api.get(&target);
                let took = begun.elapsed().as_secs_f64() * 1e3;
                let body = answer.json();
                assert!(
                    body["facets"]["tld"].as_array().is_some_and(|it| !it.is_empty()),
                    "{body}"
                );
                if round > 0 {
                    served.push(took);
                }
            }
        }
    }
    tell("list of 100 with facets: served", served);
}
