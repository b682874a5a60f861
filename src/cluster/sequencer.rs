//! Appends to the stream and takes in its records: see [`super::log`].

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{sleep_until, timeout};

use super::copy::Copy;
use super::record::{Chain, PARTS_BYTES_MAX, RecordId, SharedPosition, SharedRecord, part_bytes};
use super::replica::{Command, Condition, CutOff, Done, Replica, Submission};
use super::stream::{Published, Records, Stream, StreamError, StreamRecord};
use crate::journal::AppendError;

/// Pause before the stream is asked again after an error.
const RETRY_PAUSE: Duration = Duration::from_millis(if cfg!(test) { 2 } else { 200 });
/// The last record of the stream is compared with the one that this node knows before an append, this often: if the
/// servers have lost records and taken others, an append may fit by its number alone. They need longer to start again.
const COMPARE_EVERY: Duration = Duration::from_millis(if cfg!(test) { 1 } else { 1_000 });
/// How often the sequencer looks whether the stream is as long as it knows, and for transactions that wait.
const TICK: Duration = Duration::from_millis(if cfg!(test) { 20 } else { 1_000 });
/// A transaction that was not sent for so long is refused.
const SEND_WAIT: Duration = Duration::from_secs(5);
/// A transaction whose outcome is not known for so long is answered so.
const OUTCOME_WAIT: Duration = Duration::from_secs(10);
/// A stream that is shorter than this node knows for so long has lost records. A server that was cut off may say so for
/// a moment.
const SHORT_WAIT: Duration = Duration::from_millis(if cfg!(test) { 200 } else { 30_000 });
/// Time for what is under way when the log is closed.
const CLOSE_WAIT: Duration = Duration::from_secs(5);
/// Chains that are kept, to compare records that come again.
const CHAINS_KEPT: usize = 1 << 14;
/// Keys of other nodes' changes that are kept.
const TOUCHED_MAX: usize = 1 << 16;
/// Records that are known to be there and do not arrive for so long are asked for again: the server that delivered
/// them may have died.
const SILENCE_MAX: Duration = Duration::from_millis(if cfg!(test) { 20 } else { 1_000 });

/// A transaction that waits.
struct Waiting<T> {
    submission: Submission<T>,
    since: Instant,
}

/// The record that is being appended.
struct InFlight<T> {
    id: RecordId,
    bytes: Vec<u8>,
    /// The record that it follows.
    last: u64,
    submissions: Vec<Submission<T>>,
    since: Instant,
    /// When it is sent again; `None` while its answer or the record in its place is awaited.
    send_at: Option<Instant>,
    /// Whether its callers were told that the outcome is unknown.
    is_given_up: bool,
}

type Sending = Pin<Box<dyn Future<Output = Published> + Send>>;
type Last = Pin<Box<dyn Future<Output = Result<u64, StreamError>> + Send>>;

/// A question for the end of the stream.
struct Asking {
    last: Last,
    /// The last record that was taken in when it was asked.
    position: u64,
    barriers: Vec<Barrier>,
}

/// Someone who waits for the end of the stream.
struct Barrier {
    answer: oneshot::Sender<Result<(), AppendError>>,
    since: Instant,
}

pub(super) struct Sequencer<S, R: Replica> {
    node: String,
    stream: Arc<S>,
    replica: Arc<R>,
    position: SharedPosition,
    /// Chains of the last records, that of `position` at the end.
    chains: VecDeque<Chain>,
    /// Keys that records of other nodes changed, and the last of these records.
    touched: FxHashMap<u64, u64>,
    /// Keys that were forgotten are from this record at most.
    forgotten: u64,
    waiting: VecDeque<Waiting<R::Transaction>>,
    in_flight: Option<InFlight<R::Transaction>>,
    barriers: Vec<Barrier>,
    /// When the stream is asked for its end again.
    ask_at: Instant,
    condition: Arc<watch::Sender<Condition>>,
    /// Since when the stream is shorter than this node knows.
    short_since: Option<Instant>,
    /// The end of the stream when it was first followed.
    caught_up_at: Option<u64>,
    /// When the last record was made, by the clock of its node; `None` before one came.
    newest_ms: Option<u64>,
    /// The last record that is known to be there.
    known_end: u64,
    /// When a record came last, or the stream was followed.
    heard_at: Instant,
    /// When the last record is compared again, see [`COMPARE_EVERY`].
    compare_at: Instant,
}

