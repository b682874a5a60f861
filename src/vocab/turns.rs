//! Schedules costly work in turns, so that no account waits for another's work.
//!
//! Work runs in a few slots. Each party (an account, or all visitors together) has a queue. A free
//! slot goes to the queue whose party has used the least time: start-time fair queueing by time,
//! not by requests. A party that was idle joins at the current virtual time, so idleness earns no
//! credit, and it starts at once in an additional slot. Running work checks every few thousand
//! steps whether to give way ([`Turn::give_way`]): at the end of a slice it gives way if another
//! party has used less time.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::ids::AccountId;

/// Length of a slice: afterwards, work gives way to a party that has used less time.
pub const SLICE: Duration = Duration::from_millis(5);

/// One of the parties that share the slots equally.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Party {
    Account(AccountId),
    /// All requests without a valid key or session.
    Visitors,
}

/// Bounds of a scheduler.
#[derive(Clone, Copy, Debug)]
pub struct TurnLimits {
    /// Number of concurrent turns. The same number of additional turns serves the first slices of
    /// parties that were idle.
    pub slots: usize,
    /// Maximum pieces of work that may wait per party.
    pub waiting_per_party: usize,
    /// Maximum pieces of work that may wait over all parties.
    pub waiting: usize,
    /// Maximum paused pieces of work, each on its own thread.
    pub paused: usize,
    /// Maximum wait for a turn.
    pub wait: Duration,
}

/// Reason why work gets no turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTurn {
    /// The work would wait too long, or too much work is already waiting.
    #[error("the work would have to wait for {expected:?}")]
    Refused { expected: Duration },
    #[error("no turn came within {waited:?}")]
    TimedOut { waited: Duration },
}

/// The scheduler.
#[derive(Debug)]
pub struct Turns {
    schedule: Mutex<FairQueue<Wake>>,
    /// Whether running work may have to give way. Read without the lock.
    is_contended: AtomicBool,
    wait_max: Duration,
}

/// Ends the wait of one piece of work.
type Wake = oneshot::Sender<Result<Turn, NoTurn>>;

impl Turns {
    pub fn new(limits: TurnLimits) -> Arc<Turns> {
        Arc::new(Turns {
            schedule: Mutex::new(FairQueue::new(limits)),
            is_contended: AtomicBool::new(false),
            wait_max: limits.wait,
        })
    }

    /// Waits for a turn of the party. Dropping the future gives up the place in the queue.
    ///
    /// # Errors
    /// The queue is too long or too slow.
    pub async fn take(self: &Arc<Self>, party: Party) -> Result<Turn, NoTurn> {
        let (wake, woken) = oneshot::channel();
        let ticket = match self.with(|schedule| schedule.ask(party, wake))? {
            QueueReply::Begins => return Ok(Turn::new(self, party)),
            QueueReply::Waits(ticket) => ticket,
        };
        let mut waiting = WaitingTurn { turns: self, party, ticket, woken };
        let began = Instant::now();
        match timeout(self.wait_max, &mut waiting.woken).await {
            Ok(Ok(turn)) => turn,
            // The sender is dropped only with the scheduler.
            Ok(Err(_)) | Err(_) => Err(NoTurn::TimedOut { waited: began.elapsed() }),
        }
    }

    /// Changes the schedule, then wakes the waiters whose turn it is.
    fn with<T>(self: &Arc<Self>, change: impl FnOnce(&mut FairQueue<Wake>) -> T) -> T {
        let mut schedule = self.lock();
        let changed = change(&mut schedule);
        let mut woken = Vec::new();
        while let Some((party, wake)) = schedule.next() {
            woken.push((wake, Ok(Turn::new(self, party))));
        }
        woken.extend(schedule.evicted.drain(..).map(|(wake, no_turn)| (wake, Err(no_turn))));
        self.is_contended.store(schedule.is_contended(), Ordering::Relaxed);
        // A turn without a receiver ends on drop, which takes the lock.
        drop(schedule);
        woken.into_iter().for_each(|(wake, turn)| drop(wake.send(turn)));
        changed
    }

    fn lock(&self) -> MutexGuard<'_, FairQueue<Wake>> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the queue, given up on drop.
struct WaitingTurn<'a> {
    turns: &'a Arc<Turns>,
    party: Party,
    ticket: u64,
    woken: oneshot::Receiver<Result<Turn, NoTurn>>,
}

