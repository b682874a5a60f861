//! `/watchlist/alerts`, and the bell of a watched name.

use super::{HTML, World};

const PATH: &str = "/watchlist/alerts";
/// Mail settings of a server that sends no mail in these tests: no mail server listens on this port.
const MAIL: &str =
    "[smtp]\nhost = \"127.0.0.1\"\nport = 9\ntls = \"none\"\nfrom = \"drops@example.com\"\n";

/// Returns the values of the checked boxes of a field.
fn checked(page: &str, name: &str) -> Vec<String> {
    let boxes = page.split("<input").filter(|input| input.contains(&format!("name=\"{name}\"")));
    let chosen =
        boxes.filter(|input| input.split('>').next().is_some_and(|it| it.contains(" checked")));
    chosen
        .filter_map(|input| Some(input.split_once("value=\"")?.1.split('"').next()?.to_owned()))
        .collect()
}

#[test]
fn settings_are_saved_and_shown() {
    let world = World::with(MAIL);
    let mut ann = world.person("ann@example.com", "api");
    ann.get("/watchlist").assert_says(200, "Alerts");
    let page = ann.get(PATH);
    page.assert_says(200, "These are the defaults.");
    assert_eq!(
        checked(&page.text, "kind"),
        ["drops-tomorrow", "available", "renewed", "renewal-due"]
    );
    assert_eq!(checked(&page.text, "email"), ["on"]);
    let hours =
        [("digest", "8"), ("quiet_from", "22"), ("quiet_to", "7"), ("zone", "Europe/Berlin")];
    let kinds = [("kind", "left-zone"), ("kind", "available"), ("email", "on")];
    let fields = [&hours[..], &kinds[..]].concat();
    ann.post(PATH, &fields).assert_goes_to("/watchlist/alerts?notice=saved");
    let page = ann.get("/watchlist/alerts?notice=saved");
    page.assert_says(200, "These settings hold for all names you watch.");
    page.assert_lacks("These are the defaults.");
    assert_eq!(checked(&page.text, "kind"), ["left-zone", "available"]);
    for value in [
        "value=\"8\" selected",
        "value=\"22\" selected",
        "value=\"7\" selected",
        "value=\"Europe/Berlin\"",
    ] {
        assert!(page.text.contains(value), "no {value}");
    }
    // A new webhook shows its secret once.
    let page =
        ann.post(PATH, &[&fields[..], &[("webhook", "https://hooks.example.com/x")]].concat());
    page.assert_says(200, "Settings saved");
    assert!(page.text.contains("whsec_") && page.text.contains("href=\"/watchlist/alerts\""));
    assert!(!ann.get(PATH).text.contains("whsec_"));
    ann.get(PATH).assert_says(200, "Webhook to hooks.example.com");
    // A form without kinds and channels.
    ann.post(PATH, &[("zone", "UTC")]).assert_goes_to("/watchlist/alerts?notice=saved");
    assert_eq!(checked(&ann.get(PATH).text, "kind"), [] as [&str; 0]);
}

#[test]
fn rejected_settings_stay_in_the_form() {
    let world = World::new();
    let mut ann = world.person("ann@example.com", "free");
    for (fields, field, words) in [
        (vec![("zone", HTML)], "zone", "Must be a name of the IANA time zone database"),
        (vec![("zone", "")], "zone", "Must be a name of the IANA time zone database"),
        (vec![("zone", "UTC"), ("quiet_from", "7")], "quiet_to", "Is required"),
        (
            vec![("zone", "UTC"), ("quiet_from", "7"), ("quiet_to", "7")],
            "quiet_to",
            "Must be another hour",
        ),
        (vec![("zone", "UTC"), ("digest", "99")], "digest", "Must be an hour"),
        (vec![("zone", "UTC"), ("kind", "dropped")], "kinds", "Must be one of left-zone"),
    ] {
        let page = ann.post(PATH, &fields);
        page.assert_says(400, words);
        assert!(page.text.contains(&format!("href=\"#{field}\"")), "{field}: {}", page.visible());
        assert!(!page.text.contains(HTML), "escaped");
    }
    let page = ann.post(PATH, &[("zone", "UTC"), ("webhook", "https://hooks.example.com/")]);
    page.assert_says(403, "The free plan sends alerts by email only.");
    ann.get(PATH).assert_says(200, "These are the defaults.");
}

