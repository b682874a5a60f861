//! The section `[backup]`: backups on a schedule.

use std::path::PathBuf;

use anyhow::{Context, anyhow, bail, ensure};
use chrono::{NaiveTime, TimeDelta};
use serde::Deserialize;

use crate::backup::settings::{BackupPlace, BackupSettings, Schedule};
use crate::config::bucket::{S3File, S3Keys};
use crate::config::number::Bounded;
use crate::vocab::secret::Secret;

const KEYS: S3Keys =
    S3Keys { section: "backup.s3", variable: "DROPDEX_BACKUP_S3_SECRET_ACCESS_KEY" };
const PREFIX_DEFAULT: &str = "dropdex-backups";
const KEEP_DEFAULT: usize = 14;
/// Begin of private keys of age.
const PRIVATE: &str = "AGE-SECRET-KEY-";
/// Three in the morning, when little else happens.
const AT_DEFAULT: NaiveTime = NaiveTime::from_hms_opt(3, 0, 0).expect("a time of day");
/// A week.
const HOURS_MAX: u32 = 168;

/// The section in the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BackupFile {
    folder: Option<PathBuf>,
    s3: Option<S3File>,
    at: Option<String>,
    every_hours: Option<Bounded<1, HOURS_MAX>>,
    keep: Option<Bounded<1, 10_000>>,
    #[serde(default)]
    encrypt_to: Vec<String>,
}

impl BackupFile {
    pub(super) fn settings(self, s3_key: Option<Secret>) -> anyhow::Result<BackupSettings> {
        let place = match (self.folder, self.s3) {
            (Some(folder), None) => BackupPlace::Folder(super::absolute(&folder)),
            (None, Some(s3)) => BackupPlace::Bucket(s3.settings(s3_key, PREFIX_DEFAULT, &KEYS)?),
            (None, None) => {
                bail!("backup: set `folder`, or a bucket in [backup.s3], to say where backups go")
            }
            (Some(_), Some(_)) => bail!("backup: set `folder` or [backup.s3], not both"),
        };
        ensure!(
            self.at.is_none() || self.every_hours.is_none(),
            "backup: set `at` or `every_hours`, not both"
        );
        let schedule = match (self.at, self.every_hours) {
            (_, Some(hours)) => Schedule::Every(TimeDelta::hours(hours.get())),
            (Some(at), None) => {
                Schedule::At(NaiveTime::parse_from_str(&at, "%H:%M").map_err(|_| {
                    anyhow!("backup.at: `{at}` is not a time of day in UTC such as 03:00")
                })?)
            }
            (None, None) => Schedule::At(AT_DEFAULT),
        };
        let key = |text: String| {
            // Not repeated, because the message may reach a log.
            ensure!(
                !text.to_ascii_uppercase().contains(PRIVATE),
                "backup.encrypt_to: this is a private key; put the public key age1… there, and make a new pair if others can read this file"
            );
            let parsed = text.parse().map_err(|err: &str| anyhow!(err));
            parsed.with_context(|| {
                format!(
                    "backup.encrypt_to: `{text}` is not a public key age1…, as `age-keygen` prints it"
                )
            })
        };
        Ok(BackupSettings {
            place,
            schedule,
            keep: self.keep.map_or(KEEP_DEFAULT, Bounded::get),
            encrypt_to: self.encrypt_to.into_iter().map(key).collect::<anyhow::Result<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Given, GivenSecrets};

    const KEY: &str = "age1ddh09gnkf8ku4f8gm4y5ra4we5l903t0ky0q3gsjecyqxm35dakqc45g0d";
    const S3: &str = "[backup.s3]\nendpoint = \"https://s3.example.com\"\nbucket = \"b\"\n\
                      access_key_id = \"id\"\n";

    fn load(text: &str, key: Option<&str>) -> anyhow::Result<Option<BackupSettings>> {
        let backup_s3_secret_access_key = key.map(|key| Secret::new(key.to_owned()));
        let secrets = GivenSecrets { backup_s3_secret_access_key, ..GivenSecrets::default() };
        let config = Config::load_text(text, Given { secrets, ..Given::default() })?;
        Ok(config.backup)
    }

    #[test]
    fn backups_go_to_a_folder_or_a_bucket() {
        assert!(load("", None).expect("loads").is_none());
        let plain = load("[backup]\nfolder = \"/b\"\n", None).expect("loads").expect("set");
        assert!(matches!(plain.place, BackupPlace::Folder(path) if path.as_os_str() == "/b"));
        assert_eq!((plain.schedule, plain.keep), (Schedule::At(AT_DEFAULT), 14));
        assert!(plain.encrypt_to.is_empty());
        let text = format!("[backup]\nevery_hours = 6\nkeep = 3\nencrypt_to = [\"{KEY}\"]\n{S3}");
        let bucket = load(&text, Some("hidden")).expect("loads").expect("set");
        assert!(!format!("{bucket:?}").contains("hidden"), "{bucket:?}");
        assert_eq!((bucket.schedule, bucket.keep), (Schedule::Every(TimeDelta::hours(6)), 3));
        assert_eq!(bucket.encrypt_to[0].to_string(), KEY);
        let BackupPlace::Bucket(s3) = bucket.place else { panic!("no bucket") };
        assert_eq!((s3.prefix.as_str(), s3.region.as_str()), (PREFIX_DEFAULT, "us-east-1"));
    }

    #[test]
    fn errors_name_the_setting() {
        let folder = "[backup]\nfolder = \"b\"\n";
        for (text, word) in [
            ("[backup]\nkeep = 3".to_owned(), "[backup.s3]"),
            (format!("{folder}{S3}"), "not both"),
            (format!("{folder}at = \"25:00\""), "backup.at"),
            (format!("{folder}at = \"3 am\""), "03:00"),
            (format!("{folder}at = \"03:00\"\nevery_hours = 2"), "every_hours"),
            (format!("{folder}every_hours = 169"), "169"),
            (format!("{folder}keep = 0"), "keep"),
            (format!("{folder}encrypt_to = [\"age1x\"]"), "age-keygen"),
            (format!("{folder}encrypt_to = [\"{PRIVATE}1QQ\"]"), "this is a private key"),
            (format!("{folder}crypt = 1"), "crypt"),
            (S3.to_owned(), "DROPDEX_BACKUP_S3_SECRET_ACCESS_KEY"),
        ] {
            let refused = load(&text, None).expect_err(&text);
            assert!(format!("{refused:#}").contains(word), "{text}: {refused:#}");
            assert!(!format!("{refused:#}").contains(PRIVATE), "{refused:#}");
        }
    }
}
