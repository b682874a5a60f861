//! Journals of former versions, each with every kind of event of its version. `state.txt` beside
//! them is the resulting state, as that version printed it.

use std::path::PathBuf;

use super::*;
use crate::data::deliveries::Message;
use crate::data::nodes::Nodes;
use crate::journal::fs::Disk;
use crate::journal::{restore, set_aside};
use crate::query::stored::Conditions;
use crate::store::Store;
use crate::vocab::clock::Clock;
use crate::vocab::plan::Plans;

const FORMERS: [&str; 4] = ["b0c428a-log", "b0c428a-snapshot", "b0c428a-cluster", "94342a2-log"];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/journals").join(name)
}

/// Returns a data folder with the journal of a fixture.
fn copied(name: &str) -> tempfile::TempDir {
    let data = tempfile::tempdir().expect("a folder");
    let journal = data.path().join("journal");
    std::fs::create_dir(&journal).expect("a folder");
    for entry in std::fs::read_dir(fixture(name)).expect("the fixture") {
        let from = entry.expect("a file").path();
        let name = from.file_name().expect("a name");
        if name != "state.txt" {
            std::fs::copy(&from, journal.join(name)).expect("copied");
        }
    }
    data
}

fn open(data: &Path) -> Result<Store, JournalError> {
    Store::open(data, Plans::default(), Clock::system())
}

#[test]
fn a_former_journal_leads_to_the_same_state() {
    for name in FORMERS {
        let data = copied(name);
        let (journal, file) = (data.path().join("journal"), data.path().join("backup"));
        let report = back_up_former(&Disk, &journal, &file).expect(name).expect("a former one");
        let before = inspect(&Disk, &journal, None, &mut crate::journal::Unread).expect("read");
        assert_eq!(report.seq, before.recovery.position.seq, "{name}");
        set_aside(&Disk, &journal, "upgrade").expect("moved");
        restore(&Disk, &file, &journal).expect(name);
        let store = open(data.path()).expect(name);
        assert_eq!(store.state_digest(), report.state_digest, "{name}");
        let uuid = store.inspect_journal().expect("read").store_uuid;
        assert_eq!(uuid, before.store_uuid, "{name}");
        let expected = std::fs::read_to_string(fixture(name).join("state.txt")).expect("text");
        let ours = dump(&store.state());
        for (ours, expected) in ours.lines().zip(expected.lines()) {
            assert_eq!(ours, expected, "{name}");
        }
        assert_eq!(ours, expected, "{name}");
        store.close().expect("closed");
        // The journal now has the present layout.
        let again = back_up_former(&Disk, &journal, &data.path().join("again")).expect("read");
        assert!(again.is_none(), "{name}");
    }
}

#[test]
fn a_former_journal_is_refused_with_the_way_to_convert_it() {
    for name in FORMERS {
        let err = open(copied(name).path()).map(drop).expect_err("refused").to_string();
        assert!(err.contains("`dropdex journal upgrade`") && !err.contains('\n'), "{err}");
    }
}

/// Returns the conditions as former versions wrote them: theirs selected adult names without saying so.
fn former_pairs(conditions: &Conditions) -> Vec<(&str, &str)> {
    let (adult, rest): (Vec<_>, Vec<_>) =
        conditions.pairs().partition(|(name, _)| *name == "adult");
    assert_eq!(adult, [("adult", "include")]);
    rest
}

