//! Sends signed messages to webhooks according to the Standard Webhooks specification.
//!
//! All attempts of a delivery share an ID; each has its own time and signature.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit, Mac};
use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use sha2::Sha256;

use crate::http::{Body, Client, Request};
use crate::vocab::secret::Secret;
use crate::vocab::url::WebhookUrl;
use crate::{Failure, SendError};

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
/// Prefix of a secret; the rest is base64.
const SECRET_PREFIX: &str = "whsec_";
/// Maximum bytes of a response body to read before closing the connection.
const BODY_MAX: usize = 16 * 1024;

/// One message for one webhook.
pub struct Message<'a> {
    pub url: &'a WebhookUrl,
    /// Secrets that sign it: two while a receiver moves to a new one.
    pub secrets: Vec<&'a Secret>,
    /// ID by which receivers recognise repeated messages: `msg_...`.
    pub id: &'a str,
    /// Body of the message, as JSON.
    pub body: String,
}

/// Sends a message. Any 2xx status is success.
///
/// # Errors
/// The message was not accepted.
pub async fn send(
    client: &Client,
    message: Message<'_>,
    now: DateTime<Utc>,
) -> Result<(), SendError> {
    let headers = headers(&message, now.timestamp())
        .ok_or_else(|| SendError::new(Failure::NotConfigured, "its secret is malformed"))?;
    let url = message.url.to_url();
    let body = Bytes::from(message.body);
    let request = Request { method: Method::POST, url, headers, body };
    let answer = client.send(request, Body::Glance(BODY_MAX)).await?;
    match answer.status.as_u16() {
        200..300 => Ok(()),
        410 => Err(SendError::new(Failure::Gone, "410")),
        status @ (429 | 502 | 503 | 504) => {
            Err(SendError::status(status).after(answer.retry_after(now)))
        }
        status => Err(SendError::status(status)),
    }
}

fn headers(message: &Message<'_>, timestamp: i64) -> Option<HeaderMap> {
    let signed = |secret: &&Secret| sign(secret, message.id, timestamp, message.body.as_bytes());
    let signatures: Vec<_> = message.secrets.iter().map(signed).collect::<Option<_>>()?;
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ID, HeaderValue::try_from(message.id).ok()?);
    headers.insert(TIMESTAMP, HeaderValue::from(timestamp));
    headers.insert(SIGNATURE, HeaderValue::try_from(signatures.join(" ")).ok()?);
    Some(headers)
}

/// `v1,` and the HMAC-SHA256 of `id.timestamp.body` in base64; `None` for a malformed secret.
fn sign(secret: &Secret, id: &str, timestamp: i64, body: &[u8]) -> Option<String> {
    let key = BASE64_STANDARD.decode(secret.reveal().strip_prefix(SECRET_PREFIX)?).ok()?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
    mac.update(format!("{id}.{timestamp}.").as_bytes());
    mac.update(body);
    Some(format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example in the specification.
    #[test]
    fn signatures_match_the_specification() {
        let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into());
        let body = br#"{"test": 2432232314}"#;
        let signature = sign(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signature.as_deref(), Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
        for none in ["", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_a"] {
            let signed = sign(&Secret::new(none.into()), "msg_1", 1, b"");
            assert_eq!(signed.is_some(), none == "whsec_", "{none}");
        }
    }
}
