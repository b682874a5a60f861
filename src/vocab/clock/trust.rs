//! Whether the system clock can be trusted, and the time to use while it cannot.
//!
//! A board without a battery starts in 1970, and a faulty time server may set a clock years into
//! the future. Times are stored and compared later, so one wrong reading does harm until the true
//! time reaches it. The rules are in `data/docs/durability.md`, *Clock*. All values are
//! milliseconds, of Unix time or of the monotonic clock.

use std::collections::BTreeMap;

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// 2026-11-01, before the first release: no server runs earlier. The date is a constant so that
/// builds are reproducible; raise it with a release.
pub const BUILT: i64 = 1_793_491_200 * SECOND;

/// Accepted lead of the clock over the newest record, since the server may have been off, or an old
/// backup may have been restored.
const AHEAD_MAX: i64 = 31 * DAY;
/// Accepted step back of the clock.
const BEHIND_MAX: i64 = 2 * DAY;
/// Time after which a clock that is further ahead is trusted. This time is long, since work done
/// too early cannot be undone.
const AHEAD_SETTLES: i64 = 10 * MINUTE;
/// Time after which a clock that is further behind is trusted.
const BEHIND_SETTLES: i64 = 10 * SECOND;
/// Deviation from the expected time up to which readings count as continuous.
const STEADY: i64 = HOUR;
/// Difference up to which the clocks of two nodes agree.
const NODES_DIFFER_MAX: i64 = HOUR;
/// Time for which the clock reading of another node counts.
const VOTE_MAX: i64 = 10 * SECOND;

/// Time to wait for the votes of other nodes. Nodes send their time once a second.
const VOTES_WAIT: i64 = 3 * SECOND;

/// Whether this process trusts the system clock.
#[derive(Debug, Default)]
pub struct Trust {
    /// The trusted time, as an offset to the monotonic clock. `None` before anything is known.
    believed: Option<i64>,
    /// Whether the system clock shows the trusted time.
    trusted: bool,
    /// When stored days that lie ahead may be corrected, if the system clock was behind the records
    /// at the start.
    corrects_at: i64,
    /// Earliest time at which days may be stored; the peers have sent their time by then.
    stores_at: i64,
    /// The time of the newest list; a correct system clock is not earlier.
    seen: Option<i64>,
    /// Offset of a deviating system clock, and since when it deviates.
    settling: Option<(i64, i64)>,
    /// Offsets of the clocks of other nodes, and when they were received.
    votes: BTreeMap<String, (i64, i64)>,
}

/// A change of [`Trust::is_trusted`], to be logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustChange {
    Trusted,
    Distrusted,
}

impl Trust {
    /// Notes the time of a list, before the start.
    pub fn saw(&mut self, time: i64) {
        self.seen = self.seen.max(Some(time).filter(|it| *it >= BUILT));
    }

    /// Starts from the time of the newest record or list. Without one, any time after the build is
    /// trusted.
    pub fn start(&mut self, newest: Option<i64>, wall: i64, mono: i64) {
        // Older versions may have recorded the time of an unset clock.
        let newest = newest.filter(|it| *it >= BUILT).max(self.seen);
        if self.trusted || (newest.is_none() && self.believed.is_some()) {
            return;
        }
        let known = newest.unwrap_or(wall);
        if wall < BUILT || wall - known > AHEAD_MAX {
            self.believed = Some(known.max(BUILT) - mono);
            return;
        }
        self.accept(wall - mono);
        if known - wall > BEHIND_MAX {
            self.corrects_at = mono + BEHIND_SETTLES;
        }
    }

    /// Notes the time of another node whose clock is trusted.
    pub fn hear(&mut self, node: &str, time: i64, mono: i64) {
        self.votes.insert(node.to_owned(), (time - mono, mono));
    }

    pub fn is_trusted(&self) -> bool {
        self.trusted
    }

    /// Keeps a node of a cluster from storing a day before its peers can have sent their time.
    pub fn await_votes(&mut self, mono: i64) {
        self.stores_at = mono + VOTES_WAIT;
    }

    /// Returns true if the day may be stored.
    pub fn stores(&self, mono: i64) -> bool {
        self.trusted && mono >= self.stores_at
    }

    /// Returns true if stored days that are far ahead came from a wrong clock.
    pub fn corrects(&self, mono: i64) -> bool {
        self.stores(mono) && mono >= self.corrects_at
    }

