//! Decides, without I/O, which records a node appends to the shared log and which it accepts from
//! it; see [`super::log`].
//!
//! [`Sequencer::on`] takes an event and the time, and returns outputs, which [`super::driver`]
//! performs. The sequencer reads no clock, stream or source of randomness, so a test can replay any
//! order of events from a seed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

use super::copy::Copy;
use super::record::{Chain, PARTS_BYTES_MAX, RecordId, SharedPosition, SharedRecord, part_bytes};
use super::replica::{Condition, CutOff, Done, Replica, Submission};
use super::stream::{Published, StreamError, StreamRecord};
use crate::journal::AppendError;

/// Number of recent chains that are kept for comparison with redelivered records.
const CHAINS_KEPT: usize = 1 << 14;
/// Maximum number of remembered keys that other nodes changed.
const TOUCHED_MAX: usize = 1 << 16;

/// Timings of a sequencer. The defaults suit servers of a stream that elect a leader within seconds.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// Pause after an error of the stream.
    pub retry: Duration,
    /// Minimum interval between comparisons, before an append, of the last record of the stream
    /// with the one that this node knows. If the servers lost records and stored others in their
    /// place, the expected record of an append may match by number only. This interval is shorter
    /// than a restart of the servers.
    pub compare: Duration,
    /// Interval at which the sequencer asks for the end of the stream and refuses transactions that
    /// waited too long.
    pub tick: Duration,
    /// Timeout of a transaction that was not sent.
    pub send: Duration,
    /// After this time, a transaction with an unknown outcome fails with `outcome_unknown`.
    pub outcome: Duration,
    /// Grace period before a stream that lacks records applied here counts as truncated. A server that was cut off
    /// may report an old end for a moment.
    pub short: Duration,
    /// Time for pending appends when the log is closed.
    pub close: Duration,
    /// If records that are known to exist do not arrive within this time, the node subscribes again: the server that
    /// delivered them may have died.
    pub silence: Duration,
}

impl Default for Waits {
    fn default() -> Waits {
        Waits {
            retry: Duration::from_millis(200),
            compare: Duration::from_secs(1),
            tick: Duration::from_secs(1),
            send: Duration::from_secs(5),
            outcome: Duration::from_secs(10),
            short: Duration::from_secs(30),
            close: Duration::from_secs(5),
            silence: Duration::from_secs(1),
        }
    }
}

/// The time of an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    pub(super) at: Instant,
    /// Timestamp for records that are built now; informational.
    pub(super) unix_ms: u64,
}

/// An event.
pub(super) enum Input<T> {
    /// [`Sequencer::deadline`] has passed.
    Time,
    Append(Submission<T>),
    /// A barrier; it gets its response once all current records of the stream are applied.
    Barrier(oneshot::Sender<Result<(), AppendError>>),
    /// The response to [`Output::Follow`]: the end of the stream, whose records arrive from now on.
    Followed(Result<u64, StreamError>),
    Record(StreamRecord),
    /// The subscription has ended.
    Ended(Option<StreamError>),
    /// The response to [`Output::Append`].
    Published(Published),
    /// The response to [`Output::AskEnd`].
    End(Result<u64, StreamError>),
    /// A request to close the log.
    Close,
    /// The handle sends no more commands.
    CommandsEnded,
    /// Records can no longer be copied.
    CopierEnded,
}

/// An action for the driver.
pub(super) enum Output<T> {
    /// All records that the stream had at the start have been received; the value is the time of
    /// the last one.
    CaughtUp(Option<u64>),
    /// The health of the log has changed.
    Condition(Condition),
    /// Append a record after `last`, one at a time, after comparing `last` with `known`.
    Append {
        last: u64,
        known: Option<SharedPosition>,
        bytes: Vec<u8>,
    },
    /// Ask for the end of the stream, and subscribe to the records after `after`. There is one
    /// subscription at a time.
    Follow {
        after: u64,
    },
    /// End the subscription.
    Unfollow,
    /// Ask for the end of the stream.
    AskEnd,
    Copy(Copy<T>),
    Refuse(Done, AppendError),
    RefuseBarrier(oneshot::Sender<Result<(), AppendError>>, AppendError),
    /// Respond to these barriers once the record `seq` is applied, or refuse them after `wait`.
    AnswerBarriers {
        seq: u64,
        wait: Duration,
        barriers: Vec<Barrier>,
    },
    /// The sequencer has ended; later commands get this refusal.
    End(AppendError),
}

