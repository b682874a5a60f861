//! How fast the list below a search field answers. Nothing is asserted about time: it is printed, and
//! this is a debug build.

use serde_json::json;

use super::driver::Browser;
use super::world::World;
use crate::common::runs::say;

/// Types letter by letter into the field of every page, and tells for each the milliseconds from the
/// key to the painted list.
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
    for (what, mut times) in [("answered", answered), ("painted", painted)] {
        times.sort_by(f64::total_cmp);
        let at = |part: usize| times[(times.len() - 1) * part / 100];
        let (median, worst) = (at(50), at(95));
        say(&format!("{what} after {median:.1} ms (median), {worst:.1} ms (95th percentile)"));
    }
}
