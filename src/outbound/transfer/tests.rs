//! Transfers from a test server that signs messages at any spacing.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::ops::RangeInclusive;

use hickory_proto::rr::rdata::{A, NS, SOA};
use tokio::net::TcpListener;

use super::*;
use crate::dns::Dns;
use crate::guard::Guard;
use crate::settings;
use crate::vocab::net::AllowList;
use crate::vocab::url::HostRules;

const KEY: &str = "Key.example.";
const MAX: u64 = 1 << 20;

fn name(text: &str) -> Name {
    Name::from_ascii(text).expect("a name")
}

fn signer() -> TSigner {
    let secret = b"a secret of the stand-in".to_vec();
    TSigner::new(secret, TsigAlgorithm::HmacSha256, name(KEY), 300).expect("a key")
}

fn soa(owner: &str, serial: u32) -> Record {
    let data = SOA::new(name("ns.ee."), name("host.ee."), serial, 1, 2, 3, 4);
    Record::from_rdata(name(owner), 60, RData::SOA(data))
}

fn ns(owner: &str) -> Record {
    Record::from_rdata(name(owner), 60, RData::NS(NS(name("ns1.host.net."))))
}

/// The messages of a zone with one name in each. The SOA record is the first and the last record.
fn zone(messages: usize) -> Vec<Vec<Record>> {
    let mut zone: Vec<Vec<Record>> =
        (0..messages).map(|at| vec![ns(&format!("name{at}.ee."))]).collect();
    zone[0].insert(0, soa("ee.", 7));
    zone[messages - 1].push(soa("ee.", 7));
    zone
}

/// Behaviour of the test server.
#[derive(Clone, Default)]
struct Play {
    messages: Vec<Vec<Record>>,
    /// Indexes of the signed messages.
    signed: BTreeSet<usize>,
    /// Index of a message that is changed after signing.
    tampered: Option<usize>,
    /// Seconds by which the clock of the server is behind.
    behind: u64,
    /// Whether the last message is repeated forever.
    is_endless: bool,
}

fn framed(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_be_bytes(), bytes].concat()
}

/// A name in wire form, in lower case.
fn wire(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in text.trim_end_matches('.').split('.') {
        bytes.push(label.len() as u8);
        bytes.extend(label.to_ascii_lowercase().bytes());
    }
    bytes.push(0);
    bytes
}

/// Signs a message according to RFC 8945 §4.3 and §5.3.1. Returns the message with its TSIG record.
fn sign(
    bytes: &[u8],
    previous: &mut Vec<u8>,
    unsigned: &mut Vec<u8>,
    is_first: bool,
    time: u64,
) -> Vec<u8> {
    let algorithm = wire("hmac-sha256.");
    let timers = [&time.to_be_bytes()[2..], &300_u16.to_be_bytes()].concat();
    let mut digested = [&framed(previous)[..], unsigned, bytes].concat();
    if is_first {
        digested.extend([&wire(KEY)[..], &[0, 255, 0, 0, 0, 0], &algorithm].concat());
        digested.extend([&timers[..], &[0, 0, 0, 0]].concat());
    } else {
        digested.extend(&timers);
    }
    unsigned.clear();
    *previous = signer().sign(&digested).expect("signed");
    let data = [&algorithm[..], &timers, &framed(previous), &bytes[..2], &[0, 0, 0, 0]].concat();
    let mut signed = bytes.to_vec();
    // The number of additional records.
    signed[11] += 1;
    signed.extend([&wire(KEY)[..], &[0, 250, 0, 255, 0, 0, 0, 0], &framed(&data)].concat());
    signed
}

/// Serves one connection. Returns the server's address.
async fn serve(play: Play) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut question = vec![0; stream.read_u16().await.expect("a length").into()];
        stream.read_exact(&mut question).await.expect("a question");
        let question = Message::from_vec(&question).expect("a question");
        let mut previous =
            question.signature().map(|record| record.data.mac.clone()).unwrap_or_default();
        let (mut unsigned, mut is_first) = (Vec::new(), true);
        for (at, records) in play.messages.iter().enumerate() {
            let mut message = Message::new(REQUEST_ID, MessageType::Response, OpCode::Query);
            message.add_answers(records.iter().cloned());
            let mut bytes = message.to_vec().expect("a message");
            if play.signed.contains(&at) {
                let time = now() - play.behind;
                bytes = sign(&bytes, &mut previous, &mut unsigned, is_first, time);
                is_first = false;
            } else {
                unsigned.extend(&bytes);
            }
            if play.tampered == Some(at) {
                // Changes the last letter of the name.
                let at = bytes.windows(4).position(|it| it == b"name").expect("a name");
                bytes[at] = b'f';
            }
            if stream.write_all(&framed(&bytes)).await.is_err() {
                return;
            }
            if play.is_endless && at + 1 == play.messages.len() {
                while stream.write_all(&framed(&bytes)).await.is_ok() {}
            }
        }
    });
    address
}

