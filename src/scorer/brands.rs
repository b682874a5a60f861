//! Labels that are known as a mark (`data/scorer/brands.txt`), lookalike spellings, misspellings, and
//! marks with a word that their customers would add. Lookalikes use similar letters of other scripts
//! or digits. Nothing here depends on the corpus: misspellings of a famous site are registered in
//! many TLDs.

use rustc_hash::{FxHashMap, FxHashSet};
use unicode_security::confusable_detection::skeleton;

use super::dictionary::Token;
use super::facts::Caps;
use super::label::{Label, OTHER};
use super::near::{Known, Near};

static TABLE: &str = include_str!("../../data/scorer/brands.txt");

/// Minimum letters of marks whose misspellings are detected even if the mark is not among the
/// best-known.
const LONG_LETTERS_MIN: usize = 8;
/// Maximum bytes of a label.
const LABEL_BYTES: usize = 63;
/// Minimum letters of a mark that is recognised before or after other words.
const EXTENDED_LETTERS_MIN: usize = 3;
/// Maximum letters of the words in [`BEFORE`] and [`BEHIND`].
const WORD_LETTERS_MAX: usize = 9;
/// Level from which a word is common; names that combine it with other words do not mean the mark.
const COMMON_LEVEL: u8 = 5;

/// Words that customers of a brand, or those who imitate it, put before its name.
const BEFORE: [&str; 18] = [
    "best", "buy", "cheap", "com", "download", "free", "get", "go", "hello", "join", "login", "my",
    "new", "official", "shop", "the", "try", "www",
];
/// Words that they put behind its name.
const BEHIND: [&str; 91] = [
    "account",
    "accounts",
    "ads",
    "ai",
    "app",
    "apps",
    "bank",
    "bonus",
    "book",
    "books",
    "business",
    "card",
    "cards",
    "careers",
    "casino",
    "club",
    "cloud",
    "code",
    "codes",
    "coin",
    "com",
    "corp",
    "coupon",
    "coupons",
    "credit",
    "crypto",
    "deal",
    "deals",
    "delivery",
    "direct",
    "discount",
    "download",
    "downloads",
    "express",
    "fan",
    "fans",
    "free",
    "game",
    "games",
    "gift",
    "gifts",
    "global",
    "group",
    "help",
    "hotel",
    "hotels",
    "inc",
    "insurance",
    "jobs",
    "login",
    "mail",
    "mall",
    "market",
    "mobile",
    "movie",
    "movies",
    "music",
    "net",
    "news",
    "nft",
    "official",
    "online",
    "order",
    "outlet",
    "parts",
    "pay",
    "plus",
    "premium",
    "prime",
    "pro",
    "promo",
    "rewards",
    "sale",
    "sales",
    "savings",
    "secure",
    "security",
    "service",
    "services",
    "shop",
    "signin",
    "site",
    "stock",
    "store",
    "support",
    "tickets",
    "token",
    "tv",
    "usa",
    "video",
    "wallet",
];

/// Level from which two words are taken for a phrase.
const PHRASE_LEVEL: u8 = 8;

/// How well a mark is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fame {
    /// Hardly anybody means anything else by the label.
    Mark,
    /// The label is also a word, or few know the mark.
    Also,
    /// No mark, but a label of its own that is one letter from one.
    Own,
}

/// The indexed list of marks.
pub struct Brands {
    marks: FxHashMap<&'static str, Fame>,
    /// The marks in the form that [`look`] returns.
    looks: FxHashMap<String, Fame>,
    /// Marks whose misspellings are detected.
    near: Near,
    before: FxHashSet<&'static str>,
    behind: FxHashSet<&'static str>,
}

/// Reads a row: the mark, its fame, and the number of asterisks.
fn parse(row: &'static str) -> (&'static str, Fame, usize) {
    let (mark, signs) = row.split_once(' ').unwrap_or((row, ""));
    let fame = match signs.as_bytes() {
        [b'~', ..] => Fame::Also,
        [b'!'] => Fame::Own,
        _ => Fame::Mark,
    };
    (mark, fame, signs.matches('*').count())
}

impl Brands {
    /// Loads the list compiled into the program.
    pub fn load() -> Brands {
        let rows = TABLE.lines().filter(|line| !line.starts_with('#'));
        let rows: Vec<_> = rows.map(parse).collect();
        let near = rows.iter().filter_map(|&(mark, fame, stars)| {
            let long = fame == Fame::Mark && mark.len() >= LONG_LETTERS_MIN;
            (stars > 0 || long).then_some(Known { label: mark, any: stars > 1 })
        });
        Brands {
            marks: rows.iter().map(|&(mark, fame, _)| (mark, fame)).collect(),
            looks: rows.iter().map(|&(mark, fame, _)| (look_of_ascii(mark), fame)).collect(),
            near: Near::new(near),
            before: BEFORE.into_iter().collect(),
            behind: BEHIND.into_iter().collect(),
        }
    }

