//! Facts that a caller may see: those of the server, and the caller's own. A query sees one set of editions from its
//! start to its end; conditions on other facts are refused, so that no value leaks by filter, order or count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use compact_str::CompactString;

use crate::account_turns::OneAtATime;
use crate::accounts::{OwnFacts, UserData};
use crate::error::ApiError;
use crate::fact_topic::Topic;
use crate::facts_file::Value;
use crate::facts_file::published::FactsFolder;
use crate::facts_file::store::{Edition, Licence, StoreError, StoredColumn, StoredRow};
use crate::index::Index;
use crate::index::filter::{AsOf, DropFilter, SortKey};
use crate::query::error::BadParameter;
use crate::query::facts::{FactCondition, FactTest};
use crate::query::filter::Filter;
use crate::vocab::budget;
use crate::vocab::day::Day;
use crate::vocab::fact::{EditionId, FactCodes, FactColumnId, FactName, FactType, KeyKind};
use crate::vocab::ids::AccountId;
use crate::vocab::name::DomainName;

/// Time between two looks at the folder.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Opened editions of accounts that are kept.
const OPENED_MAX: usize = 256;
/// Time for which a joined edition may be in use, which is longer than any query.
const IN_USE: Duration = Duration::from_secs(60);
/// Time after which a source that did not fit into memory is tried again.
const TRIED_AGAIN: Duration = Duration::from_secs(600);
/// Facts that an error lists.
const FACTS_SHOWN: usize = 30;
/// The column with the day on which an offer ends.
const END: &str = "ends";

/// A file of the folder, as last seen.
type Stamp = (PathBuf, Option<SystemTime>, u64);

/// The editions of a server.
pub struct FactBook {
    folder: FactsFolder,
    memory_max: usize,
    server: Arc<Mutex<ServerSources>>,
    /// Editions of accounts, by the address of their bytes, and when each was last used.
    opened: Mutex<BTreeMap<usize, Opened>>,
    /// Held while an edition is joined.
    joining: Mutex<()>,
    /// An account adds one file at a time.
    turns: OneAtATime<AccountId>,
    /// When a query last joined an edition.
    joined: Mutex<BTreeMap<EditionId, Instant>>,
    /// The server's editions that did not fit into memory, the bytes that all need with them, and when that was.
    too_large: Mutex<BTreeMap<EditionId, (usize, Instant)>>,
}

struct Opened {
    bytes: Arc<[u8]>,
    source: Arc<Source>,
    used: Instant,
}

#[derive(Default)]
struct ServerSources {
    looked: Option<Instant>,
    opened: OpenedFiles,
    /// Whether a thread opens changed files.
    is_opening: bool,
}

/// Files of the folder that were opened.
#[derive(Clone, Default)]
struct OpenedFiles {
    stamps: Vec<Stamp>,
    sources: Vec<Arc<Source>>,
    problems: Vec<(PathBuf, String)>,
}

/// A source with its newest edition.
pub struct Source {
    pub edition: Edition,
    /// Whether it belongs to the caller alone.
    pub is_own: bool,
}

impl Source {
    pub fn id(&self) -> EditionId {
        self.edition.id()
    }

    pub fn name(&self) -> &str {
        &self.edition.meta().id
    }

    /// Returns true if values may be part of an export.
    pub fn is_exported(&self) -> bool {
        self.is_own || matches!(self.edition.meta().licence, Licence::Open | Licence::Own)
    }
}

impl FactBook {
    /// Returns the book of a data folder. Joined facts take at most `memory_max` bytes.
    pub fn new(data: &Path, memory_max: usize) -> FactBook {
        FactBook {
            folder: FactsFolder::new(data),
            memory_max,
            server: Arc::default(),
            opened: Mutex::default(),
            joining: Mutex::default(),
            turns: OneAtATime::default(),
            joined: Mutex::default(),
            too_large: Mutex::default(),
        }
    }

