//! `/overview`: charts of the day. The content is the same for all viewers, so it is rendered once per
//! day and index generation.

mod charts;
mod panels;

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use maud::{Markup, PreEscaped};

use crate::Web;
use crate::error::PageError;
use crate::index::Index;
use crate::index::filter::AsOf;
use crate::index::storage::manifest::GenerationId;
use crate::layout::{NavItem, Page};
use crate::service::work;
use crate::viewer::Viewer;
use crate::vocab::budget;

pub fn routes() -> Router<Web> {
    Router::new().route("/overview", get(show_overview))
}

/// The last rendered overview.
#[derive(Default)]
pub struct Cache(Mutex<Option<(Key, Arc<str>)>>);

/// Cache key.
type Key = (GenerationId, AsOf);

impl Cache {
    fn get(&self, key: Key) -> Option<Arc<str>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.as_ref().filter(|(of, _)| *of == key).map(|(_, made)| Arc::clone(made))
    }

    /// Returns the cached overview or renders it. Concurrent requests may render it twice.
    fn main(&self, index: &Index, as_of: AsOf) -> Arc<str> {
        let key = (index.manifest().generation, as_of);
        if let Some(made) = self.get(key) {
            return made;
        }
        let made = budget::shared(|| panels::main(&index.overview(as_of), as_of));
        let made: Arc<str> = made.into_string().into();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = Some((key, Arc::clone(&made)));
        made
    }
}

/// `GET /overview`.
async fn show_overview(State(web): State<Web>, viewer: Viewer) -> Result<Markup, PageError> {
    let (index, as_of) = (web.app.live.current(), web.app.as_of(viewer.now));
    let known = web.overview.get((index.manifest().generation, as_of)).is_some();
    let cost = if known { 0 } else { u32::MAX };
    let main = work::run(cost, move || Ok(web.overview.main(&index, as_of))).await?;
    Ok(Page::new("Overview", "Drops per day, by TLD and by score, and the best names of tomorrow.")
        .at(NavItem::Overview)
        .styles(&["components.css", "overview.css"])
        .show(Some(&viewer), PreEscaped(main.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overviews_are_cached_per_day_and_generation() {
        let cache = Cache::default();
        let as_of = AsOf { today: "2026-03-15".parse().expect("a day"), catch_days: 5 };
        let key = (GenerationId(1), as_of);
        *cache.0.lock().expect("not poisoned") = Some((key, "made".into()));
        assert_eq!(cache.get(key).as_deref(), Some("made"));
        assert!(cache.get((GenerationId(2), as_of)).is_none());
        let tomorrow = AsOf { today: as_of.today.plus(1), ..as_of };
        assert!(cache.get((GenerationId(1), tomorrow)).is_none());
    }
}
