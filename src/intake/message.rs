//! Messages between processes: one line of JSON with a version.

use anyhow::ensure;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Incremented when the shape of a request, a command or an outcome changes.
const VERSION: u32 = 2;

#[derive(Serialize, Deserialize)]
struct Versioned<T> {
    version: u32,
    body: T,
}

/// Encodes a message as one line.
///
/// # Errors
/// A path is not UTF-8.
pub fn encode(body: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(&Versioned { version: VERSION, body })?;
    line.push(b'\n');
    Ok(line)
}

/// Decodes a message.
///
/// # Errors
/// The line is not a message, or has another version.
pub fn decode<T: DeserializeOwned>(line: &[u8]) -> anyhow::Result<T> {
    let Versioned::<Box<RawValue>> { version, body } = serde_json::from_slice(line)?;
    ensure!(version == VERSION, "message version {version}, expected {VERSION}");
    Ok(serde_json::from_str(body.get())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;

    #[test]
    fn a_message_of_another_version_is_rejected() {
        let line = encode(&Outcome::default()).expect("encodes");
        assert!(line.ends_with(b"\n"));
        let outcome: Outcome = decode(&line).expect("decodes");
        assert!(outcome.lists.is_empty() && outcome.error().is_none());
        let text = String::from_utf8(line).expect("JSON");
        let newer = text.replacen("\"version\":2", "\"version\":3", 1);
        let err = decode::<Outcome>(newer.as_bytes()).expect_err("another version");
        assert!(err.to_string().contains("message version 3, expected 2"), "{err}");
        assert!(decode::<Outcome>(b"done\n").is_err());
    }
}
