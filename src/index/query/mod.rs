//! Queries: [`index::Index`] and, by kind of query, what it returns.

pub mod appraise;
pub mod dossier;
pub mod drops;
pub mod index;
pub mod overview;
pub mod preview;
pub mod profile;
pub mod rows;
pub mod search;
pub mod summary;