    /// Returns the time to use when the system clock shows `wall`.
    pub fn read(&mut self, wall: i64, mono: i64) -> (i64, Option<TrustChange>) {
        let (before, offset) = (self.trusted, wall - mono);
        self.votes.retain(|_, (_, at)| mono - *at <= VOTE_MAX);
        let differs = |vote: &i64| (*vote - offset).abs() > NODES_DIFFER_MAX;
        let mut others: Vec<i64> = self.votes.values().map(|(vote, _)| *vote).collect();
        others.sort_unstable();
        let differ: Vec<i64> = others.iter().copied().filter(differs).collect();
        let agree = others.len() - differ.len() + 1;
        // If two clocks differ, the earlier one does less harm.
        let is_outvoted =
            differ.len() > agree || differ.len() == agree && differ[differ.len() / 2] < offset;
        let is_wrong = wall < BUILT;
        if is_wrong || is_outvoted {
            self.believed = differ.get(differ.len() / 2).copied().or(self.believed);
            self.distrust(None);
        } else if agree > 1 && agree > differ.len() {
            self.stores_at = mono.min(self.stores_at);
            self.accept(offset);
        } else if let Some(believed) = self.believed {
            self.compare(offset, believed, mono);
        }
        let turn = match (before, self.trusted) {
            (true, false) => Some(TrustChange::Distrusted),
            (false, true) => Some(TrustChange::Trusted),
            _ => None,
        };
        let is_used = wall >= BUILT && (self.trusted || self.believed.is_none());
        (
            if is_used {
                wall
            } else {
                self.believed.map_or(self.seen.unwrap_or(BUILT), |it| it + mono)
            },
            turn,
        )
    }

    fn compare(&mut self, offset: i64, believed: i64, mono: i64) {
        if (-BEHIND_MAX..=AHEAD_MAX).contains(&(offset - believed)) {
            return self.accept(offset);
        }
        let begun = self.settling.filter(|(seen, _)| (seen - offset).abs() <= STEADY);
        let (seen, since) = begun.unwrap_or((offset, mono));
        let settles = if offset > believed { AHEAD_SETTLES } else { BEHIND_SETTLES };
        if mono - since >= settles {
            return self.accept(offset);
        }
        self.distrust(Some((seen, since)));
    }

    fn accept(&mut self, offset: i64) {
        (self.believed, self.trusted, self.settling) = (Some(offset), true, None);
    }

