//! Display texts of alert rules and deliveries.

use crate::accounts::{Channel, OffReason, Problem, StatusClass, SwitchedOff};
use crate::alerts::form::OWN_FIELDS;
use crate::components::stage_word;
use crate::drops::state::DropsParams;
use crate::drops::words::described;
use crate::outbound::chat;
use crate::query::stored::Conditions;
use crate::vocab::name::to_unicode;
use crate::vocab::stage::Stage;

/// Maximum TLDs listed by name; the rest are counted.
const TLDS_NAMED_MAX: usize = 6;

/// Describes the filter of a rule.
pub fn filter(filter: &Conditions) -> String {
    if *filter == Conditions::default() {
        return "All names".to_owned();
    }
    let set = |name| Some(filter.get(name)).filter(|text| !text.is_empty());
    let parts = [
        set("tld").map(|tlds| format!("in {}", named_tlds(tlds))),
        set("min_dqs").map(|dqs| format!("with a score of {dqs} or more")),
        set("max_len").map(|most| match most {
            "1" => "of one character".to_owned(),
            _ => format!("of at most {most} characters"),
        }),
        set("q").map(|text| format!("that contain “{text}”")),
        set("stage").map(|stages| format!("that are {}", named_stages(stages))),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    let others = filter.pairs().filter(|(name, _)| !OWN_FIELDS.contains(name));
    let others = described(&DropsParams::from_pairs(others));
    match (parts.is_empty(), others.is_empty()) {
        (true, true) => "All names".to_owned(),
        (true, false) => format!("Names: {others}"),
        (false, true) => format!("Names {}", parts.join(", ")),
        (false, false) => format!("Names {}; {others}", parts.join(", ")),
    }
}

fn named_tlds(tlds: &str) -> String {
    let named = tlds.split(',').take(TLDS_NAMED_MAX);
    let named: Vec<_> = named.map(|tld| format!(".{}", to_unicode(tld))).collect();
    match tlds.split(',').count() - named.len() {
        0 => either(&named),
        more => format!("{} or {more} more TLDs", named.join(", ")),
    }
}

fn named_stages(stages: &str) -> String {
    let word = |stage: Stage| match stage {
        Stage::Redemption => "in redemption".to_owned(),
        stage => stage_word(stage).to_owned(),
    };
    let stages = stages.split(',').filter_map(|stage| stage.parse().ok());
    either(&stages.map(word).collect::<Vec<_>>())
}

/// Joins items as `a`, `a or b`, `a, b or c`.
fn either(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [word] => word.clone(),
        [words @ .., last] => format!("{} or {last}", words.join(", ")),
    }
}

/// Short name of a channel.
pub fn channel(channel: &Channel) -> String {
    match channel {
        Channel::Email => "E-mail".to_owned(),
        Channel::Webhook { url } => {
            let url = url.to_url();
            format!("Webhook to {}", url.host_str().unwrap_or_default())
        }
        Channel::Telegram { chat_id } => format!("Telegram chat {chat_id}"),
        Channel::Chat(chat) => format!("{} ({})", chat::label(&chat.service), chat.hook.label()),
    }
}

/// Reason why a channel was switched off.
pub fn switched_off(channel: &Channel, off: SwitchedOff) -> &'static str {
    match (off.reason, channel) {
        (OffReason::Gone, Channel::Chat(_)) => "the service no longer accepts this hook or token",
        (OffReason::Gone, _) => "the receiver responded 410 Gone",
        (OffReason::Unsubscribed, _) => "unsubscribed by the link in an e-mail",
        (OffReason::Failing, _) => "nothing could be delivered for 5 days",
    }
}

/// Explains a failed delivery attempt.
pub fn problem(channel: &Channel, problem: Problem) -> &'static str {
    match problem {
        Problem::Gone if channel.chat().is_some() => {
            "The service no longer accepts this hook or token, so the channel was switched off."
        }
        Problem::Rejected if channel.chat().is_some() => "The service refused the message.",
        Problem::Refused => "The URL points to a private network, which is not allowed.",
        Problem::Timeout => "The receiver did not respond in time.",
        Problem::Unreachable => "The connection failed.",
        Problem::Tls => "The TLS connection failed. Check the certificate.",
        Problem::Status(StatusClass::Redirect) => {
            "The receiver responded with a redirect (3xx), which is not followed. Use the final URL."
        }
        Problem::Status(StatusClass::ClientError) => {
            "The receiver rejected the message (4xx). Check the URL."
        }
        Problem::Status(StatusClass::ServerError) => "The receiver failed (5xx).",
        Problem::Status(StatusClass::Other) => "The receiver responded with an unexpected status.",
        Problem::Gone => "The receiver responded 410 Gone, so the channel was switched off.",
        Problem::Rejected => "The mailbox or chat does not exist or rejected the message.",
        Problem::NotConfigured => {
            "This channel is not set up on this server. Ask the administrator."
        }
        Problem::SwitchedOff => "The channel was switched off or removed before it was sent.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_read_as_sentences() {
        assert_eq!(filter(&Conditions::default()), "All names");
        let some = Conditions::new([
            ("tld", "com,xn--p1ai,de"),
            ("min_dqs", "60"),
            ("max_len", "8"),
            ("q", "shop"),
            ("stage", "pending-delete,catchable"),
            ("min_len", "4"),
            ("digits", "none"),
        ]);
        assert_eq!(
            filter(&some),
            "Names in .com, .рф or .de, with a score of 60 or more, of at most 8 characters, that contain \
             “shop”, that are pending delete or just dropped; length ≥ 4, no digits"
        );
        let many = Conditions::new([("tld", "a,b,c,d,e,f,g,h,com")]);
        assert!(filter(&many).ends_with(".f or 3 more TLDs"));
    }
}
