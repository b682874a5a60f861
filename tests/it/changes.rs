//! The change feed as programs read it: pages and filters, long polls, server-sent events, limits,
//! persistence across restarts, and a server that is killed while it derives events.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use dropdex::vocab::day::Day;
use dropdex::vocab::limits::STREAMS_PER_ACCOUNT;
use serde_json::{Value, json};

use crate::common::knot::Knot;
use crate::common::rdap::{RdapServer, Says};
use crate::common::receiver::{Receiver, Reply};
use crate::common::rng::Rng;
use crate::common::runs::{figure, say, seed};
use crate::common::{Client, Server, Site, tools, wait};

const FIRST: &str = "2026-03-15";
/// Longer than any step takes, so a timeout means that the event never happens.
const WAIT_MAX: Duration = Duration::from_secs(60);
const HEADER: &str = "domain,drop_date,release_date,registered_again\n";
const ROOM: &str =
    "[plans.api]\nrequests_per_day = 1000000\nwrites_per_minute = 1000000\nexternal_names = 100\n";

fn day(days: i32) -> Day {
    FIRST.parse::<Day>().expect("a day").plus(days)
}

/// An installation with one list, and the settings of its servers.
struct World {
    site: Site,
    key: String,
    settings: String,
    lists: usize,
}

impl World {
    fn new(settings: &str) -> World {
        let site = Site::new();
        let list = site.write("list-0.csv", format!("{HEADER}past.com,2026-03-10,,\n"));
        site.ingest(&list, &format!("{FIRST}T00:00:00Z"));
        let key = site.account("owner@example.com", "api");
        let settings = site.settings(&format!("{ROOM}{settings}"));
        World { site, key, settings, lists: 0 }
    }

    fn serve(&self, days: i32) -> Server {
        self.site.serve_with(&["--today", &day(days).to_string(), "--config", &self.settings])
    }

    fn ingest(&mut self, days: i32, rows: &[String]) {
        self.lists += 1;
        let name = format!("list-{}.csv", self.lists);
        let list = self.site.write(&name, format!("{HEADER}{}\n", rows.join("\n")));
        let path = list.to_str().expect("UTF-8");
        let at = format!("{}T{:02}:00:00Z", day(days), self.lists % 24);
        self.site.ok(&["ingest", "--observed-at", &at, path]);
    }

    fn client(&self, server: &Server) -> Client {
        server.client_with(&self.key)
    }
}

fn row(name: &str, dropped: i32, release: i32) -> String {
    format!("{name},{},{},", day(dropped), day(release))
}

/// Returns all events after a number, page by page.
fn read(client: &mut Client, since: u64, query: &str) -> Vec<Value> {
    let (mut all, mut since) = (Vec::new(), since);
    loop {
        let page = client.get(&format!("/api/v1/changes?since={since}&limit=7{query}"));
        assert_eq!(page.status, 200, "{}", page.text());
        let page = page.json();
        all.extend(page["data"].as_array().expect("rows").iter().cloned());
        since = page["next"].as_u64().expect("a number");
        if since >= page["newest"].as_u64().expect("a number") {
            return all;
        }
    }
}

/// Returns day, event and name of each row.
fn told(rows: &[Value]) -> Vec<(String, String, String)> {
    let text = |row: &Value, member: &str| row[member].as_str().expect(member).to_owned();
    rows.iter().map(|row| (text(row, "day"), text(row, "event"), text(row, "domain"))).collect()
}

fn until_events(client: &mut Client, count: usize) -> Vec<Value> {
    wait::until(WAIT_MAX, "events", || read(client, 0, "").len() >= count);
    read(client, 0, "")
}

fn seq(row: &Value) -> u64 {
    row["seq"].as_u64().expect("a number")
}

