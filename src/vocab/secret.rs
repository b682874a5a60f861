//! Text that must not reach a log.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A key, password or token: on its way between two processes of one operator, in a setting, or of
/// a webhook. Its `Debug` hides it, and it has no `Display`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Takes a text into hiding.
    pub fn new(text: String) -> Secret {
        Secret(text)
    }

    /// The text itself: for the one place that hashes it, signs with it, or hands it to whom it is for.
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
