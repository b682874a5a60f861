//! The scorer as `benches/score` calls it: it reads standard input, one name per
//! line, and writes to standard output.
//!
//! ```text
//! segment WORDS   labels in; their parts out, `?` after parts that are not words. WORDS: word, cost
//! observe         names in; the inputs of the model's tables for each out
//! score           name, tldSpread, TLDs of frequent labels in; name, score, rank out
//! explain         as score; name, score, caps, language, words, explanation out
//! ```
//! Fields are separated by tabs. For a name that is refused, the line has only the name.

use std::io::{self, BufRead, BufWriter, Write};
use std::{env, fs};

use dropdex_scorer::{Coverage, Scorer, Scratch, Spread};
use dropdex_vocab::name::DomainName;

// The scorer's own module, which the library does not export.
#[path = "../../src/scorer/letters.rs"]
#[allow(dead_code, unused_imports, reason = "splitting takes a part of it, and no test")]
mod letters;
#[path = "../../src/scorer/percent.rs"]
#[allow(dead_code, reason = "splitting takes a part of it")]
mod percent;
#[path = "../../src/scorer/segment.rs"]
#[allow(dead_code, unused_imports, reason = "splitting takes a part of it, and no test")]
mod segment;
#[path = "../../src/scorer/trie.rs"]
#[allow(dead_code, unused_imports, reason = "splitting takes a part of it, and no test")]
mod trie;
mod trie_builder;

fn main() -> io::Result<()> {
    let args: Vec<_> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let mut out = BufWriter::new(io::stdout().lock());
    match args[..] {
        ["segment", words] => segment(words, &mut out)?,
        ["observe"] => observe(&mut out)?,
        ["score"] => score(&mut out)?,
        ["explain"] => explain(&mut out)?,
        _ => writeln!(io::stderr(), "does nothing by itself: benches/score runs it")?,
    }
    out.flush()
}

fn segment(words: &str, out: &mut impl Write) -> io::Result<()> {
    let text = fs::read_to_string(words)?;
    let rows = text.lines().filter_map(|line| line.split_once('\t'));
    let rows: Vec<_> = rows.filter_map(|(word, cost)| Some((word, cost.parse().ok()?))).collect();
    let words: Vec<_> = rows.iter().map(|&(word, _)| word).collect();
    let costs: Vec<u16> = rows.iter().map(|&(_, cost)| cost).collect();
    let nodes = trie_builder::build(&words);
    let segmenter = segment::Segmenter::new(&nodes, &costs);
    let mut search = segment::Search::default();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let mut before = "";
        for run in line.as_bytes().chunk_by(|one, next| kind(*one) == kind(*next)) {
            let run = std::str::from_utf8(run).unwrap_or_default();
            if !run.starts_with(|first: char| first.is_ascii_lowercase()) {
                write!(out, "{before}{run}")?;
                before = " ";
                continue;
            }
            let mut rest = run;
            for segment in segmenter.segment(run, letters::LetterModel::names(), &mut search).0 {
                let piece;
                (piece, rest) = rest.split_at(segment.len.into());
                write!(out, "{before}{piece}{}", if segment.word.is_some() { "" } else { "?" })?;
                before = " ";
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Letters, digits, hyphens.
fn kind(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' => 0,
        b'0'..=b'9' => 1,
        _ => 2,
    }
}

fn observe(out: &mut impl Write) -> io::Result<()> {
    let mut scratch = Scratch::default();
    let mut headed = false;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let Ok(name) = DomainName::parse(&line) else {
            writeln!(out, "{line}")?;
            continue;
        };
        let seen = Scorer::shared().observe(&name, &mut scratch);
        if !headed {
            let facts: Vec<_> = seen.facts.iter().map(|&(fact, _)| fact).collect();
            writeln!(
                out,
                "name\tsuffix\tlength\ttld_weight\tidn\tcap\tform\tmarket\t{}\twords",
                facts.join("\t")
            )?;
            headed = true;
        }
        let facts: Vec<_> = seen.facts.iter().map(|(_, fact)| fact.to_string()).collect();
        let cap = seen.caps.first().map_or(100, |cap| cap.max);
        writeln!(
            out,
            "{line}\t{}\t{}\t{}\t{cap}\t{}\t{}\t{}\t{}",
            seen.class.join("\t"),
            seen.tld_weight.get(),
            u8::from(seen.idn),
            seen.form,
            seen.market,
            facts.join("\t"),
            seen.words.join("|"),
        )?;
    }
    Ok(())
}

fn score(out: &mut impl Write) -> io::Result<()> {
    let mut scratch = Scratch::default();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let (text, spread) = spread_of(&line);
        let Ok(name) = DomainName::parse(text) else {
            writeln!(out, "{text}")?;
            continue;
        };
        let grade = Scorer::shared().base(&name, &mut scratch).with_spread(spread);
        writeln!(out, "{text}\t{}\t{}", grade.dqs, grade.rank)?;
    }
    Ok(())
}

fn explain(out: &mut impl Write) -> io::Result<()> {
    let mut scratch = Scratch::default();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let (text, spread) = spread_of(&line);
        let Ok(name) = DomainName::parse(text) else {
            writeln!(out, "{text}")?;
            continue;
        };
        let scored = Scorer::shared().score(&name, spread, &mut scratch);
        let caps: Vec<_> = scored.signals.caps.iter().map(|cap| cap.name).collect();
        let words: Vec<_> = scored.signals.words.iter().collect();
        writeln!(
            out,
            "{text}\t{}\t{}\t{}\t{}\t{}",
            scored.dqs,
            caps.join(" "),
            scored.signals.language.unwrap_or_default(),
            words.join(" "),
            scored.explanation,
        )?;
    }
    Ok(())
}

/// Returns the name of a line and its `tldSpread`. The coverage is that of the reference names,
/// unless the line gives the number of TLDs that frequent labels have in the corpus. Without a
/// `tldSpread`, the spread is unknown.
fn spread_of(line: &str) -> (&str, Spread) {
    let mut fields = line.split('\t');
    let name = fields.next().unwrap_or_default();
    let tlds = fields.next().and_then(|tlds| tlds.parse().ok());
    let found = fields.next().and_then(|found| found.parse().ok());
    let spread = match (tlds, found.map(Coverage::from_found)) {
        (Some(tlds), Some(coverage)) => Spread { tlds, coverage },
        (Some(tlds), None) => Spread::of(tlds),
        (None, _) => Spread::UNKNOWN,
    };
    (name, spread)
}
