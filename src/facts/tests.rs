//! Tests of whole files: a sound and a broken one of each preset, the traps of real exports, and hostile bytes.

use std::fmt::Write as _;
use std::path::Path;

use proptest::prelude::*;

use crate::vocab::limits::{FACTS_BYTES_MAX, FACTS_COLUMNS_MAX, FACTS_ROWS_MAX};
use crate::vocab::money::Currency;
use crate::{Choices, DateOrder, FactsError, FactsFile, LISTED_MAX, Mapping};

/// Reads a text without mappings and choices.
fn read(text: &str) -> Result<FactsFile, FactsError> {
    FactsFile::read(text.as_bytes().to_vec(), &[], Choices::default())
}

/// Returns everything that a file says, one line for each row, refusal and ambiguous column.
fn shown(file: &FactsFile) -> String {
    let mut out = String::new();
    for row in &file.rows {
        write!(out, "{}", row.key).expect("a string");
        if let Some(day) = row.as_of {
            write!(out, " @{day}").expect("a string");
        }
        for (column, value) in file.report.read.iter().zip(&row.values) {
            let fact = column.fact.to_string();
            let (_, short) = fact.split_once('.').expect("two parts");
            if let Some(value) = value {
                write!(out, " {short}={value}").expect("a string");
            }
        }
        out.push('\n');
    }
    for refusal in &file.report.refused {
        let column = refusal.column.as_ref().map_or(String::new(), |column| format!(" {column}"));
        writeln!(out, "{}{column}: {}", refusal.line, refusal.reason).expect("a string");
    }
    for contradiction in &file.report.contradicted {
        writeln!(out, "{} {}: contradicts", contradiction.line, contradiction.column)
            .expect("a string");
    }
    for column in &file.report.ambiguous {
        writeln!(out, "{}: {}", column.header, column.choose).expect("a string");
    }
    out
}

fn fixture(name: &str, choices: Choices) -> FactsFile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
    FactsFile::open(&path, &[], choices).unwrap_or_else(|why| panic!("{name}: {why}"))
}

const PRESETS: [&str; 21] = [
    "afternic",
    "afternic-old",
    "ahrefs",
    "dynadot",
    "efty",
    "expireddomains",
    "godaddy",
    "keyword-planner",
    "majestic",
    "marks",
    "moz",
    "namecheap",
    "parkio",
    "porkbun",
    "sales",
    "sales-usd",
    "sav",
    "sedo",
    "sold",
    "spamzilla",
    "udrp",
];

#[test]
fn a_sound_and_a_broken_file_of_each_export_are_read_as_recorded() {
    let mut found = String::new();
    for preset in PRESETS {
        for state in ["good", "broken"] {
            let name = format!("{preset}.{state}.csv");
            let file = fixture(&name, Choices::default());
            assert_eq!(file.preset, preset, "{name}");
            let report = &file.report;
            assert_eq!(report.rows, report.usable + report.refused_rows, "{name}");
            assert_eq!(report.usable, file.rows.len() as u64 + report.merged, "{name}");
            if state == "good" {
                assert_eq!((report.refused.len(), report.ambiguous.len()), (0, 0), "{name}");
            }
            writeln!(found, "## {name}\n{}", shown(&file)).expect("a string");
            writeln!(found, "dropped: {}", report.dropped.join(", ")).expect("a string");
            writeln!(found, "ignored: {}\n", report.ignored.join(", ")).expect("a string");
            assert!(!format!("{file:?}").contains("PRIVATE"), "{name}");
        }
    }
    assert_eq!(found, include_str!("fixtures/expected.txt"));
}

#[test]
fn a_choice_reads_columns_that_are_ambiguous() {
    let choices = Choices {
        date_order: Some(DateOrder::MonthFirst),
        currency: Some(Currency::parse("EUR").expect("a currency")),
        ..Choices::default()
    };
    let file = fixture("spamzilla.broken.csv", choices);
    assert!(shown(&file).contains("price=25.00 EUR expires=2026-02-12"), "{}", shown(&file));
    assert_eq!(file.report.ambiguous, []);
}