/// Why a node accepts no more writes.
struct Halt(String);

/// Why the sequencer ends.
enum End {
    Closed,
    Halted(Halt),
}

impl<S: Stream, R: Replica> Sequencer<S, R> {
    pub(super) fn new(
        node: String,
        stream: S,
        replica: Arc<R>,
        position: SharedPosition,
        chains: Vec<Chain>,
        condition: Arc<watch::Sender<Condition>>,
    ) -> Sequencer<S, R> {
        let mut chains = VecDeque::from(chains);
        chains.push_back(position.chain);
        chains.drain(..chains.len().saturating_sub(CHAINS_KEPT));
        chains.shrink_to_fit();
        Sequencer {
            node,
            stream: Arc::new(stream),
            replica,
            position,
            chains,
            touched: FxHashMap::default(),
            forgotten: position.seq,
            waiting: VecDeque::new(),
            in_flight: None,
            barriers: Vec::new(),
            ask_at: Instant::now(),
            condition,
            short_since: None,
            caught_up_at: None,
            newest_ms: None,
            known_end: position.seq,
            heard_at: Instant::now(),
            compare_at: Instant::now(),
        }
    }

    /// Runs until the log is closed or halted.
    pub(super) async fn run(
        mut self,
        mut commands: mpsc::Receiver<Command<R::Transaction>>,
        copies: mpsc::Sender<Copy<R::Transaction>>,
        applied: watch::Receiver<SharedPosition>,
        closed: watch::Receiver<bool>,
    ) {
        let refusal = match self.work(&mut commands, &copies, applied, closed).await {
            End::Halted(Halt(reason)) => {
                let is_first = self.condition.borrow().halted.is_none();
                if is_first {
                    tracing::error!(error = reason, "the shared log of this node is halted");
                    self.condition.send_modify(|it| it.halted = Some(reason.clone()));
                }
                AppendError::Halted { reason }
            }
            End::Closed => AppendError::Closed,
        };
        commands.close();
        while let Ok(command) = commands.try_recv() {
            match command {
                Command::Append(submission) => (submission.done)(Err(refusal.clone())),
                Command::Barrier(answer) => drop(answer.send(Err(refusal.clone()))),
            }
        }
        for waiting in self.waiting.drain(..) {
            (waiting.submission.done)(Err(refusal.clone()));
        }
        for barrier in self.barriers.drain(..) {
            let _ = barrier.answer.send(Err(refusal.clone()));
        }
        // It may be stored: the next start takes it in.
        if let Some(in_flight) = self.in_flight.take() {
            in_flight.submissions.into_iter().for_each(|it| (it.done)(Err(AppendError::Unknown)));
        }
    }

