//! Tests with responses of several registries, and with damaged and random responses.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../../../tests/fixtures/rdap/", $name, ".json"))
    };
}

fn name(text: &str) -> DomainName {
    DomainName::parse(text).expect(text)
}

fn day(text: &str) -> Day {
    text.parse().expect(text)
}

fn now() -> DateTime<Utc> {
    "2026-11-21T12:00:00Z".parse().expect("an instant")
}

fn found(text: &str, about: &str) -> Registration {
    parse(text.as_bytes(), &name(about), now()).unwrap_or_else(|err| panic!("{about}: {err}"))
}

/// The compared parts of a response: statuses by name, days as text.
fn outline(registration: Registration) -> (Vec<&'static str>, [String; 4]) {
    let Registration { statuses, registered_on, expires_on, changed_on, deleted_on, .. } =
        registration;
    let day = |day: Option<Day>| day.map(|day| day.to_string()).unwrap_or_default();
    let days = [registered_on, expires_on, changed_on, deleted_on].map(day);
    (statuses.iter().map(RdapStatus::as_str).collect(), days)
}

#[test]
fn responses_of_registries_are_parsed() {
    for (text, about, statuses, days) in [
        (
            fixture!("thin-held"),
            "example.com",
            &["client delete prohibited", "client transfer prohibited", "client update prohibited"]
                [..],
            ["1995-08-14", "2027-08-13", "2026-08-14", ""],
        ),
        (
            fixture!("thin-redemption"),
            "example.com",
            &["pending delete", "redemption period", "client transfer prohibited"],
            ["2014-03-02", "2026-09-02", "2026-10-15", ""],
        ),
        (
            fixture!("thick-add-period"),
            "example.info",
            &["add period", "client transfer prohibited", "server transfer prohibited"],
            ["2026-11-18", "2027-11-18", "2026-11-18", ""],
        ),
        (
            fixture!("thick-pending-restore"),
            "example.online",
            &["pending delete", "pending restore"],
            ["2019-06-01", "", "2026-11-01", ""],
        ),
        (
            fixture!("thick-pending-delete"),
            "example.online",
            &["inactive", "pending delete", "server hold"],
            ["2019-06-01", "", "", "2026-11-24"],
        ),
        (fixture!("idn"), "münchen.online", &["active"], ["2020-05-05", "", "", ""]),
        // The day is in UTC, not in the registry's time zone.
        (
            fixture!("cc-server-hold"),
            "example.co.uk",
            &["client hold", "server hold"],
            ["2026-10-19", "2027-10-19", "2026-10-19", ""],
        ),
        (
            fixture!("cc-own-words"),
            "example.pl",
            &["active"],
            ["2026-03-28", "2027-03-29", "2026-10-01", ""],
        ),
        (fixture!("cc-no-events"), "example.nl", &["active"], ["", "", "", ""]),
    ] {
        let days = days.map(str::to_owned);
        assert_eq!(outline(found(text, about)), (statuses.to_vec(), days), "{about}");
    }
}

#[test]
fn states_follow_from_statuses_and_days() {
    let state = |text, about, drop: &str| derive(&found(text, about), drop.parse().ok()).as_str();
    for (text, about, drop, expected) in [
        (fixture!("thin-held"), "example.com", "", "registered"),
        (fixture!("thin-held"), "example.com", "2026-10-01", "renewed"),
        (fixture!("thin-redemption"), "example.com", "2026-10-15", "redemption"),
        (fixture!("thin-redemption"), "example.com", "", "redemption"),
        (fixture!("thick-pending-restore"), "example.online", "2026-10-15", "redemption"),
        (fixture!("thick-pending-delete"), "example.online", "2026-10-15", "pending-delete"),
        (fixture!("thick-add-period"), "example.info", "2026-10-10", "registered-again"),
        (fixture!("thick-add-period"), "example.info", "", "registered"),
        // Registered on 19 October in UTC, so not after a drop on that day.
        (fixture!("cc-server-hold"), "example.co.uk", "2026-10-19", "renewed"),
        (fixture!("cc-server-hold"), "example.co.uk", "2026-10-18", "registered-again"),
        (fixture!("cc-no-events"), "example.nl", "2026-10-18", "registered"),
    ] {
        assert_eq!(state(text, about, drop), expected, "{about} {drop}");
    }
}

