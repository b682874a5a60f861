//! A run of letters in, the most probable sentence of English words out.
//!
//! The model is that of the crate `instant-segment`, to the last bit: a word is as likely as it is
//! frequent, or as it is frequent after the word before it, and letters that are no word are the
//! less likely the more they are. The search is our own: from every place where a sentence may go
//! on, it walks one trie of all words, and substrings that begin no word are not looked up.

use super::trie::{self, Trie};

/// The longest word that is looked for, in letters.
pub const WORD_LETTERS_MAX: usize = 16;
/// The number of what is no word.
const NO_WORD: u16 = u16::MAX;
/// A slot of [`Pairs`] without a pair: it would be that of two equal, the last possible words.
const NO_PAIR: u32 = u32::MAX;

/// A word as [`Segmenter::new`] takes it.
#[derive(Clone, Copy, Debug)]
pub struct Counted<'a> {
    /// In `a` to `z`.
    pub word: &'a str,
    /// How often it occurs: not never.
    pub count: u64,
    /// Comes back with every [`Segment`] that is this word.
    pub level: u8,
}

/// Two words that follow each other, and how often they do.
pub type CountedPair<'a> = ((&'a str, &'a str), u64);

/// Probabilities of words and of pairs of them.
pub struct Segmenter {
    trie: Trie,
    /// By number of the word: the decimal logarithm of its share.
    scores: Vec<f64>,
    levels: Vec<u8>,
    pairs: Pairs,
    /// By letters: what is no word scores.
    unknown: [f64; WORD_LETTERS_MAX + 1],
}

/// Scores of words after other words: a hash table with open addressing.
struct Pairs {
    /// Words with a lower number than this have pairs.
    words: u16,
    keys: Vec<u32>,
    scores: Vec<f64>,
    shift: u32,
}

/// A piece of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Bytes in it.
    pub len: u8,
    /// That of the word; 0 for what is no word.
    pub level: u8,
}

/// What a search works in; reused from text to text.
#[derive(Clone, Default)]
pub struct Search {
    /// By end: the best sentence that ends there.
    best: Vec<Candidate>,
    segments: Vec<Segment>,
}

#[derive(Clone, Copy)]
struct Candidate {
    score: f64,
    /// The number of the last word.
    word: u16,
    /// Its letters.
    len: u8,
}

/// Worse than any.
const NONE: Candidate = Candidate { score: f64::NEG_INFINITY, word: NO_WORD, len: 0 };

