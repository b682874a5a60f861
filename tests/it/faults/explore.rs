//! Replays the calls to a disk, loses power at each of them, and opens the result. The result must
//! open and hold everything that was acknowledged, and no partial record.

use std::collections::{BTreeMap, HashMap};

use super::crash::{Effort, images};
use super::disk::{Content, Disk, Ino, Op};
use super::fs::{Event, Note, SimFs};
use super::store::{self, DIR, Ledger, Shape};
use crate::common::rng::Rng;

/// Number of cases that are tried at one depth. Depth 0 is a crash of a running journal, 1 is a
/// crash of the recovery from it, and so on.
#[derive(Clone, Copy, Debug)]
pub struct Depth {
    /// Percentage of calls with a crash.
    pub percent: usize,
    /// Number of crash states at each of these calls.
    pub effort: Effort,
    /// Number of recoveries in 1,000 that are themselves crashed.
    pub deeper_per_mille: usize,
}

/// Crashes runs, opens the resulting images, and counts both.
pub struct Explorer<'a> {
    /// Cases tried at each depth.
    pub depths: &'a [Depth],
    /// Shape of the journal.
    pub shape: Shape,
    /// Context that is printed with a failure.
    pub context: String,
    /// Number of crash images tried.
    pub images: u64,
    /// Number of images opened; the others equal images that were opened before.
    pub opened: u64,
    rng: Rng,
    seen: HashMap<[u8; 32], Vec<u32>>,
}

impl<'a> Explorer<'a> {
    /// Creates an explorer that has tried nothing yet.
    pub fn new(depths: &'a [Depth], shape: Shape, seed: u64, context: String) -> Self {
        let (rng, seen) = (Rng::new(seed), HashMap::new());
        Explorer { depths, shape, context, images: 0, opened: 0, rng, seen }
    }

    /// Crashes a run from the state `start` at each of its calls. `ledger` is the knowledge of the
    /// journal's caller at `start`.
    pub fn explore(&mut self, start: &Disk, events: &[Event], ledger: &Ledger, depth: usize) {
        let (mut disk, mut ledger) = (start.clone(), ledger.clone());
        for (at, event) in events.iter().enumerate() {
            match event {
                Event::Note(note) => ledger
                    .note(note)
                    .unwrap_or_else(|err| self.fail(&err, depth, &events[..=at], &disk)),
                Event::Op(op) => {
                    if self.rng.chance(self.depths[depth].percent) {
                        self.crash(&disk, &ledger, depth, &events[..at]);
                    }
                    disk.apply(op).expect("it was done before");
                }
            }
        }
        self.crash(&disk, &ledger, depth, events);
    }

    fn crash(&mut self, disk: &Disk, ledger: &Ledger, depth: usize, events: &[Event]) {
        for image in images(disk, self.depths[depth].effort, &mut self.rng) {
            self.images += 1;
            let digest = digest(&image);
            let found = match self.seen.get(&digest) {
                Some(found) => found.clone(),
                None => {
                    let found = self.open(&image, ledger, depth, events);
                    self.seen.insert(digest, found.clone());
                    found
                }
            };
            if let Err(err) = ledger.check(&found) {
                self.fail(&format!("{err}; found {found:?}"), depth, events, &image);
            }
        }
    }

    fn open(&mut self, image: &Disk, ledger: &Ledger, depth: usize, events: &[Event]) -> Vec<u32> {
        self.opened += 1;
        let fs = SimFs::sound(image.clone());
        let (journal, recovery, memory) = match store::open(&fs, self.shape) {
            Ok(opened) => opened,
            Err(err) => self.fail(&format!("refused: {err}"), depth, events, image),
        };
        fs.note(Note::Opened(memory.ids.clone()));
        drop(journal);
        let per_mille = self.depths[depth].deeper_per_mille;
        if depth + 1 < self.depths.len() && self.rng.below(1_000) < per_mille {
            let deeper = fs.events();
            self.fixpoint(image, &deeper, recovery.epoch, &fs.disk());
            self.explore(image, &deeper, ledger, depth + 1);
        }
        memory.ids
    }

    /// Checks that a recovery, killed at any call and then repeated, ends with the same bytes as `whole`,
    /// the result of the uninterrupted recovery.
    fn fixpoint(&mut self, start: &Disk, events: &[Event], epoch: u32, whole: &Disk) {
        let mut disk = start.clone();
        for (at, event) in events.iter().enumerate() {
            let Event::Op(op) = event else { break };
            // A store without a segment has no identity yet; the identity is drawn when the first
            // segment is created.
            if self.rng.chance(30) && !segments(&disk).is_empty() {
                let fs = SimFs::sound(disk.clone());
                match store::open(&fs, self.shape) {
                    Ok((journal, recovery, _)) => {
                        drop(journal);
                        let (again, whole) = (segments(&fs.disk()), segments(whole));
                        if recovery.epoch == epoch && again != whole {
                            self.fail("recovered twice, other bytes", 1, &events[..at], &disk);
                        }
                    }
                    Err(err) => self.fail(&format!("refused: {err}"), 1, &events[..at], &disk),
                }
            }
            disk.apply(op).expect("it was done before");
        }
    }