#[test]
fn pages_have_the_events_of_lists_and_days() {
    let mut world = World::new("");
    let server = world.serve(0);
    let mut client = world.client(&server);
    let empty = client.get("/api/v1/changes").json();
    assert_eq!((&empty["data"], &empty["next"]), (&serde_json::json!([]), &empty["newest"]));
    world.ingest(
        0,
        &[
            row("solar.com", 0, 35),
            row("wind.de", -34, 1),
            row("xq7-z.com", 0, 35),
            row("far.com", -90, -50),
        ],
    );
    let first = until_events(&mut client, 4);
    let names: BTreeSet<_> = told(&first).into_iter().collect();
    let event = |days: i32, event: &str, name: &str| {
        (day(days).to_string(), event.to_owned(), name.to_owned())
    };
    let expected = BTreeSet::from([
        event(0, "left-zone", "solar.com"),
        event(0, "left-zone", "wind.de"),
        event(0, "drops-tomorrow", "wind.de"),
        event(0, "left-zone", "xq7-z.com"),
    ]);
    assert_eq!(names, expected);
    let solar = first.iter().find(|row| row["domain"] == "solar.com").expect("there");
    assert_eq!((solar["verified"].as_bool(), &solar["source"]), (Some(true), &"list".into()));
    assert_eq!(
        (&solar["releaseDate"], &solar["dqsBefore"]),
        (&day(35).to_string().into(), &Value::Null)
    );
    let dossier = client.get("/api/v1/domain/solar.com").json();
    assert_eq!(solar["dqs"], dossier["latestDrop"]["dqs"]);
    let tomorrow = first.iter().find(|row| row["event"] == "drops-tomorrow").expect("there");
    assert_eq!(
        (tomorrow["verified"].as_bool(), &tomorrow["source"]),
        (Some(false), &"calendar".into())
    );

    // The filters are those of queries, plus `event`.
    for (query, names) in [
        ("&tld=de", vec!["wind.de", "wind.de"]),
        ("&event=drops-tomorrow", vec!["wind.de"]),
        ("&event=drops-tomorrow,renewed&tld=com", vec![]),
        ("&starts=sol", vec!["solar.com"]),
        ("&digits=some", vec!["xq7-z.com"]),
        ("&release_to=tomorrow&event=left-zone", vec!["wind.de"]),
        ("&stage=redemption&regex=%5Es", vec!["solar.com"]),
        ("&view=today&hyphens=none", vec!["solar.com"]),
        ("&tld=net", vec![]),
    ] {
        let rows = read(&mut client, 0, query);
        let found: Vec<_> =
            rows.iter().map(|row| row["domain"].as_str().expect("a name")).collect();
        assert_eq!(found, names, "{query}");
    }
    let newest = seq(&first[3]);
    for (query, status, code) in [
        ("since=x", 400, "invalid_value"),
        ("since=-1", 400, "invalid_value"),
        ("since=99999999999999999999", 400, "invalid_value"),
        (&format!("since={}", newest + 1), 400, "invalid_value"),
        ("limit=0", 400, "invalid_value"),
        ("limit=1001", 400, "invalid_value"),
        ("wait=31", 400, "invalid_value"),
        ("event=dropped", 400, "invalid_value"),
        ("domain=com", 400, "invalid_value"),
        ("watched=yes", 400, "invalid_value"),
        ("events=renewed", 400, "unknown_parameter"),
        ("since=1", 410, "changes_gone"),
    ] {
        let (found, body) = client.get(&format!("/api/v1/changes?{query}")).answer();
        assert_eq!((found, body["code"].as_str()), (status, Some(code)), "{query}: {body}");
        let oldest = (status == 410).then(|| seq(&first[0]));
        assert_eq!(body["oldest"].as_u64(), oldest);
    }
    assert_eq!(server.client().get("/api/v1/changes").status, 401);
    server.stop();

    // Events during the downtime have the days on which they happened; earlier events are
    // unchanged.
    let server = world.serve(3);
    let mut client = world.client(&server);
    let all = until_events(&mut client, 6);
    assert_eq!(all[..4], first);
    assert_eq!(
        told(&all[4..]),
        [event(1, "drops-today", "wind.de"), event(2, "available", "wind.de")]
    );
    assert_eq!(told(&read(&mut client, newest, "")), told(&all[4..]));

    // One name, or those on the watchlist.
    let of = |name: &str| -> Vec<Value> {
        all.iter().filter(|row| row["domain"] == name).cloned().collect()
    };
    for name in ["wind.de", "WIND.de"] {
        assert_eq!(read(&mut client, 0, &format!("&domain={name}")), of("wind.de"), "{name}");
    }
    assert_eq!(read(&mut client, 0, "&domain=never-seen.com"), [] as [Value; 0]);
    assert_eq!(read(&mut client, 0, "&watched=true"), [] as [Value; 0]);
    let added = client.send("POST", "/api/v1/watchlist", &json!({"domainName": "wind.de"}));
    assert_eq!(added.status, 201, "{}", added.text());
    assert_eq!(read(&mut client, 0, "&watched=true"), of("wind.de"));
    assert_eq!(read(&mut client, 0, "&watched=false"), all);
}

