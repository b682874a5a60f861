//! One function for every parser of untrusted bytes. Each target asserts what must hold for any bytes,
//! above all that the parser does not panic.
//!
//! `cargo fuzz` runs the targets guided by coverage (`tests/fuzz`); `tests/fuzz.rs` runs them on
//! the kept inputs and on variations from a seed.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use axum::http::header::{CONTENT_ENCODING, LOCATION};
use axum::http::{HeaderMap, HeaderValue, Uri};
use chrono::{DateTime, Utc};
use dropdex::accounts::event::{TRANSACTION, Transaction};
use dropdex::accounts::{Email, IdempotencyKey};
use dropdex::corpus::batch::{Batch, BatchMeta};
use dropdex::corpus::merge::Merge;
use dropdex::edge::mount::Mount;
use dropdex::feeds::{Feed, Format, ReadOptions, Row, Sighting};
use dropdex::http::cursor::{self, QueryDigest};
use dropdex::index::filter::RowPosition;
use dropdex::index::storage::manifest::Manifest;
use dropdex::journal::frame::{
    RecordFields, RecordKind, SegmentHeader, decode_record, encode_record, record_bytes,
};
use dropdex::journal::{PAYLOAD_BYTES_MAX, Unread};
use dropdex::outbound::coding::Codings;
use dropdex::outbound::rdap as answers;
use dropdex::query::matcher::{Matcher, Trail};
use dropdex::query::text::{NamePrefix, Substring};
use dropdex::vocab::day::Day;
use dropdex::vocab::name::{DomainName, NAME_OCTETS_MAX};
use dropdex::vocab::rdap::{Bootstrap, RdapBase};
use dropdex::vocab::url::{BaseUrl, WEBHOOK_URL_MAX, WebhookUrl};
use tempfile::TempDir;

pub use crate::service::{bodies, cursor_pages, forms, headers, queries};

/// Patterns, regular expressions and labels to compare with. A matcher handles every label. The result
/// of a matcher is the same whether it reads a label from the start or after another label, and the
/// length and literals that it reports hold for all matches.
pub fn matchers(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let matchers = [
        Matcher::pattern(&text).ok(),
        Matcher::regex(&text).ok(),
        Matcher::like(&text, 1).ok(),
        Matcher::like(&text, 2).ok(),
    ];
    for matcher in matchers.into_iter().flatten() {
        let mut trail = Trail::default();
        let mut before = "";
        for label in ["a", "a1", "a1-b", "bank", "banks", "solar", "xyzzy"] {
            let matches = matcher.matches(label, label);
            let shared = before.bytes().zip(label.bytes()).take_while(|(one, other)| one == other);
            let extended = matcher.extend(&mut trail, shared.count(), label.as_bytes());
            assert_eq!(extended, matches, "{matcher:?} {label}");
            let literals = matcher.literals();
            let announced = literals.is_empty()
                || literals.iter().any(|literal| label.contains(literal.as_str()));
            let length = matcher.lengths().contains(&(label.len() as u8));
            assert!(!matches || (announced && length), "{matcher:?} {label}");
            before = label;
        }
        let _ = matcher.matches("xn--mnchen-3ya", "münchen");
    }
}

/// Days of filters, absolute and relative: the text of a parsed day is parsed as the same day.
pub fn days(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for today in [Day::MIN, "2026-10-03".parse().expect("a day"), Day::MAX] {
        let Ok(day) = Day::parse_from(&text, today) else { continue };
        assert_eq!(Day::parse_from(&day.to_string(), today), Ok(day));
        let ahead = day.days_since(today);
        let sign = if ahead < 0 { '-' } else { '+' };
        assert_eq!(Day::parse_from(&format!("{sign}{}d", ahead.abs()), today), Ok(day));
    }
}

/// Cursors. An accepted text equals the encoding of its row, and belongs to one query only. Any row
/// can be encoded.
pub fn cursors(bytes: &[u8]) {
    let [query, other] =
        ["name", "length"].map(|sort| QueryDigest::new(vec![("sort", sort), ("tld", "com")]));
    let text = String::from_utf8_lossy(bytes);
    if let Ok(position) = cursor::decode(&text, query) {
        assert_eq!(cursor::encode(&position, query), text);
    }
    let Some((numbers, name)) = bytes.split_first_chunk::<16>() else { return };
    let (value, key) = numbers.split_at(8);
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let name = String::from_utf8_lossy(name).into_owned();
    let position = RowPosition { value: number(value), key: number(key), name };
    let written = cursor::encode(&position, query);
    assert_eq!(cursor::decode(&written, query).ok().as_ref(), Some(&position));
    assert!(cursor::decode(&written, other).is_err(), "{position:?}");
    let mut bent = written.into_bytes();
    let at = numbers[0] as usize % bent.len();
    bent[at] = if bent[at] == b'A' { b'B' } else { b'A' };
    let bent = String::from_utf8(bent).expect("ASCII");
    assert!(cursor::decode(&bent, query).is_err(), "{bent}");
}

