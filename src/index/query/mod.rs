//! Queries: [`index::Index`] and, by kind of query, what it returns. A query asks each layer of the index
//! and merges what they find.

pub mod appraise;
pub mod dossier;
pub mod drops;
pub mod facets;
pub mod family;
pub mod index;
pub(crate) mod merge;
pub mod overview;

pub mod profile;
pub mod rows;
mod scan;
pub mod search;
mod shared_tlds;
mod sort;
pub mod summary;
mod totals;
