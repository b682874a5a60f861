//! The names of one label under all suffixes, and labels that differ in a hyphen or a plural.

use std::cmp::Reverse;
use std::ops::ControlFlow;

use serde::Serialize;
use utoipa::ToSchema;

use crate::columns::names::VisitedName;
use crate::filter::AsOf;
use crate::query::index::Index;
use crate::query::rows::Status;
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::name::{DomainName, to_unicode};
use crate::vocab::named::named_enum;
use crate::vocab::release_time::Certainty;
use crate::vocab::stage::Stage;

/// A name of a label.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = FamilyName)]
pub struct FamilyName<'a> {
    pub domain: String,
    /// Its Unicode form; equal to the name unless it is an IDN.
    pub unicode: String,
    pub tld: &'a str,
    #[schema(value_type = u8, minimum = 0, maximum = 100)]
    pub dqs: Dqs,
    pub current_status: Status,
    /// `null` for a name that never dropped or was registered again.
    #[schema(required)]
    pub stage: Option<Stage>,
    /// Date of the latest drop.
    #[schema(value_type = Option<String>, format = Date, required)]
    pub drop_date: Option<Day>,
    /// Effective release of that drop.
    #[schema(value_type = Option<String>, format = Date, required)]
    pub release_date: Option<Day>,
    /// Start of the release on that day; `null` unless the registry releases names of the suffix at a known
    /// hour.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub release_at: Option<String>,
    /// How sure the hour is; `null` without a release.
    #[schema(required)]
    pub release_certainty: Option<Certainty>,
    /// Minutes from `releaseAt`, or from the start of the day, within which the name is released.
    #[schema(required)]
    pub release_window_minutes: Option<u16>,
}

named_enum! {
    /// How a variant differs from its label.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
    #[serde(rename_all = "lowercase")]
    #[schema(as = LabelVariantKind)]
    pub enum VariantKind {
        Hyphen = "hyphen",
        Plural = "plural",
    }
}

impl Index {
    /// Returns the names of a label (in A-label form), highest score first, then by suffix.
    pub fn family(&self, label: &str, as_of: AsOf) -> Vec<FamilyName<'_>> {
        let mut names = Vec::new();
        let layer = self.layer_of(label);
        let ordinals = layer.names.label_range(label);
        layer.names.for_each(
            [ordinals],
            None,
            |_| true,
            |VisitedName { ordinal, tld, .. }| {
                let row = layer.row(ordinal, tld);
                let listed = row.drop.filter(|drop| !drop.registered_again);
                let suffix = layer.tlds.name(tld);
                let release = row.drop.map(|drop| layer.tlds.release_rule(tld).on(drop.release));
                let domain = format!("{label}.{suffix}");
                names.push(FamilyName {
                    unicode: to_unicode(&domain).into_owned(),
                    domain,
                    tld: suffix,
                    dqs: row.dqs,
                    current_status: layer.status(&row, as_of),
                    stage: listed.map(|drop| layer.stage(tld, &drop, as_of)),
                    drop_date: row.drop.map(|drop| drop.date),
                    release_date: row.drop.map(|drop| drop.release.day),
                    release_at: release.and_then(|it| it.at).map(|at| at.to_string()),
                    release_certainty: release.map(|it| it.certainty),
                    release_window_minutes: release.map(|it| it.window_minutes),
                });
                ControlFlow::Continue(ordinal + 1)
            },
        );
        names.sort_by_key(|name| (Reverse(name.dqs), name.tld));
        names
    }

    /// Returns the variants of a label that occur in the index.
    pub fn label_variants(&self, label: &str) -> Vec<(VariantKind, String)> {
        let mut variants = variants(&to_unicode(label));
        variants.retain_mut(|(_, variant)| {
            let Ok(name) = DomainName::parse(&format!("{variant}.com")) else { return false };
            name.label().clone_into(variant);
            !self.layer_of(variant).names.label_range(variant).is_empty()
        });
        variants
    }
}

/// Returns the label without its hyphens, or with one more hyphen; then its plurals and singulars.
fn variants(label: &str) -> Vec<(VariantKind, String)> {
    let mut variants = Vec::new();
    if label.contains('-') {
        variants.push((VariantKind::Hyphen, label.replace('-', "")));
    } else {
        for (at, _) in label.char_indices().skip(1) {
            variants.push((VariantKind::Hyphen, format!("{}-{}", &label[..at], &label[at..])));
        }
    }
    let mut plural = |variant: String| variants.push((VariantKind::Plural, variant));
    if let Some(stem) = label.strip_suffix("ies") {
        plural(format!("{stem}y"));
    }
    if let Some(stem) = label.strip_suffix("es") {
        plural(stem.to_owned());
    }
    if let Some(stem) = label.strip_suffix('s') {
        plural(stem.to_owned());
    } else {
        plural(format!("{label}s"));
    }
    plural(format!("{label}es"));
    if let Some(stem) = label.strip_suffix('y') {
        plural(format!("{stem}ies"));
    }
    variants.retain(|(_, variant)| !variant.is_empty());
    variants
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_differ_in_a_hyphen_or_a_plural() {
        let of = |label: &str, wanted: VariantKind| -> Vec<String> {
            let variants = variants(label).into_iter().filter(|(kind, _)| *kind == wanted);
            variants.map(|(_, variant)| variant).collect()
        };
        assert_eq!(of("abc", VariantKind::Hyphen), ["a-bc", "ab-c"]);
        assert_eq!(of("my-shop", VariantKind::Hyphen), ["myshop"]);
        assert_eq!(of("ü2", VariantKind::Hyphen), ["ü-2"]);
        assert_eq!(of("shop", VariantKind::Plural), ["shops", "shopes"]);
        assert_eq!(of("cities", VariantKind::Plural), ["city", "citi", "citie", "citieses"]);
        assert_eq!(of("city", VariantKind::Plural), ["citys", "cityes", "cities"]);
        assert_eq!(of("s", VariantKind::Plural), ["ses"]);
    }
}