impl Drop for WaitingTurn<'_> {
    fn drop(&mut self) {
        self.turns.with(|schedule| schedule.withdraw(self.party, self.ticket));
    }
}

/// The right to use a slot, given up on drop.
#[derive(Debug)]
pub struct Turn {
    turns: Arc<Turns>,
    party: Party,
    /// Start of the slice; `None` while the work is paused.
    since: Option<Instant>,
    /// Time used on other threads in this slice.
    elsewhere: Duration,
    /// Time used in earlier slices.
    before: Duration,
}

impl Turn {
    fn new(turns: &Arc<Turns>, party: Party) -> Turn {
        let (since, zero) = (Some(Instant::now()), Duration::ZERO);
        Turn { turns: Arc::clone(turns), party, since, elsewhere: zero, before: zero }
    }

    /// Counts time that the work used on other threads.
    pub fn charge(&mut self, elsewhere: Duration) {
        self.elsewhere += elsewhere;
    }

    /// Blocks the thread while other parties come first. Returns the duration if it blocked.
    pub fn give_way(&mut self, now: Instant) -> Option<Duration> {
        let used = now.duration_since(self.since?) + self.elsewhere;
        if used < SLICE || !self.turns.is_contended.load(Ordering::Relaxed) {
            return None;
        }
        let (wake, woken) = oneshot::channel();
        let is_paused = self.turns.with(|schedule| schedule.pause(self.party, used, wake));
        if !is_paused {
            return None;
        }
        self.since = None;
        self.before += used;
        self.elsewhere = Duration::ZERO;
        // Running work is neither refused nor evicted.
        if let Ok(Ok(mut turn)) = woken.blocking_recv() {
            self.since = turn.since.take();
        }
        Some(now.elapsed())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(since) = self.since {
            let used = since.elapsed() + self.elsewhere;
            let total = self.before + used;
            self.turns.with(|schedule| schedule.end(self.party, used, total));
        }
    }
}

/// The state of running and waiting work, which decides what runs next. The schedule uses neither
/// clock nor threads: times are arguments, and `W` wakes a waiter.
#[derive(Debug)]
struct FairQueue<W> {
    limits: TurnLimits,
    /// Queues of the parties that have work, or that have used more than the virtual time while
    /// others waited.
    lines: HashMap<Party, PartyQueue<W>>,
    running: usize,
    waiting: usize,
    paused: usize,
    /// Virtual time of the turn that began last.
    now: Duration,
    last_ticket: u64,
    /// Waiters that lost their place to a party with less waiting work.
    evicted: Vec<(W, NoTurn)>,
}

/// The work of a party.
#[derive(Debug)]
struct PartyQueue<W> {
    /// Time used, on the virtual clock.
    used: Duration,
    running: usize,
    /// Paused work. Paused work comes before waiting work, so a party never has more paused pieces
    /// than the number of slots.
    paused: VecDeque<Place<W>>,
    waiting: VecDeque<Place<W>>,
    /// Moving average of the time that a piece of work uses.
    average: Duration,
}

#[derive(Debug)]
struct Place<W> {
    ticket: u64,
    wake: W,
}

/// Outcome of [`FairQueue::ask`].
#[derive(Debug, PartialEq, Eq)]
enum QueueReply {
    Begins,
    Waits(u64),
}

impl<W> PartyQueue<W> {
    fn new(used: Duration) -> PartyQueue<W> {
        let (paused, waiting) = (VecDeque::new(), VecDeque::new());
        PartyQueue { used, running: 0, paused, waiting, average: Duration::ZERO }
    }

    /// Returns the next place in this queue.
    fn first(&self) -> Option<&Place<W>> {
        self.paused.front().or_else(|| self.waiting.front())
    }

    fn is_idle(&self) -> bool {
        self.running == 0 && self.first().is_none()
    }
}

impl<W> FairQueue<W> {
    fn new(limits: TurnLimits) -> FairQueue<W> {
        FairQueue {
            limits,
            lines: HashMap::new(),
            running: 0,
            waiting: 0,
            paused: 0,
            now: Duration::ZERO,
            last_ticket: 0,
            evicted: Vec::new(),
        }
    }

