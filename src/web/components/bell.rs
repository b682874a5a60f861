//! Alert settings of a watched name: the bell in its row, and the form on its dossier.

use maud::{Markup, html};

use crate::accounts::{EntryAlerts, WatchSender};
use crate::outbound::chat;
use crate::vocab::change::{ChangeKind, ChangeKinds};
use crate::vocab::name::DomainName;

/// Words for a kind of change, to follow "when a name".
pub fn kind_word(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::LeftZone => "left its zone",
        ChangeKind::PendingDelete => "is in pending delete",
        ChangeKind::DropsTomorrow => "drops tomorrow",
        ChangeKind::DropsToday => "drops today",
        ChangeKind::DropsInAnHour => "drops within an hour",
        ChangeKind::RenewalDue => "renewal is due",
        ChangeKind::Available => "is available",
        ChangeKind::Renewed => "was renewed",
        ChangeKind::RegisteredAgain => "was registered again",
        ChangeKind::Rescored => "has another score",
    }
}

fn kind_words(kinds: ChangeKinds) -> String {
    let words: Vec<_> = kinds.iter().map(kind_word).collect();
    match words.is_empty() {
        true => "no changes".to_owned(),
        false => words.join(", "),
    }
}

fn icon(is_mute: bool) -> Markup {
    html! {
        svg.bell viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" {
            path d="M4 11V7.2a4 4 0 0 1 8 0V11l1.2 1.4H2.8zM6.6 14.2h2.8" {}
            @if is_mute { path d="M2 2l12 12" {} }
        }
    }
}

/// Renders the bell of a row, which mutes or unmutes a name. If the name has its own settings, the bell links
/// to them on `dossier`.
pub fn bell(domain: &DomainName, alerts: Option<&EntryAlerts>, dossier: &str) -> Markup {
    let shown = domain.unicode();
    html! {
        @match alerts {
            None => {
                button.act.bell type="submit" formaction="/watchlist/bell" name="mute" value=(domain) aria-label={ "Mute alerts about " (shown) } title="Alerts are on" { (icon(false)) }
            }
            Some(own) if own.is_mute() => {
                button.act.bell.mute type="submit" formaction="/watchlist/bell" name="hear" value=(domain) aria-label={ "Turn on alerts about " (shown) } title="Muted" { (icon(true)) }
            }
            Some(own) => {
                a.act.bell.own href=(dossier) aria-label={ "Alerts about " (shown) ": when it " (kind_words(own.kinds)) } title={ "When it " (kind_words(own.kinds)) } { (icon(false)) }
            }
        }
    }
}

/// Renders the form with the alert settings of a name. It returns to `next`.
pub fn bell_choice(
    domain: &DomainName,
    alerts: Option<&EntryAlerts>,
    sender: &WatchSender,
    next: &str,
) -> Markup {
    let usual = EntryAlerts { kinds: sender.alerts.kinds, channels: Vec::new() };
    let own = alerts.filter(|own| !own.is_mute()).unwrap_or(&usual);
    let (choice, summary) = match alerts {
        None => ("follow", format!("When it {}", kind_words(sender.alerts.kinds))),
        Some(own) if own.is_mute() => ("mute", "Muted".to_owned()),
        Some(own) => ("own", format!("When it {}", kind_words(own.kinds))),
    };
    let option = |value: &str, word: Markup| {
        html! { label.line { input type="radio" name="choice" value=(value) checked[choice == value]; " " (word) } }
    };
    let mut types: Vec<&str> = sender.rule.channels.iter().map(|it| it.type_name()).collect();
    types.dedup();
    let has_types = types.len() > 1;
    let is_used = |name: &str| own.goes_to(name, types.iter().copied());
    html! {
        details.alerts #alerts {
            summary { (icon(choice == "mute")) " " (summary) }
            form method="post" action="/watchlist/bell" {
                input type="hidden" name="domain" value=(domain);
                input type="hidden" name="next" value=(next);
                fieldset {
                    legend.hidden { "Alerts about this name" }
                    (option("follow", html! { "As in your " a href="/watchlist/alerts" { "settings" } }))
                    (option("own", html! { "Tell me when it" }))
                    div.chips {
                        @for kind in ChangeKind::ALL {
                            label.chip {
                                input type="checkbox" name="kind" value=(kind) checked[own.kinds.has(kind)];
                                span { (kind_word(kind)) }
                            }
                        }
                    }
                    @if has_types {
                        div.chips role="group" aria-label="Channels" {
                            @for name in &types {
                                label.chip {
                                    input type="checkbox" name="channel" value=(name) checked[is_used(name)];
                                    span { (type_word(name)) }
                                }
                            }
                        }
                    }
                    (option("mute", html! { "Mute" }))
                }
                p.send { button.quiet type="submit" { "Save alerts" } }
            }
        }
    }
}

/// Word for a type of channel.
fn type_word(name: &str) -> &str {
    match name {
        "email" => "E-mail",
        "webhook" => "Webhook",
        "telegram" => "Telegram",
        chat => chat::label(chat),
    }
}
