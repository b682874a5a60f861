//! Unicode forms of internationalised names, and the names that a prefix matches in either form.
//!
//! Input: names of a table whose Unicode form differs from their A-label form. Output: for a prefix
//! of such a form, the ordinals of the names. There are two lists. The first list has names whose
//! label is an A-label, with the same tables as for all names, so that a search finds the best of
//! them. The second list has names with a plain label under an A-label suffix; a prefix without a
//! dot already finds them by their A-label form. The forms themselves are not stored.

use std::ops::Range;

use fst::raw::{Builder, Fst};
use rayon::prelude::*;

use crate::columns::block_index::{OwnedFst, place};
use crate::columns::by_tld::ByTld;
use crate::columns::names::Names;
use crate::columns::part::{Part, Section};
use crate::columns::rank_table::RankTable;
use crate::columns::table::Table;
use crate::error::{BuildError, GenerationError};
use crate::storage::draft::Draft;
use crate::storage::files::Files;
use crate::vocab::name::{A_LABEL, is_a_label, to_unicode};

/// File name prefixes of the two lists. The name `aliases` is part of the format.
const LABELS: &str = "aliases/labels";
const SUFFIXES: &str = "aliases/suffixes";
/// Columns of the first list.
const KEYS: &str = "aliases/labels.keys";
const TLDS: &str = "aliases/labels.tlds";

/// Unicode forms that differ from the A-label form, in byte order of the form.
pub struct IdnNames {
    /// Names whose label is an A-label.
    labels: Forms,
    /// Other names.
    suffixes: Forms,
    /// Rank keys of the first list, by place.
    ranks: RankTable,
    by_tld: ByTld,
}

/// The orders of the first list of [`IdnNames`]: names with an A-label, by Unicode form and by TLD.
#[derive(Clone, Copy)]
pub struct IdnOrders<'a> {
    /// Ordinals of the names by place.
    pub ordinals: &'a [u32],
    pub ranks: &'a RankTable,
    /// Rows are places.
    pub by_tld: &'a ByTld,
}

/// The distinct names that a prefix matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matches {
    /// Ordinals of the names that start with the prefix.
    pub names: Range<u32>,
    /// The range within `names` of names that equal the prefix or whose label does.
    pub whole: Range<u32>,
    /// Places in [`IdnNames`] of other names, whose Unicode form starts with the prefix.
    pub aliases: Range<u32>,
    /// The range within `aliases` of names whose label in Unicode is the prefix.
    pub whole_aliases: Range<u32>,
    /// Ordinals of names in neither range, each with true if the Unicode form of the whole name or
    /// of the label is the prefix.
    pub others: Vec<(u32, bool)>,
}

/// Finds the names that `prefix`, normalised like [`dropdex_query::text::NamePrefix`], matches by
/// either form.
pub fn matches(texts: &Names, aliases: &IdnNames, prefix: &str) -> Matches {
    let names = if prefix.is_ascii() { texts.range(prefix.as_bytes()) } else { 0..0 };
    let none = names.start..names.start;
    if prefix.contains('.') {
        let whole = texts.find(prefix).map_or(none, |ordinal| ordinal..ordinal + 1);
        let others = aliases.outside(&names, prefix);
        return Matches { names, whole, others, ..Matches::default() };
    }
    let whole = if names.is_empty() { none } else { texts.label_range_in(prefix, &names) };
    let mut found = Matches { names, whole, ..Matches::default() };
    if A_LABEL.starts_with(prefix) {
        // The A-label forms of all names in the first list, and of the matches in the second, start
        // with it.
    } else if prefix.starts_with(A_LABEL) {
        // No valid Unicode form starts with `xn--`; if one did, its name could already be among
        // `names`.
        found.others = aliases.outside(&found.names, prefix);
    } else {
        // The names of the first list start with `xn--`, so none of them is among `names`.
        found.aliases = aliases.labels.range(prefix);
        if !found.aliases.is_empty() {
            found.whole_aliases = aliases.labels.range(&format!("{prefix}."));
        }
    }
    found
}

impl Matches {
    /// Returns the matches that equal the prefix, or whose label does.
    pub fn whole_matches(self) -> Matches {
        let (names, aliases) = (self.whole, self.whole_aliases);
        let others = self.others.into_iter().filter(|(_, is_whole)| *is_whole).collect();
        Matches { names, aliases, others, ..Matches::default() }
    }

