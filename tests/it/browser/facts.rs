//! Facts beside the letters, from the files of an investor to a table in a spreadsheet program.

use std::process::Command;

use super::drops::names;
use super::world::World;
use crate::sales;

const AHREFS: &str = "\
Target,URL Rating,Domain Rating,Ref. domains / All
lemon.com,12,31,140
peach.com,5,9,12
";
const MAJESTIC: &str = "\
Item,TrustFlow,CitationFlow,RefDomains
lemon.com,24,31,150
peach.com,22,9,11
grape.com,3,1,2
";
/// No program's export: a year, and text with letters beyond ASCII.
const OWN: &str = "\
Name;Erstes Jahr;Notiz
lemon.com;2003;Müller & Söhne – größer
peach.com;2015;neu
grape.com;1999;αβγ
";

#[test]
fn facts_from_three_files_to_a_spreadsheet() {
    let world = World::new();
    sales::write(&world.site);
    world.ingest_soon("soon.csv", &["lemon.com", "peach.com", "grape.com", "melon.com"], 8);
    let browser = world.member("ann@example.com", "core");
    let add = |name: &str, text: &str| {
        let file = world.site.write(name, text);
        browser.open("/account/facts");
        browser.main().field("File").type_keys(file.to_str().expect("UTF-8"));
        browser.main().button("Add file").follow();
    };

    // Two exports are recognised; the columns of the third file are described once.
    for (name, text) in [("ahrefs.csv", AHREFS), ("majestic.csv", MAJESTIC)] {
        add(name, text);
        browser.text("The file is added.").wait();
    }
    add("own.csv", OWN);
    browser.heading("Describe the columns").wait();
    browser.field("Name").fill("domain");
    browser.field("Erstes Jahr").fill("history.first:year");
    browser.field("Notiz").fill("history.note:text");
    browser.main().button("Save").follow();
    browser.text("Choose the file again").wait();
    add("own.csv", OWN);
    browser.text("The file is added.").wait();

    // Conditions on two sources find the one name of this week.
    browser.open("/?release_from=today&release_to=%2B7d");
    for term in ["fact:majestic.tf:15..", "fact:history.first:..2009"] {
        browser.field("Search or filter names").fill(term);
        browser.press("\u{e007}");
        browser.text(term.trim_start_matches("fact:")).wait();
    }
    browser.main().link("lemon.com").wait();
    assert_eq!(names(&browser), ["lemon.com"]);
    browser.main().at("//summary[.='Columns']").click();
    for fact in ["majestic.tf", "history.first", "history.note"] {
        browser.main().field(fact).click();
    }
    browser.main().button("Show these").follow();
    for value in ["24", "2003", "Müller & Söhne – größer"] {
        browser.main().row("lemon.com").text(value).wait();
    }

    // The export has the chosen columns, and a spreadsheet program reads their letters.
    let link = browser.link("for Excel").property("href");
    let (_, path) = link.split_once("/api/").expect("an address of the API");
    let mut api = world.server.client_with(&world.site.new_key("ann@example.com"));
    let exported = api.get(&format!("/api/{path}"));
    assert_eq!(exported.status, 200, "{}", exported.text());
    let csv = world.site.write("drops.csv", &exported.body);
    let home = csv.parent().expect("a folder");
    let mut office = Command::new("soffice");
    office.arg(format!("-env:UserInstallation=file://{}/office", home.display()));
    // Commas, double quotes, UTF-8: what its dialog proposes for a file with a byte order mark.
    office.args(["--headless", "--infilter=CSV:44,34,76", "--convert-to", "fods", "--outdir"]);
    office.arg(home).arg(&csv);
    let done = office.output().expect("LibreOffice is installed: run tests/tools");
    assert!(done.status.success(), "{done:?}");
    let table = std::fs::read_to_string(home.join("drops.fods")).expect("a table");
    for text in ["name", "lemon.com", "majestic.tf", "history.first", "Müller &amp; Söhne – größer"]
    {
        assert!(table.contains(&format!(">{text}<")), "{text}: {}", exported.text());
    }
    assert!(!table.contains("peach.com"), "{}", exported.text());

    // The dossier says why, and what similar names sold for.
    browser.main().link("lemon.com").follow();
    let facts = browser.main().at("//section[h2='Facts']");
    facts.row("tf").text("24").wait();
    facts.row("first").text("2003").wait();
    browser.heading("What similar names sold for").wait();
    browser
        .main()
        .at("//section[h2='What similar names sold for']")
        .text("middle half of 7 sales")
        .wait();
}
