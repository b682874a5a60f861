//! Writes the rows of dated files, in all formats. The pipeline has the lines of `/api/export/drops`,
//! the changes have the rows of `/api/v1/changes`.

use std::io::Write;
use std::ops::ControlFlow;
use std::sync::LazyLock;

use crate::changes::{Known, push_row};
use crate::copies::table::{Cell, Column, ColumnType};
use crate::copies::{About, Copies, CopyError, Draft, Kind, Set, SetName};
use crate::index::Index;
use crate::index::filter::{AsOf, DropFilter};
use crate::index::query::rows::DropRow;
use crate::query::params::{Limits, Params};
use crate::rows::{Member, push_drop, push_drop_columns};
use crate::service::app::App;
use crate::vocab::change::{ChangeSource, is_personal};
use crate::vocab::day::Day;
use crate::vocab::dqs::Dqs;
use crate::vocab::time::UnixMs;
use dropdex_changes::{ChangeEntry, ReadError};

/// Members of the rows of the pipeline: all but the signals, which would double the size.
static PIPELINE: LazyLock<Vec<Member>> =
    LazyLock::new(|| Member::ALL.into_iter().filter(|member| *member != Member::Signals).collect());

static PIPELINE_COLUMNS: LazyLock<Vec<Column>> = LazyLock::new(|| {
    PIPELINE.iter().map(|it| Column { name: it.as_str(), kind: column_type(*it) }).collect()
});

/// Columns of the changes: the members of a row of `/api/v1/changes`.
const CHANGES_COLUMNS: &[Column] = &[
    Column { name: "seq", kind: ColumnType::Long },
    Column { name: "event", kind: ColumnType::Text },
    Column { name: "domain", kind: ColumnType::Text },
    Column { name: "day", kind: ColumnType::Day },
    Column { name: "source", kind: ColumnType::Text },
    Column { name: "verified", kind: ColumnType::Bool },
    Column { name: "dqs", kind: ColumnType::Number },
    Column { name: "dqsBefore", kind: ColumnType::Number },
    Column { name: "releaseDate", kind: ColumnType::Day },
    Column { name: "releaseAt", kind: ColumnType::Instant },
    Column { name: "releaseCertainty", kind: ColumnType::Text },
    Column { name: "releaseWindowMinutes", kind: ColumnType::Number },
    Column { name: "registeredAt", kind: ColumnType::Instant },
    Column { name: "registrar", kind: ColumnType::Text },
];

fn column_type(member: Member) -> ColumnType {
    match member {
        Member::Name
        | Member::Unicode
        | Member::Tld
        | Member::Explanation
        | Member::Signals
        | Member::Stage
        | Member::ReleaseCertainty
        | Member::Words
        | Member::Language
        | Member::Kind
        | Member::TypoOf => ColumnType::Text,
        Member::Length
        | Member::Dqs
        | Member::ReleaseWindowMinutes
        | Member::DaysToRelease
        | Member::OtherTlds
        | Member::DropCount
        | Member::ExpectedTaken => ColumnType::Number,
        Member::PopularityRank => ColumnType::Long,
        Member::SuffixRank => ColumnType::Double,
        Member::DropDate | Member::ReleaseDate => ColumnType::Day,
        Member::ReleaseAt | Member::ListedAt => ColumnType::Instant,
    }
}

/// Returns a member of a row; `words` are its words with spaces between them.
fn drop_cell<'a>(row: &'a DropRow<'_>, member: Member, words: &'a str) -> Cell<'a> {
    match member {
        Member::Name => Cell::Text(row.name),
        Member::Unicode => Cell::Text(&row.unicode),
        Member::Tld => Cell::Text(row.tld),
        Member::Length => Cell::Number(row.length.into()),
        Member::Dqs => Cell::Number(row.dqs.points().into()),
        Member::Explanation => Cell::Text(row.explanation),
        Member::Signals => Cell::Null,
        Member::Stage => Cell::Text(row.stage.as_str()),
        Member::DropDate => Cell::Day(row.drop_date),
        Member::ReleaseDate => Cell::Day(row.release_date),
        Member::ReleaseAt => row.release_at.map_or(Cell::Null, Cell::Instant),
        Member::ReleaseCertainty => Cell::Text(row.release_certainty.as_str()),
        Member::ReleaseWindowMinutes => Cell::Number(row.release_window_minutes.into()),
        Member::DaysToRelease => Cell::Number(row.days_to_release),
        Member::Words => Cell::Text(words),
        Member::Language => row.language.map_or(Cell::Null, Cell::Text),
        Member::Kind => Cell::Text(row.kind.as_str()),
        Member::OtherTlds => Cell::Number(row.other_tlds.into()),
        Member::DropCount => Cell::Number(row.drop_count.into()),
        Member::ListedAt => Cell::Instant(row.listed_at),
        Member::PopularityRank => {
            row.popularity_rank.map_or(Cell::Null, |rank| Cell::Long(rank.get().into()))
        }
        Member::SuffixRank => {
            row.suffix_rank.map_or(Cell::Null, |it| Cell::Double(f64::from(it.tenths()) / 10.0))
        }
        Member::TypoOf => {
            row.typo_of.as_ref().map_or(Cell::Null, |popular| Cell::Text(&popular.name))
        }
        Member::ExpectedTaken => {
            row.expected_taken.map_or(Cell::Null, |it| Cell::Number(it.percent().into()))
        }
    }
}

