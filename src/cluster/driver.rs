//! Runs a [`Sequencer`]: hands it the events of the stream and of the handle, and does what it asks for.

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

/// What a sequencer talks to.
pub(super) struct Driver<S, R: Replica> {
    pub(super) stream: Arc<S>,
    pub(super) replica: Arc<R>,
    pub(super) commands: mpsc::Receiver<Command<R::Transaction>>,
    pub(super) copies: mpsc::Sender<Copy<R::Transaction>>,
    pub(super) applied: watch::Receiver<SharedPosition>,
    pub(super) condition: Arc<watch::Sender<Condition>>,
    pub(super) closed: watch::Receiver<bool>,
}

impl<S: Stream, R: Replica> Driver<S, R> {
    fn now(&self) -> Now {
        Now { at: Instant::now(), unix_ms: self.replica.now_ms() }
    }

    /// Runs until the log is closed or halted.
    pub(super) async fn run(mut self, mut sequencer: Sequencer<R>) {
        let mut is_closing = false;
        let mut records: Option<Records> = None;
        let mut following: Pending<Result<(u64, Records), StreamError>> = None;
        let mut sending: Pending<Published> = None;
        let mut asking: Pending<Result<u64, StreamError>> = None;
        loop {
            let input = tokio::select! {
                biased;
                // Not behind the records, which may come without a pause.
                () = sleep_until(sequencer.deadline().into()) => Input::Time,
                _ = self.closed.wait_for(|closed| *closed), if !is_closing => {
                    is_closing = true;
                    self.commands.close();
                    Input::Close
                }
                record = next_record(&mut records) => match record {
                    Some(Ok(record)) => Input::Record(record),
                    ended => {
                        records = None;
                        Input::Ended(ended.and_then(Result::err))
                    }
                },
                published = response(&mut sending) => Input::Published(published),
                followed = response(&mut following) => {
                    Input::Followed(followed.map(|(last, stream)| { records = Some(stream); last }))
                }
                end = response(&mut asking) => Input::End(end),
                command = self.commands.recv(), if sequencer.has_room() => match command {
                    Some(Command::Append(submission)) => Input::Append(submission),
                    Some(Command::Barrier(answer)) => Input::Barrier(answer),
                    None => Input::CommandsEnded,
                },
            };
            let mut outputs = VecDeque::from(sequencer.on(self.now(), input));
            while let Some(output) = outputs.pop_front() {
                let stream = Arc::clone(&self.stream);
                match output {
                    Output::CaughtUp(newest_ms) => self.replica.caught_up(newest_ms),
                    Output::Condition(condition) => self.publish(condition),
                    Output::Append { last, known, bytes } => {
                        sending =
                            Some(Box::pin(
                                async move { stream.append_after(last, known, bytes).await },
                            ));
                    }
                    Output::Follow { after } => {
                        following = Some(Box::pin(async move { stream.follow_after(after).await }));
                    }
                    Output::Unfollow => records = None,
                    Output::AskEnd => asking = Some(Box::pin(async move { stream.last().await })),
                    Output::Copy(copy) => {
                        if self.copies.send(copy).await.is_err() {
                            outputs.extend(sequencer.on(self.now(), Input::CopierEnded));
                        }
                    }
                    Output::Refuse(done, refusal) => done(Err(refusal)),
                    Output::RefuseBarrier(answer, refusal) => drop(answer.send(Err(refusal))),
                    Output::AnswerBarriers { seq, wait, barriers } => {
                        tokio::spawn(answer_when_applied(
                            self.applied.clone(),
                            seq,
                            wait,
                            barriers,
                        ));
                    }
                    Output::End(refusal) => return self.refuse_commands(&refusal),
                }
            }
        }
    }

    fn publish(&self, condition: Condition) {
        self.condition.send_modify(|it| {
            // The copier halts the log too.
            let halted = it.halted.take().or(condition.halted);
            *it = Condition { halted, ..condition };
        });
    }

    /// Refuses what the sequencer has not received.
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

/// Waits for a record; for ever if none are followed.
async fn next_record(records: &mut Option<Records>) -> Option<Result<StreamRecord, StreamError>> {
    match records {
        Some(records) => records.recv().await,
        None => pending().await,
    }
}

/// Waits for a response; for ever if there is no request.
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
