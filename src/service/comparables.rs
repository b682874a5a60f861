//! The operator's sales and those of accounts, as the dossiers of names compare with them.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;

use crate::fact_book::{Source, VisibleFacts};
use crate::facts_file::store::StoreError;
use crate::sales::{Comparables, Likeness, Sale, Sales};
use crate::scorer::Scratch;
use crate::vocab::budget;
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
    fn len(&self) -> usize {
        self.sales.markets.iter().map(|market| market.len()).sum()
    }

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

/// Sales of accounts that are kept, so that not every dossier reads them: about 50 MB.
const KEPT_MAX: usize = 200_000;

/// Sales from the files of accounts. They are few against those of a server, and read when a dossier needs them.
#[derive(Debug, Default)]
pub struct OwnSales {
    /// In the order of their last use. The digest is that of the editions.
    kept: Mutex<Vec<Arc<SalesSnapshot>>>,
}

impl OwnSales {
    /// Returns the sales among the caller's own facts; `None` without any.
    ///
    /// # Errors
    /// An edition cannot be read.
    pub fn among(&self, visible: &VisibleFacts) -> Result<Option<Arc<SalesSnapshot>>, StoreError> {
        let sources = visible.sources().iter();
        let is_of_sales = |it: &&Arc<Source>| it.is_own && Sale::are_in(it.edition.meta());
        let sources: Vec<_> = sources.filter(is_of_sales).collect();
        if sources.is_empty() {
            return Ok(None);
        }
        let mut hasher = DefaultHasher::new();
        sources.iter().for_each(|it| it.id().0.hash(&mut hasher));
        let digest = hasher.finish();
        let known = {
            let mut kept = self.lock();
            let at = kept.iter().position(|it| it.digest == digest);
            at.map(|at| kept.remove(at)).inspect(|it| kept.push(Arc::clone(it)))
        };
        if let Some(known) = known {
            return Ok(Some(known));
        }
        // Many sales take longer to read than a query may run.
        let sales = budget::shared(|| {
            let sales = sources.iter().map(|it| Sale::all_of(&it.edition));
            let sales: Vec<_> = sales.collect::<Result<_, StoreError>>()?;
            Ok::<_, StoreError>(Sales::new(sales.into_iter().flatten().collect()))
        })?;
        let new = Arc::new(SalesSnapshot { sales, digest });
        let mut kept = self.lock();
        kept.push(Arc::clone(&new));
        while kept.len() > 1 && kept.iter().map(|it| it.len()).sum::<usize>() > KEPT_MAX {
            kept.remove(0);
        }
        Ok(Some(new))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<SalesSnapshot>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
