//! Facts of an account (`data/docs/facts.md`). An edition is larger than a record, so its parts are appended first;
//! the last event puts it into use.

use compact_str::CompactString;

use super::data::account::Account;
use super::data::facts::{Facts, FactsRow};
use super::decide::Decided;
use super::error::WriteError;
use super::event::{Event, RowOf};
use super::store::{Caller, Store};
use crate::vocab::limits::{FACT_MAPPINGS_MAX, FACT_SOURCES_MAX, FACTS_ROWS_MAX};

impl Store {
    /// Replaces the edition of a source. The caller adds one edition of an account at a time.
    ///
    /// # Errors
    /// [`WriteError`]: too many sources or rows, too much data, another node adds an edition at the same time.
    pub async fn put_facts(
        &self,
        caller: &Caller,
        row: FactsRow,
        bytes: &[u8],
    ) -> Result<(), WriteError> {
        self.admit(caller)?;
        let check = |account: &Account| {
            let others = || {
                let sources = account.data.facts.sources();
                sources.filter(|it| it.row.source != row.source)
            };
            let rows: u64 = others().map(|it| it.row.rows).sum();
            if others().count() >= FACT_SOURCES_MAX as usize {
                return Err(WriteError::TooMany {
                    what: "sources of facts",
                    limit: FACT_SOURCES_MAX,
                });
            }
            if rows + row.rows > FACTS_ROWS_MAX {
                let limit = FACTS_ROWS_MAX as u32;
                return Err(WriteError::TooMany { what: "rows of facts", limit });
            }
            Ok(())
        };
        let mut count = 0;
        for (number, part) in (0..).zip(Facts::parts(bytes)) {
            self.write_to(caller.account, |account, _| {
                check(account)?;
                begun(account, number)?;
                let part = Event::FactsPart { account: account.id, number, bytes: part };
                Ok(Decided::new([part], ()))
            })
            .await?;
            count = number + 1;
        }
        self.write_to(caller.account, |account, _| {
            check(account)?;
            begun(account, count)?;
            Ok(Decided::new(
                [Event::FactsPut { account: account.id, row: Box::new(row.clone()) }],
                (),
            ))
        })
        .await
    }

    /// Removes a source.
    ///
    /// # Errors
    /// [`WriteError::NotFound`].
    pub async fn remove_facts(&self, caller: &Caller, source: &str) -> Result<(), WriteError> {
        self.write(caller, |account, _| {
            account.data.facts.source(source).ok_or(WriteError::NotFound)?;
            let removed = Event::Removed { account: account.id, row: RowOf::Facts(source.into()) };
            Ok(Decided::new([removed], ()))
        })
        .await
    }

    /// Remembers how files with a fingerprint are to be read; `None` forgets it.
    ///
    /// # Errors
    /// [`WriteError`]: too many are remembered, or none to forget.
    pub async fn map_facts(
        &self,
        caller: &Caller,
        print: CompactString,
        mapping: Option<CompactString>,
    ) -> Result<(), WriteError> {
        self.write(caller, |account, _| {
            let known = account.data.facts.mappings().find(|(known, _)| *known == print);
            if known.is_none() && mapping.is_none() {
                return Err(WriteError::NotFound);
            }
            if known.is_none() && account.data.facts.mappings().len() >= FACT_MAPPINGS_MAX as usize
            {
                let what = "descriptions of files of facts";
                return Err(WriteError::TooMany { what, limit: FACT_MAPPINGS_MAX });
            }
            let is_new = known.map(|(_, text)| text) != mapping.as_deref();
            let event = Event::FactsMapped { account: account.id, print, mapping };
            Ok(Decided::new(Some(event).filter(|_| is_new), ()))
        })
        .await
    }
}

/// Checks that the parts before this one wait.
fn begun(account: &Account, parts: u32) -> Result<(), WriteError> {
    let (waiting, _) = account.data.facts.pending();
    let what = "another file of facts was added at the same time; add this one again";
    let fits = parts == 0 || parts == waiting;
    if fits { Ok(()) } else { Err(WriteError::Conflict(what.to_owned())) }
}
