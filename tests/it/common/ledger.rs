//! Acknowledged writes, recorded outside the server. Each client that writes has one [`Ledger`] and
//! its own objects, which no other client touches, so that every object has one history.
//!
//! Input: requests ([`Ask`]) and their responses. [`check`] compares the ledgers of one account with
//! what a server returns: complete objects, none missing, none extra. A request without a response
//! took effect completely or not at all; the ledger adopts the state that it finds.

use std::collections::BTreeMap;
use std::io;

use serde_json::{Value, json};

use super::http::{Client, Response, escape, with_query};
use super::json::difference;

/// Page size for reading all rows.
const PAGE: usize = 1_000;
/// Maximum responses kept for replay.
const ANSWERED_MAX: usize = 64;

/// A change of user data.
#[derive(Clone, Debug)]
pub enum Act {
    AddClaim { body: Value },
    ChangeClaim { id: u64, body: Value },
    RemoveClaim { id: u64 },
    AddWatch { name: String },
    RemoveWatch { name: String },
    AddRule { body: Value },
    ChangeRule { id: u64, body: Value },
    RemoveRule { id: u64 },
    AddSearch { body: Value },
    ChangeSearch { id: u64, body: Value },
    RemoveSearch { id: u64 },
    Vote { name: String, vote: Option<&'static str> },
}

impl Act {
    fn method(&self) -> &'static str {
        match self {
            _ if self.adds() => "POST",
            Act::ChangeClaim { .. } | Act::ChangeRule { .. } | Act::ChangeSearch { .. } => "PATCH",
            Act::Vote { .. } => "PUT",
            _ => "DELETE",
        }
    }

    /// Whether the request is a POST, which may have an idempotency key.
    pub fn adds(&self) -> bool {
        matches!(
            self,
            Act::AddClaim { .. }
                | Act::AddWatch { .. }
                | Act::AddRule { .. }
                | Act::AddSearch { .. }
        )
    }

    fn target(&self) -> String {
        match self {
            Act::AddClaim { .. } => "/api/v1/portfolio".into(),
            Act::ChangeClaim { id, .. } | Act::RemoveClaim { id } => {
                format!("/api/v1/portfolio/{id}")
            }
            Act::AddWatch { .. } => "/api/v1/watchlist".into(),
            Act::RemoveWatch { name } => {
                with_query("/api/v1/watchlist", &[("domain", name.clone())])
            }
            Act::AddRule { .. } => "/api/v1/alerts".into(),
            Act::ChangeRule { id, .. } | Act::RemoveRule { id } => format!("/api/v1/alerts/{id}"),
            Act::AddSearch { .. } => "/api/v1/searches".into(),
            Act::ChangeSearch { id, .. } | Act::RemoveSearch { id } => {
                format!("/api/v1/searches/{id}")
            }
            Act::Vote { name, .. } => format!("/api/v1/domain/{}/feedback", escape(name)),
        }
    }

    fn body(&self) -> Option<Value> {
        match self {
            Act::AddClaim { body }
            | Act::ChangeClaim { body, .. }
            | Act::AddRule { body }
            | Act::ChangeRule { body, .. }
            | Act::AddSearch { body }
            | Act::ChangeSearch { body, .. } => Some(body.clone()),
            Act::AddWatch { name } => Some(json!({ "domainName": name })),
            Act::Vote { vote, .. } => Some(json!({ "vote": vote })),
            Act::RemoveClaim { .. }
            | Act::RemoveWatch { .. }
            | Act::RemoveRule { .. }
            | Act::RemoveSearch { .. } => None,
        }
    }
}

/// A change, and the request that makes it.
#[derive(Clone, Debug)]
pub struct Ask {
    pub act: Act,
    /// The `Idempotency-Key`, on a POST.
    pub key: Option<String>,
}

