//! Text that must not appear in a log.

use std::path::PathBuf;
use std::{fmt, io};

use serde::{Deserialize, Serialize};

use crate::text_file;

/// A key, password or token. `Debug` prints a placeholder; there is no `Display`.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: String) -> Secret {
        Secret(text)
    }

    /// Returns the text, for code that hashes it, signs with it or sends it to its recipient.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// A password or token, or the file that contains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    Text(Secret),
    File(PathBuf),
}

impl SecretSource {
    /// Reads the secret, without a trailing line break of the file.
    ///
    /// # Errors
    /// The file cannot be read, or is empty.
    pub fn read(&self) -> io::Result<Secret> {
        match self {
            SecretSource::Text(secret) => Ok(secret.clone()),
            SecretSource::File(path) => {
                let named = |err: io::Error| {
                    io::Error::new(err.kind(), format!("{}: {err}", path.display()))
                };
                let text = text_file::read_text(path).map_err(named)?;
                let text = text.trim_end_matches(['\r', '\n']);
                if text.is_empty() {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is empty"));
                }
                Ok(Secret::new(text.to_owned()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_hides_the_text() {
        assert_eq!(format!("{:?}", Some(Secret::new("hunter42".into()))), "Some([redacted])");
    }
}