/// A waiting transaction.
struct WaitingTransaction<T> {
    submission: Submission<T>,
    since: Instant,
}

/// The record that is being appended.
struct InFlight<T> {
    id: RecordId,
    bytes: Vec<u8>,
    /// The record that precedes the one being appended.
    last: u64,
    submissions: Vec<Submission<T>>,
    since: Instant,
    /// When to send the record again; `None` while its response, or the record at its position, is
    /// awaited.
    send_at: Option<Instant>,
    /// Whether the callers know that the outcome is unknown.
    is_given_up: bool,
}

/// A request for the end of the stream.
struct Asking {
    /// The last received record when the request was sent.
    position: u64,
    barriers: Vec<Barrier>,
}

/// A caller that waits for the end of the stream.
pub(super) struct Barrier {
    pub(super) answer: oneshot::Sender<Result<(), AppendError>>,
    since: Instant,
}

/// State of the subscription.
enum Subscription {
    /// Subscribe at this time.
    Down(Instant),
    /// The subscription was requested, for records after this one.
    Asked(u64),
    Up,
}

pub(super) struct Sequencer<R: Replica> {
    node: String,
    replica: Arc<R>,
    waits: Waits,
    /// Id of the next record. The first id is random, so ids are unique across nodes.
    next_id: u128,
    position: SharedPosition,
    /// Chains of the last records; the last one is the chain of `position`.
    chains: VecDeque<Chain>,
    /// Keys that records of other nodes changed, each with the last record that changed it.
    touched: FxHashMap<u64, u64>,
    /// The newest record whose keys were dropped from `touched`.
    forgotten: u64,
    waiting: VecDeque<WaitingTransaction<R::Transaction>>,
    in_flight: Option<InFlight<R::Transaction>>,
    /// Whether the response to an append is awaited.
    is_sending: bool,
    barriers: Vec<Barrier>,
    asking: Option<Asking>,
    /// When to ask for the end of the stream again.
    ask_at: Instant,
    /// Whether to ask for the end even if no barrier is waiting.
    is_end_due: bool,
    tick_at: Instant,
    link: Subscription,
    condition: Condition,
    is_condition_new: bool,
    /// Time at which the stream was first found to lack records that this node has.
    short_since: Option<Instant>,
    /// The end of the stream at the first subscription.
    caught_up_at: Option<u64>,
    /// Timestamp of the last record, by the clock of the node that built it; `None` before the
    /// first record.
    newest_ms: Option<u64>,
    /// The last record that is known to exist.
    known_end: u64,
    /// Time of the last record or subscription.
    heard_at: Instant,
    /// When to compare the last record again; see [`Waits::compare`].
    compare_at: Instant,
    closing: Option<Instant>,
    have_commands_ended: bool,
    has_ended: bool,
    outputs: Vec<Output<R::Transaction>>,
}

/// Why the sequencer ends.
enum Ending {
    Closed,
    /// Why this node accepts no more writes.
    Halted(String),
}

/// The result of a step: the sequencer continues, or it ends.
type Step = Result<(), Ending>;

fn halt(reason: String) -> Step {
    Err(Ending::Halted(reason))
}

impl<R: Replica> Sequencer<R> {
    /// Creates the sequencer of the node `node`, whose state is at `position`. `chains` are the
    /// known chains of the records before it, oldest first.
    pub(super) fn new(
        node: String,
        replica: Arc<R>,
        position: SharedPosition,
        chains: Vec<Chain>,
        (waits, first_id, now): (Waits, u128, Instant),
    ) -> Sequencer<R> {
        let mut chains = VecDeque::from(chains);
        chains.push_back(position.chain);
        chains.drain(..chains.len().saturating_sub(CHAINS_KEPT));
        chains.shrink_to_fit();
        Sequencer {
            node,
            replica,
            waits,
            next_id: first_id,
            position,
            chains,
            touched: FxHashMap::default(),
            forgotten: position.seq,
            waiting: VecDeque::new(),
            in_flight: None,
            is_sending: false,
            barriers: Vec::new(),
            asking: None,
            ask_at: now,
            is_end_due: false,
            tick_at: now,
            link: Subscription::Down(now),
            condition: Condition { taken: position, ..Condition::default() },
            is_condition_new: false,
            short_since: None,
            caught_up_at: None,
            newest_ms: None,
            known_end: position.seq,
            heard_at: now,
            compare_at: now,
            closing: None,
            have_commands_ended: false,
            has_ended: false,
            outputs: Vec::new(),
        }
    }

