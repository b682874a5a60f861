//! Turns dossiers into responses to queries. A rebuild writes an immutable *generation* to disk; the
//! server loads it into memory, verifies it and serves every query from it until a newer one
//! replaces it. A generation can be a small one that extends another: queries then search both, and
//! the results are those of one generation built from all lists.
//!
//! | module | holds | may use |
//! | --- | --- | --- |
//! | [`error`] | the errors of all modules | |
//! | [`filter`] | queries, parsed and in range | |
//! | [`storage`] | the files of a generation: manifest, checksums, free space | `error` |
//! | [`columns`] | the data structures that those files hold | `storage`, `filter` |
//! | [`query`] | [`Index`], and one file for each kind of query | `columns` |
//! | [`rules`] | alert rules matched against new drops | `query` |
//! | [`changes`] | changes of names between generations and days | `query` |
//! | [`generation`] | build, self-test, open, publish | all of the above |
//!
//! # Glossary
//!
//! - ***layer**: a generation, some of whose names may be hidden. An index has one layer, or a base
//!   and the delta that extends it. The delta has all names with the labels of newer lists, which
//!   are hidden in the base.
//! - **name order**: byte order of the full name in A-label form (`a-b.com`, `a.com`, `a.de`,
//!   `ab.com`). Names with the same label are adjacent.
//! - **ordinal**: position of a name in name order, from 0. Every name ever seen has one.
//! - **rank key**: score and label length as one `u16` that sorts like results: score descending,
//!   then length ascending ([`columns::rank_key`]).
//! - **rank order**: order of the drops list: rank key, then name order.
//! - **doc**: position of a dropped name in rank order, from 0. Names that were registered again
//!   after their latest drop have docs after those of the drops list.
//! - **place**: position in one of the orders that a search uses: all names, all names by TLD,
//!   dropped names, dropped names by TLD ([`columns::rank_table`]). For callers of an index, it is
//!   a doc among those of all layers.
//! - **dropped order**: name order restricted to names that dropped.
//! - **TLD number**: position of a TLD in the manifest, most frequent first.
//! - **block**: 16 consecutive names that are decoded together ([`columns::names`]), 64 whose
//!   trigrams are known, or 256
//!   consecutive places whose smallest rank keys are known ([`columns::rank_table`]).
//! - **separator**: shortest text that sorts after all names of one block of names and not after
//!   the first name of the next ([`columns::block_index`]).
//! - **posting**: a doc in the list of one trigram ([`columns::trigrams`]).
//! - **gram**: three neighbouring characters of a label, whose end counts as one; each has the blocks
//!   of 64 names that hold it ([`columns::name_grams`]).
//! - **stage code**: bit of a stage, plus a bit for "dropped today" ([`filter`]).
//! - **batch**: one ingested list; batches are numbered from 1.

pub mod changes;
mod columns;
pub mod error;
pub mod filter;
pub mod generation;
pub mod query;
pub mod rules;
pub mod storage;

use dropdex_corpus as corpus;
use dropdex_facts as facts;
#[cfg(test)]
use dropdex_feeds as feeds;
use dropdex_scorer as scorer;
use dropdex_vocab as vocab;

pub use columns::drop_history::EarlierDrop;
pub use columns::names::Names;
pub use error::QueryError;
pub use query::dossier::{Dossier, NameFacts, PipelineDrop};
pub use query::drops::DropsPage;
pub use query::index::Index;
pub use query::overview::Overview;
pub use query::search::SearchPage;
pub use query::totals::Total;
