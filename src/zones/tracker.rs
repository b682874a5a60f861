//! The stored state of a zone, and the conclusions from a new zone file.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::compare::{self, Changes, ComparisonCounts, DropList, Keep, OnDay, Paths, ZoneSource};
use super::error::ZoneError;
use super::owners::Owners;
use super::registry::Registry;
use super::snapshot;
use crate::vocab::day::Day;
use crate::vocab::file_error::AtPath;
use crate::vocab::new_file;
use crate::vocab::outcome::ZoneDays;
use crate::vocab::whole_file;

const STATE: &str = "state.json";
/// Number of recent days that determine the usual number of changes.
const USUAL_DAYS: usize = 28;
/// A day is unusual if it has more than this multiple of the usual changes.
const MANY_TIMES: u64 = 4;
/// Further conditions for an unusual day: more than one in this many names changed, and more than
/// this number of names changed.
const MANY_SHARE: u64 = 200;
const MANY_LEAST: u64 = 500;
/// A zone below this percentage of its previous size needs more confirmations.
const WHOLE_PERCENT: u64 = 98;
/// Number of names that even a small zone may lose in a day.
const LOST_LEAST: u64 = 50;
/// Number of consecutive unusual zone files after which they are accepted.
const AGREEING: usize = 2;
/// The same number for a zone that lost many of its names, because some registries have published
/// incomplete zones two days in a row.
const AGREEING_SMALLER: usize = 3;

/// The state of a zone, in a folder that only one process at a time may use.
#[derive(Debug)]
pub struct Tracker {
    folder: PathBuf,
    state: State,
}

/// Content of the file that names the files in use, which is replaced atomically.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct State {
    apex: String,
    /// Number of the latest files; each change of the state gets a new number.
    number: u64,
    last: Option<KeptZone>,
    /// Unusual zone files, oldest first, which are held until enough of them agree or one
    /// disagrees.
    held: Vec<KeptZone>,
    missing: String,
    /// Changes of the latest accepted days, oldest first.
    usual: Vec<Changes>,
    /// Lists that were written but not yet ingested, oldest first.
    lists: Vec<Written>,
    /// Whether all existing names were listed ([`Keep::All`]).
    #[serde(default)]
    all_listed: bool,
    /// Days of the accepted files since the last list, ascending.
    #[serde(default)]
    seen: Vec<Day>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct KeptZone {
    file: String,
    day: Day,
    serial: u32,
    names: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    file: String,
    day: Day,
    #[serde(default)]
    seen: Vec<Day>,
}

/// A list of drops, in dropdex's own format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropsFile {
    pub path: PathBuf,
    /// The day of the zone file that confirmed the drops.
    pub day: Day,
    /// Days of the files that were compared for this list.
    pub seen: ZoneDays,
}

/// Result for a zone file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ZoneOutcome {
    /// The first file, with its number of names. Drops can be found starting with the second file.
    First {
        names: u64,
    },
    /// The zone has not changed since the last file.
    Unchanged,
    /// Unusually many names left or appeared, so no drops are derived until `files_needed` consecutive files
    /// agree.
    Held {
        changes: Changes,
        files: usize,
        files_needed: usize,
    },
    Applied(Applied),
}

/// The conclusion from a zone file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Number of names in the zone.
    pub names: u64,
    pub changes: Changes,
    /// Names listed as dropped.
    pub dropped: u64,
    /// Names listed as dropped that returned before the registry could have released them.
    pub restored: u64,
    /// Names listed as dropped that returned after their release.
    pub registered_again: u64,
    /// Missing names that are not listed yet.
    pub waiting: u64,
    /// Day of a held file that is now accepted.
    pub believed: Option<Day>,
    /// Day of a held file that is now rejected.
    pub dismissed: Option<Day>,
}

impl fmt::Display for ZoneOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ZoneOutcome::First { names } => {
                write!(f, "{names} names; drops are found from the next file on")
            }
            ZoneOutcome::Unchanged => f.write_str("unchanged since the last file"),
            ZoneOutcome::Held { changes: Changes { left, came }, files, files_needed } => write!(
                f,
                "{left} names left and {came} came, many more than usual; believed when \
                 {files_needed} files in a row say so, and this is number {files}"
            ),
            ZoneOutcome::Applied(applied) => write!(f, "{applied}"),
        }
    }
}

impl fmt::Display for Applied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Applied { names, changes: Changes { left, came }, dropped, waiting, .. } = self;
        write!(
            f,
            "{names} names, {left} left, {came} came; {dropped} dropped, {} are back, {waiting} wait",
            self.restored + self.registered_again
        )?;
        if let Some(day) = self.believed {
            write!(f, "; the file of {day} is believed now")?;
        }
        if let Some(day) = self.dismissed {
            write!(f, "; the file of {day} is dismissed")?;
        }
        Ok(())
    }
}