#[test]
fn a_long_poll_waits_without_taking_a_read_slot() {
    let mut world = World::new("[server]\nmax_reads = 1\nmax_streams = 2\nqueue_timeout_ms = 1\n");
    let server = world.serve(0);
    let mut client = world.client(&server);
    let newest = client.get("/api/v1/changes").json()["newest"].as_u64().expect("a number");
    let begun = Instant::now();
    let page = client.get(&format!("/api/v1/changes?since={newest}&wait=1")).json();
    assert_eq!(
        (page["data"].as_array().map(Vec::len), page["next"].as_u64()),
        (Some(0), Some(newest))
    );
    assert!(begun.elapsed() >= Duration::from_secs(1), "it waited");
    let target = format!("/api/v1/changes?since={newest}&wait=30&tld=com");
    let waiting: Vec<_> = (0..2)
        .map(|_| {
            let (mut client, target) = (world.client(&server), target.clone());
            // The requests below may occupy the slot first, so this one is repeated.
            let mut poll = move || Some(client.get(&target)).filter(|page| page.status != 503);
            thread::spawn(move || wait::until_ok(WAIT_MAX, || poll().ok_or("no slot")).json())
        })
        .collect();
    // Both slots of streams are occupied; slots of reads are free.
    wait::until(WAIT_MAX, "both wait", || {
        let refused = world.client(&server).get("/api/v1/changes?wait=0");
        assert_eq!(world.client(&server).get("/api/v1/drops").status, 200);
        refused.status == 503 && refused.number("retry-after").is_some()
    });
    world.ingest(0, &[row("wind.de", 0, 35)]);
    world.ingest(0, &[row("solar.com", 0, 35)]);
    for poll in waiting {
        let page = poll.join().expect("no panic");
        let told = told(page["data"].as_array().expect("rows"));
        assert_eq!(told, [(FIRST.to_owned(), "left-zone".to_owned(), "solar.com".to_owned())]);
    }
    // A server that stops ends long polls early.
    let polling = {
        let mut client = world.client(&server);
        thread::spawn(move || client.get("/api/v1/changes?wait=30&tld=net").json())
    };
    thread::sleep(Duration::from_millis(500));
    let begun = Instant::now();
    server.stop();
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(polling.join().expect("no panic")["data"].as_array().map(Vec::len), Some(0));
}

/// A stream of server-sent events over a connection of its own.
struct Stream {
    reader: BufReader<Chunked>,
    status: u16,
}

/// A body with chunked encoding.
struct Chunked {
    inner: BufReader<TcpStream>,
    left: usize,
    /// Whether the final chunk was read, so that the body is complete.
    ended: bool,
}

/// An event with its id, or a heartbeat.
#[derive(Debug, Default, PartialEq)]
struct Event {
    id: u64,
    event: String,
    data: Option<Value>,
}

