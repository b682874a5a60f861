//! Runs the unit tests of the corpus generator, which is next to the benches that use it, and checks
//! the figures in the sample's README.

#[path = "../../benches/common/mod.rs"]
pub mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufReader;

use common::names::RealNames;
use dropdex::vocab::day::Day;
use dropdex::vocab::name::DomainName;

/// A row of the sample: domain, drop_date, release_date, status, registered_again.
type Row = (String, Option<String>, Option<String>, Option<String>, Option<String>);

fn sample_rows() -> Vec<Row> {
    let file = std::fs::File::open(RealNames::sample_path()).expect("the sample is there");
    let unpacked = flate2::bufread::GzDecoder::new(BufReader::new(file));
    let mut reader = csv::Reader::from_reader(unpacked);
    let header = "domain,drop_date,release_date,status,registered_again";
    assert_eq!(reader.headers().expect("a header"), header.split(',').collect::<Vec<_>>());
    reader.deserialize().collect::<Result<_, _>>().expect("every row is well formed")
}

#[test]
fn the_sample_has_the_names_that_its_readme_describes() {
    let sample = RealNames::read(&RealNames::sample_path()).expect("the sample is readable");
    assert_eq!(sample.refused(), 0, "every name is registrable");
    assert_eq!(sample.names().len(), 50_000);
    let com = sample.names().iter().filter(|name| name.tld() == "com").count();
    assert!((16_000..17_500).contains(&com), "a third is .com: {com}");
    let tlds: BTreeSet<&str> = sample.names().iter().map(DomainName::tld).collect();
    assert!(tlds.len() > 800, "{} TLDs", tlds.len());
    assert!(sample.names().iter().any(DomainName::is_idn));
}

#[test]
fn the_sample_has_the_dates_that_its_readme_describes() {
    let day = |text: &String| text.parse::<Day>().expect("a day");
    let (first, last): (Day, Day) = (day(&"2026-09-22".into()), day(&"2026-11-20".into()));
    let rows = sample_rows();
    let mut rows_of: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in &rows {
        rows_of.entry(&row.0).or_default().push(row);
    }
    let names = rows_of.len();
    let per_mille = |has: &dyn Fn(&[&Row]) -> bool| {
        rows_of.values().filter(|rows| has(rows)).count() * 1000 / names
    };
    let recent = |rows: &[&Row]| {
        rows.iter().filter_map(|row| row.1.as_ref()).any(|date| (first..=last).contains(&day(date)))
    };
    let shares = [
        ("dropped in the last 60 days", 790..810, per_mille(&recent)),
        ("never dropped", 190..210, per_mille(&|rows| rows.iter().all(|row| row.1.is_none()))),
        ("registered", 90..110, per_mille(&|rows| rows[0].3.as_deref() == Some("registered"))),
        ("registered again", 7..13, per_mille(&|rows| rows.iter().any(|row| row.4.is_some()))),
        ("release date", 25..35, per_mille(&|rows| rows.iter().any(|row| row.2.is_some()))),
        ("dropped twice", 15..25, per_mille(&|rows| rows.len() == 2)),
    ];
    for (what, range, share) in shares {
        assert!(range.contains(&share), "{what}: {share} of 1000, meant {range:?}");
    }
}
