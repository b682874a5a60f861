//! The generated corpus: names, the facts that several lists report about them, and the lists as
//! files.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write as _;

use dropdex::vocab::day::Day;
use dropdex::vocab::name::{DomainName, NameError};

use super::model::{Fact, Ranks, Said, periods};
use crate::common::rng::Rng;

/// Number of names in the corpus, except for a few from lists of new registrations and special cases.
const NAMES: usize = 3_000;

/// Days of the servers: the second one tests the change of the day, the third one the change of
/// most stages.
pub const TODAYS: [&str; 3] = ["2026-03-15", "2026-03-16", "2026-04-01"];

/// Days without ordinary drops: the third today and the two days before it. On these, the newest drop
/// date comes from a record that was superseded by a newer one in the future.
const QUIET: [&str; 3] = ["2026-03-30", "2026-03-31", "2026-04-01"];

const SECONDS_PER_DAY: i64 = 86_400;

/// Suffixes by weight: with and without a row in the lifecycle table, of several labels, IDN.
const TLDS: [&str; 34] = [
    "com",
    "com",
    "com",
    "com",
    "com",
    "com",
    "com",
    "net",
    "net",
    "org",
    "org",
    "io",
    "io",
    "de",
    "de",
    "de",
    "se",
    "se",
    "nu",
    "co.uk",
    "co.uk",
    "uk",
    "org.uk",
    "pl",
    "pl",
    "com.pl",
    "nl",
    "be",
    "fr",
    "app",
    "рф",
    "рф",
    "公司.cn",
    "chiyoda.tokyo.jp",
];

/// Label beginnings that share prefixes, in ASCII and across scripts.
const HEADS: [&str; 68] = [
    "a",
    "ab",
    "abc",
    "abcd",
    "abc-d",
    "abc1",
    "x",
    "xn",
    "xn1",
    "xx",
    "xylo",
    "x-ray",
    "exam",
    "example",
    "examplé",
    "exämple",
    "solar",
    "solarpanel",
    "solar-panel",
    "soler",
    "panel",
    "shop",
    "shopping",
    "shops",
    "best",
    "bestshop",
    "bets",
    "cafe",
    "café",
    "cafés",
    "munch",
    "münch",
    "münchen",
    "mun",
    "mün",
    "mueller",
    "müller",
    "muller",
    "strasse",
    "straße",
    "naive",
    "naïve",
    "xülo",
    "xéno",
    "übung",
    "uber",
    "über",
    "zebra",
    "zoo",
    "0",
    "1",
    "12",
    "123",
    "4ever",
    "go",
    "god",
    "gold",
    "golden",
    "пример",
    "привет",
    "при",
    "日本",
    "日本語",
    "ελλάδα",
    "ñandu",
    "q",
    "porn",
    "sexy",
];

/// Label ends, many of which sort around the dot: a hyphen sorts before the dot, digits and letters
/// after it.
const TAILS: [&str; 30] = [
    "", "", "", "", "", "-d", "-1", "-shop", "0", "1", "1a", "2", "24", "99", "a", "s", "z", "er",
    "ing", "online", "hub", "lab", "ly", "é", "ü", "ß", "-ö", "world", "я", "x",
];

/// The format in which a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The native CSV.
    Native(Columns),
    /// Plain names that all dropped on one day.
    Names(Day),
    /// Names that were all newly registered on one day.
    Registered(Day),
}

/// The optional columns of a native list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// All columns, in an unusual order.
    All,
    /// All columns except `observed_at`, so that every row has the observation time of the list.
    NoObservedAt,
    /// Only `domain,drop_date`.
    Two,
}

/// A list: its facts, and the file that contains them.
pub struct List {
    pub file: &'static str,
    pub kind: Kind,
    pub gzip: bool,
    /// Seconds of the Unix clock.
    pub observed_at: i64,
    /// One fact per valid row, in the order of the rows.
    pub facts: Vec<Said>,
    /// Number of rows that must be rejected.
    pub bad_rows: usize,
    pub text: String,
}

/// A popularity list as a file, and the ranks that it gives if it is the newest of its kind.
pub struct Popular {
    pub file: &'static str,
    /// Number of accepted rows.
    pub rows: usize,
    pub text: String,
    pub ranks: Ranks,
}