    /// Returns the other matches, in two lists. Names before the whole matches continue their label with a
    /// character that sorts before the dot.
    pub fn other_matches(self) -> Vec<Matches> {
        let Matches { names, whole, aliases, whole_aliases, others } = self;
        let in_order = |whole: Range<u32>, all: &Range<u32>| match whole.is_empty() {
            true => all.start..all.start,
            false => whole,
        };
        let (whole, whole_aliases) = (in_order(whole, &names), in_order(whole_aliases, &aliases));
        let beside = |ordinal: &u32| !names.contains(ordinal);
        let others = others.into_iter().filter(|(at, is_whole)| !is_whole && beside(at)).collect();
        vec![
            Matches {
                names: names.start..whole.start,
                aliases: aliases.start..whole_aliases.start,
                others,
                ..Matches::default()
            },
            Matches {
                names: whole.end..names.end,
                aliases: whole_aliases.end..aliases.end,
                ..Matches::default()
            },
        ]
    }
}

impl IdnNames {
    /// Writes the Unicode forms of the names of `table`.
    ///
    /// # Errors
    /// A write fails.
    pub fn write(table: &Table, draft: &Draft) -> Result<(), BuildError> {
        let idn_tlds: Vec<bool> =
            table.tlds.names().iter().map(|tld| tld.contains(A_LABEL)).collect();
        let mut found = Vec::new();
        let aliases = |part: &Part| aliases_of(part, &idn_tlds);
        table.parts.for_each(&[Section::Names, Section::Keys], aliases, |_, aliases| {
            found.extend(aliases);
            Ok(())
        })?;
        found.par_sort_unstable();
        let (labels, suffixes): (Vec<Alias>, Vec<Alias>) =
            found.into_iter().partition(|alias| alias.label);
        let column = |column: fn(&Alias) -> u16| labels.iter().map(column).collect::<Vec<u16>>();
        draft.put(KEYS, &column(|alias| alias.key))?;
        draft.put(TLDS, &column(|alias| alias.tld))?;
        draft.both(
            || Forms::write(&labels, LABELS, draft),
            || Forms::write(&suffixes, SUFFIXES, draft),
        )
    }

    /// Opens the files that [`IdnNames::write`] wrote for a generation of `names` names under
    /// `tlds` TLDs.
    ///
    /// # Errors
    /// A file is missing or damaged, or the files do not match.
    pub fn open(files: &Files, names: u32, tlds: usize) -> Result<IdnNames, GenerationError> {
        let labels = Forms::open(files, LABELS, names)?;
        let suffixes = Forms::open(files, SUFFIXES, names)?;
        let (keys, of_tlds): (Vec<u16>, Vec<u16>) = (files.take(KEYS)?, files.take(TLDS)?);
        files.check(keys.len() == labels.ordinals.len(), KEYS)?;
        let fits = of_tlds.iter().all(|&tld| usize::from(tld) < tlds);
        files.check(of_tlds.len() == keys.len() && fits, TLDS)?;
        let by_tld = ByTld::new(tlds, &of_tlds, &keys);
        Ok(IdnNames { labels, suffixes, ranks: RankTable::new(keys), by_tld })
    }

    /// Returns the orders of the first list.
    pub fn orders(&self) -> IdnOrders<'_> {
        let IdnNames { labels, ranks, by_tld, .. } = self;
        IdnOrders { ordinals: &labels.ordinals, ranks, by_tld }
    }

    /// Returns the names outside `names` that `prefix` matches by their Unicode form, each with
    /// true if it equals the whole form or the label. A prefix with a dot matches only few names,
    /// because they all have the same label.
    fn outside(&self, names: &Range<u32>, prefix: &str) -> Vec<(u32, bool)> {
        let mut found = Vec::new();
        for forms in [&self.labels, &self.suffixes] {
            let whole = forms.whole(prefix);
            let matching = forms.range(prefix);
            found.extend(
                matching
                    .map(|place| (forms.ordinals[place as usize], whole.contains(&place)))
                    .filter(|(ordinal, _)| !names.contains(ordinal)),
            );
        }
        found
    }
}

/// Names sorted by Unicode form.
struct Forms {
    /// Maps a form to the place of its first name.
    fst: OwnedFst,
    /// Ordinals by place.
    ordinals: Vec<u32>,
}

impl Forms {
    fn write(aliases: &[Alias], name: &str, draft: &Draft) -> Result<(), BuildError> {
        let mut builder = Builder::memory();
        let mut before = None;
        for (place, alias) in (0..).zip(aliases) {
            // Valid names have distinct forms; duplicates of invalid ones must not fail the build.
            if before != Some(&alias.form) {
                builder.insert(&alias.form, place)?;
            }
            before = Some(&alias.form);
        }
        draft.put(&format!("{name}.fst"), &builder.into_inner()?)?;
        let ordinals: Vec<u32> = aliases.iter().map(|alias| alias.ordinal).collect();
        draft.put(&format!("{name}.ordinals"), &ordinals)
    }

