//! The scorer through its public interface: scores of known names, and invariants of every name.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::Read;
use std::path::Path;
use std::{env, fs};

use dropdex::scorer::{
    Base, Brief, Coverage, Features, Grade, Scored, Scorer, Scratch, Spread, StoredScore,
};
use dropdex::vocab::name::DomainName;
use flate2::read::MultiGzDecoder;
use proptest::prelude::*;

/// One line per name, separated by tabs: name, tldSpread (0 if unknown), score, signals, explanation.
///
/// To add names, append lines with a name and a tldSpread; then, as for any intended change, run
/// `DROPDEX_BLESS=1 cargo test --test it scorer::` and review the difference. Any change other than new
/// names needs a new `SCORER_VERSION`.
const GOLDEN: &str = "tests/golden/scores.txt";

fn score(name: &DomainName, tld_spread: u32) -> Scored {
    Scorer::shared().score(name, of(tld_spread), &mut Scratch::default())
}

/// Returns the spread of a label over `tld_spread` TLDs of the reference names; 0 if the number is
/// unknown.
fn of(tld_spread: u32) -> Spread {
    if tld_spread == 0 { Spread::UNKNOWN } else { Spread::of(tld_spread) }
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

/// Returns the golden names and their tldSpread.
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
        let Scored { dqs, rank, signals, explanation } = score(&name, spread);
        let signals = serde_json::to_string(&signals).expect("signals are plain data");
        writeln!(now, "{name}\t{spread}\t{dqs}\t{rank}\t{signals}\t{explanation}").expect("memory");
    }
    if env::var_os("DROPDEX_BLESS").is_some() {
        fs::write(golden_path(), &now).expect("the golden file can be written");
        return;
    }
    let before = fs::read_to_string(golden_path()).expect("the golden file is there");
    for (before, now) in before.lines().zip(now.lines()) {
        assert_eq!(
            before, now,
            "a score changed: raise SCORER_VERSION, then \
             DROPDEX_BLESS=1 cargo test --test it scorer::"
        );
    }
    assert_eq!(before, now, "a line is missing or ends differently");
}