/// A whole corpus.
pub struct Corpus {
    pub lists: Vec<List>,
    /// The lists are in the order of ingest; an older list of a kind follows the newest.
    pub popular: Vec<Popular>,
}

impl Corpus {
    /// Returns every fact of every list.
    pub fn facts(&self) -> impl Iterator<Item = &Said> {
        self.lists.iter().flat_map(|list| &list.facts)
    }

    /// Generates the corpus of a seed.
    pub fn generate(rng: &mut Rng) -> Corpus {
        let names = names(rng);
        let mut lists = empty_lists();
        let mut told = Told::default();
        for name in &names {
            tell_life(rng, name, &mut lists, &mut told);
        }
        tell_specials(&mut lists, &mut told);
        tell_registrations(rng, &names, &mut lists);
        lists.extend(tell_again(rng, &names, &mut told));
        for list in &mut lists {
            // The special cases keep their order, because they test which row comes first.
            if list.kind != Kind::Native(Columns::All) {
                rng.shuffle(&mut list.facts);
            }
            write_text(rng, list);
        }
        let popular = popular(rng, &names);
        Corpus { lists, popular }
    }

    /// Returns the popularity lists in use, in the order of a dossier.
    pub fn ranks(&self) -> Vec<Ranks> {
        let newest = self.popular.iter().filter(|popular| !popular.file.contains("OLDER"));
        newest.map(|popular| popular.ranks.clone()).collect()
    }
}

/// Parses a date of this module's tables.
pub fn day(text: &str) -> Day {
    text.parse().expect("a date")
}

fn at_noon(text: &str) -> i64 {
    day(text).start().timestamp() + SECONDS_PER_DAY / 2
}

/// The lists that are ingested last. The other lists contain all of their names, so that they do not
/// change the market estimate.
pub const LATER: [&str; 2] = ["again.csv", "again.txt"];

/// The lists are in the order of ingest, which is not the order of observation.
fn empty_lists() -> Vec<List> {
    let list = |file, kind, observed: &str, gzip| List {
        file,
        kind,
        gzip,
        observed_at: at_noon(observed),
        facts: Vec::new(),
        bad_rows: 0,
        text: String::new(),
    };
    vec![
        list("early.csv", Kind::Native(Columns::NoObservedAt), "2026-02-03", false),
        list("names-a.txt", Kind::Names(day("2026-03-12")), "2026-03-12", false),
        list("names-a2.txt", Kind::Names(day("2026-03-12")), "2026-03-12", false),
        list("negative-a.txt", Kind::Registered(day("2026-02-14")), "2026-02-15", false),
        list("full.csv.gz", Kind::Native(Columns::All), "2026-03-05", true),
        list("names-b.txt", Kind::Names(day("2026-03-15")), "2026-03-15", false),
        list("names-c.txt", Kind::Names(day("2026-02-10")), "2026-02-11", false),
        list("negative-b.txt", Kind::Registered(day("2026-03-07")), "2026-03-08", false),
        list("late-ingest.csv", Kind::Native(Columns::NoObservedAt), "2026-01-20", false),
        list("two-columns.csv", Kind::Native(Columns::Two), "2026-03-14", false),
    ]
}

/// Adds further drops of some names to the lists of [`LATER`].
fn tell_again(rng: &mut Rng, names: &[DomainName], told: &mut Told) -> [List; LATER.len()] {
    let kinds = [Kind::Native(Columns::NoObservedAt), Kind::Names(day("2026-03-14"))];
    let mut lists = kinds.map(|kind| {
        let file = LATER[usize::from(kind != kinds[0])];
        let observed_at = at_noon("2026-03-14");
        List {
            file,
            kind,
            gzip: false,
            observed_at,
            facts: Vec::new(),
            bad_rows: 0,
            text: String::new(),
        }
    });
    for name in names {
        let (date, release, registered_again) = match rng.below(20) {
            0 => (drop_date(rng, name.tld()), None, rng.chance(20)),
            1 => {
                let date = drop_date(rng, name.tld());
                (date, Some(release_date(rng, date)), false)
            }
            2 => (day("2026-03-14"), None, false),
            _ => continue,
        };
        let list = &mut lists[usize::from(date == day("2026-03-14") && !registered_again)];
        let release = release.filter(|_| matches!(list.kind, Kind::Native(_)));
        let observed_at = list.observed_at;
        told.tell(list, name, Fact::Drop { date, release, registered_again }, observed_at);
    }
    lists
}

