//! Dated files with the whole pipeline, and with the changes of a day, for clients that keep a copy.

pub mod table;

use dropdex_vocab as vocab;