    /// Returns the facts that an account may see; `None` stands for visitors.
    pub fn visible(&self, owned: Option<&UserData>) -> VisibleFacts {
        let mut sources: BTreeMap<String, Arc<Source>> = BTreeMap::new();
        for source in self.server_sources() {
            sources.insert(source.name().to_owned(), source);
        }
        // An account's own source takes precedence over one of the server with the same name.
        for facts in owned.iter().flat_map(|owned| owned.facts().sources()) {
            match self.open(facts) {
                Ok(source) => drop(sources.insert(source.name().to_owned(), source)),
                Err(err) => tracing::error!(error = %err, "facts of an account cannot be read"),
            }
        }
        VisibleFacts { sources: sources.into_values().collect() }
    }

    /// Waits until the account adds no other file.
    pub async fn enter(&self, account: AccountId) -> impl Send {
        self.turns.enter(account).await
    }

    /// Returns the files that cannot be used, and why.
    pub fn problems(&self) -> Vec<(PathBuf, String)> {
        let sources = self.server_sources();
        let mut problems = lock(&self.server).opened.problems.clone();
        for (id, (bytes, _)) in &*lock(&self.too_large) {
            if let Some(source) = sources.iter().find(|source| source.id() == *id) {
                problems.push((self.folder.edition(source.name()), self.memory_needed(*bytes)));
            }
        }
        problems
    }

    /// Returns the server's sources. Changed files are opened on another thread, except for the first time.
    pub fn server_sources(&self) -> Vec<Arc<Source>> {
        let mut server = lock(&self.server);
        let is_first = server.looked.is_none();
        let is_due = server.looked.is_none_or(|looked| looked.elapsed() >= LOOK_EVERY);
        if is_due && !server.is_opening {
            server.looked = Some(Instant::now());
            let stamps = stamps(&self.folder);
            if stamps != server.opened.stamps {
                let before = server.opened.clone();
                let open = move || before.reopened(stamps);
                if is_first {
                    server.opened = open();
                } else {
                    server.is_opening = true;
                    let to = Arc::clone(&self.server);
                    thread::spawn(move || {
                        let opened = open();
                        let mut server = lock(&to);
                        (server.opened, server.is_opening) = (opened, false);
                    });
                }
            }
        }
        server.opened.sources.clone()
    }

    /// Joins the server's sources with an index that lacks them. Blocks for some seconds.
    pub fn join_server(&self, index: &Index) {
        let sources = self.server_sources();
        for source in sources.into_iter().filter(|source| !self.is_settled(index, source)) {
            if let Err(err) = self.join(index, &[Arc::clone(&source)]) {
                tracing::error!(source = source.name(), error = %err, "facts cannot be joined");
            }
        }
    }

    /// Returns true if all sources of the server are joined with an index, except those that do not fit into memory.
    pub fn has_joined_server(&self, index: &Index) -> bool {
        self.server_sources().iter().all(|source| self.is_settled(index, source))
    }

    fn is_settled(&self, index: &Index, source: &Source) -> bool {
        index.has_facts(source.id()) || self.bytes_if_too_large(source).is_some()
    }

    /// Returns the bytes that all facts need with a source that did not fit lately.
    fn bytes_if_too_large(&self, source: &Source) -> Option<usize> {
        let mut too_large = lock(&self.too_large);
        too_large.retain(|_, (_, at)| at.elapsed() < TRIED_AGAIN);
        too_large.get(&source.id()).map(|(bytes, _)| *bytes)
    }

    fn memory_needed(&self, bytes: usize) -> String {
        format!(
            "needs {} MB of memory for facts, and the server has {} MB for those of all: ask its operator to raise \
             facts_memory_mib of [index]",
            bytes.div_ceil(1 << 20),
            self.memory_max >> 20
        )
    }

    fn open(&self, facts: &OwnFacts) -> Result<Arc<Source>, StoreError> {
        let key = facts.bytes.as_ptr() as usize;
        let mut opened = lock(&self.opened);
        if let Some(known) = opened.get_mut(&key).filter(|it| Arc::ptr_eq(&it.bytes, &facts.bytes))
        {
            known.used = Instant::now();
            return Ok(Arc::clone(&known.source));
        }
        let edition = Edition::of_bytes(Arc::clone(&facts.bytes))?;
        let source = Arc::new(Source { edition, is_own: true });
        let (bytes, used) = (Arc::clone(&facts.bytes), Instant::now());
        opened.insert(key, Opened { bytes, source: Arc::clone(&source), used });
        // Two references are those of this map: the account has another edition now.
        opened.retain(|_, it| Arc::strong_count(&it.bytes) > 2);
        if opened.len() > OPENED_MAX {
            let oldest = opened.iter().min_by_key(|(_, it)| it.used).map(|(key, _)| *key);
            oldest.and_then(|key| opened.remove(&key));
        }
        Ok(source)
    }

