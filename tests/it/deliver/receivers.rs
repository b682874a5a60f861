//! Failing receivers of every kind, and a healthy one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::json;

use super::{PATH, PERIOD, WAIT_MAX, World};
use crate::common::receiver::{Receiver, Reply, Seen};
use crate::common::wait;

fn ids(seen: &[Seen]) -> Vec<&str> {
    seen.iter().map(|seen| seen.header("webhook-id")).collect()
}

#[track_caller]
fn second(seen: &Seen) -> i64 {
    seen.header("webhook-timestamp").parse().expect("a Unix time")
}

fn serve(script: impl Fn(usize, &Seen) -> Reply + Send + Sync + 'static) -> Receiver {
    Receiver::https(&["127.0.0.1"], script)
}

#[test]
fn failing_receivers_do_not_delay_a_healthy_one() {
    let good = serve(|_, _| Reply::status(200));
    let slow = serve(|_, _| Reply::Silence);
    let flapping = serve(|before, _| Reply::status(if before < 2 { 500 } else { 204 }));
    let huge = serve(|_, _| Reply::Endless);
    let busy = serve(|before, _| match before {
        0 => Reply::Answer(429, vec![("Retry-After", "2".to_owned())], vec![]),
        _ => Reply::status(200),
    });
    let gone = serve(|_, _| Reply::status(410));
    let moved = serve(|_, _| {
        Reply::Answer(302, vec![("Location", "https://127.0.0.1:8443/".to_owned())], vec![])
    });
    let mended = Arc::new(AtomicBool::new(false));
    let is_mended = Arc::clone(&mended);
    let broken =
        serve(move |_, _| Reply::status(if is_mended.load(Ordering::SeqCst) { 200 } else { 404 }));
    let receivers = [&good, &slow, &flapping, &huge, &busy, &gone, &moved, &broken];
    let mut world = World::new("", &receivers);
    let of = |world: &mut World, name: &str, receiver: &Receiver| {
        world.webhook(name, &receiver.url(&format!("/{name}"))).0
    };
    // The slow receivers come first, and there are more of them than connections per host.
    let slow_rules: Vec<u64> =
        (0..5).map(|at| of(&mut world, &format!("slow{at}"), &slow)).collect();
    let flapping_rule = of(&mut world, "flapping", &flapping);
    let huge_rule = of(&mut world, "huge", &huge);
    let busy_rule = of(&mut world, "busy", &busy);
    let gone_rule = of(&mut world, "gone", &gone);
    let moved_rule = of(&mut world, "moved", &moved);
    let broken_rule = of(&mut world, "broken", &broken);
    let good_rule = of(&mut world, "good", &good);
    world.list();

    // The healthy receiver gets its message while connections to the slow ones are still open.
    world.wait(good_rule, "delivered");
    assert_eq!(good.seen().len(), 1);
    let waiting = slow_rules.iter().map(|&rule| world.deliveries(rule)[0]["status"].clone());
    assert!(waiting.into_iter().all(|status| status == "pending"));
    let said: serde_json::Value = serde_json::from_slice(&good.seen()[0].body).expect("JSON");
    assert_eq!((&said["type"], &said["data"]["total"]), (&json!("alert.matched"), &json!(3)));
    assert_eq!(said["data"]["rule"], json!({"id": good_rule, "name": "good"}));
    assert_eq!(said["data"]["names"].as_array().map(Vec::len), Some(3));

    // An endless response counts as a response.
    world.wait(huge_rule, "delivered");
    // Two attempts fail and the third succeeds; all have the same ID and increasing timestamps.
    let flapped = world.wait(flapping_rule, "delivered");
    assert_eq!((&flapped["attempts"], &flapped["problem"]), (&json!(3), &json!(null)));
    let seen = flapping.seen();
    assert_eq!(seen.len(), 3);
    assert!(ids(&seen).iter().all(|id| *id == ids(&seen)[0] && id.starts_with("msg_")));
    assert!(seen.windows(2).all(|two| two[0].body == two[1].body));
    assert!(seen.windows(2).all(|two| second(&two[0]) <= second(&two[1])));
    // The receiver requested a pause of two seconds; the actual pause is one to two seconds.
    world.wait(busy_rule, "delivered");
    let seen = busy.seen();
    assert_eq!((seen.len(), ids(&seen)[0]), (2, ids(&seen)[1]));
    assert!(second(&seen[1]) > second(&seen[0]));
    // Redirects are not followed, and retries come to an end.
    let failed = world.wait(moved_rule, "failed");
    assert_eq!((&failed["attempts"], &failed["problem"]), (&json!(3), &json!("3xx")));
    assert_eq!(moved.seen().len(), 3);

    // A failed delivery can be sent again under its id.
    let failed = world.wait(broken_rule, "failed");
    assert_eq!(failed["problem"], "4xx");
    mended.store(true, Ordering::SeqCst);
    let id = failed["id"].as_str().expect("an id");
    let again = format!("{PATH}/{broken_rule}/deliveries/{id}/retry");
    assert_eq!(world.client.send_with("POST", &again, &[], b"").status, 202);
    world.wait(broken_rule, "delivered");
    let seen = broken.seen();
    assert_eq!(seen.len(), 4);
    assert!(ids(&seen).iter().all(|sent| *sent == format!("msg_{id}")));

    // A receiver that returned 410 is not called until its owner resumes it.
    let failed = world.wait(gone_rule, "failed");
    assert_eq!((&failed["attempts"], &failed["problem"]), (&json!(1), &json!("gone")));
    let rule = world.client.get(&format!("{PATH}/{gone_rule}")).json();
    assert_eq!(rule["alert"]["channels"][0]["switchedOff"]["reason"], "gone", "{rule}");
    world.list();
    let seen = good.wait_for(2);
    assert_ne!(ids(&seen)[0], ids(&seen)[1], "another list, another message");
    world.wait(good_rule, "delivered");
    assert_eq!(world.deliveries(gone_rule).len(), 1);
    assert_eq!(gone.seen().len(), 1);

    // Deliveries to the slow receivers time out, and none of these messages reaches another
    // receiver.
    let mut problems = slow_rules.iter().cycle().map(|&rule| {
        let deliveries = world.deliveries(rule);
        thread::sleep(PERIOD);
        deliveries.last().map(|first| first["problem"].clone())
    });
    let timeout = problems.find(|problem| problem.as_ref().is_some_and(|it| *it == "timeout"));
    assert!(timeout.is_some());
    assert!(slow.seen().iter().all(|seen| seen.target.starts_with("/slow")));
    world.server.stop();
}

