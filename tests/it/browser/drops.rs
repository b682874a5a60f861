//! The drop list, and searches in all names.

use serde_json::json;

use super::driver::{Browser, Look};
use super::find::{DOWN, ENTER, ESCAPE};
use super::world::World;
use crate::common::Client;

/// Returns the names of the rows in order, once all rows of the page are there.
pub fn names(browser: &Browser) -> Vec<String> {
    browser.main().at("//*[@id='others']").wait_gone();
    let rows = browser.script(
        "return [...document.querySelectorAll('#list tbody .sel input')].map((box) => box.value)",
        &[],
    );
    serde_json::from_value(rows).expect("names")
}

/// Returns the selected names.
fn selected(browser: &Browser) -> Vec<String> {
    let boxes = browser.script(
        "return [...document.querySelectorAll('tbody .sel :checked')].map((box) => box.value)",
        &[],
    );
    serde_json::from_value(boxes).expect("names")
}

/// Returns the first field of each line of a CSV file to which the page links, fetched as by the
/// page.
fn csv(browser: &Browser, link: &str) -> Vec<String> {
    let text = browser.script(
        "const link = [...document.querySelectorAll('a[download]')].find((it) => it.textContent.startsWith(arguments[0]));
         return fetch(link.href).then((answer) => answer.text());",
        &[json!(link)],
    );
    let text = text.as_str().expect("a file").to_owned();
    let field = |line: &str| line.split(',').next().unwrap_or_default().to_owned();
    text.lines().skip(1).map(field).collect()
}

