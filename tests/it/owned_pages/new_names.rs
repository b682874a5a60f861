//! Names that are new since the last visit, and the morning digest, on servers whose clock is set.

use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::person::{PASSWORD, Person};
use crate::common::mailbox::Mailbox;
use crate::common::{Server, Site, process, tools, wait};

const EMAIL: &str = "ann@example.com";
/// The day before the clocks of Berlin go forward.
const EVE: &str = "2027-03-27";

/// An installation with a list of the day before, and its server.
struct Timed {
    site: Site,
    clock: PathBuf,
    config: String,
    server: Option<Server>,
}

impl Timed {
    fn new(settings: &str) -> Timed {
        let site = Site::new();
        let list = site.write("list.csv", "domain,drop_date\nsolar.com,2027-03-25\n");
        let list = list.to_str().expect("text").to_owned();
        let before = "2027-03-26";
        site.ok_on(before, &["ingest", &list, "--observed-at", "2027-03-26T00:00:00Z"]);
        let mut add = site.command(&["account", "add", EMAIL, "--plan", "pro", "--password-stdin"]);
        let password = site.write("password", format!("{PASSWORD}\n"));
        let password = std::fs::File::open(password).expect("it was written");
        add.env("DROPDEX_TODAY", before).stdin(password);
        let added = process::finish(add);
        assert_eq!(added.code, Some(0), "{added}");
        let (clock, config) = (site.lists().join("clock"), site.settings(settings));
        let mut timed = Timed { site, clock, config, server: None };
        timed.set(&format!("{EVE}T12:00:00Z"));
        timed.start();
        timed
    }

    fn set(&self, at: &str) {
        let at = at.parse::<DateTime<Utc>>().expect("a time").timestamp();
        let aside = self.clock.with_extension("aside");
        std::fs::write(&aside, format!("{at}\n")).expect("written");
        std::fs::rename(&aside, &self.clock).expect("renamed");
    }

    fn start(&mut self) {
        self.server = Some(self.site.serve_by(&self.clock, &["--config", &self.config]));
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("it runs")
    }

    fn person(&self) -> Person {
        Person::logged_in(self.server(), EMAIL)
    }

    /// Ingests a list of names that dropped, and waits until the server serves it.
    fn ingest(&self, file: &str, names: &[&str], observed: &str) {
        let rows: String = names.iter().map(|name| format!("{name},2027-03-26\n")).collect();
        let list = self.site.write(file, format!("domain,drop_date\n{rows}"));
        let list = list.to_str().expect("text");
        let mut ingest = self.site.command(&["ingest", "--observed-at", observed, list]);
        ingest.envs(tools::faketime(&self.clock));
        let done = process::finish(ingest);
        assert_eq!(done.code, Some(0), "{done}");
        let mut visitor = Person::nobody(self.server());
        let query = format!("/?view=active&q={}", names[0].split('.').next().expect("a label"));
        wait::until_ok(Duration::from_secs(60), || {
            let page = visitor.get(&query);
            if page.text.contains(names[0]) { Ok(()) } else { Err(page.visible()) }
        });
    }
}

/// Returns the names of a list, with a star before new ones.
fn rows(person: &mut Person, target: &str) -> Vec<String> {
    let page = person.get(target);
    assert_eq!(page.status, 200, "{}", page.visible());
    let rows = page.text.split("aria-label=\"Select ").skip(2).map(|row| {
        let (name, rest) = row.split_once('"').expect("a name");
        let row = rest.split("</tr>").next().unwrap_or_default();
        let is_new = row.contains("<i class=\"fresh\">new</i>");
        format!("{}{name}", if is_new { "*" } else { "" })
    });
    rows.collect()
}