    /// Begins work, or puts it into the queue of its party.
    fn ask(&mut self, party: Party, wake: W) -> Result<QueueReply, NoTurn> {
        let TurnLimits { slots, waiting_per_party, waiting, wait, .. } = self.limits;
        let now = self.now;
        let line = self.lines.entry(party).or_insert_with(|| PartyQueue::new(now));
        if line.is_idle() {
            line.used = line.used.max(now);
        }
        // The party has no debt, so its first slice would come next anyway.
        let is_new = line.is_idle() && line.used == now;
        if self.running < slots || is_new && self.running < 2 * slots {
            self.begin(party);
            return Ok(QueueReply::Begins);
        }
        let ahead = line.waiting.len();
        let expected = self.expected_wait(party);
        if ahead >= waiting_per_party || expected > wait {
            return Err(NoTurn::Refused { expected });
        }
        if self.waiting >= waiting && !self.evict_longer_than(ahead + 1) {
            self.forget_idle();
            return Err(NoTurn::Refused { expected });
        }
        self.waiting += 1;
        let place = self.place(wake);
        let ticket = place.ticket;
        self.line(party).waiting.push_back(place);
        Ok(QueueReply::Waits(ticket))
    }

    /// Returns the time until new work of the party begins: the party's earlier work runs first,
    /// one piece after the other, in its share of the slots.
    fn expected_wait(&self, party: Party) -> Duration {
        let busy = self.lines.values().filter(|line| !line.is_idle()).count().max(1) as u32;
        let Some(line) = self.lines.get(&party) else { return Duration::ZERO };
        let before = line.average * (line.waiting.len() + line.paused.len() + 1) as u32;
        before * busy / self.limits.slots as u32
    }

    /// Removes the newest work of the longest queue, if that is longer than `length`.
    fn evict_longer_than(&mut self, length: usize) -> bool {
        let longest = self.lines.iter().max_by_key(|(_, line)| line.waiting.len());
        let Some((&party, line)) = longest else { return false };
        if line.waiting.len() <= length {
            return false;
        }
        let expected = self.expected_wait(party);
        let newest = self.line(party).waiting.pop_back();
        self.waiting -= 1;
        self.evicted.extend(newest.map(|place| (place.wake, NoTurn::Refused { expected })));
        true
    }

    /// Removes work that waits to begin; no effect if it no longer waits.
    fn withdraw(&mut self, party: Party, ticket: u64) {
        let Some(line) = self.lines.get_mut(&party) else { return };
        let before = line.waiting.len();
        line.waiting.retain(|place| place.ticket != ticket);
        self.waiting -= before - line.waiting.len();
        self.forget_idle();
    }

    /// Begins the next work if a slot is free.
    fn next(&mut self) -> Option<(Party, W)> {
        if self.running >= self.limits.slots {
            return None;
        }
        let first = |line: &PartyQueue<W>| line.first().map(|place| (line.used, place.ticket));
        let waiting = self.lines.iter().filter_map(|(&party, line)| Some((first(line)?, party)));
        let (_, party) = waiting.min_by_key(|&(first, _)| first)?;
        let line = self.line(party);
        let place = match line.paused.pop_front() {
            Some(place) => {
                self.paused -= 1;
                place
            }
            None => {
                let place = line.waiting.pop_front()?;
                self.waiting -= 1;
                place
            }
        };
        self.begin(party);
        Some((party, place.wake))
    }

    /// Pauses running work that has used `used` since it started or resumed, if another party comes first.
    fn pause(&mut self, party: Party, used: Duration, wake: W) -> bool {
        let is_over = self.running > self.limits.slots;
        let mine = self.line(party).used + used;
        let comes_first = |(&other, line): (&Party, &PartyQueue<W>)| {
            let wants = line.first().is_some() || is_over && line.running > 0;
            other != party && wants && line.used < mine
        };
        if self.paused >= self.limits.paused || !self.lines.iter().any(comes_first) {
            return false;
        }
        let place = self.place(wake);
        let line = self.line(party);
        line.used = mine;
        line.running -= 1;
        line.paused.push_back(place);
        self.running -= 1;
        self.paused += 1;
        true
    }

