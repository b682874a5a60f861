//! Registry state of a watched name, as verification records it and the API shows it.

use std::fmt;

use arrayvec::ArrayString;
use serde::{Deserialize, Serialize};

use crate::day::Day;
use crate::evidence::EvidenceSet;
use crate::named::named_enum;
use crate::time::UnixMs;

named_enum! {
    /// State of a name according to its registry or, without RDAP, to the DNS. User data stores a
    /// state by its position in this list, so only append to the list.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum RdapState {
        /// Deleted; the holder can still restore it, or has requested it.
        Redemption = "redemption",
        /// Deleted; the registry will release it.
        PendingDelete = "pending-delete",
        /// Not registered.
        Available = "available",
        /// Registered; no drop is known.
        Registered = "registered",
        /// The name was registered before its drop, so the holder kept it.
        Renewed = "renewed",
        /// The name was registered after its drop, so it was caught.
        RegisteredAgain = "registered-again",
        /// The registry gave no usable response.
        Unknown = "unknown",
        /// The registry keeps the name.
        Reserved = "reserved",
        /// A list has released the name and it is not delegated, but no registry was asked.
        Expected = "expected",
        /// Delegated in the DNS; no registry was asked.
        Taken = "taken",
    }
}

impl RdapState {
    /// Returns true if the name is registered and not about to be released.
    pub fn is_held(self) -> bool {
        use RdapState::{Registered, RegisteredAgain, Renewed, Taken};
        matches!(self, Registered | Renewed | RegisteredAgain | Taken)
    }
}

/// A previous state of a watched name. User data stores the fields by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerState {
    pub state: RdapState,
    /// Time of the last observation.
    pub last_seen: UnixMs,
}

/// Source of an observation. User data stores an item by its position in the list: append only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObservedBy {
    /// The name servers of the suffix, which only show whether the name is delegated.
    Dns,
    /// The registry's RDAP server.
    Rdap,
    /// The registry's WHOIS server.
    Whois,
}

named_enum! {
    /// An RDAP status of a domain. Each status is a bit in [`RdapStatuses`], so only append to the
    /// list.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum RdapStatus {
        Active = "active",
        Inactive = "inactive",
        Locked = "locked",
        Associated = "associated",
        PendingCreate = "pending create",
        PendingDelete = "pending delete",
        PendingRenew = "pending renew",
        PendingRestore = "pending restore",
        PendingTransfer = "pending transfer",
        PendingUpdate = "pending update",
        RedemptionPeriod = "redemption period",
        AddPeriod = "add period",
        AutoRenewPeriod = "auto renew period",
        RenewPeriod = "renew period",
        TransferPeriod = "transfer period",
        ClientDeleteProhibited = "client delete prohibited",
        ClientHold = "client hold",
        ClientRenewProhibited = "client renew prohibited",
        ClientTransferProhibited = "client transfer prohibited",
        ClientUpdateProhibited = "client update prohibited",
        ServerDeleteProhibited = "server delete prohibited",
        ServerHold = "server hold",
        ServerRenewProhibited = "server renew prohibited",
        ServerTransferProhibited = "server transfer prohibited",
        ServerUpdateProhibited = "server update prohibited",
        DeleteProhibited = "delete prohibited",
        RenewProhibited = "renew prohibited",
        TransferProhibited = "transfer prohibited",
        UpdateProhibited = "update prohibited",
        Validated = "validated",
        Reserved = "reserved",
    }
}

impl RdapStatus {
    /// Parses a status as registries write it: by its RDAP or EPP name (`redemptionPeriod`, `ok`),
    /// in any case, with or without spaces, hyphens and underscores, and with or without a link to
    /// ICANN's explanation (`clientHold https://icann.org/epp#clientHold`). `None` for any other text.
    pub fn parse(text: &str) -> Option<RdapStatus> {
        let text = text.split("http").next().unwrap_or_default();
        let letters = || text.chars().filter(|c| !matches!(c, ' ' | '\t' | '-' | '_' | '('));
        let is = |word: &str| {
            let word = word.chars().filter(|&c| c != ' ');
            letters().map(|c| c.to_ascii_lowercase()).eq(word)
        };
        // EPP names these two statuses differently (RFC 8056 §2).
        if is("ok") {
            return Some(RdapStatus::Active);
        }
        if is("linked") {
            return Some(RdapStatus::Associated);
        }
        RdapStatus::ALL.into_iter().find(|status| is(status.as_str()))
    }
}

