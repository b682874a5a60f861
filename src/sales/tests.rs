//! Tests of whole files: rows to sales, and sales to comparables and ranges. All sales are invented.

use std::fmt::Write as _;

use fastrand::Rng;

use crate::facts::compile::{Rights, compile};
use crate::facts::store::Edition;
use crate::facts::{Choices, FactsFile, Refusal};
use crate::scorer::Scratch;
use crate::vocab::day::Day;
use crate::vocab::name::DomainName;
use crate::{Amount, Channel, Comparables, Likeness, NoRange, Sale, Sales, SalesError, SalesFile};

fn read(text: &str) -> Result<SalesFile, SalesError> {
    SalesFile::read(text.as_bytes().to_vec(), &[], Choices::default())
}

fn sales(rows: &str) -> Sales {
    let file = read(&format!("domain,price_usd,date,venue\n{rows}")).expect("read");
    assert_eq!(file.report.refused, []);
    Sales::new(file.sales)
}

fn likeness(name: &str) -> Likeness {
    Likeness::of(&DomainName::parse(name).expect(name), &mut Scratch::default())
}

fn comparables<'a>(sales: &'a Sales, name: &str) -> Vec<Comparables<'a>> {
    sales.comparables(&likeness(name), day("2026-11-20"))
}

fn day(text: &str) -> Day {
    text.parse().expect("a date")
}

fn names<'a>(found: &Comparables<'a>) -> Vec<&'a str> {
    found.sales.iter().map(|sale| sale.domain.as_str()).collect()
}

/// Seven sales of single words at an auction.
const WORDS: &str = "\
    river.com,100,2026-01-10,NameJet\n\
    stone.com,200,2026-02-10,NameJet\n\
    cloud.com,300,2026-03-10,NameJet\n\
    tiger.com,400,2025-04-10,NameJet\n\
    apple.com,500,2025-05-10,NameJet\n\
    bread.com,600,2025-06-10,NameJet\n\
    chair.com,700,2024-07-10,NameJet\n";

#[test]
fn rows_are_read_or_refused_with_line_and_reason() {
    let file = read(
        "Domain;Price;Currency;Date;Venue;Channel;Buyer\n\
         river.com;1.250,50;EUR;14.03.2025;Sedo;;PRIVATE\n\
         stone.com;0;EUR;14.03.2025;Sedo;;PRIVATE\n\
         cloud.com;90;EUR;;Sedo;;PRIVATE\n\
         tiger.com;90;EUR;31.02.2025;Sedo;;PRIVATE\n\
         apple.com;;EUR;;;;PRIVATE\n\
         bread.com;90;EUR;14.03.2025;Sedo;wholesale;PRIVATE\n\
         blog.bread.com;90;EUR;14.03.2025;Sedo;;PRIVATE\n\
         chair.com;90;;14.03.2025;Sedo;;PRIVATE\n\
         chair.com;90;USD;14.03.2025;a friend;Retail;PRIVATE\n",
    );
    let SalesFile { sales, report } = file.expect("read");
    let read: Vec<_> = sales
        .iter()
        .map(|sale| (sale.name().as_str(), sale.price, sale.currency.as_str(), sale.channel))
        .collect();
    let expected = [
        ("river.com", Amount(125_050), "EUR", Channel::Retail),
        ("chair.com", Amount(9_000), "USD", Channel::Retail),
    ];
    assert_eq!(read, expected);
    let refused: Vec<_> = report
        .refused
        .iter()
        .map(|Refusal { line, column, reason }| format!("{line} {column:?} {reason}"))
        .collect();
    let expected = [
        "3 None no price that can be read",
        "4 None no day that can be read",
        "5 Some(\"Date\") not a date from 1985 on",
        "7 None the channel is not auction, retail or unknown",
        "8 None the key is a host below a name; did you mean bread.com?",
        "9 Some(\"Price\") an amount without a currency, or with several",
    ];
    assert_eq!(refused, expected);
    assert_eq!((report.rows, report.sales, report.unsold, report.refused_rows), (9, 2, 1, 6));
    assert_eq!(report.dropped, ["Buyer"]);
}

#[test]
fn portfolios_and_canonical_files_hold_sales_too() {
    let efty = "Domain,Sold price,Sold date,Landing Page theme,BIN Price,Efty market\n\
                river.com,$2500.00,03-04-2026,fresh,$0.00,no\nstone.com,$0.00,,fresh,$0.00,no\n";
    let SalesFile { sales, report } = read(efty).expect("read");
    assert_eq!((report.preset, report.sales, report.unsold), ("efty", 1, 1));
    assert_eq!((sales[0].channel, sales[0].day), (Channel::Retail, day("2026-03-04")));
    let canonical =
        "domain,namejet.sold_price:money:USD,namejet.sold:date\nriver.com,12,2026-03-04\n";
    let SalesFile { sales, .. } = read(canonical).expect("read");
    assert_eq!((sales[0].channel, sales[0].price), (Channel::Auction, Amount(1_200)));
}