    fn fail(&self, what: &str, depth: usize, events: &[Event], disk: &Disk) -> ! {
        let mut text = format!("{what}\nat depth {depth} of {}\n", self.context);
        text.push_str(&describe_last(events));
        for (name, content) in disk.files(DIR.as_ref()) {
            let used = content.used();
            text.push_str(&format!("  left: {name} {} bytes, {used} used\n", content.len()));
        }
        panic!("{text}");
    }
}

/// Returns the segments on a disk without the zeros after the last record. These are not part of
/// the log, and their number depends on the length from which the file was extended.
fn segments(disk: &Disk) -> BTreeMap<String, Content> {
    let mut files = disk.files(DIR.as_ref());
    files.retain(|name, _| name.ends_with(".seg"));
    files.values_mut().for_each(|content| content.truncate(content.used()));
    files
}

fn digest(disk: &Disk) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[u8::from(disk.has_dir(DIR.as_ref()))]);
    for (name, content) in disk.files(DIR.as_ref()) {
        hasher.update(name.as_bytes());
        content.digest_into(&mut hasher);
    }
    *hasher.finalize().as_bytes()
}

/// Describes the last events for a failure message.
pub fn describe_last(events: &[Event]) -> String {
    let last = &events[events.len().saturating_sub(60)..];
    last.iter().map(|event| format!("  {}\n", describe(event))).collect()
}

fn describe(event: &Event) -> String {
    match event {
        Event::Op(Op::Write { ino, offset, bytes }) => {
            let ids: Vec<u32> = store::marks(bytes).collect();
            format!("write {ino} {offset}+{} {ids:?}", bytes.len())
        }
        Event::Op(op) => format!("{op:?}"),
        Event::Note(note) => format!("- {note:?}"),
    }
}

/// Checks that each append was synced before it was applied, and that no file was written or synced
/// again after its sync failed.
///
/// # Errors
///
/// The violation.
pub fn check_order(start: &Disk, events: &[Event]) -> Result<(), String> {
    let mut order = Order::default();
    let mut disk = start.clone();
    for event in events {
        if let Event::Op(op) = event {
            disk.apply(op).expect("it was done before");
        }
        match event {
            Event::Op(Op::Write { ino, bytes, .. }) => order.written(*ino, bytes)?,
            Event::Op(Op::Sync(ino)) => order.synced(*ino)?,
            Event::Op(Op::SyncFailed(ino, _)) => order.failed.push(*ino),
            Event::Op(Op::Create(path)) => {
                // The file was truncated and rewritten, so no bytes of the failed sync remain.
                let ino = disk.ino(path).expect("it was made");
                order.failed.retain(|failed| *failed != ino);
            }
            Event::Note(Note::Opening) => order.failed.clear(),
            Event::Note(Note::Submitted { id, is_lazy: false }) => {
                order.appends.insert(*id, Stage::Given);
            }
            Event::Note(Note::Applied(id)) => order.applied(*id)?,
            _ => {}
        }
    }
    Ok(())
}

#[derive(Default)]
struct Order {
    appends: HashMap<u32, Stage>,
    /// Files whose sync failed since the journal was opened.
    failed: Vec<Ino>,
}

/// Progress of an append.
enum Stage {
    Given,
    Written(Ino),
    Synced,
}

impl Order {
    fn written(&mut self, ino: Ino, bytes: &[u8]) -> Result<(), String> {
        for id in store::marks(bytes) {
            if let Some(stage @ Stage::Given) = self.appends.get_mut(&id) {
                *stage = Stage::Written(ino);
            }
        }
        self.is_sound(ino, "written to")
    }

    fn synced(&mut self, ino: Ino) -> Result<(), String> {
        for stage in self.appends.values_mut() {
            if matches!(stage, Stage::Written(file) if *file == ino) {
                *stage = Stage::Synced;
            }
        }
        self.is_sound(ino, "synced again")
    }

    fn applied(&mut self, id: u32) -> Result<(), String> {
        match self.appends.remove(&id) {
            // Lazy appends are not in `appends`.
            None | Some(Stage::Synced) => Ok(()),
            Some(Stage::Given) => Err(format!("{id} was applied and never written")),
            Some(Stage::Written(_)) => Err(format!("{id} was applied before it was synced")),
        }
    }

    fn is_sound(&self, ino: Ino, what: &str) -> Result<(), String> {
        if self.failed.contains(&ino) {
            return Err(format!("file {ino} was {what} after a sync of it failed"));
        }
        Ok(())
    }
}
