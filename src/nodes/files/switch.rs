//! Puts files into use at one record of the shared log, on all nodes alike.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

use tokio::sync::Notify;

use crate::accounts::Publication;
use crate::changes::{Appender, Files};
use crate::index::Index;
use crate::index::generation::live::LiveIndex;
use crate::workers::reload;

/// Files of a publication that this node has, ready to be put into use.
pub struct Prepared {
    pub publication: Publication,
    pub index: Arc<Index>,
    pub changes: Files,
}

/// The files that this node serves, and those that it should.
pub struct Switch {
    live: Arc<LiveIndex>,
    state: Mutex<State>,
    /// Notified when another index is served.
    published: Vec<Arc<Notify>>,
    /// Notified when the log asks for files, or others are in use.
    changed: Arc<Notify>,
}

#[derive(Default)]
struct State {
    /// Ends with the workers, so that those who wait for changes learn of the end.
    appender: Weak<Appender>,
    /// The files that the log puts into use, and the record that does.
    wanted: Option<(Publication, u64)>,
    in_use: Option<Publication>,
    prepared: Option<Prepared>,
}

impl Switch {
    pub fn new(live: Arc<LiveIndex>, published: Vec<Arc<Notify>>) -> Switch {
        Switch { live, state: Mutex::default(), published, changed: Arc::default() }
    }

    /// Begins with what was in use when the process ended, and what the log asks for by now.
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
        // The log may have asked for more meanwhile.
        if state.wanted.is_none() {
            state.wanted = wanted.map(|wanted| (wanted, 0));
        }
        self.compare(&state);
    }

    /// Puts files into use from the record `seq` of the shared log on. Called in the order of the log.
    pub fn serve(&self, publication: &Publication, seq: u64) {
        let mut state = self.state();
        state.wanted = Some((publication.clone(), seq));
        self.show(&mut state);
    }

    /// Takes files that are there. If the log has put them into use before, they are used at once.
    pub fn prepare(&self, prepared: Prepared) {
        let mut state = self.state();
        state.prepared = Some(prepared);
        self.show(&mut state);
    }

    /// The files in use.
    pub fn in_use(&self) -> Option<Publication> {
        self.state().in_use.clone()
    }

    /// The newest files that are in use or ready to be.
    pub fn newest(&self) -> Option<Publication> {
        let state = self.state();
        let prepared = state.prepared.as_ref().map(|it| it.publication.clone());
        prepared.or_else(|| state.in_use.clone())
    }

    /// Whether this node lacks the files that the log has put into use.
    pub fn is_behind(&self) -> bool {
        self.live.is_behind()
    }

    /// Whether these files are in use, or ready to be.
    pub fn has(&self, publication: &Publication) -> bool {
        let state = self.state();
        state.in_use.as_ref() == Some(publication)
            || state.prepared.as_ref().is_some_and(|it| it.publication == *publication)
    }

    /// Waits for something to do.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    fn show(&self, state: &mut State) {
        let Some((wanted, seq)) = state.wanted.clone() else { return };
        if let Some(prepared) = state.prepared.take_if(|it| it.publication == wanted) {
            let Prepared { publication, index, changes } = prepared;
            if let Some(appender) = state.appender.upgrade() {
                appender.show(&changes);
            }
            let generation = index.manifest().generation;
            let old = self.live.publish(index);
            // This may be the thread of the log.
            let _ = thread::Builder::new().name("retire".into()).spawn(|| reload::retire(old));
            state.in_use = Some(publication);
            metrics::counter!("dropdex_index_swaps_total").increment(1);
            tracing::info!(%generation, record = seq, "all nodes serve new files from this record on");
            self.published.iter().for_each(|reader| reader.notify_one());
        }
        self.compare(state);
    }

    /// Says whether this node serves what the log asks for.
    fn compare(&self, state: &State) {
        let wanted = state.wanted.as_ref().map(|(wanted, _)| wanted);
        self.live.set_behind(wanted.is_some() && wanted != state.in_use.as_ref());
        self.changed.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
