//! Words every stage shares. Pure values: nothing here reads a file, a socket or, but for
//! [`clock`] and [`budget`], the time. Each type is parsed once, at the door, and cannot hold a bad value after.

pub mod budget;
pub mod claim;
pub mod clock;
pub mod day;
pub mod dqs;
pub mod ids;
pub mod json;
pub mod limits;
pub mod money;
pub mod name;
pub mod net;
pub mod observation;
pub mod plan;
pub mod query;
pub mod rdap;
pub mod secret;
pub mod stage;
pub mod time;
pub mod url;
pub mod watermark;
