//! History of a name, from the calendar, lists, the registry and the viewer's watchlist.

use maud::{Markup, html};

use super::{HELD_AGAIN, date, return_words};
use crate::index::EarlierDrop;
use crate::index::query::rows::Lifecycle;
use crate::service::watchlist::WatchRow;
use crate::vocab::day::Day;
use crate::vocab::evidence::Evidence;
use crate::vocab::observation::{Observation, RdapState};
use crate::vocab::time::UnixMs;

/// Past events of a name, and its next drop.
pub struct History<'a> {
    pub drop: Option<&'a Lifecycle>,
    /// Earlier drops, newest first.
    pub earlier: &'a [EarlierDrop],
    /// The newest observation.
    pub seen: Option<&'a Observation>,
    /// The entry in the viewer's watchlist.
    pub watched: Option<&'a WatchRow>,
}

/// A past or expected event.
struct HistoryEvent {
    day: Day,
    word: String,
    /// CSS class: `next` for an expected event, `sure` for one reported by the registry.
    class: &'static str,
}

impl History<'_> {
    /// Renders the events, newest first.
    pub fn shown(&self, today: Day) -> Markup {
        html! {
            ol.events {
                @for HistoryEvent { day, word, class } in self.events(today) {
                    li.(class) { (date(day, today)) span { (word) } }
                }
            }
        }
    }

    fn events(&self, today: Day) -> Vec<HistoryEvent> {
        let day_of = |at: UnixMs| Day::from_instant(at.instant()).unwrap_or(today);
        let mut events = Vec::new();
        let mut add = |day: Day, class: &'static str, word: String| {
            events.push(HistoryEvent { day, word, class });
        };
        if let Some(drop) = self.drop.filter(|drop| !drop.registered_again) {
            match drop.release.day > today {
                true => add(drop.release.day, "next", "Drops, expected".to_owned()),
                false => {
                    add(drop.release.day, "", "Expected to be available, not verified".to_owned())
                }
            }
        }
        if let Some(seen) = self.seen {
            add(day_of(seen.at), "sure", format!("Registry: {}", seen_word(seen)));
        }
        if let Some(watched) = self.watched {
            for former in watched.former().iter().rev() {
                let word = format!("Registry: {}, until then", state_word(former.state));
                add(day_of(former.last_seen), "sure", word);
            }
            add(day_of(watched.added_at()), "", "You added it to your watchlist".to_owned());
        }
        if let Some(drop) = self.drop {
            if drop.registered_again {
                add(drop.dropped, "", format!("Left the zone, {HELD_AGAIN}"));
            } else {
                if drop.pending_delete < drop.release.day {
                    let is_coming = drop.pending_delete > today;
                    let (class, more) = if is_coming { ("next", ", expected") } else { ("", "") };
                    add(drop.pending_delete, class, format!("Pending delete{more}"));
                }
                add(drop.dropped, "", exit_word(drop).to_owned());
            }
        }
        for drop in self.earlier {
            let after = drop.returned.map(|it| format!(", {}", return_words(it)));
            let after = after.unwrap_or_default();
            add(drop.date, "", format!("Left the zone{after}"));
        }
        events.sort_by_key(|event| std::cmp::Reverse(event.day));
        events
    }
}

/// Describes the event on the drop date.
pub fn exit_word(drop: &Lifecycle) -> &'static str {
    if drop.is_first_listing() { "First listed" } else { "Left the zone" }
}

/// Words for an observation: a free name is one on which two sources agree.
pub fn seen_word(seen: &Observation) -> &'static str {
    match seen.state {
        RdapState::Available if !seen.is_free() => "probably free",
        RdapState::Available => "free",
        RdapState::Reserved if !seen.is_verified() => "probably reserved",
        state => state_word(state),
    }
}

/// CSS class of an observation.
pub fn seen_class(seen: &Observation) -> &'static str {
    match seen.state {
        RdapState::Available if !seen.is_free() => "",
        state => state_class(state),
    }
}

/// A sentence that says what an observation is based on; `None` if its state says enough. `release` is
/// that of the latest drop.
pub fn seen_basis(seen: &Observation, release: Option<Day>, today: Day) -> Option<Markup> {
    let on_day =
        |word: &str| html! { @if let Some(day) = release { " " (word) " " (date(day, today)) } };
    let verified = seen.is_verified();
    let source = if seen.evidence.has(Evidence::WhoisNone) { "WHOIS" } else { "RDAP" };
    match seen.state {
        RdapState::Available if verified => Some(html! {
            (source) " and the DNS agree. Price and premium rules are the registrar's."
        }),
        RdapState::Available => Some(html! { "Only the registry's " (source) " server says so." }),
        RdapState::Expected => Some(html! {
            "By the registry's list it should be free" (on_day("since")) "; not confirmed."
        }),
        RdapState::Taken => Some(html! { "It is delegated in the DNS." }),
        RdapState::Reserved if verified => {
            Some(html! { "The registry keeps it; it is not for sale the usual way." })
        }
        RdapState::Reserved => Some(html! { "Registries keep such names." }),
        RdapState::PendingDelete if !verified => Some(html! {
            "Gone from the registry's data; the list releases it" (on_day("on")) "."
        }),
        RdapState::Unknown => Some(html! { "The answers prove nothing." }),
        _ => None,
    }
}

/// Words for a state reported by the registry.
pub fn state_word(state: RdapState) -> &'static str {
    match state {
        RdapState::Redemption => "redemption",
        RdapState::PendingDelete => "pending delete",
        RdapState::Available => "available",
        RdapState::Registered => "registered",
        RdapState::Renewed => "renewed",
        RdapState::RegisteredAgain => "registered again",
        RdapState::Reserved => "reserved",
        RdapState::Expected => "should be free",
        RdapState::Taken => "taken",
        RdapState::Unknown => "unclear",
    }
}

/// CSS class of a state reported by the registry.
pub fn state_class(state: RdapState) -> &'static str {
    match state {
        RdapState::Redemption => "info",
        RdapState::PendingDelete => "warn",
        RdapState::Available => "good",
        RdapState::Renewed
        | RdapState::RegisteredAgain
        | RdapState::Taken
        | RdapState::Reserved => "bad",
        RdapState::Registered | RdapState::Expected | RdapState::Unknown => "",
    }
}
