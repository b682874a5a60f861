//! Files of a generation: written through a [`draft`], described by a [`manifest`], read and
//! verified by [`files`].

pub mod draft;
pub mod files;
pub mod manifest;
pub mod space;
