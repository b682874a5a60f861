//! The lead of a cluster: one node does the work that is done once for all.
//!
//! Taking it is a record of the shared log, which names the term. Decisions of a leader are refused once
//! another node's term has begun: the log itself is the fence, and no clock of a node matters.

use std::sync::atomic::Ordering;

use compact_str::CompactString;

use super::Store;
use super::shared::{Basis, Leadership, Shared};
use crate::data::nodes::{Lead, Nodes, Publication};
use crate::error::WriteError;
use crate::event::{Event, Transaction};
use crate::journal::AppendError;

impl Store {
    /// The lead of the cluster, as far as the log is applied here.
    pub fn lead(&self) -> Lead {
        self.state().nodes.lead.clone()
    }

    /// Whether this process does the work that is done once for all nodes. A single node always does.
    pub fn leads(&self) -> bool {
        let Some(Leadership { node, term }) = &self.0.shared.leadership else { return true };
        let lead = &self.state().nodes.lead;
        lead.term == term.load(Ordering::Relaxed) && lead.node.as_ref() == Some(node)
    }

    /// Whether this process is the node with this name.
    pub fn is_node(&self, name: &str) -> bool {
        self.0.shared.leadership.as_ref().is_some_and(|it| it.node == name)
    }

    /// Takes the lead, which was `from` when the caller judged it. What is applied here may be older than that: a
    /// node that was just started has not read yet who leads.
    ///
    /// # Errors
    /// [`WriteError::Journal`]: another node was first, or the shared log cannot be reached.
    pub async fn take_lead(&self, from: &Lead) -> Result<(), WriteError> {
        let Some(Leadership { node, term }) = &self.0.shared.leadership else { return Ok(()) };
        let new = self.change_lead(from, Some(node.clone())).await?;
        term.store(new, Ordering::Relaxed);
        Ok(())
    }

    /// Gives the lead up, if this process has it, so that another node need not wait.
    ///
    /// # Errors
    /// [`WriteError::Journal`].
    pub async fn leave_lead(&self) -> Result<(), WriteError> {
        if self.0.shared.leadership.is_some() && self.leads() {
            self.change_lead(&self.lead(), None).await?;
        }
        Ok(())
    }

    /// The leader and the files that the records applied here agree on.
    pub fn nodes(&self) -> Nodes {
        self.state().nodes.clone()
    }

    /// Announces files that this leader has published. Returns once that is applied here.
    ///
    /// # Errors
    /// [`WriteError::Journal`]: another node leads, or the shared log cannot be reached.
    pub async fn announce_files(&self, publication: Publication) -> Result<(), WriteError> {
        self.append(vec![Event::FilesAnnounced { publication, served: false }], None).await
    }

    /// Lets all nodes serve the files that were announced. Returns once that is applied here.
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

    /// Returns what a decision of a worker is based on.
    ///
    /// # Errors
    /// [`AppendError::Superseded`]: another node does the work now.
    pub(crate) fn leaders_basis(&self) -> Result<Basis, AppendError> {
        // Read before the lead, so that a later lead conflicts with the decision.
        let since = self.0.shared.since();
        if self.leads() {
            Ok(Basis { since, by_leader: true })
        } else {
            Err(AppendError::Superseded)
        }
    }
}