    async fn work(
        &mut self,
        commands: &mut mpsc::Receiver<Command<R::Transaction>>,
        copies: &mpsc::Sender<Copy<R::Transaction>>,
        applied: watch::Receiver<SharedPosition>,
        mut closed: watch::Receiver<bool>,
    ) -> End {
        let mut closing: Option<Instant> = None;
        let mut records: Option<Records> = None;
        let mut following: Option<Pin<Box<dyn Future<Output = _> + Send>>> = None;
        let mut follow_at = Instant::now();
        let mut sending: Option<Sending> = None;
        let mut asking: Option<Asking> = None;
        let mut look = false;
        let mut tick = tokio::time::interval(TICK);
        loop {
            if let Some(begun) = closing {
                let is_idle =
                    self.in_flight.is_none() && self.waiting.is_empty() && commands.is_empty();
                if is_idle || begun.elapsed() > CLOSE_WAIT {
                    return End::Closed;
                }
            }
            if records.is_some() && self.is_silent() {
                records = None;
            }
            if records.is_none() && following.is_none() && Instant::now() >= follow_at {
                following = Some(Box::pin(follow(Arc::clone(&self.stream), self.position.seq)));
            }
            if sending.is_none() {
                sending = self.next_append();
            }
            let is_asked = look || !self.barriers.is_empty();
            if asking.is_none() && is_asked && self.ask_at <= Instant::now() {
                look = false;
                let stream = Arc::clone(&self.stream);
                let asked = async move { stream.last().await };
                asking = Some(Asking {
                    last: Box::pin(asked),
                    position: self.position.seq,
                    barriers: std::mem::take(&mut self.barriers),
                });
            }
            let resend_at = self.in_flight.as_ref().and_then(|it| it.send_at);
            let ask_at = Some(self.ask_at).filter(|_| asking.is_none() && is_asked);
            let wake = [
                ask_at,
                resend_at,
                (records.is_none() && following.is_none()).then_some(follow_at),
            ];
            let wake = wake.into_iter().flatten().min();
            let took = tokio::select! {
                biased;
                // Not behind the records, which may come without a pause.
                _ = tick.tick() => {
                    self.give_up();
                    look = true;
                    Ok(())
                }
                _ = closed.wait_for(|closed| *closed), if closing.is_none() => {
                    closing = Some(Instant::now());
                    Ok(())
                }
                record = next_record(&mut records), if records.is_some() => match record {
                    Some(Ok(record)) => self.take_in(record, copies).await,
                    Some(Err(StreamError(error))) => {
                        self.cut_off(error);
                        (records, follow_at) = (None, Instant::now() + RETRY_PAUSE);
                        Ok(())
                    }
                    None => {
                        (records, follow_at) = (None, Instant::now() + RETRY_PAUSE);
                        Ok(())
                    }
                },
                published = optional(&mut sending), if sending.is_some() => {
                    sending = None;
                    self.published(published, copies).await
                }
                followed = optional(&mut following), if following.is_some() => {
                    following = None;
                    match followed {
                        Ok((position, last, stream)) => {
                            (records, self.heard_at) = (Some(stream), Instant::now());
                            self.caught_up_at.get_or_insert(last);
                            self.ends_at(last, position)
                        }
                        Err(StreamError(error)) => {
                            self.cut_off(error);
                            follow_at = Instant::now() + RETRY_PAUSE;
                            Ok(())
                        }
                    }
                }
                last = asked(&mut asking), if asking.is_some() => {
                    let (position, barriers) =
                        asking.take().map(|it| (it.position, it.barriers)).unwrap_or_default();
                    match last {
                        // A server that is behind.
                        Ok(last) if last < position => {
                            self.ask_again(barriers);
                            self.ends_at(last, position)
                        }
                        Ok(last) => {
                            tokio::spawn(answer_when_applied(applied.clone(), last, barriers));
                            self.ends_at(last, position)
                        }
                        Err(StreamError(error)) => {
                            self.cut_off(error);
                            // Only answers one after the other show that the stream is shorter.
                            self.short_since = None;
                            self.ask_again(barriers);
                            Ok(())
                        }
                    }
                }
                command = commands.recv(), if self.has_room() => {
                    match command {
                        Some(Command::Append(submission)) => {
                            self.waiting.push_back(Waiting { submission, since: Instant::now() });
                        }
                        Some(Command::Barrier(answer)) => {
                            self.barriers.push(Barrier { answer, since: Instant::now() });
                        }
                        None => return End::Closed,
                    }
                    Ok(())
                }
                () = sleep_until(wake.unwrap_or_else(Instant::now).into()), if wake.is_some() => Ok(()),
            };
            if let Err(halt) = took {
                return End::Halted(halt);
            }
            if self.caught_up_at.is_some_and(|end| self.position.seq >= end)
                && !self.condition.borrow().is_caught_up
            {
                self.replica.caught_up(self.newest_ms);
                self.condition.send_modify(|it| it.is_caught_up = true);
            }
        }
    }

    fn has_room(&self) -> bool {
        self.waiting.len() < super::replica::WAITING_MAX
    }

    fn cut_off(&self, error: String) {
        let since = self.condition.borrow().cut_off.as_ref().map(|it| it.since);
        if since.is_none() {
            tracing::warn!(error, "the shared log cannot be reached");
        }
        let since = since.unwrap_or_else(Instant::now);
        self.condition.send_modify(|it| it.cut_off = Some(CutOff { error, since }));
    }

    fn connected(&self) {
        if self.condition.borrow().cut_off.is_some() {
            tracing::info!("the shared log is reached again");
            self.condition.send_modify(|it| it.cut_off = None);
        }
    }

