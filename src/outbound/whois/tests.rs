use tokio::net::TcpListener;

use super::*;
use crate::dns::Dns;
use crate::settings;
use crate::vocab::net::AllowList;
use crate::vocab::url::HostRules;

fn name(text: &str) -> DomainName {
    DomainName::parse(text).expect(text)
}

fn told(domain: &str, answer: &str) -> Result<Answer, WhoisError> {
    let name = name(domain);
    let server = server(name.tld(), &WhoisHosts::new()).expect("a server");
    read(answer.as_bytes(), server.rule, &name)
}

#[test]
fn every_row_of_the_table_is_a_rule_and_bad_rows_are_refused() {
    assert!(RULES.len() > 35);
    for (suffix, rule) in RULES.iter() {
        let free = rule.free.replace("{name}", "shop.example");
        assert_eq!(free, plain(&free), "{suffix}: lines are compared in this form");
    }
    for row in [
        "xx,whois.xx.example,{name},free",
        "xx,,{name},free,one",
        "xx,whois.xx.example,name,free,one",
        "xx,whois.xx.example,{name},Free,one",
        "xx,whois.xx.example,{name},free,surely",
        "xx,not a host,{name},free,one",
        "yy,whois.yy.example,{name},free,one\nyy,whois.yy.example,{name},free,one",
    ] {
        let text = format!("suffix,host,query,free,proof\n{row}\n");
        assert!(parse(&text).is_err(), "{row}");
    }
}

/// Answers in the shapes of recorded ones.
#[test]
fn free_and_taken_names_are_distinguished() {
    for (domain, answer) in [
        ("free.se", "# Copyright of the registry\n#\ndomain \"free.se\" not found.\n"),
        ("free.eu", "% Terms\n\nDomain: free.eu\nScript: LATIN\n\nStatus: AVAILABLE\n"),
        ("free.be", "% Terms of use\nDomain:\tfree.be\nStatus:\tAVAILABLE\n"),
        ("free.it", "Domain:             free.it\nStatus:             AVAILABLE\n"),
        ("free.at", "% Copyright\n\n% nothing found\n"),
        ("free.ee", "Estonia .ee Top Level Domain WHOIS server\n\nDomain not found\n"),
        ("free.cl", "free.cl: no existe\n"),
        (
            "free.jp",
            "[ JPRS database provides information on network administration. ]\n\nNo match!!\n",
        ),
        ("free.ru", "% TCI Whois Service.\n\nNo entries found for the selected source(s).\n"),
        ("xn--mnchen-3ya.it", "Domain: xn--mnchen-3ya.it\r\nStatus: AVAILABLE\r\n"),
    ] {
        assert_eq!(told(domain, answer), Ok(Answer::Missing), "{domain}");
    }
    for (domain, answer) in [
        ("held.se", "state: active\ndomain: held.se\nholder: abc0001\ncreated: 2001-02-03\n"),
        (
            "held.ru",
            "domain: HELD.RU\nnserver: ns1.example.\nstate: REGISTERED, DELEGATED\nregistrar: X\n",
        ),
        ("held.jp", "[Domain Name]  HELD.JP\n[Registrant]  Somebody\n[Status] Active\n"),
        (
            "held.ee",
            "Domain:\nname: held.ee\nstatus: ok (paid and in zone)\nregistered: 2010-07-04\n",
        ),
        ("held.sk", "Domain: held.sk\nRegistrant: ABC-1\nCreated: 2003-01-02\n"),
        ("held.it", "Domain: held.it\nStatus: ok\nCreated: 2001-01-01\nExpire Date: 2027-01-01\n"),
        // Terms of use hold words of throttling.
        (
            "held.eu",
            "% Queries may be throttled; too many requests are refused.\nDomain: held.eu\nRegistrar:\n  Name: X\n",
        ),
        ("xn--mnchen-3ya.it", "Domain: münchen.it\nStatus: ok\nCreated: 2012-07-11\n"),
    ] {
        assert_eq!(told(domain, answer), Ok(Answer::Found), "{domain}");
    }
    for (domain, answer) in [
        ("kept.it", "Domain: kept.it\nStatus: UNASSIGNABLE\n"),
        ("kept.be", "Domain:\tkept.be\nStatus:\tNOT ALLOWED\n"),
        ("kept.jp", "[Domain Name] KEPT.JP\n[Registrant]\n[Status] Reserved\n"),
        ("kept.cn", "the domain you requested is reserved name\n"),
    ] {
        assert_eq!(told(domain, answer), Ok(Answer::Reserved), "{domain}");
    }
}

