//! Comparable sales: `dropdex facts sales` as a user runs it. All sales are invented.

use crate::common::{Site, TODAY};

/// Seven sales of single words at an auction, one row that is refused, and one sale in retail.
const FILE: &str = "\
    domain,price,currency,date,venue,buyer\n\
    river.com,100,USD,2026-01-10,NameJet,PRIVATE\n\
    stone.com,200,USD,2026-01-11,NameJet,PRIVATE\n\
    cloud.com,300,USD,2026-01-12,NameJet,PRIVATE\n\
    tiger.com,400,USD,2025-04-10,NameJet,PRIVATE\n\
    apple.com,500,USD,2025-05-10,NameJet,PRIVATE\n\
    bread.com,600,USD,2025-06-10,NameJet,PRIVATE\n\
    chair.com,700,USD,2024-07-10,NameJet,PRIVATE\n\
    table.com,soon,USD,2024-07-10,NameJet,PRIVATE\n\
    horse.com,9000,USD,2026-01-20,Sedo,PRIVATE\n";

#[test]
fn sales_of_similar_names_are_listed_by_channel() {
    let site = Site::new();
    let file = site.write("sales.csv", FILE);
    let file = file.to_str().expect("UTF-8");
    let base = ["facts", "sales", "--as-of", TODAY, "--name", "lemon.com"];
    let text = site.ok(&[&base[..], &[file]].concat());
    for part in [
        "sales; rows: 9, sales: 8, unsold: 0, refused: 1",
        "dropped, may be personal or secret: buyer",
        "line 9, price: not an amount of money",
        "auction, USD: 7 sales. Too few sales to check such ranges: 2 had one; 30 are needed.",
        "retail, USD: 1 sales.",
        "lemon.com:\n  Similar names sold at auction for 210 to 550 USD (middle half of 7 sales, 2024-26). Too few",
        "2025-04-10         400 USD  tiger.com (NameJet): .com, same length",
        "1 sale of similar names in retail, 2026: 1 similar sales; a range needs 5.",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("PRIVATE"), "{text}");
    let text = site.ok(&[&base[..], &["--channel", "retail", file]].concat());
    assert!(text.contains("9,000 USD  horse.com") && !text.contains("auction"), "{text}");
    let text = site.ok(&["facts", "sales", "--as-of", "2024-01-01", "--name", "lemon.com", file]);
    assert!(text.contains("lemon.com:\n  no sales of similar names"), "{text}");
}

#[test]
fn files_and_names_that_cannot_be_read_are_reported() {
    let site = Site::new();
    let sales = site.write("sales.csv", FILE);
    let other = site.write("other.csv", "Item,TrustFlow,CitationFlow\nriver.com,1,2\n");
    let (sales, other) = (sales.to_str().expect("UTF-8"), other.to_str().expect("UTF-8"));
    let refused = site.run(&["facts", "sales", other, sales]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stdout.contains("auction, USD: 7 sales"), "{}", refused.stdout);
    let why = "other.csv: has no columns with name, price and day of sales";
    assert!(refused.stderr.contains(why), "{}", refused.stderr);
    let usage = site.run(&["facts", "sales", "--name", "com", sales]);
    assert_eq!(usage.code, Some(2), "{}", usage.stderr);
}
