//! Recognition of a list's format from its first 64 KiB, and the check of a requested format.

use super::columns::{Header, ListColumns};
use super::error::FeedProblem;
use super::file_name::FileNames;
use super::format::Format;
use super::head::{Head, Sample};
use super::stamped::Stamped;
use super::{history, json, names, native, pairs, ranked, zone};

/// The rows of a list of bare names, for messages.
const ONE_NAME: &str = "one name per line";

/// The recognised shape of a list, and the reason for it.
#[derive(Debug)]
pub(super) struct Sniffed {
    pub(super) shape: ListShape,
    pub(super) reason: String,
}

impl Sniffed {
    fn new(shape: ListShape, reason: impl Into<String>) -> Sniffed {
        Sniffed { shape, reason: reason.into() }
    }
}

/// A format, with the columns or time stamp found in the head.
#[derive(Debug)]
pub(super) enum ListShape {
    Native(native::NativeColumns),
    Delimited(Header, ListColumns),
    Json,
    JsonLines,
    Stamped(Stamped),
    Pool,
    Bardate,
    Names,
    Registered,
    Released,
    Dynadot,
    History(history::HistoryColumns),
    Ranked(ranked::RankedColumns),
}

impl ListShape {
    /// Whether rows have only release days; the names then dropped on the day of the list.
    pub(super) fn dates_follow_observation(&self) -> bool {
        match self {
            ListShape::Delimited(_, columns) => columns.drop.is_none() && columns.release.is_some(),
            ListShape::Json | ListShape::JsonLines | ListShape::Ranked(_) => true,
            ListShape::Pool | ListShape::Bardate | ListShape::Dynadot => true,
            ListShape::Native(_) | ListShape::History(_) | ListShape::Stamped(_) => false,
            ListShape::Names | ListShape::Registered | ListShape::Released => false,
        }
    }

    pub(super) fn format(&self) -> Format {
        match self {
            ListShape::Native(_) => Format::Native,
            ListShape::Delimited(..) => Format::Delimited,
            ListShape::Json | ListShape::JsonLines => Format::Json,
            ListShape::Stamped(_) => Format::Stamped,
            ListShape::Pool => Format::Pool,
            ListShape::Bardate => Format::Bardate,
            ListShape::Names => Format::Names,
            ListShape::Registered => Format::Registered,
            ListShape::Released => Format::Released,
            ListShape::Dynadot => Format::Dynadot,
            ListShape::History(_) => Format::History,
            ListShape::Ranked(_) => Format::Ranked,
        }
    }
}

/// Checks that a list can have the requested format.
///
/// # Errors
/// [`FeedProblem::NotFormat`] if it clearly has another one.
pub(super) fn requested(
    head: &Head,
    format: Format,
    day_is_given: bool,
) -> Result<Sniffed, FeedProblem> {
    let shape = shape(head, format, Demand::Any, day_is_given)?.shape;
    Ok(Sniffed::new(shape, "requested with --format"))
}

/// Recognises the format of a list. With `day_is_given`, a table needs no date column.
///
/// # Errors
/// [`FeedProblem::UnknownFormat`], or the error for the column that an otherwise matching format
/// lacks.
pub(super) fn recognise(
    head: &Head,
    names: &FileNames,
    day_is_given: bool,
) -> Result<Sniffed, FeedProblem> {
    if head.lines.is_empty() {
        return Err(FeedProblem::Empty);
    }
    if zone::looks_like(head.lines.iter().map(|(_, line)| line.as_str())) {
        return Err(FeedProblem::ZoneFile);
    }
    let mut near_miss = None;
    for format in [
        Format::Json,
        Format::Stamped,
        Format::Native,
        Format::History,
        Format::Delimited,
        Format::Pool,
        Format::Bardate,
        Format::Ranked,
        Format::Names,
    ] {
        match shape(head, format, Demand::Most, day_is_given) {
            Ok(taken) => return of_registrations(taken, names),
            Err(
                problem @ (FeedProblem::MissingColumn { .. } | FeedProblem::NoDateColumn { .. }),
            ) => near_miss = Some(problem),
            Err(_) => {}
        }
    }
    Err(near_miss.unwrap_or_else(|| FeedProblem::UnknownFormat { start: head.start() }))
}

/// Reads a list of names as new registrations if its file name identifies it as such. Otherwise every
/// new registration would become a drop.
fn of_registrations(taken: Sniffed, names: &FileNames) -> Result<Sniffed, FeedProblem> {
    let Some(word) = names.says_registered() else { return Ok(taken) };
    match taken.shape {
        ListShape::Names => {
            let reason = format!("{ONE_NAME}, and `{word}` in the file name");
            Ok(Sniffed::new(ListShape::Registered, reason))
        }
        shape if shape.dates_follow_observation() => {
            let format = shape.format();
            Err(FeedProblem::Registrations { word, format, reason: taken.reason })
        }
        _ => Ok(taken),
    }
}

/// Share of the sampled rows that must fit a format without a header.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Demand {
    /// One row must fit, if any exist, because the operator chose the format.
    Any,
    /// At least half of the rows must fit.
    Most,
}