#[test]
fn files_without_sales_say_what_is_missing() {
    let refused = |text| read(text).expect_err("no sales").to_string();
    let missing = "has no columns with name, price and day of sales";
    assert!(refused("domain,a.sold_price:money:USD\nriver.com,1\n").starts_with(missing));
    assert!(refused("domain,a.sold_price:int,a.sold:date\nriver.com,1,\n").starts_with(missing));
    let word = "word,a.sold_price:money:USD,a.sold:date\nriver,1,2026-01-01\n";
    assert!(refused(word).starts_with(missing));
    let order = refused("domain,price_usd,date,venue\nriver.com,1,03/04/2026,x\n");
    assert_eq!(
        order,
        "column date cannot be read: the order of day and month is unknown: choose dmy or mdy"
    );
    assert!(refused("Domain,Amount\nriver.com,1\n").contains("--map"));
}

#[test]
fn editions_have_the_sales_of_their_files() {
    let edition = |text: &str| {
        let file = FactsFile::read(text.into(), &[], Choices::default()).expect(text);
        let mut compiled =
            compile(file, day("2026-01-31"), &Rights::default(), |_| None).expect("compiled");
        Edition::of_bytes(compiled.remove(0).bytes.into()).expect("sound")
    };
    let rows = "river.com,100,USD,2026-01-10,NameJet\nstone.com,200,EUR,2026-01-11,Sedo\n\
                cloud.com,300,USD,2026-01-12,NameJet\nlemon.com,400,USD,,NameJet\n";
    let found = edition(&format!("domain,price,currency,date,venue\n{rows}"));
    assert!(Sale::are_in(found.meta()));
    let sales = Sale::all_of(&found).expect("sound").into_iter().map(|it| {
        let (name, channel, currency) = (it.name().clone(), it.channel, it.currency.as_str());
        format!("{name} {} {currency} {} {channel} {:?}", it.price, it.day, it.venue)
    });
    assert_eq!(
        sales.collect::<Vec<_>>(),
        [
            "cloud.com 300 USD 2026-01-12 auction Some(\"NameJet\")",
            "river.com 100 USD 2026-01-10 auction Some(\"NameJet\")",
            "stone.com 200 EUR 2026-01-11 retail Some(\"Sedo\")",
        ]
    );
    let other = edition("domain,acme.paid:money:USD,acme.sold:date\nriver.com,1,2026-01-10\n");
    assert!(!Sale::are_in(other.meta()));
    assert!(Sale::all_of(&other).expect("sound").is_empty());
}

#[test]
fn a_sale_reported_twice_within_60_days_counts_once() {
    let sales = sales(
        "river.com,100,2026-01-01,elsewhere\nriver.com,100,2026-01-01,NameJet\nriver.com,100,2026-03-02,Sedo\n\
         river.com,100,2026-03-03,NameJet\nriver.com,101,2026-03-03,NameJet\n",
    );
    assert_eq!(sales.repeats, 2);
    let [market] = &sales.markets[..] else { panic!("one market") };
    assert_eq!((market.channel, market.len()), (Channel::Auction, 3));
}

#[test]
fn channels_and_currencies_are_never_mixed() {
    let retail = WORDS.replace("NameJet", "Sedo").replace(".com,", ".com,9");
    let unknown = WORDS.replace("NameJet", "a friend");
    let file = format!(
        "domain,price,currency,date,venue\n{}{}{}{}",
        WORDS.replace(",202", ",USD,202"),
        retail.replace(",202", ",USD,202"),
        unknown.replace("river", "house").replace("stone", "field").replace(",202", ",USD,202"),
        WORDS.replace(",202", ",EUR,202"),
    );
    let sales = Sales::new(read(&file).expect("read").sales);
    let found = comparables(&sales, "tiger.com");
    let markets: Vec<_> =
        found.iter().map(|it| (it.channel, it.currency.as_str(), it.sales.len())).collect();
    let expected = [
        (Channel::Auction, "EUR", 7),
        (Channel::Auction, "USD", 7),
        (Channel::Retail, "USD", 7),
        // Five of these are the sales of the auction, reported twice.
        (Channel::Unknown, "USD", 2),
    ];
    assert_eq!(markets, expected);
    let lowest = |at: usize| found[at].range.map(|range| range.low);
    assert!(lowest(2) > lowest(1), "{found:?}");
}

