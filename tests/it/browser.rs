//! The pages in a real browser: Chromium, driven through whole stories against the real binary, as
//! people use them. What a page must never have (what axe-core finds, errors in the console, sideways
//! scrolling, a heavy first load, a layout that moves) is looked for on every page, in both widths
//! and both colour schemes.
//!
//! Things are found as people find them: by role, label and visible text. Nothing sleeps: what a page
//! comes to is asked for until it is so, with a deadline.

pub mod access;
mod account;
mod driver;
mod drops;
mod escape;
mod find;
mod judge;
mod owned;
mod pace;
mod pictures;
mod story;
pub mod world;