#[test]
fn better_names_score_higher() {
    let ranked = [
        ["hotel.com", "besthotel.com", "best-hotel-4u.com"].as_slice(),
        &["hotel.com", "lumora.com", "xkqzjv.com", "xkqzjv.top"],
        &["hotel.com", "besthotel.com", "bestcityhotel.com", "bestcityhoteldealsonline.com"],
        &["solar.com", "solar.io", "solar.tk"],
        &["solarpanel.com", "solar-panel.com", "solar-panel-24.com", "the-solar-panel-24.com"],
        &["ab.com", "abqz.com", "abqzx.com"],
        &["lumora.com", "lmrqaz.com", "lm2rqz.com"],
        &["zeitung.de", "zeitungxq.de", "zxqtngg.de"],
        &["88888.com", "84719.com", "8471962.com"],
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
    assert!(dqs("zxkq8-vv3qj-1x9-wkqqz-xxyy.top") <= 10);
}

#[test]
fn caps_hold_the_score_and_are_shown() {
    let hyphens = score(&parse("buy-a-hotel-now.com"), 200);
    let mixed = score(&parse("p\u{430}ypal.com"), 200);
    for (scored, name) in [(hyphens, "manyHyphens"), (mixed, "mixedScripts")] {
        let cap = scored.signals.caps.first().expect("a cap applies");
        assert_eq!(cap.name, name);
        assert_eq!(i32::from(scored.dqs.points()), cap.max.min(scored.signals.points.sum()));
        assert!(scored.explanation.contains(&format!("capped at {}", cap.max)));
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

/// Checks invariants of a name.
fn check(name: &DomainName, spread: u32, scratch: &mut Scratch) {
    let spread = of(spread);
    let scorer = Scorer::shared();
    let base = scorer.base(name, scratch);
    let Scored { dqs, rank, signals, explanation } = scorer.score(name, spread, scratch);
    assert_eq!(base.with_spread(spread), Grade { dqs, rank }, "{name}: base and score differ");
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
    assert!((8..=160).contains(&chars), "{name}: {chars} characters: {explanation}");
    let first = explanation.as_bytes()[0];
    assert!(first.is_ascii_uppercase() || first.is_ascii_digit(), "{name}: {explanation}");
    assert!(!explanation.ends_with([' ', '·', '.']) && !explanation.chars().any(char::is_control));
}

/// Checks that the explanation of a name matches its score, with and without features.
fn check_recall(name: &DomainName, spread: u32, scratch: &mut Scratch) -> usize {
    let spread = of(spread);
    let scorer = Scorer::shared();
    let json = |signals| serde_json::to_string(&signals).expect("plain data");
    let Scored { dqs, rank, signals, explanation } = scorer.score(name, spread, scratch);
    let signals = json(signals);
    let mut features = b"left over".to_vec();
    let base = scorer.base_with_features(name, scratch, &mut features);
    assert_eq!(base.with_spread(spread), Grade { dqs, rank }, "{name}");
    let features = &features[b"left over".len()..];
    assert!((1..=255).contains(&features.len()), "{name}");
    let (label, tld) = (name.label(), name.tld());
    let brief = Features::Brief(Brief::of(features), rank);
    let alone = base.with_spread(Spread { tlds: 1, coverage: Coverage::NONE }).dqs.points();
    for features in [Features::Whole(features), brief, Features::NONE] {
        // The buffers held another name before.
        scorer.base(&parse("left-over-1-from-before.com"), scratch);
        let known = StoredScore { label, tld, spread, features };
        assert_eq!(scorer.explain(known, scratch), explanation, "{name}");
        let recalled = scorer.restore(known, scratch);
        assert_eq!((recalled.dqs, recalled.rank), (dqs, rank), "{name}");
        assert_eq!(recalled.explanation, explanation, "{name}");
        assert_eq!(json(recalled.signals.into_owned()), signals, "{name}");
        // Corrections of .com names may differ by a hundredth of a point, and so by one after rounding.
        let slack = u8::from(tld == "com" && matches!(features, Features::Brief(..)));
        let found = scorer.without_spread(known, scratch).points();
        assert!((alone.saturating_sub(slack)..=alone).contains(&found), "{name}: {found} {alone}");
    }
    features.len()
}

/// Generates names of one to fourteen parts: words, parts of words, slurs, letters, numbers, hyphens;
/// one name in twelve has letters of other scripts.
fn odd_names(count: usize) -> Vec<DomainName> {
    const MARKED: [&str; 10] = ["é", "ü", "ß", "œ", "ı", "ł", "пр", "東", "ệ", "م"];
    const TLDS: [&str; 9] =
        ["com", "com", "de", "pl", "co.uk", "tk", "рф", "fr", "travelersinsurance"];
    let file = fs::File::open("data/scorer/words.tsv.zst").expect("the list is there");
    let mut list = String::new();
    let mut unpacked = ruzstd::decoding::StreamingDecoder::new(file).expect("a zstd frame");
    unpacked.read_to_string(&mut list).expect("text");
    let words: Vec<&str> = list.lines().filter_map(|line| line.split('\t').next()).collect();
    let terms = fs::read_to_string("data/scorer/terms.csv").expect("a list");
    let terms: Vec<&str> = terms.lines().filter_map(|line| Some(line.split_once(',')?.0)).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) as usize % below
    };
    let mut names = Vec::new();
    while names.len() < count {
        let (marked, pieces) = (draw(12) == 0, if draw(20) == 0 { 14 } else { 4 });
        let mut label = String::new();
        for _ in 0..=draw(pieces) {
            match draw(40) {
                0..=5 => (0..=draw(6)).for_each(|_| label.push(char::from(b'a' + draw(26) as u8))),
                6..=8 => (0..=draw(4)).for_each(|_| label.push(char::from(b'0' + draw(10) as u8))),
                9..=11 => label.push('-'),
                12 => label.push_str(terms[draw(terms.len())]),
                13..=14 if marked => label.push_str(MARKED[draw(MARKED.len())]),
                15..=16 => label.extend(words[draw(words.len())].chars().take(1 + draw(5))),
                17..=28 => label.push_str(words[draw(3000)]),
                _ => label.push_str(words[draw(words.len())]),
            }
        }
        names.extend(DomainName::parse(&format!("{label}.{}", TLDS[draw(TLDS.len())])));
    }
    names
}

/// Returns the names of the bundled sample.
fn sample_names() -> Vec<DomainName> {
    let file = fs::File::open("data/sample/sample.csv.gz").expect("the sample is there");
    let mut text = String::new();
    MultiGzDecoder::new(file).read_to_string(&mut text).expect("text");
    text.lines().filter_map(|line| DomainName::parse(line.split(',').next()?).ok()).collect()
}

#[test]
fn restored_scores_equal_computed_ones() {
    let mut scratch = Scratch::default();
    let mut bytes = 0;
    let names: Vec<_> = sample_names().into_iter().step_by(10).chain(odd_names(10_000)).collect();
    for (name, spread) in names.iter().zip([1, 2, 0, 7, 40, 3000].into_iter().cycle()) {
        bytes += check_recall(name, spread, &mut scratch);
    }
    assert!(bytes <= 15 * names.len(), "{bytes} bytes of features for {} names", names.len());
}

/// `cargo test --release --test it scorer:: -- --ignored`: as above, for all names of the sample.
#[test]
#[ignore = "takes minutes without optimisation"]
fn restored_scores_equal_computed_ones_for_the_whole_sample() {
    let mut scratch = Scratch::default();
    let names = sample_names().into_iter().chain(odd_names(200_000));
    for (name, spread) in names.zip([1, 2, 0, 7, 40, 3000].into_iter().cycle()) {
        check_recall(&name, spread, &mut scratch);
    }
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
            check_recall(&name, spread, &mut scratch);
        }
    }
}

