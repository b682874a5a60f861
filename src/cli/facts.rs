//! `dropdex facts`: shows how files of facts are read, and manages the sources of a server.

mod sales;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, BufWriter, Write, stdout};
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::cli::facts_of_server::{self, AddArgs};
use crate::cli::print_json;
use crate::config::Config;
use crate::facts::{
    Choices, DateOrder, FactRow, FactsFile, Fingerprint, Mapping, ReadColumn, Refusal, Report,
    Value,
};
use crate::vocab::day::Day;
use crate::vocab::money::Currency;

/// Number of rows that are shown of a file.
const ROWS_SHOWN: usize = 5;

/// Read files of facts about names, such as exports of registrars and link tools
#[derive(Args, Debug)]
pub struct FactsArgs {
    #[command(subcommand)]
    command: FactsCommand,
}

#[derive(Subcommand, Debug)]
enum FactsCommand {
    /// Show how files are read: export, columns, refused rows, first rows; stores nothing
    ///
    /// Known exports are recognised by their headers; others need a canonical header or --map. Columns
    /// with personal data or secrets are dropped. Exit code 1 if a file cannot be read.
    Inspect(InspectArgs),
    /// Add files to the sources that all accounts see; rows replace those of the same key
    Add(AddArgs),
    /// List these sources
    List,
    /// Remove one of these sources
    Remove {
        /// Name of the source, such as acme
        source: String,
    },
    /// Compare names with sales of similar names from your own files; stores nothing
    ///
    /// Shows which rows are read, and for each market how often the price of a name was within the range
    /// of earlier sales. Exit code 1 if a file cannot be read.
    Sales(sales::SalesArgs),
}

#[derive(Args, Debug)]
struct InspectArgs {
    /// CSV files, separated by commas, semicolons or tabs
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    read: ReadArgs,
    /// Print one JSON object per line, in the order of the files
    #[arg(long)]
    json: bool,
}

/// Choices for files that can be read in several ways.
#[derive(Args, Debug)]
struct ReadArgs {
    /// Order of day and month in columns that do not show it: dmy or mdy
    #[arg(long, value_name = "ORDER")]
    date_order: Option<DateOrder>,
    /// Currency of amounts that state none, such as USD
    #[arg(long, value_name = "CODE", value_parser = super::parse_currency)]
    currency: Option<Currency>,
    /// Columns of the files with one header, in their order, empty for columns to ignore:
    /// FINGERPRINT=domain,,acme.rank:int
    #[arg(long, value_name = "MAPPING")]
    map: Vec<Mapping>,
}

impl ReadArgs {
    fn choices(&self) -> Choices {
        Choices { date_order: self.date_order, currency: self.currency, ..Choices::default() }
    }
}

/// A file in the output of `--json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FileLine<'a> {
    file: String,
    preset: &'a str,
    fingerprint: Fingerprint,
    delimiter: char,
    header_line: u64,
    report: &'a Report,
    /// The first rows.
    rows: Vec<RowLine<'a>>,
}

/// A row in the output of `--json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RowLine<'a> {
    key: String,
    as_of: Option<Day>,
    facts: BTreeMap<String, &'a Value>,
}

/// A file that cannot be read, in the output of `--json`.
#[derive(Serialize)]
struct ErrorLine {
    file: String,
    error: String,
}

/// Runs the command.
///
/// # Errors
/// The message to print before exit 1.
pub fn run(args: FactsArgs, config: &Config) -> anyhow::Result<()> {
    match args.command {
        FactsCommand::Inspect(args) => inspect(&args),
        FactsCommand::Add(args) => facts_of_server::add(args, config),
        FactsCommand::List => facts_of_server::list(config),
        FactsCommand::Remove { source } => facts_of_server::remove(&source, config),
        FactsCommand::Sales(args) => sales::run(&args, config.clock.today()),
    }
}

fn inspect(args: &InspectArgs) -> anyhow::Result<()> {
    let mut unreadable = 0;
    for path in &args.files {
        let file = path.display().to_string();
        match FactsFile::open(path, &args.read.map, args.read.choices()) {
            Ok(facts) if args.json => print_json(&FileLine::new(file, &facts))?,
            Ok(facts) => print_text(path, &facts)?,
            Err(why) => {
                unreadable += 1;
                print_error(file, &why, args.json)?;
            }
        }
    }
    if unreadable > 0 {
        bail!("files that cannot be read: {unreadable} of {}", args.files.len());
    }
    Ok(())
}