#[test]
fn answers_that_only_read_as_free_prove_nothing() {
    for (domain, answer) in [
        ("held.ru", "Too many requests...\nNo entries found for the selected source(s).\n"),
        ("held.be", "% Excessive querying, grace period of 2 seconds\nStatus: AVAILABLE\n"),
        ("held.dk", "# Too many connections\n"),
        ("held.nz", "query_status: 440 Request Denied\n"),
    ] {
        assert_eq!(told(domain, answer), Err(WhoisError::Throttled), "{domain}");
    }
    for (domain, answer) in [
        ("held.se", ""),
        ("held.se", "The service is down for maintenance.\n"),
        // About another name.
        ("held.se", "domain \"other.se\" not found.\n"),
        ("held.ru", "domain: OTHER.RU\nregistrar: X\n"),
        // A registered name of .eu has no status line, and an answer without fields is cut.
        ("held.eu", "Domain: held.eu\nScript: LATIN\n"),
        ("held.it", "<html><body>Not Found</body></html>"),
        // The words for a free name were never compared with an answer.
        ("held.mx", "Object_Not_Found\n"),
        ("held.cl", "held.cl.: no existe, que sepamos\n"),
    ] {
        assert_eq!(told(domain, answer), Err(WhoisError::Unclear), "{domain}: {answer}");
    }
    // Latin-1, and ISO-2022-JP with its escape sequences.
    let latin: &[u8] = b"domain: held.se\nholder: M\xfcller\ncreated: 2001-01-01\n";
    let server = server("se", &WhoisHosts::new()).expect("a server");
    assert_eq!(read(latin, server.rule, &name("held.se")), Ok(Answer::Found));
    let japanese: &[u8] = b"[Domain Name] HELD.JP\n[Registrant] \x1b$B3t<02q<R\x1b(B\n";
    let jp = super::server("jp", &WhoisHosts::new()).expect("a server");
    assert_eq!(read(japanese, jp.rule, &name("held.jp")), Ok(Answer::Found));
}

/// Serves one connection: sends `parts` with a pause before each, then closes unless `stays`.
async fn serve(
    parts: Vec<(u64, Vec<u8>)>,
    stays: bool,
) -> (Host, u16, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a client");
        let mut query = vec![0; 512];
        let length = stream.read(&mut query).await.expect("a query");
        for (pause_ms, part) in parts {
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            if stream.write_all(&part).await.is_err() {
                break;
            }
        }
        if stays {
            tokio::time::sleep(Duration::from_secs(3_600)).await;
        }
        String::from_utf8_lossy(&query[..length]).into_owned()
    });
    (Host::Ipv4(std::net::Ipv4Addr::LOCALHOST), port, task)
}

fn guard(allow: &[&str]) -> Guard {
    let allow: AllowList = serde_json::from_value(serde_json::json!(allow)).expect("a list");
    let dns = Dns::new(&settings::Dns::default()).expect("a resolver");
    Guard::new(HostRules { allow, ..HostRules::default() }, dns)
}

#[tokio::test]
async fn servers_are_asked_with_one_line_and_bounds() {
    let free = b"domain \"free.se\" not found.\n".to_vec();
    let ask_it = async |parts, stays, allowed: bool| {
        let (host, port, task) = serve(parts, stays).await;
        let chosen = WhoisHosts::from([("se".to_owned(), (host, port))]);
        let server = server("se", &chosen).expect("a server");
        let address = format!("127.0.0.1/32:{port}");
        let allow = [address.as_str()];
        let guard = guard(if allowed { &allow } else { &[] });
        let answer = ask(&server, &guard, &name("free.se")).await;
        task.abort();
        (answer, task.await.ok())
    };
    let (answer, _) = ask_it(vec![(0, free.clone())], false, true).await;
    assert_eq!(answer, Ok(Answer::Missing));
    let halves = vec![(0, free[..9].to_vec()), (50, free[9..].to_vec())];
    assert_eq!(ask_it(halves, false, true).await.0, Ok(Answer::Missing));
    let huge = vec![(0, vec![b'x'; 1 << 20])];
    assert_eq!(ask_it(huge, false, true).await.0, Err(WhoisError::TooLong));
    let (answer, _) = ask_it(vec![(0, free.clone())], false, false).await;
    assert!(matches!(answer, Err(WhoisError::Refused(_))), "{answer:?}");
}

#[tokio::test]
async fn a_server_that_drips_or_stays_open_is_left_at_the_deadline() {
    let free = b"domain \"free.se\" not found.\n".to_vec();
    for (parts, stays) in [(vec![(0, free.clone())], true), (vec![(20, vec![b'x']); 1_000], false)]
    {
        let (host, port, task) = serve(parts, stays).await;
        let chosen = WhoisHosts::from([("se".to_owned(), (host, port))]);
        let server = server("se", &chosen).expect("a server");
        let guard = guard(&[&format!("127.0.0.1/32:{port}")]);
        let limit = Duration::from_millis(300);
        let answer = ask_within(limit, &server, &guard, &name("free.se")).await;
        assert_eq!(answer, Err(WhoisError::Timeout), "an answer ends when the server closes");
        task.abort();
    }
}