impl Segmenter {
    /// A model of `words`, all different, and of `pairs`. A pair whose second word is unknown is
    /// passed over; one whose first word is unknown only adds to the number of all pairs.
    pub fn new(mut words: Vec<Counted<'_>>, pairs: &[CountedPair<'_>]) -> Segmenter {
        // Words with pairs come first, so that most others are known by their number to have none.
        let members: rustc_hash::FxHashSet<&str> =
            pairs.iter().flat_map(|&((first, second), _)| [first, second]).collect();
        words.truncate(trie::WORDS_MAX - 1);
        words.sort_by_key(|word| !members.contains(word.word));
        let paired = words.iter().take_while(|word| members.contains(word.word)).count();
        let texts: Vec<_> = words.iter().map(|word| word.word).collect();
        // Counts stay far below 2^53: their sum is exact.
        let total = words.iter().map(|word| word.count).sum::<u64>() as f64;
        let scores: Vec<_> = words.iter().map(|word| (word.count as f64 / total).log10()).collect();
        let numbers = texts[..paired].iter().copied().zip(0..).collect();
        Segmenter {
            pairs: Pairs::new(paired as u16, &numbers, pairs, &scores),
            trie: Trie::new(&texts),
            levels: words.iter().map(|word| word.level).collect(),
            unknown: std::array::from_fn(|letters| unknown(letters, total.log10())),
            scores,
        }
    }

    /// Splits `text` of `a` to `z`.
    pub fn segment<'s>(&self, text: &str, search: &'s mut Search) -> &'s [Segment] {
        let text = text.as_bytes();
        search.best.clear();
        search.best.resize(text.len() + 1, NONE);
        search.best[0].score = 0.0;
        for start in 0..text.len() {
            self.go_on(&text[start..], &mut search.best[start..]);
        }
        search.segments.clear();
        let mut end = text.len();
        while end > 0 {
            let Candidate { word, len, .. } = search.best[end];
            let level = self.levels.get(usize::from(word)).copied().unwrap_or_default();
            search.segments.push(Segment { len, level });
            end -= usize::from(len);
        }
        search.segments.reverse();
        &search.segments
    }

    /// Tries what may follow `best[0]`, which is final: `text` begins after it.
    fn go_on(&self, text: &[u8], best: &mut [Candidate]) {
        let Some((&mut before, best)) = best.split_first_mut() else { return };
        let most = text.len().min(best.len()).min(WORD_LETTERS_MAX);
        let (text, best) = (&text[..most], &mut best[..most]);
        let mut walk = self.trie.walk();
        let mut len = 0;
        // Of equals the one that began first stays.
        while let Some(&letter) = text.get(len) {
            let Some(word) = walk.step(letter) else { break };
            let (word, score) = match word {
                Some(word) => (word, self.score(word, before.word)),
                None => (NO_WORD, self.unknown[len + 1]),
            };
            let score = score + before.score;
            if best[len].score < score {
                best[len] = Candidate { score, word, len: len as u8 + 1 };
            }
            len += 1;
        }
        for (len, (best, unknown)) in (1..).zip(best.iter_mut().zip(&self.unknown[1..])).skip(len) {
            let score = unknown + before.score;
            if best.score < score {
                *best = Candidate { score, word: NO_WORD, len };
            }
        }
    }

    fn score(&self, word: u16, before: u16) -> f64 {
        let pair = self.pairs.get(before, word);
        pair.unwrap_or_else(|| self.scores[usize::from(word)])
    }
}

/// Of so many letters that are no word: a penalty for each word that there should have been.
fn unknown(letters: usize, total_log10: f64) -> f64 {
    let letters = letters as f64;
    let words = letters / 5.0;
    (1.0 - total_log10 - letters) * words
}