#[test]
fn the_bell_mutes_a_name_and_its_page_chooses() {
    let world = World::with(MAIL);
    let mut ann = world.person("ann@example.com", "api");
    ann.post("/watch", &[("domain", "solar.com"), ("next", "/")]).assert_goes_to("/");
    let dossier = "/domain/solar.com";
    assert!(ann.get("/watchlist").text.contains("aria-label=\"Mute alerts about solar.com\""));
    let next = ("next", "/watchlist");
    ann.post("/watchlist/bell", &[("mute", "solar.com"), next]).assert_goes_to("/watchlist");
    assert!(ann.get("/watchlist").text.contains("aria-label=\"Turn on alerts about solar.com\""));
    ann.get(dossier).assert_says(200, "Muted");
    assert_eq!(checked(&ann.get(dossier).text, "choice"), ["mute"]);
    ann.post("/watchlist/bell", &[("hear", "solar.com"), next]).assert_goes_to("/watchlist");
    assert_eq!(checked(&ann.get(dossier).text, "choice"), ["follow"]);
    let own = [("domain", "solar.com"), ("next", dossier), ("choice", "own"), ("kind", "rescored")];
    ann.post("/watchlist/bell", &own).assert_goes_to(dossier);
    let page = ann.get(dossier);
    assert_eq!(checked(&page.text, "choice"), ["own"]);
    assert_eq!(checked(&page.text, "kind"), ["rescored"]);
    let page = ann.get("/watchlist");
    assert!(page.text.contains("href=\"/domain/solar.com#alerts\""), "{}", page.text);
    // The same request by a script, and for names that are not watched.
    assert_eq!(ann.post_by_script("/watchlist/bell", &[("mute", "solar.com")]).status, 204);
    assert_eq!(checked(&ann.get(dossier).text, "choice"), ["mute"]);
    ann.post("/watchlist/bell", &[("mute", "fresh.com"), next]).assert_goes_to("/watchlist");
    let bad = [("domain", "solar.com"), ("choice", "own"), ("kind", "gone")];
    ann.post("/watchlist/bell", &bad).assert_says(400, "must be one of left-zone");
    assert_eq!(checked(&ann.get(dossier).text, "choice"), ["mute"]);
    // The watched names of other accounts are not affected.
    let mut bob = world.person("bob@example.com", "api");
    bob.post("/watchlist/bell", &[("hear", "solar.com"), next]).assert_goes_to("/watchlist");
    assert_eq!(checked(&ann.get(dossier).text, "choice"), ["mute"]);
}

#[test]
fn a_test_needs_a_channel() {
    let world = World::with("# without [smtp]\n");
    let mut ann = world.person("ann@example.com", "api");
    let page = ann.post("/watchlist/alerts/test", &[]);
    page.assert_says(409, "No channel is set: save the settings with a channel first.");
    ann.get(PATH).assert_says(200, "No messages sent yet.");
}

#[test]
fn tests_are_sent_and_listed() {
    let world = World::with(MAIL);
    let mut ann = world.person("ann@example.com", "free");
    ann.get(PATH).assert_says(200, "No messages sent yet.");
    ann.post("/watchlist/alerts/test", &[]).assert_goes_to("/watchlist/alerts?notice=tested");
    let page = ann.get_part(PATH);
    page.assert_says(200, "1 change");
    assert!(page.text.contains("href=\"/domain/example.com\""), "{}", page.text);
    ann.post(PATH, &[("zone", "UTC")]).assert_goes_to("/watchlist/alerts?notice=saved");
    let page = ann.post("/watchlist/alerts/test", &[]);
    page.assert_says(409, "No channel is set: save the settings with a channel first.");
    // A message to a removed channel cannot be sent again.
    page.assert_says(409, "switched off or removed before it was sent");
    assert!(!page.text.contains("/retry\""), "{}", page.visible());
    let unknown = format!("/watchlist/alerts/deliveries/{}/retry", "0".repeat(32));
    ann.post(&unknown, &[]).assert_says(404, "Not found");
}