impl Ask {
    /// Sends it. After an error, the outcome is unknown.
    pub fn send(&self, client: &mut Client) -> io::Result<Response> {
        let (method, target) = (self.act.method(), self.act.target());
        let mut headers = Vec::new();
        if let Some(key) = &self.key {
            headers.push(("Idempotency-Key", key.as_str()));
        }
        match self.act.body() {
            Some(body) => {
                headers.push(("Content-Type", "application/json"));
                client.try_send(method, &target, &headers, body.to_string().as_bytes())
            }
            None => client.try_request(method, &target, &headers),
        }
    }
}

/// Outcome of a POST without a response.
enum Fate {
    Undone,
    /// It created this object.
    Made(Value),
    /// Unknown, because the object already existed.
    Unknown,
}

/// A POST with a key, and its response.
#[derive(Clone, Debug)]
struct Answered {
    ask: Ask,
    response: Response,
}

/// Acknowledged writes of one client.
#[derive(Default)]
pub struct Ledger {
    pub claims: BTreeMap<u64, Value>,
    pub watches: BTreeMap<String, Value>,
    pub rules: BTreeMap<u64, Value>,
    pub searches: BTreeMap<u64, Value>,
    /// Names with a vote.
    pub votes: BTreeMap<String, &'static str>,
    /// Requests without a response.
    pub pending: Option<Ask>,
    /// Number of POSTs without a response that took effect, and of those that did not.
    pub found: (usize, usize),
    answered: Vec<Answered>,
}

impl Ledger {
    /// Records a response, which must be the expected one.
    #[track_caller]
    pub fn settle(&mut self, ask: &Ask, response: &Response) {
        self.write_down(ask, response);
        self.pending = None;
        if ask.key.is_some() {
            self.keep_answer(ask, response);
        }
    }

    /// Discards the responses that are kept by key, because the server may discard them after a
    /// day.
    pub fn forget_answered(&mut self) {
        self.answered.clear();
    }

    /// Repeats an earlier POST with its key: the response is the same, byte for byte, unless the server
    /// refuses writes (503).
    #[track_caller]
    pub fn ask_again(&self, at: usize, client: &mut Client) -> io::Result<Response> {
        let Answered { ask, response } = &self.answered[at];
        let again = ask.send(client)?;
        if again.status != 503 {
            let told = (response.status, response.text());
            assert_eq!((again.status, again.text()), told, "repeated: {ask:?}");
            assert_replayed(&again, ask);
        }
        Ok(again)
    }

    /// Number of responses that can be replayed.
    pub fn answered(&self) -> usize {
        self.answered.len()
    }

    #[track_caller]
    fn write_down(&mut self, ask: &Ask, response: &Response) {
        let (status, body) = response.answer();
        let says = format!("{ask:?} is answered {status} {body}");
        match &ask.act {
            Act::AddClaim { body: sent } => {
                let (id, claim) = added(status, &body, "claim", &says);
                assert_holds(&claim_as_sent(sent, &self.rules), &claim, &says);
                assert!(self.claims.insert(id, claim).is_none(), "{says}: delivered before");
            }
            Act::AddRule { body: sent } => {
                let (id, rule) = added(status, &body, "alert", &says);
                assert_holds(sent, &rule, &says);
                assert!(self.rules.insert(id, rule).is_none(), "{says}: delivered before");
            }
            Act::AddSearch { body: sent } => {
                let (id, search) = added(status, &body, "search", &says);
                assert_holds(sent, &search, &says);
                assert!(self.searches.insert(id, search).is_none(), "{says}: delivered before");
            }
            Act::ChangeSearch { id, body: sent } => {
                assert_eq!(status, 200, "{says}");
                assert_holds(&changed_search(&self.searches[id], sent), &body["search"], &says);
                self.searches.insert(*id, body["search"].clone());
            }
            Act::ChangeClaim { id, body: sent } => {
                assert_eq!(status, 200, "{says}");
                assert_holds(&changed_claim(&self.claims[id], sent), &body["claim"], &says);
                self.claims.insert(*id, body["claim"].clone());
            }
            Act::ChangeRule { id, body: sent } => {
                assert_eq!(status, 200, "{says}");
                assert_holds(&changed(&self.rules[id], sent), &body["alert"], &says);
                self.rules.insert(*id, body["alert"].clone());
            }
            Act::RemoveClaim { id } | Act::RemoveRule { id } | Act::RemoveSearch { id } => {
                assert_eq!((status, &body), (200, &json!({ "id": id, "deleted": true })), "{says}");
                let of_kind = match &ask.act {
                    Act::RemoveClaim { .. } => &mut self.claims,
                    Act::RemoveSearch { .. } => &mut self.searches,
                    _ => &mut self.rules,
                };
                of_kind.remove(id);
            }
            Act::AddWatch { name } => self.write_down_watch(name, status, body, &says),
            Act::RemoveWatch { name } => {
                let removed = json!({ "domain": name, "removed": true });
                assert_eq!((status, &body), (200, &removed), "{says}");
                self.watches.remove(name);
            }
            Act::Vote { name, vote } => {
                assert_eq!(status, 200, "{says}");
                assert_holds(&json!({ "domain": name, "vote": vote }), &body, &says);
                self.vote(name, *vote);
            }
        }
    }