/// Returns the names that the API returns for the query string of the open page.
fn api(client: &mut Client, browser: &Browser) -> Vec<String> {
    let place = browser.place();
    let query = place.split_once('?').map_or("", |(_, query)| query);
    let answer = client.get(&format!("/api/v1/drops?limit=100&{query}")).json();
    let drops = answer["drops"].as_array().unwrap_or_else(|| panic!("{answer}"));
    drops.iter().map(|drop| drop["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn list_address_and_csv_agree() {
    let world = World::new();
    let browser = world.member("ann@example.com", "pro");
    let mut client = world.server.client_with(&world.site.new_key("ann@example.com"));
    browser.open("/?view=active");
    assert_eq!(names(&browser).len(), 100);
    assert_eq!(names(&browser), api(&mut client, &browser));

    browser.main().at("//aside//a[starts-with(normalize-space(.), '.com')]").click();
    browser.is_at("/?view=active&tld=com");
    let bar = browser.field("Search or filter names");
    bar.type_keys("a len:<=8 -digits");
    bar.type_keys(ENTER);
    browser.text("length ≤ 8").wait();
    let place = browser.place();
    for part in ["view=active", "tld=com", "contains=a", "max_len=8", "digits=none"] {
        assert!(place.contains(part), "{place}");
    }
    let shown = names(&browser);
    assert!(!shown.is_empty());
    for name in &shown {
        let label = name.strip_suffix(".com").unwrap_or_else(|| panic!("{name}"));
        // Letters are counted in the Unicode form.
        let is_idn = label.starts_with("xn--");
        assert!(is_idn || label.len() <= 8 && label.contains('a'), "{name}");
    }
    assert_eq!(shown, api(&mut client, &browser));
    let whole = csv(&browser, "CSV");
    assert_eq!(shown, whole[..shown.len()]);

    // Opening the address leads to the same page, with its filters.
    browser.open(&place);
    assert_eq!(names(&browser), shown);
    browser.text("no digits").wait();

    // Pages change in place, the back button works, and together the pages have the same rows as
    // the file.
    browser.open("/?view=active&tld=com&limit=50");
    let first = names(&browser);
    browser.link("Next").click();
    browser.is_at("/?view=active&tld=com&limit=50&offset=50");
    let second = names(&browser);
    assert_ne!(first, second);
    let whole = csv(&browser, "CSV");
    assert_eq!([first.clone(), second].concat(), whole[..100]);
    browser.script("history.back()", &[]);
    browser.is_at("/?view=active&tld=com&limit=50");
    browser.until("the first page again", || Ok((names(&browser) == first).then_some(())));
    // A click on a column sorts the list, and a second click reverses the order.
    browser.link("Length").click();
    browser.is_at("/?view=active&tld=com&sort=length&limit=50");
    assert_eq!(names(&browser), {
        let answer = client.get("/api/v1/drops?view=active&tld=com&sort=length&limit=50").json();
        let drops = answer["drops"].as_array().expect("a list").clone();
        drops
            .iter()
            .map(|drop| drop["name"].as_str().expect("a name").to_owned())
            .collect::<Vec<_>>()
    });
    browser.link("Length").click();
    browser.is_at("/?view=active&tld=com&sort=length&order=desc&limit=50");
}

#[test]
fn the_drop_list_works_by_keyboard() {
    let world = World::new();
    let browser = world.member("ann@example.com", "free");
    browser.open("/?view=active");
    browser.press("/");
    browser.press("harborlight");
    browser.press(ENTER);
    browser.is_at("/?view=active&contains=harborlight");
    assert_eq!(names(&browser), ["harborlight.com"]);
    // Escape moves the focus from the field to the rows.
    browser.press(ESCAPE);
    browser.press("j");
    browser.press("e");
    let parts = browser.main().at("//tr[contains(@class, 'parts-row')]//dl");
    parts.wait();
    browser.press("e");
    parts.wait_gone();
    browser.press("x");
    browser.text("1 selected").wait();
    browser.press("x");
    browser.press("w");
    browser.main().row("harborlight.com").button("Watching harborlight.com: stop").wait();
    browser.press("?");
    browser.heading("Keyboard shortcuts").wait();
    browser.press(ESCAPE);
    browser.heading("Keyboard shortcuts").wait_gone();
    browser.leave(|| browser.press("o"));
    browser.is_at("/domain/harborlight.com");
    // Some of the keys also work on the page of a name.
    browser.press("t");
    assert_eq!(browser.focused(), "input Tags");
    browser.press("coast");
    browser.leave(|| browser.press(ENTER));
    assert_eq!(browser.field("Tags").property("value"), "coast");
    browser.press("b");
    assert_eq!(browser.focused(), "a DropCatch");
}

#[test]
fn the_page_of_a_name_leads_to_the_next_name_of_its_list() {
    let world = World::new();
    let browser = world.member("ann@example.com", "free");
    browser.open("/?view=active&tld=com");
    let names = names(&browser);
    let page = |at: usize| format!("/domain/{}", names[at]);
    browser.link(&names[0]).follow();
    browser.is_at(&page(0));
    assert_eq!(browser.main().link("Previous name").count(), 0);
    browser.leave(|| browser.press("j"));
    browser.is_at(&page(1));
    browser.main().link("Next name").follow();
    browser.is_at(&page(2));
    browser.leave(|| browser.press("k"));
    browser.is_at(&page(1));
    browser.main().link(&format!("2 of {} in the list", names.len())).follow();
    browser.is_at("/?view=active&tld=com");
}

#[test]
fn a_search_is_saved_shows_new_names_and_becomes_an_alert() {
    let world = World::new();
    let browser = world.member("ann@example.com", "pro");
    browser.open("/?view=active&tld=com");
    browser.main().at("//summary[.='Save this search']").click();
    browser.main().field("Name").fill("Dotcoms");
    browser.main().button("Save search").follow();
    browser.is_at("/?view=active&tld=com");
    browser.main().at("//aside//a[@aria-current='true'][contains(., 'Dotcoms')]").wait();
    assert_eq!(browser.main().text("new").count(), 0);

    world.ingest("news.csv", &["brandnewname.com", "anothernewname.com", "newname.net"]);
    browser.until("the new names are counted", || {
        browser.open("/");
        Ok(browser.link("2 new in Dotcoms").is_shown().then_some(()))
    });
    browser.link("2 new in Dotcoms").follow();
    browser.is_at("/?view=active&new=after-1&tld=com");
    let mut newest = names(&browser);
    newest.sort_unstable();
    assert_eq!(newest, ["anothernewname.com", "brandnewname.com"]);
    assert_eq!(browser.link("2 new in Dotcoms").count(), 0);

    // Selected names are tagged, then hidden.
    browser.field("Select brandnewname.com").click();
    browser.field("Tags").fill("flip");
    browser.main().button("Save notes").follow();
    browser.main().row("brandnewname.com").button("Watching brandnewname.com: stop").wait();
    // The selection stays.
    browser.field("Select brandnewname.com").click();
    browser.field("Select anothernewname.com").click();
    browser.main().button("Hide").follow();
    browser.text("1 hidden on this page").wait();
    assert!(!names(&browser).contains(&"anothernewname.com".to_owned()));
    browser.main().link("Show").click();
    browser.main().row("anothernewname.com").text("hidden").wait();

    browser.link("Manage saved searches").follow();
    browser.heading("Saved searches").wait();
    browser.link("Alert me about Dotcoms").follow();
    assert_eq!(browser.field("TLDs").property("value"), "com");
    assert_eq!(browser.field("Name").property("value"), "Dotcoms");
    browser.field("Add filters").fill("starts:brand -digits");
    browser.main().at("//*[@id='preview']").text("brandnewname.com").wait();
    browser.main().button("Create alert").follow();
    browser.text("no digits, starts with brand").wait();
    // The filters appear as chips; unchecking one removes it.
    browser.main().at("//label[normalize-space(.)='no digits']").click();
    browser.main().button("Save").follow();
    browser.text("Names in .com; starts with brand").wait();
}

#[test]
fn a_preset_becomes_a_rule_in_three_clicks() {
    let world = World::new();
    let browser = world.member("ann@example.com", "pro");
    browser.open("/");
    browser.link("One word, .com").click();
    browser.is_at("/?view=active&tld=com&kind=word&caps=none");
    browser.link("Alert me about these").follow();
    browser.main().button("Create alert").follow();
    browser.heading("One word, .com").wait();
}

#[test]
fn an_action_is_undone_and_the_selection_stays() {
    let world = World::new();
    let browser = world.member("ann@example.com", "pro");
    browser.open("/?view=active&sort=name");
    let two = names(&browser)[..2].to_vec();
    for name in &two {
        browser.field(&format!("Select {name}")).click();
    }
    browser.field("Max bid (USD)").fill("12,50");
    browser.field("Venue").fill("DropCatch");
    browser.main().button("Save notes").follow();
    browser.text("$12.50").wait();
    browser.main().button("Save").follow();
    browser.text("2 names are on your watchlist now.").wait();
    browser.text("2 selected").wait();
    assert_eq!(selected(&browser), two);
    browser.main().button("Undo").follow();
    browser.text("2 changes undone.").wait();
    assert_eq!(selected(&browser), two);
    browser.main().row(&two[0]).button(&format!("Watch {}", two[0])).wait();
    // A star that was clicked by mistake: the note is back.
    browser.open("/watchlist");
    browser.field("Names").fill(&format!("domain,note\n{},mine\n", two[0]));
    browser.main().button("Add names").follow();
    browser.open("/?view=active&sort=name");
    browser.main().row(&two[0]).button(&format!("Watching {}: stop", two[0])).click();
    browser.leave(|| browser.button("Undo").click());
    browser.open("/watchlist");
    browser.main().row(&two[0]).text("mine").wait();
}

#[test]
fn type_ahead_suggests_names() {
    let world = World::new();
    let browser = Browser::new(&world.server);
    browser.open("/status");
    let field = browser.field("Search names");
    let option = |name: &str| browser.page().at("//*[@role='option']").text(name);
    field.type_keys("harborlight");
    option("harborlight.com").wait();
    field.type_keys("zzzz");
    option("harborlight.com").wait_gone();
    field.fill("oldharbor");
    option("oldharbor.com").wait();
    // The focus leaves and returns before the list closes.
    let open = browser.script(
        "const field = document.querySelector('#find');
         field.blur();
         field.focus();
         return new Promise((resolve) => setTimeout(() => resolve(field.ariaExpanded), 100))",
        &[],
    );
    assert_eq!(open, "true");
    field.type_keys(ESCAPE);
    option("oldharbor.com").wait_gone();
    // The text is set in one step, so that only one request is sent: the response to another could
    // arrive after the arrow key.
    browser.script(
        "const field = document.querySelector('#find');
         field.value = 'müller';
         field.dispatchEvent(new InputEvent('input', {bubbles: true}))",
        &[],
    );
    option("müller.de").wait();
    field.type_keys(DOWN);
    browser.leave(|| field.type_keys(ENTER));
    browser.is_at("/domain/xn--mller-kva.de");
    browser.text("müller.de").wait();
}

#[test]
fn the_query_bar_completes_filters() {
    let world = World::new();
    let browser = Browser::new(&world.server);
    browser.open("/?view=active");
    let field = browser.field("Search or filter names");
    let option = |text: &str| browser.page().at("//*[@role='option']").text(text);
    let options = || {
        let all =
            "return [...document.querySelectorAll('[role=option]')].map((it) => it.innerText)";
        serde_json::from_value::<Vec<String>>(browser.script(all, &[])).expect("texts")
    };
    // Filters come first, then names, and a chosen filter asks for its value.
    browser.press("/");
    browser.press("t");
    option("tld:").wait();
    let first = options();
    assert_eq!(first[0], "tld: TLD");
    assert!(first.iter().any(|it| it.starts_with('t') && it.contains(".com")), "{first:?}");
    field.type_keys(DOWN);
    field.type_keys(ENTER);
    assert_eq!(field.property("value"), "tld:");
    option("tld:com").wait();
    let com = options();
    let com = com.iter().find(|it| it.starts_with("tld:com")).expect("offered");
    option("tld:com").click();
    browser.is_at("/?view=active&tld=com");
    let left = com.lines().last().expect("a number").trim_start_matches("about ");
    browser.text(&format!("of {left}")).wait();

    // A value depends on the filters that are set; a phrase reads as its filters.
    field.type_keys("no d");
    option("no digits").wait();
    field.type_keys(DOWN);
    field.type_keys(ENTER);
    browser.is_at("/?view=active&tld=com&digits=none");
    field.type_keys("4 letters one word");
    browser.press(ENTER);
    browser.text("length 4").wait();
    browser.text("kind word").wait();
    assert!(names(&browser).iter().all(|name| name.len() == "abcd.com".len()));
}

#[test]
fn every_name_of_a_search_is_selected_across_pages() {
    let world = World::new();
    let browser = world.member("ann@example.com", "core");
    let clipboard = json!({"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]});
    browser.cdp("Browser.grantPermissions", clipboard);
    browser.open("/?view=all&starts=s&limit=50");
    let every = browser.main().at("//*[@id='every']");
    browser.field("Select all names on this page").click();
    browser.text("50 selected").wait();
    every.click();
    let total = browser.script("return document.querySelector('#every').dataset.total", &[]);
    let total: usize = total.as_str().and_then(|it| it.parse().ok()).expect("a number");
    assert!((101..1_000).contains(&total), "{total} names are three pages and may be selected");
    browser.text(&format!("{total} selected")).wait();
    // With one name deselected, not every name is selected.
    browser.field(&format!("Select {}", names(&browser)[0])).click();
    browser.text("49 selected").wait();
    browser.press("A");
    browser.text(&format!("{total} selected")).wait();
    browser.press("c");
    browser.text(&format!("Copied {total} names")).wait();
    let copied = browser.script("return navigator.clipboard.readText()", &[]);
    let copied: Vec<_> = copied.as_str().expect("text").lines().map(str::to_owned).collect();
    assert_eq!((copied.len(), &copied[..50]), (total, &names(&browser)[..]));

    // The tag is entered only with the keyboard.
    browser.press("t");
    assert_eq!(browser.focused(), "input Tags");
    browser.press("letter s");
    browser.leave(|| browser.press(ENTER));
    browser.text(&format!("{total} names are on your watchlist now.")).wait();
    browser.open("/watchlist?tag=letter+s");
    browser.text(&format!("of {total}")).wait();

    // The next page is hidden and shown again as a whole.
    browser.open("/?view=all&starts=s&limit=50&offset=50");
    browser.press("A");
    browser.press("h");
    browser.text("hidden on this page.").wait();
    assert!(names(&browser).is_empty());
    browser.main().link("Show").click();
    browser.main().row(&copied[50]).text("hidden").wait();
    browser.press("A");
    browser.press("h");
    browser.main().row(&copied[50]).text("hidden").wait_gone();
    assert_eq!(names(&browser)[0], copied[50]);
}

#[test]
fn rows_are_hidden_tagged_and_selected_by_keyboard() {
    let world = World::new();
    let browser = world.member("ann@example.com", "core");
    browser.open("/?view=active&limit=50");
    let all = names(&browser);
    // Without a selection, keys act on the current row. The next row then becomes the current one.
    browser.press("j");
    browser.press("j");
    browser.press("h");
    browser.text("1 hidden on this page.").wait();
    browser.press("x");
    browser.text("1 selected").wait();
    assert_eq!(selected(&browser), [all[2].as_str()]);
    for _ in 0..3 {
        browser.press("j");
    }
    browser.press("X");
    browser.text("4 selected").wait();
    assert_eq!(selected(&browser), all[2..6]);
    browser.press("h");
    browser.text("5 hidden on this page.").wait();
    assert_eq!(names(&browser)[..3], [0, 6, 7].map(|at: usize| all[at].clone()));

    browser.press("t");
    browser.press("garden");
    browser.leave(|| browser.press(ENTER));
    browser.text("1 name is on your watchlist now.").wait();
    // The name stays selected.
    browser.press("m");
    assert_eq!(browser.focused(), "input Max bid (USD)");
    browser.press("95");
    browser.main().button("Save notes").follow();
    browser.press("g");
    browser.leave(|| browser.press("w"));
    browser.is_at("/watchlist");
    browser.main().row(&all[6]).text("garden").wait();
    browser.main().row(&all[6]).text("$95").wait();

    browser.press("g");
    browser.leave(|| browser.press("d"));
    browser.press("s");
    browser.press("Mine");
    browser.leave(|| browser.press(ENTER));
    browser.main().at("//aside//a[contains(., 'Mine')]").wait();
    // Single-key shortcuts can be switched off on all pages.
    browser.press("?");
    browser.field("Enable single-key shortcuts").click();
    browser.press(ESCAPE);
    browser.press("g");
    browser.press("w");
    browser.press("j");
    browser.press("x");
    assert!(selected(&browser).is_empty());
}

#[test]
fn a_change_of_filters_replaces_only_the_rows() {
    let world = World::new();
    let browser = world.member("ann@example.com", "pro");
    browser.open("/?view=active");
    // All rows of the page come by themselves, and stay selected as a whole.
    browser.field("Select all names on this page").click();
    browser.main().at("//*[@id='others']").wait_gone();
    browser.text("100 selected").wait();
    browser.field("Select all names on this page").click();
    let mark =
        "for (const it of document.querySelectorAll('aside, aside li a, .tabs a, #list tbody'))
        it.kept = true;
        document.querySelector('.side .more').open = true;";
    browser.script(mark, &[]);
    let com = browser.main().at("//aside//a[starts-with(normalize-space(.), '.com')]");
    com.click();
    browser.is_at("/?view=active&tld=com");
    let kept = |selector: &str| {
        let count =
            "return [...document.querySelectorAll(arguments[0])].filter((it) => it.kept).length";
        browser.script(count, &[json!(selector)])
    };
    assert_eq!(kept("#list tbody"), 0);
    assert_eq!(kept("aside"), 1);
    assert_eq!(kept(".tabs a"), browser.main().at("//*[@class='tabs']//a").count());
    assert!(kept("aside li a[aria-current]").as_u64() > Some(0));
    assert_eq!(browser.focused().split(' ').nth(1), Some(".com"));
    assert_eq!(browser.script("return document.querySelector('.side .more').open", &[]), true);
    assert_eq!(browser.field("TLDs").property("value"), "com");
    browser.script("history.back()", &[]);
    browser.is_at("/?view=active");
    browser
        .until("no TLD", || Ok(browser.field("TLDs").property("value").is_empty().then_some(())));
}

#[test]
fn a_phone_lays_out_only_the_rows_on_its_screen() {
    let world = World::new();
    let browser = Browser::new(&world.server);
    browser.look(Look::PHONE);
    browser.open("/?view=active");
    let all = names(&browser);
    let skipped = || {
        let rows = "return [...document.querySelectorAll('#list tbody th')].filter((it) =>
            !it.checkVisibility({contentVisibilityAuto: true})).map((it) => it.textContent)";
        serde_json::from_value::<Vec<String>>(browser.script(rows, &[])).expect("names")
    };
    browser.until("rows are skipped", || Ok((skipped().len() >= 50).then_some(())));
    // A row that is skipped is found, and appears where one scrolls to it.
    let last = all.last().expect("rows").as_str();
    assert!(skipped().iter().any(|name| name == last), "{last}");
    browser.main().row(last).link(last).follow();
    browser.is_at(&format!("/domain/{last}"));
}
