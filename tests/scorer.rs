//! The scorer as the rest of the program sees it: what it says of known names, and what holds for
//! every name.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use dropdex::scorer::{Base, Scored, Scorer, Scratch};
use dropdex::vocab::name::DomainName;
use proptest::prelude::*;

/// One line per name: name, tldSpread, score, signals, explanation, tabs between them.
///
/// To add names, append lines of a name and a tldSpread; then, as for any wanted change, run
/// `DROPDEX_BLESS=1 cargo test --test scorer` and read the difference. A change that is not only
/// new names needs a new `SCORER_VERSION`.
const GOLDEN: &str = "tests/golden/scores.txt";

fn score(name: &DomainName, tld_spread: u32) -> Scored {
    Scorer::shared().score(name, tld_spread, &mut Scratch::default())
}

fn parse(text: &str) -> DomainName {
    DomainName::parse(text).unwrap_or_else(|reason| panic!("{text}: {reason}"))
}

fn dqs(name: &str) -> u8 {
    score(&parse(name), 1).dqs.points()
}

fn golden_path() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(GOLDEN)
}

/// Names and their tldSpread.
fn golden_names() -> Vec<(DomainName, u32)> {
    let text = fs::read_to_string(golden_path()).expect("the golden file is there");
    let names = text.lines().map(|line| {
        let mut fields = line.split('\t');
        let name = parse(fields.next().expect("a name"));
        let spread = fields.next().and_then(|spread| spread.parse().ok());
        (name, spread.unwrap_or_else(|| panic!("{line}: a tldSpread follows the name")))
    });
    names.collect()
}

#[test]
fn known_names_are_scored_as_before() {
    let mut now = String::new();
    for (name, spread) in golden_names() {
        let Scored { dqs, signals, explanation } = score(&name, spread);
        let signals = serde_json::to_string(&signals).expect("signals are plain data");
        writeln!(now, "{name}\t{spread}\t{dqs}\t{signals}\t{explanation}").expect("memory");
    }
    if env::var_os("DROPDEX_BLESS").is_some() {
        fs::write(golden_path(), &now).expect("the golden file can be written");
        return;
    }
    let before = fs::read_to_string(golden_path()).expect("the golden file is there");
    for (before, now) in before.lines().zip(now.lines()) {
        assert_eq!(
            before, now,
            "a score changed: raise SCORER_VERSION, then DROPDEX_BLESS=1 cargo test --test scorer"
        );
    }
    assert_eq!(before, now, "a line is missing or ends differently");
}

#[test]
fn better_names_score_higher() {
    let ranked = [
        ["hotel.com", "besthotel.com", "best-hotel-4u.com", "xkqzjv.com"].as_slice(),
        &["hotel.com", "besthotel.com", "bestcityhotel.com", "bestcityhoteldealsonline.com"],
        &["solar.com", "solar.io", "solar.eu", "solar.tk"],
        &["solarpanel.com", "solar-panel.com", "solar-panel-24.com", "the-solar-panel-24.com"],
        &["ab.com", "abq.com", "abqz.com", "abqzx.com"],
        &["lumora.com", "lmrqaz.com", "lm2rqz.com"],
        &["zeitung.de", "zeitungxq.de", "zxqtngg.de"],
        &["888.com", "88888.com", "84719.com", "8471962.com"],
    ];
    for names in ranked {
        let points: BTreeMap<_, _> = names.iter().map(|name| (*name, dqs(name))).collect();
        assert!(names.windows(2).all(|pair| points[pair[0]] > points[pair[1]]), "{points:?}");
    }
}

#[test]
fn the_whole_range_is_used() {
    assert!(score(&parse("hotel.com"), 200).dqs.points() >= 95);
    assert!(
        dqs("ab.com") >= 70 && dqs("xqz.com") >= 65,
        "two and three letters are short of supply"
    );
    assert!(dqs("zxkq8-vv3qj-1x9-wkqqz-xxyy.top") == 0);
}

#[test]
fn caps_hold_the_score_and_are_shown() {
    let hyphens = score(&parse("buy-a-hotel-now.com"), 200);
    let mixed = score(&parse("p\u{430}ypal.com"), 200);
    for (scored, name) in [(hyphens, "manyHyphens"), (mixed, "mixedScripts")] {
        let cap = scored.signals.caps.first().expect("a cap applies");
        assert_eq!(cap.name, name);
        assert_eq!(i32::from(scored.dqs.points()), cap.max.min(scored.signals.points.sum()));
        assert!(scored.explanation.contains(&format!("held to {}", cap.max)));
    }
    assert!(score(&parse("hotel.com"), 1).signals.caps.is_empty());
}

