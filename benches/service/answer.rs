//! The only place where benches query the index. The module returns the whole response as JSON, so
//! that the measurement covers everything that a client waits for, except HTTP.

use std::io::Write;

use dropdex::http::rows::{DROP_MEMBERS, push_drops, push_search_results, tlds_json};
use dropdex::http::suggest::push_suggestions;
use dropdex::index::Index;
use dropdex::index::filter::{AsOf, Counting, DropFilter, SearchFilter, SuggestFilter};
use dropdex::vocab::name::DomainName;
use serde::Serialize;

/// A parsed query.
#[derive(Clone, Debug)]
pub enum Ask {
    Search(SearchFilter),
    Suggest(SuggestFilter),
    Drops(DropFilter),
    Dossier(DomainName),
}

/// Computes the response to `ask` and writes it into `body`, which is cleared first. The dossier of a
/// name that is not in the data is `null`.
///
/// # Errors
///
/// The query fails, which does not happen with a verified index.
pub fn answer(index: &Index, ask: &Ask, as_of: AsOf, body: &mut Vec<u8>) -> anyhow::Result<()> {
    body.clear();
    match ask {
        Ask::Search(filter) => {
            let page = index.search(filter, as_of);
            let (total, capped) = (page.total, page.capped);
            write!(body, "{{\"total\":{total},\"capped\":{capped},\"results\":")?;
            push_search_results(&page, body);
        }
        Ask::Suggest(asked) => {
            push_suggestions(index, asked, as_of, body);
            return Ok(());
        }
        Ask::Drops(filter) => {
            let page = index.drops(filter, as_of, Counting::Estimate)?;
            write!(body, "{{\"availableTlds\":{},\"drops\":", tlds_json(&page))?;
            push_drops(&page, DROP_MEMBERS, |_, _| {}, body);
        }
        Ask::Dossier(name) => {
            let dossier = index.dossier(name, as_of).map(|dossier| Known {
                length: dossier.length,
                current_status: dossier.status,
                drop_predicted_at: dossier.drop_predicted_at,
                latest_drop: dossier.latest_drop,
            });
            serde_json::to_writer(&mut *body, &dossier)?;
            return Ok(());
        }
    }
    body.push(b'}');
    Ok(())
}

/// The response to `GET /api/v1/domain/{name}`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Known<S, P, L> {
    length: u8,
    current_status: S,
    drop_predicted_at: P,
    latest_drop: L,
}
