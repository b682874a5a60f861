//! Exports of known tools, as the table `presets.csv` describes them.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::columns::{NotAColumn, Role};
use crate::headers::Header;
use crate::vocab::compiled;

/// An export of a known tool.
#[derive(Debug)]
pub(crate) struct Preset {
    pub(crate) name: String,
    columns: Vec<PresetColumn>,
}

#[derive(Debug)]
struct PresetColumn {
    plain: String,
    occurrence: usize,
    /// Whether a file without this column is of another preset.
    must: bool,
    role: Option<Role>,
}

/// A row of the table.
#[derive(Deserialize)]
struct Row {
    preset: String,
    header: String,
    must: String,
    column: String,
}

static PRESETS: LazyLock<Vec<Preset>> = LazyLock::new(|| {
    let rows = compiled::table(include_str!("presets.csv"), |row: Row| {
        let (header, occurrence) = match row.header.rsplit_once('#') {
            Some((header, digit)) => (header, digit.parse().map_err(|_| NotAColumn)?),
            None => (row.header.as_str(), 1),
        };
        let plain = Header::row([header]).remove(0).plain;
        let role = Some(row.column.as_str()).filter(|column| !column.is_empty());
        let role = role.map(str::parse).transpose()?;
        Ok::<_, NotAColumn>((
            row.preset,
            PresetColumn { plain, occurrence, must: row.must == "yes", role },
        ))
    });
    let mut presets: Vec<Preset> = Vec::new();
    for (name, column) in rows.expect("a test checks the table") {
        match presets.last_mut().filter(|preset| preset.name == name) {
            Some(preset) => preset.columns.push(column),
            None => presets.push(Preset { name, columns: vec![column] }),
        }
    }
    presets
});

impl Preset {
    /// Returns the preset of a header row: of those whose required columns are all present, the one with most of
    /// them.
    pub(crate) fn of(headers: &[Header]) -> Option<&'static Preset> {
        let fits = |preset: &&Preset| preset.must().all(|column| column.find(headers).is_some());
        PRESETS.iter().filter(fits).max_by_key(|preset| preset.must().count())
    }

    fn must(&self) -> impl Iterator<Item = &PresetColumn> {
        self.columns.iter().filter(|column| column.must)
    }

    /// Returns the roles of columns, by position.
    pub(crate) fn roles(&self, headers: &[Header]) -> Vec<Option<Role>> {
        let mut roles = vec![None; headers.len()];
        for column in &self.columns {
            let (Some(at), Some(role)) = (column.find(headers), &column.role) else { continue };
            let is_taken = roles.iter().flatten().any(|taken| same(taken, role));
            if !is_taken {
                roles[at] = Some(role.clone());
            }
        }
        roles
    }
}

/// Whether two columns of a file cannot both be read.
fn same(one: &Role, other: &Role) -> bool {
    match (one, other) {
        (Role::Key(_), Role::Key(_)) | (Role::AsOf, Role::AsOf) => true,
        (Role::Fact(one), Role::Fact(other)) => one.name == other.name,
        _ => false,
    }
}

impl PresetColumn {
    fn find(&self, headers: &[Header]) -> Option<usize> {
        let is_it = |it: &Header| it.plain == self.plain && it.occurrence == self.occurrence;
        headers.iter().position(is_it)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names that mean different things in different files.
    const VAGUE: [&str; 6] =
        ["amount", "value", "date", "description", "category", "estimatedvalue"];

    #[test]
    fn every_preset_has_a_key_and_is_recognised_by_more_than_names_of_any_table() {
        assert_eq!(PRESETS.len(), 21);
        for preset in PRESETS.iter() {
            let is_key = |it: &PresetColumn| matches!(it.role, Some(Role::Key(_)));
            assert!(preset.columns.iter().any(is_key), "{}", preset.name);
            let telling = preset.must().filter(|column| !VAGUE.contains(&column.plain.as_str()));
            assert!(telling.count() > 1, "{}", preset.name);
        }
    }

    #[test]
    fn the_document_names_every_fact_and_preset() {
        let document = include_str!("../../data/docs/facts.md");
        for preset in PRESETS.iter() {
            for column in &preset.columns {
                if let Some(Role::Fact(fact)) = &column.role {
                    let name = fact.name.to_string();
                    let (_, short) = name.split_once('.').expect("two parts");
                    assert!(document.contains(&format!("`{short}`")), "{name}");
                }
            }
            assert!(document.contains(&format!("`{}`", preset.name)), "{}", preset.name);
        }
    }
}
