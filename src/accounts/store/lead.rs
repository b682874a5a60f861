//! The lead of a cluster: one node does the work that is needed only once.
//!
//! A node takes the lead with a record of the shared log, which names the term. Decisions of a
//! leader are refused once another node's term has begun: the log itself is the fence, independent
//! of the nodes' clocks.

use std::sync::atomic::Ordering;

use compact_str::CompactString;

use super::Store;
use super::shared::{Basis, Leadership, Shared};
use crate::data::nodes::{Lead, Nodes, Publication};
use crate::error::WriteError;
use crate::event::{Event, Transaction};
use crate::journal::AppendError;

impl Store {
    /// Returns the lead of the cluster, as far as the log is applied here.
    pub fn lead(&self) -> Lead {
        self.state().nodes.lead.clone()
    }

    /// Returns true if this process does the work that one node does for all. A single node always
    /// does it.
    pub fn leads(&self) -> bool {
        let Some(Leadership { node, term }) = &self.0.shared.leadership else { return true };
        let lead = &self.state().nodes.lead;
        lead.term == term.load(Ordering::Relaxed) && lead.node.as_ref() == Some(node)
    }

    /// Returns true if this process is the node with this name.
    pub fn is_node(&self, name: &str) -> bool {
        self.0.shared.leadership.as_ref().is_some_and(|it| it.node == name)
    }

    /// Takes the lead. `from` is the lead on which the caller based this decision. The state of
    /// this node may be older, because a node that was just started has not yet read which node
    /// leads.
    ///
    /// # Errors
    /// [`WriteError::Journal`]: another node was faster, or the shared log cannot be reached.
    pub async fn take_lead(&self, from: &Lead) -> Result<(), WriteError> {
        let Some(Leadership { node, term }) = &self.0.shared.leadership else { return Ok(()) };
        let new = self.change_lead(from, Some(node.clone())).await?;
        term.store(new, Ordering::Relaxed);
        Ok(())
    }

    /// Gives up the lead, if this process has it, so that another node need not wait.
    ///
    /// # Errors
    /// [`WriteError::Journal`].
    pub async fn leave_lead(&self) -> Result<(), WriteError> {
        if self.0.shared.leadership.is_some() && self.leads() {
            self.change_lead(&self.lead(), None).await?;
        }
        Ok(())
    }

    /// Returns the leader and the files according to the records applied here.
    pub fn nodes(&self) -> Nodes {
        self.state().nodes.clone()
    }

    /// Announces files that this leader has published. Returns once the record is applied here.
    ///
    /// # Errors
    /// [`WriteError::Journal`]: another node leads, or the shared log cannot be reached.
    pub async fn announce_files(&self, publication: Publication) -> Result<(), WriteError> {
        self.append(vec![Event::FilesAnnounced { publication, served: false }], None).await
    }

    /// Puts the announced files into use on all nodes. Returns once the record is applied here.
    ///
    /// # Errors
    /// As [`Store::announce_files`].
    pub async fn serve_files(&self, publication: Publication) -> Result<(), WriteError> {
        self.append(vec![Event::FilesAnnounced { publication, served: true }], None).await
    }

    async fn change_lead(
        &self,
        from: &Lead,
        node: Option<CompactString>,
    ) -> Result<u64, WriteError> {
        let shared: &Shared = &self.0.shared;
        shared.barrier().await?;
        let basis = Basis { since: shared.since(), by_leader: true };
        if self.lead() != *from {
            return Err(AppendError::Superseded.into());
        }
        let term = from.term + 1;
        let taken = Transaction(vec![Event::LeadTaken { lead: Lead { term, node } }]);
        shared.append(taken, basis, || {})?.durable().await?;
        Ok(term)
    }

    /// Returns the basis of a decision of a worker.
    ///
    /// # Errors
    /// [`AppendError::Superseded`]: another node does the work now.
    pub(crate) fn leaders_basis(&self) -> Result<Basis, AppendError> {
        // The position is read before the lead, so that a later lead conflicts with the decision.
        let since = self.0.shared.since();
        if self.leads() {
            Ok(Basis { since, by_leader: true })
        } else {
            Err(AppendError::Superseded)
        }
    }
}
