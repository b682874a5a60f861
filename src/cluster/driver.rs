//! Runs a [`Sequencer`]: feeds it events from the stream and from the handle, and performs its outputs.

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use tokio::time::{sleep_until, timeout};

use super::copy::Copy;
use super::record::SharedPosition;
use super::replica::{Command, Condition, Replica};
use super::sequencer::{Barrier, Input, Now, Output, Sequencer};
use super::stream::{Published, Records, Stream, StreamError, StreamRecord};
use crate::journal::AppendError;

type Pending<T> = Option<Pin<Box<dyn Future<Output = T> + Send>>>;

/// Reads the clock for the sequencer and its handle; no other part of the log does.
pub(super) fn now() -> Instant {
    Instant::now()
}

/// The stream, the replica and the channels of a sequencer.
pub(super) struct Driver<S, R: Replica> {
    pub(super) stream: Arc<S>,
    pub(super) replica: Arc<R>,
    pub(super) commands: mpsc::Receiver<Command<R::Transaction>>,
    pub(super) copies: mpsc::Sender<Copy<R::Transaction>>,
    pub(super) applied: watch::Receiver<SharedPosition>,
    pub(super) condition: Arc<watch::Sender<Condition>>,
    pub(super) closed: watch::Receiver<bool>,
}

/// Requests to the stream that await a response.
#[derive(Default)]
struct Requests {
    records: Option<Records>,
    follow: Pending<Result<(u64, Records), StreamError>>,
    append: Pending<Published>,
    end: Pending<Result<u64, StreamError>>,
    is_closing: bool,
}

impl<S: Stream, R: Replica> Driver<S, R> {
    /// Runs until the log is closed or halted.
    pub(super) async fn run(mut self, mut sequencer: Sequencer<R>) {
        let mut requests = Requests::default();
        loop {
            let input = self.next(&sequencer, &mut requests).await;
            let mut outputs = VecDeque::from(sequencer.on(self.now(), input));
            while let Some(output) = outputs.pop_front() {
                match self.perform(output, &mut requests).await {
                    Ok(None) => {}
                    Ok(Some(input)) => outputs.extend(sequencer.on(self.now(), input)),
                    Err(refusal) => return self.refuse_commands(&refusal),
                }
            }
        }
    }

    fn now(&self) -> Now {
        Now { at: now(), unix_ms: self.replica.now_ms() }
    }

    /// Waits for the next event.
    async fn next(
        &mut self,
        sequencer: &Sequencer<R>,
        requests: &mut Requests,
    ) -> Input<R::Transaction> {
        tokio::select! {
            biased;
            // This comes first, because records may arrive without a pause.
            () = sleep_until(sequencer.deadline().into()) => Input::Time,
            _ = self.closed.wait_for(|closed| *closed), if !requests.is_closing => {
                requests.is_closing = true;
                self.commands.close();
                Input::Close
            }
            record = next_record(&mut requests.records) => match record {
                Some(Ok(record)) => Input::Record(record),
                ended => {
                    requests.records = None;
                    Input::Ended(ended.and_then(Result::err))
                }
            },
            published = response(&mut requests.append) => Input::Published(published),
            followed = response(&mut requests.follow) => Input::Followed(followed.map(|(last, records)| {
                requests.records = Some(records);
                last
            })),
            end = response(&mut requests.end) => Input::End(end),
            command = self.commands.recv(), if sequencer.has_room() => match command {
                Some(Command::Append(submission)) => Input::Append(submission),
                Some(Command::Barrier(answer)) => Input::Barrier(answer),
                None => Input::CommandsEnded,
            },
        }
    }

    /// Performs an output, or starts its request. Returns the event that it causes at once, if any.
    ///
    /// # Errors
    /// The sequencer has ended. Later commands get this refusal.
    async fn perform(
        &self,
        output: Output<R::Transaction>,
        requests: &mut Requests,
    ) -> Result<Option<Input<R::Transaction>>, AppendError> {
        let stream = Arc::clone(&self.stream);
        match output {
            Output::CaughtUp(newest_ms) => self.replica.caught_up(newest_ms),
            Output::Condition(condition) => self.publish(condition),
            Output::Append { last, known, bytes } => {
                let append = async move { stream.append_after(last, known, bytes).await };
                requests.append = Some(Box::pin(append));
            }
            Output::Follow { after } => {
                requests.follow = Some(Box::pin(async move { stream.follow_after(after).await }));
            }
            Output::Unfollow => requests.records = None,
            Output::AskEnd => requests.end = Some(Box::pin(async move { stream.last().await })),
            Output::Refuse(done, refusal) => done(Err(refusal)),
            Output::RefuseBarrier(answer, refusal) => drop(answer.send(Err(refusal))),
            Output::AnswerBarriers { seq, wait, barriers } => {
                let applied = self.applied.clone();
                tokio::spawn(answer_when_applied(applied, seq, wait, barriers));
            }
            Output::Copy(copy) => {
                let sent = self.copies.send(copy).await;
                return Ok(sent.err().map(|_| Input::CopierEnded));
            }
            Output::End(refusal) => return Err(refusal),
        }
        Ok(None)
    }

    fn publish(&self, condition: Condition) {
        self.condition.send_modify(|it| {
            // The copier also halts the log.
            let halted = it.halted.take().or(condition.halted);
            *it = Condition { halted, ..condition };
        });
    }

    /// Refuses the commands that the sequencer has not received.
    fn refuse_commands(mut self, refusal: &AppendError) {
        self.commands.close();
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Append(submission) => (submission.done)(Err(refusal.clone())),
                Command::Barrier(answer) => drop(answer.send(Err(refusal.clone()))),
            }
        }
    }
}

/// Waits for a record; forever without a subscription.
async fn next_record(records: &mut Option<Records>) -> Option<Result<StreamRecord, StreamError>> {
    match records {
        Some(records) => records.recv().await,
        None => pending().await,
    }
}

/// Waits for a response. If there is no request, this waits forever.
async fn response<T>(request: &mut Pending<T>) -> T {
    let Some(future) = request else { return pending().await };
    let response = future.await;
    *request = None;
    response
}

async fn answer_when_applied(
    mut applied: watch::Receiver<SharedPosition>,
    seq: u64,
    wait: Duration,
    barriers: Vec<Barrier>,
) {
    let answer = match timeout(wait, applied.wait_for(|applied| applied.seq >= seq)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(_)) => Err(AppendError::Closed),
        Err(_) => Err(AppendError::Unreachable),
    };
    for barrier in barriers {
        let _ = barrier.answer.send(answer.clone());
    }
}
