//! Puts files into use on all nodes at the same record of the shared log.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

use tokio::sync::Notify;

use crate::accounts::Publication;
use crate::changes::{Appender, Files};
use crate::index::Index;
use crate::index::generation::live::LiveIndex;
use crate::workers::reload;

/// Fetched and opened files, ready to be put into use.
pub struct Prepared {
    pub publication: Publication,
    pub index: Arc<Index>,
    pub changes: Files,
}

/// The files that this node serves, and those that it should serve.
pub struct Switch {
    live: Arc<LiveIndex>,
    state: Mutex<SwitchState>,
    /// Notified when another index is served.
    published: Vec<Arc<Notify>>,
    /// Notified when the log puts files into use, or this node does.
    changed: Arc<Notify>,
}

#[derive(Default)]
struct SwitchState {
    /// A weak reference, so that the log of changes closes when the workers end.
    appender: Weak<Appender>,
    /// The files that the log has put into use, and the number of that record.
    wanted: Option<(Publication, u64)>,
    in_use: Option<Publication>,
    prepared: Option<Prepared>,
}

impl Switch {
    pub fn new(live: Arc<LiveIndex>, published: Vec<Arc<Notify>>) -> Switch {
        Switch { live, state: Mutex::default(), published, changed: Arc::default() }
    }

    /// Starts with the files that were in use when the process last ended, and those that the log
    /// now requires.
    pub fn begin(
        &self,
        appender: &Arc<Appender>,
        in_use: Option<Publication>,
        wanted: Option<Publication>,
    ) {
        appender.hold();
        let mut state = self.state();
        state.appender = Arc::downgrade(appender);
        state.in_use = in_use;
        // The log may have put newer files into use meanwhile.
        if state.wanted.is_none() {
            state.wanted = wanted.map(|wanted| (wanted, 0));
        }
        self.compare(&state);
    }

    /// Puts files into use as of the record `seq` of the shared log. Called in the order of the log.
    pub fn serve(&self, publication: &Publication, seq: u64) {
        let mut state = self.state();
        state.wanted = Some((publication.clone(), seq));
        self.show(&mut state);
    }

    /// Accepts fetched files. The files take effect at once if the log already holds the record
    /// that activates them.
    pub fn prepare(&self, prepared: Prepared) {
        let mut state = self.state();
        state.prepared = Some(prepared);
        self.show(&mut state);
    }

    /// Returns the files in use.
    pub fn in_use(&self) -> Option<Publication> {
        self.state().in_use.clone()
    }

    /// Returns the newest files that are in use or ready for use.
    pub fn newest(&self) -> Option<Publication> {
        let state = self.state();
        let prepared = state.prepared.as_ref().map(|it| it.publication.clone());
        prepared.or_else(|| state.in_use.clone())
    }

    /// Returns true if this node lacks the files that the log has put into use.
    pub fn is_behind(&self) -> bool {
        self.live.is_behind()
    }

    /// Returns true if these files are in use or ready for use.
    pub fn has(&self, publication: &Publication) -> bool {
        let state = self.state();
        state.in_use.as_ref() == Some(publication)
            || state.prepared.as_ref().is_some_and(|it| it.publication == *publication)
    }

    /// Waits for a change of the wanted or used files.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    fn show(&self, state: &mut SwitchState) {
        let Some((wanted, seq)) = state.wanted.clone() else { return };
        if let Some(prepared) = state.prepared.take_if(|it| it.publication == wanted) {
            let Prepared { publication, index, changes } = prepared;
            if let Some(appender) = state.appender.upgrade() {
                appender.show(&changes);
            }
            let generation = index.manifest().generation;
            let old = self.live.publish(index);
            // Dropping the files must not block this thread, which may be the thread of the log.
            let _ = thread::Builder::new().name("retire".into()).spawn(|| reload::retire(old));
            state.in_use = Some(publication);
            metrics::counter!("dropdex_index_swaps_total").increment(1);
            tracing::info!(%generation, record = seq, "new files are in use from this record on");
            self.published.iter().for_each(|reader| reader.notify_one());
        }
        self.compare(state);
    }

    /// Updates the flag that shows whether this node is behind the log.
    fn compare(&self, state: &SwitchState) {
        let wanted = state.wanted.as_ref().map(|(wanted, _)| wanted);
        self.live.set_behind(wanted.is_some() && wanted != state.in_use.as_ref());
        self.changed.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, SwitchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
