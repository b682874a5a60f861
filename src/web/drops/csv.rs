//! CSV files of the list: name, score and the columns on the screen, then dates, and what the owner noted.

use std::io::Write;
use std::sync::Arc;

use crate::accounts::UserData;
use crate::components::seen_word;
use crate::edge::csv::{cell, push_quoted_cell, user_cell};
use crate::facts_file::Value;
use crate::index::query::rows::DropRow;
use crate::service::checks::{Checked, Checks};
use crate::service::fact_book::ShownFacts;
use crate::vocab::columns::{Column, Columns};
use crate::vocab::ids::AccountId;
use crate::vocab::name::DomainName;
use crate::vocab::tag::Tag;

/// Columns that every file has.
const ALWAYS: [&str; 3] = ["name", "unicode", "dqs"];
/// Days and stage, which follow the columns of the screen unless they are among them.
const DATES: [Column; 3] = [Column::Dropped, Column::Due, Column::State];
/// Columns with notes of the watchlist, which a pasted file may have too.
const NOTES: [&str; 4] = ["tags", "max_bid_usd", "venue", "note"];

/// Returns the column's name in files, which is that of the member of a row in the API; the API does
/// not know what registries said.
pub fn member(column: Column) -> Option<&'static str> {
    Some(match column {
        Column::Why => "explanation",
        Column::Length => "length",
        Column::Tlds => "otherTlds",
        Column::Words => "words",
        Column::Language => "language",
        Column::Kind => "kind",
        Column::Drops => "dropCount",
        Column::Popularity => "popularityRank",
        Column::SuffixRank => "suffixRank",
        Column::ExpectedTaken => "expectedTaken",
        Column::Dropped => "dropDate",
        Column::Listed => "listedAt",
        Column::Days => "daysToRelease",
        Column::Due => "releaseDate",
        Column::State => "stage",
        Column::Checked => return None,
    })
}

/// Returns the columns of a file: those of the screen, and the dates that it lacks.
fn filed(columns: &Columns) -> Vec<Column> {
    let shown = columns.as_slice();
    let dates = DATES.into_iter().filter(|date| !shown.contains(date));
    shown.iter().copied().chain(dates).collect()
}

/// Returns the parameter `columns` of the API for the columns of a screen.
pub fn members(columns: &Columns) -> String {
    let shown = filed(columns).into_iter().filter_map(member);
    ALWAYS.into_iter().chain(shown).collect::<Vec<_>>().join(",")
}

/// A file of drops with the notes of an account.
pub struct NotedFile {
    columns: Vec<Column>,
    facts: ShownFacts,
    owned: Arc<UserData>,
    checks: Option<(Arc<Checks>, AccountId)>,
}

impl NotedFile {
    /// `facts` are those that may be exported.
    pub fn new(
        columns: &Columns,
        facts: ShownFacts,
        owned: Arc<UserData>,
        checks: Option<(Arc<Checks>, AccountId)>,
    ) -> NotedFile {
        NotedFile { columns: filed(columns), facts, owned, checks }
    }

    pub fn header(&self) -> String {
        let columns = self.columns.iter().map(|column| member(*column).unwrap_or("checked"));
        let facts = self.facts.columns().iter().map(|fact| fact.name.as_str());
        let always = ["domain"].into_iter().chain(ALWAYS.into_iter().skip(1));
        let all: Vec<_> = always.chain(columns).chain(NOTES).chain(facts).collect();
        format!("{}\r\n", all.join(","))
    }

    /// Appends the line of a row.
    pub fn push(&self, row: &DropRow<'_>, out: &mut Vec<u8>) {
        let mut push = |text: &str| out.extend_from_slice(text.as_bytes());
        push(row.name);
        push(&format!(",{},{}", row.unicode, row.dqs));
        for column in &self.columns {
            out.push(b',');
            self.push_column(*column, row, out);
        }
        let name = DomainName::parse(row.name).ok();
        let details = name.as_ref().and_then(|name| self.owned.watch_details(name));
        let text = |text: Option<&str>| user_cell(text.unwrap_or_default()).into_owned();
        let tags = details.map(|it| it.tags.iter().map(Tag::as_str).collect::<Vec<_>>().join(", "));
        let bid = cell(details.and_then(|it| it.max_bid));
        let venue = text(details.and_then(|it| it.venue.as_deref()));
        let note = text(details.and_then(|it| it.note.as_deref()));
        let notes = format!(",{},{bid},{venue},{note}", text(tags.as_deref()));
        out.extend_from_slice(notes.as_bytes());
        for value in self.facts.of(row.name) {
            let text = match value.map(|fact| fact.value) {
                None => String::new(),
                // As in the files of the API: an amount is a number.
                Some(Value::Money { cents, .. }) => format!("{}.{:02}", cents / 100, cents % 100),
                Some(value) => user_cell(&value.to_string()).into_owned(),
            };
            out.push(b',');
            out.extend_from_slice(text.as_bytes());
        }
        out.extend_from_slice(b"\r\n");
    }

    fn push_column(&self, column: Column, row: &DropRow<'_>, out: &mut Vec<u8>) {
        let text = match column {
            Column::Why => return push_quoted_cell(out, row.explanation),
            Column::Words => {
                return push_quoted_cell(out, &row.words.iter().collect::<Vec<_>>().join(" "));
            }
            Column::Length => row.length.to_string(),
            Column::Tlds => row.other_tlds.to_string(),
            Column::Language => row.language.unwrap_or_default().to_owned(),
            Column::Kind => row.kind.to_string(),
            Column::Drops => row.drop_count.to_string(),
            Column::Popularity => cell(row.popularity_rank.map(|rank| rank.get())),
            Column::SuffixRank => cell(row.suffix_rank),
            Column::ExpectedTaken => cell(row.expected_taken),
            Column::Dropped => row.drop_date.to_string(),
            Column::Listed => row.listed_at.to_string(),
            Column::Days => row.days_to_release.to_string(),
            Column::Due => row.release_date.to_string(),
            Column::State => row.stage.to_string(),
            Column::Checked => self.checked(row.name).to_owned(),
        };
        // Writing to memory cannot fail.
        let _ = out.write_all(text.as_bytes());
    }

    fn checked(&self, name: &str) -> &'static str {
        let result = self
            .checks
            .as_ref()
            .and_then(|(checks, account)| checks.result(*account, &DomainName::parse(name).ok()?));
        match result {
            Some(Checked::Seen(seen)) => seen_word(&seen),
            Some(Checked::Failed) => "no response",
            None => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_the_columns_of_the_screen_and_the_dates() {
        let columns = Columns::named(["length", "due", "checked"].into_iter());
        assert_eq!(members(&columns), "name,unicode,dqs,length,releaseDate,dropDate,stage");
        let file = NotedFile::new(&columns, ShownFacts::default(), Arc::default(), None);
        assert_eq!(
            file.header(),
            "domain,unicode,dqs,length,releaseDate,checked,dropDate,stage,tags,max_bid_usd,venue,note\r\n"
        );
    }
}