impl Read for Chunked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            let mut line = String::new();
            self.inner.read_line(&mut line)?;
            if line.trim().is_empty() {
                line.clear();
                self.inner.read_line(&mut line)?;
            }
            if line.is_empty() {
                return Ok(0);
            }
            self.left = usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
            self.ended = self.left == 0;
        }
        let room = buffer.len().min(self.left);
        let read = self.inner.read(&mut buffer[..room])?;
        self.left -= read;
        Ok(read)
    }
}

impl Stream {
    fn open(server: &Server, key: &str, target: &str, last: Option<u64>) -> Stream {
        let mut socket = TcpStream::connect(server.address()).expect("connects");
        socket.set_read_timeout(Some(WAIT_MAX)).expect("a timeout");
        let last = last.map_or(String::new(), |last| format!("Last-Event-ID: {last}\r\n"));
        let head = format!(
            "GET {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\
             Accept: text/event-stream\r\nAccept-Encoding: gzip\r\n{last}\r\n"
        );
        socket.write_all(head.as_bytes()).expect("sent");
        let mut inner = BufReader::new(socket);
        let mut line = String::new();
        inner.read_line(&mut line).expect("a status line");
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("{line:?}"));
        let mut headers = String::new();
        while line.trim() != "" {
            line.clear();
            inner.read_line(&mut line).expect("a header");
            headers.push_str(&line.to_ascii_lowercase());
        }
        if status == 200 {
            assert!(headers.contains("content-type: text/event-stream\r\n"), "{headers}");
            assert!(!headers.contains("content-encoding"), "{headers}");
        } else {
            let is_later = [429, 503].contains(&status);
            assert_eq!(is_later, headers.contains("retry-after: "), "{headers}");
        }
        let reader = BufReader::new(Chunked { inner, left: 0, ended: false });
        let mut stream = Stream { reader, status };
        if status == 200 {
            let retry = stream.block().expect("the first lines");
            assert!(retry.starts_with("retry: "), "{retry}");
        }
        stream
    }

    /// Returns the lines up to the next empty one; `None` at the end of the body.
    fn block(&mut self) -> Option<String> {
        let mut block = String::new();
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).expect("readable") == 0 {
                assert!(self.reader.get_ref().ended && block.is_empty(), "cut off: {block}");
                return None;
            }
            if line == "\n" {
                return Some(block);
            }
            block.push_str(&line);
        }
    }

    /// Returns the next event with data.
    fn event(&mut self) -> Option<Event> {
        loop {
            let mut event = Event::default();
            for line in self.block()?.lines() {
                match line.split_once(':').expect("a field") {
                    ("id", id) => event.id = id.trim().parse().expect("a number"),
                    ("event", kind) => event.event = kind.trim().to_owned(),
                    ("data", data) => event.data = serde_json::from_str(data).expect("JSON"),
                    ("", _) => {}
                    other => panic!("{other:?}"),
                }
            }
            if event.data.is_some() {
                return Some(event);
            }
        }
    }
}

#[test]
fn an_account_cannot_take_all_streams() {
    let world = World::new("");
    let server = world.serve(0);
    let mut streams: Vec<Stream> = (0..STREAMS_PER_ACCOUNT)
        .map(|_| Stream::open(&server, &world.key, "/api/v1/changes", None))
        .collect();
    assert!(streams.iter().all(|stream| stream.status == 200));
    let mut client = world.client(&server);
    let refused = client.get("/api/v1/changes?wait=1");
    assert_eq!((refused.status, refused.number("retry-after")), (429, Some(30)));
    assert_eq!(refused.json()["code"], "streams_open");
    // Other requests and accounts are served, and the end of a stream frees a slot.
    assert_eq!(client.get("/api/v1/changes").status, 200);
    let other = world.site.account("other@example.com", "api");
    assert_eq!(Stream::open(&server, &other, "/api/v1/changes", None).status, 200);
    streams.pop();
    wait::until(WAIT_MAX, "room for one more", || {
        Stream::open(&server, &world.key, "/api/v1/changes", None).status == 200
    });
}