impl Demand {
    /// Checks that enough rows of the sample fit.
    ///
    /// # Errors
    /// The number of rows that fit.
    fn check(self, head: &Head, fits: fn(&str) -> bool, what: &str) -> Result<(), String> {
        let Sample { fit, rows } = head.fitting(fits);
        let enough = match self {
            Demand::Any => fit > 0 || rows == 0,
            Demand::Most => fit > 0 && fit * 2 >= rows,
        };
        let start = head.start();
        let why =
            || format!("{fit} of its first {rows} rows fit `{what}`; it starts with `{start}`");
        enough.then_some(()).ok_or_else(why)
    }
}

fn shape(
    head: &Head,
    format: Format,
    demand: Demand,
    day_is_given: bool,
) -> Result<Sniffed, FeedProblem> {
    let misfit = |why| FeedProblem::NotFormat { format, why };
    let header = || Header::find(head).ok_or_else(|| Header::absent(format));
    let rows = |shape, fits: fn(&str) -> bool, what: &str| {
        demand.check(head, fits, what).map(|()| Sniffed::new(shape, what)).map_err(misfit)
    };
    match format {
        Format::Json => json(head).map_err(misfit),
        Format::Stamped => stamped(head).map_err(misfit),
        Format::History => history(head).map_err(misfit),
        Format::Native => native(&header()?, demand),
        Format::Delimited => delimited(header()?, day_is_given),
        Format::Pool => rows(
            ListShape::Pool,
            |row| pairs::pool(row).is_ok(),
            "a name, a comma and a date as M/D/YYYY, without a header",
        ),
        Format::Bardate => rows(
            ListShape::Bardate,
            |row| pairs::bardate(row).is_ok(),
            "a name and a date separated by a tab",
        ),
        Format::Dynadot => rows(
            ListShape::Dynadot,
            |row| pairs::dynadot(row).is_ok(),
            "a name, a comma and a time",
        ),
        Format::Names => {
            // After a header with several columns, rows with empty columns do not make a plain
            // list.
            let is_table = Header::find(head).is_some_and(|header| header.names_several());
            let is_strict = demand == Demand::Most && is_table;
            rows(ListShape::Names, if is_strict { names::is_bare } else { names::fits }, ONE_NAME)
        }
        Format::Registered => rows(ListShape::Registered, names::fits, ONE_NAME),
        Format::Released => rows(ListShape::Released, names::fits, ONE_NAME),
        Format::Ranked => match ranked::RankedColumns::find(head) {
            Some(columns) => {
                let what = "header has `GlobalRank` and `Domain`";
                Ok(Sniffed::new(ListShape::Ranked(columns), what))
            }
            // A number before each name is a rank, unless a header gives it another name.
            None if demand == Demand::Most && header().is_ok_and(|it| !it.starts_with_ranks()) => {
                Err(misfit("its header has no column of ranks".to_owned()))
            }
            None => rows(
                ListShape::Ranked(ranked::RankedColumns::PLAIN),
                ranked::fits,
                "a rank, a comma and a host, without a header",
            ),
        },
        Format::Registry | Format::ZonePair | Format::Zone => Err(FeedProblem::ZoneFile),
    }
}

fn json(head: &Head) -> Result<Sniffed, String> {
    match head.first().chars().next() {
        Some('{') if json::is_line(head.first()) => {
            Ok(Sniffed::new(ListShape::JsonLines, "each line is a JSON object with a name"))
        }
        Some(first @ ('{' | '[')) => {
            Ok(Sniffed::new(ListShape::Json, format!("starts with `{first}`")))
        }
        _ => Err(format!("it starts with `{}`, neither `{{` nor `[`", head.start())),
    }
}

fn stamped(head: &Head) -> Result<Sniffed, String> {
    let stamped = Stamped::parse(head).ok_or_else(|| {
        format!("its first line `{}` is not a time stamp with a zone", head.start())
    })?;
    let reason = format!("starts with the time stamp `{}`", head.first());
    Ok(Sniffed::new(ListShape::Stamped(stamped), reason))
}

fn history(head: &Head) -> Result<Sniffed, String> {
    let words = history::HEADER_WORDS;
    let columns = history::HistoryColumns::find(head);
    let columns = columns.ok_or_else(|| format!("no header with {words}"))?;
    Ok(Sniffed::new(ListShape::History(columns), format!("header has {words}")))
}

fn native(header: &Header, demand: Demand) -> Result<Sniffed, FeedProblem> {
    let columns = native::NativeColumns::from_header(header)?;
    if demand == Demand::Most && columns.loses_a_release(header) {
        let why = "it has a release date under another name than `release_date`".to_owned();
        return Err(FeedProblem::NotFormat { format: Format::Native, why });
    }
    Ok(Sniffed::new(ListShape::Native(columns), "header has `domain` and `drop_date`"))
}

fn delimited(header: Header, day_is_given: bool) -> Result<Sniffed, FeedProblem> {
    let needs_no_day = day_is_given && !header.starts_with_ranks();
    let columns = ListColumns::from_header(&header, needs_no_day)?;
    let reason = columns.reason(&header);
    Ok(Sniffed::new(ListShape::Delimited(header, columns), reason))
}