    /// Returns the caps of a label that is a mark, resembles one or extends one.
    pub fn caps(&self, label: &Label, tokens: &[Token]) -> Caps {
        let mut buffer = [0; LABEL_BYTES];
        let Some(text) = joined(label.whole_text(), &mut buffer) else { return Caps::default() };
        let fame = self.marks.get(text).copied();
        let is_known = || self.looks_known(label, text) || self.is_near(text, tokens);
        match fame {
            Some(Fame::Own) => Caps::default(),
            Some(Fame::Mark) => Caps::BRAND,
            _ if is_known() => Caps::BRAND,
            Some(Fame::Also) => Caps::ALSO_BRAND.when(!label.idn),
            None => self.extended(label, text, tokens),
        }
    }

    /// Returns true for a label that imitates the look of a mark.
    fn looks_known(&self, label: &Label, text: &str) -> bool {
        // Of the ASCII characters in labels, only these resemble others.
        let deceives = label.idn || text.contains(['0', '1']) || text.contains("rn");
        if !deceives {
            return false;
        }
        match self.looks.get(&look(label.written())) {
            Some(Fame::Mark) => true,
            // `über` is a word, and so is what it looks like; letters of another script are not.
            Some(Fame::Also) => text.as_bytes().contains(&OTHER),
            _ => false,
        }
    }

    /// Returns true if the label differs from a mark by one typing error, unless it is a known label
    /// or consists of words.
    fn is_near(&self, text: &str, tokens: &[Token]) -> bool {
        let mut misspelt = self.near.misspelt(text).filter(|_| !self.marks.contains_key(text));
        misspelt.next().is_some_and(|(_, mark)| {
            tokens.len() > 1 && text.contains(mark) || !reads_as_words(tokens)
        })
    }

    /// Returns the caps of a mark with a word of [`BEFORE`] or [`BEHIND`].
    fn extended(&self, label: &Label, text: &str, tokens: &[Token]) -> Caps {
        let from = EXTENDED_LETTERS_MIN.max(text.len().saturating_sub(WORD_LETTERS_MAX));
        let behind = (from..text.len()).filter_map(|at| text.split_at_checked(at));
        let behind = behind.filter(|(_, rest)| self.behind.contains(rest)).map(|(mark, _)| mark);
        let to = text.len().saturating_sub(EXTENDED_LETTERS_MIN).min(WORD_LETTERS_MAX);
        let before = (0..=to).filter_map(|at| text.split_at_checked(at));
        let before = before.filter(|(word, _)| self.before.contains(word)).map(|(_, mark)| mark);
        let is_common = |mark: &str| {
            let mut words = tokens.iter().filter(|token| token.level() >= COMMON_LEVEL);
            words.any(|word| label.text(word.start, word.end) == mark)
        };
        let caps = behind.chain(before).filter_map(|mark| match self.marks.get(mark)? {
            Fame::Mark => Some(Caps::TRADEMARK),
            Fame::Also => Some(Caps::ALSO_BRAND.when(!is_common(mark))),
            Fame::Own => None,
        });
        caps.fold(Caps::default(), Caps::with)
    }
}

/// Returns the label without hyphens.
fn joined<'a>(text: &'a str, buffer: &'a mut [u8; LABEL_BYTES]) -> Option<&'a str> {
    if text.as_bytes().contains(&OTHER) {
        // Such a label can only resemble a mark.
        return Some(text);
    }
    if !text.contains('-') {
        return Some(text);
    }
    let mut length = 0;
    for byte in text.bytes().filter(|&byte| byte != b'-') {
        *buffer.get_mut(length)? = byte;
        length += 1;
    }
    std::str::from_utf8(&buffer[..length]).ok()
}

/// Returns true for a word, and for two common words of the same language: `trip`, `add` and `visor`
/// or `face` followed by Swedish `bok` are a coincidence.
fn reads_as_words(tokens: &[Token]) -> bool {
    match tokens {
        [word] => word.is_word(),
        [one, other] => {
            let is_common = |token: &Token| token.level() >= PHRASE_LEVEL && token.len() >= 3;
            one.kind == other.kind && is_common(one) && is_common(other)
        }
        _ => false,
    }
}

/// Returns the visual form of a text: its skeleton by UTS #39, without diacritics and hyphens.
fn look(text: &str) -> String {
    let is_mark = |char: &char| ('\u{300}'..='\u{36f}').contains(char);
    let chars = skeleton(text).filter(|char| !is_mark(char) && *char != '-');
    chars.flat_map(char::to_lowercase).collect()
}