#[test]
fn a_key_that_stops_working_ends_its_streams() {
    // A heartbeat comes after half of this time.
    let mut world = World::new("[server]\nwrite_stall_seconds = 4\n");
    let mut client_of = |email: &str| (email.to_owned(), world.site.account(email, "api"));
    let accounts =
        ["disabled@example.com", "replaced@example.com", "moved@example.com", "quiet@example.com"]
            .map(&mut client_of);
    let server = world.serve(0);
    let open = |key: &str| Stream::open(&server, key, "/api/v1/changes", None);
    let mut streams = accounts.each_ref().map(|(_, key)| open(key));
    let mut kept = open(&world.key);
    let newest = world.client(&server).get("/api/v1/changes").json()["newest"].clone();
    let poll = {
        let mut client = server.client_with(&accounts[0].1);
        thread::spawn(move || client.get(&format!("/api/v1/changes?since={newest}&wait=30")))
    };
    let [disabled, replaced, moved, quiet] = &accounts;
    wait::until(WAIT_MAX, "the poll waits", || {
        let text = server.client_with(&disabled.1).get("/api/v1/changes?wait=1&since=0");
        text.status == 200
    });
    // Without an event, the stream ends at the next heartbeat.
    world.site.ok(&["account", "disable", &quiet.0]);
    while streams[3].block().is_some() {}
    world.site.ok(&["account", "disable", &disabled.0]);
    world.site.ok(&["account", "key", &replaced.0]);
    world.site.ok(&["account", "set-plan", &moved.0, "core"]);
    world.ingest(0, &[row("solar.com", 0, 35)]);
    assert_eq!(kept.event().map(|event| event.event), Some("left-zone".to_owned()));
    for (stream, (email, _)) in streams[..3].iter_mut().zip(&accounts) {
        assert_eq!(stream.event(), None, "{email}");
    }
    let poll = poll.join().expect("no panic");
    assert_eq!((poll.status, poll.json()["code"].as_str()), (401, Some("invalid_key")));
}

#[test]
fn streams_have_every_event_and_resume_where_they_were() {
    let clients = figure(50, 1_000);
    let mut world =
        World::new(&format!("[server]\nmax_streams = {clients}\nqueue_timeout_ms = 1\n"));
    let server = world.serve(0);
    let keys: Vec<String> = (0..clients.div_ceil(STREAMS_PER_ACCOUNT as usize))
        .map(|number| world.site.account(&format!("reader{number}@example.com"), "api"))
        .collect();
    let mut streams: Vec<Stream> = (0..clients)
        .map(|at| Stream::open(&server, &keys[at % keys.len()], "/api/v1/changes", None))
        .collect();
    assert!(streams.iter().all(|stream| stream.status == 200));
    let refused = Stream::open(&server, &world.key, "/api/v1/changes", None);
    assert_eq!(refused.status, 503, "one more than there are slots");
    world.ingest(0, &[row("solar.com", 0, 35), row("wind.de", -34, 1)]);
    let rows = until_events(&mut world.client(&server), 3);
    for stream in &mut streams {
        for row in &rows {
            let event = stream.event().expect("an event");
            assert_eq!((event.id, event.data.as_ref()), (seq(row), Some(row)));
            assert_eq!(row["event"], event.event.as_str());
        }
    }
    say(&format!("{clients} streams got {} events each", rows.len()));
    // One client disconnects: its slot becomes free, and it reconnects for the events that it missed.
    streams.pop();
    let mut again = wait::until_ok(WAIT_MAX, || {
        let stream = Stream::open(
            &server,
            &world.key,
            "/api/v1/changes?since=0&tld=com,de",
            Some(seq(&rows[0])),
        );
        if stream.status == 200 { Ok(stream) } else { Err("no slot") }
    });
    for row in &rows[1..] {
        assert_eq!(again.event().map(|event| event.id), Some(seq(row)));
    }
    // Filtered events are not sent.
    drop(streams.pop());
    let mut filtered = wait::until_ok(WAIT_MAX, || {
        let target = "/api/v1/changes?since=0&event=drops-tomorrow";
        let stream = Stream::open(&server, &world.key, target, None);
        if stream.status == 200 { Ok(stream) } else { Err("no slot") }
    });
    assert_eq!(filtered.event().expect("an event").event, "drops-tomorrow");
    // A shutdown completes the responses of all streams, without waiting for their clients.
    let begun = Instant::now();
    server.stop();
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    for mut stream in streams.into_iter().chain([again, filtered]) {
        assert_eq!(stream.event(), None);
    }
    let server = world.serve(0);
    let gone = Stream::open(&server, &world.key, "/api/v1/changes", Some(1));
    assert_eq!(gone.status, 410);
    let bad = Stream::open(&server, &world.key, "/api/v1/changes", Some(u64::MAX));
    assert_eq!(bad.status, 400);
}