    /// Returns true if commands are accepted; otherwise they stay in the channel.
    pub(super) fn has_room(&self) -> bool {
        !self.have_commands_ended && self.waiting.len() < super::replica::WAITING_MAX
    }

    /// Returns when [`Input::Time`] is due. Handling that input always advances the time.
    pub(super) fn deadline(&self) -> Instant {
        let follow_at = match self.link {
            Subscription::Down(at) => Some(at),
            Subscription::Asked(_) | Subscription::Up => None,
        };
        let send_at = self.in_flight.as_ref().and_then(|it| it.send_at);
        let others = [
            follow_at,
            send_at.filter(|_| !self.is_sending),
            Some(self.ask_at).filter(|_| self.asking.is_none() && self.is_end_wanted()),
            self.closing.map(|since| since + self.waits.close),
        ];
        others.into_iter().flatten().fold(self.tick_at, Instant::min)
    }

    /// Handles an event and returns the resulting actions, in order.
    pub(super) fn on(
        &mut self,
        now: Now,
        input: Input<R::Transaction>,
    ) -> Vec<Output<R::Transaction>> {
        if self.has_ended {
            return Vec::new();
        }
        if let Err(ending) = self.handle(now, input).and_then(|()| self.go_on(now)) {
            self.end(ending);
        }
        if std::mem::take(&mut self.is_condition_new) {
            // This comes first, since a copy may wait for the disk.
            let first = usize::from(matches!(self.outputs.first(), Some(Output::CaughtUp(_))));
            self.outputs.insert(first, Output::Condition(self.condition.clone()));
        }
        std::mem::take(&mut self.outputs)
    }

    fn handle(&mut self, now: Now, input: Input<R::Transaction>) -> Step {
        match input {
            Input::Time => Ok(()),
            Input::Append(submission) => {
                self.waiting.push_back(WaitingTransaction { submission, since: now.at });
                Ok(())
            }
            Input::Barrier(answer) => {
                self.barriers.push(Barrier { answer, since: now.at });
                Ok(())
            }
            Input::Followed(followed) => self.followed(now, followed),
            Input::Record(record) => self.take_in(now.at, record),
            Input::Ended(error) => {
                if let Some(StreamError(error)) = error {
                    self.cut_off(now.at, error);
                }
                self.link = Subscription::Down(now.at + self.waits.retry);
                self.compare_at = now.at;
                Ok(())
            }
            Input::Published(published) => {
                self.is_sending = false;
                if !matches!(published, Published::At(_)) {
                    // The servers may have restarted since the last comparison, or the record did not exist.
                    self.compare_at = now.at;
                }
                self.published(now, published)
            }
            Input::End(end) => self.end_of_stream(now.at, end),
            Input::Close => {
                self.closing.get_or_insert(now.at);
                Ok(())
            }
            Input::CommandsEnded => {
                self.have_commands_ended = true;
                Ok(())
            }
            Input::CopierEnded => halt("its copies cannot be written".to_owned()),
        }
    }

    /// Runs the steps that are due.
    fn go_on(&mut self, now: Now) -> Step {
        if self.tick_at <= now.at {
            self.give_up(now.at);
            self.is_end_due = true;
            self.tick_at = now.at + self.waits.tick;
        }
        if let Some(since) = self.closing {
            let is_idle =
                self.in_flight.is_none() && self.waiting.is_empty() && self.have_commands_ended;
            if is_idle || now.at >= since + self.waits.close {
                return Err(Ending::Closed);
            }
        }
        if matches!(self.link, Subscription::Up) && self.is_silent(now.at) {
            self.outputs.push(Output::Unfollow);
            self.link = Subscription::Down(now.at);
        }
        if matches!(self.link, Subscription::Down(at) if at <= now.at) {
            self.outputs.push(Output::Follow { after: self.position.seq });
            self.link = Subscription::Asked(self.position.seq);
        }
        if !self.is_sending {
            self.append_next(now);
        }
        if self.asking.is_none() && self.is_end_wanted() && self.ask_at <= now.at {
            self.is_end_due = false;
            let barriers = std::mem::take(&mut self.barriers);
            self.asking = Some(Asking { position: self.position.seq, barriers });
            self.outputs.push(Output::AskEnd);
        }
        if !self.condition.is_caught_up
            && self.caught_up_at.is_some_and(|end| self.position.seq >= end)
        {
            self.outputs.insert(0, Output::CaughtUp(self.newest_ms));
            self.change(|it| it.is_caught_up = true);
        }
        Ok(())
    }

