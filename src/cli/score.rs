//! `dropdex score`: scores names and explains the scores, without a running server.

mod table;
mod variants;

use std::io::{self, BufRead, BufWriter, Write, stdout};

use clap::Args;
use serde::Serialize;

use crate::config::Config;
use crate::index::error::OpenError;
use crate::index::generation::open::{self, Texts};
use crate::index::query::appraise::Standing;
use crate::scorer::{Scored, Scorer, Scratch, Signals};
use crate::vocab::dqs::Dqs;
use crate::vocab::name::{DomainName, NameError};

use variants::{Change, variants};

/// Score names, with the reasons
///
/// With an index, the score includes in how many TLDs the corpus holds the same label. Invalid names are
/// reported on standard error, or in their place with --json, and set exit code 1.
#[derive(Args, Debug)]
pub struct ScoreArgs {
    /// Names; `-` reads them from standard input, one per line
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Print one JSON object per line, in input order
    #[arg(long)]
    json: bool,
    /// Also score each name without its hyphens, without its digits, and under other suffixes
    #[arg(long)]
    why_not: bool,
}

/// A scored name in the output of `--json`.
#[derive(Serialize)]
struct ScoreLine<'a> {
    domain: &'a DomainName,
    tld: &'a str,
    length: u8,
    dqs: Dqs,
    /// Order among names with the same `dqs`.
    rank: u16,
    explanation: &'a str,
    signals: &'a Signals<'a>,
    #[serde(rename = "whyNot", skip_serializing_if = "Option::is_none")]
    why_not: Option<&'a [Variant]>,
}

/// The score of a variant of a name.
#[derive(Serialize)]
struct Variant {
    domain: DomainName,
    change: Change,
    dqs: Dqs,
    /// Difference from the score of the name itself.
    difference: i32,
}

/// Scores every name.
///
/// # Errors
/// The message to print before exit 1.
pub fn run(args: ScoreArgs, config: &Config) -> anyhow::Result<()> {
    let corpus = match open::open_texts(&config.index) {
        Ok(texts) => Some(texts),
        Err(OpenError::Missing(_)) => None,
        Err(err) => return Err(err.into()),
    };
    let mut scoring = Scoring {
        corpus,
        scratch: Scratch::default(),
        json: args.json,
        why_not: args.why_not,
        out: BufWriter::new(stdout().lock()),
        refused: 0,
        rows: 0,
    };
    for name in &args.names {
        if name == "-" {
            for line in io::stdin().lock().split(b'\n') {
                // A line that is not UTF-8 is an invalid name, not the end of the input.
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

/// Maximum characters to print of an invalid name; no valid name is longer.
const SHOWN_CHARS_MAX: usize = 253;

struct Scoring<W: Write> {
    corpus: Option<Texts>,
    scratch: Scratch,
    json: bool,
    why_not: bool,
    out: W,
    refused: u64,
    rows: u64,
}

impl<W: Write> Scoring<W> {
    fn score(&mut self, text: &str) -> anyhow::Result<()> {
        self.rows += 1;
        let name = match DomainName::parse_or_address(text) {
            Ok(name) => name,
            Err(err) => return self.refuse(text, err),
        };
        let scored = self.scored(&name);
        let why_not = self.why_not.then(|| self.variants(&name, scored.dqs));
        if self.json {
            self.print_json(&name, &scored, why_not.as_deref())
        } else {
            self.print_table(&name, &scored, why_not.as_deref())
        }
    }

    fn refuse(&mut self, text: &str, err: NameError) -> anyhow::Result<()> {
        self.refused += 1;
        let text: String = text.chars().take(SHOWN_CHARS_MAX).collect();
        if self.json {
            let refused = serde_json::json!({ "domain": text, "error": err.to_string() });
            writeln!(self.out, "{refused}")?;
        } else {
            writeln!(io::stderr(), "{text}: {err}")?;
        }
        Ok(())
    }

    fn scored(&mut self, name: &DomainName) -> Scored {
        let corpus = self.corpus.as_ref();
        let standing = corpus.map_or(Standing::WITHOUT_CORPUS, |texts| texts.standing(name));
        Scorer::shared().score(name, standing.spread, &mut self.scratch)
    }

    /// Scores the variants of a name whose score is `dqs`.
    fn variants(&mut self, name: &DomainName, dqs: Dqs) -> Vec<Variant> {
        let own = i32::from(dqs.points());
        let mut scored = |(change, domain)| {
            let dqs = self.scored(&domain).dqs;
            Variant { domain, change, dqs, difference: i32::from(dqs.points()) - own }
        };
        variants(name).into_iter().map(&mut scored).collect()
    }

    fn print_json(
        &mut self,
        name: &DomainName,
        scored: &Scored,
        why_not: Option<&[Variant]>,
    ) -> anyhow::Result<()> {
        let line = ScoreLine {
            domain: name,
            tld: name.tld(),
            length: name.length(),
            dqs: scored.dqs,
            rank: scored.rank,
            explanation: &scored.explanation,
            signals: &scored.signals,
            why_not,
        };
        serde_json::to_writer(&mut self.out, &line)?;
        writeln!(self.out)?;
        Ok(())
    }

    fn print_table(
        &mut self,
        name: &DomainName,
        scored: &Scored,
        why_not: Option<&[Variant]>,
    ) -> anyhow::Result<()> {
        if self.rows - self.refused > 1 {
            writeln!(self.out)?;
        }
        let signals = serde_json::to_value(&scored.signals)?;
        let score = table::Score {
            name,
            dqs: scored.dqs,
            explanation: &scored.explanation,
            signals: &signals,
            why_not: why_not.unwrap_or_default(),
        };
        table::write(&mut self.out, &score)?;
        Ok(())
    }
}
