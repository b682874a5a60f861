//! Alert rules and their deliveries in words.

use crate::accounts::{Channel, OffReason, Problem, RuleFilter, StatusClass, SwitchedOff};
use crate::vocab::name::to_unicode;
use crate::vocab::query::Substring;
use crate::vocab::stage::Stage;

/// TLDs that are named; more are counted.
const TLDS_NAMED_MAX: usize = 6;

/// Which names a rule is about.
pub fn filter(filter: &RuleFilter) -> String {
    let dqs = filter.min_dqs.map(|dqs| format!("with a DQS of {} or more", dqs.points()));
    let length = filter.max_length.map(|most| match most {
        1 => "of one character".to_owned(),
        _ => format!("of at most {most} characters"),
    });
    let text = filter.contains.as_ref().map(Substring::as_str);
    let parts = [
        (!filter.tlds.is_empty()).then(|| format!("in {}", tlds(filter))),
        dqs,
        length,
        text.map(|text| format!("that contain “{text}”")),
        (!filter.stages.is_empty()).then(|| format!("that are {}", stages(&filter.stages))),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "All names".to_owned() } else { format!("Names {}", parts.join(", ")) }
}

fn tlds(filter: &RuleFilter) -> String {
    let named = filter.tlds.iter().take(TLDS_NAMED_MAX);
    let named: Vec<_> = named.map(|tld| format!(".{}", to_unicode(tld))).collect();
    match filter.tlds.len() - named.len() {
        0 => either(&named),
        more => format!("{} or {more} more TLDs", named.join(", ")),
    }
}

fn stages(stages: &[Stage]) -> String {
    either(&stages.iter().map(|stage| stage_word(*stage).to_owned()).collect::<Vec<_>>())
}

/// `a`, `a or b`, `a, b or c`.
fn either(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [word] => word.clone(),
        [words @ .., last] => format!("{} or {last}", words.join(", ")),
    }
}

/// A stage as people say it.
pub fn stage_word(stage: Stage) -> &'static str {
    match stage {
        Stage::Redemption => "in redemption",
        Stage::PendingDelete => "pending delete",
        Stage::Catchable => "catchable",
        Stage::Released => "released",
    }
}

/// Where a channel leads, in short.
pub fn channel(channel: &Channel) -> String {
    match channel {
        Channel::Email => "E-mail".to_owned(),
        Channel::Webhook { url } => {
            let url = url.to_url();
            format!("Webhook to {}", url.host_str().unwrap_or_default())
        }
        Channel::Telegram { chat_id } => format!("Telegram chat {chat_id}"),
    }
}

/// Why a channel is off.
pub fn switched_off(off: SwitchedOff) -> &'static str {
    match off.reason {
        OffReason::Gone => "the receiver said that it is gone (410)",
        OffReason::Unsubscribed => "unsubscribed with the link in a mail",
    }
}

/// What went wrong, as far as it may be told.
pub fn problem(problem: Problem) -> &'static str {
    match problem {
        Problem::Refused => "The address leads into a private network, which is never called.",
        Problem::Timeout => "There was no answer in time.",
        Problem::Unreachable => "No connection could be made.",
        Problem::Tls => "No secure connection could be made; check the certificate.",
        Problem::Status(StatusClass::Redirect) => {
            "The answer was a redirect (3xx), which is not followed; use the address it leads to."
        }
        Problem::Status(StatusClass::ClientError) => {
            "The receiver refused the message (4xx); check the address."
        }
        Problem::Status(StatusClass::ServerError) => "The receiver failed (5xx).",
        Problem::Status(StatusClass::Other) => "The answer was no success.",
        Problem::Gone => "The receiver wants no more messages (410).",
        Problem::Rejected => "The mailbox or chat does not exist, or does not want the message.",
        Problem::NotConfigured => "This server is not set up to send there; ask its operator.",
        Problem::SwitchedOff => "The channel was switched off or removed before it was sent.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::dqs::Dqs;

    #[test]
    fn filters_read_as_sentences() {
        assert_eq!(filter(&RuleFilter::default()), "All names");
        let some = RuleFilter {
            tlds: vec!["com".into(), "xn--p1ai".into(), "de".into()],
            min_dqs: Dqs::new(60),
            max_length: Some(8),
            contains: Substring::parse("SHOP").ok(),
            stages: vec![Stage::PendingDelete, Stage::Catchable],
        };
        assert_eq!(
            filter(&some),
            "Names in .com, .рф or .de, with a DQS of 60 or more, of at most 8 characters, that contain \
             “shop”, that are pending delete or catchable"
        );
        let many = RuleFilter { tlds: vec!["com".into(); 9], ..RuleFilter::default() };
        assert!(filter(&many).ends_with(".com or 3 more TLDs"));
    }
}