    /// Asks for the end of the stream again soon, for those who have not waited for too long: servers elect another
    /// leader within seconds.
    fn ask_again(&mut self, barriers: Vec<Barrier>) {
        self.ask_at = Instant::now() + RETRY_PAUSE;
        for barrier in barriers {
            if barrier.since.elapsed() < SEND_WAIT {
                self.barriers.push(barrier);
            } else {
                let _ = barrier.answer.send(Err(AppendError::Unreachable));
            }
        }
    }

    /// Whether records that are known to be there do not arrive.
    fn is_silent(&self) -> bool {
        self.known_end > self.position.seq && self.heard_at.elapsed() > SILENCE_MAX
    }

    /// Compares the end of the stream with the record that was the last one here when it was asked for.
    fn ends_at(&mut self, last: u64, position: u64) -> Result<(), Halt> {
        self.connected();
        if last > self.known_end {
            // What arrived before does not count.
            (self.known_end, self.heard_at) = (last, Instant::now());
        }
        if last >= position {
            if self.position.seq >= last {
                self.condition.send_modify(|it| it.complete_at = Some(Instant::now()));
            }
            self.short_since = None;
            return Ok(());
        }
        let since = *self.short_since.get_or_insert_with(Instant::now);
        if since.elapsed() < SHORT_WAIT {
            return Ok(());
        }
        Err(Halt(format!(
            "the stream ends with record {last}, but this node has applied record {}: the stream has lost records \
             (data/docs/cluster.md, if all halted)",
            self.position.seq
        )))
    }

    /// Returns the append that is due: that of the record in flight again, or a new record of what waits.
    fn next_append(&mut self) -> Option<Sending> {
        if self.in_flight.is_none() {
            self.begin_record();
        }
        let in_flight = self.in_flight.as_mut()?;
        if in_flight.send_at.is_none_or(|at| at > Instant::now()) {
            return None;
        }
        in_flight.send_at = None;
        let (stream, last, bytes) =
            (Arc::clone(&self.stream), in_flight.last, in_flight.bytes.clone());
        let now = Instant::now();
        let known =
            Some(self.position).filter(|it| it.seq == last && last > 0 && self.compare_at <= now);
        if known.is_some() {
            self.compare_at = now + COMPARE_EVERY;
        }
        Some(Box::pin(async move {
            match known {
                Some(known) => append_after(stream.as_ref(), known, bytes).await,
                None => stream.append(last, bytes).await,
            }
        }))
    }

    /// Makes a record of the transactions that wait, as many as fit.
    fn begin_record(&mut self) {
        let (mut submissions, mut bytes) = (Vec::new(), 0);
        while let Some(waiting) = self.waiting.front() {
            bytes += part_bytes(waiting.submission.payload.len());
            if bytes > PARTS_BYTES_MAX && !submissions.is_empty() {
                break;
            }
            submissions.extend(self.waiting.pop_front().map(|waiting| waiting.submission));
        }
        self.send(submissions, Instant::now());
    }

    /// Puts what is still valid of these transactions into a record after the last one.
    fn send(&mut self, submissions: Vec<Submission<R::Transaction>>, since: Instant) {
        let (valid, superseded): (Vec<_>, Vec<_>) =
            submissions.into_iter().partition(|submission| self.is_valid(submission));
        superseded.into_iter().for_each(|it| (it.done)(Err(AppendError::Superseded)));
        if valid.is_empty() {
            return;
        }
        let mut id = [0; 16];
        if let Err(err) = getrandom::fill(&mut id) {
            tracing::error!(error = %err, "the system's random source failed");
            return valid.into_iter().for_each(|it| (it.done)(Err(AppendError::Unreachable)));
        }
        let message = SharedRecord {
            id: RecordId(id),
            unix_ms: self.replica.now_ms(),
            before: self.position.chain,
            node: &self.node,
            parts: valid.iter().map(|it| (it.kind, it.payload.as_slice())).collect(),
        };
        self.in_flight = Some(InFlight {
            id: message.id,
            bytes: message.encode(),
            last: self.position.seq,
            submissions: valid,
            since,
            send_at: Some(Instant::now()),
            is_given_up: false,
        });
    }