    fn is_end_wanted(&self) -> bool {
        self.is_end_due || !self.barriers.is_empty()
    }

    /// Refuses all waiting commands.
    fn end(&mut self, ending: Ending) {
        self.has_ended = true;
        let refusal = match ending {
            Ending::Closed => AppendError::Closed,
            Ending::Halted(reason) => {
                tracing::error!(error = reason, "the shared log of this node is halted");
                self.change(|it| it.halted = Some(reason.clone()));
                AppendError::Halted { reason }
            }
        };
        for waiting in self.waiting.drain(..) {
            self.outputs.push(Output::Refuse(waiting.submission.done, refusal.clone()));
        }
        let asking = self.asking.take().map(|it| it.barriers).unwrap_or_default();
        for barrier in asking.into_iter().chain(self.barriers.drain(..)) {
            self.outputs.push(Output::RefuseBarrier(barrier.answer, refusal.clone()));
        }
        // The record may be stored; the node then receives it after its next start.
        for submission in self.in_flight.take().into_iter().flat_map(|it| it.submissions) {
            self.outputs.push(Output::Refuse(submission.done, AppendError::Unknown));
        }
        self.outputs.push(Output::End(refusal));
    }

    fn change(&mut self, change: impl FnOnce(&mut Condition)) {
        change(&mut self.condition);
        self.is_condition_new = true;
    }

    fn followed(&mut self, now: Now, followed: Result<u64, StreamError>) -> Step {
        let after = match std::mem::replace(&mut self.link, Subscription::Up) {
            Subscription::Asked(after) => after,
            Subscription::Down(_) | Subscription::Up => self.position.seq,
        };
        match followed {
            Ok(last) => {
                self.heard_at = now.at;
                self.caught_up_at.get_or_insert(last);
                self.ends_at(now.at, last, after)
            }
            Err(StreamError(error)) => {
                self.cut_off(now.at, error);
                self.link = Subscription::Down(now.at + self.waits.retry);
                Ok(())
            }
        }
    }

    fn end_of_stream(&mut self, now: Instant, end: Result<u64, StreamError>) -> Step {
        let Some(Asking { position, barriers }) = self.asking.take() else { return Ok(()) };
        match end {
            // A server that is behind.
            Ok(last) if last < position => {
                self.ask_again(now, barriers);
                self.ends_at(now, last, position)
            }
            Ok(seq) => {
                if !barriers.is_empty() {
                    let wait = self.waits.send;
                    self.outputs.push(Output::AnswerBarriers { seq, wait, barriers });
                }
                self.ends_at(now, seq, position)
            }
            Err(StreamError(error)) => {
                self.cut_off(now, error);
                // Only several such responses in succession prove that the stream is shorter.
                self.short_since = None;
                self.ask_again(now, barriers);
                Ok(())
            }
        }
    }

    fn cut_off(&mut self, now: Instant, error: String) {
        let since = self.condition.cut_off.as_ref().map(|it| it.since);
        if since.is_none() {
            tracing::warn!(error, "the shared log cannot be reached");
        }
        let since = since.unwrap_or(now);
        self.change(|it| it.cut_off = Some(CutOff { error, since }));
    }

    /// Schedules another request for the end of the stream, for callers whose timeout has not
    /// passed: servers elect another leader within seconds.
    fn ask_again(&mut self, now: Instant, barriers: Vec<Barrier>) {
        self.ask_at = now + self.waits.retry;
        for barrier in barriers {
            if now - barrier.since < self.waits.send {
                self.barriers.push(barrier);
            } else {
                self.outputs.push(Output::RefuseBarrier(barrier.answer, AppendError::Unreachable));
            }
        }
    }

