//! The folder `inbox/` in the data folder. Files that arrive in it come in; lists in the corpus and
//! a new generation go out. A file is taken once it has arrived whole: its name does not begin with a
//! dot or end as one that is still written does, and it was the same at two looks. It then goes to
//! `done/`, or to `refused/` with a note that says why. What stands in the way without being the
//! list's fault (a full disk, another ingest) leaves it where it is, for later.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use metrics::{Counter, counter};
use tokio::time::{MissedTickBehavior, interval};

use crate::vocab::clock::Clock;
use crate::vocab::intake::{Intake, IntakeLog};
use crate::workers::jobs::{Finished, JobError, Jobs, Places};

/// The folder in the data folder.
const FOLDER: &str = "inbox";
const DONE: &str = "done";
const REFUSED: &str = "refused";
/// There while the corpus holds lists that no generation does: a restart goes on from it.
const BEHIND: &str = ".rebuild";
/// How names end that are still written to.
const UNFINISHED: [&str; 6] = ["part", "partial", "tmp", "temp", "crdownload", "filepart"];
/// Looks that are left out after something stood in the way.
const LOOKS_LEFT_OUT: u32 = 12;
/// The exit code of `ingest --inbox` that says it is the list's own fault.
pub const REFUSED_CODE: u8 = 3;
/// What the summary says of a list that the corpus holds.
const ALREADY: &str = "\"already ingested\"";

/// What the worker needs.
pub struct Inbox {
    pub jobs: Jobs,
    pub places: Places,
    pub period: Duration,
    pub log: Arc<IntakeLog>,
    pub clock: Clock,
}

/// What a file was at a look: another one, or one that was written to, looks different.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looks {
    is_file: bool,
    inode: u64,
    len: u64,
    changed: (i64, i64),
}

impl Looks {
    /// Those of the file at `path`, or of the one that it leads to.
    ///
    /// # Errors
    /// There is none.
    pub fn of(path: &Path) -> io::Result<Looks> {
        let facts = fs::metadata(path)?;
        Ok(Looks {
            is_file: facts.is_file(),
            inode: facts.ino(),
            len: facts.len(),
            changed: (facts.mtime(), facts.mtime_nsec()),
        })
    }
}

fn taken(outcome: Intake) -> Counter {
    counter!("dropdex_inbox_lists_total", "outcome" => outcome.as_str())
}

/// The files of the folder at a look.
type Found = BTreeMap<PathBuf, Looks>;

impl Inbox {
    /// Watches the folder until `stop` is done.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let mut ticks = interval(self.period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut seen, mut left_out) = (Found::new(), 0);
        // Counted from nought, so that the first of each is an increase.
        Intake::ALL.into_iter().for_each(|outcome| taken(outcome).increment(0));
        let mut stop = std::pin::pin!(stop);
        loop {
            tokio::select! {
                biased;
                () = &mut stop => return,
                _ = ticks.tick() => {}
            }
            if left_out > 0 {
                left_out -= 1;
                continue;
            }
            let looked = tokio::select! {
                biased;
                () = &mut stop => return,
                looked = self.look(&mut seen) => looked,
            };
            if let Err(err) = &looked {
                tracing::warn!(error = format!("{err:#}"), "lists in the inbox wait");
                left_out = LOOKS_LEFT_OUT;
            }
            self.log.set_problem(looked.err().map(|err| format!("{err:#}")));
        }
    }

    fn folder(&self) -> PathBuf {
        self.places.data.join(FOLDER)
    }

    /// Takes what is as it was at the last look, and rebuilds once when there was something new.
    async fn look(&self, seen: &mut Found) -> anyhow::Result<()> {
        let folder = self.folder();
        let now = tokio::task::spawn_blocking(move || found(&folder)).await?;
        let now = now.with_context(|| format!("cannot read {}", self.folder().display()))?;
        let whole: Vec<(PathBuf, Looks)> = now
            .iter()
            .filter(|(path, looks)| seen.get(*path) == Some(*looks))
            .map(|(path, looks)| (path.clone(), *looks))
            .collect();
        self.log.set_waiting(now.len());
        *seen = now;
        let mut all = Ok(());
        for (path, looks) in &whole {
            match self.take(path, looks).await {
                Ok(()) => {
                    seen.remove(path);
                    self.log.set_waiting(seen.len());
                }
                // One that cannot be taken now keeps no other from being taken.
                Err(err) => all = all.and(Err(err)),
            }
        }
        all.and(self.rebuild().await)
    }

    /// Has a list ingested and moves it out of the way.
    async fn take(&self, path: &Path, looks: &Looks) -> anyhow::Result<()> {
        // Before: a server that dies right after an ingest must know that there was one.
        let marked = self.folder().join(BEHIND);
        let was_behind = marked.exists();
        File::create(&marked).with_context(|| format!("cannot write {}", marked.display()))?;
        let arguments = ["ingest", "--here", "--inbox", "--no-rebuild"].map(OsString::from);
        let arguments = arguments.into_iter().chain(["--".into(), path.into()]);
        let done = self.job(arguments.collect()).await?;
        let refused = Some(i32::from(REFUSED_CODE));
        let outcome = match done.code {
            Some(0) if done.stdout.contains(ALREADY) => Intake::Already,
            Some(0) => Intake::Added,
            code if code == refused => Intake::Refused,
            _ => bail!("{}: {}", path.display(), why(&done)),
        };
        if outcome != Intake::Added && !was_behind {
            fs::remove_file(&marked).with_context(|| format!("{}", marked.display()))?;
        }
        let file = path.file_name().unwrap_or_default().display();
        // Another one that came meanwhile under its name is taken at a later look.
        if Looks::of(path).is_ok_and(|now| now == *looks) {
            self.put_away(path, outcome, &done)
                .with_context(|| format!("{} cannot be moved out of the inbox", path.display()))?;
        } else {
            tracing::warn!(%file, "a list of the inbox was replaced while it was taken");
        }
        taken(outcome).increment(1);
        self.log.add(outcome, self.clock.now());
        if outcome == Intake::Refused {
            tracing::warn!(%file, error = why(&done), "a list of the inbox is refused");
        } else {
            tracing::info!(%file, outcome = outcome.as_str(), "a list of the inbox is done");
        }
        Ok(())
    }

    fn put_away(&self, path: &Path, outcome: Intake, done: &Finished) -> io::Result<()> {
        let name = path.file_name().unwrap_or(OsStr::new("list"));
        let folder = if outcome == Intake::Refused { REFUSED } else { DONE };
        let place = free_place(&self.folder().join(folder), name);
        if outcome == Intake::Refused {
            let mut note = place.clone().into_os_string();
            note.push(".why.txt");
            fs::write(note, why(done) + "\n")?;
        }
        fs::rename(path, place)
    }

    async fn rebuild(&self) -> anyhow::Result<()> {
        let marked = self.folder().join(BEHIND);
        if !marked.exists() {
            return Ok(());
        }
        // The mark may be of a list that could not be taken in the end.
        let arguments = ["rebuild", "--here", "--if-behind"].map(OsString::from);
        let done = self.job(arguments.into()).await?;
        if done.code != Some(0) {
            bail!("no new index: {}", why(&done));
        }
        fs::remove_file(&marked).with_context(|| format!("{}", marked.display()))
    }

    async fn job(&self, arguments: Vec<OsString>) -> Result<Finished, JobError> {
        self.jobs.run(&self.places, arguments).await
    }
}

