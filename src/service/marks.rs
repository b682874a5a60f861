//! The marks *clean* and *spam* of an account. They are facts of its source `mine`, so that they filter, sort, fill
//! columns and are exported as all facts are, and no other account sees them.

use std::collections::BTreeMap;
use std::sync::Arc;

use compact_str::CompactString;

use crate::accounts::{Caller, FactsRow, MarkBefore, WriteError, mark_print};
use crate::app::{App, Now};
use crate::error::ApiError;
use crate::fact_book::{FactValue, Source};
use crate::facts_file::Value;
use crate::facts_file::store::{
    Edition, Licence, SourceMeta, SourceWriter, StoreError, StoredColumn,
};
use crate::vocab::day::Day;
use crate::vocab::fact::{FactType, KeyKind};
use crate::vocab::limits::FACTS_COLUMNS_MAX;
use crate::vocab::name::DomainName;
use crate::vocab::named::{named_enum, parse_named};
use crate::vocab::time::UnixMs;
use crate::work;

const SOURCE: &str = "mine";
const COLUMN: &str = "mark";

named_enum! {
    /// An account's own judgement of the past of a name, which takes precedence over lists.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Mark {
        Clean = "clean",
        Spam = "spam",
    }
}
parse_named!(Mark);

impl Mark {
    /// Returns the mark that a fact is; `None` for other facts.
    pub fn of(source: &Source, column: &StoredColumn, fact: &FactValue) -> Option<Mark> {
        let is_mark = source.is_own && source.name() == SOURCE && column.name == COLUMN;
        match &fact.value {
            Value::Enum(word) if is_mark => word.parse().ok(),
            _ => None,
        }
    }
}

/// The rows of an edition by key.
type Rows = BTreeMap<String, (Option<Day>, Vec<Option<Value>>)>;

/// Changes of marks.
#[derive(Default)]
struct Marked {
    /// Names whose mark changed, with the mark before.
    before: Vec<(DomainName, Option<CompactString>)>,
    /// Number of names that were left as they are.
    left: usize,
}

/// Marks names, or withdraws their marks. The marks before belong to the caller's action.
///
/// # Errors
/// 400 if the account has another source of this name; the errors of a write.
pub async fn mark(
    app: &App,
    caller: &Caller,
    names: Vec<DomainName>,
    mark: Option<Mark>,
    now: Now,
) -> Result<(), ApiError> {
    let new = mark.map(|mark| CompactString::from(mark.as_str()));
    let word = new.clone();
    let marked = change(app, caller, names, move |_, _| Some(word.clone()), now).await?;
    if !marked.before.is_empty() {
        app.store.record_marks(caller, marked.before, new).await?;
    }
    Ok(())
}

/// Restores the marks that names had before an action. Returns the number of names that got other
/// marks after it, which stay.
///
/// # Errors
/// As [`mark`].
pub async fn restore(
    app: &App,
    caller: &Caller,
    marks: Vec<MarkBefore>,
    now: Now,
) -> Result<usize, ApiError> {
    let names = marks.iter().map(|mark| mark.name.clone()).collect();
    let marks: BTreeMap<_, _> = marks.into_iter().map(|mark| (mark.name.clone(), mark)).collect();
    let new = move |name: &DomainName, present: Option<&str>| {
        let mark = marks.get(name).filter(|mark| mark.after == present.map(mark_print))?;
        Some(mark.before.clone())
    };
    Ok(change(app, caller, names, new, now).await?.left)
}