    /// Returns true if records that are known to exist have failed to arrive in time.
    fn is_silent(&self, now: Instant) -> bool {
        self.known_end > self.position.seq && now - self.heard_at > self.waits.silence
    }

    /// Compares the end of the stream with the last record that this node had when it sent the request.
    fn ends_at(&mut self, now: Instant, last: u64, position: u64) -> Step {
        if self.condition.cut_off.is_some() {
            tracing::info!("the shared log is reachable again");
            self.change(|it| it.cut_off = None);
        }
        if last > self.known_end {
            // Time before this point does not count as silence.
            (self.known_end, self.heard_at) = (last, now);
        }
        if last >= position {
            if self.position.seq >= last {
                self.change(|it| it.complete_at = Some(now));
            }
            self.short_since = None;
            return Ok(());
        }
        let since = *self.short_since.get_or_insert(now);
        if now - since < self.waits.short {
            return Ok(());
        }
        halt(format!(
            "the stream ends with record {last}, but this node has applied record {}: the stream has lost records \
             (data/docs/cluster.md, if all halted)",
            self.position.seq
        ))
    }

    /// Starts the append that is due: a retry of the record in flight, or a new record of waiting transactions.
    fn append_next(&mut self, now: Now) {
        if self.in_flight.is_none() {
            self.begin_record(now);
        }
        let Some(in_flight) = &mut self.in_flight else { return };
        if in_flight.send_at.is_none_or(|at| at > now.at) {
            return;
        }
        in_flight.send_at = None;
        let (last, bytes) = (in_flight.last, in_flight.bytes.clone());
        let is_compared = self.position.seq == last && last > 0 && self.compare_at <= now.at;
        if is_compared {
            self.compare_at = now.at + self.waits.compare;
        }
        self.is_sending = true;
        let known = is_compared.then_some(self.position);
        self.outputs.push(Output::Append { last, known, bytes });
    }

    /// Builds a record of as many waiting transactions as fit.
    fn begin_record(&mut self, now: Now) {
        let (mut submissions, mut bytes) = (Vec::new(), 0);
        while let Some(waiting) = self.waiting.front() {
            bytes += part_bytes(waiting.submission.payload.len());
            if bytes > PARTS_BYTES_MAX && !submissions.is_empty() {
                break;
            }
            submissions.extend(self.waiting.pop_front().map(|waiting| waiting.submission));
        }
        self.send(now, submissions, now.at);
    }

    /// Builds a record of the transactions without a conflict, to follow the last one.
    fn send(&mut self, now: Now, submissions: Vec<Submission<R::Transaction>>, since: Instant) {
        let (valid, superseded): (Vec<_>, Vec<_>) =
            submissions.into_iter().partition(|submission| self.is_valid(submission));
        for submission in superseded {
            self.outputs.push(Output::Refuse(submission.done, AppendError::Superseded));
        }
        if valid.is_empty() {
            return;
        }
        let id = RecordId(self.next_id.to_le_bytes());
        self.next_id = self.next_id.wrapping_add(1);
        let message = SharedRecord {
            id,
            unix_ms: now.unix_ms,
            before: self.position.chain,
            node: &self.node,
            parts: valid.iter().map(|it| (it.kind, it.payload.as_slice())).collect(),
        };
        self.in_flight = Some(InFlight {
            id,
            bytes: message.encode(),
            last: self.position.seq,
            submissions: valid,
            since,
            send_at: Some(now.at),
            is_given_up: false,
        });
    }

    /// Returns true if a transaction has no conflict: no other node has changed its keys since it
    /// was decided.
    fn is_valid(&self, submission: &Submission<R::Transaction>) -> bool {
        let Submission { touched, since, .. } = submission;
        touched.is_empty()
            || *since >= self.forgotten
                && touched.iter().all(|key| self.touched.get(key).is_none_or(|seq| seq <= since))
    }