/// The last thing a command said on standard error, which is why it failed.
fn why(done: &Finished) -> String {
    let last = done.stderr.lines().rfind(|line| !line.trim().is_empty());
    let last = last.unwrap_or("it ended without a word");
    last.strip_prefix("dropdex: ").unwrap_or(last).to_owned()
}

/// The path of `name` in `folder`, with a number where there is one of that name.
fn free_place(folder: &Path, name: &OsStr) -> PathBuf {
    let plain = folder.join(name);
    let numbered = (2..).map(|number: u32| {
        let mut name = name.to_owned();
        name.push(format!(".{number}"));
        folder.join(name)
    });
    std::iter::once(plain).chain(numbered).find(|path| !path.exists()).expect("numbers do not end")
}

/// The files that may be lists, making the folders where they are missing.
fn found(folder: &Path) -> io::Result<Found> {
    fs::create_dir_all(folder.join(DONE))?;
    fs::create_dir_all(folder.join(REFUSED))?;
    let mut found = Found::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if is_unfinished(&path) {
            continue;
        }
        // It may have gone meanwhile, or be a link that leads nowhere.
        let Ok(looks) = Looks::of(&path) else { continue };
        if looks.is_file {
            found.insert(path, looks);
        }
    }
    Ok(found)
}

fn is_unfinished(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    name.starts_with(b".")
        || name.ends_with(b"~")
        || UNFINISHED.iter().any(|unfinished| ending.eq_ignore_ascii_case(unfinished))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_arrived_is_looked_at() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in
            ["a.csv", "b.csv.gz", "list", ".hidden", "c.csv.part", "d.TMP", "e~", "f.filepart"]
        {
            fs::write(folder.path().join(name), name).expect("written");
        }
        let names = |found: Found| -> Vec<String> {
            let name = |path: &PathBuf| path.file_name().expect("one").to_string_lossy().into();
            found.keys().map(name).collect()
        };
        let first = found(folder.path()).expect("read");
        assert_eq!(names(first.clone()), ["a.csv", "b.csv.gz", "list"]);
        fs::write(folder.path().join("a.csv"), "longer than it was").expect("written");
        let second = found(folder.path()).expect("read");
        let same: Found =
            second.into_iter().filter(|(path, it)| first.get(path) == Some(it)).collect();
        assert_eq!(names(same), ["b.csv.gz", "list"]);
    }

    #[test]
    fn nothing_that_was_put_away_is_overwritten() {
        let folder = tempfile::tempdir().expect("a folder");
        for expected in ["list.csv", "list.csv.2", "list.csv.3"] {
            let place = free_place(folder.path(), OsStr::new("list.csv"));
            assert_eq!(place, folder.path().join(expected));
            fs::write(place, "").expect("written");
        }
    }
}