/// Reports a file that cannot be read, in its place with `--json`.
fn print_error(file: String, why: &impl Display, json: bool) -> anyhow::Result<()> {
    let error = why.to_string();
    match json {
        true => print_json(&ErrorLine { file, error }),
        false => Ok(writeln!(io::stderr(), "{file}: {error}")?),
    }
}

fn print_columns(out: &mut impl Write, ignored: &[String], dropped: &[String]) -> io::Result<()> {
    for (what, headers) in [("ignored", ignored), ("dropped, may be personal or secret", dropped)] {
        if !headers.is_empty() {
            writeln!(out, "  {what}: {}", headers.join(", "))?;
        }
    }
    Ok(())
}

fn print_refusals(out: &mut impl Write, refused: &[Refusal]) -> io::Result<()> {
    for refusal in refused {
        let column = refusal.column.as_ref().map_or(String::new(), |column| format!(", {column}"));
        writeln!(out, "  line {}{column}: {}", refusal.line, refusal.reason)?;
    }
    Ok(())
}

/// Returns the known values of a row with their columns.
fn known<'a>(
    report: &'a Report,
    row: &'a FactRow,
) -> impl Iterator<Item = (&'a ReadColumn, &'a Value)> {
    let known =
        |(column, value): (&'a ReadColumn, &'a Option<Value>)| Some((column, value.as_ref()?));
    report.read.iter().zip(&row.values).filter_map(known)
}

impl<'a> FileLine<'a> {
    fn new(file: String, facts: &'a FactsFile) -> FileLine<'a> {
        let row = |row: &'a FactRow| RowLine {
            key: row.key.to_string(),
            as_of: row.as_of,
            facts: known(&facts.report, row)
                .map(|(column, value)| (column.fact.to_string(), value))
                .collect(),
        };
        FileLine {
            file,
            preset: facts.preset,
            fingerprint: facts.fingerprint,
            delimiter: facts.delimiter,
            header_line: facts.header_line,
            report: &facts.report,
            rows: facts.rows.iter().take(ROWS_SHOWN).map(row).collect(),
        }
    }
}

fn print_text(path: &Path, facts: &FactsFile) -> io::Result<()> {
    let FactsFile { preset, fingerprint, header_line, report, .. } = facts;
    let mut out = BufWriter::new(stdout().lock());
    writeln!(
        out,
        "{}: {preset}, header in line {header_line}, fingerprint {fingerprint}",
        path.display()
    )?;
    let Report { rows, usable, refused_rows, refused_cells, merged, disagreements, .. } = report;
    writeln!(
        out,
        "  rows: {rows}, usable: {usable}, refused: {refused_rows}, merged: {merged}; cells refused: \
         {refused_cells}, contradicted: {disagreements}"
    )?;
    writeln!(out, "  key: {} ({})", report.key.header, report.key.kind)?;
    for column in &report.read {
        let properties =
            [column.unit.map(|unit| unit.to_string()), column.scale.map(|top| format!("0-{top}"))];
        let direction = column.direction.map(|direction| format!("{direction} is better"));
        let properties: Vec<String> = properties.into_iter().chain([direction]).flatten().collect();
        let ReadColumn { header, fact, kind, known, .. } = column;
        let line =
            format!("  {fact:<32} {kind:<5} {known:>7} known  {header}  {}", properties.join(", "));
        writeln!(out, "{}", line.trim_end())?;
    }
    for column in &report.ambiguous {
        writeln!(out, "  not read: {}: {}", column.header, column.choose)?;
    }
    print_columns(&mut out, &report.ignored, &report.dropped)?;
    print_refusals(&mut out, &report.refused)?;
    for it in &report.contradicted {
        writeln!(out, "  line {}, {}: differs from an earlier row", it.line, it.column)?;
    }
    for row in facts.rows.iter().take(ROWS_SHOWN) {
        let as_of = row.as_of.map_or(String::new(), |day| format!(" ({day})"));
        let facts = known(report, row).map(|(column, value)| format!("{}={value}", column.fact));
        writeln!(out, "  {}{as_of}: {}", row.key, facts.collect::<Vec<_>>().join(", "))?;
    }
    out.flush()
}