impl Tracker {
    /// Opens the folder of a zone, and creates it if it does not exist.
    ///
    /// # Errors
    /// The folder cannot be read, or is damaged.
    pub fn open(folder: &Path) -> Result<Tracker, ZoneError> {
        new_file::create_folder(folder).at(folder)?;
        let path = folder.join(STATE);
        let state = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|_| ZoneError::Damaged {
                path: path.clone(),
                what: "it is not a zone state",
            })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => State::default(),
            Err(error) => Err(error).at(&path)?,
        };
        let tracker = Tracker { folder: folder.to_owned(), state };
        tracker.tidy()?;
        Ok(tracker)
    }

    /// Processes the zone file of a day. A drop gets the day of the first file without the
    /// name. On failure, nothing has changed.
    ///
    /// # Errors
    /// The file is incomplete, of another zone, or not newer than the last one; or a disk operation fails.
    pub fn take(
        &mut self,
        file: &Path,
        day: Day,
        kind: ZoneSource,
        keep: Keep,
    ) -> Result<ZoneOutcome, ZoneError> {
        let mut next = self.state.clone();
        next.number += 1;
        let names = format!("names-{}", next.number);
        let (into, scratch) = (self.folder.join(&names), &self.folder);
        let taken = match kind {
            ZoneSource::Zone => snapshot::take(|| Owners::open(file), &into, scratch)?,
            ZoneSource::Registry => snapshot::take(|| Registry::open(file, day), &into, scratch)?,
        };
        let file = names;
        let snapshot::Snapshot { apex, serial, names } = taken;
        if self.state.last.is_some() && apex != self.state.apex {
            return Err(ZoneError::OtherZone { found: apex, expected: self.state.apex.clone() });
        }
        next.apex = apex;
        let now = KeptZone { file, day, serial, names };
        let outcome = self.judge(&mut next, now, (kind, keep))?;
        if next.seen != self.state.seen || outcome != ZoneOutcome::Unchanged {
            self.commit(next)?;
        }
        self.tidy()?;
        Ok(outcome)
    }

    /// Returns the lists to ingest, oldest first. Call [`Tracker::ingested`] after each. If the
    /// process ends between the ingest and that call, a list is ingested twice, with the same
    /// content.
    pub fn lists(&self) -> Vec<DropsFile> {
        let list = |list: &Written| DropsFile {
            path: self.folder.join(&list.file),
            day: list.day,
            seen: ZoneDays { suffix: self.state.apex.clone(), days: list.seen.clone() },
        };
        self.state.lists.iter().map(list).collect()
    }

    /// Removes a list.
    ///
    /// # Errors
    /// A disk operation fails.
    pub fn ingested(&mut self, list: &DropsFile) -> Result<(), ZoneError> {
        let mut next = self.state.clone();
        next.lists.retain(|written| self.folder.join(&written.file) != list.path);
        self.commit(next)?;
        self.tidy()
    }

    /// Returns the latest zone file, accepted or held.
    fn latest(&self) -> Option<&KeptZone> {
        self.state.held.last().or(self.state.last.as_ref())
    }

    fn judge(
        &self,
        next: &mut State,
        now: KeptZone,
        (kind, keep): (ZoneSource, Keep),
    ) -> Result<ZoneOutcome, ZoneError> {
        let (Some(last), Some(latest)) = (next.last.clone(), self.latest()) else {
            next.missing = format!("missing-{}", next.number);
            compare::nothing_missing(&self.folder.join(&next.missing))?;
            let names = now.names;
            let path = self.folder.join(&now.file);
            next.seen = vec![now.day];
            next.last = Some(now);
            if keep == Keep::All {
                let mut list = self.list(next, kind)?;
                compare::list_all(&path, &mut list)?;
                self.finish(next, list)?;
                next.all_listed = true;
            }
            return Ok(ZoneOutcome::First { names });
        };
        if now.serial == latest.serial {
            // An unchanged zone shows that nothing came or left, unless the file is held.
            if next.held.is_empty() && next.seen.last().is_none_or(|&seen| seen < now.day) {
                next.seen.push(now.day);
            }
            return Ok(ZoneOutcome::Unchanged);
        }
        // Serial numbers wrap around (RFC 1982 §3.2).
        if now.serial.wrapping_sub(latest.serial) > u32::MAX / 2 {
            return Err(ZoneError::OldSerial { found: now.serial, held: latest.serial });
        }
        if now.day <= latest.day {
            return Err(ZoneError::SameDay { found: latest.day });
        }
        let path = |kept: &KeptZone| self.folder.join(&kept.file);
        let changes = compare::changes(&path(&last), &path(&now))?;
        let mut applied = Applied::default();
        if self.is_mass(&last, &now, changes) {
            next.held.push(now);
            let is_smaller = next.held.iter().any(|held| is_smaller(&last, held));
            let files_needed = if is_smaller { AGREEING_SMALLER } else { AGREEING };
            let files = next.held.len();
            if files < files_needed {
                return Ok(ZoneOutcome::Held { changes, files, files_needed });
            }
            let mut list = self.list(next, kind)?;
            for now in std::mem::take(&mut next.held) {
                let is_mass = match &next.last {
                    _ if applied.believed.is_none() => true,
                    Some(last) => {
                        let since = compare::changes(&path(last), &path(&now))?;
                        self.is_mass(last, &now, since)
                    }
                    None => false,
                };
                applied.believed = applied.believed.or(Some(now.day));
                self.apply(next, now, (is_mass, kind, keep), &mut list, &mut applied)?;
            }
            self.finish(next, list)?;
        } else {
            applied.dismissed = std::mem::take(&mut next.held).first().map(|held| held.day);
            let mut list = self.list(next, kind)?;
            self.apply(next, now, (false, kind, keep), &mut list, &mut applied)?;
            self.finish(next, list)?;
            next.usual.push(changes);
            let excess = next.usual.len().saturating_sub(USUAL_DAYS);
            next.usual.drain(..excess);
        }
        Ok(ZoneOutcome::Applied(applied))
    }

    /// Whether unusually many names left or appeared.
    fn is_mass(&self, last: &KeptZone, now: &KeptZone, changes: Changes) -> bool {
        let usual = |of: fn(&Changes) -> u64| {
            let mut counts: Vec<u64> = self.state.usual.iter().map(of).collect();
            counts.sort_unstable();
            counts.get(counts.len() / 2).copied().unwrap_or(0)
        };
        let limit = |usual: u64| (MANY_TIMES * usual).max(last.names / MANY_SHARE).max(MANY_LEAST);
        changes.left > limit(usual(|it| it.left))
            || changes.came > limit(usual(|it| it.came))
            || is_smaller(last, now)
    }

    fn list(&self, next: &State, kind: ZoneSource) -> Result<DropList, ZoneError> {
        DropList::create(&self.folder.join(list_name(next)), &next.apex, kind)
    }

    /// Compares `now` with the last zone file, and replaces the latter with `now`.
    fn apply(
        &self,
        next: &mut State,
        now: KeptZone,
        (is_mass, kind, keep): (bool, ZoneSource, Keep),
        list: &mut DropList,
        applied: &mut Applied,
    ) -> Result<(), ZoneError> {
        let Some(last) = next.last.take() else { return Ok(()) };
        let missing = format!("missing-{}-{}", next.number, now.day);
        let path = |file: &str| self.folder.join(file);
        let paths = Paths {
            before: &path(&last.file),
            now: &path(&now.file),
            missing_before: &path(&next.missing),
            missing_now: &path(&missing),
        };
        let lists_all = !next.all_listed;
        let on = OnDay { apex: &next.apex, day: now.day, is_mass, kind, keep, lists_all };
        let ComparisonCounts { changes, dropped, restored, registered_again, waiting } =
            compare::apply(&paths, &on, list)?;
        applied.changes.left += changes.left;
        applied.changes.came += changes.came;
        applied.dropped += dropped;
        applied.restored += restored;
        applied.registered_again += registered_again;
        (applied.waiting, applied.names) = (waiting, now.names);
        next.missing = missing;
        // Without this, a later `keep = "all"` would miss names that appeared while existing names
        // were not listed.
        next.all_listed = keep == Keep::All;
        next.seen.push(now.day);
        next.last = Some(now);
        Ok(())
    }

    /// Stores a list unless it is empty.
    fn finish(&self, next: &mut State, list: DropList) -> Result<(), ZoneError> {
        if list.finish()? > 0 {
            let day = next.last.as_ref().map_or(Day::MIN, |last| last.day);
            let seen = std::mem::take(&mut next.seen);
            next.lists.push(Written { file: list_name(next), day, seen });
        }
        Ok(())
    }

    /// Commits a state once its files are on disk.
    fn commit(&mut self, next: State) -> Result<(), ZoneError> {
        let path = self.folder.join(STATE);
        let text = serde_json::to_vec_pretty(&next).expect("names and numbers are JSON");
        // New files must be durable before the state names them.
        let in_folder = File::open(&self.folder).and_then(|folder| folder.sync_all());
        in_folder.and_then(|()| whole_file::replace(&path, &text)).at(&path)?;
        self.state = next;
        Ok(())
    }

    /// Removes files that the state does not name: earlier ones, and leftovers of killed processes.
    fn tidy(&self) -> Result<(), ZoneError> {
        let State { last, held, missing, lists, .. } = &self.state;
        let kept = last.iter().chain(held).map(|kept| &kept.file);
        let lists = lists.iter().map(|list| &list.file);
        let named: Vec<&str> =
            kept.chain([missing]).chain(lists).map(String::as_str).chain([STATE]).collect();
        for entry in fs::read_dir(&self.folder).at(&self.folder)? {
            let entry = entry.at(&self.folder)?;
            let path = entry.path();
            if named.iter().any(|name| *name == entry.file_name()) {
                continue;
            }
            if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }
                .at(&path)?;
        }
        Ok(())
    }
}

/// Whether a zone file is much smaller than its predecessor.
fn is_smaller(last: &KeptZone, now: &KeptZone) -> bool {
    now.names * 100 < last.names * WHOLE_PERCENT && now.names + LOST_LEAST < last.names
}

/// Returns the name of the list of a state.
fn list_name(state: &State) -> String {
    format!("{}-{}.csv", state.apex, state.number)
}
