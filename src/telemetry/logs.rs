//! The log on standard error, as text or as JSON lines.
//!
//! Fields may contain text from clients. Both log formats bound the length of a field. JSON escapes the
//! text; the text format escapes line breaks and terminal sequences, so that a client cannot forge a
//! log line.
//!
//! A line that cannot be written is lost and counted; it never ends or delays a request ([`Output`]).
//!
//! The JSON format of `tracing-subscriber` does not bound fields, and requires a span per request
//! to add the request to a line ([`current`](crate::current)).

use std::fmt::{self, Debug, Write};
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::str::FromStr;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use metrics::counter;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
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

use crate::current::{RequestFields, with_current};

/// Maximum length of a field.
const FIELD_BYTES_MAX: usize = 256;
/// Maximum length of a message or an error, which may name a path and a remedy.
const MESSAGE_BYTES_MAX: usize = 2048;

/// Maximum time that a line waits for a stalled reader. Later lines do not wait for the reader
/// until it reads again.
const READER_WAIT: Duration = Duration::from_millis(100);
/// Bytes that a pipe accepts without blocking once it is writable (`PIPE_BUF`).
const PIPE_BYTES: usize = 4096;

/// The filter for level `info`. The filter quiets libraries that log every segment or request at
/// that level.
const INFO: &str = "info,rmcp=warn,tantivy=warn";

/// Whether the log of this process is JSON lines.
static IS_JSON: OnceLock<bool> = OnceLock::new();

/// Set when the log starts; true for JSON lines.
pub fn is_json() -> bool {
    IS_JSON.get().copied().unwrap_or(false)
}

/// Settings of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logs {
    /// Whether lines are JSON.
    pub json: bool,
    /// A filter in the syntax of `RUST_LOG`, which takes precedence.
    pub level: Option<String>,
}

/// Installs the global subscriber. `default` is the filter if neither the settings nor `RUST_LOG` name
/// one.
///
/// # Errors
/// The filter is invalid.
pub fn start(logs: &Logs, default: &str) -> anyhow::Result<()> {
    let level = logs.level.as_deref().unwrap_or(default);
    let filter = match EnvFilter::try_from_default_env() {
        Ok(filter) => filter,
        Err(_) => parse_level(level)?,
    };
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| STDERR.writer());
    // Without this, the library reports a failed line with `eprintln!`, which panics.
    let builder = builder.log_internal_errors(false);
    let fields = debug_fn(write_field).delimited(" ");
    let format = Format::default().with_target(false).with_ansi(io::stderr().is_terminal());
    // Set only once, because a process starts one log.
    let _ = IS_JSON.set(logs.json);
    if logs.json {
        builder.event_format(Json).init();
        // The default hook writes plain text.
        std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
    } else if is_journald() {
        // The time is omitted, because journald stores the time of each line.
        builder.fmt_fields(fields).event_format(TextFormat(format.without_time())).init();
    } else {
        builder.fmt_fields(fields).event_format(TextFormat(format)).init();
    }
    Ok(())
}

/// Standard error, shared by all threads.
static STDERR: Output<fn() -> io::Stderr> = Output::new(io::stderr);

/// A file, pipe or terminal to which lines are written as a whole or not at all. Writing never fails,
/// and waits at most [`READER_WAIT`] for a stalled reader.
struct Output<F> {
    open: F,
    state: Mutex<OutputState>,
}

#[derive(Default)]
struct OutputState {
    /// Whether the reader has stalled.
    is_stalled: bool,
    /// Whether the last line was written only in part.
    is_cut: bool,
}

impl<F, T> Output<F>
where
    F: Fn() -> T,
    T: AsFd,
{
    const fn new(open: F) -> Output<F> {
        Output { open, state: Mutex::new(OutputState { is_stalled: false, is_cut: false }) }
    }

    fn writer(&self) -> LineWriter<'_, F> {
        LineWriter(self)
    }

    /// Writes a line, or counts it as lost.
    fn write_line(&self, line: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let patience = if state.is_stalled { Duration::ZERO } else { READER_WAIT };
        let file = (self.open)();
        let begun = if state.is_cut { write(&file, b"\n", patience) } else { Ok(()) };
        let written =
            begun.map_err(|(_, err)| (1, err)).and_then(|()| write(&file, line, patience));
        state.is_cut = matches!(written, Err((1.., _)));
        state.is_stalled = matches!(written, Err((_, Errno::AGAIN)));
        if written.is_err() {
            counter!("dropdex_log_lines_lost_total").increment(1);
        }
    }
}