#[test]
fn registry_events_are_shown_only_to_accounts_that_watch_the_name() {
    let com = RdapServer::start();
    com.publish_servers(&[(&["com"], &com)]);
    com.say("solar.com", Says::held_with("2000-01-01", &["pending delete"]));
    let zone = Knot::start_zone("com.", "");
    let mut world = World::new("");
    world.settings = world.site.settings(&format!(
        "{ROOM}[rdap]\nbootstrap = \"{}\"\nrequests_per_second = 50\nconcurrency = 2\nallow = [{:?}]\n\
         [dns.zones]\ncom = [\"{}\"]\n",
        com.bootstrap_url(),
        com.allowed(),
        zone.address(),
    ));
    world.ingest(0, &[row("solar.com", -34, 1)]);
    let other_key = world.site.account("other@example.com", "api");
    let server = world.serve(0);
    let mut client = world.client(&server);
    let watch = serde_json::json!({"domainName": "solar.com"});
    assert_eq!(client.send("POST", "/api/v1/watchlist", &watch).status, 201);
    let state = |client: &mut Client| {
        client.get("/api/v1/watchlist").json()["watchlist"][0]["rdapObservedState"].clone()
    };
    wait::until(WAIT_MAX, "the first answer", || state(&mut client) == "pending-delete");
    com.say("solar.com", Says::NotFound);
    server.stop();
    // The name was released in the meantime, so the registry is queried at once.
    let server = world.serve(1);
    let mut client = world.client(&server);
    let of_registry = |client: &mut Client| {
        let mut rows = read(client, 0, "");
        rows.retain(|row| row["source"] == "registry");
        rows
    };
    wait::until(WAIT_MAX, "the event", || !of_registry(&mut client).is_empty());
    let rows = of_registry(&mut client);
    let expected = (day(1).to_string(), "available".to_owned(), "solar.com".to_owned());
    assert_eq!((told(&rows), rows[0]["verified"].as_bool()), (vec![expected], Some(true)));
    let mut other = server.client_with(&other_key);
    let availability =
        |client: &mut Client| client.get("/api/v1/domain/solar.com").json()["availability"].take();
    assert_eq!(availability(&mut client)["state"], "available");
    assert_eq!(availability(&mut other), Value::Null);
    let seen = read(&mut other, 0, "");
    assert!(!seen.is_empty() && seen.iter().all(|row| row["source"] != "registry"), "{seen:?}");
    server.stop();
    // Watching a name later does not reveal that another account watched it before.
    let server = world.serve(2);
    let mut other = server.client_with(&other_key);
    assert_eq!(other.send("POST", "/api/v1/watchlist", &watch).status, 201);
    assert_eq!(of_registry(&mut other), Vec::<Value>::new());
    assert_eq!(of_registry(&mut world.client(&server)), rows);
    server.stop();
    // Both accounts see who caught the name, and when.
    com.say("solar.com", Says::held_since(&day(2).to_string()));
    let server = world.serve(3);
    for key in [&world.key, &other_key] {
        let mut client = server.client_with(key);
        let last = |client: &mut Client| of_registry(client).pop();
        let caught = |row: Value| (row["event"] == "registered-again").then_some(row);
        wait::until(WAIT_MAX, "the event", || last(&mut client).and_then(caught).is_some());
        let row = last(&mut client).expect("an event");
        let at = format!("{}T04:00:00.000Z", day(2));
        let registrar = "Example Registrar";
        assert_eq!((&row["registeredAt"], &row["registrar"]), (&at.into(), &registrar.into()));
        assert_eq!(availability(&mut client)["registrar"], registrar);
    }
    assert!(rows.iter().all(|row| row["registeredAt"].is_null() && row["registrar"].is_null()));
}