#[test]
fn names_are_marked_that_came_since_the_last_visit() {
    let mut world = Timed::new("[web]\nplain_http = true\n");
    let mut ann = world.person();
    assert_eq!(rows(&mut ann, "/?view=active&sort=name"), ["solar.com"]);
    ann.get("/?view=active&new=since-visit").assert_says(200, "No names match these filters");
    world.ingest("one.csv", &["calmriver.com", "calmriver.net"], "2027-03-27T12:00:00Z");
    // The first visit continues, even after a restart.
    world.server.take().expect("it runs").stop();
    world.set(&format!("{EVE}T12:20:00Z"));
    world.start();
    let mut ann = world.person();
    let all = "/?view=active&sort=name";
    assert_eq!(rows(&mut ann, all), ["calmriver.com", "calmriver.net", "solar.com"]);

    // An hour later, another visit begins. Its marks stay when a page is loaded again.
    world.set(&format!("{EVE}T13:30:00Z"));
    let mut ann = world.person();
    let marked = ["*calmriver.com", "*calmriver.net", "solar.com"];
    for _ in 0..2 {
        assert_eq!(rows(&mut ann, all), marked);
    }
    ann.get(all).assert_says(200, "2 new since Sat 12:00");
    ann.get("/?view=active&tld=net").assert_says(200, "1 new since Sat 12:00");
    let new = "/?view=active&sort=name&new=since-visit";
    assert_eq!(rows(&mut ann, new), marked[..2]);
    assert_eq!(rows(&mut ann, "/?view=active&new=seen"), ["solar.com"]);
    ann.get(new).assert_says(200, "2 new names since Sat 12:00 Mark as seen");
    // Actions on all names of the list cover the same names.
    let names = ann.post("/selected.txt", &[("all", "yes"), ("search", "view=active&new=seen")]);
    assert_eq!(names.text, "solar.com\n");
    let bad = ann.get("/?new=yesterday");
    bad.assert_says(400, "The parameter new must be one of since-visit, seen.");
    Person::nobody(world.server()).get("/?new=seen").assert_says(400, "needs an account");

    ann.post("/seen", &[("batch", "2"), ("next", all)]).assert_goes_to(all);
    assert_eq!(rows(&mut ann, all), ["calmriver.com", "calmriver.net", "solar.com"]);
    ann.get(all).assert_lacks("fresh-chip");
    // A list that comes in the same visit is marked, and still is in the next one.
    world.ingest("two.csv", &["tealantern.com"], "2027-03-27T13:30:00Z");
    assert_eq!(rows(&mut ann, new), ["*tealantern.com"]);
    world.set(&format!("{EVE}T14:30:00Z"));
    assert_eq!(rows(&mut world.person(), new), ["*tealantern.com"]);
}

#[test]
fn a_digest_comes_at_its_hour_of_a_zone_and_once() {
    let mailbox = Mailbox::new();
    let mut world = Timed::new(&mailbox.settings("[web]\nplain_http = true\n"));
    let mut ann = world.person();
    let search = ann.add_search("Rivers", &[("q", "river")]);
    let page = "/account/notifications";
    ann.get(page).assert_says(200, "Morning digest One mail a day");
    let fields = [("hour", "8"), ("zone", "Europe/Berlin"), ("best", "on"), ("searches", "on")];
    let wrong = [("hour", "8"), ("zone", "Berlin"), ("best", "on")];
    ann.post("/account/digest", &wrong).assert_says(400, "time zone database");
    ann.post("/account/digest", &fields[..2]).assert_says(400, "Choose what the digest has");
    ann.post("/account/digest", &fields).assert_goes_to("/account/notifications?notice=digest");
    ann.get(page).assert_says(200, "Morning digest on");
    world.ingest("one.csv", &["calmriver.com", "tealantern.net"], "2027-03-27T12:00:00Z");

    // Eight in the morning is 07:00 UTC in winter, and 06:00 from this day on.
    world.set("2027-03-28T05:59:59Z");
    world.server.take().expect("it runs").stop();
    world.start();
    assert!(mailbox.is_empty());
    world.set("2027-03-28T06:00:00Z");
    let mail = mailbox.next();
    assert!(mail.to.contains("<ann@example.com>"), "{}", mail.to);
    let link = format!("https://drops.example.net/searches/{search}?new=1");
    let link = link.replace('=', "=3D");
    for said in [
        "Morning digest of 2027-03-28: 2 new names",
        "Best new names",
        "calmriver.com  DQS",
        "tealantern.net  DQS",
        "Rivers: 1 new",
        &link,
        "https://drops.example.net/unsubscribe/",
    ] {
        assert!(mail.text.contains(said), "{said}: {}", mail.text);
    }
    assert!(!mail.text.contains("solar.com"), "{}", mail.text);

    // It is not sent again after the server was killed, and not on a day without new names.
    world.server.take().expect("it runs").stop();
    world.set("2027-03-28T06:05:00Z");
    world.start();
    world.server.take().expect("it runs").kill();
    world.start();
    world.set("2027-03-29T06:30:00Z");
    world.server.take().expect("it runs").stop();
    world.start();
    world.ingest("two.csv", &["quietriver.com"], "2027-03-29T06:30:00Z");
    assert!(mailbox.is_empty());
    world.set("2027-03-30T06:00:00Z");
    let mail = mailbox.next();
    assert!(mail.text.contains("Morning digest of 2027-03-30: 1 new name,"), "{}", mail.text);
    assert!(mail.text.contains("quietriver.com") && !mail.text.contains("calmriver.com"));

    let mut ann = world.person();
    ann.post("/account/digest", &[("off", "yes")])
        .assert_goes_to("/account/notifications?notice=no-digest");
    ann.get(page).assert_lacks("Morning digest <span");
}
