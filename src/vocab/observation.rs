//! Registry state of a watched name, as verification records it and the API shows it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::vocab::day::Day;
use crate::vocab::time::UnixMs;

/// State of a name according to its registry or, without RDAP, to the DNS. User data stores it by
/// its position in the list: append only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RdapState {
    /// Deleted; the holder can still restore it, or has requested it.
    Redemption,
    /// Deleted for good; the registry will release it.
    PendingDelete,
    /// Not registered.
    Available,
    /// Registered; no drop is known.
    Registered,
    /// Registered since before its drop: its holder kept it.
    Renewed,
    /// Registered since its drop: it was caught.
    RegisteredAgain,
    /// The registry gave no usable response.
    Unknown,
}

impl RdapState {
    /// All states, in the order user data stores them.
    pub const ALL: [RdapState; 7] = [
        RdapState::Redemption,
        RdapState::PendingDelete,
        RdapState::Available,
        RdapState::Registered,
        RdapState::Renewed,
        RdapState::RegisteredAgain,
        RdapState::Unknown,
    ];

    /// The API's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            RdapState::Redemption => "redemption",
            RdapState::PendingDelete => "pending-delete",
            RdapState::Available => "available",
            RdapState::Registered => "registered",
            RdapState::Renewed => "renewed",
            RdapState::RegisteredAgain => "registered-again",
            RdapState::Unknown => "unknown",
        }
    }

    /// Returns true when the name is registered and not about to be released.
    pub fn is_held(self) -> bool {
        matches!(self, RdapState::Registered | RdapState::Renewed | RdapState::RegisteredAgain)
    }
}

impl fmt::Display for RdapState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Source of an observation. User data stores it by its position in the list: append only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObservedBy {
    /// The name servers of the suffix, which show only whether the name is delegated.
    Dns,
    /// The registry's RDAP server.
    Rdap,
}

/// An RDAP status of a domain. Each is a bit in [`RdapStatuses`]: append only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RdapStatus {
    Active,
    Inactive,
    Locked,
    Associated,
    PendingCreate,
    PendingDelete,
    PendingRenew,
    PendingRestore,
    PendingTransfer,
    PendingUpdate,
    RedemptionPeriod,
    AddPeriod,
    AutoRenewPeriod,
    RenewPeriod,
    TransferPeriod,
    ClientDeleteProhibited,
    ClientHold,
    ClientRenewProhibited,
    ClientTransferProhibited,
    ClientUpdateProhibited,
    ServerDeleteProhibited,
    ServerHold,
    ServerRenewProhibited,
    ServerTransferProhibited,
    ServerUpdateProhibited,
    DeleteProhibited,
    RenewProhibited,
    TransferProhibited,
    UpdateProhibited,
    Validated,
    Reserved,
}

impl RdapStatus {
    /// All statuses with their RDAP names (RFC 9083 §10.2.2, RFC 8056 §2), in the order of their
    /// bits. Statuses that only contacts have (private, proxy, removed, obscured) are left out.
    pub const ALL: [(RdapStatus, &'static str); 31] = [
        (RdapStatus::Active, "active"),
        (RdapStatus::Inactive, "inactive"),
        (RdapStatus::Locked, "locked"),
        (RdapStatus::Associated, "associated"),
        (RdapStatus::PendingCreate, "pending create"),
        (RdapStatus::PendingDelete, "pending delete"),
        (RdapStatus::PendingRenew, "pending renew"),
        (RdapStatus::PendingRestore, "pending restore"),
        (RdapStatus::PendingTransfer, "pending transfer"),
        (RdapStatus::PendingUpdate, "pending update"),
        (RdapStatus::RedemptionPeriod, "redemption period"),
        (RdapStatus::AddPeriod, "add period"),
        (RdapStatus::AutoRenewPeriod, "auto renew period"),
        (RdapStatus::RenewPeriod, "renew period"),
        (RdapStatus::TransferPeriod, "transfer period"),
        (RdapStatus::ClientDeleteProhibited, "client delete prohibited"),
        (RdapStatus::ClientHold, "client hold"),
        (RdapStatus::ClientRenewProhibited, "client renew prohibited"),
        (RdapStatus::ClientTransferProhibited, "client transfer prohibited"),
        (RdapStatus::ClientUpdateProhibited, "client update prohibited"),
        (RdapStatus::ServerDeleteProhibited, "server delete prohibited"),
        (RdapStatus::ServerHold, "server hold"),
        (RdapStatus::ServerRenewProhibited, "server renew prohibited"),
        (RdapStatus::ServerTransferProhibited, "server transfer prohibited"),
        (RdapStatus::ServerUpdateProhibited, "server update prohibited"),
        (RdapStatus::DeleteProhibited, "delete prohibited"),
        (RdapStatus::RenewProhibited, "renew prohibited"),
        (RdapStatus::TransferProhibited, "transfer prohibited"),
        (RdapStatus::UpdateProhibited, "update prohibited"),
        (RdapStatus::Validated, "validated"),
        (RdapStatus::Reserved, "reserved"),
    ];

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
        // EPP has other names for these two (RFC 8056 §2).
        if is("ok") {
            return Some(RdapStatus::Active);
        }
        if is("linked") {
            return Some(RdapStatus::Associated);
        }
        RdapStatus::ALL.into_iter().find(|(_, word)| is(word)).map(|(status, _)| status)
    }

    /// RDAP's name for it.
    pub fn as_str(self) -> &'static str {
        RdapStatus::ALL[self as usize].1
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

    /// The set with `status` added.
    pub fn with(self, status: RdapStatus) -> RdapStatuses {
        RdapStatuses(self.0 | 1 << status as u32)
    }

    /// Returns true when `status` is in the set.
    pub fn has(self, status: RdapStatus) -> bool {
        self.0 & 1 << status as u32 != 0
    }

    /// Returns true when the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The statuses in the order of [`RdapStatus::ALL`].
    pub fn iter(self) -> impl Iterator<Item = RdapStatus> {
        RdapStatus::ALL.into_iter().map(|(status, _)| status).filter(move |&it| self.has(it))
    }

    /// The bits, as user data stores them.
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
    fn every_status_has_its_own_bit_and_name() {
        for (place, (status, word)) in RdapStatus::ALL.into_iter().enumerate() {
            assert_eq!(status as usize, place, "{word}");
            assert_eq!(status.as_str(), word);
            assert_eq!(RdapStatus::parse(word), Some(status));
        }
        let all: RdapStatuses = RdapStatus::ALL.into_iter().map(|(status, _)| status).collect();
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
