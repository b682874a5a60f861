//! Deliveries of alert rules: previews, test messages, histories, and the link in mails.
//!
//! Nothing listens where this server sends mails and chat messages, so none is delivered. Whether a
//! delivery was already attempted, and with what result, differs between runs.

use dropdex::accounts::event::{Event, Transaction};
use dropdex::accounts::journal_folder;
use dropdex::journal::dump;
use dropdex::journal::fs::Disk;
use serde_json::{Value, json};

use super::{TODAY, TOMORROW, add_alert, added_id, column, error, serve_with, served, site};
use crate::common::{Client, Response, Site};

const PATH: &str = "/api/v1/alerts";
const NO_DELIVERY: &str = "0123456789abcdef0123456789abcdef";

/// Adds a rule with mail and a chat; returns its id.
fn add_rule(client: &mut Client) -> u64 {
    let channels = json!([{"type": "email"}, {"type": "telegram", "chatId": -100}]);
    let body = json!({"name": "n", "filter": {"tlds": ["com"]}, "channels": channels});
    added_id(&client.send("POST", PATH, &body), PATH)
}

fn post(client: &mut Client, target: &str) -> Response {
    client.request("POST", target, &[])
}

fn preview(client: &mut Client, filter: Value) -> Value {
    let (status, body) =
        client.send("POST", &format!("{PATH}/preview"), &json!({ "filter": filter })).answer();
    assert_eq!(status, 200, "{body}");
    body
}

/// Removes the members that attempts change.
fn untried(delivery: &mut Value) {
    for member in ["attempts", "lastAttemptAt", "nextAttemptAt", "problem"] {
        let value = delivery.as_object_mut().expect("an object").remove(member);
        assert!(value.is_some(), "{member}: {delivery}");
    }
}

#[test]
fn a_preview_counts_the_names_a_rule_would_match() {
    let site = site();
    let (_server, mut client) = served(&site);
    let body = preview(&mut client, json!({}));
    assert_eq!(body["today"], 5, "all but those released, kept or back: {body}");
    let per_day = [
        ("2026-03-10", 1),
        ("2026-03-01", 1),
        ("2026-02-10", 1),
        ("2026-02-08", 1),
        ("2026-02-06", 1),
        // This name has been registered again since then.
        ("2026-02-01", 0),
        ("2026-01-01", 1),
    ];
    let per_day: Vec<_> = per_day.map(|(date, count)| json!({"date": date, "count": count})).into();
    assert_eq!(body["perDay"], json!(per_day));
    let drops = client.get("/api/v1/drops").json();
    assert_eq!(body["samples"], drops["drops"], "the best first, as the drops list has them");

    let narrow = json!({"tlds": [".COM"], "stages": ["pending-delete"], "contains": "END"});
    let body = preview(&mut client, narrow);
    assert_eq!(
        (&body["today"], column(&body["samples"], "name")),
        (&json!(1), vec!["pending.com".into()])
    );
    let names = |body: &Value| column(&body["samples"], "name");
    assert_eq!(names(&preview(&mut client, json!({"stages": ["released"]}))), ["gone.com"]);
    assert_eq!(preview(&mut client, json!({"minDqs": 100}))["today"], 0);
    assert_eq!(client.get(PATH).json()["count"], 0, "nothing was added");

    // The body is a rule; its other members are optional, but must be valid.
    let whole = json!({"name": "n", "filter": {}, "channels": [{"type": "email"}]});
    assert_eq!(client.send("POST", &format!("{PATH}/preview"), &whole).status, 200);
    for (body, refusal) in [
        (json!({}), "filter: is required"),
        (json!({"filter": {"minDqs": 101}}), "filter.minDqs: must be an integer from 0 to 100"),
        (
            json!({"filter": {}, "channels": [{"type": "webhook", "url": "https://127.0.0.1/"}]}),
            "channels[0].url: 127.0.0.1 is not a public address; the operator can list its address and port in \
             `[webhooks] allow`",
        ),
    ] {
        let answer = client.send("POST", &format!("{PATH}/preview"), &body).answer();
        assert_eq!(answer, (400, error(refusal)), "{body}");
    }
}