#[test]
fn encodings_are_recognised_by_their_marks() {
    let text = "Domain;acme.note:text;x\nmünchen-helden.de;ä;\n";
    let text = text.replace("Domain", "domain");
    let units = |be: bool| {
        let bytes = |unit: u16| if be { unit.to_be_bytes() } else { unit.to_le_bytes() };
        text.encode_utf16().flat_map(bytes).collect::<Vec<u8>>()
    };
    let plain = text.as_bytes().to_vec();
    for bytes in [
        plain.clone(),
        [b"\xef\xbb\xbf".to_vec(), plain].concat(),
        [b"\xff\xfe".to_vec(), units(false)].concat(),
        [b"\xfe\xff".to_vec(), units(true)].concat(),
    ] {
        let file = FactsFile::read(bytes, &[], Choices::default()).expect("read");
        assert_eq!(shown(&file), "xn--mnchen-helden-wob.de note=ä\n");
    }
    for bytes in [units(false), units(true), b"domain,acme.x\n\xe4.de,1\n".to_vec()] {
        let refused = FactsFile::read(bytes, &[], Choices::default()).expect_err("no text");
        assert!(matches!(refused, FactsError::NotText(_)), "{refused}");
    }
}

#[test]
fn files_beyond_a_limit_are_refused_with_their_size() {
    let too_large = vec![b' '; FACTS_BYTES_MAX as usize + 1];
    let refused = FactsFile::read(too_large, &[], Choices::default()).expect_err("too large");
    assert!(refused.to_string().starts_with("has 67108865 bytes; at most 67108864"), "{refused}");
    let rows = |count: u64| "domain,a.b:int\n".to_owned() + &"x.com,1\n".repeat(count as usize);
    let refused = read(&rows(FACTS_ROWS_MAX + 1)).expect_err("too many rows");
    assert!(refused.to_string().starts_with("has 100001 rows; at most 100000"), "{refused}");
    let file = read(&rows(FACTS_ROWS_MAX)).expect("read");
    assert_eq!((file.report.rows, file.report.merged), (FACTS_ROWS_MAX, FACTS_ROWS_MAX - 1));
    let columns = |count: usize| {
        "domain".to_owned() + &(0..count).map(|n| format!(",a.f{n}")).collect::<String>() + "\n"
    };
    assert!(read(&columns(FACTS_COLUMNS_MAX)).is_ok());
    let refused = read(&columns(FACTS_COLUMNS_MAX + 1)).expect_err("too many columns");
    assert!(refused.to_string().starts_with("has 65 columns of facts; at most 64"), "{refused}");
}

/// Returns how the cells of a column of a canonical file with this separator are read.
fn column(kind: &str, delimiter: char, cells: &[&str]) -> String {
    let mut text = format!("domain{delimiter}a.x:{kind}\n");
    for (at, cell) in cells.iter().enumerate() {
        writeln!(text, "n{at}.com{delimiter}\"{cell}\"").expect("a string");
    }
    let file = read(&text).expect("read");
    let line = |line: &str| line.split_once("x=").map_or(line, |(_, value)| value).to_owned();
    shown(&file).lines().map(line).collect::<Vec<_>>().join(" | ")
}

const MARK: &str =
    "a point or comma that may separate thousands or decimals; write the number without it";

#[test]
fn points_and_commas_are_decided_over_the_column() {
    for (cells, delimiter, expected) in [
        (["1.250", "1,5"], ';', "1250 | 1.5".to_owned()),
        (["1,250", "1.5"], ',', "1250 | 1.5".to_owned()),
        (["1.250", "1.5"], ',', "1.25 | 1.5".to_owned()),
        (["1.250", "1.250.000"], ',', "1250 | 1250000".to_owned()),
        (["1,250", "7"], ',', "1250 | 7".to_owned()),
        (["1.250", "7"], ';', "1250 | 7".to_owned()),
        (["0.295", "-12.345"], ',', "0.295 | -12.345".to_owned()),
        (["7", "1.250"], ',', format!("n1.com | 7 | 3 a.x:dec: {MARK}")),
        (["7", "1,250"], ';', format!("n1.com | 7 | 3 a.x:dec: {MARK}")),
    ] {
        let mut got: Vec<String> =
            column("dec", delimiter, &cells).split(" | ").map(str::to_owned).collect();
        let mut expected: Vec<&str> = expected.split(" | ").collect();
        got.sort();
        expected.sort();
        assert_eq!(got, expected, "{cells:?}");
    }
    assert_eq!(column("money:USD", ',', &["12.50", "1,450"]), "12.50 USD | 1450.00 USD");
    let odd = column("money:USD", ',', &["12.50", "1.450"]);
    assert!(odd.ends_with(MARK), "{odd}");
}

