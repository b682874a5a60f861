//! The format of stored files. A part of a file is an object named by its hash; a list names the
//! parts of all files.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::bucket;

/// Maximum length of a part. Four parts are in memory at once.
pub const PART_BYTES_MAX: usize = bucket::PART_BYTES;

/// The BLAKE3 hash of an object, which is its name: 64 hexadecimal digits as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ObjectKey(pub [u8; 32]);

impl ObjectKey {
    /// Returns the key of an object with this content.
    pub fn of(bytes: &[u8]) -> ObjectKey {
        ObjectKey(*blake3::hash(bytes).as_bytes())
    }

    /// Parses 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<ObjectKey> {
        let mut key = [0; 32];
        hex::decode_to_slice(text, &mut key).ok()?;
        Some(ObjectKey(key))
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl From<ObjectKey> for String {
    fn from(key: ObjectKey) -> String {
        key.to_string()
    }
}

impl TryFrom<String> for ObjectKey {
    type Error = &'static str;

    fn try_from(text: String) -> Result<ObjectKey, &'static str> {
        ObjectKey::parse(&text).ok_or("not the name of an object")
    }
}

/// Path of a file within an installation, with `/` as separator. The path never leads out of the
/// installation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RelativePath(String);

impl RelativePath {
    /// Parses a path; `None` if it is absolute, empty, or leads out of its folder.
    pub fn parse(text: &str) -> Option<RelativePath> {
        let is_plain = |part: &str| {
            let mut components = Path::new(part).components();
            matches!((components.next(), components.next()), (Some(Component::Normal(it)), None) if it == part)
        };
        let is_sound = text.split('/').all(is_plain) && !text.contains('\0');
        is_sound.then(|| RelativePath(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<RelativePath> for String {
    fn from(path: RelativePath) -> String {
        path.0
    }
}

impl TryFrom<String> for RelativePath {
    type Error = &'static str;

    fn try_from(text: String) -> Result<RelativePath, &'static str> {
        RelativePath::parse(&text).ok_or("not a path within an installation")
    }
}

/// The parts of a file, in order. All parts except the last have [`PART_BYTES_MAX`] bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileParts {
    pub len: u64,
    pub parts: Vec<ObjectKey>,
}

impl FileParts {
    /// Returns each part with its place and length in the file.
    pub fn places(&self) -> impl Iterator<Item = (ObjectKey, u64, usize)> {
        let part = PART_BYTES_MAX as u64;
        self.parts.iter().zip(0..).map(move |(key, number): (_, u64)| {
            let at = number * part;
            (*key, at, self.len.saturating_sub(at).min(part) as usize)
        })
    }

    fn is_sound(&self) -> bool {
        self.parts.len() as u64 == self.len.div_ceil(PART_BYTES_MAX as u64)
    }
}

/// Files and their parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileList {
    pub files: BTreeMap<RelativePath, FileParts>,
}

impl FileList {
    /// Encodes the list as an object.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a list has only maps with text keys")
    }

    /// Decodes a list.
    ///
    /// # Errors
    /// The list is damaged, or a newer version wrote it.
    pub fn decode(bytes: &[u8]) -> Result<FileList, serde_json::Error> {
        use serde::de::Error;
        let list: FileList = serde_json::from_slice(bytes)?;
        match list.files.iter().find(|(_, parts)| !parts.is_sound()) {
            Some((path, _)) => Err(serde_json::Error::custom(format!("the parts of {path}"))),
            None => Ok(list),
        }
    }

    /// Returns the total size of all files in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.values().map(|file| file.len).sum()
    }
}

/// The newest backup of the users' data in a store: stored in parts, like all files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredBackup {
    /// Key of the list that names the only file of the backup.
    pub list: ObjectKey,
    pub bytes: u64,
    pub made: DateTime<Utc>,
}
