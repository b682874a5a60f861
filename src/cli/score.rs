//! `dropdex score`: score, signals and explanation of names, without a running server.

use std::io::{self, BufRead, BufWriter, Write, stdout};

use clap::Args;
use serde::Serialize;

use crate::config::Config;
use crate::index::open::{self, OpenError};
use crate::index::texts::Texts;
use crate::scorer::{Scored, Scorer, Scratch, Signals};
use crate::vocab::dqs::Dqs;
use crate::vocab::name::DomainName;

/// Score names, with the reasons
///
/// The score takes into account in how many TLDs the corpus holds the same label, when there is an
/// index. Refused names are told on standard error, or with --json in their place, and the exit
/// code is 1 then.
#[derive(Args, Debug)]
pub struct ScoreArgs {
    /// Names; `-` reads them from standard input, one a line
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Print one JSON object a line, in input order
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct ScoreLine<'a> {
    domain: &'a DomainName,
    tld: &'a str,
    length: u8,
    dqs: Dqs,
    explanation: &'a str,
    signals: &'a Signals<'a>,
}

/// Scores every name.
///
/// # Errors
/// What to print on stderr before exit 1.
pub fn run(args: ScoreArgs, config: &Config) -> anyhow::Result<()> {
    let corpus = match open::open_texts(&config.index) {
        Ok(names) => Some(names),
        Err(OpenError::Missing(_)) => None,
        Err(err) => return Err(err.into()),
    };
    let mut scoring = Scoring {
        corpus,
        scratch: Scratch::default(),
        json: args.json,
        out: BufWriter::new(stdout().lock()),
        refused: 0,
        rows: 0,
    };
    for name in &args.names {
        if name == "-" {
            for line in io::stdin().lock().split(b'\n') {
                // A line that is no UTF-8 is refused as a name is, not the whole input.
                let line = line?;
                let line = String::from_utf8_lossy(&line);
                if !line.trim().is_empty() {
                    scoring.score(line.trim())?;
                }
            }
        } else {
            scoring.score(name)?;
        }
    }
    scoring.out.flush()?;
    if scoring.refused > 0 {
        anyhow::bail!("names refused: {} of {}", scoring.refused, scoring.rows);
    }
    Ok(())
}

/// Characters of a refused name that are shown: no name is longer.
const SHOWN_CHARS_MAX: usize = 253;

struct Scoring<W: Write> {
    corpus: Option<Texts>,
    scratch: Scratch,
    json: bool,
    out: W,
    refused: u64,
    rows: u64,
}

impl<W: Write> Scoring<W> {
    fn score(&mut self, text: &str) -> anyhow::Result<()> {
        self.rows += 1;
        let name = match DomainName::parse(text) {
            Ok(name) => name,
            Err(err) => {
                self.refused += 1;
                if self.json {
                    let text: String = text.chars().take(SHOWN_CHARS_MAX).collect();
                    let refused = serde_json::json!({ "domain": text, "error": err.to_string() });
                    writeln!(self.out, "{refused}")?;
                } else {
                    let text: String = text.chars().take(SHOWN_CHARS_MAX).collect();
                    writeln!(io::stderr(), "{text}: {err}")?;
                }
                return Ok(());
            }
        };
        let spread = self
            .corpus
            .as_ref()
            .map_or(1, |names| (names.label_range(name.label()).len() as u32).max(1));
        let scored = Scorer::shared().score(&name, spread, &mut self.scratch);
        if self.json { self.print_json(&name, &scored) } else { self.print_table(&name, &scored) }
    }

    fn print_json(&mut self, name: &DomainName, scored: &Scored) -> anyhow::Result<()> {
        let line = ScoreLine {
            domain: name,
            tld: name.tld(),
            length: name.length(),
            dqs: scored.dqs,
            explanation: &scored.explanation,
            signals: &scored.signals,
        };
        serde_json::to_writer(&mut self.out, &line)?;
        writeln!(self.out)?;
        Ok(())
    }

    fn print_table(&mut self, name: &DomainName, scored: &Scored) -> anyhow::Result<()> {
        writeln!(self.out, "{:>3}  {name}", scored.dqs)?;
        writeln!(self.out, "     {}", scored.explanation)?;
        let signals = serde_json::to_value(&scored.signals)?;
        if let Some(points) = signals["points"].as_object() {
            let parts: Vec<String> = points
                .iter()
                .filter_map(|(part, points)| Some((part, points.as_i64()?)))
                .filter(|(_, points)| *points != 0)
                .map(|(part, points)| format!("{part} {points:+}"))
                .collect();
            writeln!(self.out, "     {}", parts.join(", "))?;
        }
        Ok(())
    }
}