#[test]
fn whole_numbers_ranges_and_unknown_cells_are_read() {
    let read = |cell| column("int", ',', &[cell]);
    for (cell, expected) in [
        ("1,250", "1250"),
        ("1.250", "1250"),
        ("12.0", "12"),
        ("-3", "-3"),
        ("10K", "10000"),
        ("1.2k", "1200"),
        ("1K - 10K", "1000 or more"),
        ("100 – 1K", "100 or more"),
        ("1M+", "1000000 or more"),
        ("0", "0"),
        // Unknown, and not 0.
        ("", "n0.com"),
        ("-", "n0.com"),
        ("n/a", "n0.com"),
        ("∞", "n0.com"),
    ] {
        assert_eq!(read(cell), expected, "{cell}");
    }
    for cell in [
        "12.5",
        "1,25",
        "10K - 1K",
        "1K - ",
        "=1+1",
        "ten",
        "9223372036854775808",
        "1.2345k",
        "K",
        "1-2-3",
    ] {
        assert_eq!(read(cell), "n0.com | 2 a.x:int: not a whole number", "{cell}");
    }
    assert_eq!(column("int:zero-is-unknown", ',', &["0"]), "n0.com");
    assert_eq!(column("money:EUR:zero-is-unknown", ',', &["0.00"]), "n0.com");
    assert_eq!(column("dec:percent", ',', &["-10%", "+0.5 %"]), "-10 | 0.5");
    assert_eq!(column("year", ',', &["1998"]), "1998");
    assert_eq!(column("year", ',', &["98"]), "n0.com | 2 a.x:year: not a year from 1985 to 2100");
    assert_eq!(column("bool", ',', &["Yes", "OFF"]), "yes | no");
}

#[test]
fn day_and_month_are_decided_over_the_column() {
    let question = "a.x:date: the order of day and month is unknown: choose dmy or mdy";
    for (cells, expected) in [
        (["03/04/2026", "31/12/2026"], "2026-04-03 | 2026-12-31"),
        (["03-04-2026", "12-31-2026"], "2026-03-04 | 2026-12-31"),
        (["04/04/2026", "2026-12-31"], "2026-04-04 | 2026-12-31"),
    ] {
        assert_eq!(column("date", ',', &cells), expected);
    }
    for cells in [["03/04/2026", "2026-12-31"], ["31/12/2026", "12/31/2026"]] {
        assert_eq!(column("date", ',', &cells), format!("n0.com | n1.com | {question}"));
    }
    // The notation of a column answers the question, unless the cells do.
    assert_eq!(column("date:mdy", ',', &["03/04/2026"]), "2026-03-04");
    assert_eq!(column("date:mdy", ',', &["03/04/2026", "31/12/2026"]), "2026-04-03 | 2026-12-31");
}

#[test]
fn the_currency_is_stated_by_cell_row_header_or_choice() {
    assert_eq!(column("money", ',', &["$ 22.99", "1.250,50 €"]), "22.99 USD | 1250.50 EUR");
    assert_eq!(column("money:GBP", ',', &["7", "$8"]), "7.00 GBP | 8.00 USD");
    let question = "a.x:money: no currency is stated: choose one";
    assert_eq!(column("money", ',', &["7"]), format!("n0.com | {question}"));
    let unclear = "2 a.x:money: an amount without a currency, or with several";
    assert_eq!(column("money", ',', &["7 kr"]), format!("n0.com | {unclear}"));
    let rows = "domain,a.x:money,currency\na.com,7,EUR\nb.com,$8,EUR\nc.com,9,\n";
    let file = read(rows).expect("read");
    let refused = "4 a.x:money: an amount without a currency, or with several\n";
    assert_eq!(shown(&file), format!("a.com x=7.00 EUR\nb.com x=8.00 USD\nc.com\n{refused}"));
}

#[test]
fn texts_that_begin_like_formulas_are_refused() {
    for cell in ["=1+1", "+1", "@SUM(A1)", "-1+1", "＝1"] {
        let formula = "n0.com | 2 a.x:text: text that begins like a formula; it is not kept";
        assert_eq!(column("text", ',', &[cell]), formula, "{cell}");
    }
    assert_eq!(column("text", ',', &["a=1"]), "a=1");
    let long = "n0.com | 2 a.x:enum: longer than 60 characters, or with control characters";
    assert_eq!(column("enum", ',', &[&"x".repeat(61)]), long);
    assert_eq!(column("enum", ',', &["two\nlines"]), long);
}