/// Changes the marks of names. `new` returns the new mark of a name with its present one, or `None`
/// to leave it as it is.
async fn change(
    app: &App,
    caller: &Caller,
    names: Vec<DomainName>,
    new: impl Fn(&DomainName, Option<&str>) -> Option<Option<CompactString>> + Send + 'static,
    now: Now,
) -> Result<Marked, ApiError> {
    let _turn = app.facts.enter(caller.account).await;
    let owned = app.store.user_data(caller);
    let (index, today, book) = (app.live.current(), app.as_of(now).today, app.clone());
    let count = names.len() as u64;
    let (edition, marks) = work::run_aside(move || {
        let visible = book.facts.visible(Some(&owned));
        let before = visible.sources().iter().find(|it| it.is_own && it.name() == SOURCE);
        let (marked, marks) = marked(before.map(|it| &it.edition), &names, new, today)?;
        let Some((bytes, rows)) = marked else { return Ok((None, marks)) };
        let bytes: Arc<[u8]> = bytes.into();
        let edition = Edition::of_bytes(Arc::clone(&bytes)).map_err(internal)?;
        book.facts.join(&index, &[Arc::new(Source { edition, is_own: true })])?;
        Ok::<_, ApiError>((Some((bytes, rows)), marks))
    })
    .await?;
    let Some((bytes, rows)) = edition else {
        return match app.store.remove_facts(caller, SOURCE).await {
            Err(WriteError::NotFound) => Ok(marks),
            removed => Ok(removed.map(|()| marks)?),
        };
    };
    let row = FactsRow {
        source: SOURCE.into(),
        added_at: UnixMs::from_instant(now.0),
        rows,
        file_rows: count,
        from_file: count,
        refused: 0,
    };
    app.store.put_facts(caller, row, &bytes).await?;
    Ok(marks)
}

fn internal(err: StoreError) -> ApiError {
    ApiError::Internal(err.into())
}

/// An edition and its number of rows; `None` if no row is left.
type EditionBytes = Option<(Vec<u8>, u64)>;

/// Returns an edition with changed marks, and the changes. Other facts of the source are kept.
fn marked(
    before: Option<&Edition>,
    names: &[DomainName],
    new: impl Fn(&DomainName, Option<&str>) -> Option<Option<CompactString>>,
    today: Day,
) -> Result<(EditionBytes, Marked), ApiError> {
    let mut meta = before.map_or_else(|| new_source(today), |edition| edition.meta().clone());
    let at = meta.columns.iter().position(|column| column.name == COLUMN);
    let fits = match at {
        Some(at) => meta.columns[at].kind == FactType::Enum,
        None => meta.columns.len() < FACTS_COLUMNS_MAX,
    };
    if !fits || meta.key != KeyKind::Domain {
        let what = "needs your source of facts `mine`, whose facts are others: remove it first";
        return Err(ApiError::parameter("mark", what));
    }
    let at = at.unwrap_or_else(|| {
        meta.columns.push(StoredColumn::new(COLUMN, FactType::Enum));
        meta.columns.len() - 1
    });
    let width = meta.columns.len();
    let mut rows = before.map(read).transpose().map_err(internal)?.unwrap_or_default();
    let mut marks = Marked::default();
    for name in names {
        let (as_of, values) = rows.entry(name.as_str().to_owned()).or_default();
        values.resize(width, None);
        let present = match &values[at] {
            Some(Value::Enum(word)) => Some(CompactString::from(word.as_str())),
            _ => None,
        };
        let Some(mark) = new(name, present.as_deref()) else {
            marks.left += 1;
            continue;
        };
        values[at] = mark.as_ref().map(|mark| Value::Enum(mark.to_string()));
        // A row has one day; that of other facts is older.
        if values.iter().flatten().count() == usize::from(mark.is_some()) {
            *as_of = Some(today);
        }
        if present != mark {
            marks.before.push((name.clone(), present));
        }
    }
    rows.retain(|_, (_, values)| values.iter().any(Option::is_some));
    if rows.is_empty() {
        return Ok((None, marks));
    }
    let mut writer = SourceWriter::new(Vec::new(), meta).map_err(internal)?;
    for (key, (as_of, values)) in &rows {
        writer.push(key, *as_of, values).map_err(internal)?;
    }
    let bytes = writer.finish().map_err(internal)?;
    Ok((Some((bytes, rows.len() as u64)), marks))
}

