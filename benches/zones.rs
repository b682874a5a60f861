//! Compares two days of a zone the size of a generic TLD, and measures the usual shell
//! commands for this task as well.
//!
//! `cargo bench --bench zones -- --count 10000000`; `--help` lists all options. Each step is a process
//! of its own, so that its memory is measured separately.

mod common;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, ensure};
use clap::Parser;
use common::cargo::CargoArguments;
use common::names::RealNames;
use dropdex::vocab::day::Day;
use dropdex::zones::{Keep, Tracker, ZoneSource};
use flate2::Compression;
use flate2::write::GzEncoder;

/// Compares two days of a zone generated from a list of real names.
#[derive(Parser)]
struct Arguments {
    /// Real names, one per line or in the first column of a CSV file; plain, gzip or zstd [default: the
    /// sample in data/sample]
    #[arg(long, value_name = "FILE")]
    names: Option<PathBuf>,
    /// Names in the zone
    #[arg(long, default_value_t = 5_000_000)]
    count: usize,
    /// Take a zone file: a folder, the file, its day
    #[arg(long, hide = true, num_args = 3)]
    take: Option<Vec<String>>,
    #[command(flatten)]
    cargo: CargoArguments,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if arguments.cargo.skip("zones") {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    if let Some(take) = arguments.take {
        let [folder, file, day] = &take[..] else { unreachable!("clap counts them") };
        let outcome = Tracker::open(Path::new(folder))?.take(
            Path::new(file),
            day.parse()?,
            ZoneSource::Zone,
            Keep::Drops,
        )?;
        let status = std::fs::read_to_string("/proc/self/status")?;
        let memory =
            status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: unknown");
        writeln!(
            out,
            "{outcome}; {}",
            memory.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
        )?;
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let real = RealNames::read(&arguments.names.unwrap_or_else(RealNames::sample_path))?;
    let owners = owners(&real, arguments.count)?;
    let files = [folder.path().join("a.gz"), folder.path().join("b.gz")];
    // Of a hundred thousand names of .com, about seventy leave per day, and about eighty-five are
    // added.
    for (at, file) in files.iter().enumerate() {
        let is_in =
            |number: usize| number % 1_400 != at * 700 || at == 0 && number.is_multiple_of(3);
        write_zone(file, at, owners.iter().enumerate().filter(|(number, _)| is_in(*number)))?;
    }
    let count = owners.len();
    drop(owners);
    let [a, b] = files.each_ref().map(|file| file.display().to_string());
    let kept = folder.path().join("kept").display().to_string();
    let exe = std::env::current_exe()?;
    let mut shell = |what: &str, names: usize, script: &str| -> anyhow::Result<()> {
        let mut command = Command::new("bash");
        command.args(["-c", script]).env("LC_ALL", "C");
        run(&mut out, what, names, &mut command)
    };
    shell("unpack both: zcat", 2 * count, &format!("zcat {a} {b} | wc -c"))?;
    let names = |file: &str| format!("<(zcat {file} | awk '$4 == \"ns\" {{ print $1 }}' | uniq)");
    shell(
        "zcat, awk, uniq, comm",
        2 * count,
        &format!("comm -3 {} {} | wc -l", names(&a), names(&b)),
    )?;
    for (file, day) in [(&a, 0), (&b, 1)] {
        let day = "2026-11-20".parse::<Day>()?.plus(day).to_string();
        let mut command = Command::new(&exe);
        command.args(["--take", &kept, file, &day]);
        run(&mut out, "dropdex, one file", count, &mut command)?;
    }
    Ok(())
}

/// Returns labels in the order of a zone file.
fn owners(real: &RealNames, count: usize) -> anyhow::Result<Vec<Box<str>>> {
    let corpus = real.extend(count * 5 / 4, 1)?;
    let mut owners: Vec<Box<str>> = corpus
        .iter()
        .map(|name| format!("{}.", name.as_str().split('.').next().unwrap_or_default()).into())
        .collect();
    owners.sort_unstable();
    owners.dedup();
    owners.truncate(count);
    Ok(owners)
}

fn write_zone<'a>(
    file: &Path,
    serial: usize,
    owners: impl Iterator<Item = (usize, &'a Box<str>)>,
) -> anyhow::Result<()> {
    let packed = GzEncoder::new(File::create(file)?, Compression::default());
    let mut zone = BufWriter::with_capacity(1 << 20, packed);
    let soa = format!(
        "com.\t900\tin\tsoa\ta.gtld-servers.net. nstld.verisign-grs.com. {serial} 1800 900 604800 86400\n"
    );
    zone.write_all(soa.as_bytes())?;
    for (number, owner) in owners {
        let host = number * 7_919 % 1_000;
        for server in [1, 2] {
            writeln!(zone, "{owner}com.\t172800\tin\tns\tns{server}.host{host}.net.")?;
        }
        if number.is_multiple_of(30) {
            writeln!(
                zone,
                "{owner}com.\t86400\tin\tds\t{host} 13 2 5a1f8c21e01f6c3b9d2a4770ab12cd34"
            )?;
        }
    }
    zone.write_all(soa.as_bytes())?;
    zone.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?;
    Ok(())
}

/// Runs a command; prints its rate and its output.
fn run(
    out: &mut impl Write,
    what: &str,
    names: usize,
    command: &mut Command,
) -> anyhow::Result<()> {
    let started = Instant::now();
    let done = command.output().with_context(|| what.to_owned())?;
    let seconds = started.elapsed().as_secs_f64();
    ensure!(done.status.success(), "{what}: {}", String::from_utf8_lossy(&done.stderr));
    let pace = names as f64 / seconds;
    let said = String::from_utf8_lossy(&done.stdout);
    writeln!(out, "{what:<22} {names:>11} in {seconds:>7.2} s {pace:>11.0} /s  {}", said.trim())?;
    Ok(())
}
