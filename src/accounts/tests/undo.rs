//! Actions and their undo, against a model.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::*;
use crate::vocab::ids::ActionId;
use crate::vocab::name::DomainName;

/// Notes of a watched name: note, tags, bid and venue.
type Notes = (Option<String>, Vec<String>, Option<u64>, Option<String>);

/// A row of the model: the notes of a watched name, or a hidden name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Row {
    Watch(DomainName),
    Hidden(DomainName),
}

/// Rows by key. Hidden names have no notes.
type Rows = BTreeMap<Row, Notes>;

/// Rows before and after an action.
type Changes = BTreeMap<Row, (Option<Notes>, Option<Notes>)>;

fn changes(before: &Rows, after: &Rows) -> Changes {
    let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let all = keys
        .into_iter()
        .map(|key| (key.clone(), (before.get(key).cloned(), after.get(key).cloned())));
    all.filter(|(_, (before, after))| before != after).collect()
}

/// Undoes an action in the model, and returns the numbers of restored and kept rows.
fn undo(rows: &mut Rows, action: &Changes) -> Undone {
    let mut undone = Undone::default();
    for (key, (before, after)) in action {
        if rows.get(key) != after.as_ref() {
            undone.kept += 1;
            continue;
        }
        undone.restored += 1;
        match before {
            Some(notes) => rows.insert(key.clone(), notes.clone()),
            None => rows.remove(key),
        };
    }
    undone
}

fn of_store(store: &Store, caller: &Caller) -> Rows {
    let owned = store.user_data(caller);
    let watched = owned.watches().map(|entry| {
        let details = owned.watch_details(&entry.name);
        let details = details.map(|it| WatchDetails::clone(it)).unwrap_or_default();
        let notes = (
            details.note.map(String::from),
            details.tags.iter().map(|tag| tag.as_str().to_owned()).collect(),
            details.max_bid.map(Usd::cents),
            details.venue.map(String::from),
        );
        (Row::Watch(entry.name), notes)
    });
    let hidden = owned.hidden().map(|name| (Row::Hidden(name.clone()), Notes::default()));
    watched.chain(hidden).collect()
}

fn apply(notes: &mut Notes, patch: &WatchPatch) {
    fn set<T: Clone>(now: &mut Option<T>, new: Option<Option<T>>, keeps: bool) {
        if let Some(new) = new.filter(|_| !(keeps && now.is_some())) {
            *now = new;
        }
    }
    set(&mut notes.0, patch.note.clone(), patch.keeps);
    set(&mut notes.2, patch.max_bid.map(|bid| bid.map(Usd::cents)), patch.keeps);
    set(&mut notes.3, patch.venue.clone(), patch.keeps);
    if let Some(Tags::Add(tags)) = &patch.tags {
        for tag in tags.iter().map(|tag| tag.as_str().to_owned()) {
            if !notes.1.contains(&tag) {
                notes.1.push(tag);
            }
        }
    }
}

/// One of a few values, so that different actions often set the same one.
fn drawn_patch(random: &mut fastrand::Rng) -> WatchPatch {
    let mut maybe = |values: &[&str]| {
        (random.u8(..3) == 0).then(|| values[random.usize(..values.len())].to_owned())
    };
    let (note, venue, tag) = (maybe(&["a", "b"]), maybe(&["x", "y"]), maybe(&["flip", "keep"]));
    let bid = maybe(&["5", "7"]).and_then(|bid| Usd::from_cents(bid.parse().ok()?));
    WatchPatch {
        note: note.map(Some),
        tags: tag.map(|tag| Tags::Add(vec![tag.parse().expect("a tag")])),
        max_bid: bid.map(Some),
        venue: venue.map(Some),
        alerts: None,
        keeps: random.bool(),
    }
}