/// Tests every combination of the relevant statuses, and every order of the two days.
#[test]
fn redemption_precedes_pending_delete_and_both_precede_dates() {
    use RdapStatus::{Active, AddPeriod, PendingDelete, PendingRestore, RedemptionPeriod};
    let deciding = [RedemptionPeriod, PendingRestore, PendingDelete, Active, AddPeriod];
    let days = [None, Some(day("2026-01-01")), Some(day("2026-01-02"))];
    for bits in 0..1 << deciding.len() {
        let chosen = deciding.iter().enumerate().filter(|(at, _)| bits & 1 << at != 0);
        let statuses: RdapStatuses = chosen.map(|(_, &status)| status).collect();
        for registered_on in days {
            for drop_date in days {
                let known = Registration { statuses, registered_on, ..Registration::default() };
                let expected = if bits & 0b011 != 0 {
                    RdapState::Redemption
                } else if bits & 0b100 != 0 {
                    RdapState::PendingDelete
                } else if registered_on.is_none() || drop_date.is_none() {
                    RdapState::Registered
                } else if registered_on > drop_date {
                    RdapState::RegisteredAgain
                } else {
                    RdapState::Renewed
                };
                assert_eq!(derive(&known, drop_date), expected, "{known:?} {drop_date:?}");
            }
        }
    }
}

fn domain(members: Value) -> String {
    let mut whole = json!({"objectClassName": "domain", "ldhName": "example.com"});
    let Value::Object(members) = members else { panic!("members of an object") };
    whole.as_object_mut().expect("an object").extend(members);
    whole.to_string()
}

fn events(dates: &[(&str, &str)]) -> String {
    let event = |(action, date): &(&str, &str)| json!({"eventAction": action, "eventDate": date});
    domain(json!({"events": dates.iter().map(event).collect::<Vec<_>>()}))
}

#[test]
fn wrong_types_of_optional_members_count_as_absent() {
    for (members, statuses, registered) in [
        (json!({"status": null, "events": null}), &[][..], ""),
        (json!({"status": {"a": 1}, "events": "x"}), &[], ""),
        (json!({"status": "redemptionPeriod"}), &["redemption period"], ""),
        (json!({"status": [1, null, ["active"], "serverHold", {}]}), &["server hold"], ""),
        (json!({"objectClassName": 7, "handle": [[]], "entities": {"x": [1]}}), &[], ""),
        (json!({"objectClassName": "DOMAIN"}), &[], ""),
        (json!({"unicodeName": 3, "ldhName": "EXAMPLE.com."}), &[], ""),
        (
            json!({"events": [
                7, null, {}, {"eventAction": "registration"},
                {"eventAction": "registration", "eventDate": 20200101},
                {"eventDate": "2020-01-01T00:00:00Z"},
                {"eventAction": " Registration ", "eventDate": "2020-01-01T00:00:00Z", "x": [[1]]}
            ]}),
            &[],
            "2020-01-01",
        ),
    ] {
        let text = domain(members);
        let (got, days) = outline(found(&text, "example.com"));
        assert_eq!((got.as_slice(), days[0].as_str()), (statuses, registered), "{text}");
    }
}