#[test]
fn signals_have_the_names_of_the_contract() {
    let signals = serde_json::to_value(score(&parse("solar-panel24.com"), 3).signals);
    let signals = signals.expect("signals are plain data");
    let names: Vec<_> = signals.as_object().expect("an object").keys().cloned().collect();
    for name in [
        "scorerVersion",
        "lengthBand",
        "dictionary_quality",
        "words",
        "language",
        "digits",
        "hyphens",
        "pronounceability",
        "tld_weight",
        "tldSpread",
        "points",
    ] {
        assert!(names.iter().any(|own| own == name), "{name} is not in {names:?}");
    }
    assert_eq!(signals["words"], serde_json::json!(["solar", "panel", "24"]));
    assert_eq!(signals["language"], "en");
    assert_eq!((&signals["digits"], &signals["hyphens"]), (&2.into(), &1.into()));
    assert_eq!((&signals["tldSpread"], &signals["tld_weight"]), (&3.into(), &1.0.into()));
}

/// What must hold whatever the name.
fn check(name: &DomainName, spread: u32, scratch: &mut Scratch) {
    let scorer = Scorer::shared();
    let base = scorer.base(name, scratch);
    let Scored { dqs, signals, explanation } = scorer.score(name, spread, scratch);
    assert_eq!(base.with_spread(spread), dqs, "{name}: base and score differ");
    assert_eq!(Base::from_bits(base.to_bits()), base, "{name}");
    assert_eq!(scorer.score(name, spread, &mut Scratch::default()).dqs, dqs, "{name}: buffers");

    let points = serde_json::to_value(signals.points).expect("plain data");
    let points = points.as_object().expect("an object").values();
    let sum: i64 = points.map(|points| points.as_i64().expect("an integer")).sum();
    let cap = signals.caps.iter().map(|cap| i64::from(cap.max)).min().unwrap_or(100);
    assert_eq!(i64::from(dqs.points()), sum.clamp(0, 100).min(cap), "{name}: {signals:?}");

    let pieces: usize = signals.words.iter().map(|word| word.chars().count()).sum();
    let length = usize::from(name.length());
    assert_eq!(pieces + signals.hyphens as usize, length, "{name}: {:?}", signals.words);

    let chars = explanation.chars().count();
    assert!((20..=160).contains(&chars), "{name}: {chars} characters: {explanation}");
    let first = explanation.as_bytes()[0];
    assert!(first.is_ascii_uppercase() || first.is_ascii_digit(), "{name}: {explanation}");
    assert!(explanation.ends_with('.') && !explanation.chars().any(char::is_control));
}

#[test]
fn extreme_names_are_scored() {
    let long = |text: &str| text.repeat(63).chars().take(63).collect::<String>() + ".com";
    let mut names: Vec<_> = ["a", "z", "9", "a-", "thequickbrownfox", "xq7", "ab", "in"]
        .iter()
        .map(|text| long(text).replace("-.", "z."))
        .collect();
    names.extend(
        [
            "ß.de",
            "œ.fr",
            "ı.tr",
            "东京.cn",
            "пример.рф",
            "भारत.भारत",
            "مثال.com",
            "ไทย.th",
            "ἀρχή.gr",
            "한국.kr",
            "việtnam.vn",
            "łódź.pl",
            "a\u{301}\u{301}.com",
            "0.io",
            "a.travelersinsurance",
            "x.xn--vermgensberatung-pwb",
            "kräftigesfrühstück.de",
        ]
        .map(String::from),
    );
    let mut scratch = Scratch::default();
    for name in names.iter().map(|name| parse(name)) {
        for spread in [0, 1, 2, 1500, u32::MAX] {
            check(&name, spread, &mut scratch);
        }
    }
}

#[test]
fn real_names_keep_the_rules() {
    let mut scratch = Scratch::default();
    for (name, spread) in golden_names() {
        check(&name, spread, &mut scratch);
    }
}

proptest! {
    #[test]
    fn random_names_keep_the_rules(
        label in "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?|(the|hotel|haus|dom|a|7|-){1,9}|\\PC{1,20}",
        tld in "com|co\\.uk|de|top|museum|рф",
        spread in 0u32..2000,
    ) {
        if let Ok(name) = DomainName::parse(&format!("{label}.{tld}")) {
            check(&name, spread, &mut Scratch::default());
        }
    }

    /// Whatever bits a damaged batch holds, finishing them gives a score.
    #[test]
    fn any_bits_finish(bits: u32, spread: u32) {
        prop_assert!(Base::from_bits(bits).with_spread(spread).points() <= 100);
    }
}