fn names(rng: &mut Rng) -> Vec<DomainName> {
    let mut names = BTreeSet::new();
    names.extend(
        [
            "abc.com",
            "abc-d.com",
            "abc1.com",
            "abcd.com",
            "abc.net",
            "abc.co.uk",
            "abc.uk",
            "abc.pl",
            "abc.com.pl",
            "abc.рф",
            "münchen.de",
            "munchen.de",
            "xn.com",
            "xülo.de",
            "пример.рф",
            "日本語.公司.cn",
            "日本.chiyoda.tokyo.jp",
        ]
        .map(parse),
    );
    for length in [40, 62, 63] {
        names.insert(parse(&format!("{}.com", "longname".repeat(8).get(..length).expect("64"))));
    }
    while names.len() < NAMES {
        let label = format!("{}{}{}", rng.pick(&HEADS), rng.pick(&TAILS), rng.pick(&TAILS));
        // A label is in several TLDs more often than by chance.
        for _ in 0..rng.between(1, 3) {
            names.extend(DomainName::parse(&format!("{label}.{}", rng.pick(&TLDS))).ok());
        }
    }
    let mut names: Vec<DomainName> = names.into_iter().collect();
    rng.shuffle(&mut names);
    names
}

fn parse(text: &str) -> DomainName {
    DomainName::parse(text).unwrap_or_else(|reason| panic!("{text}: {reason}"))
}

/// Facts generated so far, so that no two facts contradict each other at the same instant: the
/// specification does not say which of them wins.
#[derive(Default)]
struct Told(HashSet<(DomainName, Option<Day>, i64)>);

impl Told {
    fn tell(&mut self, list: &mut List, name: &DomainName, fact: Fact, observed_at: i64) {
        let about = match fact {
            Fact::Drop { date, .. } => Some(date),
            Fact::Known { .. } => None,
            Fact::Registered { .. } => unreachable!("written by tell_registrations"),
        };
        if self.0.insert((name.clone(), about, observed_at)) {
            let listed_at = list.observed_at;
            list.facts.push(Said { name: name.clone(), fact, observed_at, listed_at });
        }
    }
}

/// Generates everything that the drop lists report about one name.
fn tell_life(rng: &mut Rng, name: &DomainName, lists: &mut [List], told: &mut Told) {
    let drops = match rng.below(100) {
        0..6 => 0,
        6..66 => 1,
        66..90 => 2,
        _ => 3,
    };
    if drops == 0 {
        for _ in 0..rng.between(1, 2) {
            tell_known(rng, name, lists, told);
        }
    }
    for _ in 0..drops {
        tell_drop(rng, name, lists, told);
    }
    if drops > 0 && rng.chance(6) {
        // If a drop is on record, a status has no effect.
        tell_known(rng, name, lists, told);
    }
}

fn tell_known(rng: &mut Rng, name: &DomainName, lists: &mut [List], told: &mut Told) {
    let list = native(rng, lists);
    // Without a status column, the list does not show that the name is registered.
    let registered = list.kind != Kind::Native(Columns::Two) && rng.chance(60);
    let observed_at = observed(rng, list);
    told.tell(list, name, Fact::Known { registered }, observed_at);
}

fn tell_drop(rng: &mut Rng, name: &DomainName, lists: &mut [List], told: &mut Told) {
    if rng.chance(20) {
        let plain: Vec<usize> =
            (0..lists.len()).filter(|&at| matches!(lists[at].kind, Kind::Names(_))).collect();
        let list = &mut lists[*rng.pick(&plain)];
        let Kind::Names(date) = list.kind else { unreachable!("chosen so") };
        let fact = Fact::Drop { date, release: None, registered_again: false };
        let observed_at = list.observed_at;
        told.tell(list, name, fact, observed_at);
        return;
    }
    let date = drop_date(rng, name.tld());
    let observations = if rng.chance(25) { rng.between(2, 3) } else { 1 };
    for _ in 0..observations {
        let list = native(rng, lists);
        let plain = list.kind == Kind::Native(Columns::Two);
        let release = (!plain && rng.chance(25)).then(|| release_date(rng, date));
        let registered_again = !plain && rng.chance(8);
        let observed_at = observed(rng, list);
        told.tell(list, name, Fact::Drop { date, release, registered_again }, observed_at);
    }
}

