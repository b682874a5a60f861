//! A new user, from the first visit to a working API key.

use std::process::Command;

use super::driver::Browser;
use super::world::{PASSWORD, World};

const EMAIL: &str = "new@example.com";

#[test]
fn a_visitor_signs_up_and_gets_a_key_that_works_with_curl() {
    let world = World::new();
    let browser = Browser::new(&world.server);
    browser.open("/");
    browser.link("Log in").follow();
    browser.main().link("Sign up").follow();
    browser.field("E-mail address").fill(EMAIL);
    browser.field("Password").fill(PASSWORD);
    browser.main().button("Sign up").follow();
    // The response does not reveal whether the address had an account, so the visitor logs in.
    browser.text("Sign-up complete").wait();
    browser.log_in(EMAIL);
    // The operator sets the plan, since the JSON API requires the Pro plan.
    world.site.ok(&["account", "set-plan", EMAIL, "pro"]);

    browser.open("/account/security");
    browser.text("You have no API key yet").wait();
    browser.main().button("Create API key").follow();
    let line = browser.script(
        "return [...document.querySelectorAll('pre, code')].map((it) => it.textContent).find((text) => text.trim().startsWith('curl'))",
        &[],
    );
    let line = line.as_str().expect("a ready line for curl").to_owned();
    assert!(line.contains("ddx_"), "{line}");
    let output = Command::new("bash").args(["-c", &line]).output().expect("bash runs");
    let answer = String::from_utf8_lossy(&output.stdout).into_owned();
    let answer: serde_json::Value =
        serde_json::from_str(&answer).unwrap_or_else(|err| panic!("{err}: {line}\n{answer}"));
    assert!(answer["drops"].as_array().is_some_and(|drops| !drops.is_empty()), "{answer}");

    // The key is shown once.
    browser.open("/account/security");
    assert_eq!(browser.text("ddx_").count(), 0);
    browser.button("Log out").follow();
    browser.open("/account");
    browser.is_at("/login?next=%2Faccount");
}

#[test]
fn sessions_end_one_by_one_and_all_with_a_change_of_password() {
    let world = World::new();
    let browser = world.member(EMAIL, "free");
    let other = Browser::new(&world.server);
    other.log_in(EMAIL);
    let third = Browser::new(&world.server);
    third.log_in(EMAIL);
    browser.open("/account/security");
    browser.main().text("Chrome on Linux").wait();
    browser.main().button("End").click();
    browser.text("The session was ended.").wait();
    third.open("/watchlist");
    third.is_at("/login?next=%2Fwatchlist");
    browser.open("/account/security");
    browser.field("Current password").fill("not this one");
    browser.field("New password").fill("five lanterns at the quay");
    browser.main().button("Change password").follow();
    browser.main().at("//*[@aria-invalid='true']").wait();
    browser.field("Current password").fill(PASSWORD);
    browser.field("New password").fill("five lanterns at the quay");
    browser.main().button("Change password").follow();
    browser.button("Log out").wait();
    other.open("/account/plan");
    other.is_at("/login?next=%2Faccount%2Fplan");
    other.field("E-mail address").fill(EMAIL);
    other.field("Password").fill("five lanterns at the quay");
    other.main().button("Log in").follow();
    other.is_at("/account/plan");
}