#[test]
fn implausible_dates_are_ignored() {
    for (date, day) in [
        ("2026-11-20T23:59:60Z", "2026-11-20"),
        ("2026-11-20t10:00:00z", "2026-11-20"),
        ("2026-11-19T23:30:00.123456-05:00", "2026-11-20"),
        ("2026-11-20T00:30:00+0100", "2026-11-19"),
        ("2026-11-20T10:00:00", "2026-11-20"),
        ("2026-11-20 10:00:00.5", "2026-11-20"),
        ("2026-11-20", "2026-11-20"),
        // A slightly fast clock, and a completely wrong one.
        ("2026-11-22T11:00:00Z", "2026-11-22"),
        ("2026-11-23T00:00:00Z", ""),
        ("9999-12-31T23:59:59Z", ""),
        ("0001-01-01T00:00:00Z", ""),
        ("1970-01-01T00:00:00Z", ""),
        ("+262142-12-31T23:59:59-23:59", ""),
        ("2026-02-30", ""),
        ("20.11.2026", ""),
        ("", ""),
        ("２０２６-11-20", ""),
        ("2026-11-20T10:00:00.000000000000000000000000000000000Z", ""),
    ] {
        let days = outline(found(&events(&[("registration", date)]), "example.com")).1;
        assert_eq!(days[0], day, "{date}");
    }
    let several = [
        ("registration", "2010-01-01"),
        ("reregistration", "2026-11-01"),
        ("registration", "2015-01-01"),
        ("reinstantiation", "2026-11-05"),
    ];
    let found = found(&events(&several), "example.com");
    assert_eq!((found.latest.at, &*outline(found).1[0]), (None, "2026-11-01"));
}

#[test]
fn the_latest_registration_has_its_second_and_its_registrar() {
    let entity =
        |roles: Value, card: Value| json!({"handle": "292", "roles": roles, "vcardArray": card});
    let named =
        |name: Value| json!(["vcard", [["version", {}, "text", "4.0"], ["fn", {}, "text", name]]]);
    let dates = |times: &[&str]| -> Vec<Value> {
        times.iter().map(|at| json!({"eventAction": "registration", "eventDate": at})).collect()
    };
    let second = "2026-11-20T19:00:03.250Z";
    for (entities, times, registrar, at) in [
        (
            json!([
                entity(json!(["abuse"]), named(json!("Help"))),
                entity(json!(["Registrar"]), named(json!(" Example\n Inc. ")))
            ]),
            &["2010-01-01T00:00:00Z", "2026-11-20T20:00:03.25+01:00"][..],
            Some("Example Inc."),
            Some(second),
        ),
        (
            json!([entity(json!("registrar"), named(json!("One")))]),
            &[second],
            Some("One"),
            Some(second),
        ),
        (
            json!([entity(json!(["registrar"]), json!(["vcard", []]))]),
            &[second, "2026-11-20"],
            Some("292"),
            Some(second),
        ),
        (
            json!([entity(json!(["registrar"]), named(json!(7)))]),
            &[second, "2026-11-21"],
            Some("292"),
            None,
        ),
        (json!([{"roles": ["registrar"]}, [], 7, null, {"roles": {}}]), &[], None, None),
        (
            json!([entity(json!(["registrant"]), named(json!("A Person")))]),
            &["2026-12-31T00:00:00Z"],
            None,
            None,
        ),
        (json!("registrar"), &["soon"], None, None),
    ] {
        let object = json!({"objectClassName": "domain", "ldhName": "example.com", "events": dates(times), "entities": entities});
        let LatestRegistration { at: found_at, registrar: found_by } =
            found(&object.to_string(), "example.com").latest;
        assert_eq!(found_by.as_ref().map(Registrar::as_str), registrar, "{object}");
        assert_eq!(found_at.map(|at| at.to_string()).as_deref(), at, "{object}");
    }
}