fn client(allow: &[&str]) -> Client {
    let allow: AllowList = serde_json::from_value(serde_json::json!(allow)).expect("a list");
    let servers = vec!["127.0.0.1:1".parse().expect("an address")];
    let dns = Dns::new(&settings::Dns { servers, ..settings::Dns::default() });
    let rules = HostRules { allow, ..HostRules::default() };
    Client::new(Guard::new(rules, dns.expect("a resolver")), None).expect("a client")
}

/// Transfers the zone from the test server. Returns the text.
async fn transfer(play: Play) -> Result<String, TransferError> {
    let key = (!play.signed.is_empty()).then(|| TransferKey(signer()));
    transfer_with(play, key, MAX).await
}

async fn transfer_with(
    play: Play,
    key: Option<TransferKey>,
    max: u64,
) -> Result<String, TransferError> {
    let address = serve(play).await;
    let client = client(&[&format!("127.0.0.1/32:{}", address.port())]);
    let transfer = Transfer::connect(&client, ("127.0.0.1", address.port()), "ee", key, max);
    let mut text = Vec::new();
    transfer.await?.run(&mut text).await?;
    Ok(String::from_utf8(text).expect("ASCII"))
}

/// The first, every `step`th and the last message.
fn spaced(messages: usize, step: usize) -> BTreeSet<usize> {
    (0..messages).step_by(step).chain([messages - 1]).collect()
}

fn said(result: Result<String, TransferError>) -> String {
    result.expect_err("refused").to_string()
}

#[tokio::test]
async fn up_to_99_messages_between_signatures_are_covered_by_the_next() {
    for (messages, step) in
        [(1, 1), (2, 2), (41, 20), (45, 20), (30, 1), (31, 2), (7, 3), (101, 100), (301, 100)]
    {
        let play =
            Play { messages: zone(messages), signed: spaced(messages, step), ..Play::default() };
        let text = transfer(play).await.unwrap_or_else(|err| panic!("{messages}, {step}: {err}"));
        assert_eq!(text.lines().count(), messages + 2, "{messages}, {step}");
    }
    // Varying spacing.
    let signed = BTreeSet::from([0, 1, 2, 10, 11, 60, 150, 249]);
    let play = Play { messages: zone(250), signed, ..Play::default() };
    assert_eq!(transfer(play).await.expect("transferred").lines().count(), 252);
}

#[tokio::test]
async fn missing_signatures_are_refused() {
    let play = |signed| Play { messages: zone(150), signed, ..Play::default() };
    let first = said(transfer(play(BTreeSet::from([1, 149]))).await);
    assert!(first.contains("the first message has no signature"), "{first}");
    let last = said(transfer(play((0..149).step_by(20).collect())).await);
    assert!(last.contains("the last message has no signature"), "{last}");
    let hundred = said(transfer(play(BTreeSet::from([0, 101, 149]))).await);
    assert!(hundred.contains("more than 99 messages in a row"), "{hundred}");
    let none = Play { messages: zone(3), ..Play::default() };
    let none = said(transfer_with(none, Some(TransferKey(signer())), MAX).await);
    assert!(none.contains("the first message has no signature"), "{none}");
}

#[tokio::test]
async fn a_changed_message_is_refused_at_the_next_signature() {
    for tampered in [0, 1, 7, 19, 20, 38, 40] {
        let play = Play {
            messages: zone(41),
            signed: spaced(41, 20),
            tampered: Some(tampered),
            ..Play::default()
        };
        let error = said(transfer(play).await);
        assert!(error.contains("does not fit"), "{tampered}: {error}");
    }
}

#[tokio::test]
async fn another_key_and_a_wrong_clock_are_reported() {
    let play = |behind| Play { messages: zone(3), signed: spaced(3, 2), behind, ..Play::default() };
    assert!(transfer(play(200)).await.is_ok());
    assert!(matches!(transfer(play(4_000)).await, Err(TransferError::Clock)));
    let other = TransferKey::new("other.example.", "hmac-sha256", b"x".to_vec()).expect("a key");
    let error = said(transfer_with(play(0), Some(other), MAX).await);
    assert!(error.contains("another key"), "{error}");
    let secret = TransferKey::new(KEY, "hmac-sha256", b"x".to_vec()).expect("a key");
    let error = said(transfer_with(play(0), Some(secret), MAX).await);
    assert!(error.contains("does not fit"), "{error}");
}

