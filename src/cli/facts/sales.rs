//! `dropdex facts sales`: sales that resemble names, without a running server.

use std::io::{self, BufWriter, Write, stdout};
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use serde::Serialize;

use super::ReadArgs;
use crate::cli::print_json;
use crate::sales::{
    Backtest, Channel, Comparable, Comparables, Likeness, Market, Sales, SalesFile, SalesReport,
};
use crate::scorer::Scratch;
use crate::vocab::day::Day;
use crate::vocab::money::Currency;
use crate::vocab::name::{DomainName, NameError};

#[derive(Args, Debug)]
pub(super) struct SalesArgs {
    /// CSV files of sales, with columns such as domain, price, currency, date, venue, channel
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// List the sales of names similar to this one
    #[arg(long = "name", value_name = "NAME", value_parser = parse_name)]
    names: Vec<DomainName>,
    /// Show only sales of this channel: auction, retail or unknown
    #[arg(long, value_name = "CHANNEL")]
    channel: Option<Channel>,
    /// Compare names with sales before this day [default: today]
    #[arg(long, value_name = "DAY")]
    as_of: Option<Day>,
    #[command(flatten)]
    read: ReadArgs,
    /// Print JSON: one line for each file, one for the markets, one for each name
    #[arg(long)]
    json: bool,
}

fn parse_name(text: &str) -> Result<DomainName, NameError> {
    DomainName::parse_or_address(text)
}

/// A file in the output of `--json`.
#[derive(Serialize)]
struct FileLine {
    file: String,
    report: SalesReport,
}

/// The markets in the output of `--json`.
#[derive(Serialize)]
struct MarketsLine<'a> {
    /// Sales that were reported twice and count once.
    repeats: u64,
    markets: Vec<MarketLine<'a>>,
}

#[derive(Serialize)]
struct MarketLine<'a> {
    channel: Channel,
    currency: Currency,
    sales: usize,
    backtest: &'a Backtest,
}

/// A name in the output of `--json`.
#[derive(Serialize)]
struct NameLine<'a> {
    domain: &'a DomainName,
    comparables: Vec<Comparables<'a>>,
}

/// Runs the command.
///
/// # Errors
/// The message to print before exit 1.
pub(super) fn run(args: &SalesArgs, today: Day) -> anyhow::Result<()> {
    let (mappings, choices) = (&args.read.map, args.read.choices());
    let (mut rows, mut unreadable) = (Vec::new(), 0);
    for path in &args.files {
        let file = path.display().to_string();
        match SalesFile::open(path, mappings, choices) {
            Ok(SalesFile { sales, report }) => {
                rows.extend(sales);
                match args.json {
                    true => print_json(&FileLine { file, report })?,
                    false => print_report(&file, &report)?,
                }
            }
            Err(why) => {
                unreadable += 1;
                super::print_error(file, &why, args.json)?;
            }
        }
    }
    let sales = Sales::new(rows);
    let is_shown = |channel: Channel| args.channel.is_none_or(|wanted| wanted == channel);
    let markets: Vec<_> = sales.markets.iter().filter(|it| is_shown(it.channel)).collect();
    match args.json {
        true => print_json(&MarketsLine::new(&sales, &markets))?,
        false => print_markets(&sales, &markets)?,
    }
    let as_of = args.as_of.unwrap_or(today);
    let mut scratch = Scratch::default();
    for domain in &args.names {
        let mut comparables = sales.comparables(&Likeness::of(domain, &mut scratch), as_of);
        comparables.retain(|found| is_shown(found.channel));
        match args.json {
            true => print_json(&NameLine { domain, comparables })?,
            false => print_comparables(domain, &comparables)?,
        }
    }
    if unreadable > 0 {
        bail!("files that cannot be read: {unreadable} of {}", args.files.len());
    }
    Ok(())
}

impl<'a> MarketsLine<'a> {
    fn new(sales: &Sales, markets: &[&'a Market]) -> MarketsLine<'a> {
        let line = |market: &&'a Market| MarketLine {
            channel: market.channel,
            currency: market.currency,
            sales: market.len(),
            backtest: &market.backtest,
        };
        MarketsLine { repeats: sales.repeats, markets: markets.iter().map(line).collect() }
    }
}

fn print_report(file: &str, report: &SalesReport) -> io::Result<()> {
    let mut out = BufWriter::new(stdout().lock());
    let SalesReport { preset, rows, sales, unsold, refused_rows, .. } = report;
    writeln!(
        out,
        "{file}: {preset}; rows: {rows}, sales: {sales}, unsold: {unsold}, refused: {refused_rows}"
    )?;
    super::print_columns(&mut out, &report.ignored, &report.dropped)?;
    super::print_refusals(&mut out, &report.refused)?;
    out.flush()
}

fn print_markets(sales: &Sales, markets: &[&Market]) -> io::Result<()> {
    let mut out = BufWriter::new(stdout().lock());
    if sales.repeats > 0 {
        writeln!(out, "reported twice and counted once: {}", sales.repeats)?;
    }
    for market in markets {
        let Market { channel, currency, backtest, .. } = market;
        writeln!(out, "{channel}, {}: {} sales. {backtest}", currency.as_str(), market.len())?;
    }
    out.flush()
}

fn print_comparables(domain: &DomainName, comparables: &[Comparables<'_>]) -> io::Result<()> {
    let mut out = BufWriter::new(stdout().lock());
    writeln!(out, "{domain}:")?;
    if comparables.is_empty() {
        writeln!(out, "  no sales of similar names")?;
    }
    for found in comparables {
        writeln!(out, "  {}", found.summary)?;
        for Comparable { domain, price, date, venue, reasons } in &found.sales {
            let (price, currency) = (price.to_string(), found.currency.as_str());
            let venue = venue.map_or(String::new(), |venue| format!(" ({venue})"));
            let reasons = reasons.join(", ");
            writeln!(out, "    {date} {price:>11} {currency}  {domain}{venue}: {reasons}")?;
        }
    }
    out.flush()
}
