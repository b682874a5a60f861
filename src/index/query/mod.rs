//! Queries: [`index::Index`] and, by kind of query, what it returns.

pub mod appraise;
pub mod dossier;
pub mod drops;
pub mod facets;
pub mod family;
pub mod index;
pub mod overview;
pub mod preview;
pub mod profile;
pub mod rows;
mod scan;
pub mod search;
mod sort;
pub mod summary;