#[test]
fn only_names_of_one_kind_are_compared_and_the_nearest_come_first() {
    let sales = sales(&format!(
        "{WORDS}riverstone.com,50,2026-01-01,NameJet\nxqz.com,50,2026-01-01,NameJet\n\
         tigers.net,50,2026-01-01,NameJet\ntiger.org,60,2026-01-01,NameJet\n\
         later.com,70,2026-11-20,NameJet\nsexxx.com,70,2026-01-01,NameJet\n"
    ));
    let [found] = &comparables(&sales, "tiger.com")[..] else { panic!("one market") };
    let expected =
        ["tiger.com", "cloud.com", "stone.com", "river.com", "bread.com", "apple.com", "chair.com"];
    assert_eq!(names(found), expected);
    assert_eq!(found.sales[0].reasons, ["the same name", ".com", "same length"]);
    let [found] = &comparables(&sales, "tiger.net")[..] else { panic!("one market") };
    assert_eq!(names(found), ["tiger.org", "tigers.net"]);
    assert_eq!(found.sales[0].reasons, ["the same label", ".org", "same length"]);
}

#[test]
fn a_range_needs_five_sales_and_a_shape_with_a_pattern() {
    let four: String = WORDS.split_inclusive('\n').take(4).collect();
    let few = sales(&four);
    let [found] = &comparables(&few, "lemon.com")[..] else { panic!("one market") };
    assert_eq!((found.range, found.reason), (None, Some(NoRange::TooFew(4))));
    assert_eq!(
        found.summary,
        "4 sales of similar names at auction, 2025-26: 4 similar sales; a range needs 5."
    );
    let five: String = WORDS.split_inclusive('\n').take(5).collect();
    let enough = sales(&five);
    let [found] = &comparables(&enough, "lemon.com")[..] else { panic!("one market") };
    assert!(found.range.is_some() && found.reason.is_none());
    assert!(comparables(&enough, "lemontree.com").is_empty());
    let pairs = five.replace(".com", "tree.com");
    let pairs = sales(&pairs);
    let [found] = &comparables(&pairs, "lemontree.com")[..] else { panic!("one market") };
    assert_eq!((found.range, found.reason), (None, Some(NoRange::TwoWords)));
    assert_eq!(found.sales.len(), 5);
    assert!(found.summary.contains("no range for names of two words"), "{}", found.summary);
}

#[test]
fn a_sentence_states_the_middle_half_and_never_one_figure() {
    let sales = sales(WORDS);
    let [found] = &comparables(&sales, "lemon.com")[..] else { panic!("one market") };
    assert_eq!(
        found.summary,
        "Similar names sold at auction for 210 to 550 USD (middle half of 7 sales, 2024-26). Too few sales to say how \
         often a name falls outside."
    );
    let written = found.summary.clone() + &found.backtest.to_string();
    for word in ["value", "worth", "apprais"] {
        assert!(!written.contains(word), "{written}");
    }
}

#[test]
fn the_order_of_rows_changes_nothing() {
    let mut rng = Rng::with_seed(7);
    let mut rows: Vec<String> = Vec::new();
    for at in 0..400 {
        let word = ["river", "stone", "cloud", "tiger", "apple", "bread", "ab", "xqz"][at % 8];
        let (price, month) = (100 + rng.u32(..20) * 10, 1 + rng.u32(..12));
        let venue = ["NameJet", "Sedo", "x"][rng.usize(..3)];
        rows.push(format!("{word}{}.com,{price},2025-{month:02}-10,{venue}\n", rng.u32(..5)));
    }
    let shown = |rows: &[String]| {
        let sales = sales(&rows.concat());
        let mut out = String::new();
        for name in ["river3.com", "stone77.com", "xqz1.com"] {
            for found in comparables(&sales, name) {
                write!(out, "{found:?}").expect("a string");
            }
        }
        out
    };
    let first = shown(&rows);
    assert!(first.contains("cloud"), "{first}");
    for _ in 0..5 {
        rng.shuffle(&mut rows);
        assert_eq!(shown(&rows), first);
    }
}

#[test]
fn a_backtest_prices_the_newest_sales_from_earlier_ones() {
    let mut rows = String::new();
    for (at, word) in
        ["river", "stone", "cloud", "tiger", "apple", "bread", "chair"].iter().enumerate()
    {
        writeln!(rows, "{word}.com,{},2025-0{}-10,NameJet", 100 * (at + 1), at + 1)
            .expect("a string");
    }
    // Three more, all on one day: none of them sees another one.
    for (word, price) in [("lemon", 400), ("piano", 5_000), ("xqz", 100)] {
        writeln!(rows, "{word}.com,{price},2026-01-10,NameJet").expect("a string");
    }
    let backtest = sales(&rows).markets[0].backtest;
    let counts = (backtest.tested, backtest.ranges, backtest.in_range, backtest.in_wide_range);
    assert_eq!(counts, (3, 2, 1, 1));
    assert!(backtest.median_miss.is_some_and(|miss| miss > 1.0), "{backtest:?}");
}