/// A thousand random actions on several names and their undo, over restarts and snapshots.
#[test]
fn undone_actions_leave_the_rows_of_a_model() {
    let mut random = fastrand::Rng::with_seed(48);
    let mut world = World::new();
    let ann = world.account("ann@example.com", Plan::Api);
    let all: Vec<_> = (0..130).map(|at| name(&format!("n{at}.com"))).collect();
    let mut model = Rows::new();
    let mut actions: VecDeque<(ActionId, Changes)> = VecDeque::new();
    let (mut restored, mut kept) = (0, 0);
    for step in 0..1_000 {
        if step % 250 == 249 {
            if step % 500 == 499 {
                world.store.snapshot_now().expect("written");
            }
            world = world.reopened();
        }
        let share = [0, 2, 120][random.usize(..3)];
        let names: Vec<_> = all.iter().filter(|_| random.u8(..128) <= share).cloned().collect();
        let before = model.clone();
        // Some writes are not actions, such as those of the API.
        let (caller, id) = match random.u8(..6) {
            0 => (ann.clone(), None),
            _ => ann.acting().map(|(caller, id)| (caller, Some(id))).expect("random"),
        };
        let store = &world.store;
        match random.u8(..9) {
            0..=1 => {
                let patch = drawn_patch(&mut random);
                for name in &names {
                    apply(model.entry(Row::Watch(name.clone())).or_default(), &patch);
                }
                let watches = names
                    .iter()
                    .map(|name| Watch { patch: patch.clone(), ..watch(name.as_str(), true) });
                let outcomes = world.wait(store.add_watches(&caller, watches.collect(), noon()));
                assert!(outcomes.expect("written").iter().all(Result::is_ok));
            }
            2..=3 => {
                let patch = drawn_patch(&mut random);
                for name in &names {
                    model.entry(Row::Watch(name.clone())).and_modify(|notes| apply(notes, &patch));
                }
                world.wait(store.change_watches(&caller, names, &patch)).expect("written");
            }
            4 => {
                names.iter().for_each(|name| drop(model.remove(&Row::Watch(name.clone()))));
                world.wait(store.remove_watches(&caller, names)).expect("written");
            }
            5 => {
                model
                    .extend(names.iter().map(|name| (Row::Hidden(name.clone()), Notes::default())));
                world.wait(store.hide(&caller, names)).expect("written");
            }
            6 => {
                names.iter().for_each(|name| drop(model.remove(&Row::Hidden(name.clone()))));
                world.wait(store.unhide_all(&caller, names)).expect("written");
            }
            _ => {
                // Mostly the last action, and sometimes an earlier one.
                let back = if random.bool() { 0 } else { random.usize(..8) };
                let Some(at) = actions.len().checked_sub(back + 1) else { continue };
                let (id, changes) = actions.remove(at).expect("an action");
                let expected = undo(&mut model, &changes);
                let undone = world.wait(store.undo(&ann, id)).expect("undone");
                assert_eq!(undone, expected, "step {step}");
                (restored, kept) = (restored + undone.restored, kept + undone.kept);
                assert_not_found(world.wait(store.undo(&ann, id)));
            }
        }
        assert_eq!(of_store(&world.store, &ann), model, "step {step}");
        let changes = changes(&before, &model);
        if let Some(id) = id.filter(|_| !changes.is_empty())
            && world
                .store
                .user_data(&ann)
                .action(id, UnixMs::from_instant(world.store.0.clock.now()))
                .is_some()
        {
            actions.push_back((id, changes));
        }
        // The store keeps the newest ones.
        actions.retain(|(id, _)| {
            world
                .store
                .user_data(&ann)
                .action(*id, UnixMs::from_instant(world.store.0.clock.now()))
                .is_some()
        });
    }
    assert!(restored > 1_000 && kept > 100, "{restored} rows restored, {kept} kept");
}

#[test]
fn deleted_rules_searches_and_claims_come_back_with_their_feeds() {
    let world = World::new();
    let ann = world.account("ann@example.com", Plan::Api);
    let rule = world.add_rule(&ann, by_email("a")).expect("added");
    let claim = world.add_claim(&ann, attempted("a.com")).expect("added");
    let new = |name: &str| NewSearch {
        name: name.to_owned(),
        conditions: Conditions::default(),
        seen: 3,
    };
    let add = |search: NewSearch, seconds| {
        let post = plain(noon() + Duration::seconds(seconds));
        world.wait(async { world.store.add_search(&ann, search, post).await?.finish().await })
    };
    let (first, second) = (add(new("1"), 0).expect("added"), add(new("2"), 1).expect("added"));
    let token =
        world.wait(world.store.make_feed(&ann, FeedOf::Search(first.id), noon())).expect("added");
    let digest = world.store.state_digest();
    let is_feed = || world.store.feed(&token).is_some();
    assert!(is_feed());

    let (caller, id) = ann.acting().expect("random");
    world.wait(world.store.remove_rule(&caller, rule)).expect("removed");
    world.wait(world.store.remove_claim(&caller, claim)).expect("removed");
    world.wait(world.store.remove_search(&caller, first.id)).expect("removed");
    assert!(!is_feed());
    let undone = world.wait(world.store.undo(&ann, id)).expect("undone");
    assert_eq!(undone, Undone { restored: 3, kept: 0 });
    assert!(is_feed());
    assert_eq!(world.store.state_digest(), digest);
    let owned = world.store.user_data(&ann);
    let names: Vec<_> = owned.searches().map(|search| search.name.as_str()).collect();
    assert_eq!(names, ["2", "1"]);
    assert_eq!(owned.search(second.id).map(|it| it.seen), Some(3));
    world.reopened();
}

#[test]
fn an_undo_respects_the_limits_of_the_account() {
    let world = World::new();
    let core = world.account("core@example.com", Plan::Core);
    let limit = world.store.limits(&core).external_names;
    let external =
        |from: u32| (0..limit).map(move |at| watch(&format!("e{}.com", from + at), false));
    let add = |from| world.wait(world.store.add_watches(&core, external(from).collect(), noon()));
    assert!(add(0).expect("written").iter().all(Result::is_ok));
    let (caller, id) = core.acting().expect("random");
    let names = external(0).map(|watch| watch.name).collect();
    assert_eq!(world.wait(world.store.remove_watches(&caller, names)).ok(), Some(limit as usize));
    assert!(add(limit).expect("written").iter().all(Result::is_ok));
    let refused = world.wait(world.store.undo(&core, id));
    assert!(matches!(refused, Err(WriteError::PlanLimit { .. })), "{refused:?}");
    let names = external(limit).map(|watch| watch.name).collect();
    world.wait(world.store.remove_watches(&core, names)).expect("removed");
    let undone = world.wait(world.store.undo(&core, id)).expect("undone");
    assert_eq!(undone.restored, limit as usize);
    // Another account cannot undo it.
    let (caller, id) = core.acting().expect("random");
    world.wait(world.store.hide(&caller, vec![name("a.com")])).expect("hidden");
    let bob = world.account("bob@example.com", Plan::Core);
    assert_not_found(world.wait(world.store.undo(&bob, id)));
    assert!(world.wait(world.store.undo(&core, id)).is_ok());
}