    #[track_caller]
    fn write_down_watch(&mut self, name: &str, status: u16, entry: Value, says: &str) {
        if let Some(kept) = self.watches.get(name) {
            return assert_eq!((status, &entry), (200, kept), "{says}");
        }
        assert_eq!((status, &entry["domain"]), (201, &json!(name)), "{says}");
        self.watches.insert(name.to_owned(), entry);
    }

    fn vote(&mut self, name: &str, vote: Option<&'static str>) {
        match vote {
            Some(vote) => self.votes.insert(name.to_owned(), vote),
            None => self.votes.remove(name),
        };
    }

    /// Reads from the server's state whether requests that got no response took effect, and adopts that
    /// state. A POST with a key is then repeated, and must have one effect in all.
    #[track_caller]
    fn resolve(&mut self, shown: &Shown, client: &mut Client) {
        let Some(ask) = self.pending.take() else { return };
        let says = format!("unanswered: {ask:?}");
        let fate = match &ask.act {
            Act::AddClaim { body } => {
                match only(&shown.claims, |claim| claim["domain"] == body["domain"], &says) {
                    None => Fate::Undone,
                    Some((id, claim)) => {
                        assert_holds(&claim_as_sent(body, &self.rules), &claim, &says);
                        self.claims.insert(id, claim.clone());
                        Fate::Made(claim)
                    }
                }
            }
            Act::AddRule { body } => {
                match only(&shown.rules, |rule| rule["name"] == body["name"], &says) {
                    None => Fate::Undone,
                    Some((id, rule)) => {
                        assert_holds(body, &rule, &says);
                        self.rules.insert(id, rule.clone());
                        Fate::Made(rule)
                    }
                }
            }
            Act::AddSearch { body } => {
                match only(&shown.searches, |search| search["name"] == body["name"], &says) {
                    None => Fate::Undone,
                    Some((id, search)) => {
                        assert_holds(body, &search, &says);
                        self.searches.insert(id, search.clone());
                        Fate::Made(search)
                    }
                }
            }
            Act::AddWatch { name } if self.watches.contains_key(name) => Fate::Unknown,
            Act::AddWatch { name } => match shown.watches.get(name) {
                None => Fate::Undone,
                Some(entry) => {
                    self.watches.insert(name.clone(), entry.clone());
                    Fate::Made(entry.clone())
                }
            },
            act => {
                self.resolve_change(act, shown, &says);
                Fate::Unknown
            }
        };
        match &fate {
            Fate::Made(_) => self.found.0 += 1,
            Fate::Undone => self.found.1 += 1,
            Fate::Unknown => {}
        }
        // Totals do not show who voted, so the vote is set again, which changes nothing.
        if ask.key.is_some() || matches!(ask.act, Act::Vote { .. }) {
            self.repeat(&ask, fate, client);
        }
    }