impl Pairs {
    /// `numbers` are those of the words below `words`, `scores` their own by number.
    fn new(
        words: u16,
        numbers: &rustc_hash::FxHashMap<&str, u16>,
        counted: &[CountedPair<'_>],
        scores: &[f64],
    ) -> Pairs {
        let known = counted.iter().filter(|((_, second), _)| numbers.contains_key(second));
        let total = known.clone().map(|&(_, count)| count).sum::<u64>() as f64;
        let slots = (2 * counted.len() + 1).next_power_of_two().max(2);
        let shift = u64::BITS - slots.ilog2();
        let mut pairs =
            Pairs { words, keys: vec![NO_PAIR; slots], scores: vec![0.0; slots], shift };
        for &((first, second), count) in known {
            let Some(&first) = numbers.get(first) else { continue };
            let key = key(first, numbers[second]);
            let slot = pairs.slot(key);
            pairs.keys[slot] = key;
            // The probability of the second word given the first.
            pairs.scores[slot] = (count as f64 / total).log10() - scores[usize::from(first)];
        }
        pairs
    }

    /// The score of the word `second` after `first`.
    #[inline]
    fn get(&self, first: u16, second: u16) -> Option<f64> {
        if first >= self.words || second >= self.words {
            return None;
        }
        let slot = self.slot(key(first, second));
        (self.keys[slot] != NO_PAIR).then(|| self.scores[slot])
    }

    /// Where this key stands, or would.
    fn slot(&self, key: u32) -> usize {
        let mut slot = (u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize;
        while self.keys[slot] != key && self.keys[slot] != NO_PAIR {
            slot = (slot + 1) & (self.keys.len() - 1);
        }
        slot
    }
}

fn key(first: u16, second: u16) -> u32 {
    u32::from(first) << 16 | u32::from(second)
}

#[cfg(test)]
mod tests {
    use compact_str::CompactString;

    use super::super::dictionary::english_model;
    use super::*;

    /// The crate that the model comes from, over the same words.
    fn oracle(words: &[Counted<'_>], pairs: &[CountedPair<'_>]) -> instant_segment::Segmenter {
        let words = words.iter().map(|word| (CompactString::new(word.word), word.count as f64));
        let pairs = pairs.iter().map(|&((first, second), count)| {
            ((CompactString::new(first), CompactString::new(second)), count as f64)
        });
        let mut oracle = instant_segment::Segmenter::new(words, pairs);
        oracle.set_limit(WORD_LETTERS_MAX);
        oracle
    }

    struct Both {
        ours: Segmenter,
        oracle: instant_segment::Segmenter,
        search: Search,
        oracle_search: instant_segment::Search,
    }

    impl Both {
        fn new(words: Vec<Counted<'_>>, pairs: &[CountedPair<'_>]) -> Both {
            let (search, oracle_search) = Default::default();
            let oracle = oracle(&words, pairs);
            Both { oracle, ours: Segmenter::new(words, pairs), search, oracle_search }
        }

        #[track_caller]
        fn check(&mut self, text: &str) {
            let expected = self.oracle.segment(text, &mut self.oracle_search).expect("a to z");
            let score = expected.score();
            let expected: Vec<_> = expected.map(str::len).collect();
            let segments = self.ours.segment(text, &mut self.search);
            let segments: Vec<_> =
                segments.iter().map(|segment| usize::from(segment.len)).collect();
            assert_eq!(segments, expected, "{text}");
            let own = self.search.best[text.len()].score;
            assert_eq!(own.to_bits(), score.to_bits(), "{text}: {own} {score}");
        }
    }

    fn draws() -> impl FnMut(usize) -> usize {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 20) as usize % below
        }
    }

    #[test]
    fn small_models_with_many_ties_split_as_the_crate_does() {
        let words = ["a", "b", "c", "ab", "ba", "abc", "cab", "bca", "abcabc", "aaaaaaaaaaaaaaaab"];
        let words = words.map(|word| Counted { word, count: 8 >> (word.len() % 3), level: 1 });
        let pairs = [(("a", "b"), 9), (("ab", "c"), 9), (("x", "c"), 5), (("c", "x"), 5)];
        let mut both = Both::new(words.to_vec(), &pairs);
        let mut draw = draws();
        for letters in (0..=70).chain((0..3000).map(|number| number % 40)) {
            let text: String = (0..letters).map(|_| char::from(b'a' + draw(4) as u8)).collect();
            both.check(&text);
        }
    }

    #[test]
    fn names_split_as_the_crate_does() {
        let (words, pairs) = english_model();
        let texts: Vec<_> = words.iter().map(|word| word.word).collect();
        let mut both = Both::new(words, &pairs);
        let mut sample = String::new();
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/data/sample/sample.csv.gz");
        let file = std::fs::File::open(file).expect("the sample is there");
        std::io::Read::read_to_string(&mut flate2::read::MultiGzDecoder::new(file), &mut sample)
            .expect("a text");
        let runs = sample.lines().filter_map(|line| line.split_once('.')?.0.split('-').next());
        for run in runs.filter(|run| run.bytes().all(|byte| byte.is_ascii_lowercase())) {
            both.check(run);
        }
        let mut draw = draws();
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..=draw(5) {
                match draw(5) {
                    0 => text.extend((0..draw(20)).map(|_| char::from(b'a' + draw(26) as u8))),
                    1 | 2 => text.push_str(texts[draw(texts.len().min(2000))]),
                    _ => text.push_str(texts[draw(texts.len())]),
                }
            }
            both.check(&text);
        }
    }
}
