//! What a list is: told from its first 64 KiB, or checked against what it is said to be.

use super::columns::{Columns, Header};
use super::error::FeedProblem;
use super::format::Format;
use super::rejects::one_line;
use super::stamped::Stamped;
use super::{bardate, names, native, pool, zone};

/// Rows at the start of a text that formats without a header are told from.
const SAMPLE_ROWS: usize = 200;

/// Characters of a text that messages show.
const START_CHARS_MAX: usize = 60;

/// The first rows of a text, blank lines left out.
pub(super) struct Head {
    /// Line number, counted from 1, and text without line end.
    pub(super) lines: Vec<(u64, String)>,
}

impl Head {
    /// `whole`: the text ends here, so its last line is complete.
    pub(super) fn of(text: &[u8], whole: bool) -> Head {
        let text = String::from_utf8_lossy(text);
        let complete = match text.rfind('\n') {
            Some(end) if !whole => &text[..end],
            _ => &text,
        };
        let lines = complete.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
        Head { lines: lines.map(|(line, at)| (at, line.to_owned())).take(SAMPLE_ROWS).collect() }
    }

    fn first(&self) -> &str {
        self.lines.first().map_or("", |(_, line)| line.trim())
    }

    /// The first row, for messages.
    fn start(&self) -> String {
        one_line(self.first().as_bytes(), START_CHARS_MAX)
    }

    /// How many of the rows fit a format, of how many that are no comments.
    fn fitting(&self, fits: impl Fn(&str) -> bool) -> Sample {
        let rows =
            || self.lines.iter().map(|(_, line)| line.trim()).filter(|line| names::is_row(line));
        Sample { fit: rows().filter(|line| fits(line)).count(), rows: rows().count() }
    }
}

struct Sample {
    fit: usize,
    rows: usize,
}

/// How a list is to be read, and why so.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) shape: Shape,
    pub(super) reason: String,
}

/// A format with what its head told.
#[derive(Debug)]
pub(super) enum Shape {
    Native(native::Columns),
    Delimited(Header, Columns),
    Json,
    Stamped(Stamped),
    Pool,
    Bardate,
    Names,
    Registered,
}

impl Shape {
    pub(super) fn format(&self) -> Format {
        match self {
            Shape::Native(_) => Format::Native,
            Shape::Delimited(..) => Format::Delimited,
            Shape::Json => Format::Json,
            Shape::Stamped(_) => Format::Stamped,
            Shape::Pool => Format::Pool,
            Shape::Bardate => Format::Bardate,
            Shape::Names => Format::Names,
            Shape::Registered => Format::Registered,
        }
    }
}

/// Checks that a list can be what it is said to be.
///
/// # Errors
/// [`FeedProblem::NotFormat`] when it plainly is not.
pub(super) fn asked(head: &Head, format: Format) -> Result<Taken, FeedProblem> {
    let reason = "asked for with --format".to_owned();
    let shape = shape(head, format, Demand::Any)?.shape;
    Ok(Taken { shape, reason })
}

/// Recognises a list.
///
/// # Errors
/// [`FeedProblem::UnknownFormat`], or what is missing to be the format it nearly is.
pub(super) fn recognise(head: &Head, file_name: &str) -> Result<Taken, FeedProblem> {
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
        Format::Delimited,
        Format::Pool,
        Format::Bardate,
        Format::Names,
    ] {
        match shape(head, format, Demand::Most) {
            Ok(_) if format == Format::Names && names::tells_registered(file_name) => {
                let reason = "one name a line, and `registered` in the file name".to_owned();
                return Ok(Taken { shape: Shape::Registered, reason });
            }
            Ok(taken) => return Ok(taken),
            Err(problem @ FeedProblem::MissingColumn { .. }) => near_miss = Some(problem),
            Err(_) => {}
        }
    }
    Err(near_miss.unwrap_or_else(|| FeedProblem::UnknownFormat { start: head.start() }))
}

/// How many sampled rows have to fit a format without a header.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Demand {
    /// One, or there are none: the operator knows what it is.
    Any,
    /// Half or more: one good row of two is a list with a bad row.
    Most,
}

fn shape(head: &Head, format: Format, demand: Demand) -> Result<Taken, FeedProblem> {
    let taken = |shape, reason: String| Ok(Taken { shape, reason });
    let rows = |shape, fits: fn(&str) -> bool, what: &str| {
        let Sample { fit, rows } = head.fitting(fits);
        let enough = match demand {
            Demand::Any => fit > 0 || rows == 0,
            Demand::Most => fit > 0 && fit * 2 >= rows,
        };
        if enough {
            return Ok(Taken { shape, reason: what.to_owned() });
        }
        let why = format!(
            "{fit} of its first {rows} rows fit `{what}`; it starts with `{}`",
            head.start()
        );
        Err(FeedProblem::NotFormat { format, why })
    };
    match format {
        Format::Json => match head.first().chars().next() {
            Some(first @ ('{' | '[')) => taken(Shape::Json, format!("starts with `{first}`")),
            _ => {
                let why = format!("it starts with `{}`, neither `{{` nor `[`", head.start());
                Err(FeedProblem::NotFormat { format, why })
            }
        },
        Format::Stamped => match Stamped::of(head) {
            Some(stamped) => taken(
                Shape::Stamped(stamped),
                format!("starts with the time stamp `{}`", head.first()),
            ),
            None => {
                let why = format!("its first line `{}` is no time stamp with a zone", head.start());
                Err(FeedProblem::NotFormat { format, why })
            }
        },
        Format::Native => {
            let header = Header::find(head).ok_or_else(|| Header::absent(format))?;
            let columns = native::Columns::of(&header)?;
            taken(Shape::Native(columns), "header has `domain` and `drop_date`".into())
        }
        Format::Delimited => {
            let header = Header::find(head).ok_or_else(|| Header::absent(format))?;
            let columns = Columns::of(&header)?;
            let dated = columns.release.map(|(at, _)| at).or(columns.drop);
            let date = dated.map_or("", |at| &header.cells[at]);
            let reason = format!("header has `{}` and `{date}`", header.cells[columns.name]);
            taken(Shape::Delimited(header, columns), reason)
        }
        Format::Pool => rows(
            Shape::Pool,
            pool::fits,
            "a name, a comma and a date as M/D/YYYY, without a header",
        ),
        Format::Bardate => rows(Shape::Bardate, bardate::fits, "a name and a date apart by a tab"),
        Format::Names => rows(Shape::Names, names::fits, "one name a line"),
        Format::Registered => rows(Shape::Registered, names::fits, "one name a line"),
        Format::ZonePair => Err(FeedProblem::ZoneFile),
    }
}
