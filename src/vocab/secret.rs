//! Text that must not appear in a log.

use std::fmt;

use serde::{Deserialize, Serialize};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_hides_the_text() {
        assert_eq!(format!("{:?}", Some(Secret::new("hunter42".into()))), "Some([redacted])");
    }
}