#[test]
fn events_have_the_second_that_a_list_states() {
    let mut world = World::new("");
    let server = world.serve(0);
    let mut client = world.client(&server);
    let times = |rows: &[Value]| -> Vec<Value> {
        rows.iter().map(|row| row["releaseAt"].clone()).collect()
    };
    let stated = format!("{}T11:31:21Z", day(9));
    world.ingest(0, &[format!("solar.uk,{},{stated},", day(0)), row("wind.uk", 0, 9)]);
    let rows = until_events(&mut client, 2);
    let at = |name: &str| {
        let rows: Vec<Value> = rows.iter().filter(|row| row["domain"] == name).cloned().collect();
        times(&rows)
    };
    assert_eq!(at("solar.uk"), [stated.replace('Z', ".000Z")]);
    assert_eq!(at("wind.uk"), [Value::Null], "only its day is known");
    // The release of the event is that of its time.
    let moved = format!("{}T10:00:00Z", day(20));
    world.ingest(1, &[format!("solar.uk,{},{moved},", day(0))]);
    wait::until(WAIT_MAX, "the new release", || {
        client.get("/api/v1/domain/solar.uk").json()["releaseDate"] == day(20).to_string()
    });
    let first = read(&mut client, 0, "&tld=uk&event=left-zone");
    let first = first.iter().find(|row| row["domain"] == "solar.uk").expect("an event");
    assert_eq!(
        (&first["releaseDate"], &first["releaseAt"]),
        (&day(9).to_string().into(), &Value::Null)
    );
}

#[test]
fn the_documented_program_resumes_where_it_was() {
    let mut world = World::new("");
    let server = world.serve(0);
    world.ingest(0, &[row("solar.com", -34, 1), row("wind.de", 0, 35)]);
    until_events(&mut world.client(&server), 3);
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/data/examples/changes.py");
    let run = |world: &World| {
        let output = Command::new(tools::python())
            .arg(program)
            .current_dir(world.site.lists())
            .env("DROPDEX_URL", format!("http://{}", server.address()))
            .env("DROPDEX_KEY", &world.key)
            .env("ROUNDS", "1")
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let lines = run(&world);
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with(&format!("{FIRST} left-zone solar.com ")), "{lines:?}");
    assert!(lines[1].starts_with(&format!("{FIRST} drops-tomorrow solar.com ")), "{lines:?}");
    world.ingest(0, &[row("lunar.com", 0, 35)]);
    assert!(run(&world).starts_with(&format!("{FIRST} left-zone lunar.com ")));
}