    /// Ends running work that used `used` since it started or resumed, and `total` overall.
    fn end(&mut self, party: Party, used: Duration, total: Duration) {
        let line = self.line(party);
        line.used += used;
        line.running -= 1;
        line.average = if line.average.is_zero() { total } else { (line.average * 7 + total) / 8 };
        self.running -= 1;
        self.forget_idle();
    }

    /// Returns true if work is waiting, or if more pieces are running than there are slots.
    fn is_contended(&self) -> bool {
        self.waiting + self.paused > 0 || self.running > self.limits.slots
    }

    fn begin(&mut self, party: Party) {
        let line = self.line(party);
        line.running += 1;
        let used = line.used;
        self.running += 1;
        self.now = self.now.max(used);
    }

    fn line(&mut self, party: Party) -> &mut PartyQueue<W> {
        let now = self.now;
        self.lines.entry(party).or_insert_with(|| PartyQueue::new(now))
    }

    fn place(&mut self, wake: W) -> Place<W> {
        self.last_ticket += 1;
        Place { ticket: self.last_ticket, wake }
    }

    /// Removes parties without work that would join at the current virtual time anyway. While a
    /// slot is free, no work is waiting, so all parties are equal and virtual time restarts at
    /// zero.
    fn forget_idle(&mut self) {
        let is_free = self.waiting + self.paused == 0 && self.running < self.limits.slots;
        if is_free {
            self.now = Duration::ZERO;
            self.lines.values_mut().for_each(|line| line.used = Duration::ZERO);
        }
        let now = self.now;
        self.lines.retain(|_, line| !line.is_idle() || line.used > now);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const LIMITS: TurnLimits = TurnLimits {
        slots: 2,
        waiting_per_party: 100,
        waiting: 1_000,
        paused: 16,
        wait: Duration::from_secs(3_600),
    };
    const MS: Duration = Duration::from_millis(1);
    const VISITORS: Party = Party::Visitors;

    fn account(number: u64) -> Party {
        Party::Account(AccountId(number))
    }

    /// A piece of work in a simulation.
    #[derive(Debug)]
    struct Work {
        party: Party,
        needs: Duration,
        asked: Duration,
        /// Time used in total, and in this slice.
        used: (Duration, Duration),
        ended: Option<Duration>,
    }

    /// A machine with a core for each turn. The clock of the simulation advances one millisecond at
    /// a time.
    struct Simulation {
        schedule: FairQueue<usize>,
        works: Vec<Work>,
        running: Vec<usize>,
        now: Duration,
    }

    impl Simulation {
        fn new(limits: TurnLimits) -> Simulation {
            let (works, running) = (Vec::new(), Vec::new());
            Simulation { schedule: FairQueue::new(limits), works, running, now: Duration::ZERO }
        }

        fn ask(&mut self, party: Party, needs: Duration) -> usize {
            let id = self.works.len();
            let (asked, used) = (self.now, (Duration::ZERO, Duration::ZERO));
            self.works.push(Work { party, needs, asked, used, ended: None });
            if self.schedule.ask(party, id).expect("room") == QueueReply::Begins {
                self.running.push(id);
            }
            id
        }

        fn tick(&mut self) {
            self.now += MS;
            for id in std::mem::take(&mut self.running) {
                let work = &mut self.works[id];
                work.used = (work.used.0 + MS, work.used.1 + MS);
                let (total, used) = work.used;
                if total >= work.needs {
                    work.ended = Some(self.now);
                    self.schedule.end(work.party, used, total);
                } else if used >= SLICE && self.schedule.pause(work.party, used, id) {
                    work.used.1 = Duration::ZERO;
                } else {
                    self.running.push(id);
                }
                while let Some((_, next)) = self.schedule.next() {
                    self.running.push(next);
                }
                assert!(self.running.len() <= 2 * self.schedule.limits.slots);
                assert!(self.schedule.paused <= self.schedule.limits.paused);
            }
        }

        /// Returns the time from the request for a piece of work to its end.
        fn latency(&mut self, id: usize) -> Duration {
            while self.works[id].ended.is_none() {
                self.tick();
            }
            self.works[id].ended.expect("ended") - self.works[id].asked
        }

        fn used(&self, party: Party) -> Duration {
            let mine = self.works.iter().filter(|work| work.party == party);
            mine.map(|work| work.used.0).sum()
        }
    }

    #[test]
    fn a_neighbour_of_a_flood_waits_no_longer_than_the_running_slices() {
        for flooder in [account(1), VISITORS] {
            let mut machine = Simulation::new(LIMITS);
            for _ in 0..90 {
                machine.ask(flooder, 250 * MS);
            }
            for needs in [1, 3, 20, 40, 172, 3, 40].map(|ms| ms * MS) {
                (0..37).for_each(|_| machine.tick());
                let id = machine.ask(account(2), needs);
                let took = machine.latency(id);
                assert!(took <= needs + 2 * SLICE, "{needs:?} took {took:?}");
            }
        }
    }

    #[test]
    fn accounts_share_the_time_equally_under_any_load() {
        let mut machine = Simulation::new(LIMITS);
        // One account sends many long pieces of work, one many short ones, and one a few.
        (0..60).for_each(|_| _ = machine.ask(account(1), 250 * MS));
        (0..90).for_each(|_| _ = machine.ask(account(2), 20 * MS));
        (0..3).for_each(|_| _ = machine.ask(account(3), 400 * MS));
        (0..900).for_each(|_| machine.tick());
        let used = [1, 2, 3].map(|number| machine.used(account(number)).as_millis());
        assert!(used.iter().all(|used| (550..=650).contains(used)), "{used:?} of 1,800");
    }

    #[test]
    fn visitors_are_one_party() {
        let mut machine = Simulation::new(LIMITS);
        (0..50).for_each(|_| _ = machine.ask(VISITORS, 100 * MS));
        (0..5).for_each(|_| _ = machine.ask(account(1), 100 * MS));
        (0..200).for_each(|_| machine.tick());
        let [visitors, one] = [VISITORS, account(1)].map(|party| machine.used(party).as_millis());
        assert!(visitors.abs_diff(one) <= 40, "{visitors} and {one}");
    }

    #[test]
    fn an_idle_account_earns_no_credit_and_a_busy_one_does_not_starve() {
        let mut machine = Simulation::new(LIMITS);
        let first = machine.ask(account(2), MS);
        (0..40).for_each(|_| _ = machine.ask(account(1), 100 * MS));
        assert!(machine.latency(first) <= MS + 2 * SLICE);
        (0..500).for_each(|_| machine.tick());
        // The account was idle for half a second, and now sends a flood.
        (0..40).for_each(|_| _ = machine.ask(account(2), 100 * MS));
        let before = [1, 2].map(|number| machine.used(account(number)));
        (0..200).for_each(|_| machine.tick());
        for (number, before) in [1, 2].into_iter().zip(before) {
            let used = machine.used(account(number)) - before;
            assert!((170..=230).contains(&used.as_millis()), "{number} used {used:?} of 400 ms");
        }
    }

    #[test]
    fn work_of_an_account_begins_in_order() {
        let mut machine = Simulation::new(LIMITS);
        let ids: Vec<_> = (0..20).map(|_| machine.ask(account(1), 10 * MS)).collect();
        let ended: Vec<_> = ids.into_iter().map(|id| machine.latency(id)).collect();
        assert!(ended.is_sorted(), "{ended:?}");
        // No other party has work, so nothing is paused.
        assert_eq!(ended.last(), Some(&(100 * MS)));
    }

    #[test]
    fn idle_accounts_are_removed() {
        let mut machine = Simulation::new(LIMITS);
        for number in 0..1_000 {
            let id = machine.ask(account(number), 7 * MS);
            machine.latency(id);
        }
        let endless = machine.ask(VISITORS, 1_000_000 * MS);
        for number in 0..1_000 {
            let id = machine.ask(account(number), 7 * MS);
            machine.latency(id);
        }
        assert!(machine.works[endless].ended.is_none());
        assert!(machine.schedule.lines.len() < 20, "{}", machine.schedule.lines.len());
    }

    /// Returns the refusal of work that would queue behind `waiting` other pieces of its account,
    /// each of which uses `average`.
    fn refusal(limits: TurnLimits, waiting: usize, average: Duration) -> Option<NoTurn> {
        let mut schedule = FairQueue::new(limits);
        let before = limits.slots + waiting;
        (0..before).for_each(|id| _ = schedule.ask(account(1), id).expect("room"));
        schedule.line(account(1)).average = average;
        schedule.ask(account(1), before).err()
    }

    #[test]
    fn work_that_would_wait_too_long_is_refused_before_it_waits() {
        let limits = TurnLimits { wait: 10_000 * MS, ..LIMITS };
        assert_eq!(refusal(limits, 79, 250 * MS), None);
        let refused = NoTurn::Refused { expected: 10_125 * MS };
        assert_eq!(refusal(limits, 80, 250 * MS), Some(refused));
        let limits = TurnLimits { waiting_per_party: 10, ..LIMITS };
        assert_eq!(refusal(limits, 9, 200 * MS), None);
        let refused = NoTurn::Refused { expected: 1_100 * MS };
        assert_eq!(refusal(limits, 10, 200 * MS), Some(refused));
    }

    #[test]
    fn a_full_line_makes_room_for_an_account_with_less() {
        let limits = TurnLimits { waiting: 8, ..LIMITS };
        let mut schedule = FairQueue::new(limits);
        (0..10).for_each(|id| _ = schedule.ask(account(1), id).expect("room"));
        assert!(schedule.ask(account(1), 10).is_err(), "it has all of it");
        // Two pieces begin in the additional slots.
        for id in 20..22 {
            assert_eq!(schedule.ask(account(id), id as usize), Ok(QueueReply::Begins));
        }
        for id in 22..29 {
            assert!(matches!(schedule.ask(account(id), id as usize), Ok(QueueReply::Waits(_))));
        }
        let evicted: Vec<_> = schedule.evicted.drain(..).map(|(id, _)| id).collect();
        assert_eq!(evicted, [9, 8, 7, 6, 5, 4, 3], "the newest of the longest line");
        assert_eq!(schedule.waiting, 8);
        assert!(schedule.ask(account(30), 30).is_err(), "all wait with one");
    }

    #[tokio::test]
    async fn a_dropped_wait_frees_its_place() {
        let turns = Turns::new(TurnLimits { slots: 1, waiting: 1, ..LIMITS });
        let held = turns.take(account(1)).await.expect("a slot");
        {
            let mut waiting = std::pin::pin!(turns.take(account(1)));
            assert!(waiting.as_mut().now_or_never().is_none());
            let refused = turns.take(account(1)).await.err();
            assert!(matches!(refused, Some(NoTurn::Refused { .. })), "{refused:?}");
        }
        let mut waiting = std::pin::pin!(turns.take(account(1)));
        assert!(waiting.as_mut().now_or_never().is_none(), "there is room again");
        drop(held);
        let turn = waiting.now_or_never().expect("a turn").expect("a turn");
        // An unused turn goes to the next in the queue.
        {
            let mut waiting = std::pin::pin!(turns.take(account(1)));
            assert!(waiting.as_mut().now_or_never().is_none());
            drop(turn);
        }
        assert!(turns.take(account(1)).now_or_never().expect("a slot").is_ok());
        assert_eq!(turns.lock().lines.len(), 0);
    }

    #[tokio::test]
    async fn a_wait_times_out() {
        let turns = Turns::new(TurnLimits { slots: 1, wait: MS, ..LIMITS });
        let _held = turns.take(VISITORS).await.expect("a slot");
        let told = turns.take(VISITORS).await.err();
        assert!(matches!(told, Some(NoTurn::TimedOut { waited }) if waited >= MS), "{told:?}");
        assert_eq!(turns.lock().waiting, 0);
    }

    #[test]
    fn running_work_gives_way_and_resumes() {
        let turns = Turns::new(TurnLimits { slots: 1, ..LIMITS });
        let take = |party| turns.take(party).now_or_never().expect("at once").expect("a turn");
        let mut long = take(account(1));
        assert_eq!(long.give_way(Instant::now() + 2 * SLICE), None, "no other party has work");
        let other = take(account(2));
        let gives_way = std::thread::spawn(move || {
            let waited = long.give_way(Instant::now() + 2 * SLICE);
            (waited, long)
        });
        while turns.lock().paused == 0 {
            assert!(!gives_way.is_finished());
            std::thread::yield_now();
        }
        drop(other);
        let (waited, long) = gives_way.join().expect("no panic");
        assert!(waited.is_some());
        assert_eq!(turns.lock().running, 1);
        drop(long);
        let schedule = turns.lock();
        assert_eq!((schedule.running, schedule.lines.len()), (0, 0));
    }
}
