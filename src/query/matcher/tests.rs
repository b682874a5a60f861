use super::*;

/// Labels of letters, digits and hyphens that often resemble each other, sorted.
fn labels(rng: &mut fastrand::Rng, count: usize) -> Vec<String> {
    let letters: Vec<char> = "aabbccdeiosuxy01-".chars().collect();
    let mut labels: Vec<String> = (0..count)
        .map(|_| (0..rng.usize(1..12)).map(|_| letters[rng.usize(..letters.len())]).collect())
        .collect();
    labels.sort();
    labels
}

const UNICODE: [&str; 6] = ["münchen", "ñandú", "日本語", "straße1", "ö", "привет-2"];

/// Matches a pattern naively, by trying every length of each star.
fn fits(pattern: &[char], label: &[char]) -> bool {
    let Some((symbol, rest)) = pattern.split_first() else { return label.is_empty() };
    if *symbol == '*' {
        return (0..=label.len()).any(|skipped| fits(rest, &label[skipped..]));
    }
    let Some((char, others)) = label.split_first() else { return false };
    let accepted = match symbol {
        'V' => "aeiouy".contains(*char),
        'C' => char.is_ascii_lowercase() && !"aeiou".contains(*char),
        'L' => char.is_ascii_lowercase() || !char.is_ascii(),
        'N' => char.is_ascii_digit(),
        'A' => char.is_ascii_alphanumeric() || !char.is_ascii(),
        '?' => true,
        own => own == char,
    };
    accepted && fits(rest, others)
}

/// Checks a matcher against an oracle over sorted labels, as well as the bounds and literals that
/// it reports.
fn check(matcher: &Matcher, labels: &[String], expected: impl Fn(&str) -> bool) {
    let mut trail = Trail::default();
    let mut before = "";
    for label in labels {
        let expects = expected(label);
        assert_eq!(matcher.matches(label, label), expects, "{matcher:?} {label}");
        let shared = before.bytes().zip(label.bytes()).take_while(|(one, other)| one == other);
        let extended = matcher.extend(&mut trail, shared.count(), label.as_bytes());
        assert_eq!(extended, expects, "{matcher:?} {before} {label}");
        before = label;
    }
    for label in labels.iter().map(String::as_str).chain(UNICODE) {
        let expects = expected(label);
        assert_eq!(matcher.matches("xn--x", label), expects, "{matcher:?} {label}");
        if expects {
            let chars = label.chars().count() as u8;
            assert!(matcher.lengths().contains(&chars), "{matcher:?} {label}");
            let literals = matcher.literals();
            let holds = literals.iter().any(|literal| label.contains(literal.as_str()));
            assert!(literals.is_empty() || holds, "{matcher:?} {label} {literals:?}");
            let ends = literals.iter().any(|literal| label.ends_with(literal.as_str()));
            assert!(!matcher.ends_with_literal() || ends, "{matcher:?} {label} {literals:?}");
        }
    }
}

#[test]
fn patterns_match_as_a_naive_matcher_does() {
    let mut rng = fastrand::Rng::with_seed(20);
    let labels = labels(&mut rng, 400);
    let symbols: Vec<char> = "CVLNA??**abcu01-ü".chars().collect();
    for _ in 0..600 {
        let pattern: String =
            (0..rng.usize(1..8)).map(|_| symbols[rng.usize(..symbols.len())]).collect();
        let Ok(matcher) = Matcher::pattern(&pattern) else {
            assert!(pattern.matches('*').count() > PATTERN_STARS_MAX, "{pattern}");
            continue;
        };
        let chars: Vec<char> = pattern.chars().collect();
        check(&matcher, &labels, |label| fits(&chars, &label.chars().collect::<Vec<char>>()));
    }
}

#[test]
fn pattern_symbols_match_their_characters() {
    let matches = |pattern: &str, label: &str| {
        Matcher::pattern(pattern).expect("a pattern").matches(label, label)
    };
    assert!(matches("CVCV", "solo") && matches("CVCV", "yoyo") && !matches("CVCV", "solar"));
    assert!(matches("*bank", "bank") && matches("*bank", "mybank") && !matches("*bank", "banks"));
    assert!(matches("MüNchen".to_lowercase().as_str(), "münchen"));
    assert!(matches("mu\u{308}L*", "münchen") && matches("LLL", "日本語"));
    assert!(matches("NNNN", "2026") && !matches("NNNN", "20-6"));
    assert!(matches("ถ่ายท*", "ถ่ายทอดสด") && !matches("ถ่ายท*", "ถายทอดสด"), "with a combining mark");
    assert!(matches("*❤", "i❤") && matches("कि*", "किताब"));
    for none in ["a\u{3000}ü", "ü\u{85}b", "ü\u{fffd}", "ü\u{e000}"] {
        assert!(Matcher::pattern(none).is_err(), "{none:?}");
    }
    let long = "?".repeat(63);
    assert!(matches(&long, &"a".repeat(63)) && !matches(&long, &"a".repeat(62)));
    for (pattern, error) in [
        ("", "must have 1 to 63 symbols"),
        (&*"a".repeat(64), "must have 1 to 63 symbols"),
        ("*a*b*c*d*", "must have at most 4 `*`"),
        (
            "CVX",
            "symbol 3 is \"X\"; must be C, V, L, N, A, ?, *, a lower-case letter, a digit or -",
        ),
        (
            "a.b",
            "symbol 2 is \".\"; must be C, V, L, N, A, ?, *, a lower-case letter, a digit or -",
        ),
    ] {
        let err = Matcher::pattern(pattern).expect_err(pattern);
        assert_eq!(err.to_string(), error);
    }
    let matcher = Matcher::pattern("xn--*").expect("a pattern");
    assert!(matcher.compares_a_labels() && matcher.matches("xn--mnchen-3ya", "münchen"));
}