#[test]
fn a_test_message_is_queued_for_every_channel_and_listed() {
    let site = site();
    let (_server, mut client) = served(&site);
    let id = add_rule(&mut client);
    let list = format!("{PATH}/{id}/deliveries");
    assert_eq!(client.get(&list).answer(), (200, json!({"count": 0, "deliveries": []})));
    let queued = post(&mut client, &format!("{PATH}/{id}/test"));
    assert_eq!(queued.status, 202, "{}", queued.text());
    let queued = queued.json();
    let ids = column(&queued["deliveries"], "id");
    let expected: Vec<_> = [
        json!({"type": "email"}),
        json!({"type": "telegram", "chatId": "-100"}),
    ]
    .into_iter()
    .zip(&ids)
    .zip(queued["deliveries"].as_array().expect("an array"))
    .map(|((channel, id), sent)| {
        let at = &sent["createdAt"];
        assert!(id.as_str().is_some_and(|id| id.len() == 32), "{id}");
        json!({
            "id": id, "channel": channel, "kind": "test", "status": "pending", "attempts": 0,
            "names": 4, "createdAt": at, "lastAttemptAt": null, "nextAttemptAt": at,
            "problem": null,
        })
    })
    .collect();
    assert_eq!(queued, json!({"deliveries": expected}));

    let mut listed = client.get(&list).json();
    let mut newest_first = expected;
    newest_first.reverse();
    newest_first.iter_mut().for_each(untried);
    listed["deliveries"].as_array_mut().expect("an array").iter_mut().for_each(untried);
    assert_eq!(listed, json!({"count": 2, "deliveries": newest_first}));

    // A body is optional; if there is one, it must be an empty object.
    let test = format!("{PATH}/{id}/test");
    assert_eq!(client.send("POST", &test, &json!({})).status, 202);
    let answer = client.send("POST", &test, &json!({"now": true})).answer();
    assert_eq!(answer, (400, error("now: unknown field `now`, there are no fields")));
    let answer = client.send_with("POST", &test, &[], b"{}").answer();
    let refusal = "Content-Type: must be application/json, without an encoding";
    assert_eq!(answer, (415, error(refusal)));
    let key = [("Idempotency-Key", "once")];
    let once = client.request("POST", &test, &key);
    let again = client.request("POST", &test, &key);
    assert_eq!((once.status, again.status, &once.body), (202, 202, &again.body));
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(client.get(&list).json()["count"], 6);

    // Deleting the rule deletes its deliveries.
    assert_eq!(client.request("DELETE", &format!("{PATH}/{id}"), &[]).status, 200);
    assert_eq!(client.get(&list).answer(), (404, error("not found")));
    assert_eq!(post(&mut client, &test).answer(), (404, error("not found")));
}

#[test]
fn test_messages_of_a_day_are_limited() {
    let site = site();
    let (server, mut client) = served(&site);
    for _ in 0..15 {
        let id = add_rule(&mut client);
        assert_eq!(post(&mut client, &format!("{PATH}/{id}/test")).status, 202);
        assert_eq!(client.request("DELETE", &format!("{PATH}/{id}"), &[]).status, 200);
    }
    let id = add_alert(&mut client, "mails");
    let refused = post(&mut client, &format!("{PATH}/{id}/test"));
    let midnight = 1_773_619_200_000_i64;
    let body = json!({
        "error": "an account may send at most 30 test messages a day",
        "code": "test_limit", "limit": 30, "resetAt": midnight,
    });
    assert_eq!(refused.answer(), (429, body));
    assert!(refused.number("retry-after").is_some_and(|s| (1..=86_401).contains(&s)));
    assert!(refused.number("x-ratelimit-remaining").is_some_and(|left| left > 0));
    let mut other = server.client_with(&site.account("other@example.com", "pro"));
    let theirs = add_alert(&mut other, "n");
    assert_eq!(post(&mut other, &format!("{PATH}/{theirs}/test")).status, 202);
    // The count survives a restart, and is reset on the next day.
    drop(server);
    let key = site.new_key("owner@example.com");
    for (day, status) in [(TODAY, 429), (TOMORROW, 202)] {
        let server = site.serve(day);
        let answer = post(&mut server.client_with(&key), &format!("{PATH}/{id}/test"));
        assert_eq!(answer.status, status, "{day}: {}", answer.text());
    }
}

/// Returns the secret in the link of the only mails. No response contains it.
fn unsubscribe_token(site: &Site) -> String {
    let mut token = None;
    dump(&Disk, &journal_folder(&site.data()), None, &mut |_, _, record| {
        if let Ok(Transaction(events)) = Transaction::decode(record.fields.kind, record.payload) {
            token = events.iter().fold(token, |token, event| match event {
                Event::UnsubscribeTokenSet { token, .. } => Some(*token),
                _ => token,
            });
        }
        Ok(())
    })
    .expect("an intact journal");
    token.expect("a mail was queued").reveal()
}