/// The same as [`look`] for a label of `a` to `z` and digits, in which few characters change.
fn look_of_ascii(label: &str) -> String {
    label.replace('0', "o").replace('1', "l").replace('m', "rn")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::name::DomainName;
    use crate::{Coverage, Features, Scored, Scorer, Scratch, Spread, StoredScore};

    fn scored(name: &str, spread: Spread) -> Scored {
        let parsed = DomainName::parse(name).expect(name);
        Scorer::shared().score(&parsed, spread, &mut Scratch::default())
    }

    fn caps(name: &str, tlds: u32) -> Vec<&'static str> {
        scored(name, Spread::of(tlds)).signals.caps.iter().map(|cap| cap.name).collect()
    }

    #[test]
    fn every_row_is_a_label_in_order() {
        let rows = TABLE.lines().filter(|line| !line.starts_with('#'));
        assert!(rows.clone().all(|row| {
            row.split_once(' ')
                .is_none_or(|(_, signs)| ["*", "**", "~", "~*", "!"].contains(&signs))
        }));
        let marks: Vec<_> = rows.map(|row| parse(row).0).collect();
        assert!(marks.is_sorted_by(|one, next| one < next), "sorted, none twice");
        for mark in marks {
            assert_eq!(look_of_ascii(mark), look(mark));
            let plain = mark.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
            assert!(plain && mark.len() <= LABEL_BYTES, "{mark}");
        }
    }

    #[test]
    fn words_around_marks_have_the_lengths_that_are_tried() {
        let mut words = BEFORE.iter().chain(&BEHIND);
        assert!(words.all(|word| (2..=WORD_LETTERS_MAX).contains(&word.len())));
    }

    #[test]
    fn marks_and_their_imitations_are_capped() {
        for name in [
            "google.com",
            "coca-cola.pl",
            "boeing.com",
            "nutella.xyz",
            "amazóń.com",
            "ḟacebook.com",
            "уаһоо.com",
            "arnazon.com",
            "paypa1.net",
            "g00gle.com",
            "rnicrosoft.com",
        ] {
            assert!(caps(name, 1).contains(&"brand"), "{name}: {:?}", caps(name, 1));
        }
    }

    /// Spreads of a label in no corpus, and in corpora of 50 thousand to 17 million names.
    fn spreads() -> impl Iterator<Item = Spread> {
        let corpora = [0, 500, 10_000, 60_000, 170_000].map(Coverage::from_found);
        corpora
            .into_iter()
            .flat_map(|coverage| [0, 1, 3, 10, 60, 1000].map(|tlds| Spread { tlds, coverage }))
    }

    #[test]
    fn brands_and_their_misspellings_are_capped_in_any_corpus() {
        for name in [
            "amazon.com",
            "amazn.com",
            "gooogle.com",
            "twiter.com",
            "redit.com",
            "facebok.com",
            "faceebook.com",
            "wikipdeia.org",
            "instagran.com",
            "netfilx.de",
            "youtubs.com",
            "yahooo.com",
            "yaboo.com",
            "outube.com",
            "cloudfare.com",
            "telgeram.org",
            "goog1e.com",
            "аррӏе.com",
        ] {
            for spread in spreads() {
                let dqs = scored(name, spread).dqs.points();
                assert!(dqs <= 20, "{name}: {dqs} with {spread:?}");
            }
        }
    }

    #[test]
    fn other_labels_keep_their_score_in_a_large_corpus() {
        for name in [
            "goggle.com",
            "twitted.com",
            "ready.com",
            "credit.com",
            "reddish.com",
            "applet.com",
            "redhot.com",
            "starline.com",
            "webchat.com",
            "openapi.com",
            "youtuber.com",
            "motion.com",
            "weekly.com",
        ] {
            assert!(!caps(name, 60).contains(&"brand"), "{name}");
        }
    }

    #[test]
    fn marks_with_a_word_of_their_customers_are_capped() {
        for name in [
            "amazonbook.com",
            "gotinder.com",
            "attsavings.com",
            "zalando-shop.de",
            "getnetflix.com",
            "revolutlogin.com",
            "mybarclays.co.uk",
            "bmwparts.com",
        ] {
            assert!(caps(name, 1).contains(&"trademark"), "{name}: {:?}", caps(name, 1));
        }
        for name in ["steamshop.com", "myorange.fr", "applestore.de", "shellgame.com"] {
            assert!(!caps(name, 1).contains(&"trademark"), "{name}");
        }
    }

    #[test]
    fn words_that_are_also_a_brand_are_worth_a_remark() {
        for name in ["steam.com", "stake.com", "puma.com", "oracle.com", "solana.com", "glock.com"]
        {
            let scored = scored(name, Spread::of(200));
            assert!((75..=90).contains(&scored.dqs.points()), "{name}: {}", scored.dqs);
            assert_eq!(scored.signals.caps.first().map(|cap| cap.max), Some(90), "{name}");
            let said = &scored.explanation;
            assert!(said.ends_with("also a known brand"), "{said}");
            let known = StoredScore {
                label: name.trim_end_matches(".com"),
                tld: "com",
                spread: Spread::of(200),
                features: Features::NONE,
            };
            assert!(!Scorer::shared().traits(known, &mut Scratch::default()).capped, "{name}");
        }
        let low = scored("uberx-steam.top", Spread::UNKNOWN);
        assert!(low.signals.caps.is_empty(), "only the whole label counts");
    }

    #[test]
    fn words_and_names_near_a_mark_are_free() {
        for name in [
            "cloud.com",
            "phone.net",
            "pillow.de",
            "being.co",
            "boxing.io",
            "winecraft.com",
            "applle.com",
            "x-cloud.com",
            "lipay.com",
            "über.de",
            "solar.com",
            "hilton.co",
            "ab.de",
        ] {
            assert!(!caps(name, 1).contains(&"brand"), "{name}");
        }
    }
}