/// Returns a random regular expression over the alphabet of [`labels`].
fn expression(rng: &mut fastrand::Rng, depth: usize) -> String {
    if depth == 0 || rng.u8(..4) == 0 {
        let atoms = [
            "a",
            "b",
            "ab",
            "sou",
            "[a-c]",
            "[^a]",
            ".",
            "0",
            "[0-9]",
            "-",
            "ü",
            "A",
            "[[:alpha:]]",
        ];
        return atoms[rng.usize(..atoms.len())].to_owned();
    }
    let inner = expression(rng, depth - 1);
    match rng.u8(..9) {
        0 => format!("({inner})*"),
        1 => format!("(?:{inner})+"),
        2 => format!("({inner})?"),
        3 => format!("(?:{inner}){{1,3}}"),
        4 => format!("({inner}|{})", expression(rng, depth - 1)),
        5 => format!("^{inner}"),
        6 => format!("{inner}$"),
        _ => format!("{inner}{}", expression(rng, depth - 1)),
    }
}

#[test]
fn expressions_match_as_the_regex_crate_does() {
    let mut rng = fastrand::Rng::with_seed(21);
    let labels = labels(&mut rng, 300);
    let (mut compiled, mut with_literals) = (0, 0);
    for _ in 0..500 {
        let text = expression(&mut rng, 4);
        let matcher = match Matcher::regex(&text) {
            Ok(matcher) => matcher,
            Err(MatcherError::TooLarge | MatcherError::RegexLength) => continue,
            Err(err) => panic!("{text}: {err}"),
        };
        let oracle = regex::RegexBuilder::new(&text).case_insensitive(true).build();
        let oracle = oracle.expect("the same syntax");
        compiled += 1;
        with_literals += usize::from(!matcher.literals().is_empty());
        check(&matcher, &labels, |label| oracle.is_match(label));
    }
    assert!(compiled > 400 && with_literals > 50, "{compiled} {with_literals}");
}

#[test]
fn edit_distances_match_dynamic_programming() {
    let mut rng = fastrand::Rng::with_seed(22);
    let labels = labels(&mut rng, 1_000);
    for _ in 0..60 {
        let text = &labels[rng.usize(..labels.len())];
        for distance in [1, 2] {
            if text.chars().count() < 3 || text.starts_with('-') {
                continue;
            }
            let matcher = Matcher::like(text, distance).expect("a label");
            check(&matcher, &labels, |label| {
                strsim::osa_distance(text, label) <= usize::from(distance)
            });
        }
    }
    // Longer labels, with edits where pieces begin and end.
    for _ in 0..2_000 {
        let text: String = (0..rng.usize(7..20)).map(|_| rng.char('a'..='d')).collect();
        let distance = rng.u8(1..=2);
        let mut label: Vec<char> = text.chars().collect();
        for _ in 0..distance {
            let (at, char) = (rng.usize(..label.len() - 1), rng.char('a'..='d'));
            match rng.u8(..4) {
                0 => label[at] = char,
                1 => label.insert(at, char),
                2 => _ = label.remove(at),
                _ => label.swap(at, at + 1),
            }
        }
        let matcher = Matcher::like(&text, distance).expect("a label");
        check(&matcher, &[label.iter().collect()], |label| {
            strsim::osa_distance(&text, label) <= usize::from(distance)
        });
    }
    let matcher = Matcher::like("MÜNCHEN", 1).expect("a label");
    assert!(
        matcher.matches("xn--x", "mucnhen") == (strsim::osa_distance("münchen", "mucnhen") < 2)
    );
    assert!(matcher.matches("xn--x", "müncehn") && !matcher.matches("munchen", "mnchn"));
}

#[test]
fn perl_classes_match_ascii_and_other_classes_any_character() {
    let matches = |regex: &str, label: &str| {
        Matcher::regex(regex).expect("an expression").matches("xn--x", label)
    };
    assert!(matches("^m.nchen$", "münchen") && matches("^m[^a]nchen$", "münchen"));
    assert!(
        matches(r"^.{3}$", "日本語") && !matches(r"\w", "日本語") && matches(r"^\W+$", "日本語")
    );
    assert!(matches(r"^[\d-]+$", "1-2") && !matches(r"\d", "abc") && matches("SOLAR", "mysolar1"));
    assert!(matches(r"\bsolar\b", "my-solar-x") && !matches(r"\bsolar\b", "mysolar"));
    assert!(matches(r"^\p{Han}+$", "日本語") && !matches(r"^\p{Han}+$", "solar"));
    let a_label = Matcher::regex("^xn--mn").expect("an expression");
    assert!(a_label.matches("xn--mnchen-3ya", "münchen"));
}

