//! ICANN's Centralized Zone Data Service (API specification 1.0.9): logs in, lists the zones of the
//! account, and downloads those that changed.
//!
//! A token is kept in the folder of the source until shortly before it expires, because the service
//! allows only eight log-ins in five minutes. The token is sent only to `*.icann.org` and to the host
//! of the configured URL. Links are used as the service returns them.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::fetch::{Ask, FetchError, Fetcher};
use crate::settings::{Source, shown, zone_of};
use crate::state::{self, Approval};
use crate::vocab::secret::Secret;

pub(super) const TOKEN: &str = "token.json";
/// Time before its expiry at which a token is no longer used.
const RENEWED_BEFORE: TimeDelta = TimeDelta::seconds(30);
/// Lifetime of a token without an expiry.
const LIFE_DEFAULT: TimeDelta = TimeDelta::hours(1);
/// Path of the report of zone requests, on the host of the links.
const REPORT: &str = "/czds/requests/report";
/// Maximum characters of a cell in the report.
const CELL_MAX: usize = 70;
/// Maximum number of links that do not lead to a zone file and are quoted in a message.
const ODD_NAMED: usize = 3;
/// Maximum characters of such a link in a message.
const ODD_CHARS_MAX: usize = 100;
/// Maximum bytes of the list of links: several times that of all zones.
const LINKS_MAX: usize = 4 << 20;

/// The stored form of a token.
#[derive(Serialize, Deserialize)]
struct StoredToken {
    token: Secret,
    expires: DateTime<Utc>,
}

/// The zone links of an account.
#[derive(Debug, Default)]
pub struct ZoneLinks {
    /// One link for each requested zone.
    pub zones: Vec<Url>,
    /// Other problems of the list of links, as text.
    pub warnings: Vec<String>,
}

/// Logs in, unless the token in `folder` is still valid, and returns the links to the zone files that
/// the account may download. A link that does not lead to a zone file causes a warning and does not
/// affect the others.
///
/// # Errors
/// The service refuses, or sends an unexpected response.
pub async fn zone_links(
    fetcher: &Fetcher,
    source: &Source,
    folder: &Path,
) -> Result<ZoneLinks, FetchError> {
    use_token(fetcher, source, folder).await?;
    let mut links = match links(fetcher, source).await {
        // The token was revoked.
        Err(FetchError::Unauthorized) => {
            log_in(fetcher, source, folder).await?;
            links(fetcher, source).await?
        }
        links => links?,
    };
    let linked = |zone: &String| links.zones.iter().any(|url| zone_of(url).as_ref() == Some(zone));
    let missing: Vec<&str> =
        source.zones.iter().filter(|zone| !linked(zone)).map(String::as_str).collect();
    if !missing.is_empty() {
        let missing = missing.join(", ");
        links.warnings.push(format!("no link to {missing}; request access on the portal"));
    }
    let is_wanted = |url: &Url| {
        source.zones.is_empty() || zone_of(url).is_some_and(|zone| source.zones.contains(&zone))
    };
    links.zones.retain(is_wanted);
    if links.zones.is_empty() {
        let mut why =
            "the account may download none of the wanted zones; request access on the portal"
                .to_owned();
        for warning in &links.warnings {
            why = format!("{why}; {warning}");
        }
        return Err(FetchError::NoLink(why));
    }
    fastrand::shuffle(&mut links.zones);
    Ok(links)
}

/// Returns the zones that the account has requested, with their approvals. The report is
/// undocumented, so a run continues without it.
pub async fn approvals(fetcher: &Fetcher, source: &Source) -> Option<Vec<Approval>> {
    let url = source.addresses.first()?.on(fetcher.clock.today()).join(REPORT).ok()?;
    let report = fetcher.text(source, Ask::get(&url), LINKS_MAX).await;
    let report = report.inspect_err(|err| tracing::debug!(error = %err, "CZDS gives no report"));
    parse_report(&report.ok()?)
}