    #[track_caller]
    fn resolve_change(&mut self, act: &Act, shown: &Shown, says: &str) {
        match act {
            Act::ChangeClaim { id, body } => {
                let changed = |kept: &Value| changed_claim(kept, body);
                take_over(&mut self.claims, *id, &shown.claims, Some(&changed), says);
            }
            Act::ChangeRule { id, body } => {
                let changed = |kept: &Value| changed(kept, body);
                take_over(&mut self.rules, *id, &shown.rules, Some(&changed), says);
            }
            Act::RemoveClaim { id } => {
                take_over(&mut self.claims, *id, &shown.claims, None, says);
            }
            Act::RemoveRule { id } => {
                take_over(&mut self.rules, *id, &shown.rules, None, says);
            }
            Act::ChangeSearch { id, body } => {
                let changed = |kept: &Value| changed_search(kept, body);
                take_over(&mut self.searches, *id, &shown.searches, Some(&changed), says);
            }
            Act::RemoveSearch { id } => {
                take_over(&mut self.searches, *id, &shown.searches, None, says);
            }
            Act::RemoveWatch { name } if !shown.watches.contains_key(name) => {
                self.watches.remove(name);
            }
            _ => {}
        }
    }

    /// Repeats a request without a response: a POST with its key, or a vote.
    #[track_caller]
    fn repeat(&mut self, ask: &Ask, fate: Fate, client: &mut Client) {
        let response = ask.send(client).unwrap_or_else(|error| panic!("{ask:?}: {error}"));
        match fate {
            Fate::Unknown => self.settle(ask, &response),
            Fate::Undone => {
                let replayed = response.header("idempotency-replayed");
                assert_eq!(replayed, None, "{ask:?}: did not take effect");
                self.settle(ask, &response);
            }
            Fate::Made(made) => {
                let (status, body) = response.answer();
                assert_eq!(status, 201, "{ask:?}, again: {body}");
                let told = match &ask.act {
                    Act::AddClaim { .. } => &body["claim"],
                    Act::AddRule { .. } => &body["alert"],
                    Act::AddSearch { .. } => &body["search"],
                    _ => &body,
                };
                assert_same(&made, told, &format!("{ask:?}, again"));
                assert_replayed(&response, ask);
                self.keep_answer(ask, &response);
            }
        }
    }

    fn keep_answer(&mut self, ask: &Ask, response: &Response) {
        if self.answered.len() == ANSWERED_MAX {
            self.answered.remove(0);
        }
        self.answered.push(Answered { ask: ask.clone(), response: response.clone() });
    }
}

/// Everything that an account can read of its own.
#[derive(Debug, PartialEq)]
pub struct Shown {
    pub claims: BTreeMap<u64, Value>,
    pub watches: BTreeMap<String, Value>,
    pub rules: BTreeMap<u64, Value>,
    pub searches: BTreeMap<u64, Value>,
    /// The member `summary` of the watchlist.
    pub summary: Value,
}

impl Shown {
    /// Reads the state page by page, and checks the order and counts of each list.
    #[track_caller]
    pub fn read(client: &mut Client) -> Shown {
        let claims = read_all(client, "/api/v1/portfolio", "claims").0;
        let rules = read_all(client, "/api/v1/alerts", "alerts").0;
        let searches = read_all(client, "/api/v1/searches", "searches").0;
        let (watches, head) = read_all(client, "/api/v1/watchlist", "watchlist");
        assert_newest_first(&claims, "reportedAt");
        assert_newest_first(&rules, "createdAt");
        let summary = head["summary"].clone();
        let external = watches.iter().filter(|entry| entry["source"] == "external").count();
        assert_holds(&json!({ "total": watches.len(), "external": external }), &summary, "summary");
        Shown {
            claims: by_id(claims),
            rules: by_id(rules),
            searches: by_id(searches),
            watches: by(watches, |entry| text_of(&entry["domain"])),
            summary,
        }
    }
}

