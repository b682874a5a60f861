//! Facts contained in the file name of a list (`data/docs/sources.md`): its day, and whether it is a
//! public list of new registrations.

use std::path::Path;

use super::dates::{compact, digits, ymd};
use crate::vocab::day::Day;
use crate::vocab::release_time::{Release, ReleaseRules};

/// Maximum number of days that a list of the last days covers.
const LAST_DAYS_MAX: u16 = 366;

/// The names of a file.
pub(super) struct FileNames {
    /// The file's own name.
    pub(super) outer: String,
    /// Name of the file inside a zip archive, without folders.
    pub(super) inner: Option<String>,
}

impl FileNames {
    pub(super) fn new(path: &Path, inner: Option<String>) -> FileNames {
        let outer = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let base = |inner: String| inner.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
        FileNames { outer, inner: inner.map(base) }
    }

    /// Returns the first result of `read` for the names.
    pub(super) fn first<T>(&self, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        self.names().find_map(read)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        [Some(self.outer.as_str()), self.inner.as_deref()].into_iter().flatten()
    }

    /// Release in the name of an .it list. The ten digits of the name do not count as
    /// [`FileNames::day`], because they do not date the list itself.
    pub(super) fn it_release(&self) -> Option<Release> {
        self.first(it_release)
    }

    /// Returns the day in the names, preferring an unambiguous one.
    pub(super) fn day(&self) -> NameDay {
        let mut found = NameDay::None;
        for name in self.names() {
            match day(name) {
                NameDay::None => {}
                day @ NameDay::One(_) => return day,
                ambiguous => found = ambiguous,
            }
        }
        found
    }

    /// Number of days before its own day that a list covers, such as 10 for `nrd-last-10-days.txt`.
    pub(super) fn days_before(&self) -> u16 {
        self.first(last_days).unwrap_or(0)
    }

    /// Returns the part of the names that identifies a list of new registrations.
    pub(super) fn says_registered(&self) -> Option<&'static str> {
        let is_whoisds = self.inner.as_deref() == Some(WHOISDS_INNER)
            && matches!(day(&self.outer), NameDay::One(_))
            && self.outer.bytes().filter(u8::is_ascii_alphabetic).count() == "zip".len();
        self.first(registered_word).or(is_whoisds.then_some(WHOISDS_INNER))
    }
}

/// File name inside the archives of WhoisDS, whose own names contain only the day.
const WHOISDS_INNER: &str = "domain-names.txt";

/// The day in the name of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NameDay {
    /// No date, or several, as in `from-2026-10-01-to-2026-10-07`.
    None,
    One(Day),
    /// A date whose day and month may be swapped, such as `05-11-2026`, with both possible days in
    /// calendar order.
    Ambiguous(String, [Day; 2]),
}

/// Finds the day in a file name: `2026-10-03`, `2026_10_03`, `20261003`, or `10-23-2021` and `23-10-2021`.
/// A day that starts with the year wins, and its digits count once.
pub(super) fn day(name: &str) -> NameDay {
    let runs = digit_runs(name);
    let mut iso = None;
    let (mut at, mut several) = (0, false);
    while at < runs.len() {
        let dashed = joined(name, &runs[at..]).and_then(year_first);
        let (found, used) = match dashed {
            Some(day) => (Some(day), 3),
            None => (compact(runs[at].1), 1),
        };
        at += used;
        several |= iso.is_some() && found.is_some() && iso != found;
        iso = iso.or(found);
    }
    match (iso, several) {
        (_, true) => NameDay::None,
        (Some(day), false) => NameDay::One(day),
        (None, false) => year_last(name, &runs),
    }
}

/// Finds a day with the year at its end.
fn year_last(name: &str, runs: &[(usize, &str)]) -> NameDay {
    let mut found = NameDay::None;
    for at in 0..runs.len() {
        let Some([first, second, year]) = joined(name, &runs[at..]) else { continue };
        if first.len() > 2 || second.len() > 2 || year.len() != 4 {
            continue;
        }
        let day = match (ymd(year, first, second), ymd(year, second, first)) {
            (Some(one), Some(other)) if one != other => {
                let mut days = [one, other];
                days.sort_unstable();
                NameDay::Ambiguous(format!("{first}-{second}-{year}"), days)
            }
            (Some(day), _) | (_, Some(day)) => NameDay::One(day),
            (None, None) => continue,
        };
        match &found {
            NameDay::None => found = day,
            other if *other == day => {}
            _ => return NameDay::None,
        }
    }
    found
}

