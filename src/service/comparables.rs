//! The operator's sales, as the dossiers of names compare with them.

use std::sync::Arc;

use arc_swap::ArcSwapOption;

use crate::sales::{Comparables, Likeness, Sales};
use crate::scorer::Scratch;
use crate::vocab::day::Day;
use crate::vocab::name::DomainName;

/// The sales of all files at one moment.
#[derive(Debug)]
pub struct SalesSnapshot {
    pub sales: Sales,
    /// Digest of the files, for the tags of responses.
    pub digest: u64,
}

impl SalesSnapshot {
    /// Returns the sales before a day of names that resemble a name, by market.
    pub fn comparables(&self, name: &DomainName, before: Day) -> Vec<Comparables<'_>> {
        self.sales.comparables(&Likeness::of(name, &mut Scratch::default()), before)
    }
}

/// The cell from which requests take the sales; empty without files of sales.
#[derive(Debug, Default)]
pub struct LiveSales(ArcSwapOption<SalesSnapshot>);

impl LiveSales {
    /// Returns the current sales; they stay valid while the caller holds them.
    pub fn current(&self) -> Option<Arc<SalesSnapshot>> {
        self.0.load_full()
    }

    /// Replaces the sales.
    pub fn publish(&self, snapshot: Option<SalesSnapshot>) {
        self.0.store(snapshot.map(Arc::new));
    }
}
