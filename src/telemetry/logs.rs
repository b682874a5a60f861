//! The log: what is told, how much of it and in which form. Lines go to standard error.
//!
//! Text from outside can hold anything. In JSON it is escaped as JSON has it; as text, every field is
//! written without what ends a line or moves a terminal, and cut: a line of the log is a line of ours.

use std::fmt::{self, Debug, Write};
use std::io::{self, IsTerminal};
use std::str::FromStr;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::{Format, Full, Writer, debug_fn};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::telemetry::current::{Line, with_current};

/// Bytes of a field at most.
const FIELD_BYTES_MAX: usize = 256;
/// Bytes of what we say ourselves, which may name a path, a line and what to do next.
const MESSAGE_BYTES_MAX: usize = 2048;

/// How the log is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logs {
    /// As JSON lines.
    pub json: bool,
    /// How much, as in `RUST_LOG`, which beats it.
    pub level: Option<String>,
}

/// Starts the log; `default` is how much is told when nobody says.
///
/// # Errors
/// The level is none.
pub fn start(logs: &Logs, default: &str) -> anyhow::Result<()> {
    let level = logs.level.as_deref().unwrap_or(default);
    let filter = match EnvFilter::try_from_default_env() {
        Ok(filter) => filter,
        Err(_) => parse_level(level)?,
    };
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    if logs.json {
        builder.event_format(Json).init();
    } else {
        let format = Format::default().with_target(false).with_ansi(io::stderr().is_terminal());
        let fields = debug_fn(write_field).delimited(" ");
        builder.fmt_fields(fields).event_format(Text(format)).init();
    }
    Ok(())
}

/// What is told at a level of the settings. A word alone would also do as the name of a part of the
/// program, of which everything is told and of all the rest nothing: here it is a slip.
fn parse_level(level: &str) -> anyhow::Result<EnvFilter> {
    // An empty one is a level to the library: that of errors.
    let is_level = |part: &str| !part.is_empty() && LevelFilter::from_str(part).is_ok();
    let is_slip = |part: &&str| !part.contains(['=', '[']) && !is_level(part);
    if let Some(slip) = level.split(',').map(str::trim).find(is_slip) {
        anyhow::bail!(
            "log.level: `{slip}` is none of off, error, warn, info, debug and trace (or write it as \
             RUST_LOG has it: info,dropdex::workers=debug)"
        );
    }
    EnvFilter::try_new(level).map_err(|err| {
        anyhow::anyhow!("log.level: {err}; it is a word such as info, or as RUST_LOG has it")
    })
}

/// Milliseconds as they are told: more than three places are noise.
pub(super) fn milliseconds(time: Duration) -> f64 {
    time.as_micros() as f64 / 1000.0
}

/// Lines of text; each ends with the request it is about.
struct Text(Format<Full>);

impl<S, N> FormatEvent<S, N> for Text
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = String::new();
        self.0.format_event(context, Writer::new(&mut line), event)?;
        writer.write_str(line.trim_end_matches('\n'))?;
        with_current(|current| {
            let Some(current) = current else { return Ok(()) };
            // All of it is ours, or was looked at when it came.
            let Line { id, method, route, account } = current.line();
            write!(writer, " id={id} method={method} route={route}")?;
            account.map_or(Ok(()), |account| write!(writer, " account={account}"))
        })?;
        writeln!(writer)
    }
}

/// Lines of JSON.
struct Json;

/// One of them.
#[derive(Serialize)]
struct JsonLine<'a> {
    timestamp: &'a str,
    level: &'a str,
    target: &'a str,
    fields: &'a Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<Line<'a>>,
}

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut timestamp = String::new();
        SystemTime.format_time(&mut Writer::new(&mut timestamp))?;
        let mut fields = Fields(Map::new());
        event.record(&mut fields);
        let metadata = event.metadata();
        let line = with_current(|current| {
            serde_json::to_string(&JsonLine {
                timestamp: &timestamp,
                level: metadata.level().as_str(),
                target: metadata.target(),
                fields: &fields.0,
                request: current.map(|current| current.line()),
            })
        });
        writeln!(writer, "{}", line.map_err(|_| fmt::Error)?)
    }
}

/// The fields of an event as JSON.
struct Fields(Map<String, Value>);

impl Fields {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, cut(format_args!("{value}"), bytes_max(field)));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, cut(format_args!("{value:?}"), bytes_max(field)));
    }
}

/// Bytes of a field.
fn bytes_max(field: &Field) -> usize {
    match field.name() {
        "message" | "error" => MESSAGE_BYTES_MAX,
        _ => FIELD_BYTES_MAX,
    }
}

/// So many bytes at most of a text; what escapes it for JSON comes on top.
fn cut(text: fmt::Arguments<'_>, bytes_max: usize) -> String {
    let mut text = text.to_string();
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max));
        text.push('…');
    }
    text
}

/// `name=value`; a message is its value alone.
fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> fmt::Result {
    if field.name() != "message" {
        write!(writer, "{}=", field.name())?;
    }
    let mut plain = Plain { writer, left: bytes_max(field) };
    match write!(plain, "{value:?}") {
        Err(_) if plain.left == 0 => writer.write_char('…'),
        written => written,
    }
}

/// Writes so many bytes at most, what is no visible character escaped.
struct Plain<'a, 'w> {
    writer: &'a mut Writer<'w>,
    left: usize,
}

impl Write for Plain<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for char in text.chars() {
            // Marks of direction and line separators are not control characters, and as harmful.
            let is_plain = !char.is_control()
                && !matches!(char, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
            let len = if is_plain { char.len_utf8() } else { char.escape_debug().len() };
            let Some(left) = self.left.checked_sub(len) else {
                self.left = 0;
                return Err(fmt::Error);
            };
            self.left = left;
            if is_plain {
                self.writer.write_char(char)?;
            } else {
                write!(self.writer, "{}", char.escape_debug())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str, left: usize) -> (String, bool) {
        let mut out = String::new();
        let mut writer = Writer::new(&mut out);
        let whole = Plain { writer: &mut writer, left }.write_str(text).is_ok();
        (out, whole)
    }

    #[test]
    fn a_slip_in_the_level_is_told() {
        for level in ["info", "WARN", "off", "info,hyper=debug", "dropdex::workers=trace, error"] {
            assert!(parse_level(level).is_ok(), "{level}");
        }
        for level in ["loud", "inof,hyper=debug", "", "hyper=loud"] {
            let err = parse_level(level).expect_err(level).to_string();
            assert!(err.starts_with("log.level: "), "{level}: {err}");
        }
    }

    #[test]
    fn long_text_is_cut_in_json_as_well() {
        assert_eq!(cut(format_args!("übrig"), 6), "übrig");
        assert_eq!(cut(format_args!("übrig"), 3), "üb…");
        assert_eq!(cut(format_args!("aü"), 2), "a…");
    }

    #[test]
    fn text_from_outside_stays_on_its_line() {
        assert_eq!(plain("a\nb\x1b[2J\u{202e}ü", 99), ("a\\nb\\u{1b}[2J\\u{202e}ü".into(), true));
        assert_eq!(plain("übrig", 3), ("üb".into(), false));
    }
}
