//! Pages that ask before a form takes effect: when it would replace what the owner set by hand, and when a
//! price was written in a way that not everybody reads alike. The page sends the form again with the
//! answer, so it needs no scripts and keeps nothing on the server.

use maud::{Markup, html};

use crate::accounts::{UserData, WatchPatch};
use crate::components::{amount, grouped};
use crate::form::Fields;
use crate::layout::{NavItem, Page};
use crate::logged_in::LoggedIn;
use crate::owned::STYLES;
use crate::service::watchlist::Overwrites;
use crate::vocab::money::{Amount, Currency, Usd};
use crate::vocab::name::DomainName;
use crate::vocab::named::{named_enum, parse_named};
use crate::vocab::number::DecimalMark;

/// Name of the field with the answer.
const EXISTING: &str = "existing";
/// Name of the field with the number of names that the question was about.
const COUNTED: &str = "counted";

named_enum! {
    /// The answer: what a change does to values that are already set.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Existing {
        Replace = "replace",
        Keep = "keep",
    }
}
parse_named!(Existing);

/// A form that may have to be confirmed.
pub struct Asking<'a> {
    pub member: &'a LoggedIn,
    pub item: NavItem,
    /// Path of the form.
    pub path: &'a str,
    /// Page of the form.
    pub back: &'a str,
    pub fields: &'a Fields,
    /// Fields with prices, and their labels.
    pub prices: &'a [(&'a str, &'a str)],
    /// Currency of prices that state none; `None` if all are in US dollars.
    pub currency: Option<Currency>,
}

/// A price as it was written and as it is read.
struct Reading<'a> {
    field: &'a str,
    label: &'a str,
    written: &'a str,
    price: Amount,
}

impl Asking<'_> {
    /// Returns the page that shows how the prices are read; `None` if they are read the same way
    /// everywhere. The form itself refuses a text that is not a price.
    pub fn about_prices(&self) -> Option<Markup> {
        let read = self.read();
        (!read.is_empty()).then(|| self.page(&read, None))
    }

    /// Checks changes of several names. Returns whether values that are already set stay, which also holds
    /// for values that another page sets meanwhile.
    ///
    /// # Errors
    /// The page that asks first; nothing is saved.
    pub fn about_changes<'b>(
        &self,
        owned: &UserData,
        changes: impl ExactSizeIterator<Item = (&'b DomainName, &'b WatchPatch)>,
    ) -> Result<bool, Markup> {
        let names = changes.len();
        let overwrites = Overwrites::new(owned, changes);
        let answer: Option<Existing> = self.fields.text(EXISTING).parse().ok();
        let counted = self.fields.text(COUNTED).parse();
        let replaces = answer == Some(Existing::Replace) && counted == Ok(overwrites.names);
        let is_open = overwrites.names > 0 && !replaces && answer != Some(Existing::Keep);
        let read = self.read();
        if is_open || !read.is_empty() {
            return Err(self.page(&read, is_open.then_some((overwrites, names))));
        }
        Ok(!replaces)
    }

    fn usual(&self) -> Currency {
        self.currency.unwrap_or(Currency::USD)
    }

    fn read(&self) -> Vec<Reading<'_>> {
        let all = self.prices.iter().filter_map(|(field, label)| {
            let written = self.fields.text(field).trim();
            let price = match self.currency {
                Some(usual) => Amount::from_text(written, usual, DecimalMark::Either).ok()?,
                None => Usd::from_text(written, DecimalMark::Either).ok()?.into(),
            };
            (!Amount::is_exact(written)).then_some(Reading { field, label, written, price })
        });
        all.collect()
    }

    fn page(&self, read: &[Reading<'_>], question: Option<(Overwrites, usize)>) -> Markup {
        let price_of = |name: &str| read.iter().find(|it| it.field == name).map(|it| it.price);
        let is_answer = |name: &str| [EXISTING, COUNTED].contains(&name);
        let sent = self.fields.iter().filter(|(name, _)| !is_answer(name) || question.is_none());
        let title = if question.is_some() { "Replace what you set?" } else { "Save these prices?" };
        Page::new(title, "Check before it is saved.").at(self.item).styles(STYLES).show(
            Some(&self.member.viewer),
            html! {
                section.narrow.panel {
                    h1 { (title) }
                    @if let Some((overwrites, names)) = &question { (overwritten(overwrites, *names)) }
                    @if !read.is_empty() { (readings(read, self.usual())) }
                    form.actions method="post" action=(self.path) {
                        @for (name, value) in sent {
                            @match price_of(name) {
                                Some(price) => { input type="hidden" name=(name) value=(written(price, self.usual())); }
                                None => { input type="hidden" name=(name) value=(value); }
                            }
                        }
                        @if let Some((overwrites, _)) = &question {
                            input type="hidden" name=(COUNTED) value=(overwrites.names);
                            button type="submit" name=(EXISTING) value=(Existing::Keep) { "Keep what is set" }
                            button.danger type="submit" name=(EXISTING) value=(Existing::Replace) { "Replace" }
                        } @else {
                            button type="submit" { "Save" }
                        }
                        a.button.quiet href=(self.back) { "Cancel" }
                    }
                }
            },
        )
    }
}

/// Renders how many names have other values.
fn overwritten(overwrites: &Overwrites, names: usize) -> Markup {
    let of = |count: usize, what: &str| match count {
        1 => format!("1 has another {what}"),
        _ => format!("{} have another {what}", grouped(count as u64)),
    };
    let higher = match overwrites.higher_bids {
        0 => String::new(),
        count if count == overwrites.bids => ", which is higher".to_owned(),
        count => format!(", {} of them a higher one", grouped(count as u64)),
    };
    let selected = match names {
        1 => "The name already has notes of yours:".to_owned(),
        _ => format!(
            "{} of the {} names already have notes of yours:",
            grouped(overwrites.names as u64),
            grouped(names as u64)
        ),
    };
    html! {
        p { (selected) }
        ul {
            @if overwrites.bids > 0 { li { (of(overwrites.bids, "maximum bid")) (higher) } }
            @if overwrites.venues > 0 { li { (of(overwrites.venues, "venue")) } }
            @if overwrites.notes > 0 { li { (of(overwrites.notes, "note")) } }
        }
        p.soft { "The other names get the new values either way. Tags are added and replace none." }
    }
}

/// Writes an amount for a field in which `usual` is the currency of amounts that state none.
pub fn written(amount: Amount, usual: Currency) -> String {
    let number = amount.number();
    if amount.currency() == usual {
        number
    } else {
        format!("{number} {}", amount.currency().as_str())
    }
}

/// Renders prices as written and as read.
fn readings(read: &[Reading<'_>], usual: Currency) -> Markup {
    html! {
        dl.facts {
            @for Reading { label, written, price, .. } in read {
                dt { (label) " (" (usual.as_str()) ")" }
                dd { b { (amount(*price)) } " " span.soft { "written as " (written) } }
            }
        }
    }
}