/// Writes all bytes, waiting at most `patience` in total for the reader.
///
/// # Errors
/// Returns the number of bytes written and the reason, [`Errno::AGAIN`] for a stalled reader.
fn write(file: &impl AsFd, bytes: &[u8], patience: Duration) -> Result<(), (usize, Errno)> {
    let deadline = Instant::now() + patience;
    let mut written = 0;
    while written < bytes.len() {
        let left = deadline.saturating_duration_since(Instant::now());
        let piece = &bytes[written..bytes.len().min(written + PIPE_BYTES)];
        let wrote = is_writable(file, left).and_then(|is_writable| match is_writable {
            true => rustix::io::write(file, piece),
            false => Err(Errno::AGAIN),
        });
        match wrote {
            Ok(wrote) => written += wrote,
            Err(Errno::INTR) => {}
            // Another process that writes to the same pipe has filled it first.
            Err(Errno::AGAIN) if !left.is_zero() => {}
            Err(err) => return Err((written, err)),
        }
    }
    Ok(())
}

/// Whether a write would not block, now or within `wait`. A write to a broken output fails at once.
fn is_writable(file: &impl AsFd, wait: Duration) -> Result<bool, Errno> {
    let wait = Timespec { tv_sec: 0, tv_nsec: wait.subsec_nanos().into() };
    Ok(poll(&mut [PollFd::new(file, PollFlags::OUT)], Some(&wait))? > 0)
}

/// Writer for `tracing-subscriber`, which writes each event as one line.
struct LineWriter<'a, F>(&'a Output<F>);

impl<F, T> io::Write for LineWriter<'_, F>
where
    F: Fn() -> T,
    T: AsFd,
{
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.write_line(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether standard error is the stream that systemd connected to its journal: `JOURNAL_STREAM` names its
/// device and inode (systemd.exec(5)).
fn is_journald() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
    rustix::fs::fstat(io::stderr())
        .is_ok_and(|found| stream == format!("{}:{}", found.st_dev, found.st_ino))
}

/// Reports the error that ends a process: as a log line if the log is JSON, otherwise as plain
/// text.
pub fn report_error(error: &str, json: bool) {
    let line = if json { error_line(error) } else { format!("dropdex: {error}\n") };
    STDERR.write_line(line.as_bytes());
}

fn error_line(error: &str) -> String {
    let mut timestamp = String::new();
    // Writing to a `String` cannot fail.
    let _ = SystemTime.format_time(&mut Writer::new(&mut timestamp));
    let fields = Map::from_iter([
        ("message".to_owned(), Value::from("the command failed")),
        ("error".to_owned(), Value::from(error)),
    ]);
    let line = JsonLine {
        timestamp: &timestamp,
        level: "ERROR",
        target: "dropdex",
        fields: &fields,
        request: None,
    };
    serde_json::to_string(&line).map_or_else(|_| format!("dropdex: {error}\n"), |line| line + "\n")
}

/// Parses the filter in the settings. A single unknown word is an error here; the library would take
/// it for a module name and log nothing else.
fn parse_level(level: &str) -> anyhow::Result<EnvFilter> {
    // The library treats an empty level as `error`.
    let is_level = |part: &str| !part.is_empty() && LevelFilter::from_str(part).is_ok();
    let is_unknown = |part: &&str| !part.contains(['=', '[']) && !is_level(part);
    if let Some(unknown) = level.split(',').map(str::trim).find(is_unknown) {
        anyhow::bail!(
            "log.level: `{unknown}` is not off, error, warn, info, debug, trace or a filter such as \
             info,dropdex::workers=debug"
        );
    }
    let filter = if level == "info" { INFO } else { level };
    EnvFilter::try_new(filter).map_err(|err| {
        anyhow::anyhow!("log.level: {err}; expected a level or a filter as in RUST_LOG")
    })
}

/// Formats milliseconds with three decimal places.
pub(super) fn milliseconds(time: Duration) -> f64 {
    time.as_micros() as f64 / 1000.0
}

/// The text format. A line ends with the fields of its request.
struct TextFormat<T>(Format<Full, T>);

impl<S, N, T> FormatEvent<S, N> for TextFormat<T>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    T: FormatTime,
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
            // These fields need no escaping, because they are our own or validated.
            let RequestFields { id, method, route, account } = current.line();
            write!(writer, " id={id} method={method} route={route}")?;
            account.map_or(Ok(()), |account| write!(writer, " account={account}"))
        })?;
        writeln!(writer)
    }
}