fn native<'a>(rng: &mut Rng, lists: &'a mut [List]) -> &'a mut List {
    let native: Vec<usize> =
        (0..lists.len()).filter(|&at| matches!(lists[at].kind, Kind::Native(_))).collect();
    &mut lists[*rng.pick(&native)]
}

/// Returns the observation time of a row: its own if the list has a column for it, otherwise the
/// list's time.
fn observed(rng: &mut Rng, list: &List) -> i64 {
    if list.kind != Kind::Native(Columns::All) || rng.chance(30) {
        return list.observed_at;
    }
    list.observed_at - i64::from(rng.between(-3 * 86_400, 40 * 86_400))
}

/// Draws a drop day: any day, or one that makes a stage begin or end near one of the todays.
fn drop_date(rng: &mut Rng, tld: &str) -> Day {
    loop {
        let today = day(rng.pick::<&str>(&TODAYS));
        let date = if rng.chance(50) {
            let (redemption_days, pending_delete_days) = periods(tld);
            today.plus(rng.between(-7, 8) - redemption_days - pending_delete_days)
        } else if rng.chance(15) {
            today
        } else {
            today.plus(rng.between(-110, 12))
        };
        if !QUIET.map(day).contains(&date) {
            return date;
        }
    }
}

/// Draws a release day of a feed: near a today, after the drop, or already past when the name was seen.
fn release_date(rng: &mut Rng, date: Day) -> Day {
    match rng.below(10) {
        0 => date.plus(rng.between(-20, 0)),
        1..5 => day(rng.pick::<&str>(&TODAYS)).plus(rng.between(-7, 8)),
        _ => date.plus(rng.between(1, 80)),
    }
}

/// Adds cases that random data may miss.
fn tell_specials(lists: &mut [List], told: &mut Told) {
    let full = lists
        .iter_mut()
        .find(|list| list.kind == Kind::Native(Columns::All))
        .expect("there is a full native list");
    let dropped = |date: &str, release: Option<&str>, registered_again| Fact::Drop {
        date: day(date),
        release: release.map(day),
        registered_again,
    };
    let noon = full.observed_at;
    for (name, fact, observed_at) in [
        // A name with a future drop, whose superseded old drop is on the quiet day before the last
        // today.
        ("superseded-special.com", dropped("2026-03-31", None, false), noon),
        ("superseded-special.com", dropped("2026-05-02", None, false), noon),
        // A name that dropped today, although the registry had released it long before.
        ("freed-long-ago.co.uk", dropped("2026-03-15", Some("2026-02-20"), false), noon),
        // The same drop day occurs twice in one file; the later row was observed earlier.
        ("seen-twice.com", dropped("2026-03-01", Some("2026-03-15"), false), noon),
        ("seen-twice.com", dropped("2026-03-01", None, true), noon - 1),
        ("seen-twice.net", dropped("2026-03-01", Some("2026-03-15"), true), noon - 1),
        ("seen-twice.net", dropped("2026-03-01", None, false), noon),
        // A name that was registered again and has dropped again since then.
        ("back-again.org", dropped("2026-01-10", None, true), noon),
        ("back-again.org", dropped("2026-03-10", None, false), noon),
        // A name that dropped several times and whose newest drop was undone.
        ("gone-again.org", dropped("2026-01-10", None, false), noon),
        ("gone-again.org", dropped("2026-03-10", None, true), noon),
    ] {
        told.tell(full, &parse(name), fact, observed_at);
    }
}

/// Generates the lists of new registrations: names of the corpus that dropped, and some that no other
/// list has.
fn tell_registrations(rng: &mut Rng, names: &[DomainName], lists: &mut [List]) {
    let dropped: HashSet<DomainName> = lists
        .iter()
        .flat_map(|list| &list.facts)
        .filter(|said| matches!(said.fact, Fact::Drop { .. }))
        .map(|said| said.name.clone())
        .collect();
    for list in lists {
        let Kind::Registered(on) = list.kind else { continue };
        let known = names.iter().filter(|name| dropped.contains(name)).filter(|_| rng.chance(6));
        let mut listed: Vec<DomainName> = known.cloned().collect();
        listed.extend((0..15).map(|_| {
            let tld = rng.pick(&["com", "de", "se", "co.uk"]);
            parse(&format!("newcomer{}.{tld}", rng.below(100_000)))
        }));
        let observed_at = list.observed_at;
        list.facts = listed
            .into_iter()
            .map(|name| Said {
                name,
                fact: Fact::Registered { on },
                observed_at,
                listed_at: observed_at,
            })
            .collect();
    }
}

