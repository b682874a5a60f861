//! Sentences about the past of a name, for its buyer. Each repeats a list or the calendar, and no
//! more: unknown is not shown, and no sentence is a verdict.

use chrono::Datelike;

use crate::facts_file::Value;
use crate::vocab::day::Day;

/// Sources that say for which kinds of sites names were used.
pub const CATEGORIES: [&str; 2] = ["ut1", "hagezi"];
/// Share of captures that redirected, in percent, from which a sentence says so.
const REDIRECTS: i64 = 50;
/// Years without a capture from which a sentence says so.
const GAP: i64 = 3;
const ORDINALS: [&str; 9] =
    ["Second", "Third", "Fourth", "Fifth", "Sixth", "Seventh", "Eighth", "Ninth", "Tenth"];

/// Returns the sentences. `fact` returns the title of a source, the value of a fact and its day; `drops` are
/// the days of all drops, newest first.
pub fn sentences<'a>(
    fact: impl Fn(&str, &str) -> Option<(&'a str, &'a Value, Day)>,
    drops: &[Day],
) -> Vec<String> {
    let mut all = Vec::new();
    for source in CATEGORIES {
        if let Some((title, category, as_of)) = fact(source, "category") {
            all.push(format!("Listed as {category} by {title}, {as_of}."));
        }
    }
    let text = |source: &str, name: &str| fact(source, name).map(|(_, value, _)| value.to_string());
    let joined = |parts: &[Option<String>], between: &str| {
        parts.iter().flatten().map(String::as_str).collect::<Vec<_>>().join(between)
    };
    if let Some(decision) = text("udrp", "decision") {
        let case = joined(&[text("udrp", "provider"), text("udrp", "case")], " ");
        let of = joined(&[Some(case).filter(|it| !it.is_empty()), text("udrp", "decided")], ", ");
        let of = if of.is_empty() { of } else { format!(" ({of})") };
        all.push(format!("In a UDRP case: {decision}{of}."));
    }
    if let Some(status) = text("marks", "status") {
        let office = text("marks", "office").map(|office| format!("{office} ")).unwrap_or_default();
        let classes = text("marks", "classes").map(|classes| format!("classes {classes}"));
        all.push(format!(
            "Identical {office}word mark: {}. This is not legal advice.",
            joined(&[Some(status), classes], ", ")
        ));
    }
    let number = |name: &str| match fact("archive", name)?.1 {
        Value::Int(number) => Some(*number),
        _ => None,
    };
    if let Some(share) = number("redirects").filter(|share| *share >= REDIRECTS) {
        all.push(format!("Redirected in {share} % of captures in the web archive."));
    }
    if let Some(years) = number("gap").filter(|years| *years >= GAP) {
        all.push(format!("Without a capture in the web archive for {years} years."));
    }
    if let [_, .., first] = drops {
        let count = drops.len();
        let word = ORDINALS.get(count - 2).map_or_else(|| format!("{count}th"), |it| (*it).into());
        all.push(format!("{word} drop since {}.", first.date().year()));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_say_what_lists_say() {
        let day = |text: &str| text.parse::<Day>().expect("a day");
        let word = |text: &str| Value::Enum(text.to_owned());
        let facts = [
            ("ut1", "category", "UT1 categories", word("gambling")),
            ("udrp", "decision", "UDRP decisions", word("transferred")),
            ("udrp", "provider", "UDRP decisions", word("WIPO")),
            ("udrp", "case", "UDRP decisions", Value::Text("D2014-0001".to_owned())),
            ("udrp", "decided", "UDRP decisions", Value::Date(day("2014-03-05"))),
            ("marks", "status", "Word marks", word("live")),
            ("marks", "office", "Word marks", word("US")),
            ("marks", "classes", "Word marks", Value::Text("9, 42".to_owned())),
            ("archive", "redirects", "Web archive", Value::Int(80)),
            ("archive", "gap", "Web archive", Value::Int(5)),
        ];
        let all = |source: &str, name: &str| {
            let found = facts.iter().find(|it| (it.0, it.1) == (source, name))?;
            Some((found.2, &found.3, day("2026-10-01")))
        };
        let drops = ["2026-11-01", "2024-01-01", "2022-05-05"].map(day);
        let expected = [
            "Listed as gambling by UT1 categories, 2026-10-01.",
            "In a UDRP case: transferred (WIPO D2014-0001, 2014-03-05).",
            "Identical US word mark: live, classes 9, 42. This is not legal advice.",
            "Redirected in 80 % of captures in the web archive.",
            "Without a capture in the web archive for 5 years.",
            "Third drop since 2022.",
        ];
        assert_eq!(sentences(all, &drops), expected);
        let only = |of: &'static str| {
            let all = &all;
            move |source: &str, name: &str| {
                all(source, name).filter(|_| (source, name) == ("udrp", of))
            }
        };
        assert_eq!(sentences(only("decision"), &drops[..1]), ["In a UDRP case: transferred."]);
        assert_eq!(sentences(only("case"), &[]), [] as [&str; 0]);
        let many = vec![day("2020-01-01"); 12];
        assert_eq!(sentences(only("case"), &many), ["12th drop since 2020."]);
    }
}