/// Returns the state as text, without the names of types.
fn dump(state: &State) -> String {
    let mut lines = Vec::new();
    macro_rules! line { ($what:literal, $($value:expr),* $(,)?) => {
        lines.push(format!("{}: {:?}", $what, ($(&$value,)*)))
    } }
    let all = &state.progress;
    line!(
        "state",
        state.owner,
        state.last_account,
        state.last_day,
        all.all,
        all.ahead,
        state.data_bytes
    );
    let changes = state.changes.map(|it| (it.began, it.through, it.ahead));
    line!("changes", changes, state.watched.changes(), state.queue.pending().len());
    let Nodes { lead, announced, served } = &state.nodes;
    line!("shared", state.shared.seq, state.shared.chain, lead.term, lead.node);
    line!("files", announced.as_ref().map(|it| (it.generation, it.list)), served.len());
    for row in state.watched.rows() {
        let seen = &row.observation;
        let former: Vec<_> = row.former.iter().map(|it| (it.state, it.last_seen)).collect();
        let last = Some(row.change).filter(|change| *change > 0);
        line!(
            "seen",
            row.name.as_str(),
            seen.state,
            seen.at,
            seen.registered_on,
            seen.statuses,
            seen.source,
            former,
            last
        );
    }
    for account in state.accounts.values() {
        let secret = account.password.as_ref().map(|it| serde_json::to_string(it).expect("text"));
        line!(
            "account",
            account.id,
            account.email.as_str(),
            account.plan,
            secret,
            account.disabled,
            account.created,
            account.noted.day,
            account.noted.requests,
            account.noted.exports
        );
        let access = &account.access;
        line!("access", access.is_verified(), access.link(), access.telegram_chat);
        for it in &access.sessions {
            line!("session", it.digest, it.began, it.seen, it.life);
        }
        for it in access.keys.iter() {
            line!("key", it.id, it.name, it.key, it.scopes, it.created, it.until, it.used);
        }
        for it in access.feeds.iter() {
            line!("feed", it.of, it.digest, it.created);
        }
        let data = &account.data;
        line!("data", data.bytes(), data.columns, data.tests, data.watches.external());
        for it in data.claims() {
            let rule = it.alert_rule.as_ref().map(|it| (it.id, &it.name));
            line!(
                "claim",
                it.id,
                it.domain.as_str(),
                it.status,
                it.registrar,
                it.acquired_price,
                it.resale_price,
                it.sold_at,
                it.reported_at,
                it.updated_at,
                it.user_notes,
                rule
            );
            line!("trade", it.bid, it.venue, it.renews_on, it.renewal);
        }
        for it in data.watches() {
            line!(
                "watch",
                it.name.as_str(),
                it.name.label_len(),
                it.added_at,
                it.external,
                it.registered_again
            );
            if let Some(it) = data.watch_details(&it.name) {
                line!("notes", it.note, it.tags, it.max_bid, it.venue);
            }
            if let Some(it) = data.entry_alerts(&it.name) {
                line!("choice", it.kinds, it.channels);
            }
        }
        if let Some(it) = &data.watch_sender {
            let alerts = it.alerts;
            line!(
                "watch alerts",
                alerts.kinds,
                alerts.digest,
                alerts.quiet.map(|it| (it.from(), it.to())),
                alerts.zone.to_string()
            );
        }
        let sender = data.watch_sender.as_ref().map(|it| &*it.rule);
        for it in data.rules().chain(sender) {
            let filter = former_pairs(&it.filter);
            let secrets: Vec<_> =
                it.secrets.iter().map(|it| (&it.url, it.secret.reveal())).collect();
            line!(
                "rule",
                it.id,
                it.name,
                filter,
                it.channels,
                it.active,
                it.created_at,
                secrets,
                it.search
            );
        }
        for it in data.searches() {
            let pairs = former_pairs(&it.conditions);
            line!("search", it.id, it.name, pairs, it.created_at, it.seen);
        }
        for (name, vote) in data.votes.iter() {
            line!("vote", name, vote);
        }
        for name in data.hidden() {
            line!("hidden", name.as_str());
        }
        for it in data.responses.iter() {
            line!("response", it.key, it.fingerprint, it.at, it.status, it.body);
        }
        for (rule, outbox) in data.outbox.iter() {
            line!(
                "outbox",
                rule,
                outbox.unsubscribe.map(|it| serde_json::to_string(&it).expect("text")),
                outbox.off.iter().map(|(it, off)| (it, off.reason, off.at)).collect::<Vec<_>>(),
                outbox.failing
            );
            for it in &outbox.deliveries {
                let Message { kind, at, list_day, total, .. } = it.message;
                line!(
                    "delivery",
                    it.id,
                    it.channel,
                    kind,
                    at,
                    list_day,
                    total,
                    it.attempts,
                    it.status,
                    it.last_attempt_at,
                    it.last_problem
                );
                line!("content", it.message.content.is_some());
                for it in it.message.names() {
                    line!("name", it.name.as_str(), it.dqs, it.drop_date, it.release, it.stage);
                }
                for it in it.message.changes() {
                    line!(
                        "change",
                        it.kind,
                        it.name.as_str(),
                        it.day,
                        it.verified,
                        it.dqs,
                        it.dqs_before
                    );
                }
            }
        }
    }
    lines.join("\n") + "\n"
}