#[test]
fn a_pause_requested_for_one_account_does_not_delay_another() {
    let host = serve(|_, seen| match seen.target.as_str() {
        "/busy" => Reply::Answer(503, vec![("Retry-After", "86400".to_owned())], vec![]),
        _ => Reply::status(204),
    });
    let mut world = World::new("", &[&host]);
    let (busy, _) = world.webhook("busy", &host.url("/busy"));
    let key = world.site.account("other@example.com", "api");
    let other = world.server.client_with(&key);
    let owner = std::mem::replace(&mut world.client, other);
    world.webhook("other", &host.url("/fine"));
    let count = |target: &str| host.seen().iter().filter(|seen| seen.target == target).count();
    for list in 1..=2 {
        world.list();
        wait::until_ok(WAIT_MAX, || match (count("/busy"), count("/fine")) {
            (1.., fine) if fine == list => Ok(()),
            counts => Err(format!("list {list}: {counts:?}\n{}", world.server.log())),
        });
    }
    // A requested pause of a day is limited to twice the scheduled delay.
    world.client = owner;
    let failed = world.wait(busy, "failed");
    assert_eq!(failed["problem"], "5xx");
}

#[test]
fn a_dead_receiver_is_retried_and_given_up() {
    let good = serve(|_, _| Reply::status(200));
    let closing = serve(|_, _| Reply::Close);
    let mut world = World::new("", &[&good, &closing]);
    let dead = ["https://nobody.dropdex-tests.com/".to_owned(), closing.url("/")];
    let dead_rules = dead.map(|url| world.webhook("dead", &url).0);
    let (good_rule, _) = world.webhook("good", &good.url("/"));
    world.list();
    world.wait(good_rule, "delivered");
    for rule in dead_rules {
        let failed = world.wait(rule, "failed");
        assert_eq!((&failed["attempts"], &failed["problem"]), (&json!(3), &json!("unreachable")));
    }
    assert_eq!(closing.seen().len(), 3);
    // The reason for a failure is logged for the operator, but not shown to the owner.
    let log = world.server.stop();
    let target = "target=nobody.dropdex-tests.com:443";
    assert!(log.contains("delivery failed") && log.contains(target), "{log}");
    assert!(log.contains("outcome=\"retry\"") && log.contains("outcome=\"failed\""), "{log}");
    assert!(log.contains(" next_at=20"), "{log}");
}

#[test]
fn pending_deliveries_are_sent_after_a_crash() {
    let up = Arc::new(AtomicBool::new(false));
    let is_up = Arc::clone(&up);
    let receiver =
        serve(
            move |_, _| {
                if is_up.load(Ordering::SeqCst) { Reply::status(200) } else { Reply::Silence }
            },
        );
    let mut world = World::new("", &[&receiver]);
    let (rule, _) = world.webhook("r", &receiver.url("/"));
    world.list();
    receiver.wait_for(1);
    up.store(true, Ordering::SeqCst);
    let mut world = world.restart_after_a_crash();
    world.wait(rule, "delivered");
    let seen = receiver.seen();
    assert!(seen.len() >= 2 && ids(&seen).iter().all(|id| *id == ids(&seen)[0]), "{seen:?}");
}