#[test]
fn responses_about_other_objects_are_rejected() {
    let other = |text: &str| parse(text.as_bytes(), &name("example.com"), now());
    for (members, expected) in [
        (json!({"ldhName": "example.net"}), Unusable::OtherName),
        (json!({"ldhName": "www.example.com"}), Unusable::OtherName),
        (json!({"ldhName": "com"}), Unusable::OtherName),
        (json!({"ldhName": "example.com\u{0}"}), Unusable::OtherName),
        (json!({"ldhName": "example.net", "unicodeName": "example.com"}), Unusable::OtherName),
        (json!({"objectClassName": "nameserver"}), Unusable::NotDomain),
        (json!({"objectClassName": "entity"}), Unusable::NotDomain),
        (json!({"ldhName": null}), Unusable::NotDomain),
        (json!({"ldhName": ["example.com"]}), Unusable::NotDomain),
        (json!({"status": vec!["active"; STATUSES_MAX + 1]}), Unusable::TooMany),
        (json!({"events": vec![json!({}); EVENTS_MAX + 1]}), Unusable::TooMany),
    ] {
        let text = domain(members);
        assert_eq!(other(&text), Err(expected), "{text:.200}");
    }
    assert_eq!(other(fixture!("registrar-error")), Err(Unusable::NotDomain));
    let twice = "{\"ldhName\":\"example.com\",\"ldhName\":\"example.com\"}";
    for text in [
        fixture!("truncated"),
        "",
        "null",
        "[\"domain\",\"example.com\",null,null,null]",
        "\"example.com\"",
        "<html>",
        twice,
        "{\"ldhName\":\"example.com\"} x",
    ] {
        let got = other(text);
        assert!(matches!(got, Err(Unusable::NotJson(_) | Unusable::NotDomain)), "{text}: {got:?}");
    }
    let deep = format!("{{\"ldhName\":\"example.com\",\"x\":{}}}", "[".repeat(100_000));
    assert_eq!(other(&deep), Err(Unusable::TooDeep));
    let within =
        format!("{}1{}", "[".repeat(DEPTH_MAX as usize - 1), "]".repeat(DEPTH_MAX as usize - 1));
    let brackets = "[{\\\"".repeat(1_000);
    assert!(other(&format!("{{\"ldhName\":\"example.com\",\"x\":{within}}}")).is_ok());
    assert!(other(&format!("{{\"ldhName\":\"example.com\",\"x\":\"{brackets}\"}}")).is_ok());
    let long = domain(json!({"x": "a".repeat(RESPONSE_BYTES_MAX)}));
    assert_eq!(other(&long), Err(Unusable::TooLong));
    assert_eq!(parse(b"\xff", &name("example.com"), now()), Err(Unusable::NotText));
    let marked = format!("\u{feff}{}", domain(json!({})));
    assert!(other(&marked).is_ok(), "a byte order mark");
    assert!(other("{\"unicodeName\":\"EXAMPLE.com\"}").is_ok(), "the Unicode form alone");
}

#[test]
fn http_statuses_are_classified() {
    let reply = |status, location, retry_after| {
        let body = fixture!("thin-held").as_bytes();
        let response = Response { status, location, retry_after, body };
        read(response, &name("example.com"), now())
    };
    assert!(matches!(reply(200, None, None), Reply::Found(_)));
    assert!(matches!(reply(404, None, None), Reply::NotFound));
    for status in [301, 302, 307, 308] {
        let elsewhere = reply(status, Some("https://a.example/"), None);
        assert!(matches!(elsewhere, Reply::Elsewhere(to) if to == "https://a.example/"));
        assert!(matches!(reply(status, None, None), Reply::Unusable(_)));
    }
    for status in [429, 503] {
        assert!(matches!(reply(status, None, None), Reply::NotNow(None)));
        for (sent, wait) in [(0, None), (120, Some(120)), (u64::MAX, Some(24 * 3600))] {
            let (sent, wait) = (Duration::from_secs(sent), wait.map(Duration::from_secs));
            assert!(matches!(reply(status, None, Some(sent)), Reply::NotNow(got) if got == wait));
        }
    }
    for status in [408, 500, 502, 504, 599] {
        assert!(matches!(reply(status, None, None), Reply::Failed(got) if got == status));
    }
    assert!(matches!(reply(403, None, None), Reply::Refused));
    for status in [100, 201, 204, 300, 303, 304, 400, 401, 410, 451, 999] {
        let reply = reply(status, Some("https://a.example/"), Some(Duration::from_secs(1)));
        assert!(matches!(reply, Reply::Unusable(Unusable::Status(got)) if got == status));
    }
}

