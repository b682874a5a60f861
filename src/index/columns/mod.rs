//! Data structures of a generation. Each module writes its part of a generation from a
//! [`table::Table`], opens it again and serves look-ups by position. Modules exchange only numbers:
//! ordinals, docs, places, TLD numbers.

pub mod alphabet;
pub mod ascending;
pub mod block_index;
pub mod by_gram;
pub mod by_tld;
pub mod char_docs;
pub mod checks;
pub mod day;
pub mod day_column;
pub mod doc_sets;
pub mod drop_fields;
pub mod drop_history;
pub mod drop_segment;
pub mod drops_by_name;
pub mod drops_by_rank;
pub mod expected_taken;
pub mod facts;
pub mod first_batches;
#[cfg(test)]
pub mod fixtures;
pub mod hidden;
pub mod idn;
pub mod label;
pub mod lesser;
pub mod name_gram_writer;
pub mod name_grams;
pub mod names;
pub mod needles;
pub mod packed;
pub mod part;
pub mod parts;
pub mod popularity;
pub mod prefix_code;
pub mod properties;
pub mod rank_key;
pub mod rank_order;
pub mod rank_table;
pub mod records;
pub mod release_seconds;
pub mod returns;
pub mod replaced;
pub mod sampling;
pub mod scores;
pub mod slices;
pub mod spans;
pub mod suffix_ranks;
pub mod symbols;
pub mod table;
pub mod tlds;
pub mod trigram_writer;
pub mod trigrams;
pub mod typos;
