//! The pages in a real browser: Chromium, driven through whole stories against the real binary, as
//! people use them. What a page must never have (what axe-core finds, errors in the console, sideways
//! scrolling, a heavy first load, a layout that moves) is looked for on every page, in both widths
//! and both colour schemes.
//!
//! Things are found as people find them: by role, label and visible text. Nothing sleeps: what a page
//! comes to is asked for until it is so, with a deadline.

#[path = "browser/access.rs"]
mod access;
#[path = "browser/account.rs"]
mod account;
#[path = "common/mod.rs"]
mod common;
#[path = "browser/driver.rs"]
mod driver;
#[path = "browser/drops.rs"]
mod drops;
#[path = "browser/escape.rs"]
mod escape;
#[path = "browser/find.rs"]
mod find;
#[path = "browser/judge.rs"]
mod judge;
#[path = "browser/owned.rs"]
mod owned;
#[path = "browser/pace.rs"]
mod pace;
#[path = "browser/world.rs"]
mod world;
