//! Queries to the CDX server of the Wayback Machine: when a host was captured, and how it answered.
//!
//! No response is taken for "no captures" but an empty list: pages for maintenance, cut bodies and lists of another
//! shape are failures.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{Datelike, NaiveDate};
use hyper::body::Bytes;
use hyper::header::{ACCEPT, HeaderMap, HeaderValue};
use hyper::{Method, StatusCode};
use url::Url;

use crate::http::{Answer, Body, CallError, Client, Request};
use crate::vocab::clock::Clock;
use crate::vocab::name::DomainName;

/// Maximum rows of a response. Of a host with more, the pages that sort first are known.
const ROWS_MAX: usize = 2_000;
/// Maximum bytes of a response; a row has about 60.
const BYTES_MAX: usize = 1 << 20;
/// The first row of a response.
const HEADER: [&str; 3] = ["timestamp", "statuscode", "digest"];
/// First year of the web; an earlier capture is a fault of the index.
const YEAR_MIN: i32 = 1991;
const DAYS_OF_YEAR: i64 = 365;

/// The captures of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captures {
    /// Year of the first capture.
    pub first: u16,
    /// Year of the last one; `None` if the response was cut.
    pub last: Option<u16>,
    /// Number of days with a capture, or more if the response was cut.
    pub days: u16,
    pub is_cut: bool,
    /// Share of redirects among the captures with a status, in percent.
    pub redirects: Option<u8>,
    /// Years of the longest time without a capture, rounded down; `None` if the response was cut.
    pub gap: Option<u16>,
}

/// Interpreted response of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// `None` if there are no captures.
    Captures(Option<Captures>),
    /// Rate limited, with the delay if the server gives one.
    NotNow(Option<Duration>),
    /// A temporary fault: the query may be repeated, after the delay if the server gives one.
    Again(Option<Duration>, Fault),
    /// The server answers no query about the host.
    Refused(u16),
}

/// Why a response is not a list of captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("HTTP status {0}")]
    Status(u16),
    #[error("not a list in JSON")]
    NotJson,
    #[error("a list with other columns")]
    Columns,
    #[error("a row that is not a capture")]
    Row,
}

/// Asks about the captures of a host.
///
/// # Errors
/// No usable response was received.
pub async fn ask(
    client: &Client,
    base: &Url,
    name: &DomainName,
    clock: Clock,
) -> Result<Reply, CallError> {
    let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
    let request =
        Request { method: Method::GET, url: url(base, name), headers, body: Bytes::new() };
    let answer = client.send(request, Body::Whole(BYTES_MAX)).await?;
    Ok(read(&answer, answer.retry_after(clock.now())))
}

fn url(base: &Url, name: &DomainName) -> Url {
    let mut url = base.clone();
    url.query_pairs_mut()
        .append_pair("url", name.as_str())
        .append_pair("matchType", "host")
        .append_pair("fl", &HEADER.join(","))
        .append_pair("collapse", "timestamp:8")
        .append_pair("output", "json")
        .append_pair("limit", &ROWS_MAX.to_string());
    url
}

fn read(answer: &Answer, wait: Option<Duration>) -> Reply {
    let wait = wait.filter(|wait| !wait.is_zero());
    match answer.status {
        StatusCode::OK => match captures(&answer.body) {
            Ok(captures) => Reply::Captures(captures),
            Err(fault) => Reply::Again(wait, fault),
        },
        StatusCode::TOO_MANY_REQUESTS => Reply::NotNow(wait),
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::MISDIRECTED_REQUEST => {
            Reply::Again(wait, Fault::Status(answer.status.as_u16()))
        }
        status if status.is_server_error() => Reply::Again(wait, Fault::Status(status.as_u16())),
        status => Reply::Refused(status.as_u16()),
    }
}

/// Reads a list of captures; `None` if it has none. Rows are sorted by address, not by time.
fn captures(body: &[u8]) -> Result<Option<Captures>, Fault> {
    if body.trim_ascii().is_empty() {
        return Ok(None);
    }
    let rows: Vec<Vec<String>> = serde_json::from_slice(body).map_err(|_| Fault::NotJson)?;
    let Some((header, rows)) = rows.split_first() else { return Ok(None) };
    if header != &HEADER {
        return Err(Fault::Columns);
    }
    let (mut days, mut known, mut redirects) = (BTreeSet::new(), 0, 0);
    for row in rows {
        let [timestamp, status, _] = &row[..] else { return Err(Fault::Row) };
        days.insert(day_of(timestamp).ok_or(Fault::Row)?);
        // A capture that repeats an earlier one has `-`.
        if status != "-" {
            let status: u16 = status.parse().map_err(|_| Fault::Row)?;
            (known, redirects) = (known + 1, redirects + usize::from(status / 100 == 3));
        }
    }
    let (Some(first), Some(last)) = (days.first(), days.last()) else { return Ok(None) };
    let is_cut = rows.len() >= ROWS_MAX;
    let gaps = days.iter().zip(days.iter().skip(1)).map(|(one, next)| (*next - *one).num_days());
    let gap = gaps.max().unwrap_or(0) / DAYS_OF_YEAR;
    Ok(Some(Captures {
        first: first.year() as u16,
        last: (!is_cut).then_some(last.year() as u16),
        days: days.len().min(ROWS_MAX) as u16,
        is_cut,
        redirects: (known > 0).then(|| (redirects * 100 / known.max(1)) as u8),
        gap: (!is_cut).then_some(gap as u16),
    }))
}