/// Returns the word in a file name that identifies newly registered names.
///
/// `deregistered` means the opposite, and reading it as `registered` would undo drops.
fn registered_word(file_name: &str) -> Option<&'static str> {
    let name = file_name.to_ascii_lowercase();
    let says = |word: &str| {
        name.match_indices(word).any(|(at, _)| {
            let before = name[..at].trim_end_matches(['-', '_', ' ', '.']);
            !["de", "un", "not", "non", "no", "never"].iter().any(|not| before.ends_with(not))
        })
    };
    let mut words = name.split(|char: char| !char.is_ascii_alphanumeric());
    let is_nrd = |word: &str| {
        let rest = word.strip_prefix("nrd");
        let starts = rest.is_some_and(|rest| {
            rest.is_empty() || rest == "s" || rest.starts_with(|char: char| char.is_ascii_digit())
        });
        starts || word.ends_with("nrd") || word.ends_with("nrds")
    };
    if says("registered") {
        Some("registered")
    } else if says("new-registration") || says("new_registration") || says("newregistration") {
        Some("new registrations")
    } else {
        words.any(is_nrd).then_some("nrd")
    }
}

/// Number of days that a list covers according to its file name: 10 for `nrd-last-10-days.txt`, 14 for
/// `nrd-14day.txt` and 7 for `nrd-1w.csv`.
fn last_days(file_name: &str) -> Option<u16> {
    let name = file_name.to_ascii_lowercase();
    let name = name.as_str();
    digit_runs(name).into_iter().find_map(|(at, run)| {
        let rest = name.get(at + run.len()..)?;
        let rest = rest.strip_prefix(['-', '_']).unwrap_or(rest);
        let unit = rest.split(|char: char| !char.is_ascii_alphabetic()).next()?;
        let days = match unit {
            "d" | "day" | "days" => 1,
            "w" | "week" | "weeks" => 7,
            _ => return None,
        };
        let days = digits(run)?.checked_mul(days)?;
        u16::try_from(days).ok().filter(|days| (1..=LAST_DAYS_MAX).contains(days))
    })
}

/// Release of an .it list, whose file name is only `YYYYMMDDHH` and extensions. The hour, 9 or 16, is that
/// of Rome.
fn it_release(file_name: &str) -> Option<Release> {
    let stem = file_name.split('.').next()?;
    let (date, hour) = stem.split_at_checked(8)?;
    let hour = (hour.len() == 2).then(|| digits(hour)).flatten()?;
    ReleaseRules::compiled().of("it").at_local_hour(compact(date)?, hour)
}

/// Finds the runs of digits, with their positions.
fn digit_runs(name: &str) -> Vec<(usize, &str)> {
    let mut runs = Vec::new();
    let mut start = None;
    for (at, byte) in name.bytes().chain([0]).enumerate() {
        match (byte.is_ascii_digit(), start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                runs.push((from, &name[from..at]));
                start = None;
            }
            _ => {}
        }
    }
    runs
}

/// Returns the first three runs of digits, if single hyphens or underscores join them.
fn joined<'a>(name: &str, runs: &[(usize, &'a str)]) -> Option<[&'a str; 3]> {
    let &[(first_at, first), (second_at, second), (third_at, third), ..] = runs else {
        return None;
    };
    let between = |end: usize, next: usize| name.get(end..next);
    let one = between(first_at + first.len(), second_at)?;
    let other = between(second_at + second.len(), third_at)?;
    (one == other && ["-", "_"].contains(&one)).then_some([first, second, third])
}