#[test]
fn required_literals_are_extracted() {
    for (regex, literals) in [
        ("[a-z]*shop[a-z]*", &["shop"][..]),
        ("(green|solar)..(roof|home)s?", &["green", "solar"]),
        ("cr[iy]pto", &["cripto", "crypto"]),
        ("(coin|bit).?(swap|dex)", &["swap", "dex"]),
        ("(ai|gpt)$", &["ai", "gpt"]),
        ("[a-z]{4}", &[]),
        ("(shop)?x", &[]),
    ] {
        let matcher = Matcher::regex(regex).expect("an expression");
        let found: Vec<&str> = matcher.literals().iter().map(Substring::as_str).collect();
        assert_eq!(found, literals, "{regex}");
        assert_eq!(matcher.ends_with_literal(), regex == "(ai|gpt)$", "{regex}");
    }
    for (matcher, literals, ends) in [
        (Matcher::pattern("*bank"), &["bank"][..], true),
        (Matcher::pattern("*bankL"), &["bank"], false),
        (Matcher::pattern("a*bank*xyz"), &["bank"], false),
        (Matcher::regex("su.*a$"), &["su"], false),
        (Matcher::regex("shop(s?|ping)$"), &["shop", "shopping", "shops"], true),
        (Matcher::like("solarpanel", 1), &["sola", "panel"], false),
        (Matcher::like("solarpanels", 2), &["sol", "rpa", "els"], false),
        (Matcher::like("solar", 1), &[], false),
    ] {
        let matcher = matcher.expect("valid");
        let mut found: Vec<&str> = matcher.literals().iter().map(Substring::as_str).collect();
        if found.len() == 3 && ends {
            found.sort_unstable();
        }
        assert_eq!((&*found, matcher.ends_with_literal()), (literals, ends), "{matcher:?}");
    }
    assert_eq!(Matcher::regex("^[a-z]{4}$").expect("an expression").lengths(), 4..=4);
}

#[test]
fn decomposed_texts_match_like_composed_ones() {
    let label = "caf\u{e9}-m\u{fc}nchen";
    for text in
        ["cafe\u{301}-mu\u{308}n", "^cafe\u{301}", "[u\u{308}]nchen$", "(e\u{301}|u\u{308})-"]
    {
        let matcher = Matcher::regex(text).unwrap_or_else(|err| panic!("{text}: {err}"));
        assert!(matcher.matches("xn--caf-mnchen-j7a4l", label), "{text}");
    }
    let pattern = Matcher::pattern("*mu\u{308}nchen").expect("a pattern");
    assert!(pattern.matches("xn--caf-mnchen-j7a4l", label));
    let like = Matcher::like("cafe\u{301}-mu\u{308}nche", 1).expect("a label");
    assert!(like.matches("xn--caf-mnchen-j7a4l", label));
}

#[test]
fn invalid_expressions_are_refused_with_the_position() {
    for (regex, at, what) in [
        ("ab(c", 3, "unclosed group"),
        ("ü[a", 2, "unclosed character class"),
        ("a(?=b)", 2, "look-around"),
        (r"(a)\1", 4, "backreferences"),
        (r"a\p{Nosuch}", 2, "Unicode property"),
        ("*a", 1, "repetition operator missing expression"),
        (&*format!("{}a{}", "(".repeat(60), ")".repeat(60)), 31, "nest"),
    ] {
        match Matcher::regex(regex) {
            Err(MatcherError::Syntax { at: found, what: text }) => {
                assert_eq!(found, at, "{regex}: {text}");
                assert!(text.contains(what), "{regex}: {text}");
            }
            other => panic!("{regex}: {other:?}"),
        }
    }
    assert_eq!(Matcher::regex(""), Err(MatcherError::RegexLength));
    assert_eq!(Matcher::regex(&"a".repeat(201)), Err(MatcherError::RegexLength));
}

#[test]
fn hostile_expressions_are_refused_or_linear() {
    for regex in ["[a-z]*a[a-z]{20}", "^(([a-z]{1,10}){1,10}){1,10}$", "((a{63}){63}){63}"] {
        assert_eq!(Matcher::regex(regex), Err(MatcherError::TooLarge), "{regex}");
        assert!(Matcher::is_kept(regex), "a refusal is kept");
    }
    let label = "x".repeat(63);
    for regex in ["(x+x+)+y", "(.*a){12}", "(a?){50}a{50}", r"^(\w+-?)*$"] {
        let matcher = Matcher::regex(regex).unwrap_or_else(|err| panic!("{regex}: {err}"));
        assert_eq!(matcher.matches(&label, &label), regex.starts_with('^'), "{regex}");
    }
    for text in ["ab", &"a".repeat(31), ""] {
        assert_eq!(Matcher::like(text, 1), Err(MatcherError::LikeLength));
    }
}
