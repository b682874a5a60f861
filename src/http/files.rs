//! Dated files with the whole pipeline and with the changes of a day (`data/docs/copy.md`).

pub mod rows;