#[test]
fn repeated_names_are_merged_cell_by_cell() {
    let file = read(
        "domain,a.x:int,a.y:int\nbrightmesa.com,1,\nslatefox.org,5,\nBRIGHTMESA.com/,2,3\n\
         brightmesa.com,1,3\n",
    );
    let file = file.expect("read");
    let merged = "brightmesa.com x=1 y=3\nslatefox.org x=5\n4 a.x:int: contradicts\n";
    assert_eq!(shown(&file), merged);
    assert_eq!((file.report.merged, file.report.disagreements), (2, 1));
    let known: Vec<u64> = file.report.read.iter().map(|column| column.known).collect();
    assert_eq!(known, [2, 1]);
    // A newer day decides; the row keeps the older one.
    for rows in
        ["a.com,1,2026-01-01\na.com,2,2026-02-01\n", "a.com,2,2026-02-01\na.com,1,2026-01-01\n"]
    {
        let file = read(&format!("domain,a.x:int,as_of\n{rows}")).expect("read");
        assert_eq!(shown(&file), "a.com @2026-01-01 x=2\n");
    }
}

#[test]
fn rows_of_one_key_remain_apart_if_chosen() {
    let text = "domain,a.x:int\na.com,1\nb.com,2\na.com,3\n";
    let choices = Choices { keeps_repeats: true, ..Choices::default() };
    let file = FactsFile::read(text.as_bytes().to_vec(), &[], choices).expect("read");
    assert_eq!(shown(&file), "a.com x=1\nb.com x=2\na.com x=3\n");
    assert_eq!((file.report.merged, file.rows[2].line), (0, 4));
}

#[test]
fn names_that_mean_different_things_are_not_read_by_themselves() {
    let text = "Domain,Amount,Value,Date,Description,Category,Estimated Value\na.com,1,2,3,4,5,6\n";
    let refused = read(text).expect_err("unknown").to_string();
    assert!(refused.contains("Domain | Amount | Value | Date"), "{refused}");
    // As in a localised file of the Keyword Planner, nothing is guessed.
    let refused = read("Từ khóa\tĐơn vị tiền tệ\nbảo hiểm\tVND\n").expect_err("unknown");
    assert!(matches!(refused, FactsError::NoHeader), "{refused}");
}

#[test]
fn a_mapping_reads_files_with_its_header_only() {
    let text = "Links for you\nWebsite;Rang;E-Mail;Wort\nbrightmesa.com;7;x@y.example;Car  Loan\n";
    let FactsError::Unmapped { fingerprint, columns } = read(text).expect_err("unknown") else {
        panic!("no mapping is needed")
    };
    assert_eq!(columns, ["Website", "Rang", "E-Mail", "Wort"]);
    let with = |mapping: &str, text: &str| {
        let mapping: Mapping = mapping.parse().expect("a mapping");
        FactsFile::read(text.as_bytes().to_vec(), &[mapping], Choices::default())
    };
    let mapping = format!("{fingerprint}=domain,acme.rank:int:rank:less,acme.mail:text");
    let file = with(&mapping, text).expect("read");
    assert_eq!((file.preset, shown(&file).as_str()), ("mapped", "brightmesa.com rank=7\n"));
    assert_eq!(
        (&file.report.dropped[..], &file.report.ignored[..]),
        (&["E-Mail".to_owned()][..], &["Wort".to_owned()][..])
    );
    let file = with(&format!("{fingerprint}=,acme.rank:int,,word"), text).expect("read");
    assert_eq!(shown(&file), "car loan rank=7\n");
    let renamed = with(&mapping, &text.replace("Rang", "Rank")).expect_err("another header");
    assert!(matches!(renamed, FactsError::Unmapped { .. }), "{renamed}");
    let personal =
        with(&format!("{fingerprint}=,acme.rank:int,domain"), text).expect_err("dropped");
    assert!(matches!(personal, FactsError::NoKey), "{personal}");
}

#[test]
fn canonical_headers_need_no_mapping() {
    let file = read("label,um.live:bool,um.email:text,Note\nBrightMesa,yes,a@b.example,x\n")
        .expect("read");
    assert_eq!((file.preset, shown(&file).as_str()), ("canonical", "brightmesa live=yes\n"));
    assert_eq!(file.report.dropped, ["um.email:text"]);
    let refused = read("domain,a.x:number\n").expect_err("no type").to_string();
    assert!(refused.starts_with("header `a.x:number` is not a column: write"), "{refused}");
    let refused = read("domain,um.email:text\na.com,b\n").expect_err("nothing to read");
    assert!(matches!(refused, FactsError::NoFacts), "{refused}");
}

