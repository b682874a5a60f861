//! Completion of a typed text: the best names with the typed label, then the best names of other labels
//! that begin with it, each label once. If few match, one edit of the text is forgiven.

use std::ops::Range;

use crate::columns::idn::{self, Matches};
use crate::filter::{AsOf, Filter, SearchFilter, SuggestFilter};
use crate::query::index::{Index, Layer, with_row_buffers};
use crate::vocab::budget;
use crate::vocab::dqs::Dqs;
use crate::vocab::stage::Stage;

/// Maximum number of suggested names with exactly the typed label.
const WHOLE_MAX: u32 = 2;
/// With fewer suggestions than this, one edit of the text is forgiven.
const FEW: usize = 5;
/// Least number of characters of a text with a forgiven edit.
const EDITED_CHARS_MIN: usize = 4;
/// The number of candidates grows by this factor as long as too few labels are among them.
const GROWTH: u32 = 8;
/// Maximum number of candidates.
const CANDIDATES_MAX: u32 = 4_096;
/// Characters that an edit inserts, beside those of the text.
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz0123456789-";

/// A suggested name.
pub struct Suggestion<'a> {
    pub domain: &'a str,
    pub dqs: Dqs,
    /// `None` for a name that never dropped or was registered again.
    pub stage: Option<Stage>,
}

/// Suggested names: ordinals among the names of all layers, and their labels if each may occur once.
#[derive(Default)]
struct Found {
    ordinals: Vec<u32>,
    labels: Vec<Box<str>>,
}

impl Index {
    /// Calls `visit` with the suggestions for a typed text, best first.
    pub fn suggest(
        &self,
        asked: &SuggestFilter,
        as_of: AsOf,
        mut visit: impl FnMut(&Suggestion<'_>),
    ) {
        let found = self.completions(asked, as_of);
        with_row_buffers(|buffers| {
            for (layer, ordinals) in self.names_by_layer(&found.ordinals) {
                layer.prefetch(&ordinals, &mut buffers.docs);
            }
            for &ordinal in &found.ordinals {
                let (layer, ordinal) = self.name_at(ordinal);
                layer.names.read(ordinal, &mut buffers.name);
                let row = layer.row(ordinal, buffers.name.tld());
                let listed = row.drop.filter(|drop| !drop.registered_again);
                visit(&Suggestion {
                    domain: buffers.name.as_str(),
                    dqs: row.dqs,
                    stage: listed.map(|drop| layer.stage(row.tld, &drop, as_of)),
                });
            }
        });
    }

    /// Estimates the microseconds of [`Index::suggest`], to decide whether it may run on an async thread.
    pub fn suggest_cost_us(&self, asked: &SuggestFilter, as_of: AsOf) -> u32 {
        asked.view.map_or(0, |_| self.day_cost_us(as_of))
    }

    fn completions(&self, asked: &SuggestFilter, as_of: AsOf) -> Found {
        let text = asked.prefix.as_str();
        // After a dot, suffixes complete the text.
        let once = !asked.all_suffixes && !text.contains('.');
        let mut found = Found::default();
        let matches = |layer: &Layer| layer.matches(text);
        let matches: Vec<Matches> = self.layers().iter().map(matches).collect();
        let whole: Vec<_> = matches.iter().map(|it| vec![it.clone().whole_matches()]).collect();
        let most = if once { WHOLE_MAX.min(asked.limit) } else { asked.limit };
        self.take(asked, as_of, &whole, (most, false), &mut found);
        let parts: Vec<_> = matches.into_iter().map(Matches::other_matches).collect();
        self.take(asked, as_of, &parts, (asked.limit, once), &mut found);
        let few = FEW.min(asked.limit as usize);
        if once && found.ordinals.len() < few && text.chars().count() >= EDITED_CHARS_MIN {
            let edited = |layer: &Layer| layer.matches_of_edits(text);
            let edited: Vec<_> = self.layers().iter().map(edited).collect();
            self.take(asked, as_of, &edited, (asked.limit, once), &mut found);
        }
        found
    }

    /// Adds the best of the matches in `lists`, which has those of each layer, up to `limit` names in all. With
    /// `once`, labels that were found are skipped.
    fn take(
        &self,
        asked: &SuggestFilter,
        as_of: AsOf,
        lists: &[Vec<Matches>],
        (limit, once): (u32, bool),
        found: &mut Found,
    ) {
        let is_empty = |matches: &Matches| {
            matches.names.is_empty() && matches.aliases.is_empty() && matches.others.is_empty()
        };
        if lists.iter().flatten().all(is_empty) {
            return;
        }
        let day = asked.view.map(|_| self.day(as_of));
        let before = found.ordinals.len();
        let mut candidates = limit;
        loop {
            let filter = SearchFilter {
                prefix: None,
                common: Filter::clone(&asked.common),
                view: asked.view,
                limit: candidates,
                offset: 0,
            };
            let best = self.best_of_layers(&filter, |layer, filter, at| {
                let day = day.as_ref().map(|day| &day.layers[at]);
                layer.best_matches(&lists[at], filter, day, once)
            });
            found.ordinals.truncate(before);
            found.labels.truncate(before);
            let ordinals: Vec<u32> = best.hits.iter().map(|hit| hit.ordinal).collect();
            self.push(&ordinals, (limit as usize, once), found);
            let all = ordinals.len() < candidates as usize;
            if found.ordinals.len() == limit as usize || all || candidates >= CANDIDATES_MAX {
                return;
            }
            if budget::spent() {
                return;
            }
            candidates = candidates.saturating_mul(GROWTH).min(CANDIDATES_MAX);
        }
    }

    /// Adds names by ordinal, up to `limit` names in all. With `once`, a label that was found is skipped.
    fn push(&self, ordinals: &[u32], (limit, once): (usize, bool), found: &mut Found) {
        with_row_buffers(|buffers| {
            for &shared in ordinals.iter() {
                if found.ordinals.len() >= limit {
                    return;
                }
                let (layer, ordinal) = self.name_at(shared);
                layer.names.read(ordinal, &mut buffers.name);
                let label = buffers.name.label();
                let is_known = match once {
                    true => found.labels.iter().any(|known| &**known == label),
                    false => found.ordinals.contains(&shared),
                };
                if !is_known {
                    found.ordinals.push(shared);
                    found.labels.push(label.into());
                }
            }
        });
    }
}

impl Layer {
    fn matches(&self, text: &str) -> Matches {
        idn::matches(&self.names, &self.idn, text)
    }