    fn open(files: &Files, name: &str, names: u32) -> Result<Forms, GenerationError> {
        let (fst_file, ordinals_file) = (format!("{name}.fst"), format!("{name}.ordinals"));
        let fst =
            Fst::new(files.take(&fst_file)?).map_err(|err| files.malformed(&fst_file, err))?;
        let ordinals: Vec<u32> = files.take(&ordinals_file)?;
        let fits = fst.len() <= ordinals.len() && ordinals.iter().all(|&ordinal| ordinal < names);
        files.check(fits, &ordinals_file)?;
        Ok(Forms { fst, ordinals })
    }

    /// Returns the places of the forms that start with `prefix`.
    fn range(&self, prefix: &str) -> Range<u32> {
        let found = place(&self.fst, self.ordinals.len() as u32, prefix.as_bytes());
        found.below..found.through
    }

    /// Returns the places of the forms that equal `prefix`, or whose label equals it if it has no dot.
    fn whole(&self, prefix: &str) -> Range<u32> {
        let end = self.ordinals.len() as u32;
        let found = place(&self.fst, end, prefix.as_bytes());
        if !prefix.contains('.') {
            return self.range(&format!("{prefix}."));
        }
        // NUL sorts before every continuation of a form.
        let after = place(&self.fst, end, format!("{prefix}\0").as_bytes());
        found.below..if found.exact { after.below } else { found.below }
    }
}

/// A name with its Unicode form, sorted by form, then by name.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Alias {
    form: String,
    ordinal: u32,
    key: u16,
    tld: u16,
    /// Whether the label is an A-label.
    label: bool,
}

/// Returns the Unicode forms of a part; `idn_tlds` is true, by TLD number, for TLDs that contain an
/// A-label.
fn aliases_of(part: &Part, idn_tlds: &[bool]) -> Vec<Alias> {
    let may_have_one = |&at: &usize| {
        idn_tlds[usize::from(part.tld[at])] || part.label(at).starts_with(A_LABEL.as_bytes())
    };
    let alias = |at: usize| {
        let name = std::str::from_utf8(part.name(at)).ok()?;
        Some(Alias {
            form: alias_of(name)?,
            ordinal: part.first + at as u32,
            key: part.key[at],
            tld: part.tld[at],
            label: is_a_label(name),
        })
    };
    (0..part.len()).filter(may_have_one).filter_map(alias).collect()
}

