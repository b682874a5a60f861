//! Classes of the name servers that a name had when it left its zone.

use crate::named::{named_enum, parse_named};

named_enum! {
    /// How a name was used, by its name servers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum NsClass {
        /// A market showed it as for sale.
        ForSale = "for-sale",
        /// It showed advertisements.
        Parked = "parked",
        /// Its registrar had suspended it, or showed that it had expired.
        Expired = "expired",
        /// A registrar for brands kept it for a company.
        BrandKeeper = "brand-keeper",
        /// It was at a service for sites.
        Hosted = "hosted",
    }
}
parse_named!(NsClass);

impl NsClass {
    /// Returns the class of a number; `None` for 0, and for the numbers of a newer version.
    pub fn from_number(number: u8) -> Option<NsClass> {
        NsClass::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// Returns its number in the files of zones. Numbers never change.
    pub fn number(class: Option<NsClass>) -> u8 {
        class.map_or(0, |class| class as u8 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_classes_stay() {
        let numbers = NsClass::ALL.map(|class| (class.as_str(), NsClass::number(Some(class))));
        let kept =
            [("for-sale", 1), ("parked", 2), ("expired", 3), ("brand-keeper", 4), ("hosted", 5)];
        assert_eq!(numbers, kept);
        assert_eq!(NsClass::number(None), 0);
        for number in 0..=u8::MAX {
            let class = NsClass::from_number(number);
            assert_eq!(class.is_some(), (1..=5).contains(&number));
            assert!(class.is_none() || NsClass::number(class) == number);
        }
    }
}