/// `YYYY-MM-DD`.
fn year_first([year, month, day]: [&str; 3]) -> Option<Day> {
    let shaped = (year.len(), month.len(), day.len()) == (4, 2, 2);
    shaped.then(|| ymd(year, month, day)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Formats the day in a name: `-` for none, both days if ambiguous.
    fn told(name: &str) -> String {
        match day(name) {
            NameDay::None => "-".into(),
            NameDay::One(day) => day.to_string(),
            NameDay::Ambiguous(text, [one, other]) => format!("{text}: {one} or {other}"),
        }
    }

    #[test]
    fn dates_in_file_names() {
        for (name, expected) in [
            ("2026-10-03.txt", "2026-10-03"),
            ("drops_20261003.csv.gz", "2026-10-03"),
            ("drops_2026_10_03.csv", "2026-10-03"),
            ("11-30-2026.txt", "2026-11-30"),
            ("30-11-2026.txt", "2026-11-30"),
            ("11-11-2026.txt", "2026-11-11"),
            ("2026-10-03-free-dropped-domains.csv", "2026-10-03"),
            ("list2026-10-03-2026-10-03", "2026-10-03"),
            ("from-2026-10-01-to-2026-10-07.txt", "-"),
            ("newly-registered-2026-08.txt", "-"),
            ("120261003.txt", "-"),
            ("20261399.txt", "-"),
            ("2026--10-03.txt", "-"),
            ("2026-10_03.txt", "-"),
            ("names.txt", "-"),
            ("1-2.txt", "-"),
            ("13-13-2026.txt", "-"),
            ("é2026-10-03é", "2026-10-03"),
        ] {
            assert_eq!(told(name), expected, "{name}");
        }
    }

    #[test]
    fn a_day_that_starts_with_its_year_wins_and_its_digits_count_once() {
        for name in [
            "names-part-1-2-2026-11-27.txt",
            "names-2026-11-27-1-2.txt",
            "part-05-11-2026-11-27.txt",
            "names-1-2-20261127.txt",
            "1_2_2026_11_27.txt",
        ] {
            assert_eq!(told(name), "2026-11-27", "{name}");
        }
    }

    #[test]
    fn a_day_that_can_be_read_in_two_ways_is_ambiguous() {
        for name in ["05-11-2026.txt", "drops_5-11-2026.csv.gz", "part-7-05-11-2026.txt"] {
            assert!(told(name).ends_with("5-11-2026: 2026-05-11 or 2026-11-05"), "{}", told(name));
        }
        assert_eq!(told("11_5_2026.txt"), "11-5-2026: 2026-05-11 or 2026-11-05");
    }

    #[test]
    fn lists_of_the_last_days_name_them() {
        for (name, days) in [
            ("nrd-last-10-days.txt", Some(10)),
            ("nrd-last-60-days.txt.gz", Some(60)),
            ("nrd-14day.txt", Some(14)),
            ("nrd7d.txt", Some(7)),
            ("nrd-1w.csv", Some(7)),
            ("last-0-days.txt", None),
            ("last-9999-days.txt", None),
            ("last-days.txt", None),
            ("nrd-2026-11-22.txt", None),
        ] {
            assert_eq!(last_days(name), days, "{name}");
        }
    }

    #[test]
    fn file_names_of_it_lists_are_ten_digits() {
        for (name, at) in [
            ("2026100309.txt.gz", "2026-10-03T07:00:00.000Z"),
            ("2026112816.txt", "2026-11-28T15:00:00.000Z"),
        ] {
            let release = it_release(name).and_then(Release::instant).map(|at| at.to_string());
            assert_eq!(release.as_deref(), Some(at));
        }
        for name in ["20261003.txt", "2026100324.txt", "a2026100309.txt", "20261003091.txt"] {
            assert_eq!(it_release(name), None, "{name}");
        }
    }

    #[test]
    fn names_of_public_lists_of_new_registrations_are_recognised() {
        let says = |outer: &str, inner: Option<&str>| {
            let names = FileNames { outer: outer.into(), inner: inner.map(str::to_owned) };
            names.says_registered().is_some()
        };
        for name in [
            "nrd-2026-11-26.txt",
            "NRD_20261126.txt.gz",
            "nrd",
            "nrds.txt",
            "nrd7.txt",
            "nrd-14day-part1.txt",
            "whoisds-nrd-2026-11-26.zip",
            "daily_nrd.csv",
            "newly-registered-2026-08.txt.zst",
            "newly-registered-domains-2026-11-26.txt",
            "newly_registered_domains_1w.txt",
            "Registered.txt",
            "newlyregistered.txt",
            "new-registrations-2026-11-26.txt",
        ] {
            assert!(says(name, None), "{name}");
        }
        for name in [
            "deregistered.txt",
            "un-registered.txt",
            "not registered.txt",
            "names.txt",
            "nrdc-2026-11-26.txt",
            "expired-registrations.txt",
            "2026-11-26.txt",
            "domain-names.txt",
        ] {
            assert!(!says(name, None), "{name}");
        }
        // Archives of WhoisDS.
        assert!(says("2026-11-26.zip", Some("domain-names.txt")));
        assert!(says("list.zip", Some("nrd-2026-11-26.txt")));
        assert!(!says("dropped-2026-11-26.zip", Some("domain-names.txt")));
    }
}