    /// Handles the response to an append.
    fn published(&mut self, now: Now, published: Published) -> Step {
        // The record was already received through the subscription.
        let Some(in_flight) = &mut self.in_flight else { return Ok(()) };
        let last = in_flight.last;
        let is_next = last == self.position.seq;
        match published {
            Published::At(seq) if is_next && seq == last + 1 => {
                let bytes = std::mem::take(&mut in_flight.bytes);
                self.take_in(now.at, StreamRecord { seq, bytes })
            }
            Published::Differs => halt(format!(
                "record {last} of the stream differs from the one that this node has applied: the stream has \
                 lost records and stored others"
            )),
            Published::At(seq) => halt(format!(
                "the stream stored a record that follows record {last} as record {seq}"
            )),
            // Our record or another node's is stored at the position; it will arrive through the
            // subscription.
            Published::Superseded if is_next => {
                in_flight.send_at = Some(now.at + self.waits.retry);
                Ok(())
            }
            Published::Unknown(error) if is_next => {
                tracing::debug!(%error, "an append to the shared log got no response; retrying");
                in_flight.send_at = Some(now.at + self.waits.retry);
                Ok(())
            }
            // Another record holds the position, so ours is not stored.
            Published::Superseded | Published::Unknown(_) => {
                self.send_again(now);
                Ok(())
            }
        }
    }

    /// Builds a new record of the transactions in flight, after another record was stored at their
    /// position.
    fn send_again(&mut self, now: Now) {
        let Some(InFlight { submissions, since, is_given_up, .. }) = self.in_flight.take() else {
            return;
        };
        // The callers of these transactions may have retried.
        if !is_given_up {
            self.send(now, submissions, since);
        }
    }

    /// Accepts a record of the stream: verifies it, and passes it on to be copied and applied.
    fn take_in(&mut self, now: Instant, record: StreamRecord) -> Step {
        self.heard_at = now;
        let StreamRecord { seq, bytes } = record;
        let position = SharedPosition::after(seq, &bytes);
        let known = self.position;
        if seq <= known.seq {
            return self.compare(position);
        }
        if seq != known.seq + 1 {
            return halt(format!(
                "record {seq} follows record {}: records are missing in the stream",
                known.seq
            ));
        }
        let message = match SharedRecord::decode(&bytes) {
            Ok(message) => message,
            Err(err) => return halt(format!("record {seq}: {err}")),
        };
        if message.before != known.chain {
            let advice = match known.seq {
                0 => ": this node began with other data; restore a backup of another node",
                _ => "",
            };
            return halt(format!(
                "record {seq} of node {} follows another record {} ({}) than the one that this node has applied \
                 ({}){advice}",
                message.node, known.seq, message.before, known.chain
            ));
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
        self.change(|it| {
            it.taken = position;
            it.complete_at = is_complete.then_some(now).or(it.complete_at);
        });
        self.outputs.push(Output::Copy(Copy { bytes, position, transactions, done }));
        Ok(())
    }

    /// Compares a redelivered record with the applied one.
    fn compare(&self, again: SharedPosition) -> Step {
        let back = (self.position.seq - again.seq) as usize;
        let known = self.chains.len().checked_sub(back + 1).map(|at| self.chains[at]);
        match known {
            Some(chain) if chain != again.chain => halt(format!(
                "record {} of the stream is another ({}) than the one that this node has applied ({chain})",
                again.seq, again.chain
            )),
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
                // Transactions decided meanwhile did not see this record.
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
    ) -> Result<Vec<R::Transaction>, Ending> {
        let decode = |part: &_| {
            self.replica.decode(*part).map_err(|err| {
                Ending::Halted(format!(
                    "record {seq} of node {} cannot be read: {err}",
                    message.node
                ))
            })
        };
        let transactions = message.parts.iter().map(decode).collect::<Result<Vec<_>, _>>()?;
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

    /// Refuses commands that have waited too long.
    fn give_up(&mut self, now: Instant) {
        let Waits { send, outcome, .. } = self.waits;
        while let Some(waiting) = self.waiting.pop_front_if(|it| now - it.since > send) {
            self.outputs.push(Output::Refuse(waiting.submission.done, AppendError::Unreachable));
        }
        let Some(in_flight) = &mut self.in_flight else { return };
        if !in_flight.is_given_up && now - in_flight.since > outcome {
            in_flight.is_given_up = true;
            for submission in &mut in_flight.submissions {
                let done = std::mem::replace(&mut submission.done, Box::new(|_| {}));
                self.outputs.push(Output::Refuse(done, AppendError::Unknown));
            }
        }
    }
}
