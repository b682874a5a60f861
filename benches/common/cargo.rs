//! Arguments that cargo adds to those of a bench.

/// For a bench that parses its arguments with clap: `#[command(flatten)]`.
#[derive(clap::Args)]
pub struct CargoArguments {
    /// Given by `cargo bench`; changes nothing
    #[arg(long, hide = true)]
    bench: bool,
    /// Given by `cargo bench FILTER` to every bench: run only where the name has it
    #[arg(hide = true)]
    filter: Option<String>,
}

impl CargoArguments {
    /// Whether the filter excludes the bench of this name.
    pub fn skip(&self, name: &str) -> bool {
        self.filter.as_ref().is_some_and(|filter| !name.contains(filter))
    }
}