/// The JSON format.
struct Json;

/// One JSON line.
#[derive(Serialize)]
struct JsonLine<'a> {
    timestamp: &'a str,
    level: &'a str,
    target: &'a str,
    fields: &'a Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<RequestFields<'a>>,
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
        let mut fields = EventFields(Map::new());
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

/// Collects the fields of an event.
struct EventFields(Map<String, Value>);

impl EventFields {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for EventFields {
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
        self.put(field, truncated(format_args!("{value}"), bytes_max(field)));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, truncated(format_args!("{value:?}"), bytes_max(field)));
    }
}

/// Maximum length of a field.
fn bytes_max(field: &Field) -> usize {
    match field.name() {
        "message" | "error" => MESSAGE_BYTES_MAX,
        _ => FIELD_BYTES_MAX,
    }
}

/// Truncates a text to `bytes_max` bytes, before JSON escaping.
fn truncated(text: fmt::Arguments<'_>, bytes_max: usize) -> String {
    let mut text = text.to_string();
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max));
        text.push('…');
    }
    text
}

/// Writes `name=value`, or only the value for the message.
fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> fmt::Result {
    if field.name() != "message" {
        write!(writer, "{}=", field.name())?;
    }
    let mut escaped = Escaped { writer, left: bytes_max(field) };
    match write!(escaped, "{value:?}") {
        Err(_) if escaped.left == 0 => writer.write_char('…'),
        written => written,
    }
}

/// A writer that escapes invisible characters, and fails after `left` bytes.
struct Escaped<'a, 'w> {
    writer: &'a mut Writer<'w>,
    left: usize,
}

impl Write for Escaped<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for char in text.chars() {
            // Bidirectional marks and line separators are harmful but not control characters.
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

    fn escaped(text: &str, left: usize) -> (String, bool) {
        let mut out = String::new();
        let mut writer = Writer::new(&mut out);
        let whole = Escaped { writer: &mut writer, left }.write_str(text).is_ok();
        (out, whole)
    }

    #[test]
    fn unknown_levels_are_rejected() {
        for level in ["info", "WARN", "off", "info,hyper=debug", "dropdex::workers=trace, error"] {
            assert!(parse_level(level).is_ok(), "{level}");
        }
        for level in ["loud", "inof,hyper=debug", "", "hyper=loud"] {
            let err = parse_level(level).expect_err(level).to_string();
            assert!(err.starts_with("log.level: "), "{level}: {err}");
        }
    }

    #[test]
    fn a_log_line_is_dropped_for_a_stalled_reader_and_logging_resumes() {
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let output = Output::new(|| writer.as_fd());
        let line = [[b'x'; 1023].as_slice(), b"\n"].concat();
        let began = Instant::now();
        for _ in 0..2_000 {
            output.write_line(&line);
        }
        assert!(began.elapsed() < READER_WAIT * 1_000, "only the first line waits");
        assert!(output.state.lock().expect("no panic").is_stalled);
        let mut held = vec![0; 8 << 10];
        io::Read::read_exact(&mut reader, &mut held).expect("the pipe is full");
        output.write_line(b"after\n");
        assert!(!output.state.lock().expect("no panic").is_stalled);
        drop(writer);
        let mut rest = String::new();
        io::Read::read_to_string(&mut reader, &mut rest).expect("whole lines");
        assert!(rest.ends_with("x\nafter\n"), "{}", &rest[rest.len() - 20..]);
    }

    #[test]
    fn a_log_that_cannot_be_written_is_no_error() {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("Linux has it");
        Output::new(|| full.as_fd()).write_line(b"line\n");
        let (reader, writer) = io::pipe().expect("a pipe");
        drop(reader);
        Output::new(|| writer.as_fd()).write_line(b"line\n");
    }

    #[test]
    fn json_fields_are_truncated() {
        assert_eq!(truncated(format_args!("übrig"), 6), "übrig");
        assert_eq!(truncated(format_args!("übrig"), 3), "üb…");
        assert_eq!(truncated(format_args!("aü"), 2), "a…");
    }

    #[test]
    fn escaped_text_stays_on_one_line() {
        assert_eq!(escaped("a\nb\x1b[2J\u{202e}ü", 99), ("a\\nb\\u{1b}[2J\\u{202e}ü".into(), true));
        assert_eq!(escaped("übrig", 3), ("üb".into(), false));
    }
}