#[tokio::test]
async fn a_zone_without_end_is_bounded_by_its_bytes() {
    let address = |at| Record::from_rdata(name("a.ee."), at, RData::A(A::new(192, 0, 2, 1)));
    for last in [vec![ns("a.ee.")], (0..50).map(address).collect(), Vec::new()] {
        let messages = vec![vec![soa("ee.", 7)], last];
        let play = Play { messages, is_endless: true, ..Play::default() };
        let error = said(transfer(play).await);
        assert!(error.contains("1048576") && error.contains("max_mib"), "{error}");
    }
    // The text of a zone is larger than its messages, so it has its own bound.
    let long = ns(&format!("{}.ee.", "a".repeat(60)));
    let messages = vec![vec![soa("ee.", 7)], vec![long; 200], vec![soa("ee.", 7)]];
    let play = Play { messages, ..Play::default() };
    assert!(transfer_with(play.clone(), None, 30_000).await.is_ok());
    let error = said(transfer_with(play, None, 10_000).await);
    assert!(error.contains("10000"), "{error}");
}

#[tokio::test]
async fn records_outside_the_zone_and_odd_soa_records_are_refused() {
    let run = |messages| async { said(transfer(Play { messages, ..Play::default() }).await) };
    for owner in ["a.net.", "eee.", "aee.", "."] {
        let error = run(vec![vec![soa("ee.", 7), ns(owner), soa("ee.", 7)]]).await;
        assert!(error.contains("outside the zone `ee.`"), "{owner}: {error}");
    }
    let error = run(vec![vec![soa("net.", 7), soa("net.", 7)]]).await;
    assert!(error.contains("`net.`, which is outside"), "{error}");
    let error = run(vec![vec![soa("ee.", 7)], vec![soa("ee.", 8)]]).await;
    assert!(error.contains("not that at the start"), "{error}");
    let error = run(vec![vec![soa("ee.", 7); 256]]).await;
    assert!(error.contains("after the end"), "{error}");
    let error = run(vec![vec![ns("a.ee."), soa("ee.", 7)]]).await;
    assert!(error.contains("no SOA record at the start"), "{error}");
    // Names are compared without case, and glue outside the zone is skipped.
    let glue = Record::from_rdata(name("ns.net."), 60, RData::A(A::new(192, 0, 2, 1)));
    let messages = vec![vec![soa("EE.", 7), ns("A.Ee."), glue, soa("ee.", 7)]];
    let text = transfer(Play { messages, ..Play::default() }).await.expect("transferred");
    assert_eq!(text.lines().count(), 3, "{text}");
}

/// A server that sends one small message per second occupies the source for a minute.
#[tokio::test(start_paused = true)]
async fn a_slow_server_is_left() {
    let (client, mut server) = pair().await;
    let rate = LeastRate::new(RATE_WINDOW);
    let mut transfer = Transfer {
        stream: client,
        zone: name("ee."),
        key: None,
        max_bytes: MAX,
        received: 0,
        rate,
    };
    let mut message = Message::new(REQUEST_ID, MessageType::Response, OpCode::Query);
    message.add_answer(ns("a.ee."));
    let bytes = framed(&message.to_vec().expect("a message"));
    let seconds: RangeInclusive<u32> = 1..=120;
    for second in seconds {
        server.write_all(&bytes).await.expect("sent");
        tokio::time::advance(Duration::from_secs(1)).await;
        if let Err(error) = transfer.receive(None).await {
            assert!(matches!(error, TransferError::Slow(_)), "{error}");
            assert_eq!(second, 60);
            return;
        }
    }
    panic!("it waited for two minutes");
}

async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (client, server) = tokio::join!(TcpStream::connect(address), listener.accept());
    (client.expect("connected"), server.expect("accepted").0)
}

#[tokio::test]
async fn private_servers_need_an_entry_on_the_allow_list() {
    let address = serve(Play { messages: zone(1), ..Play::default() }).await;
    for host in ["127.0.0.1", "0x7f.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]", "10.0.0.1"] {
        let made = Transfer::connect(&client(&[]), (host, address.port()), "ee", None, MAX).await;
        match made.err() {
            Some(TransferError::Connect { source: CallError::Refused(_), .. }) => {}
            other => panic!("{host}: {other:?}"),
        }
    }
    let other_port = format!("127.0.0.1/32:{}", address.port() ^ 1);
    let allowed = client(&[&other_port]);
    let made = Transfer::connect(&allowed, ("127.0.0.1", address.port()), "ee", None, MAX).await;
    assert!(made.is_err());
}