/// Names, and other texts that people enter instead of names. Canonical text parses as itself.
pub fn names(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(name) = DomainName::parse(&text) {
        let canonical = name.as_str();
        assert!(canonical.len() <= NAME_OCTETS_MAX && canonical.is_ascii());
        assert_eq!(DomainName::parse(canonical).as_ref(), Ok(&name));
        assert_eq!(DomainName::parse(&name.unicode()).as_ref(), Ok(&name));
        let stored = DomainName::from_stored(canonical.as_bytes(), name.label_len());
        assert_eq!(stored.as_ref(), Some(&name));
    }
    if let Some((&label_len, stored)) = bytes.split_first() {
        let _ = DomainName::from_stored(stored, label_len);
    }
    if let Ok(prefix) = NamePrefix::parse(&text) {
        assert!(!prefix.as_str().is_empty());
    }
    if let Ok(part) = Substring::parse(&text) {
        assert!(!part.as_str().is_empty());
    }
    if let Ok(email) = text.parse::<Email>() {
        assert_eq!(email.as_str().parse::<Email>().as_ref(), Ok(&email));
    }
    if let Ok(day) = text.parse::<Day>() {
        assert_eq!(day.to_string().parse::<Day>(), Ok(day));
    }
    let _ = IdempotencyKey::parse(&text);
}

/// Addresses that users and registries enter. Accepted text parses as itself.
pub fn urls(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(url) = WebhookUrl::parse(text) {
        let canonical = url.as_str();
        assert!(canonical.len() <= WEBHOOK_URL_MAX && canonical.starts_with("https://"));
        assert_eq!(WebhookUrl::parse(canonical).as_ref(), Ok(&url));
    }
    if let Some(base) = RdapBase::parse(text, &|_| false) {
        let name = DomainName::parse("example.com").expect("a name");
        let asked = base.domain(&name);
        assert_eq!(asked.scheme(), "https");
        assert!(asked.path().ends_with("/domain/example.com"));
    }
}

/// A list whose format is detected from its content; the first byte selects its file name.
pub fn feed_any(bytes: &[u8]) {
    const NAMES: [&str; 4] = ["list.csv", "2026-10-03-drops.txt", "pl.txt", "list.json"];
    let Some((&first, list)) = bytes.split_first() else { return };
    read_list(NAMES[usize::from(first) % NAMES.len()], None, list);
}

/// Our own CSV.
pub fn feed_native(bytes: &[u8]) {
    read_list("list.csv", Some(Format::Native), bytes);
}

/// Bare names, dropped or registered.
pub fn feed_names(bytes: &[u8]) {
    read_list("names.txt", Some(Format::Names), bytes);
    read_list("names.txt", Some(Format::Registered), bytes);
}

/// Pool.com's text.
pub fn feed_pool(bytes: &[u8]) {
    read_list("pool.txt", Some(Format::Pool), bytes);
}

/// Lists of objects.
pub fn feed_json(bytes: &[u8]) {
    read_list("bardate.json", Some(Format::Json), bytes);
}

/// Tables, and texts with a time stamp or a release day.
pub fn feed_tables(bytes: &[u8]) {
    read_list("table.csv", Some(Format::Delimited), bytes);
    read_list("bardate.txt", Some(Format::Bardate), bytes);
    read_list("stamped.txt", Some(Format::Stamped), bytes);
    read_list("dynadot.csv", Some(Format::Dynadot), bytes);
    read_list("history.csv", Some(Format::History), bytes);
    let options = options(Some(Format::Ranked));
    let Ok((_, ranks)) = Feed::open_ranked(&as_file("tranco.csv", bytes), &options) else { return };
    for row in ranks.map_while(Result::ok) {
        if let Row::Seen(seen) = row {
            assert_eq!(DomainName::parse(seen.name.as_str()).as_ref(), Ok(&seen.name));
        }
    }
}