    fn distrust(&mut self, settling: Option<(i64, i64)>) {
        (self.trusted, self.settling) = (false, settling);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-21.
    const NOW: i64 = BUILT + 20 * DAY;

    fn started(newest: Option<i64>, wall: i64) -> Trust {
        let mut trust = Trust::default();
        trust.start(newest, wall, 0);
        trust
    }

    /// Reads the time and the trust at each of these monotonic times, with a clock that is `ahead`.
    fn reads(trust: &mut Trust, ahead: i64, at: &[i64]) -> Vec<(i64, bool)> {
        let read = |mono: &i64| {
            let (now, _) = trust.read(NOW + ahead + mono, *mono);
            (now - NOW - mono, trust.is_trusted())
        };
        at.iter().map(read).collect()
    }

    #[test]
    fn a_clock_before_the_build_is_never_trusted() {
        for wall in [-DAY, 0, DAY, BUILT - 1] {
            let mut trust = started(Some(NOW), wall);
            for mono in [0, MINUTE, HOUR, DAY] {
                let (now, _) = trust.read(wall + mono.min(BUILT - 1 - wall), mono);
                assert_eq!((now, trust.is_trusted()), (NOW + mono, false), "{wall}");
            }
            // A time server has set the clock.
            assert_eq!(
                trust.read(NOW + 3 * DAY, 2 * DAY),
                (NOW + 3 * DAY, Some(TrustChange::Trusted))
            );
        }
        let mut trust = started(None, 0);
        assert_eq!(trust.read(5, 5), (BUILT + 5, None), "no record says better");
    }

    #[test]
    fn a_clock_far_ahead_of_the_records_is_trusted_if_it_stays() {
        for ahead in [32 * DAY, 400 * DAY, 50_000 * DAY] {
            let mut trust = started(Some(NOW), NOW + ahead);
            let mut at = vec![0, 4 * SECOND, AHEAD_SETTLES - 1];
            assert_eq!(reads(&mut trust, ahead, &at), [(0, false); 3], "{ahead}");
            at = vec![AHEAD_SETTLES, AHEAD_SETTLES + 1];
            assert_eq!(reads(&mut trust, ahead, &at), [(ahead, true); 2]);
            // The earlier reading was wrong, so the clock is trusted again after it steps back.
            let at = [HOUR, HOUR + BEHIND_SETTLES - 1, HOUR + BEHIND_SETTLES];
            assert_eq!(reads(&mut trust, 0, &at), [(ahead, false), (ahead, false), (0, true)]);
        }
        let mut trust = started(Some(NOW), NOW + 20 * DAY);
        assert_eq!(
            reads(&mut trust, 20 * DAY, &[0]),
            [(20 * DAY, true)],
            "it was off for three weeks"
        );
    }

    #[test]
    fn a_running_server_ignores_a_jump() {
        let mut trust = started(None, NOW);
        assert_eq!(reads(&mut trust, 0, &[0, HOUR]), [(0, true); 2]);
        assert_eq!(reads(&mut trust, 400 * DAY, &[HOUR, HOUR + 4 * SECOND]), [(0, false); 2]);
        assert_eq!(reads(&mut trust, 0, &[2 * HOUR]), [(0, true)]);
        assert_eq!(reads(&mut trust, -15 * DAY, &[2 * HOUR]), [(0, false)]);
        assert_eq!(
            reads(&mut trust, -DAY, &[2 * HOUR]),
            [(-DAY, true)],
            "a step of a day is believed"
        );
        // A clock that keeps jumping is never trusted.
        let jumps = (1..100).map(|it| it * MINUTE);
        for at in jumps {
            assert_eq!(reads(&mut trust, 100 * DAY + 100 * at, &[2 * HOUR + at]), [(-DAY, false)]);
        }
    }

    #[test]
    fn records_with_future_times_are_ignored() {
        for ahead in [3 * DAY, 400 * DAY] {
            let mut trust = started(Some(NOW + ahead), NOW);
            // The system clock is used at once, so the day of a record is never mistaken for today.
            let at = [0, BEHIND_SETTLES - 1, BEHIND_SETTLES];
            let corrects = at.map(|mono| {
                assert_eq!(reads(&mut trust, 0, &[mono]), [(0, true)]);
                trust.corrects(mono)
            });
            assert_eq!(corrects, [false, false, true]);
            // No other time is trusted.
            assert_eq!(reads(&mut trust, ahead + 100 * DAY, &[MINUTE]), [(0, false)]);
        }
        assert!(started(Some(NOW + DAY), NOW).corrects(0) && started(None, NOW).corrects(0));
        // An older version may have recorded the time of an unset clock.
        assert!(started(Some(5), NOW).corrects(0));
    }

    #[test]
    fn nodes_outvote_a_clock() {
        let mut trust = started(None, NOW);
        let two = |trust: &mut Trust, ahead: i64, mono: i64| {
            trust.hear("one", NOW + ahead + mono, mono);
            trust.hear("two", NOW + ahead + mono + MINUTE, mono);
        };
        two(&mut trust, -400 * DAY, 0);
        two(&mut trust, -DAY, 0);
        let (now, turn) = trust.read(NOW, 0);
        assert_eq!((now - NOW, turn), (MINUTE - DAY, Some(TrustChange::Distrusted)));
        // The votes count as long as the nodes send them, and through short silences.
        two(&mut trust, -DAY, HOUR);
        assert_eq!(reads(&mut trust, 0, &[HOUR]), [(MINUTE - DAY, false)]);
        two(&mut trust, MINUTE, 2 * HOUR);
        assert_eq!(reads(&mut trust, 0, &[2 * HOUR]), [(0, true)], "they agree");
        // Of two clocks, the earlier one is trusted.
        for (other, is_trusted) in [(-DAY, false), (DAY, true)] {
            let mut trust = started(None, NOW);
            trust.hear("one", NOW + other, 0);
            let _ = trust.read(NOW, 0);
            assert_eq!(trust.is_trusted(), is_trusted, "{other}");
        }
        // Nodes that agree need not wait.
        let mut trust = started(Some(NOW - 400 * DAY), NOW);
        trust.hear("one", NOW, 0);
        assert_eq!(reads(&mut trust, 0, &[0]), [(0, true)]);
    }

    #[test]
    fn a_starting_node_stores_no_day_before_its_peers_sent_their_time() {
        let mut trust = started(None, NOW);
        trust.await_votes(0);
        let _ = trust.read(NOW + SECOND, SECOND);
        assert!(trust.is_trusted() && !trust.stores(SECOND) && trust.stores(VOTES_WAIT));
        trust.hear("one", NOW + SECOND, SECOND);
        let _ = trust.read(NOW + SECOND, SECOND);
        assert!(trust.stores(SECOND), "they agree");
    }

    #[test]
    fn without_records_a_node_of_a_cluster_waits_for_the_log() {
        let mut trust = Trust::default();
        assert_eq!(reads(&mut trust, 400 * DAY, &[0]), [(400 * DAY, false)]);
        trust.start(Some(NOW), NOW + 400 * DAY, SECOND);
        assert_eq!(reads(&mut trust, 400 * DAY, &[SECOND]), [(-SECOND, false)]);
    }
}
