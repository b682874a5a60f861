//! Values that every stage shares. Nothing here reads a file or a socket, except [`memory`] its limit;
//! [`whole_file`] writes what others give it; only [`clock`], [`budget`] and
//! [`turns`] read the time. Each type is parsed once, where it enters, and cannot hold an invalid
//! value afterwards.

pub mod budget;
pub mod cell;
pub mod change;
pub mod chat;
pub mod claim;
pub mod clock;
pub mod columns;
pub mod conditions;
pub mod day;
pub mod dqs;
pub mod file_error;
pub mod filter;
pub mod ids;
pub mod json;
pub mod kind;
pub mod language;
pub mod limits;
pub mod matcher;
pub mod memory;
pub mod money;
pub mod name;
pub mod named;
pub mod net;
pub mod observation;
pub mod origin;
pub mod plan;
pub mod popularity;
pub mod query;
pub mod rdap;
pub mod scope;
pub mod secret;
pub mod similar;
pub mod stage;
pub mod suffixes;
pub mod tables;
pub mod tag;
pub mod time;
pub mod turns;
pub mod url;
pub mod watched_change;
pub mod watermark;
pub mod whole_file;
pub mod zone;
