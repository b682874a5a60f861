//! The rows of the random sample (`data/docs/outcomes.md`).

use std::collections::BTreeMap;

use super::{OutcomeJson, OutcomeQuery, WithinJson};
use crate::index::query::outcome_tables::{NAMES_MIN, ScoreBand, percent};
use crate::vocab::name::to_unicode;
use crate::vocab::outcome::Horizon;
use crate::vocab::sample::{HORIZONS, SampleCount, SampleTable};

/// Counts in the order of [`HORIZONS`].
type Counts = [SampleCount; HORIZONS.len()];

impl OutcomeQuery {
    /// Returns the rows that were asked for: all of a suffix, or one of each suffix.
    pub(super) fn sample_rows<'a>(
        &self,
        tables: &'a BTreeMap<String, SampleTable>,
    ) -> Vec<OutcomeJson<'a>> {
        let mut rows = Vec::new();
        for (suffix, table) in tables {
            if self.tld.as_ref().is_some_and(|tld| tld != suffix) {
                continue;
            }
            let row = |band, counts: Counts| self.sample_row((suffix, table), band, counts);
            let mut bands = ScoreBand::all().zip(table.bands);
            let all = || row(None, table.all());
            if self.tld.is_some() && self.band.is_none() && self.kind.is_none() {
                rows.extend(all());
                rows.extend(bands.filter_map(|(band, counts)| row(Some(band), counts)));
            } else {
                let asked = bands.find(|(band, _)| Some(*band) == self.band);
                rows.extend(asked.and_then(|(band, of)| row(Some(band), of)).or_else(all));
            }
        }
        rows
    }

    /// Returns the row of a group; `None` with too few names.
    fn sample_row<'a>(
        &self,
        (tld, table): (&'a str, &SampleTable),
        band: Option<ScoreBand>,
        counts: Counts,
    ) -> Option<OutcomeJson<'a>> {
        let wanted = HORIZONS.into_iter().zip(counts);
        let wanted = wanted.filter(|(horizon, _)| self.horizon.is_none_or(|of| of == *horizon));
        let within: BTreeMap<i32, WithinJson> = wanted
            .clone()
            .filter_map(|(horizon, count)| Some((horizon.days(), within(count)?)))
            .collect();
        let first = wanted.clone().next().map(|(_, count)| count)?;
        if first.names < NAMES_MIN {
            return None;
        }
        let coverage = 1.0 - first.unanswered as f64 / first.names as f64;
        let fallback = match (self.kind, self.band) {
            (_, Some(_)) if band.is_none() => Some("band"),
            (Some(_), _) => Some("kind"),
            _ => None,
        };
        Some(OutcomeJson {
            tld,
            label: "sample",
            band: band.map(ScoreBand::as_str),
            kind: None,
            words: None,
            length: None,
            n: first.names,
            within,
            coverage: (coverage * 10_000.0).round() / 10_000.0,
            from: Some(table.from),
            to: Some(table.to),
            fallback,
            text: sentence(tld, band, wanted),
            history: None,
        })
    }
}

fn within(count: SampleCount) -> Option<WithinJson> {
    let of = count.share()?;
    Some(WithinJson {
        n: count.names,
        count: count.taken,
        share: of.share.share,
        low: of.share.low,
        high: of.share.high,
        unanswered: count.unanswered,
        is_range: of.is_range,
        auc: None,
    })
}

/// Describes a row: *Of 1,710 .de names with a score of 40-49, drawn at random, 24 % were registered again within a
/// day (21-27 %).*
fn sentence(
    tld: &str,
    band: Option<ScoreBand>,
    mut counts: impl Iterator<Item = (Horizon, SampleCount)>,
) -> Option<String> {
    let (horizon, count) = counts.next()?;
    let of = count.share()?;
    let band = band.map(|band| format!(" with a score of {}", band.as_str())).unwrap_or_default();
    let (low, high) = (percent(of.share.low), percent(of.share.high));
    let share = match of.is_range {
        true => format!("{low}-{high} % were registered again {}", horizon.words()),
        false => format!(
            "{} % were registered again {} ({low}-{high} %)",
            percent(of.share.share),
            horizon.words()
        ),
    };
    Some(format!("Of {} .{} names{band}, drawn at random, {share}.", count.names, to_unicode(tld)))
}