/// A zone file.
pub fn feed_zone(bytes: &[u8]) {
    let Ok((apex, owners)) = Feed::open_zone(&as_file("zone.txt", bytes)) else { return };
    for row in owners {
        match row {
            Ok(Row::Seen(seen)) => assert_eq!(seen.name.tld(), apex),
            Ok(Row::Rejected(_)) => {}
            Err(_) => return,
        }
    }
}

fn options(format: Option<Format>) -> ReadOptions {
    let day = "2026-10-03".parse().expect("a day");
    ReadOptions { format, drop_date: Some(day), observed_at: None, now: a_time() }
}

fn read_list(file: &str, format: Option<Format>, bytes: &[u8]) {
    let options = options(format);
    let Ok(feed) = Feed::open(&as_file(file, bytes), &options) else { return };
    for row in feed {
        match row {
            Ok(Row::Seen(seen)) => {
                assert_eq!(DomainName::parse(seen.name.as_str()).as_ref(), Ok(&seen.name));
                if let Sighting::Dropped { date, release: Some(release), .. } = seen.sighting {
                    // Both days exist. The order of the days depends on the list.
                    let _ = (date.to_string(), release.to_string());
                }
            }
            Ok(Row::Rejected(reject)) => drop(reject),
            Err(_) => return,
        }
    }
}

/// Records and headers of segments. A written record reads back unchanged; arbitrary bytes in its place
/// are refused, unless their checksum matches.
pub fn journal(bytes: &[u8]) {
    let _ = SegmentHeader::decode(bytes);
    let uuid = [7; 16];
    let _ = decode_record(bytes, &uuid);
    let Some((&kind, payload)) = bytes.split_first() else { return };
    let payload = &payload[..payload.len().min(PAYLOAD_BYTES_MAX)];
    let fields = RecordFields {
        seq: 1,
        durable_seq: 0,
        epoch: 1,
        kind: RecordKind::for_caller(16 + u16::from(kind)).expect("16 and on are the caller's"),
        flags: 0,
        unix_ms: 0,
    };
    let mut written = Vec::new();
    encode_record(&mut written, &uuid, &[0; 16], &fields, payload);
    assert_eq!(written.len(), record_bytes(payload.len()));
    let record = decode_record(&written, &uuid).expect("a written record is readable");
    assert_eq!((record.payload, record.fields.kind), (payload, fields.kind));
    // The checksum of a record does not validate its meaning, so any payload must be handled.
    for kind in [TRANSACTION, fields.kind] {
        let _ = Transaction::decode(kind, payload);
    }
}

/// A folder in which these bytes are in turn a segment, a snapshot and a commit mark.
pub fn journal_files(bytes: &[u8]) {
    let folder = scratch("journal");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the scratch folder is writable");
    let (&first, bytes) = bytes.split_first().unwrap_or((&0, &[]));
    const NAMES: [&str; 3] = ["00000000000000000001.seg", "MARK", "00000000000000000001.snap"];
    let name = NAMES[usize::from(first) % NAMES.len()];
    std::fs::write(folder.join(name), bytes).expect("the scratch folder is writable");
    let disk = dropdex::journal::fs::Disk;
    let _ = dropdex::journal::inspect(&disk, &folder, None, &mut Unread);
    let _ = dropdex::journal::verify_snapshot(&disk, &folder.join(name));
}

/// A batch of the corpus, with the correct checksum over the other bytes.
pub fn batch(bytes: &[u8]) {
    let mut file = bytes.to_vec();
    if let Some(end) = file.len().checked_sub(40) {
        let sum = blake3::hash(&file[..end]);
        file[end..end + 32].copy_from_slice(sum.as_bytes());
    }
    let path = as_file("batch.ddb", &file);
    let _ = BatchMeta::peek(&path);
    let Ok(batch) = Batch::open(&path) else { return };
    let Ok(mut entries) = Merge::new([&batch], b"") else { return };
    while entries.peek().is_some() && entries.advance().is_ok() {}
}