/// Generates popularity lists of some names, in the formats of their publishers.
fn popular(rng: &mut Rng, names: &[DomainName]) -> Vec<Popular> {
    let tranco = |file, id, day| (file, "tranco", Some(id), day);
    let of = [
        tranco("tranco_XJNYN_2026-03-02.csv", "XJNYN", "2026-03-02"),
        tranco("tranco_OLDER_2026-03-01.csv", "OLDER", "2026-03-01"),
        ("majestic_million_2026-03-03.csv", "majestic", None, "2026-03-03"),
        ("umbrella-2026-03-04.csv", "umbrella", None, "2026-03-04"),
    ];
    let popular = of.map(|(file, list, id, day)| {
        let ranks = Ranks { list, id, day, of: BTreeMap::new() };
        let (rows, text) = (0, String::new());
        let mut popular = Popular { file, rows, text, ranks };
        if list == "majestic" {
            popular.text.push_str("GlobalRank,TldRank,Domain,TLD,RefSubNets\n");
        }
        for name in names {
            if rng.chance(15) {
                popular.tell(rng, name);
            }
        }
        popular
    });
    popular.into()
}

impl Popular {
    /// Writes a name as rows in any order; in Umbrella's list, together with hosts below it.
    fn tell(&mut self, rng: &mut Rng, name: &DomainName) {
        // Hosts below a private suffix such as `cn.com` count for no name.
        let has_hosts = DomainName::parse(&format!("www.{name}")) != Err(NameError::PrivateSuffix);
        let is_umbrella = self.ranks.list == "umbrella" && has_hosts;
        let hosts = if is_umbrella { rng.between(1, 3) } else { 1 };
        for _ in 0..hosts {
            let rank = match rng.below(3) {
                0 => rng.between(1, 200),
                _ => rng.between(1, 1_000_000),
            } as u32;
            let best = self.ranks.of.entry(name.to_string()).or_insert(rank);
            *best = rank.min(*best);
            self.rows += 1;
            let host = match hosts {
                1 => String::new(),
                _ => rng.pick(&["www.", "_dmarc.", "a.b.", ""]).to_string(),
            };
            let _ = match self.ranks.list {
                "majestic" => writeln!(self.text, "{rank},1,{name},{},9", name.tld()),
                _ => writeln!(self.text, "{rank},{host}{name}"),
            };
        }
        if self.ranks.list == "umbrella" && rng.chance(20) {
            // None of these names can be registered.
            let other = rng.pick(&["com", "router.lan", "someone.github.io"]);
            let _ = writeln!(self.text, "{},{other}", rng.between(1, 99));
        }
    }
}

/// Returns any spelling of the same name.
pub fn spelling(rng: &mut Rng, name: &DomainName) -> String {
    let mut text = if rng.chance(30) { name.unicode().into_owned() } else { name.to_string() };
    if rng.chance(15) {
        text = some_upper_case(rng, &text);
    }
    if rng.chance(10) {
        text.push('.');
    }
    text
}

/// Changes some characters to upper case, where lower-casing returns the same character.
pub fn some_upper_case(rng: &mut Rng, text: &str) -> String {
    text.chars()
        .map(|small| {
            let mut upper = small.to_uppercase();
            let (first, more) = (upper.next(), upper.next());
            let back = first.map(|first| first.to_lowercase().eq([small]));
            match first {
                Some(first) if more.is_none() && back == Some(true) && rng.chance(60) => first,
                _ => small,
            }
        })
        .collect()
}

/// Rows that must be rejected; fewer than one in ten, because otherwise the whole list would be
/// refused.
const BAD_NAMES: [&str; 5] =
    ["www.abc.com", "-abc.com", "abc.invalidtld", "someone.github.io", "ab_c.com"];

