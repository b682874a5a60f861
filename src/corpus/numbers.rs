//! Numbers of lists. No number is used twice, because each alert rule stores the number of the last
//! batch it was matched against. The file [`LAST`] stores the last assigned number. If an operator
//! removes the newest batches, the next list still gets a new number, and empty batches fill the
//! gap in the numbers.

use std::fs;
use std::io::{self, BufWriter, Write};

use chrono::{DateTime, Utc};

use crate::batch::{self, BatchMeta};
use crate::scorer::SCORER_VERSION;
use crate::vocab::file_error::AtPath;
use crate::vocab::new_file;
use crate::{Corpus, CorpusError};

/// The file with the last assigned number, beside the batches.
const LAST: &str = "LAST";

impl Corpus {
    /// Fills gaps and returns the number of the next batch.
    ///
    /// # Errors
    /// An I/O error, or the file with the last number is damaged.
    pub(super) fn next_number(&self, now: DateTime<Utc>) -> Result<u64, CorpusError> {
        let last = self.last_number()?;
        let mut next = self.files()?.last().map_or(0, |file| file.last) + 1;
        while next <= last {
            tracing::info!(batch = next, "adding an empty batch instead of a removed one");
            self.fill(next, now)?;
            next += 1;
        }
        Ok(next)
    }

    /// Stores the last assigned number.
    ///
    /// # Errors
    /// An I/O error.
    pub(super) fn note_number(&self, number: u64) -> Result<(), CorpusError> {
        let (draft, path) = (self.folder.join(".new-last"), self.folder.join(LAST));
        let mut file = BufWriter::new(new_file::create(&draft).at(&draft)?);
        writeln!(file, "{number}").and_then(|()| file.flush()).at(&draft)?;
        self.publish(file, &draft, &path)
    }

    fn last_number(&self) -> Result<u64, CorpusError> {
        let path = self.folder.join(LAST);
        let what = "not a batch number; remove the file";
        let number = match fs::read_to_string(&path) {
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(0),
            read => {
                read.and_then(|text| text.trim_end().parse().map_err(|_| io::Error::other(what)))
            }
        };
        Ok(number.at(&path)?)
    }

    fn fill(&self, number: u64, now: DateTime<Utc>) -> Result<(), CorpusError> {
        let draft = self.folder.join(".new-filler");
        let meta = BatchMeta {
            source: "removed".to_owned(),
            ingested_at: now,
            scorer_version: SCORER_VERSION,
            ..BatchMeta::default()
        };
        let file = batch::create(&draft)?.finish(&meta).at(&draft)?;
        self.publish(file, &draft, &self.path(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feeds::{Observation, Row, Sighting};
    use crate::ingest::Source;
    use crate::vocab::name::DomainName;

    fn ingest(corpus: &Corpus, name: &str) -> String {
        let now = DateTime::UNIX_EPOCH;
        let source = Source {
            name: name.to_owned(),
            sha256: *blake3::hash(name.as_bytes()).as_bytes(),
            format: "test".to_owned(),
            observed_at: now,
            ingested_at: now,
            origin: None,
            day: None,
            replaces: Vec::new(),
            zone: None,
        };
        let name = DomainName::parse(name).expect("a name");
        let sighting = Sighting::Known { registered: true };
        let seen = Observation { name, sighting, first_seen: None, observed_at: now };
        corpus.ingest(&source, std::iter::once(Ok(Row::Seen(seen)))).expect("ingested").batch
    }

    #[test]
    fn numbers_are_never_reused() {
        let data = tempfile::tempdir().expect("a folder");
        let corpus = Corpus::open(data.path()).expect("opens");
        let file = |number: u64| format!("batch-{number:010}.ddb");
        for number in 1..=4 {
            assert_eq!(ingest(&corpus, &format!("name{number}.com")), file(number));
        }
        fs::remove_file(corpus.path(4)).expect("removed");
        fs::remove_file(corpus.path(3)).expect("removed");
        assert_eq!(corpus.batches().expect("two").len(), 2, "gaps are filled when a list is added");
        assert_eq!(ingest(&corpus, "name3.com"), file(5));
        let rows: Vec<u64> =
            corpus.batches().expect("sound").iter().map(|batch| batch.meta().rows).collect();
        assert_eq!(rows, [1, 1, 0, 0, 1]);
        assert_eq!(ingest(&corpus, "name6.com"), file(6));
        fs::write(corpus.folder.join(LAST), "six").expect("written");
        let damaged = corpus.next_number(DateTime::UNIX_EPOCH).expect_err("refused");
        assert!(damaged.to_string().contains("LAST"), "{damaged}");
        // A corpus of an older version has no such file.
        fs::remove_file(corpus.folder.join(LAST)).expect("removed");
        assert_eq!(ingest(&corpus, "name7.com"), file(7));
    }
}