fn new_source(today: Day) -> SourceMeta {
    SourceMeta {
        id: SOURCE.to_owned(),
        title: "Yours".to_owned(),
        key: KeyKind::Domain,
        as_of: today,
        licence: Licence::Own,
        attribution: None,
        columns: Vec::new(),
    }
}

fn read(edition: &Edition) -> Result<Rows, StoreError> {
    let mut all = Rows::new();
    let mut rows = edition.rows_from(b"")?;
    while let Some(row) = rows.next_row()? {
        let key = String::from_utf8_lossy(&row.key).into_owned();
        all.insert(key, (Some(edition.as_of(row)), edition.values(row)));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> DomainName {
        DomainName::parse(text).expect("a name")
    }

    fn day(text: &str) -> Day {
        text.parse().expect("a day")
    }

    /// Returns the edition and its rows, as text.
    fn after(
        before: Option<&Edition>,
        names: &[&str],
        mark: Option<Mark>,
    ) -> Option<(Edition, Vec<String>)> {
        let names: Vec<_> = names.iter().map(|text| name(text)).collect();
        let new =
            move |_: &DomainName, _: Option<&str>| Some(mark.map(|mark| mark.as_str().into()));
        let (marked, _) = marked(before, &names, new, day("2026-11-29")).expect("it fits");
        let (bytes, rows) = marked?;
        let edition = Edition::of_bytes(bytes.into()).expect("sound");
        assert_eq!(edition.rows(), rows);
        let text = |(key, (as_of, values)): (String, (Option<Day>, Vec<Option<Value>>))| {
            let values: Vec<_> =
                values.iter().map(|it| it.as_ref().map_or("-".into(), Value::to_string)).collect();
            format!("{key} {} {}", as_of.expect("a day"), values.join(" "))
        };
        let rows = read(&edition).expect("sound").into_iter().map(text).collect();
        Some((edition, rows))
    }

    #[test]
    fn marks_are_set_changed_and_withdrawn() {
        let (one, rows) = after(None, &["b.com", "a.com"], Some(Mark::Clean)).expect("rows");
        assert_eq!(rows, ["a.com 2026-11-29 clean", "b.com 2026-11-29 clean"]);
        let (two, rows) = after(Some(&one), &["b.com"], Some(Mark::Spam)).expect("rows");
        assert_eq!(rows, ["a.com 2026-11-29 clean", "b.com 2026-11-29 spam"]);
        let (three, rows) = after(Some(&two), &["a.com", "new.com"], None).expect("rows");
        assert_eq!(rows, ["b.com 2026-11-29 spam"]);
        assert!(after(Some(&three), &["b.com"], None).is_none(), "no row is left");
    }

    #[test]
    fn other_facts_of_the_source_are_kept() {
        let mut meta = new_source(day("2026-01-01"));
        meta.columns.push(StoredColumn::new("paid", FactType::Int));
        let edition = |meta: SourceMeta| {
            let mut writer = SourceWriter::new(Vec::new(), meta).expect("memory");
            writer.push("a.com", None, &[Some(Value::Int(7))]).expect("a row");
            Edition::of_bytes(writer.finish().expect("memory").into()).expect("sound")
        };
        let before = edition(meta.clone());
        let (one, rows) =
            after(Some(&before), &["a.com", "b.com"], Some(Mark::Spam)).expect("rows");
        assert_eq!(rows, ["a.com 2026-01-01 7 spam", "b.com 2026-11-29 - spam"]);
        let (_, rows) = after(Some(&one), &["a.com", "b.com"], None).expect("rows");
        assert_eq!(rows, ["a.com 2026-01-01 7 -"]);

        meta.columns[0].name = COLUMN.to_owned();
        let other = marked(Some(&edition(meta)), &[], |_, _| None, day("2026-01-01"));
        assert!(matches!(other, Err(ApiError::BadParameter { .. })), "a mark is a word");
    }
}