/// Writes the files of the pipeline on `day`.
///
/// # Errors
/// A file cannot be written, or the index cannot be read.
pub fn write_pipeline(app: &App, copies: &Copies, day: Day) -> anyhow::Result<Set> {
    // Read before the index: changes that the rows already include do no harm when they are applied again.
    let last_seq = app.changes.newest();
    let index = app.live.current();
    let as_of = AsOf { today: day, catch_days: app.catch_days };
    let exports_internal = app.limits.exports_internal;
    let limits = Limits { default: u32::MAX, max: u32::MAX };
    // As the changes, a copy has adult names.
    let params = [("sort", "name"), ("order", "asc"), ("adult", "include")];
    let filter: DropFilter = Params::from_pairs(&params).drops(limits, day)?;
    let places = match exports_internal {
        true => index.drop_places(&filter, as_of),
        false => index.exported_places(&filter, as_of),
    }?;
    let about = About {
        generation: index.manifest().generation.0,
        made_at: UnixMs::from_instant(app.clock.now()),
        first_seq: None,
        last_seq,
        has_internal: has_internal(exports_internal, &index),
    };
    let name = SetName { kind: Kind::Pipeline, day };
    let set = copies.write(name, PIPELINE_COLUMNS.as_slice(), about, |draft| {
        let mut written = Ok(());
        let (mut json, mut csv, mut words) = (Vec::new(), Vec::new(), String::new());
        index.shape_drops(&places, as_of, |_, row| {
            if written.is_ok() {
                written = push_drop_row(draft, row, (&mut json, &mut csv, &mut words));
            }
        });
        written
    })?;
    Ok(set)
}

fn push_drop_row(
    draft: &mut Draft,
    row: &DropRow<'_>,
    (json, csv, words): (&mut Vec<u8>, &mut Vec<u8>, &mut String),
) -> Result<(), CopyError> {
    json.clear();
    csv.clear();
    words.clear();
    push_drop(row, &PIPELINE, json);
    json.push(b'\n');
    push_drop_columns(row, &PIPELINE, csv);
    for word in row.words.iter() {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
    }
    let cells: Vec<Cell<'_>> = PIPELINE.iter().map(|it| drop_cell(row, *it, words)).collect();
    draft.push(json, csv, &cells)
}

/// Whether rows of this index may be for internal use only.
fn has_internal(exports_internal: bool, index: &Index) -> bool {
    exports_internal && !index.manifest().internal_lists.is_empty()
}

/// Why the changes of a day were not written.
#[derive(Debug, thiserror::Error)]
enum ChangesError {
    #[error(transparent)]
    Copy(#[from] CopyError),
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Writes the files of the changes of `day`: those numbered `first` to `last`, without those that only the
/// accounts that watch a name may see.
///
/// # Errors
/// A file cannot be written, or the log cannot be read.
pub fn write_changes(
    app: &App,
    copies: &Copies,
    day: Day,
    (first, last): (u64, u64),
) -> anyhow::Result<Set> {
    let index = app.live.current();
    let exports_internal = app.limits.exports_internal;
    let about = About {
        generation: index.manifest().generation.0,
        made_at: UnixMs::from_instant(app.clock.now()),
        first_seq: Some(first),
        last_seq: last,
        has_internal: has_internal(exports_internal, &index),
    };
    let is_exported = |entry: &ChangeEntry<'_>| {
        let place = || index.places_of(&[entry.domain()]).pop();
        exports_internal || place().is_some_and(|place| index.is_exported(place))
    };
    let name = SetName { kind: Kind::Changes, day };
    let set = copies.write(name, CHANGES_COLUMNS, about, |draft| {
        let mut written = Ok(());
        let (mut json, mut csv) = (Vec::new(), Vec::new());
        app.changes.visit(first.saturating_sub(1), |seq, entry| {
            if seq > last {
                return ControlFlow::Break(());
            }
            if !is_personal(entry.kind, entry.source) && is_exported(&entry) {
                let known = Known::of(&entry, &index, &app.store);
                written = push_change(draft, seq, &entry, &known, (&mut json, &mut csv));
            }
            if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok::<_, ChangesError>(written?)
    })?;
    Ok(set)
}

fn push_change(
    draft: &mut Draft,
    seq: u64,
    entry: &ChangeEntry<'_>,
    known: &Known,
    (json, csv): (&mut Vec<u8>, &mut Vec<u8>),
) -> Result<(), CopyError> {
    json.clear();
    csv.clear();
    push_row(seq, entry, known, json);
    json.push(b'\n');
    let time = known.release_time(entry);
    let score = |dqs: Option<Dqs>| dqs.map_or(Cell::Null, |it| Cell::Number(it.points().into()));
    let cells = [
        Cell::Long(seq.cast_signed()),
        Cell::Text(entry.kind.as_str()),
        Cell::Text(entry.name),
        Cell::Day(entry.day),
        Cell::Text(entry.source.as_str()),
        Cell::Bool(entry.source != ChangeSource::Calendar),
        score(entry.dqs),
        score(entry.dqs_before),
        entry.release.map_or(Cell::Null, Cell::Day),
        time.and_then(|it| it.at).map_or(Cell::Null, Cell::Instant),
        time.map_or(Cell::Null, |it| Cell::Text(it.certainty.as_str())),
        time.map_or(Cell::Null, |it| Cell::Number(it.window_minutes.into())),
        // Only the registry reports registrations, in events of watched names.
        Cell::Null,
        Cell::Null,
    ];
    for (at, cell) in cells.iter().enumerate() {
        // No value has a comma or a quote. Writing to memory cannot fail.
        let _ = write!(csv, "{}{cell}", if at > 0 { "," } else { "" });
    }
    csv.extend_from_slice(b"\r\n");
    draft.push(json, csv, &cells)
}