    /// Resolves the conditions of a filter on facts, and joins those that they need with the index. `visible` is
    /// called if there are any.
    ///
    /// # Errors
    /// The errors of [`VisibleFacts::resolve`] and [`FactBook::join`].
    pub fn apply(
        &self,
        index: &Index,
        visible: impl FnOnce() -> VisibleFacts,
        filter: &mut Filter,
        today: Day,
    ) -> Result<(), ApiError> {
        if filter.drop.facts.is_empty() {
            return Ok(());
        }
        let used = visible().resolve(filter, today)?;
        self.join(index, &used)
    }

    /// As [`FactBook::apply`], for filter and order of the drops list.
    ///
    /// # Errors
    /// The errors of [`VisibleFacts::resolve_drops`] and [`FactBook::join`].
    pub fn apply_drops(
        &self,
        index: &Index,
        visible: impl FnOnce() -> VisibleFacts,
        filter: &mut DropFilter,
        today: Day,
    ) -> Result<(), ApiError> {
        if !filter.needs_facts() {
            return Ok(());
        }
        let used = visible().resolve_drops(filter, today)?;
        self.join(index, &used)
    }

    /// Joins editions with an index. Above the limit of memory, unused ones are forgotten.
    ///
    /// # Errors
    /// An edition cannot be read, or the editions of this query take more memory than all may.
    pub fn join(&self, index: &Index, used: &[Arc<Source>]) -> Result<(), ApiError> {
        if used.is_empty() {
            return Ok(());
        }
        {
            // Queries that run now may need these.
            let mut joined = lock(&self.joined);
            joined.retain(|_, used| used.elapsed() < IN_USE);
            joined.extend(used.iter().map(|source| (source.id(), Instant::now())));
        }
        let missing = used.iter().filter(|source| !index.has_facts(source.id()));
        let missing: Vec<_> = missing.map(Arc::clone).collect();
        let too_large = |bytes| ApiError::parameter("fact", self.memory_needed(bytes));
        for source in &missing {
            if let Some(bytes) = self.bytes_if_too_large(source) {
                return Err(too_large(bytes));
            }
            // Several queries may need the same edition; it is joined once, at the expense of none.
            let _one = lock(&self.joining);
            budget::shared(|| index.join_facts(source.id(), &source.edition))
                .map_err(|err| ApiError::Internal(err.into()))?;
        }
        if missing.is_empty() {
            return Ok(());
        }
        let of_all: usize = index.facts_bytes().iter().map(|(_, bytes)| bytes).sum();
        if of_all <= self.memory_max {
            return Ok(());
        }
        let server = self.server_sources();
        let mut wanted: BTreeSet<EditionId> = server.iter().map(|source| source.id()).collect();
        wanted.extend(lock(&self.joined).keys());
        index.retain_facts(|id| wanted.contains(&id));
        let of_used: usize = index.facts_bytes().iter().map(|(_, bytes)| bytes).sum();
        if of_used > self.memory_max {
            index.retain_facts(|id| !missing.iter().any(|source| source.id() == id));
            let of_server = missing.iter().filter(|source| !source.is_own);
            lock(&self.too_large)
                .extend(of_server.map(|source| (source.id(), (of_used, Instant::now()))));
            return Err(too_large(of_used));
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OpenedFiles {
    /// Opens the files that changed.
    fn reopened(&self, stamps: Vec<Stamp>) -> OpenedFiles {
        let (mut sources, mut problems) = (Vec::new(), Vec::new());
        for stamp in &stamps {
            let kept = self.stamps.contains(stamp).then(|| {
                let stem = stamp.0.file_stem()?.to_str()?;
                self.sources.iter().find(|source| source.name() == stem).cloned()
            });
            match kept.flatten().map_or_else(|| open_file(&stamp.0), Ok) {
                Ok(source) => sources.push(source),
                Err(err) => {
                    tracing::warn!(path = %stamp.0.display(), error = %err, "a file of facts cannot be used");
                    problems.push((stamp.0.clone(), err));
                }
            }
        }
        OpenedFiles { stamps, sources, problems }
    }
}

fn stamps(folder: &FactsFolder) -> Vec<Stamp> {
    let stamp = |path: PathBuf| {
        let found = fs::metadata(&path).ok()?;
        Some((path, found.modified().ok(), found.len()))
    };
    folder.editions().into_iter().filter_map(stamp).collect()
}

fn open_file(path: &Path) -> Result<Arc<Source>, String> {
    let edition = Edition::open(path).map_err(|err| err.to_string())?;
    let (id, stem) = (&edition.meta().id, path.file_stem().and_then(|stem| stem.to_str()));
    if stem != Some(id) {
        return Err(format!("it holds facts of the source {id}: name it {id}.ddf"));
    }
    Ok(Arc::new(Source { edition, is_own: false }))
}

/// The facts that one caller may see, at one moment.
#[derive(Clone, Default)]
pub struct VisibleFacts {
    sources: Vec<Arc<Source>>,
}

/// The value of a fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactValue {
    pub value: Value,
    pub as_of: Day,
    /// The last day on which it is current.
    until: Day,
}

impl FactValue {
    /// Returns true if the value may have changed a lot by this day.
    pub fn is_outdated(&self, today: Day) -> bool {
        self.until < today
    }

    /// Returns true if the fact is about a registration before the one that followed the drop of this day.
    pub fn is_before(&self, dropped: Option<Day>) -> bool {
        dropped.is_some_and(|dropped| self.as_of < dropped)
    }
}

impl VisibleFacts {
    /// Returns the facts that no vendor licensed to the account alone.
    #[must_use]
    pub fn without_vendors(mut self) -> VisibleFacts {
        self.sources.retain(|source| source.edition.meta().licence != Licence::Vendor);
        self
    }

    /// Returns the sources, in order of their names.
    pub fn sources(&self) -> &[Arc<Source>] {
        &self.sources
    }

    fn column(&self, name: &FactName) -> Option<SourceColumn> {
        let source = self.sources.iter().find(|source| source.name() == name.source())?;
        let columns = &source.edition.meta().columns;
        let column = columns.iter().position(|column| column.name == name.fact())?;
        Some(SourceColumn { name: name.clone(), source: Arc::clone(source), column })
    }

    /// Returns the column of a fact that a parameter names.
    fn known(
        &self,
        parameter: &'static str,
        name: &FactName,
    ) -> Result<SourceColumn, BadParameter> {
        self.column(name).ok_or_else(|| {
            let mut known = self.names();
            let what = match known.len() {
                0 => "no source of facts is here yet; add a file of facts first".to_owned(),
                count => {
                    known.truncate(FACTS_SHOWN);
                    let more = if count > FACTS_SHOWN { ", ..." } else { "" };
                    format!("there are {}{more}", known.join(", "))
                }
            };
            BadParameter::new(parameter, format!("has no fact {name}; {what}"))
        })
    }

    /// As [`VisibleFacts::known`], for a use that text does not have.
    fn comparable(
        &self,
        parameter: &'static str,
        verb: &str,
        name: &FactName,
    ) -> Result<SourceColumn, BadParameter> {
        let column = self.known(parameter, name)?;
        if column.stored().kind == FactType::Text {
            let what = format!("must not {verb} {name}, which is text");
            return Err(BadParameter::new(parameter, what));
        }
        Ok(column)
    }

    /// Returns the names of all facts.
    pub fn names(&self) -> Vec<String> {
        let of = |source: &Arc<Source>| {
            let columns = source.edition.meta().columns.iter();
            columns.map(|column| format!("{}.{}", source.name(), column.name)).collect::<Vec<_>>()
        };
        self.sources.iter().flat_map(of).collect()
    }

    /// Resolves the conditions of a filter, and returns the sources that they need.
    ///
    /// # Errors
    /// A fact that the caller does not see, or a value of another type.
    pub fn resolve(
        &self,
        filter: &mut Filter,
        today: Day,
    ) -> Result<Vec<Arc<Source>>, BadParameter> {
        let mut used = Vec::new();
        for condition in &mut filter.drop.facts {
            let parameter = match condition.test {
                FactTest::Known | FactTest::Unknown => "has",
                FactTest::Range(..) | FactTest::OneOf(_) => "fact",
            };
            let column = self.known(parameter, &condition.name)?;
            let codes = codes(column.stored(), condition, today)
                .map_err(|what| BadParameter::new(format!("fact.{}", condition.name), what))?;
            condition.resolved = Some((column.id(), codes));
            used.push(column.source);
        }
        Ok(used)
    }

    /// As [`VisibleFacts::resolve`], for filter and order of the drops list.
    ///
    /// # Errors
    /// As [`VisibleFacts::resolve`].
    pub fn resolve_drops(
        &self,
        filter: &mut DropFilter,
        today: Day,
    ) -> Result<Vec<Arc<Source>>, BadParameter> {
        let mut used = self.resolve(&mut filter.common, today)?;
        if let Some(name) = filter.sort_fact.as_ref().filter(|_| filter.sort.key == SortKey::Fact) {
            let column = self.comparable("sort", "be", name)?;
            filter.sort.fact = Some(column.id());
            used.push(column.source);
        }
        Ok(used)
    }

    /// Returns the columns of these facts.
    ///
    /// # Errors
    /// A fact that the caller does not see.
    pub fn shown(&self, names: &[FactName]) -> Result<ShownFacts, BadParameter> {
        let columns = names.iter().map(|name| self.known("facts", name));
        Ok(ShownFacts { columns: columns.collect::<Result<_, _>>()? })
    }

    /// Returns the columns of facts whose values are to be counted.
    ///
    /// # Errors
    /// A fact that the caller does not see, or text.
    pub fn counted(&self, names: &[FactName]) -> Result<Vec<SourceColumn>, BadParameter> {
        names.iter().map(|name| self.comparable("facets", "have", name)).collect()
    }

    /// Returns every known fact of a name, with its source and column.
    ///
    /// # Errors
    /// An edition cannot be read.
    pub fn of_name(
        &self,
        name: &DomainName,
    ) -> Result<Vec<(&Source, &StoredColumn, FactValue)>, StoreError> {
        let mut all = Vec::new();
        for source in &self.sources {
            let Some(row) = source.row(name)? else { continue };
            let columns = source.edition.meta().columns.iter();
            let values = columns.zip(source.values(&row));
            all.extend(values.filter_map(|(column, value)| Some((&**source, column, value?))));
        }
        Ok(all)
    }
}

impl Source {
    fn row(&self, name: &DomainName) -> Result<Option<StoredRow>, StoreError> {
        let key = match self.edition.meta().key {
            KeyKind::Domain => name.as_str(),
            KeyKind::Label | KeyKind::Word => name.label(),
        };
        self.edition.row(key.as_bytes())
    }

    /// Returns the values of a row, by column.
    fn values(&self, row: &StoredRow) -> Vec<Option<FactValue>> {
        let (as_of, values) = (self.edition.as_of(row), self.edition.values(row));
        let columns = self.edition.meta().columns.iter();
        let end = columns.zip(&values).find_map(|(column, value)| match value {
            Some(Value::Date(end)) if column.name == END => Some(*end),
            _ => None,
        });
        let until = Topic::of(self.name()).current_until(as_of, end);
        let known = |value: Option<Value>| Some(FactValue { value: value?, as_of, until });
        values.into_iter().map(known).collect()
    }
}

/// Facts that rows show.
#[derive(Clone, Default)]
pub struct ShownFacts {
    columns: Vec<SourceColumn>,
}

/// The column of a fact.
#[derive(Clone)]
pub struct SourceColumn {
    pub name: FactName,
    pub source: Arc<Source>,
    column: usize,
}

/// Number of ranges in which the values of a fact are counted.
const BINS: usize = 10;

impl SourceColumn {
    pub fn stored(&self) -> &StoredColumn {
        &self.source.edition.meta().columns[self.column]
    }

    fn id(&self) -> FactColumnId {
        // An edition has at most 64 columns.
        FactColumnId { edition: self.source.id(), column: self.column as u8 }
    }

    /// Counts the names that pass a filter without its conditions on this fact: by value if a fact has few, and in
    /// ten ranges of about as many names otherwise. Each value is one that conditions take.
    ///
    /// # Errors
    /// A query fails.
    pub fn count(
        &self,
        index: &Index,
        filter: &DropFilter,
        as_of: AsOf,
    ) -> Result<Vec<(String, u32)>, ApiError> {
        let mut filter = filter.clone();
        filter.common.drop.facts.retain(|fact| fact.name != self.name);
        let numbers = index.fact_numbers(&filter, self.id(), as_of)?;
        let column = self.stored();
        let by_value: Vec<&[i64]> = numbers.chunk_by(|one, other| one == other).collect();
        if by_value.len() <= BINS || matches!(column.kind, FactType::Enum | FactType::Bool) {
            let count = |same: &&[i64]| (column.text_of(same[0]), same.len() as u32);
            let mut counts: Vec<_> = by_value.iter().map(count).collect();
            if column.kind == FactType::Enum {
                counts.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
            }
            return Ok(counts);
        }
        let (mut counts, mut at) = (Vec::with_capacity(BINS), 0);
        for bin in 1..=BINS {
            let end = numbers.len() * bin / BINS;
            // Equal values are in one range.
            let Some(&last) = numbers.get(end.saturating_sub(1)).filter(|_| end > at) else {
                continue;
            };
            let end = numbers.partition_point(|number| *number <= last);
            let (low, high) = (column.text_of(numbers[at]), column.text_of(last));
            counts.push((format!("{low}..{high}"), (end - at) as u32));
            at = end;
        }
        Ok(counts)
    }
}

impl ShownFacts {
    /// Returns the facts that may be part of files: some licences allow no copy within other data.
    #[must_use]
    pub fn exported(mut self) -> ShownFacts {
        self.columns.retain(|column| column.source.is_exported());
        self
    }

    pub fn columns(&self) -> &[SourceColumn] {
        &self.columns
    }

    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Returns the values of a name, by column. An edition that cannot be read has no values; the log says so.
    pub fn of(&self, name: &str) -> Vec<Option<FactValue>> {
        let Ok(name) = DomainName::parse(name) else { return vec![None; self.columns.len()] };
        let mut values = vec![None; self.columns.len()];
        let mut read: Option<(EditionId, Vec<Option<FactValue>>)> = None;
        for (to, shown) in values.iter_mut().zip(&self.columns) {
            let id = shown.source.id();
            if read.as_ref().is_none_or(|(of, ..)| *of != id) {
                let row = shown.source.row(&name).unwrap_or_else(|err| {
                    tracing::error!(error = %err, source = shown.source.name(), "facts cannot be read");
                    None
                });
                read = row.map(|row| (id, shown.source.values(&row)));
            }
            let known = read.as_ref().filter(|(of, _)| *of == id);
            *to = known.and_then(|(_, values)| values[shown.column].clone());
        }
        values
    }

    /// Returns the numbers of the editions, for validators of cached responses.
    pub fn editions(&self) -> Vec<u64> {
        self.columns.iter().map(|column| column.source.id().0).collect()
    }
}

fn codes(
    column: &StoredColumn,
    condition: &FactCondition,
    today: Day,
) -> Result<FactCodes, String> {
    Ok(match &condition.test {
        FactTest::Known => FactCodes::Known,
        FactTest::Unknown => FactCodes::Unknown,
        FactTest::Range(low, high) => {
            let bound = |text: &Option<CompactString>| {
                text.as_deref().map(|text| column.codes_of(text, today)).transpose()
            };
            let low = bound(low)?.map_or(i64::MIN, |(up, _)| up);
            let high = bound(high)?.map_or(i64::MAX, |(_, down)| down);
            if low > high {
                return Err("must not begin above its end".to_owned());
            }
            FactCodes::Range(low, high)
        }
        FactTest::OneOf(values) => {
            let mut codes = Vec::with_capacity(values.len());
            for text in values {
                let (up, down) = column.codes_of(text, today)?;
                codes.extend((up == down).then_some(up));
            }
            codes.sort_unstable();
            codes.dedup();
            FactCodes::OneOf(codes)
        }
    })
}