/// Returns the Unicode form of a name if it differs.
pub fn alias_of(name: &str) -> Option<String> {
    if !name.contains(A_LABEL) {
        return None;
    }
    let unicode = to_unicode(name);
    (unicode != name).then(|| unicode.into_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::columns::names::tests::{Random, names, reopened, table, texts};
    use crate::vocab::name::DomainName;

    /// Returns the A-label form of a label.
    fn a_label(label: &str) -> String {
        let name = DomainName::parse(&format!("{label}.com")).expect("a name");
        name.label().to_owned()
    }

    /// Finds matches by a scan of all names. Returns the ordinals of the matches, and whether the
    /// prefix is the whole name or label.
    fn expected(names: &[String], prefix: &str) -> BTreeMap<u32, bool> {
        let whole = |text: &str| {
            text == prefix || (!prefix.contains('.') && text.split('.').next() == Some(prefix))
        };
        let judge = |(ordinal, name): (u32, &String)| {
            let form = alias_of(name).unwrap_or_else(|| name.clone());
            let found = name.starts_with(prefix) || form.starts_with(prefix);
            found.then(|| (ordinal, whole(name) || whole(&form)))
        };
        (0..).zip(names).filter_map(judge).collect()
    }

    /// Collects [`matches`]; panics if a name is found twice.
    fn found(texts: &Names, aliases: &IdnNames, prefix: &str) -> BTreeMap<u32, bool> {
        let matches = matches(texts, aliases, prefix);
        let mut all = BTreeMap::new();
        let mut add = |ordinal, whole| {
            assert_eq!(all.insert(ordinal, whole), None, "{prefix} finds {ordinal} twice");
        };
        for ordinal in matches.names.clone() {
            add(ordinal, matches.whole.contains(&ordinal));
        }
        for place in matches.aliases.clone() {
            let ordinal = aliases.orders().ordinals[place as usize];
            add(ordinal, matches.whole_aliases.contains(&place));
        }
        for (ordinal, whole) in matches.others {
            add(ordinal, whole);
        }
        let within = |inner: &Range<u32>, outer: &Range<u32>| {
            inner.is_empty() || (outer.start <= inner.start && inner.end <= outer.end)
        };
        assert!(within(&matches.whole, &matches.names), "{prefix}");
        assert!(within(&matches.whole_aliases, &matches.aliases), "{prefix}");
        all
    }

    fn check(table: &Table, prefixes: &[&str]) {
        let texts = texts(table);
        let open = |files: &Files| IdnNames::open(files, table.len(), table.tlds.len());
        let aliases = reopened(|draft| IdnNames::write(table, draft), open);
        let names = names(table);
        for prefix in prefixes {
            assert_eq!(found(&texts, &aliases, prefix), expected(&names, prefix), "{prefix}");
        }
        let forms: Vec<String> = names.iter().filter_map(|name| alias_of(name)).collect();
        for form in forms.iter().chain(&names) {
            for (end, _) in form.char_indices().skip(1).chain([(form.len(), ' ')]) {
                let prefix = &form[..end];
                assert_eq!(found(&texts, &aliases, prefix), expected(&names, prefix), "{prefix}");
            }
        }
        let IdnOrders { ordinals, ranks, by_tld } = aliases.orders();
        for ((place, &ordinal), &key) in (0..).zip(ordinals).zip(ranks.keys()) {
            let name = &names[ordinal as usize];
            let tld = table.tlds.find(name.split_once('.').expect("a TLD").1).expect("known");
            assert_eq!(by_tld.places(tld, place..place + 1).len(), 1, "{name}");
            let part =
                table.parts.iter().filter(|part| part.first <= ordinal).last().expect("a part");
            assert_eq!(key, part.key[(ordinal - part.first) as usize]);
        }
    }

    #[test]
    fn a_prefix_finds_every_name_once_by_either_form() {
        let mut random = Random(11);
        let tlds = ["com", "de", "xn--p1ai", "co.xn--p1ai", "x"].map(str::to_owned);
        let plain = ["x", "xn", "xnn", "xo", "a", "example", "mu", "munchen", "zz", "xn-a", "-"];
        let idn = ["münchen", "münch", "mün", "xñ", "xn-ü", "é", "пример", "прим", "приме", "ü1"];
        let labels: Vec<String> =
            plain.iter().map(|&label| label.to_owned()).chain(idn.map(a_label)).collect();
        let prefixes = [
            "x",
            "xn",
            "xn-",
            "xn--",
            "xn--m",
            "xn--mnchen-3ya",
            "xn--mnchen-3ya.",
            "m",
            "mü",
            "münch",
            "münchen.",
            "münchen.d",
            "münchen.de",
            "example.",
            "example.р",
            "example.рф",
            "example.x",
            "example.xn--p1ai",
            "co",
            "пример.рф",
            "пример.со.рф",
            "п",
            "рф",
            ".",
            ".рф",
            "xn-ü",
            "xñ.",
            "zzz",
            "\u{10ffff}",
        ];
        for _ in 0..8 {
            let chosen: BTreeSet<(String, usize)> = (0..random.below(90))
                .map(|_| (labels[random.below(labels.len())].clone(), random.below(tlds.len())))
                .collect();
            check(&table(&chosen, &tlds, &mut random), &prefixes);
        }
    }

    #[test]
    fn a_name_with_one_form_has_no_alias() {
        for name in ["example.com", "axn--b.com", "xn--a.com", "xn--zz--.com"] {
            assert_eq!(alias_of(name), None, "{name}");
        }
        assert_eq!(alias_of("xn--mnchen-3ya.de").as_deref(), Some("münchen.de"));
        assert_eq!(alias_of("a.xn--p1ai").as_deref(), Some("a.рф"));
    }

    #[test]
    fn two_names_of_one_form_are_both_found() {
        let of =
            |form: &str, ordinal| Alias { form: form.into(), ordinal, key: 0, tld: 0, label: true };
        let list = [of("ä.de", 0), of("ö.de", 1), of("ö.de", 2), of("ö.dev", 3), of("ü.de", 4)];
        let forms = reopened(
            |draft| Forms::write(&list, LABELS, draft),
            |files| Forms::open(files, LABELS, 5),
        );
        assert_eq!(forms.range("ö"), 1..4);
        assert_eq!(forms.whole("ö"), 1..4);
        assert_eq!((forms.range("ö.de"), forms.whole("ö.de")), (1..4, 1..3));
        assert_eq!((forms.whole("ö.dev"), forms.whole("ü.de")), (3..4, 4..5));
        assert!(forms.whole("ö.d").is_empty());
    }
}