/// Parses the columns `Email,TLD name,Status,Last Updated,Reason,Expire Date`. Returns `None` if
/// required columns are missing.
fn parse_report(text: &str) -> Option<Vec<Approval>> {
    let mut report = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let header = report.headers().ok()?.clone();
    let column =
        |word: &str| header.iter().position(|name| name.to_ascii_lowercase().starts_with(word));
    let (zone, status, expires) = (column("tld")?, column("status")?, column("expire"));
    let text = |cell: &str| cell.chars().filter(|c| !c.is_control()).take(CELL_MAX).collect();
    let rows = report.records().map_while(Result::ok).filter_map(|row| {
        let expires = expires.and_then(|at| row.get(at)).filter(|cell| !cell.is_empty());
        Some(Approval {
            zone: text(row.get(zone)?),
            status: text(row.get(status)?),
            expires: expires.map(text),
        })
    });
    Some(rows.collect())
}

async fn links(fetcher: &Fetcher, source: &Source) -> Result<ZoneLinks, FetchError> {
    let mut listed = Vec::new();
    for address in &source.addresses {
        let url = address.on(fetcher.clock.today());
        let text = fetcher.text(source, Ask::get(&url), LINKS_MAX).await?;
        if text.trim_start().starts_with('<') {
            return Err(FetchError::WebPage);
        }
        let links: Vec<serde_json::Value> =
            serde_json::from_str(&text).map_err(|err| FetchError::NoLink(err.to_string()))?;
        listed.extend(links);
    }
    Ok(sort_out(source, &listed))
}

/// Returns one link for each zone, treating links that differ only in case or query as the same. Other links
/// become warnings.
fn sort_out(source: &Source, listed: &[serde_json::Value]) -> ZoneLinks {
    let (mut links, mut zones, mut odd) = (ZoneLinks::default(), HashSet::new(), Vec::new());
    for link in listed {
        let text = link.as_str().map_or_else(|| link.to_string(), str::to_owned);
        let url = link.as_str().and_then(|link| Url::parse(link.trim()).ok());
        let why = match url.as_ref().map(|url| (url, zone_of(url))) {
            None => "which is not an address",
            Some((url, _)) if !source.may_have_token(url) => "which leads elsewhere",
            Some((_, None)) => "which is not a zone file",
            Some((_, Some(zone))) => {
                if zones.insert(zone) {
                    links.zones.extend(url);
                }
                continue;
            }
        };
        let shown = url.as_ref().map_or(text, shown);
        let shown: String = shown.chars().filter(|c| !c.is_control()).take(ODD_CHARS_MAX).collect();
        odd.push(format!("`{shown}`, {why}"));
    }
    if !odd.is_empty() {
        let more = odd.len().saturating_sub(ODD_NAMED);
        let mut named = odd[..odd.len() - more].join("; ");
        if more > 0 {
            named = format!("{named}; and {more} more");
        }
        links.warnings.push(format!("not downloaded from the list of links: {named}"));
    }
    links
}

/// Uses the token in `folder` or, without a valid one, logs in.
async fn use_token(fetcher: &Fetcher, source: &Source, folder: &Path) -> Result<(), FetchError> {
    let kept = fs::read(folder.join(TOKEN)).ok();
    let kept = kept.and_then(|bytes| serde_json::from_slice::<StoredToken>(&bytes).ok());
    match kept {
        Some(StoredToken { token, expires }) if expires - RENEWED_BEFORE > fetcher.clock.now() => {
            fetcher.set_bearer(token);
            Ok(())
        }
        _ => log_in(fetcher, source, folder).await,
    }
}

/// Logs in and stores the token.
///
/// # Errors
/// The service refuses the login.
pub async fn log_in(fetcher: &Fetcher, source: &Source, folder: &Path) -> Result<(), FetchError> {
    /// Body of the login request.
    #[derive(Serialize)]
    struct LoginRequest<'a> {
        username: &'a str,
        password: &'a str,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct LoginResponse {
        access_token: Secret,
    }
    let (Some(login), Some(url)) = (&source.login, &source.login_url) else {
        return Err(FetchError::NoLogin(source.name.clone()));
    };
    let password = login.password.read().map_err(FetchError::Password)?;
    let request = LoginRequest { username: &login.username, password: password.reveal() };
    let body = serde_json::to_vec(&request).map_err(std::io::Error::from)?;
    let json = HeaderValue::from_static("application/json");
    let headers = HeaderMap::from_iter([(ACCEPT, json.clone()), (CONTENT_TYPE, json)]);
    let ask = Ask { method: Method::POST, url, headers, body: Bytes::from(body) };
    fetcher.set_bearer(Secret::default());
    let text = match fetcher.text(source, ask, LINKS_MAX).await {
        // Bad request: the service may respond with this status to a login with unusual characters.
        Err(FetchError::Status(400)) => return Err(FetchError::Unauthorized),
        text => text?,
    };
    if text.trim_start().starts_with('<') {
        return Err(FetchError::WebPage);
    }
    let response: LoginResponse = serde_json::from_str(&text)
        .map_err(|_| FetchError::NoLink("the log-in returned no token".to_owned()))?;
    let token = response.access_token;
    let expires = expiry(token.reveal()).unwrap_or(fetcher.clock.now() + LIFE_DEFAULT);
    fetcher.set_bearer(token.clone());
    state::write(folder, TOKEN, &StoredToken { token, expires }).map_err(std::io::Error::other)?;
    Ok(())
}