/// Set of statuses, one bit each. Unknown bits are dropped on construction.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "u32", into = "u32")]
pub struct RdapStatuses(u32);

const _: () = assert!(RdapStatus::ALL.len() <= u32::BITS as usize);

impl RdapStatuses {
    /// No status.
    pub const NONE: RdapStatuses = RdapStatuses(0);

    /// Returns the set with `status` added.
    pub fn with(self, status: RdapStatus) -> RdapStatuses {
        RdapStatuses(self.0 | 1 << status as u32)
    }

    /// Returns true if `status` is in the set.
    pub fn has(self, status: RdapStatus) -> bool {
        self.0 & 1 << status as u32 != 0
    }

    /// Returns true if the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the statuses in the order of [`RdapStatus::ALL`].
    pub fn iter(self) -> impl Iterator<Item = RdapStatus> {
        RdapStatus::ALL.into_iter().filter(move |&status| self.has(status))
    }

    /// Returns the bits, as user data stores them.
    pub fn bits(self) -> u32 {
        self.0
    }
}

impl From<u32> for RdapStatuses {
    fn from(bits: u32) -> RdapStatuses {
        RdapStatuses(bits & ((1 << RdapStatus::ALL.len()) - 1))
    }
}

impl From<RdapStatuses> for u32 {
    fn from(statuses: RdapStatuses) -> u32 {
        statuses.0
    }
}

impl FromIterator<RdapStatus> for RdapStatuses {
    fn from_iter<I: IntoIterator<Item = RdapStatus>>(statuses: I) -> RdapStatuses {
        statuses.into_iter().fold(RdapStatuses::NONE, RdapStatuses::with)
    }
}

impl fmt::Debug for RdapStatuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(RdapStatus::as_str)).finish()
    }
}

/// Name of a registrar. Invariant: one line of visible text without spaces at its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "ArrayString<REGISTRAR_BYTES_MAX>", into = "ArrayString<REGISTRAR_BYTES_MAX>")]
pub struct Registrar(ArrayString<REGISTRAR_BYTES_MAX>);

/// Maximum bytes of a registrar's name.
const REGISTRAR_BYTES_MAX: usize = 64;

impl Registrar {
    /// Returns the name, cut to its maximum length; `None` if nothing is visible.
    pub fn new(text: &str) -> Option<Registrar> {
        let mut name = ArrayString::new();
        let words = text.split(|char: char| char.is_whitespace() || char.is_control());
        for word in words.filter(|word| !word.is_empty()) {
            let before = name.len();
            let space = if before == 0 { "" } else { " " };
            let letters = space.chars().chain(word.chars());
            if letters.into_iter().any(|letter| name.try_push(letter).is_err()) {
                let end = if before == 0 { name.len() } else { before };
                name.truncate(end);
                break;
            }
        }
        (!name.is_empty()).then_some(Registrar(name))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<ArrayString<REGISTRAR_BYTES_MAX>> for Registrar {
    type Error = &'static str;

    fn try_from(name: ArrayString<REGISTRAR_BYTES_MAX>) -> Result<Registrar, &'static str> {
        Registrar::new(&name).ok_or("a registrar without a name")
    }
}

impl From<Registrar> for ArrayString<REGISTRAR_BYTES_MAX> {
    fn from(registrar: Registrar) -> ArrayString<REGISTRAR_BYTES_MAX> {
        registrar.0
    }
}

/// The latest registration of a name, as far as its registry describes it.
// User data stores the fields by position: append only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatestRegistration {
    pub at: Option<UnixMs>,
    pub registrar: Option<Registrar>,
}

/// One observation of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    pub state: RdapState,
    /// Time of the response.
    pub at: UnixMs,
    /// UTC day of its registration, if the registry gives it.
    pub registered_on: Option<Day>,
    /// Registry statuses; none from DNS.
    pub statuses: RdapStatuses,
    pub source: ObservedBy,
    /// Statements of the sources. User data stores them beside the observation, which is older.
    #[serde(skip)]
    pub evidence: EvidenceSet,
    /// User data stores it beside the observation as well.
    #[serde(skip)]
    pub registration: LatestRegistration,
}