#[track_caller]
fn reply_to(status: u16, body: &[u8]) -> Reply {
    read(Response { status, location: None, retry_after: None, body }, &name("example.com"), now())
}

#[test]
fn only_an_empty_or_a_json_body_says_that_a_name_is_missing() {
    let error = |title: &str, description: &str| {
        json!({"errorCode": 404, "title": title, "description": [description]}).to_string()
    };
    let terms = json!({"errorCode": 404, "title": "Not Found", "notices": [{"title": "Terms of Use",
        "description": ["All rights reserved. Do not exceed the rate limit, or you will be throttled."]}]});
    for body in [
        "",
        " \r\n",
        "{}",
        &error("Not Found", "example.com not found"),
        &terms.to_string(),
        fixture!("registrar-error"),
    ] {
        assert!(matches!(reply_to(404, body.as_bytes()), Reply::NotFound), "{body}");
    }
    for body in [
        "<html><title>404 Not Found</title></html>",
        "<!doctype html>",
        "Not Found",
        "404 page not found\n",
        "no Route matched with those values",
        "[]",
        "null",
        "\"not found\"",
        "{\"title\": \"Not Found\"",
        "{\"message\": \"no Route matched\"} trailing",
    ] {
        assert!(matches!(reply_to(404, body.as_bytes()), Reply::Unusable(_)), "{body}");
    }
    let deep = format!("{{\"x\":{}}}", "[".repeat(1_000));
    assert!(matches!(reply_to(404, deep.as_bytes()), Reply::Unusable(Unusable::TooDeep)));
    let long = format!("{{\"x\":\"{}\"}}", "a".repeat(RESPONSE_BYTES_MAX));
    assert!(matches!(reply_to(404, long.as_bytes()), Reply::Unusable(Unusable::TooLong)));
    assert!(matches!(reply_to(404, b"\xff\xfe"), Reply::Unusable(_)));
    for body in [
        error("Not Found", "The domain name is reserved."),
        error("Reserved Name", ""),
        error("Not Found", "This name is a Premium domain"),
        json!({"errorCode": 404, "notices": [{"title": "Blocked", "description": ["Name blocked"]}]})
            .to_string(),
    ] {
        assert!(matches!(reply_to(404, body.as_bytes()), Reply::Reserved), "{body}");
    }
    let kept = found(&domain(json!({"status": ["reserved"]})), "example.com");
    assert_eq!(derive(&kept, None), RdapState::Reserved);
}

/// Forms in which registries have said that a client is too fast.
#[test]
fn words_of_throttling_pause_the_server() {
    for (status, body) in [
        (403, "Number of allowed queries exceeded."),
        (403, "<h1>Forbidden</h1><p>Rate-limit reached</p>"),
        (400, "{\"description\": [\"Too  many\\nrequests\"]}"),
        (422, "Your access is too fast, please try again later."),
        (422, ""),
        (500, "query limit exceeded"),
        (404, "{\"title\": \"Too Many Requests\", \"errorCode\": 404}"),
    ] {
        assert!(matches!(reply_to(status, body.as_bytes()), Reply::Refused), "{status} {body}");
    }
    assert!(matches!(reply_to(403, b"forbidden"), Reply::Refused));
    assert!(matches!(reply_to(400, b"bad request"), Reply::Unusable(Unusable::Status(400))));
}

proptest! {
    /// Random input, and a valid response with any truncation or any changed byte, is parsed or
    /// rejected without a panic.
    #[test]
    fn anything_is_read_or_refused(noise in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        let _ = parse(&noise, &name("example.com"), now());
    }

    #[test]
    fn damage_is_read_or_refused(cut in 0usize..4_000, at in 0usize..4_000, octet: u8) {
        let mut text = fixture!("thin-redemption").as_bytes().to_vec();
        let length = text.len();
        text[at % length] = octet;
        text.truncate(length - cut % length);
        if let Ok(registration) = parse(&text, &name("example.com"), now()) {
            prop_assert!(registration.registered_on <= Some(day("2026-11-22")));
        }
    }
}