/// Parses the day of a timestamp such as `20010203040506`.
fn day_of(timestamp: &str) -> Option<NaiveDate> {
    let is_digits = timestamp.len() == 14 && timestamp.bytes().all(|byte| byte.is_ascii_digit());
    let day = is_digits.then(|| NaiveDate::parse_from_str(&timestamp[..8], "%Y%m%d").ok())??;
    (YEAR_MIN..=2100).contains(&day.year()).then_some(day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(rows: &[(&str, &str)]) -> String {
        let mut all = vec![HEADER.to_vec()];
        all.extend(rows.iter().map(|(timestamp, status)| vec![*timestamp, *status, "SHA1"]));
        serde_json::to_string(&all).expect("text")
    }

    fn reply(status: u16, wait: Option<u64>, body: &str) -> Reply {
        let status = StatusCode::from_u16(status).expect("a status");
        let answer = Answer { status, headers: HeaderMap::new(), body: body.into() };
        read(&answer, wait.map(Duration::from_secs))
    }

    #[test]
    fn years_days_redirects_and_the_longest_gap_are_read() {
        let body = list(&[
            ("20040101000000", "301"),
            ("20040101120000", "200"),
            // Rows of another page.
            ("19981224000000", "200"),
            ("20100202000000", "-"),
            ("20100203000000", "302"),
        ]);
        let captures = Captures {
            first: 1998,
            last: Some(2010),
            days: 4,
            is_cut: false,
            redirects: Some(50),
            gap: Some(6),
        };
        assert_eq!(reply(200, None, &body), Reply::Captures(Some(captures)));
        let repeated = list(&[("20100203000000", "-")]);
        let Reply::Captures(Some(captures)) = reply(200, None, &repeated) else { panic!() };
        assert_eq!((captures.days, captures.redirects, captures.gap), (1, None, Some(0)));
    }

    #[test]
    fn a_list_at_the_limit_has_no_last_year_and_no_gap() {
        let days: Vec<String> =
            (0..ROWS_MAX).map(|at| format!("{}0101000000", 1996 + at % 20)).collect();
        let rows: Vec<(&str, &str)> = days.iter().map(|day| (&**day, "200")).collect();
        let captures = Captures {
            first: 1996,
            last: None,
            days: 20,
            is_cut: true,
            redirects: Some(0),
            gap: None,
        };
        assert_eq!(reply(200, None, &list(&rows)), Reply::Captures(Some(captures)));
    }

    #[test]
    fn only_an_empty_list_means_no_captures() {
        for body in ["", "\n", "[]", &list(&[])] {
            assert_eq!(reply(200, None, body), Reply::Captures(None), "{body}");
        }
        let good = list(&[("20040101000000", "200"), ("20050101000000", "200")]);
        let cases = [
            ("<html><title>Temporarily Offline</title></html>", Fault::NotJson),
            (&good[..good.len() - 9], Fault::NotJson),
            ("{}", Fault::NotJson),
            ("null", Fault::NotJson),
            ("[[\"timestamp\",\"statuscode\",\"digest\"],[1,2,3]]", Fault::NotJson),
            ("[[]]", Fault::Columns),
            ("[[\"urlkey\",\"timestamp\",\"original\"]]", Fault::Columns),
            (&good.replace("20050101000000", "20051301000000"), Fault::Row),
            (&good.replace("20050101000000", "19700101000000"), Fault::Row),
            (&good.replace("20050101000000", "2005"), Fault::Row),
            (&good.replace("\"200\"", "\"ok\""), Fault::Row),
            (&good.replace(",\"SHA1\"", ""), Fault::Row),
        ];
        for (body, fault) in cases {
            assert_eq!(reply(200, None, body), Reply::Again(None, fault), "{body}");
        }
    }

    #[test]
    fn each_status_is_repeated_waited_for_or_final() {
        let wait = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(reply(429, Some(7), ""), Reply::NotNow(wait(7)));
        assert_eq!(reply(429, None, ""), Reply::NotNow(None));
        assert_eq!(reply(429, Some(0), ""), Reply::NotNow(None));
        for status in [413, 421, 500, 502, 503, 504, 599] {
            assert_eq!(reply(status, None, "[]"), Reply::Again(None, Fault::Status(status)));
        }
        assert_eq!(reply(503, Some(9), ""), Reply::Again(wait(9), Fault::Status(503)));
        for status in [204, 302, 400, 403, 404] {
            assert_eq!(reply(status, None, "[]"), Reply::Refused(status));
        }
    }

    #[test]
    fn a_query_has_the_documented_parameters() {
        let base = Url::parse("https://web.archive.org/cdx/search/cdx").expect("an address");
        let name = DomainName::parse("solar.com").expect("a name");
        assert_eq!(
            url(&base, &name).as_str(),
            "https://web.archive.org/cdx/search/cdx?url=solar.com&matchType=host\
             &fl=timestamp%2Cstatuscode%2Cdigest&collapse=timestamp%3A8&output=json&limit=2000"
        );
    }
}