#[test]
fn the_documented_program_survives_a_restart_and_names_missing_settings() {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/data/examples/changes.py");
    let dir = Site::new();
    let without = Command::new(tools::python())
        .arg(program)
        .env_remove("DROPDEX_URL")
        .env_remove("DROPDEX_KEY")
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&without.stderr).into_owned();
    assert!(said.starts_with("set DROPDEX_URL") && !without.status.success(), "{said}");
    // A server that is busy, then fails in the middle of a response, then works again.
    let page = br#"{"data":[{"day":"2026-03-15","event":"left-zone","domain":"a.com","dqs":7}],"next":5,"newest":5}"#;
    let server = Receiver::http(move |at, _| match at {
        0 => Reply::Answer(503, vec![("Retry-After", "1".to_owned())], b"{}".to_vec()),
        1 => Reply::Answer(429, vec![("Retry-After", "1".to_owned())], b"{}".to_vec()),
        2 => Reply::Close,
        _ => Reply::Answer(200, vec![], page.to_vec()),
    });
    let output = Command::new(tools::python())
        .arg(program)
        .current_dir(dir.lists())
        .env("DROPDEX_URL", server.url(""))
        .env("DROPDEX_KEY", "k")
        .env("ROUNDS", "4")
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && !said.contains("Traceback"), "{said}");
    assert_eq!(said.matches("; trying again in ").count(), 3, "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "2026-03-15 left-zone a.com 7\n");
}

/// Kills at random moments, mostly while lists and days are derived.
#[test]
fn a_kill_loses_no_event_and_repeats_none() {
    let (seed, kills) = (seed(), figure(8, 100));
    let mut rng = Rng::new(seed);
    let mut world = World::new("");
    world.serve(0).stop();
    let (mut today, mut releases) = (0, BTreeMap::new());
    let mut known: Vec<Value> = Vec::new();
    for number in 0..kills {
        today += rng.between(0, 2);
        let is_up = rng.chance(50);
        let server = is_up.then(|| world.serve(today));
        if rng.chance(70) {
            let rows: Vec<String> = (0..rng.between(1, 40))
                .map(|at| {
                    let name = format!("n{number}-{at}.com");
                    let release = today + rng.between(1, 9);
                    releases.insert(name.clone(), release);
                    row(&name, release - 35, release)
                })
                .collect();
            world.ingest(today, &rows);
        }
        let server = server.unwrap_or_else(|| world.serve(today));
        thread::sleep(Duration::from_millis(rng.below(400) as u64));
        if rng.chance(40) {
            // Events that a client has read neither change nor get other numbers.
            let rows = read(&mut world.client(&server), 0, "");
            assert_eq!(rows[..known.len().min(rows.len())], known, "seed {seed}");
            known = rows;
        }
        server.kill();
    }
    let server = world.serve(today);
    let mut client = world.client(&server);
    let mut all = Vec::new();
    wait::until(WAIT_MAX, "every name", || {
        all = read(&mut client, 0, "");
        let names: BTreeSet<String> = told(&all).into_iter().map(|(_, _, name)| name).collect();
        releases.keys().all(|name| names.contains(name))
    });
    assert_eq!(all[..known.len()], known, "seed {seed}");
    assert!(all.is_sorted_by(|one, next| seq(one) < seq(next)));
    let mut found: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for (on, event, name) in told(&all) {
        found.entry(name).or_default().push((event, on));
    }
    for (name, release) in &releases {
        let mut events = found.remove(name).unwrap_or_default();
        events.sort();
        let listed = events.iter().map(|(_, on)| on).min().expect("it has events");
        let listed = listed.parse::<Day>().expect("a day").days_since(day(0));
        // No `left-zone` event is expected for a name that is released by the day its list is read.
        let mut expected = Vec::new();
        if listed < *release {
            expected.push(("left-zone".to_owned(), day(listed).to_string()));
        }
        let mut expect = |event: &str, on: i32, last: i32| {
            let on = on.max(listed);
            if on <= last && on <= today {
                expected.push((event.to_owned(), day(on).to_string()));
            }
        };
        expect("pending-delete", release - 5, release - 2);
        expect("drops-tomorrow", release - 1, release - 1);
        expect("drops-today", *release, *release);
        expect("available", release + 1, i32::MAX);
        expected.sort();
        assert_eq!(events, expected, "seed {seed}: {name}, released on day {release}");
    }
    say(&format!(
        "{kills} kills over {today} days: {} events of {} names, each once",
        all.len(),
        releases.len()
    ));
}
