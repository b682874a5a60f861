//! Expected shares of names that are registered again within a week (`data/docs/outcomes.md`).

pub mod model;
