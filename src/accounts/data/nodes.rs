//! State that the nodes of a cluster share: the leader, and the files that all nodes serve.

use compact_str::CompactString;

use crate::data::fields::row;

/// Number of publications whose files stay in the object store.
pub const PUBLICATIONS_KEPT: usize = 2;

/// State that the records of the shared log determine; the default on a single node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nodes {
    pub lead: Lead,
    /// The publication that has been announced but is not yet served.
    pub announced: Option<Publication>,
    /// Publications, newest first, up to [`PUBLICATIONS_KEPT`]. The newest is in use.
    pub served: Vec<Publication>,
}

row!(Nodes { } optional { 1 lead, 2 announced, 3 served });

/// The leader, which does the work that one node does for all, and its term.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lead {
    /// Number of the term, which rises whenever a node takes the lead or the leader gives it up. 0
    /// before the first term.
    pub term: u64,
    pub node: Option<CompactString>,
}

row!(Lead { 1 term } optional { 2 node });

/// Files that a leader has uploaded to the object store: lists, index and log of changes at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    /// The generation of the index.
    pub generation: u64,
    /// The key of the list of files in the object store.
    pub list: [u8; 32],
}

row!(Publication { 1 generation, 2 list });

impl Nodes {
    /// Changes the lead, unless its term has ended.
    pub fn lead(&mut self, lead: Lead) {
        if lead.term > self.lead.term {
            self.lead = lead;
        }
    }

    /// Announces a publication, or puts it into use if it was announced.
    pub fn publish(&mut self, publication: Publication, served: bool) {
        if !served {
            self.announced = Some(publication);
        } else if self.announced.take_if(|it| *it == publication).is_some() {
            self.served.insert(0, publication);
            self.served.truncate(PUBLICATIONS_KEPT);
        }
    }
}