/// A manifest with the correct checksum in its line.
pub fn manifest(bytes: &[u8]) {
    let folder = scratch("generation");
    std::fs::create_dir_all(&folder).expect("the scratch folder is writable");
    let mut text = bytes.to_vec();
    text.push(b'\n');
    text.extend_from_slice(blake3::hash(bytes).to_hex().as_bytes());
    text.push(b'\n');
    for text in [text.as_slice(), bytes] {
        std::fs::write(folder.join("MANIFEST"), text).expect("the scratch folder is writable");
        let _ = Manifest::read(&folder);
    }
    std::fs::write(folder.join("CURRENT"), bytes).expect("the scratch folder is writable");
    let _ = dropdex::index::storage::manifest::current(&folder);
}

/// A response of a registry; the first two bytes are its status and whether it has a `Location`.
pub fn rdap(bytes: &[u8]) {
    const STATUSES: [u16; 10] = [200, 200, 200, 404, 302, 429, 503, 500, 403, 422];
    let name = DomainName::parse("example.com").expect("a name");
    let (&first, body) = bytes.split_first().unwrap_or((&0, &[]));
    let text = std::str::from_utf8(body).ok();
    let response = answers::Response {
        status: STATUSES[usize::from(first) % STATUSES.len()],
        location: text,
        retry_after: None,
        body,
    };
    let reply = answers::read(response, &name, a_time());
    if let answers::Reply::Found(found) = reply {
        let _ = answers::derive(&found, "2026-10-03".parse().ok());
    }
}

/// A response in the content codings that the first line names. Decoding yields no more bytes than
/// the bound.
pub fn codings(bytes: &[u8]) {
    const MOST: usize = 1 << 20;
    let line = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let (names, body) = bytes.split_at(line);
    let Ok(names) = HeaderValue::from_bytes(names) else { return };
    let headers = HeaderMap::from_iter([(CONTENT_ENCODING, names)]);
    let Ok(codings) = Codings::of(&headers) else { return };
    let body = body.get(1..).unwrap_or_default();
    match codings.decode(body.to_vec(), MOST) {
        Ok(decoded) if codings.is_empty() => assert_eq!(decoded, body),
        Ok(decoded) => assert!(decoded.len() <= MOST),
        Err(err) => assert!(!err.to_string().is_empty()),
    }
}

/// The path of a server, the address of a request and a `Location`, one per line. Addresses of this
/// server stay below the path, and nothing else changes.
pub fn mounts(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut lines = text.splitn(3, '\n');
    let mut line = || lines.next().unwrap_or_default();
    let Ok(home) = BaseUrl::try_from(format!("https://example.com{}", line())) else { return };
    let mount = Mount::new(Some(&home));
    if let Ok(sent) = line().parse::<Uri>() {
        let mut meant = sent.clone();
        mount.enter(&mut meant);
        assert!(meant == sent || sent.path().starts_with(home.path()), "{sent} {meant}");
        assert_eq!(meant.query(), sent.query(), "{sent}");
    }
    let Ok(location) = HeaderValue::from_str(line()) else { return };
    let mut headers = HeaderMap::from_iter([(LOCATION, location.clone())]);
    mount.head(&mut headers);
    let moved = std::str::from_utf8(headers[LOCATION].as_bytes()).expect("text stays text");
    let is_local = |to: &str| to.starts_with('/') && !to[1..].starts_with(['/', '\\']);
    let location = std::str::from_utf8(location.as_bytes()).expect("a part of a text");
    assert_eq!(moved != location, is_local(location) && !home.path().is_empty(), "{location}");
}

/// IANA's bootstrap registry.
pub fn bootstrap(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(read) = Bootstrap::parse(text, &|_| false) {
        let name = DomainName::parse("example.com").expect("a name");
        assert!(read.servers(&name).iter().all(|base| base.domain(&name).scheme() == "https"));
    }
}

fn a_time() -> DateTime<Utc> {
    DateTime::from_timestamp(1_790_000_000, 0).expect("a time")
}

/// Returns a file with these bytes in this thread's own folder.
fn as_file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = scratch(name);
    let mut file = File::create(&path).expect("the scratch folder is writable");
    file.write_all(bytes).expect("the scratch folder has room");
    path
}

/// Returns a path in this thread's own folder, which is deleted when the thread ends.
fn scratch(name: &str) -> PathBuf {
    thread_local! {
        static FOLDER: TempDir = scratch_folder();
    }
    FOLDER.with(|folder| folder.path().join(name))
}

/// Creates a folder, in memory if possible: targets write thousands of files a second.
pub fn scratch_folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let folder = tempfile::Builder::new().prefix("dropdex-fuzz-").tempdir_in(parent);
    folder.expect("a scratch folder can be created")
}
