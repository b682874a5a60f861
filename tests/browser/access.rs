//! Pages for everybody: by every look, without scripts, by keyboard alone.

use crate::driver::{Browser, Look};
use crate::world::World;

/// Pages that need no log-in.
const OPEN: [&str; 1] = ["/status"];

#[test]
fn no_open_page_has_what_no_page_may_have() {
    let world = World::new();
    let browser = Browser::new(&world.server);
    for path in OPEN {
        browser.judge_everywhere(path);
    }
}

#[test]
fn the_status_is_told_without_scripts_and_on_a_phone() {
    let world = World::new();
    let browser = Browser::without_scripts(&world.server);
    browser.look(Look::PHONE);
    browser.open("/status");
    browser.heading("Status").wait();
    assert_eq!(browser.page().row("2026-").count(), 1);
    browser.text("Running for").wait();
    browser.link("Status").follow();
    browser.is_at("/status");
}
