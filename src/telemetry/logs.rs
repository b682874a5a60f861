//! The log: what is told, how much of it and in which form. Lines go to standard error.
//!
//! Text from outside can hold anything. In JSON it is escaped as JSON has it; as text, every field is
//! written without what ends a line or moves a terminal, and cut: a line of the log is a line of ours.

use std::fmt::{self, Debug, Write};
use std::io::{self, IsTerminal};

use tracing::field::Field;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::format::{Writer, debug_fn};

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
    let filter = EnvFilter::try_from_default_env().or_else(|_| {
        EnvFilter::try_new(level).map_err(|err| {
            anyhow::anyhow!("log.level: {err}; it is a word such as info, or as RUST_LOG has it")
        })
    })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal());
    if logs.json {
        builder.json().init();
    } else {
        builder.with_target(false).fmt_fields(debug_fn(write_field).delimited(" ")).init();
    }
    Ok(())
}

/// `name=value`; a message is its value alone.
fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> fmt::Result {
    let most = match field.name() {
        "message" => MESSAGE_BYTES_MAX,
        "error" => {
            write!(writer, "error=")?;
            MESSAGE_BYTES_MAX
        }
        name => {
            write!(writer, "{name}=")?;
            FIELD_BYTES_MAX
        }
    };
    let mut plain = Plain { writer, left: most };
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
    fn text_from_outside_stays_on_its_line() {
        assert_eq!(plain("a\nb\x1b[2J\u{202e}ü", 99), ("a\\nb\\u{1b}[2J\\u{202e}ü".into(), true));
        assert_eq!(plain("übrig", 3), ("üb".into(), false));
    }
}