fn write_text(rng: &mut Rng, list: &mut List) {
    let mut text = String::new();
    if let Kind::Native(columns) = list.kind {
        let header = header(columns);
        let _ = writeln!(text, "{}", header.join(","));
        for said in &list.facts {
            if rng.chance(1) {
                let _ = writeln!(text, "{}", bad_row(rng, header));
                list.bad_rows += 1;
            }
            let row: Vec<String> =
                header.iter().map(|column| cell(rng, column, said, list.observed_at)).collect();
            let _ = writeln!(text, "{}", row.join(","));
        }
    } else {
        text.push_str("# names\n\n");
        for said in &list.facts {
            if rng.chance(1) {
                let _ = writeln!(text, "{}", rng.pick(&BAD_NAMES));
                list.bad_rows += 1;
            }
            let _ = writeln!(text, "{}", spelling(rng, &said.name));
        }
    }
    list.text = text;
}

fn header(columns: Columns) -> &'static [&'static str] {
    match columns {
        Columns::All => &[
            "registered_again",
            "observed_at",
            "domain",
            "release_date",
            "status",
            "first_seen",
            "drop_date",
        ],
        Columns::NoObservedAt => {
            &["domain", "drop_date", "release_date", "status", "registered_again"]
        }
        Columns::Two => &["domain", "drop_date"],
    }
}

fn bad_row(rng: &mut Rng, header: &[&str]) -> String {
    let bad_name = rng.chance(50);
    let cells: Vec<&str> = header
        .iter()
        .map(|&column| match column {
            "domain" if bad_name => rng.pick(&BAD_NAMES),
            "domain" => "bad-date.com",
            "drop_date" if bad_name => "2026-03-01",
            "drop_date" => "2026-02-30",
            _ => "",
        })
        .collect();
    cells.join(",")
}

fn cell(rng: &mut Rng, column: &str, said: &Said, list_observed_at: i64) -> String {
    let word = |rng: &mut Rng, words: &[&str]| (*rng.pick(words)).to_owned();
    let day_or_empty = |day: Option<Day>| day.map_or_else(String::new, |day| day.to_string());
    let (date, release, registered_again) = match said.fact {
        Fact::Drop { date, release, registered_again } => (Some(date), release, registered_again),
        _ => (None, None, false),
    };
    match column {
        "domain" => spelling(rng, &said.name),
        "drop_date" => day_or_empty(date),
        "release_date" => day_or_empty(release),
        "registered_again" if registered_again => word(rng, &["true", "1", "yes"]),
        "registered_again" => word(rng, &["", "false", "0", "no"]),
        "status" => match said.fact {
            Fact::Known { registered: true } => "registered".into(),
            Fact::Known { registered: false } => word(rng, &["", "unknown", "available"]),
            // The value is checked, but has no effect if there is a drop date.
            _ => word(rng, &["", "", "redemption", "registered", "pending-delete"]),
        },
        "first_seen" => word(rng, &["", "2011-05-06", "2024-12-31"]),
        "observed_at" if said.observed_at == list_observed_at => String::new(),
        "observed_at" => timestamp(said.observed_at),
        other => panic!("no such column: {other}"),
    }
}

/// RFC 3339, to the second.
pub fn timestamp(seconds: i64) -> String {
    let (days, rest) = (seconds.div_euclid(SECONDS_PER_DAY), seconds.rem_euclid(SECONDS_PER_DAY));
    let since_1970 = i32::try_from(days).expect("a day in range");
    let date = day("1985-01-01").plus(since_1970 - 5_479);
    format!("{date}T{:02}:{:02}:{:02}Z", rest / 3_600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_those_of_the_clock() {
        assert_eq!(timestamp(at_noon("2026-02-28")), "2026-02-28T12:00:00Z");
        assert_eq!(timestamp(day("2026-03-01").start().timestamp() - 1), "2026-02-28T23:59:59Z");
    }

    #[test]
    fn spellings_mean_the_same_name() {
        let mut rng = Rng::new(7);
        for name in names(&mut rng) {
            for _ in 0..5 {
                let text = spelling(&mut rng, &name);
                assert_eq!(DomainName::parse(&text).as_ref(), Ok(&name), "{text}");
            }
        }
    }
}