/// Compares the ledgers of one account with the server's state, after resolving requests without a
/// response.
#[track_caller]
pub fn check(client: &mut Client, ledgers: &mut [&mut Ledger]) {
    let shown = Shown::read(client);
    for ledger in &mut *ledgers {
        ledger.resolve(&shown, client);
    }
    let shown = Shown::read(client);
    let claims = ledgers.iter().flat_map(|ledger| ledger.claims.clone());
    assert_same_objects(&claims.collect(), &shown.claims, "claims");
    let rules = ledgers.iter().flat_map(|ledger| ledger.rules.clone());
    assert_same_objects(&rules.collect(), &shown.rules, "rules");
    let searches = ledgers.iter().flat_map(|ledger| ledger.searches.clone());
    assert_same_objects(&searches.collect(), &shown.searches, "searches");
    let watches = ledgers.iter().flat_map(|ledger| ledger.watches.clone());
    assert_same_objects(&watches.collect(), &shown.watches, "watchlist");
}

/// Compares the votes in the ledgers of all accounts with the totals of these names. Every
/// vote must have a response.
#[track_caller]
pub fn check_votes<'a>(
    client: &mut Client,
    names: &[String],
    ledgers: impl Iterator<Item = &'a Ledger> + Clone,
) {
    for name in names {
        let count = |way: &str| {
            ledgers.clone().filter(|ledger| ledger.votes.get(name) == Some(&way)).count()
        };
        let totals = json!({ "up": count("up"), "down": count("down") });
        let (status, dossier) = client.get(&format!("/api/v1/domain/{}", escape(name))).answer();
        assert_eq!((status, &dossier["feedback"]), (200, &totals), "{name}: {dossier}");
    }
}

/// Asserts that `got` has every member of `expected`; numbers are compared by value.
#[track_caller]
pub fn assert_holds(expected: &Value, got: &Value, says: &str) {
    for (name, value) in expected.as_object().expect("an object is expected") {
        let same = match (value.as_f64(), got[name].as_f64()) {
            (Some(expected), Some(got)) => expected == got,
            _ => *value == got[name],
        };
        assert!(same, "{says}: `{name}` is {}, {value} expected", got[name]);
    }
}

#[track_caller]
fn assert_replayed(response: &Response, ask: &Ask) {
    let replayed = response.header("idempotency-replayed");
    assert_eq!(replayed, Some("true"), "repeated: {ask:?}");
}

#[track_caller]
fn assert_same(expected: &Value, got: &Value, says: &str) {
    if let Some(found) = difference(expected, got) {
        panic!("{says}: {found}");
    }
}

#[track_caller]
fn assert_same_objects<K: Ord + std::fmt::Debug>(
    kept: &BTreeMap<K, Value>,
    shown: &BTreeMap<K, Value>,
    what: &str,
) {
    for (id, object) in kept {
        let found = shown.get(id).unwrap_or_else(|| panic!("{what}: {id:?} is lost: {object}"));
        assert_same(object, found, &format!("{what}: {id:?}"));
    }
    for (id, object) in shown {
        assert!(kept.contains_key(id), "{what}: {id:?} exists without a recorded write: {object}");
    }
}

/// Resolves a write whose outcome is unknown: the object is either unchanged or equals the result of
/// `changed`. `None` stands for a removal.
#[track_caller]
fn take_over(
    kept: &mut BTreeMap<u64, Value>,
    id: u64,
    shown: &BTreeMap<u64, Value>,
    changed: Option<&dyn Fn(&Value) -> Value>,
    says: &str,
) {
    match (shown.get(&id), changed) {
        (Some(found), _) if *found == kept[&id] => {}
        (Some(found), Some(changed)) => {
            assert_holds(&changed(&kept[&id]), found, says);
            kept.insert(id, found.clone());
        }
        (None, None) => {
            kept.remove(&id);
        }
        (found, _) => panic!("{says}: found {found:?}, kept {}", kept[&id]),
    }
}

/// Returns the object for which `is` holds. A second object means that the request took effect
/// twice.
#[track_caller]
fn only(
    objects: &BTreeMap<u64, Value>,
    is: impl Fn(&Value) -> bool,
    says: &str,
) -> Option<(u64, Value)> {
    let mut found = objects.iter().filter(|(_, object)| is(object));
    let first = found.next().map(|(id, object)| (*id, object.clone()));
    assert!(found.next().is_none(), "{says}: took effect twice");
    first
}

