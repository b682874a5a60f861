//! The state of a name that follows from what sources say. Pure: `workers/verify` asks the sources.
//!
//! A name counts as free only if two independent sources agree, because each of them has been wrong: RDAP
//! servers that are not in charge of a suffix, gateways and maintenance pages answer 404 for registered
//! names; throttled WHOIS answers hold the words for a free name; registries withhold the delegation of
//! names that are taken.

use crate::evidence::{Evidence, EvidenceSet};
use crate::name::DomainName;
use crate::observation::RdapState;

/// A state, and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    pub state: RdapState,
    /// For [`RdapState::Available`], two sources agree. Only such a name may be sent as free.
    pub verified: bool,
}

/// Derives the state of a name. `found` is the state of a registration that RDAP or WHOIS describes.
///
/// The first rule that applies wins: a registration, a delegation, a reservation, a list that is yet to
/// release the name, two sources that have no such name, one of them, a list that has released it.
pub fn decide(evidence: EvidenceSet, found: RdapState, name: &DomainName) -> Finding {
    use Evidence::{
        Control, Delegated, NotDelegated, RdapFound, RdapNone, RdapReserved, ReleaseAhead,
        ReleasePast, WhoisFound, WhoisNone, WhoisReserved,
    };
    let has = |one| evidence.has(one);
    let finding = |state, verified| Finding { state, verified };
    let (whois, dns) = (has(WhoisNone), has(NotDelegated));
    if has(RdapFound) || has(WhoisFound) {
        finding(found, true)
    } else if has(Delegated) {
        finding(RdapState::Taken, true)
    } else if has(RdapReserved) || has(WhoisReserved) {
        finding(RdapState::Reserved, true)
    } else if has(ReleaseAhead) && (has(RdapNone) || whois || dns) {
        finding(RdapState::PendingDelete, false)
    } else if evidence.agrees() && is_reserved_by_rule(name) {
        finding(RdapState::Reserved, false)
    } else if whois || has(RdapNone) && has(Control) {
        finding(RdapState::Available, evidence.agrees())
    } else if has(ReleasePast) && dns {
        finding(RdapState::Expected, false)
    } else {
        finding(RdapState::Unknown, false)
    }
}

/// Returns true if registries keep such a name by rule: names of one or two characters in generic
/// TLDs, and labels with a technical meaning.
fn is_reserved_by_rule(name: &DomainName) -> bool {
    let (label, tld) = (name.label(), name.tld());
    let is_generic = !tld.contains('.') && tld.len() > 2;
    matches!(label, "example" | "nic" | "whois" | "www") || is_generic && label.len() <= 2
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use Evidence::{
        Control, Delegated, NotDelegated, RdapFound, RdapNone, RdapReserved, ReleaseAhead,
        ReleasePast, WhoisFound, WhoisNone, WhoisReserved,
    };

    fn name(text: &str) -> DomainName {
        DomainName::parse(text).expect(text)
    }

    /// Decides for both orders of arrival.
    #[track_caller]
    fn decided(evidence: &[Evidence], about: &str) -> (&'static str, bool) {
        let forwards: EvidenceSet = evidence.iter().copied().collect();
        let backwards: EvidenceSet = evidence.iter().rev().copied().collect();
        let decide = |set| decide(set, RdapState::Renewed, &name(about));
        assert_eq!(decide(forwards), decide(backwards));
        let Finding { state, verified } = decide(forwards);
        (state.as_str(), verified)
    }

    #[test]
    fn every_rule_has_its_state() {
        for (evidence, state, verified) in [
            (&[RdapFound][..], "renewed", true),
            (&[WhoisFound], "renewed", true),
            (&[RdapFound, NotDelegated, WhoisNone], "renewed", true),
            (&[WhoisFound, RdapNone, Control, NotDelegated], "renewed", true),
            (&[Delegated], "taken", true),
            (&[Delegated, RdapNone, Control, WhoisNone], "taken", true),
            (&[RdapReserved], "reserved", true),
            (&[WhoisReserved, RdapNone, Control, NotDelegated], "reserved", true),
            (&[ReleaseAhead, RdapNone], "pending-delete", false),
            (&[ReleaseAhead, RdapNone, Control, NotDelegated], "pending-delete", false),
            (&[ReleaseAhead, WhoisNone], "pending-delete", false),
            (&[ReleaseAhead, NotDelegated], "pending-delete", false),
            (&[RdapNone, Control, NotDelegated], "available", true),
            (&[RdapNone, Control, WhoisNone], "available", true),
            (&[WhoisNone, NotDelegated], "available", true),
            (&[ReleasePast, WhoisNone, NotDelegated], "available", true),
            (&[RdapNone, Control], "available", false),
            (&[WhoisNone], "available", false),
            (&[WhoisNone, RdapNone], "available", false),
            (&[ReleasePast, NotDelegated], "expected", false),
            (&[ReleasePast, NotDelegated, RdapNone], "expected", false),
            (&[NotDelegated], "unknown", false),
            (&[RdapNone], "unknown", false),
            (&[RdapNone, NotDelegated], "unknown", false),
            (&[ReleasePast], "unknown", false),
            (&[ReleaseAhead], "unknown", false),
            (&[Control], "unknown", false),
            (&[], "unknown", false),
        ] {
            assert_eq!(decided(evidence, "somename.com"), (state, verified), "{evidence:?}");
        }
    }

    #[test]
    fn names_that_registries_keep_are_not_free() {
        let free = [RdapNone, Control, NotDelegated];
        for about in ["example.com", "nic.pl", "whois.se", "www.de", "ab.com", "x.org", "7.info"] {
            assert_eq!(decided(&free, about), ("reserved", false), "{about}");
        }
        for about in ["abc.com", "ab.de", "examples.com", "ab.co.uk", "ab.com.pl"] {
            assert_eq!(decided(&free, about), ("available", true), "{about}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        /// A registered name whose sources are right but for one.
        #[test]
        fn one_wrong_source_never_makes_a_registered_name_free(
            rdap in 0..3, whois in 0..3, dns in 0..3, wrong in 0..3, control: bool, list in 0..3_usize,
        ) {
            let mut evidence = EvidenceSet::default();
            let mut add = |said: i32, source, truth: [Evidence; 2], lie: Evidence| {
                match (said, source == wrong) {
                    (0, _) => {}
                    (_, true) => evidence = evidence.with(lie),
                    (said, false) => evidence = evidence.with(truth[said as usize - 1]),
                }
            };
            add(rdap, 0, [RdapFound, RdapReserved], RdapNone);
            add(whois, 1, [WhoisFound, WhoisReserved], WhoisNone);
            add(dns, 2, [Delegated, Delegated], NotDelegated);
            let lists = [None, Some(ReleaseAhead), Some(ReleasePast)];
            let more = [lists[list], control.then_some(Control)];
            let evidence = evidence.iter().chain(more.into_iter().flatten()).collect::<EvidenceSet>();
            let finding = decide(evidence, RdapState::Registered, &name("somename.com"));
            prop_assert!(!(finding.state == RdapState::Available && finding.verified), "{:?}", evidence);
        }
    }
}
