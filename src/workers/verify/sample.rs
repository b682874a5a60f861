//! The random sample of released names (`data/docs/outcomes.md`): which names are drawn, and the queues of those
//! to ask about. Pure: the time and the key of the draw are arguments.

use std::collections::{BTreeSet, HashMap, VecDeque};

use super::plan::{DropDays, Due, How, Urgency, server_key};
use crate::accounts::{SampleDraw, SampleTarget};
use crate::index::NameFacts;
use crate::index::query::index::Index;
use crate::outbound::settings::Sample;
use crate::vocab::day::Day;
use crate::vocab::ids::AccountId;
use crate::vocab::name::DomainName;
use crate::vocab::rdap::Bootstrap;

/// The sample gets one in this many of the queries that the rate of a server allows.
pub const SHARE: u32 = 20;
/// Queries for a drawn name: one after each horizon, and one more for repeats and controls.
const QUERIES_A_NAME: u64 = 4;
/// Days after a release on which its names are drawn: the lists of the day have arrived, and no name was asked
/// about yet.
const DRAWN_AFTER: [i32; 2] = [1, 2];
/// Maximum names in the queue of a server. The next plan has the others.
const QUEUE_MAX: usize = 50;

/// Draws the names of the last days for the suffixes that have none. `drawn` returns the suffixes that have.
pub fn draw(
    index: &Index,
    (sample, bootstrap): (&Sample, &Bootstrap),
    per_second: u32,
    today: Day,
    seed: &[u8; 32],
    drawn: impl Fn(Day) -> BTreeSet<String>,
) -> Vec<SampleDraw> {
    let server = |suffix: &str| bootstrap.servers_of(suffix).first().map(server_key);
    let mut draws = Vec::new();
    for on in DRAWN_AFTER.map(|days| today.plus(-days)) {
        let drawn = drawn(on);
        let new = index.draw(on, seed, |suffix| {
            !drawn.contains(suffix)
                && server(suffix).is_some()
                && sample.has(suffix, |suffix| index.has_complete_lists(suffix))
        });
        let mut suffixes = HashMap::<Option<String>, u64>::new();
        for suffix in drawn.iter().chain(new.keys()) {
            *suffixes.entry(server(suffix)).or_default() += 1;
        }
        for (suffix, mut names) in new {
            names.truncate(names_a_day(per_second, suffixes[&server(&suffix)]));
            draws.push(SampleDraw { on, suffix, seed: *seed, names });
        }
    }
    draws.retain(|draw| !draw.names.is_empty());
    draws
}

/// Returns the names of a suffix about which a server with this number of suffixes can be asked.
fn names_a_day(per_second: u32, suffixes: u64) -> usize {
    let queries = 24 * 3_600 * u64::from(per_second) / u64::from(SHARE);
    (queries / QUERIES_A_NAME / suffixes.max(1)) as usize
}

/// Returns the names to ask about by server: those with the fewest days left first, then in the random order of
/// their draws, so that chance decides which names are left out. `is_ready` is false for names in flight, and for
/// those whose query failed lately.
pub fn queues(
    mut targets: Vec<SampleTarget>,
    bootstrap: &Bootstrap,
    facts: impl Fn(&DomainName) -> Option<NameFacts>,
    is_ready: impl Fn(&DomainName) -> bool,
) -> HashMap<String, VecDeque<Due>> {
    targets.sort_by(|one, other| {
        let key = |it: &SampleTarget| (it.days_left, it.place);
        key(one).cmp(&key(other)).then_with(|| one.name.cmp(&other.name))
    });
    let mut queues = HashMap::<String, VecDeque<Due>>::new();
    for SampleTarget { name, release, .. } in targets {
        let Some(base) = bootstrap.servers(&name).first() else { continue };
        let queue = queues.entry(server_key(base)).or_default();
        if queue.len() == QUEUE_MAX || !is_ready(&name) {
            continue;
        }
        let drop = DropDays::of(&name, facts(&name).as_ref());
        queue.push_back(Due {
            name,
            urgency: Urgency::Rest,
            how: How::Rdap,
            base: Some(base.clone()),
            account: AccountId(0),
            drop,
            last: None,
            sampled: Some(release),
        });
    }
    queues.retain(|_, queue| !queue.is_empty());
    queues
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::super::server::{Ended, Limits, Server};
    use super::*;

    fn target(name: &str, days_left: i32, place: usize) -> SampleTarget {
        let name = DomainName::parse(name).expect("a name");
        SampleTarget { name, release: Day::MIN, days_left, place }
    }

    #[test]
    fn chance_decides_which_names_of_a_server_come_first() {
        let targets = vec![
            target("late.com", 3, 0),
            target("second.com", 0, 1),
            target("first.net", 0, 0),
            target("first.com", 0, 0),
            target("paused.com", 0, 0),
            target("no-server.gr", 0, 0),
        ];
        let is_ready = |name: &DomainName| name.label() != "paused";
        let queues = queues(targets, &Bootstrap::compiled(), |_| None, is_ready);
        let [(server, queue)] = &queues.into_iter().collect::<Vec<_>>()[..] else { panic!() };
        let names: Vec<_> = queue.iter().map(|due| due.name.as_str()).collect();
        assert_eq!(server, "https://rdap.verisign.com");
        assert_eq!(names, ["first.com", "first.net", "second.com", "late.com"]);
        assert!(queue.iter().all(|due| due.sampled == Some(Day::MIN)));
    }

    #[test]
    fn names_of_a_day_fit_the_share_of_their_server() {
        assert!(names_a_day(1, 18) >= 60);
        for (per_second, suffixes) in [(1, 19), (1, 300), (1, 5_000), (7, 200), (1_000, 9)] {
            let names = names_a_day(per_second, suffixes) as u64 * suffixes;
            let queries = u64::from(per_second) * 86_400;
            assert!(names * QUERIES_A_NAME <= queries / u64::from(SHARE));
        }
    }

    /// A day of a server that is asked for as much as it allows.
    #[test]
    fn a_server_gets_one_query_of_the_sample_for_twenty_others() {
        let limits = Limits { per_second: 2, concurrency: 2 };
        let start = Instant::now();
        let mut server = Server::new(limits, start);
        let (mut all, mut of_sample) = (0, 0);
        for step in 0..20_000u64 {
            let now = start + Duration::from_millis(step * 100);
            // Others have all the names that they want from the first to the last minute.
            let others_want = step % 200 < 100;
            if server.ready_at().is_none_or(|at| at > now) {
                continue;
            }
            let may_sample = server.sample_ready_at().is_some_and(|at| at <= now);
            if !others_want && !may_sample {
                continue;
            }
            server.begin(now);
            all += 1;
            if !others_want {
                server.charge_sample(now);
                of_sample += 1;
            }
            server.end(Ended::Answered, now);
        }
        let allowed = 20_000 / 10 * limits.per_second / SHARE;
        assert!(of_sample <= allowed + 1 && of_sample >= allowed / 3, "{of_sample} of {all}");
    }
}
