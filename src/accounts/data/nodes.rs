//! State that the nodes of a cluster share: which node leads, and which files all of them serve.

use compact_str::CompactString;

use crate::data::fields::row;

/// Publications whose files stay in the object store.
pub const PUBLICATIONS_KEPT: usize = 2;

/// Agreed by the records of the shared log; the default on a single node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nodes {
    pub lead: Lead,
    /// Published and not served yet.
    pub announced: Option<Publication>,
    /// The newest is served. Newest first, at most [`PUBLICATIONS_KEPT`].
    pub served: Vec<Publication>,
}

row!(Nodes { } optional { 1 lead, 2 announced, 3 served });

/// The node that does the work which is done once for all, and its term.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lead {
    /// Rises whenever another node takes the lead, or the leader gives it up. 0 before the first.
    pub term: u64,
    pub node: Option<CompactString>,
}

row!(Lead { 1 term } optional { 2 node });

/// Files that a leader has put into the object store: lists, index and log of changes at one moment.
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

    /// Announces a publication, or serves what was announced, if it is this.
    pub fn publish(&mut self, publication: Publication, served: bool) {
        if !served {
            self.announced = Some(publication);
        } else if self.announced.take_if(|it| *it == publication).is_some() {
            self.served.insert(0, publication);
            self.served.truncate(PUBLICATIONS_KEPT);
        }
    }
}
