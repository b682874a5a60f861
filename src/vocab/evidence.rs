//! What sources say about a name. [`crate::availability`] derives the state that follows from it.

use serde::{Deserialize, Serialize};

use crate::named::named_enum;

named_enum! {
    /// An answer of a source. Each is a bit in [`EvidenceSet`], so only append to the list.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum Evidence {
        /// RDAP describes the registration of the name.
        RdapFound = "rdap-found",
        /// RDAP has no such name: 404 with an empty body or a JSON object.
        RdapNone = "rdap-none",
        /// RDAP says that the registry keeps the name.
        RdapReserved = "rdap-reserved",
        /// WHOIS describes the registration of the name.
        WhoisFound = "whois-found",
        /// WHOIS has the words of the registry for a free name, and no words of throttling.
        WhoisNone = "whois-none",
        /// WHOIS says that the registry keeps the name.
        WhoisReserved = "whois-reserved",
        /// The name servers of the suffix delegate the name.
        Delegated = "delegated",
        /// The name servers of the suffix say that the name does not exist.
        NotDelegated = "not-delegated",
        /// A list says that the name is yet to be released.
        ReleaseAhead = "release-ahead",
        /// A list says that the name has been released.
        ReleasePast = "release-past",
        /// Within a day, the same RDAP server has described a name of the suffix that is known to be
        /// registered. Without this, its 404 proves nothing.
        Control = "control",
    }
}

/// A set of answers, one bit each. Unknown bits are dropped on construction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "u16", into = "u16")]
pub struct EvidenceSet(u16);

const _: () = assert!(Evidence::ALL.len() <= u16::BITS as usize);

impl Evidence {
    /// Returns the source of the answer: `rdap`, `whois`, `dns` or `list`.
    pub fn source(self) -> &'static str {
        use Evidence::{
            Control, Delegated, NotDelegated, RdapFound, RdapNone, RdapReserved, ReleaseAhead,
            ReleasePast, WhoisFound, WhoisNone, WhoisReserved,
        };
        match self {
            RdapFound | RdapNone | RdapReserved | Control => "rdap",
            WhoisFound | WhoisNone | WhoisReserved => "whois",
            Delegated | NotDelegated => "dns",
            ReleaseAhead | ReleasePast => "list",
        }
    }
}

impl EvidenceSet {
    /// Returns the set with `evidence` added.
    #[must_use]
    pub fn with(self, evidence: Evidence) -> EvidenceSet {
        EvidenceSet(self.0 | 1 << evidence as u16)
    }

    /// Returns the set without `evidence`.
    #[must_use]
    pub fn without(self, evidence: Evidence) -> EvidenceSet {
        EvidenceSet(self.0 & !(1 << evidence as u16))
    }

    /// Returns true if nothing is known: observations of older versions have no evidence.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns true if `evidence` is in the set.
    pub fn has(self, evidence: Evidence) -> bool {
        self.0 & 1 << evidence as u16 != 0
    }

    /// Returns the number of sources that have no such name. A 404 without a control may come from a server
    /// that is not in charge of the suffix.
    fn free(self) -> u32 {
        let rdap = self.has(Evidence::RdapNone) && self.has(Evidence::Control);
        let others = [Evidence::WhoisNone, Evidence::NotDelegated].map(|one| self.has(one));
        u32::from(rdap) + others.into_iter().map(u32::from).sum::<u32>()
    }

    /// Returns true if two sources agree that there is no such name.
    pub fn agrees(self) -> bool {
        self.free() >= 2
    }

    /// Returns true if a source has no such name and none describes it: a rule or a list keeps it.
    pub fn is_free_but_kept(self) -> bool {
        use Evidence::{
            NotDelegated, RdapFound, RdapNone, RdapReserved, WhoisFound, WhoisNone, WhoisReserved,
        };
        let has_any = |these: &[Evidence]| these.iter().any(|&one| self.has(one));
        has_any(&[RdapNone, WhoisNone, NotDelegated])
            && !has_any(&[RdapFound, WhoisFound, RdapReserved, WhoisReserved])
    }

    /// Returns the answers in the order of [`Evidence::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Evidence> {
        Evidence::ALL.into_iter().filter(move |&evidence| self.has(evidence))
    }
}

impl From<u16> for EvidenceSet {
    fn from(bits: u16) -> EvidenceSet {
        EvidenceSet(bits & ((1 << Evidence::ALL.len()) - 1))
    }
}

impl From<EvidenceSet> for u16 {
    fn from(set: EvidenceSet) -> u16 {
        set.0
    }
}

impl FromIterator<Evidence> for EvidenceSet {
    fn from_iter<I: IntoIterator<Item = Evidence>>(evidence: I) -> EvidenceSet {
        evidence.into_iter().fold(EvidenceSet::default(), EvidenceSet::with)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sets_are_stored_as_their_bits(bits: u16) {
            let set = EvidenceSet::from(bits);
            prop_assert_eq!(EvidenceSet::from(u16::from(set)), set);
            prop_assert_eq!(set.iter().collect::<EvidenceSet>(), set);
        }
    }
}
