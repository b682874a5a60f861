//! Queries: [`index::Index`], and a module for each kind of query. A query searches each layer of
//! the index and merges the results.

pub mod appraise;
pub mod dossier;
pub mod drops;
pub mod expectation;
pub mod expectation_model;
pub mod facets;
pub mod facts;
pub mod family;
pub mod index;
mod kept;
pub(crate) mod merge;
pub mod outcome_months;
pub mod outcome_tables;
pub mod outcomes;
pub mod overview;
pub mod profile;
pub mod rows;
pub mod sample;
mod scan;
pub mod search;
pub mod shared_tlds;
mod sort;
mod suffix_ranks;
pub mod suggest;
pub mod summary;
pub mod totals;