    /// Whether no other node changed, after it was decided, what a transaction changes.
    fn is_valid(&self, submission: &Submission<R::Transaction>) -> bool {
        let Submission { touched, since, .. } = submission;
        touched.is_empty()
            || *since >= self.forgotten
                && touched.iter().all(|key| self.touched.get(key).is_none_or(|seq| seq <= since))
    }

    /// Handles the answer to an append.
    async fn published(
        &mut self,
        published: Published,
        copies: &mpsc::Sender<Copy<R::Transaction>>,
    ) -> Result<(), Halt> {
        // Taken in already, from the records that the stream delivers.
        let Some(in_flight) = &mut self.in_flight else { return Ok(()) };
        match published {
            Published::At(seq)
                if seq == in_flight.last + 1 && in_flight.last == self.position.seq =>
            {
                let record = StreamRecord { seq, bytes: in_flight.bytes.clone() };
                self.take_in(record, copies).await
            }
            Published::Differs => Err(Halt(format!(
                "record {} of the stream is another than the one that this node has applied: the stream has \
                 lost records and taken others",
                in_flight.last
            ))),
            Published::At(seq) => Err(Halt(format!(
                "the stream stored a record that follows record {} as record {seq}",
                in_flight.last
            ))),
            // Our record or another's is there, and arrives.
            Published::Superseded if in_flight.last == self.position.seq => {
                in_flight.send_at = Some(Instant::now() + RETRY_PAUSE);
                Ok(())
            }
            Published::Unknown(error) if in_flight.last == self.position.seq => {
                tracing::debug!(%error, "an append to the shared log has no answer; it is repeated");
                in_flight.send_at = Some(Instant::now() + RETRY_PAUSE);
                Ok(())
            }
            // Another record was taken in where ours would be, so ours is not stored.
            Published::Superseded | Published::Unknown(_) => {
                self.send_again();
                Ok(())
            }
        }
    }

    /// Makes a new record of the transactions in flight: another record is where theirs would be.
    fn send_again(&mut self) {
        let Some(InFlight { submissions, since, is_given_up, .. }) = self.in_flight.take() else {
            return;
        };
        // Their callers may have tried again.
        if !is_given_up {
            self.send(submissions, since);
        }
    }

    /// Takes in a record of the stream: checks it, and hands it on to be copied and applied.
    async fn take_in(
        &mut self,
        record: StreamRecord,
        copies: &mpsc::Sender<Copy<R::Transaction>>,
    ) -> Result<(), Halt> {
        self.heard_at = Instant::now();
        let StreamRecord { seq, bytes } = record;
        let position = SharedPosition::after(seq, &bytes);
        if seq <= self.position.seq {
            return self.compare(position);
        }
        if seq != self.position.seq + 1 {
            return Err(Halt(format!(
                "record {seq} follows record {}: records are missing in the stream",
                self.position.seq
            )));
        }
        let message =
            SharedRecord::decode(&bytes).map_err(|err| Halt(format!("record {seq}: {err}")))?;
        if message.before != self.position.chain {
            return Err(Halt(format!(
                "record {seq} of node {} follows another record {} ({}) than the one that this node \
                 has applied ({}){}",
                message.node,
                self.position.seq,
                message.before,
                self.position.chain,
                if self.position.seq == 0 {
                    ": this node began with other data; restore a backup of another node"
                } else {
                    ""
                },
            )));
        }
        self.newest_ms = Some(message.unix_ms);
        let own = self.in_flight.take_if(|it| it.id == message.id);
        let (transactions, done) = match own {
            Some(in_flight) => self.own(in_flight, seq),
            None => (self.of_others(&message, seq)?, Vec::new()),
        };
        self.position = position;
        self.known_end = self.known_end.max(seq);
        self.chains.push_back(position.chain);
        if self.chains.len() > CHAINS_KEPT {
            self.chains.pop_front();
        }
        let is_complete = seq >= self.known_end;
        self.condition.send_modify(|it| {
            it.taken = position;
            it.complete_at = is_complete.then(Instant::now).or(it.complete_at);
        });
        let copy = Copy { bytes, position, transactions, done };
        if copies.send(copy).await.is_err() {
            return Err(Halt("its copies cannot be written".to_owned()));
        }
        self.heard_at = Instant::now();
        Ok(())
    }