#[test]
fn rows_whose_cells_may_be_shifted_are_refused() {
    for (rows, why) in [
        ("a.com,x,SECRET,y,z\n", "the row has 5 cells; the header has 4"),
        ("a.com,SECRET,y\n", "the row has 3 cells; the header has 4"),
        ("a.com,\"x\nb.com,x,\"SECRET\",y\n", "a quote is missing, or one too many"),
        ("a.com,\"x,SECRET,y\n", "a quote is missing, or one too many"),
    ] {
        let file = read(&format!("domain,a.x:text,AuthCode,a.y:text\n{rows}")).expect("read");
        assert_eq!(shown(&file), format!("2: {why}\n"), "{rows}");
    }
    let long = format!("domain,a.x:int\na.com,\"1{}\"\n", "\n".repeat(60));
    let file = read(&long).expect("read");
    assert_eq!(shown(&file), "2: the row has 61 lines; a quote is missing\n");
    // Without dropped columns, cells may be missing at the end.
    assert_eq!(shown(&read("domain,a.x:int,a.y:int\na.com,1\n").expect("read")), "a.com x=1\n");
}

#[test]
fn a_report_lists_the_first_refusals_and_counts_all() {
    let text = "domain,a.x:int\n".to_owned() + &"com,1\n".repeat(LISTED_MAX + 5);
    let report = read(&text).expect("read").report;
    assert_eq!((report.refused.len(), report.refused_rows), (LISTED_MAX, LISTED_MAX as u64 + 5));
}

/// Texts that cells of real and hostile files hold.
fn cell() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9.,KM$€% -]{0,8}",
        "[a-z]{1,6}(\\.(com|de))?",
        "[0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{4}",
        "\\PC{0,6}",
        "[=+@'\"\n\r\t;,|]{0,4}",
    ]
}

/// Headers of fixtures, of canonical files and of files with columns that are dropped.
fn header() -> impl Strategy<Value = String> {
    let known = PRESETS.map(|preset| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
        let bytes = std::fs::read(path.join(format!("{preset}.good.csv"))).expect("readable");
        let text = crate::vocab::text_file::text(bytes).expect("text");
        text.lines().take(3).collect::<Vec<_>>().join("\n")
    });
    prop_oneof![
        proptest::sample::select(known.to_vec()),
        Just(
            "domain,a.i:int,a.d:dec,a.m:money,a.t:date,a.y:year,a.b:bool,as_of,currency".to_owned()
        ),
        Just("word;a.e:enum;a.x:text;Registrant;a.m:money:EUR".to_owned()),
        "\\PC{0,20}",
    ]
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(file) = FactsFile::read(bytes, &[], Choices::default()) {
            prop_assert!(file.rows.len() as u64 <= file.report.rows);
        }
    }

    #[test]
    fn any_rows_below_a_known_header_are_read_or_refused(
        header in header(),
        rows in proptest::collection::vec(proptest::collection::vec(cell(), 0..10), 0..6),
        delimiter in proptest::sample::select(vec![",", ";", "\t"]),
    ) {
        let rows = rows.iter().map(|row| row.join(delimiter)).collect::<Vec<_>>().join("\n");
        if let Ok(file) = read(&format!("{header}\n{rows}")) {
            let report = &file.report;
            prop_assert_eq!(report.rows, report.usable + report.refused_rows);
            prop_assert_eq!(report.usable, file.rows.len() as u64 + report.merged);
        }
    }

    /// One character of the file may be missing, or one too many.
    #[test]
    fn cells_of_dropped_columns_are_never_repeated(
        rows in proptest::collection::vec((cell(), cell(), cell(), cell()), 1..5),
        at in any::<proptest::sample::Index>(),
        damage in proptest::sample::select(vec![None, Some(""), Some("\""), Some(","), Some("\n")]),
    ) {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(["domain", "a.x:text", "Email", "a.y:enum", "EPP code", "a.z:money"]).expect("written");
        for (number, (x, y, z, w)) in rows.iter().enumerate() {
            let name = format!("n{number}.com");
            let (mail, code) = (format!("{w}SECRET"), format!("SECRET{w}"));
            writer.write_record([&name, x, &mail, y, &code, z]).expect("written");
        }
        let mut text = String::from_utf8(writer.into_inner().expect("written")).expect("text");
        if let Some(damage) = damage {
            let header = text.find('\n').expect("a header") + 1;
            let places: Vec<usize> = text.char_indices().map(|(at, _)| at).filter(|at| *at >= header).collect();
            let at = *at.get(&places);
            let end = at + text[at..].chars().next().map_or(0, char::len_utf8);
            text.replace_range(at..if damage.is_empty() { end } else { at }, damage);
        }
        match read(&text) {
            Ok(file) => prop_assert!(!format!("{file:?}").contains("SECRET"), "{}\n{:?}", text, file),
            Err(why) => prop_assert!(!why.to_string().contains("SECRET"), "{}", why),
        }
    }
}