#[test]
fn real_names_satisfy_the_invariants() {
    let mut scratch = Scratch::default();
    for (name, spread) in golden_names() {
        check(&name, spread, &mut scratch);
    }
}

proptest! {
    #[test]
    fn random_names_satisfy_the_invariants(
        label in "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?|(the|hotel|haus|dom|a|7|-){1,9}|\\PC{1,20}",
        tld in "com|co\\.uk|de|top|museum|рф",
        spread in 0u32..2000,
    ) {
        if let Ok(name) = DomainName::parse(&format!("{label}.{tld}")) {
            check(&name, spread, &mut Scratch::default());
            check_recall(&name, spread, &mut Scratch::default());
        }
    }

    /// An explanation is returned for any bytes that a bug might store as features.
    #[test]
    fn any_feature_bytes_yield_an_explanation(
        label in "[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?|\\PC{0,9}",
        features in prop::collection::vec(any::<u8>(), 0..12),
        spread: u32,
        rank: u16,
    ) {
        let mut scratch = Scratch::default();
        let (spread, brief) = (of(spread), Features::Brief(Brief::of(&features), rank));
        for features in [Features::Whole(&features), brief] {
            let known = StoredScore { label: &label, tld: "com", spread, features };
            let told = Scorer::shared().restore(known, &mut scratch);
            prop_assert!(!told.explanation.is_empty() && told.dqs.points() <= 100);
        }
    }

    /// Any bits of a damaged batch yield a score.
    #[test]
    fn any_bits_yield_a_score(bits: u32, spread: u32, found in 0u64..10_000_000) {
        for coverage in [Coverage::NONE, Coverage::REFERENCE, Coverage::from_found(found)] {
            let grade = Base::from_bits(bits).with_spread(Spread { tlds: spread, coverage });
            prop_assert!(grade.dqs.points() <= 100);
        }
    }
}
