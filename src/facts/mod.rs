//! Reader of files with facts about names, such as exports of registrars, markets and link tools: a file comes in,
//! typed rows and a [`Report`] go out. Nothing is stored, and no name is looked up.
//!
//! `table` finds separator and header, `presets` and `columns` say what the columns hold, `read` decides over all
//! cells of a column how it is read (`value`, `dates`), reads the rows and merges those of one `key`. Columns that
//! may hold personal data or secrets (`headers`) are dropped by name: no cell of them is parsed, returned or
//! repeated in an error.

mod columns;
mod dates;
mod headers;
mod key;
mod presets;
mod table;
mod value;

use dropdex_vocab as vocab;