    /// Returns the names that begin with an edit of `text`: one character more, less or another one, or two
    /// neighbours exchanged.
    fn matches_of_edits(&self, text: &str) -> Vec<Matches> {
        let chars: Vec<char> = text.chars().collect();
        let is_found = |text: &str| {
            let found = self.matches(text);
            !found.names.is_empty() || !found.aliases.is_empty()
        };
        // No name begins with more of the text than this, so an edit behind it does not help.
        let mut known = chars.len();
        while known > 0 && !is_found(&chars[..known].iter().collect::<String>()) {
            known -= 1;
        }
        let mut lists = Vec::new();
        for edited in edits(&chars, known) {
            let mut found = self.matches(&edited);
            found.others.clear();
            if !found.names.is_empty() || !found.aliases.is_empty() {
                lists.push(found);
            }
        }
        disjoint(lists)
    }
}

/// Returns the texts that differ from `chars` in one edit at one of the first `end` characters or behind
/// them.
fn edits(chars: &[char], end: usize) -> Vec<String> {
    let mut letters: Vec<char> = LETTERS.chars().collect();
    letters.extend(chars.iter().filter(|char| !char.is_ascii()));
    let mut texts = Vec::new();
    let text = |before: usize, new: &[char], after: usize| -> String {
        [&chars[..before], new, &chars[after..]].concat().into_iter().collect()
    };
    for at in 0..=end {
        texts.extend(letters.iter().map(|&letter| text(at, &[letter], at)));
        if at == chars.len() {
            continue;
        }
        texts.push(text(at, &[], at + 1));
        texts.extend(letters.iter().map(|&letter| text(at, &[letter], at + 1)));
        if let Some(&next) = chars.get(at + 1) {
            texts.push(text(at, &[next, chars[at]], at + 2));
        }
    }
    texts
}

/// Merges lists that overlap, so that no name is in two of them.
fn disjoint(lists: Vec<Matches>) -> Vec<Matches> {
    let merged = |mut ranges: Vec<Range<u32>>| {
        ranges.retain(|range| !range.is_empty());
        ranges.sort_unstable_by_key(|range| range.start);
        let mut apart: Vec<Range<u32>> = Vec::new();
        for range in ranges {
            match apart.last_mut() {
                Some(last) if range.start < last.end => last.end = last.end.max(range.end),
                _ => apart.push(range),
            }
        }
        apart
    };
    let names = merged(lists.iter().map(|it| it.names.clone()).collect());
    let aliases = merged(lists.iter().map(|it| it.aliases.clone()).collect());
    let of_names = names.into_iter().map(|names| Matches { names, ..Matches::default() });
    let of_aliases = aliases.into_iter().map(|aliases| Matches { aliases, ..Matches::default() });
    of_names.chain(of_aliases).collect()
}