#[test]
fn the_mail_link_unsubscribes_and_new_channels_resubscribe() {
    let site = site();
    let (server, mut client) = served(&site);
    let id = add_rule(&mut client);
    let one = format!("{PATH}/{id}");
    let queued = post(&mut client, &format!("{one}/test")).json();
    let [mail, chat] = [0, 1].map(|at| queued["deliveries"][at]["id"].as_str().expect("an id"));
    let retry = |delivery: &str| format!("{one}/deliveries/{delivery}/retry");
    let conflict = |why: &str| (409, error(&format!("this delivery cannot be retried: {why}")));
    let pending = conflict("it is pending and will be retried automatically");
    assert_eq!(post(&mut client, &retry(mail)).answer(), pending);

    // The link needs no key, and its secret is not the id of the mail.
    let token = unsubscribe_token(&site);
    let mut reader = server.client();
    let mut asked = Vec::new();
    for link in [mail, chat, NO_DELIVERY, "x", "%ff", &token] {
        let target = format!("/unsubscribe/{link}");
        let ask = reader.get(&target);
        let one_click = [("Content-Type", "application/x-www-form-urlencoded")];
        let done = reader.send_with("POST", &target, &one_click, b"List-Unsubscribe=One-Click");
        for page in [&ask, &done] {
            assert_eq!(page.status, 200, "{link}");
            assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
            assert_eq!(page.header("cache-control"), Some("no-store"));
            assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
            let policy = page.header("content-security-policy").unwrap_or_default();
            assert!(policy.starts_with("default-src 'none'; form-action 'self'"), "{policy}");
        }
        assert!(ask.text().contains("<form method=\"post\">"), "a button");
        asked.push((ask.body, done.body));
        let alert = client.get(&one).json()["alert"].take();
        if link == token {
            let off = &alert["channels"][0]["switchedOff"];
            assert_eq!(off["reason"], "unsubscribed", "{alert}");
            assert!(off["at"].as_str().is_some_and(|at| at.starts_with(TODAY)), "{alert}");
        } else {
            assert_eq!(alert["channels"][0]["switchedOff"], Value::Null, "{link}");
        }
    }
    asked.dedup();
    assert_eq!(asked.len(), 1, "every link gets the same response");
    let alert = client.get(PATH).json()["alerts"][0].take();
    assert_eq!(alert["channels"][1], json!({"type": "telegram", "chatId": "-100"}));

    let listed = client.get(&format!("{one}/deliveries")).json();
    let status =
        |at: usize| (&listed["deliveries"][at]["status"], &listed["deliveries"][at]["problem"]);
    assert_eq!(status(1), (&json!("failed"), &json!("switched-off")), "{listed}");
    assert_eq!(status(0).0, "pending");
    let off = conflict("its channel is switched off or no longer one of the rule's");
    assert_eq!(post(&mut client, &retry(mail)).answer(), off);
    let tested = post(&mut client, &format!("{one}/test")).json();
    assert_eq!(
        column(&tested["deliveries"], "channel"),
        [json!({"type": "telegram", "chatId": "-100"})]
    );

    // A PATCH with channels switches mail on again; any other PATCH leaves it off.
    let renamed = client.send("PATCH", &one, &json!({"name": "renamed"})).json();
    assert_eq!(renamed["alert"]["channels"][0]["switchedOff"]["reason"], "unsubscribed");
    let channels = json!([{"type": "email"}]);
    let (status, changed) = client.send("PATCH", &one, &json!({"channels": channels})).answer();
    assert_eq!((status, &changed["alert"]["channels"]), (200, &channels));
    let (status, retried) = post(&mut client, &retry(mail)).answer();
    assert_eq!((status, &retried["delivery"]["id"]), (202, &json!(mail)), "{retried}");
    assert_eq!(
        (&retried["delivery"]["status"], &retried["delivery"]["attempts"]),
        (&json!("pending"), &json!(0))
    );
    assert_eq!(post(&mut client, &retry(chat)).answer(), off, "the chats are removed");
    assert_eq!(post(&mut client, &retry(NO_DELIVERY)).answer(), (404, error("not found")));
    // The link continues to work; a rule without an active channel cannot be tested.
    let target = format!("/unsubscribe/{token}");
    assert_eq!(post(&mut reader, &target).status, 200);
    let refusal = "all channels of this alert rule are switched off; PATCH it with `channels` to \
                   switch them on";
    let answer = post(&mut client, &format!("{one}/test")).answer();
    assert_eq!(answer, (409, error(refusal)));
    let big = vec![b'x'; 64 * 1024 + 1];
    assert_eq!(reader.send_with("POST", &target, &[], &big).status, 413);
}

#[test]
fn unconfigured_channels_are_refused() {
    let site = site();
    let key = site.account("owner@example.com", "api");
    let path = site.write("bare.toml", "[rdap]\nenabled = false\n");
    let path = path.to_str().expect("temporary paths are UTF-8");
    let server = site.serve_with(&["--config", path, "--today", TODAY]);
    let mut client = server.client_with(&key);
    let hook = json!({"type": "webhook", "url": "https://8.8.8.8/"});
    let rule = |channels: Value| json!({"name": "n", "filter": {}, "channels": channels});
    let id = added_id(&client.send("POST", PATH, &rule(json!([hook]))), PATH);
    for (channel, what) in [
        (json!({"type": "email"}), "email"),
        (json!({"type": "telegram", "chatId": 1}), "telegram"),
    ] {
        let channels = json!([hook, channel]);
        let refusal =
            format!("channels[1]: {what} delivery is not set up on this server; ask its operator");
        let posted = client.send("POST", PATH, &rule(channels.clone()));
        assert_eq!(posted.answer(), (400, error(&refusal)));
        let target = format!("{PATH}/{id}");
        let patched = client.send("PATCH", &target, &json!({"channels": channels}));
        assert_eq!(patched.answer(), (400, error(&refusal)));
    }
    // Once configured, the same rule is accepted.
    drop(server);
    let server = serve_with(&site, "", TODAY);
    let posted = server.client_with(&key).send("POST", PATH, &rule(json!([{"type": "email"}])));
    assert_eq!(posted.status, 201, "{}", posted.text());
}