/// Returns `exp` of a JSON Web Token. The token is not verified, because only the service can do
/// that.
fn expiry(token: &str) -> Option<DateTime<Utc>> {
    #[derive(Deserialize)]
    struct JwtClaims {
        exp: i64,
    }
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?.trim_end_matches('=')).ok()?;
    DateTime::from_timestamp(serde_json::from_slice::<JwtClaims>(&claims).ok()?.exp, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_token_is_read_from_it() {
        let claims = URL_SAFE_NO_PAD.encode(br#"{"sub":"a","exp":1795435200}"#);
        let at = expiry(&format!("e30.{claims}.x")).expect("it says");
        assert_eq!(at.to_rfc3339(), "2026-11-23T12:00:00+00:00");
        for bad in ["", "a.b.c", "e30.e30.x", "e30"] {
            assert_eq!(expiry(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_report_of_requests_is_read_by_its_header() {
        let text = "Email,TLD name,Status,Last Updated,Reason,Expire Date\n\
                    me@a.example,com,Approved,2026-09-01,\"a, b\",2027-01-04\n\
                    me@a.example,app,Pending,2026-09-01,,\n";
        let approval = |zone: &str, status: &str, expires: Option<&str>| Approval {
            zone: zone.to_owned(),
            status: status.to_owned(),
            expires: expires.map(str::to_owned),
        };
        let expected =
            vec![approval("com", "Approved", Some("2027-01-04")), approval("app", "Pending", None)];
        assert_eq!(parse_report(text), Some(expected));
        assert_eq!(parse_report("<!DOCTYPE html>\n"), None);
        assert_eq!(parse_report(""), None);
    }

    #[test]
    fn links_are_sorted_out_one_to_a_zone() {
        let mut source = Source::from(crate::presets::find("czds").expect("a preset"));
        source.name = "czds".to_owned();
        let base = "https://czds-download-api.icann.org/czds/downloads";
        let listed = serde_json::json!([
            format!("{base}/com.zone"),
            format!("{base}/COM.zone"),
            format!("{base}/com.zone?token=1"),
            format!(" {base}/net.zone "),
            format!("{base}/guide.pdf"),
            "http://czds-download-api.icann.org/czds/downloads/org.zone",
            "https://evil.example/czds/downloads/app.zone?key=secret",
            "nonsense",
            null,
        ]);
        let links = sort_out(&source, listed.as_array().expect("an array"));
        let zones: Vec<_> = links.zones.iter().filter_map(zone_of).collect();
        assert_eq!(zones, ["com", "net"]);
        let [warning] = &links.warnings[..] else { panic!("one warning: {:?}", links.warnings) };
        for part in ["guide.pdf`, which is not a zone file", "org.zone`, which leads elsewhere"] {
            assert!(warning.contains(part), "{warning}");
        }
        assert!(warning.contains("evil.example") && !warning.contains("secret"), "{warning}");
        assert!(warning.ends_with("; and 2 more"), "{warning}");
    }

    #[test]
    fn links_name_their_zone() {
        let zone = |url: &str| zone_of(&Url::parse(url).expect("a URL"));
        let base = "https://czds-download-api.icann.org/czds/downloads";
        assert_eq!(zone(&format!("{base}/com.zone")).as_deref(), Some("com"));
        assert_eq!(zone(&format!("{base}/XN--P1AI.zone")).as_deref(), Some("xn--p1ai"));
        for bad in ["com", ".zone", "com.zone/", "a%2fb.zone"] {
            assert_eq!(zone(&format!("{base}/{bad}")), None, "{bad}");
        }
    }
}