impl Observation {
    /// Returns true if a source describes the state, or two agree on it.
    pub fn is_verified(&self) -> bool {
        match self.state {
            RdapState::Available => self.evidence.agrees(),
            RdapState::Unknown | RdapState::Expected => false,
            // A list has the release ahead, or names like this one are kept by rule.
            RdapState::PendingDelete | RdapState::Reserved => !self.evidence.is_free_but_kept(),
            _ => true,
        }
    }

    /// Returns true if two sources agree that the name is free. Only such a name is reported as free.
    pub fn is_free(&self) -> bool {
        self.state == RdapState::Available && self.evidence.agrees()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_numbers_and_words_are_stable() {
        for (place, state) in RdapState::ALL.into_iter().enumerate() {
            assert_eq!(state as usize, place);
            let json = serde_json::to_string(&state).expect("JSON");
            assert_eq!(json, format!("\"{state}\""));
        }
    }

    #[test]
    fn names_of_registrars_are_one_visible_line() {
        let read = |text: &str| Registrar::new(text).map(|it| it.as_str().to_owned());
        let is = |text: &str| Some(text.to_owned());
        assert_eq!(read("  Example\r\n Registrar,\u{7}Inc. "), is("Example Registrar, Inc."));
        assert_eq!(read(" \u{a0}\n"), None);
        assert_eq!(read(&"word ".repeat(40)), is(&["word"; 13].join(" ")), "whole words");
        assert_eq!(read(&"ü".repeat(40)), is(&"ü".repeat(32)), "or whole letters");
        let registration =
            LatestRegistration { at: UnixMs::new(9), registrar: Registrar::new("Ü") };
        let json = serde_json::to_string(&registration).expect("JSON");
        assert_eq!(serde_json::from_str::<LatestRegistration>(&json).expect("read"), registration);
    }

    #[test]
    fn every_status_has_its_own_bit_and_name() {
        for (place, status) in RdapStatus::ALL.into_iter().enumerate() {
            assert_eq!(status as usize, place, "{status}");
            assert_eq!(RdapStatus::parse(status.as_str()), Some(status));
        }
        let all: RdapStatuses = RdapStatus::ALL.into_iter().collect();
        assert_eq!(all.bits(), u32::MAX >> 1);
        assert_eq!(RdapStatuses::from(u32::MAX), all);
        assert_eq!(all.iter().count(), RdapStatus::ALL.len());
    }

    /// RFC 8056 §2, row by row.
    #[test]
    fn epp_status_names_are_parsed() {
        for (epp, rdap) in [
            ("addPeriod", "add period"),
            ("autoRenewPeriod", "auto renew period"),
            ("clientDeleteProhibited", "client delete prohibited"),
            ("clientHold", "client hold"),
            ("clientRenewProhibited", "client renew prohibited"),
            ("clientTransferProhibited", "client transfer prohibited"),
            ("clientUpdateProhibited", "client update prohibited"),
            ("inactive", "inactive"),
            ("linked", "associated"),
            ("ok", "active"),
            ("pendingCreate", "pending create"),
            ("pendingDelete", "pending delete"),
            ("pendingRenew", "pending renew"),
            ("pendingRestore", "pending restore"),
            ("pendingTransfer", "pending transfer"),
            ("pendingUpdate", "pending update"),
            ("redemptionPeriod", "redemption period"),
            ("renewPeriod", "renew period"),
            ("serverDeleteProhibited", "server delete prohibited"),
            ("serverHold", "server hold"),
            ("serverRenewProhibited", "server renew prohibited"),
            ("serverTransferProhibited", "server transfer prohibited"),
            ("serverUpdateProhibited", "server update prohibited"),
            ("transferPeriod", "transfer period"),
        ] {
            let linked = format!("{epp} (https://icann.org/epp#{epp})");
            let shouted = epp.to_ascii_uppercase();
            for text in [epp, rdap, &linked, &shouted, &format!(" {rdap} ")] {
                assert_eq!(RdapStatus::parse(text).map(RdapStatus::as_str), Some(rdap), "{text}");
            }
        }
        for none in ["", "http", "deleted", "pending", "redemption", "ok active", "private", "\0"] {
            assert_eq!(RdapStatus::parse(none), None, "{none}");
        }
    }
}