    /// Compares a record that comes again with the one that was taken in.
    fn compare(&self, again: SharedPosition) -> Result<(), Halt> {
        let back = (self.position.seq - again.seq) as usize;
        let known = self.chains.len().checked_sub(back + 1).map(|at| self.chains[at]);
        match known {
            Some(chain) if chain != again.chain => Err(Halt(format!(
                "record {} of the stream is another ({}) than the one that this node has applied ({chain})",
                again.seq, again.chain
            ))),
            _ => Ok(()),
        }
    }

    fn own(
        &mut self,
        in_flight: InFlight<R::Transaction>,
        seq: u64,
    ) -> (Vec<R::Transaction>, Vec<Done>) {
        let InFlight { submissions, is_given_up, .. } = in_flight;
        let (mut transactions, mut done) = (Vec::new(), Vec::new());
        for Submission { transaction, touched, done: answer, .. } in submissions {
            if is_given_up {
                // What was decided since did not know of it.
                self.touch(touched, seq);
            } else {
                done.push(answer);
            }
            transactions.push(transaction);
        }
        (transactions, done)
    }

    fn of_others(
        &mut self,
        message: &SharedRecord<'_>,
        seq: u64,
    ) -> Result<Vec<R::Transaction>, Halt> {
        let decode = |part: &_| {
            self.replica.decode(*part).map_err(|err| {
                Halt(format!("record {seq} of node {} cannot be read: {err}", message.node))
            })
        };
        let transactions = message.parts.iter().map(decode).collect::<Result<Vec<_>, Halt>>()?;
        for transaction in &transactions {
            self.touch(self.replica.touched(transaction), seq);
        }
        Ok(transactions)
    }

    fn touch(&mut self, keys: Vec<u64>, seq: u64) {
        if self.touched.len() >= TOUCHED_MAX {
            self.touched.clear();
            self.forgotten = seq;
        }
        self.touched.extend(keys.into_iter().map(|key| (key, seq)));
    }

    /// Answers those who wait for too long.
    fn give_up(&mut self) {
        while let Some(waiting) = self.waiting.pop_front_if(|it| it.since.elapsed() > SEND_WAIT) {
            (waiting.submission.done)(Err(AppendError::Unreachable));
        }
        let Some(in_flight) = &mut self.in_flight else { return };
        if !in_flight.is_given_up && in_flight.since.elapsed() > OUTCOME_WAIT {
            in_flight.is_given_up = true;
            for submission in &mut in_flight.submissions {
                let done = std::mem::replace(&mut submission.done, Box::new(|_| {}));
                done(Err(AppendError::Unknown));
            }
        }
    }
}

/// Appends a record after the one at `known`, if that is there.
async fn append_after<S: Stream>(stream: &S, known: SharedPosition, bytes: Vec<u8>) -> Published {
    match stream.record(known.seq).await {
        Ok(Some(found)) if SharedPosition::after(known.seq, &found) != known => Published::Differs,
        // If it is not there, the append does not fit.
        Ok(_) => stream.append(known.seq, bytes).await,
        Err(error) => Published::Unknown(error),
    }
}

/// Returns `from`, the end of the stream, and its records from there on.
async fn follow<S: Stream>(stream: Arc<S>, from: u64) -> Result<(u64, u64, Records), StreamError> {
    let last = stream.last().await?;
    // The last record that is known comes again, to be compared.
    Ok((from, last, stream.follow(from.max(1)).await?))
}

async fn next_record(records: &mut Option<Records>) -> Option<Result<StreamRecord, StreamError>> {
    match records {
        Some(records) => records.recv().await,
        None => pending().await,
    }
}

async fn optional<F: Future + Unpin>(future: &mut Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => pending().await,
    }
}

async fn asked(asking: &mut Option<Asking>) -> Result<u64, StreamError> {
    match asking {
        Some(asking) => (&mut asking.last).await,
        None => pending().await,
    }
}

async fn answer_when_applied(
    mut applied: watch::Receiver<SharedPosition>,
    seq: u64,
    barriers: Vec<Barrier>,
) {
    let reached = timeout(SEND_WAIT, applied.wait_for(|applied| applied.seq >= seq)).await;
    let answer = match reached {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(_)) => Err(AppendError::Closed),
        Err(_) => Err(AppendError::Unreachable),
    };
    for barrier in barriers {
        let _ = barrier.answer.send(answer.clone());
    }
}
