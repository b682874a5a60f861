//! The pages in a real browser: Chromium, driven through whole stories against the real binary. Every
//! page is checked, in both widths and colour schemes, for findings of axe-core, console errors,
//! sideways scrolling, a heavy first load and layout shifts.
//!
//! Elements are found in the way that people find them: by role, label and visible text. Tests
//! never sleep; they poll for the expected state of a page, with a deadline.

pub mod access;
mod account;
mod driver;
mod drops;
mod escape;
mod facts;
mod find;
mod judge;
mod morning;
mod owned;
mod pace;
mod phone;
mod pictures;
mod story;
pub mod world;