/// Returns the expected claim after a POST of `sent`.
fn claim_as_sent(sent: &Value, rules: &BTreeMap<u64, Value>) -> Value {
    let mut claim = sent.clone();
    let members = claim.as_object_mut().expect("bodies are objects");
    if let Some(rule) = members.remove("alertRuleId") {
        let id = rule.as_u64().expect("ids are numbers");
        let name = &rules[&id]["name"];
        members.insert("alertRule".into(), json!({ "id": id, "name": name }));
    }
    claim
}

/// Returns the expected claim after a PATCH of `sent`, without the members that the server's clock
/// sets.
fn changed_claim(kept: &Value, sent: &Value) -> Value {
    let mut claim = changed(kept, sent);
    let members = claim.as_object_mut().expect("claims are objects");
    members.remove("updatedAt");
    if members["status"] != "sold" {
        members.insert("soldAt".into(), Value::Null);
        members.insert("resalePriceUsd".into(), Value::Null);
    } else if sent.get("soldAt").is_none() && kept["status"] != "sold" {
        members.remove("soldAt");
    }
    claim
}

/// Returns the expected search after a PATCH of `sent`, without the members that depend on the
/// index.
fn changed_search(kept: &Value, sent: &Value) -> Value {
    let mut search = changed(kept, sent);
    let members = search.as_object_mut().expect("searches are objects");
    for name in ["seen", "total", "totalExact", "newSinceSeen"] {
        members.remove(name);
    }
    search
}

/// Returns `kept` with the members of `sent` replaced.
fn changed(kept: &Value, sent: &Value) -> Value {
    let mut object = kept.clone();
    let members = object.as_object_mut().expect("kept objects are objects");
    for (name, value) in sent.as_object().expect("bodies are objects") {
        members.insert(name.clone(), value.clone());
    }
    object
}

/// Returns the id and the object in the response to a POST.
#[track_caller]
fn added(status: u16, body: &Value, member: &str, says: &str) -> (u64, Value) {
    assert_eq!(status, 201, "{says}");
    let object = &body[member];
    assert_eq!(object["id"], body["id"], "{says}");
    (id_of(body, says), object.clone())
}

#[track_caller]
fn id_of(body: &Value, says: &str) -> u64 {
    let id = body["id"].as_u64().unwrap_or_else(|| panic!("{says}: no id"));
    assert!((1..1 << 53).contains(&id), "{says}: not an id that JSON clients can hold");
    id
}

/// Returns every row of a list, and the last page without its rows.
#[track_caller]
fn read_all(client: &mut Client, path: &str, member: &str) -> (Vec<Value>, Value) {
    let mut rows = Vec::new();
    loop {
        let page = [("limit", PAGE.to_string()), ("offset", rows.len().to_string())];
        let (status, mut body) = client.get(&with_query(path, &page)).answer();
        assert_eq!(status, 200, "{path}: {body}");
        let Value::Array(page) = body[member].take() else { panic!("{path}: no {member}") };
        assert_eq!(body["count"], json!(page.len()), "{path}: {body}");
        let last = page.len() < PAGE;
        rows.extend(page);
        if last {
            return (rows, body);
        }
    }
}

#[track_caller]
fn assert_newest_first(rows: &[Value], time: &str) {
    let place = |row: &Value| (text_of(&row[time]), row["id"].as_u64());
    for pair in rows.windows(2) {
        assert!(place(&pair[0]) > place(&pair[1]), "out of order: {} {}", pair[0], pair[1]);
    }
}

fn by_id(rows: Vec<Value>) -> BTreeMap<u64, Value> {
    by(rows, |row| row["id"].as_u64().expect("ids are numbers"))
}

/// Rows by their key.
#[track_caller]
fn by<K: Ord + std::fmt::Debug>(rows: Vec<Value>, key: impl Fn(&Value) -> K) -> BTreeMap<K, Value> {
    let mut all = BTreeMap::new();
    for row in rows {
        let id = key(&row);
        assert!(all.insert(id, row.clone()).is_none(), "twice in one list: {row}");
    }
    all
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}")).to_owned()
}
