//! Values that every stage shares. No file or socket is read here, except for the limit in [`memory`]; [`whole_file`]
//! writes files for its callers; only [`clock`], [`budget`] and [`turns`] read the time. Each type is parsed once,
//! where it enters, and cannot hold an invalid value afterwards.

pub mod budget;
pub mod cell;
pub mod change;
pub mod chat;
pub mod claim;
pub mod clock;
pub mod columns;
pub mod day;
pub mod dqs;
pub mod file_error;
pub mod header;
pub mod ids;
pub mod json;
pub mod kind;
pub mod language;
pub mod limits;
pub mod memory;
pub mod money;
pub mod name;
pub mod named;
pub mod net;
pub mod new_file;
pub mod number;
pub mod observation;
pub mod origin;
pub mod plan;
pub mod popularity;
pub mod rdap;
pub mod scope;
pub mod secret;
pub mod similar;
pub mod stage;
pub mod suffixes;
pub mod tables;
pub mod tag;
pub mod text_file;
pub mod time;
pub mod tld;
pub mod turns;
pub mod url;
pub mod watched_change;
pub mod watermark;
pub mod whole_file;
pub mod zone;
