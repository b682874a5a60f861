//! Pages for everybody: by every look, without scripts, by keyboard alone.

use crate::driver::{Browser, Look};
use crate::world::World;

/// Pages that need no log-in: what their pictures are called, and their paths.
const OPEN: [(&str, &str); 2] = [("status", "/status"), ("nowhere", "/nowhere")];

#[test]
fn no_open_page_has_what_no_page_may_have() {
    let world = World::new();
    let browser = Browser::new(&world.server);
    let found = OPEN.iter().flat_map(|(name, path)| browser.problems_everywhere(name, path));
    let found: Vec<String> = found.collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
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
