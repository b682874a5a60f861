"""Generates the scorer's data about words and letters from word lists and registered names.

  words.py --sources DIR --names FILE --leave-out CSV... --segmenter COMMAND --work DIR [--keep-letters] [--out DIR]

Into data/scorer (or --out):
  letters-names.bin    the cost of each letter after the previous three, in the labels of registered names
  letters-polish.bin   the cost of each letter after the previous two, in the labels of names under pl
  letters-english.bin  the cost of each letter after the previous three, in English words
  sequences.zst        longer sequences of letters that are frequent in names, and the cost of the last letter of each
  words.tsv.zst        the words that labels consist of, their costs, and how common each is in which languages;
                       tongues.py, which runs next, adds words and the languages that claim each
and into --work vectors.npz: vectors of words by shared labels and TLDs, for benches/score --fit.
data/scorer/README.md describes the files. The values of words, which the fit adds to words.tsv.zst, are kept.

--sources holds the unpacked downloads:
  frequencywords/XX_50k.txt       github.com/hermitdave/FrequencyWords, content/2018
  google-books/1grams_LANG.csv    github.com/orgtre/google-books-ngram-frequency, ngrams
  instant-segment-en-unigrams.txt github.com/InstantDomain/instant-segment, its data
  names/*.txt                     lists of given names and surnames, one per line
  world-cities.csv                github.com/datasets/world-cities, data
--names is a list of registered names, one per line; plain, gzip or zstd. --leave-out are CSV files with names in the first
column; their labels are not counted, so that the names that the scorer is measured with are not part of its training.

COMMAND is the built bench `scoring` (cargo bench -p dropdex-scorer --bench scoring --no-run): it splits labels into words, and contains the
letters-names.bin that it was built with. If that file changes, which is reported at the end, build COMMAND again, and
run this again with --keep-letters, which keeps all files of letters.

The same files and the same COMMAND always give the same letters and words; vectors may differ in the last digit from one
machine to another. Needs Python 3.11, numpy and scipy; six million names take some minutes and 5 GB.
"""
import argparse
import csv
import math
import shlex
import subprocess
import sys
import time
import unicodedata
from array import array
from collections import Counter, defaultdict
from itertools import chain
from pathlib import Path

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix, hstack

from evaluation import open_text, write_packed

ROOT = Path(__file__).resolve().parents[2]
SCORER = ROOT / "data" / "scorer"

# Costs are information, in sixteenths of a bit.
BIT = 16

# `a` to `z`, and 0 for the edge of a run of letters.
SYMBOLS = 27
LETTERS_BEFORE = 3
# Names under pl are fewer, and three letters suffice to recognise what is not Polish.
POLISH_LETTERS_BEFORE = 2
# Minimum weight, in occurrences, of the estimate from fewer letters, by number of previous letters.
LETTERS_TRUST = [20, 10, 6, 4]

# Longer sequences: their lengths, the minimum weight of the estimate from fewer letters, the number kept, the minimum
# occurrences of each (a sequence may be a whole label, and one that a single name has must not be published), the
# steps per bit of costs, and the maximum step.
SEQUENCE_LENGTHS = range(5, 9)
SEQUENCE_TRUST = 3
SEQUENCES_KEPT, SEQUENCE_SEEN_MIN = 2_000_000, 4
SEQUENCE_STEP, SEQUENCE_COST_MAX = 2, 30

# Languages in the order of src/scorer/dictionary.rs, and their initial shares of the words in labels.
LANGUAGES = {
    "en": 0.55,
    "de": 0.07,
    "fr": 0.05,
    "es": 0.06,
    "it": 0.04,
    "pl": 0.08,
    "sv": 0.03,
    "nl": 0.03,
    "pt": 0.03,
    "da": 0.01,
    "no": 0.01,
    "fi": 0.01,
    "cs": 0.015,
    "tr": 0.015,
}
NAMES, PLACES = "names", "places"
TONGUES = [*LANGUAGES, NAMES, PLACES]
BOOKS = {"en": "english", "de": "german", "fr": "french", "es": "spanish", "it": "italian"}
UMLAUTS = {"de", "sv", "da", "no", "fi"}
GIVEN_NAMES = ["all", "us"]
SURNAMES = ["all", "de", "es", "fr", "it", "pl", "pt", "us"]

WORD_LETTERS_MAX = 24
PROPER_LETTERS = range(4, 21)
PLACE_LETTERS = range(4, 15)
# The two-letter strings that people read as words; all others would only split real words.
TWO = set(
    "ad ai am an as at ax be by dj do dr eu ex fm go he hi hr id if in io is it me mr my no "
    "of oh ok on or ox pc pr so tv uk up us vr we".split()
)
# Number of short words, the most frequent ones, for the same reason.
SHORT_ENGLISH = {3: 9_000, 4: 30_000}
SHORT_FOREIGN = {3: 2_500, 4: 12_000}
# Levels of how common a word is, in tenths, by its rank; LEVEL_LEAST is for all others.
LEVELS_ENGLISH = [(2_700, 10), (7_000, 9), (14_000, 8), (29_000, 6), (46_000, 5)]
LEVELS_FOREIGN = [(500, 9), (2_500, 8), (6_000, 7), (10_000, 6), (20_000, 5)]
LEVEL_LEAST = 4
LEVEL_GIVEN_NAME, LEVEL_PROPER = 5, 4
LEVEL_MODERN = 6

# Shares before anything is counted: of a proper name, and the minimum of a modern or two-letter word.
PROPER_SHARE, MODERN_SHARE = 3e-8, 1e-5
# Weight of these shares in counted words, and their maximum: names rarely use the most frequent words of books.
PRIOR_WORDS, PRIOR_SHARE_MAX = 500_000, 1e-4
ROUNDS = 5
# Minimum labels of a word after these rounds, counted from 1; words with fewer are dropped.
USES_MIN = {2: 2, 4: 4}
COST_MAX = 511

VECTOR_USES_MIN, VECTOR_TLDS, VECTOR_SIZE = 6, 400, 64
# Weight of a TLD, relative to that of another word of the label.
TLD_WEIGHT = 0.5
# Frequent neighbours count less than their frequency, as rare ones occur by chance.
NEIGHBOUR_POWER = 0.75

# Letters that Unicode decomposition does not change: letters with a stroke, ligatures, the dotless i.
PLAIN = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ð": "d", "ı": "i", "ß": "ss", "æ": "ae", "œ": "oe", "þ": "th"})
GERMAN = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe"})


def plain(word):
    """Returns the ASCII letters of a word without diacritics, or None if others remain."""
    text = unicodedata.normalize("NFD", word.lower().translate(PLAIN))
    text = "".join(letter for letter in text if not unicodedata.combining(letter))
    return text if text.isascii() and text.isalpha() else None


def spellings(word, umlauts):
    """Returns the spellings of a word in a domain name: without diacritics, and in German style."""
    found = [plain(word)]
    if umlauts:
        found.append(plain(unicodedata.normalize("NFC", word.lower()).translate(GERMAN)))
    return [word for word in dict.fromkeys(found) if word]


def lines(path):
    return path.read_text(encoding="utf-8-sig").splitlines()


class Labels:
    """The distinct labels of a list of names, with the TLDs of each."""

    def __init__(self, names, leave_out):
        number, tlds = {}, {}
        label_of, tld_of = array("i"), array("i")
        with open_text(names) as file:
            for line in file:
                label, _, tld = line.strip().partition(".")
                if tld and not label.startswith("xn--") and label not in leave_out:
                    label_of.append(number.setdefault(label, len(number)))
                    tld_of.append(tlds.setdefault(tld, len(tlds)))
        self.text, self.tlds = list(number), list(tlds)
        self.under = csr_matrix((np.ones(len(label_of)), (label_of, tld_of)), (len(number), len(tlds)))
        self.under.sum_duplicates()
        self.under.data[:] = 1

    def polish(self):
        """Returns those under pl or a suffix of it."""
        columns = [at for at, tld in enumerate(self.tlds) if tld.rsplit(".", 1)[-1] == "pl"]
        found = np.asarray(self.under[:, columns].sum(axis=1)).ravel() > 0
        return [self.text[at] for at in np.flatnonzero(found)]

    def under_frequent(self, count):
        """Returns only the columns of the most frequent TLDs."""
        size = np.asarray(self.under.sum(axis=0)).ravel()
        order = sorted(range(len(self.tlds)), key=lambda at: (-size[at], self.tlds[at]))
        return self.under[:, order[:count]]


def labels_of(paths):
    """Returns the labels of the names in the first column of CSV files, which may have a header."""
    found = set()
    for path in paths:
        with open_text(path) as file:
            found.update(row[0].split(".", 1)[0] for row in csv.reader(file) if row and "." in row[0])
    return found


def letter_costs(texts, weights=None, before=LETTERS_BEFORE):
    """Returns the cost of each symbol after the previous ones, as the bytes of letters-*.bin.

    The estimate from a number of letters is mixed with that from one letter fewer, whose weight is the number
    of different letters that follow (Witten and Bell), but LETTERS_TRUST or more.
    """
    text = np.frombuffer("".join(f"{text}\n" for text in texts).encode(), np.uint8)
    symbols = np.where((text >= ord("a")) & (text <= ord("z")), text & 31, 0).astype(np.int32)
    edge = symbols == 0
    kept = ~(edge & np.concatenate([[True], edge[:-1]]))
    symbols = symbols[kept]
    if weights is not None:
        weights = np.repeat(weights, [len(text) + 1 for text in texts])[kept]
    place, inside = symbols.copy(), np.ones(len(symbols), bool)
    for back in range(1, before + 1):
        earlier = np.concatenate([np.zeros(back, np.int32), symbols[:-back]])
        inside &= earlier > 0
        place[inside] += earlier[inside] * SYMBOLS**back
    counts = np.bincount(place, weights, SYMBOLS ** (before + 1))
    shares = np.full((1, SYMBOLS), 1 / SYMBOLS)
    for known, trust in enumerate(LETTERS_TRUST[: before + 1]):
        seen = counts.reshape(-1, SYMBOLS**known, SYMBOLS).sum(axis=0)
        trust = np.maximum((seen > 0).sum(axis=1, keepdims=True), trust)
        fewer = np.tile(shares, (SYMBOLS if known else 1, 1))
        shares = (seen + trust * fewer) / (seen.sum(axis=1, keepdims=True) + trust)
    return np.clip(np.round(-BIT * np.log2(shares)), 1, 255).astype(np.uint8).tobytes()


def sequences(texts):
    """Returns, for each length from one symbol on, all sequences of symbols that end at a symbol of a label, as numbers in
    base 27, with the frequency of each. One edge precedes the first letter."""
    text = np.frombuffer("".join(f"{text}\n" for text in texts).encode(), np.uint8)
    symbols = np.where((text >= ord("a")) & (text <= ord("z")), text & 31, 0).astype(np.int64)
    edge = symbols == 0
    symbols = symbols[~(edge & np.concatenate([[True], edge[:-1]]))]
    number, inside = symbols.copy(), np.ones(len(symbols), bool)
    for back in range(SEQUENCE_LENGTHS[-1]):
        if back:
            before = np.concatenate([np.zeros(back, np.int64), symbols[:-back]])
            inside &= before > 0
            number[inside] += before[inside] * SYMBOLS**back
        yield np.unique(number, return_counts=True)


def sequence_costs(texts):
    """Returns, as the bytes of sequences.zst, the sequences for which the cost of the last symbol differs most from its cost
    after one symbol fewer, times the number of occurrences. Costs are mixed as in letter_costs."""
    known, shares, found = None, np.full(SYMBOLS, 1 / SYMBOLS), []
    for before, (number, count) in enumerate(sequences(texts)):
        # Sequences are grouped by all but their last symbol.
        start = np.flatnonzero(np.diff(number // SYMBOLS, prepend=-1))
        which = np.repeat(np.arange(len(start)), np.diff(start, append=len(number)))
        seen, kinds = np.add.reduceat(count, start)[which], np.diff(start, append=len(number))[which]
        trust = np.maximum(kinds, LETTERS_TRUST[before] if before < len(LETTERS_TRUST) else SEQUENCE_TRUST)
        fewer = shares[np.searchsorted(known, number % SYMBOLS**before)] if before else shares[number]
        known, shares = number, (count + trust * fewer) / (seen + trust)
        if before + 1 in SEQUENCE_LENGTHS:
            # A run's start is one symbol: sequences with two of it are those of a length below.
            kept = (number >= SYMBOLS ** (before - 1)) & (count >= SEQUENCE_SEEN_MIN)
            cost = -np.log2(shares)
            found.append((number[kept], cost[kept], (count * np.abs(cost + np.log2(fewer)))[kept]))
    news = np.concatenate([news for _, _, news in found])
    least = np.partition(news, -SEQUENCES_KEPT)[-SEQUENCES_KEPT] if len(news) > SEQUENCES_KEPT else 0
    kept = [(number[news >= least], cost[news >= least]) for number, cost, news in found]
    steps = [np.clip(np.round(cost * SEQUENCE_STEP), 0, SEQUENCE_COST_MAX).astype(np.uint8) for _, cost in kept]
    counts = np.array([len(number) for number, _ in kept], "<u4")
    numbers = [differences(number) for number, _ in kept]
    plain_bytes = b"".join([counts.tobytes(), *numbers, *(cost.tobytes() for cost in steps)])
    return subprocess.run(["zstd", "-19", "-c"], input=plain_bytes, capture_output=True, check=True).stdout


def differences(numbers):
    """Encodes the differences of ascending numbers as varints (LEB128)."""
    left = np.diff(numbers, prepend=0)
    length = np.ones(len(left), int)
    for shift in range(7, 63, 7):
        length += left >> shift > 0
    start = np.cumsum(length) - length
    out = np.zeros(int(length.sum()), np.uint8)
    for at in range(int(length.max())):
        here = length > at
        more = np.where(length[here] > at + 1, 128, 0)
        out[start[here] + at] = left[here] >> (7 * at) & 127 | more
    return out.tobytes()


def english_letter_costs(shares):
    """As above for English words; a frequent word counts more, but much less than in proportion to its uses."""
    weights = [max(1, min(30, (share * 1e6) ** 0.4)) for share in shares.values()]
    return letter_costs(list(shares), weights)


def frequencies(sources):
    """Returns by language the words and their shares. Every source of a language has the same weight,
    except English web pages, which weigh as much as the other two together."""
    counts = {language: defaultdict(float) for language in LANGUAGES}

    def add(language, rows, umlauts):
        known, total = sum(counts[language].values()), sum(count for _, count in rows)
        for word, count in rows:
            for spelling in spellings(word, umlauts):
                counts[language][spelling] += count / total * known if known else count

    for language in LANGUAGES:
        rows = [line.split() for line in lines(sources / f"frequencywords/{language}_50k.txt")]
        add(language, [(row[0], int(row[1])) for row in rows if len(row) == 2], language in UMLAUTS)
    for language, file in BOOKS.items():
        rows = csv.DictReader(lines(sources / f"google-books/1grams_{file}.csv"))
        add(language, [(row["ngram"], int(row["freq"])) for row in rows], language == "de")
    rows = [line.split("\t") for line in lines(sources / "instant-segment-en-unigrams.txt") if "\t" in line]
    add("en", [(word, int(count)) for word, count in rows], False)
    totals = {language: sum(words.values()) for language, words in counts.items()}
    return {
        language: {word: count / totals[language] for word, count in words.items()}
        for language, words in counts.items()
    }


def proper_names(sources):
    """Returns given names, all names of people, and places, if they have a usual length."""

    def people(kind, lists):
        found = chain.from_iterable(lines(sources / f"names/{kind}-{name}.txt") for name in lists)
        return {word for line in found for word in spellings(line.strip(), True) if len(word) in PROPER_LETTERS}

    given = people("first", GIVEN_NAMES)
    rows = csv.DictReader(lines(sources / "world-cities.csv"))
    found = {row[column].replace(" ", "").replace("-", "") for row in rows for column in ("name", "country")}
    places = {word for text in found for word in spellings(text, True) if len(word) in PLACE_LETTERS}
    return given, given | people("surnames", SURNAMES), places


class Vocabulary:
    """All words that labels may consist of."""

    def __init__(self, shares, sources, modern):
        self.always = modern | TWO
        # By word, by tongue: tenths.
        self.levels = defaultdict(dict)
        # The expected share of a word before anything is counted.
        self.prior = defaultdict(float)
        for language, words in shares.items():
            self.add_language(language, words)
        self.add_proper_names(*proper_names(sources))
        for word in self.always:
            self.prior[word] = max(self.prior[word], MODERN_SHARE)
            self.levels[word]["en"] = max(self.levels[word].get("en", 0), LEVEL_MODERN)

    def add_language(self, language, words):
        short, steps = (
            (SHORT_ENGLISH, LEVELS_ENGLISH) if language == "en" else (SHORT_FOREIGN, LEVELS_FOREIGN)
        )
        order = sorted(words, key=lambda word: (-words[word], word))
        for rank, word in enumerate(order):
            if len(word) == 2 and word not in TWO or not 2 <= len(word) <= WORD_LETTERS_MAX:
                continue
            if rank < short.get(len(word), len(order)):
                self.prior[word] += LANGUAGES[language] * words[word]
                self.levels[word][language] = next((level for below, level in steps if rank < below), LEVEL_LEAST)

    def add_proper_names(self, given, people, places):
        for word in people | places:
            self.prior[word] += PROPER_SHARE
        for word in people:
            self.levels[word][NAMES] = LEVEL_GIVEN_NAME if word in given else LEVEL_PROPER
        for word in places:
            self.levels[word][PLACES] = LEVEL_PROPER

    def levels_text(self, word):
        """Returns pairs of a letter for the language and a hexadecimal digit."""
        levels = self.levels[word]
        return "".join(f"{chr(ord('a') + at)}{levels[tongue]:x}" for at, tongue in enumerate(TONGUES) if tongue in levels)


def cost(share):
    return min(COST_MAX, round(-BIT * math.log2(share)))


class Splitter:
    """Splits all labels into words, with the scorer's own search, and writes the parts to a file: one line
    per label, with spaces between parts and `?` after letters that are not a word."""

    def __init__(self, command, labels, work):
        self.command, self.labels = shlex.split(command), len(labels)
        self.input, self.words, self.pieces = work / "labels.txt", work / "costs.tsv", work / "pieces.txt"
        self.input.write_text("".join(f"{label}\n" for label in labels))

    def split(self, shares):
        """Splits them with these shares of words, and counts the parts."""
        self.words.write_text("".join(f"{word}\t{cost(shares[word])}\n" for word in sorted(shares)))
        with open(self.input) as labels, open(self.pieces, "w") as pieces:
            subprocess.run([*self.command, "segment", self.words], stdin=labels, stdout=pieces, check=True)
        seen = 0
        counts = Counter()
        with open(self.pieces) as pieces:
            for seen, line in enumerate(pieces, 1):
                counts.update(line.split())
        if seen != self.labels:
            raise SystemExit(f"{shlex.join(self.command)} split {seen} of {self.labels} labels")
        return counts


def estimate(vocabulary, splitter):
    """Returns the shares of words among the parts of labels, and the uses of each, by EM: splits all labels,
    counts, and repeats with the new counts. Words that are hardly used are dropped."""
    prior = vocabulary.prior
    shares = dict(prior)
    for turn in range(1, ROUNDS + 1):
        counts = splitter.split(shares)
        progress(f"split with {len(shares):,} words, round {turn} of {ROUNDS}")
        if turn == ROUNDS:
            return shares, counts
        pieces = sum(count for piece, count in counts.items() if piece.isalpha() or piece.endswith("?"))
        least = USES_MIN.get(turn, 0)
        shares = {
            word: (counts[word] + PRIOR_WORDS * min(prior[word], PRIOR_SHARE_MAX)) / pieces
            for word in shares
            if counts[word] >= least or word in vocabulary.always
        }


def write_words(path, shares, vocabulary):
    """Returns words with costs and levels; a word that already has values keeps them."""
    rows = [line.rstrip("\n").split("\t") for line in open_text(path)] if path.exists() else []
    values = {row[0]: row[3:] for row in rows}
    rows = [[word, str(cost(shares[word])), vocabulary.levels_text(word), *values.get(word, [])] for word in sorted(shares)]
    write_packed(path, "".join("\t".join(row) + "\n" for row in rows))


def word_vectors(words, pieces, under):
    """Returns a vector for each word; words are close if they often share labels, or their labels share TLDs.

    The vectors belong to the largest singular values of the positive pointwise mutual information of words with
    neighbouring words and TLDs.
    """
    number = {word: at for at, word in enumerate(words)}
    found, ends = array("i"), array("q", [0])
    with open(pieces) as file:
        for line in file:
            found.extend(number[piece] for piece in line.split() if piece in number)
            ends.append(len(found))
    holds = csr_matrix((np.ones(len(found)), found, ends), (len(ends) - 1, len(words)))
    together = (holds.T @ holds).tocsr()
    # A part is not its own neighbour.
    together.setdiag(together.diagonal() - np.asarray(holds.sum(axis=0)).ravel())
    beside = hstack([together, TLD_WEIGHT * (holds.T @ under)]).tocoo()
    beside.eliminate_zeros()
    word_sum = np.asarray(beside.sum(axis=1)).ravel() + 1
    neighbour_sum = (np.asarray(beside.sum(axis=0)).ravel() + 1) ** NEIGHBOUR_POWER
    chance = word_sum[beside.row] * neighbour_sum[beside.col] / neighbour_sum.sum()
    above = np.log(beside.data / chance)
    kept = above > 0
    matrix = coo_matrix((above[kept], (beside.row[kept], beside.col[kept])), beside.shape).tocsr()
    left, values = largest_singular(matrix, VECTOR_SIZE)
    vectors = left * np.sqrt(values)
    return (vectors / (np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-9)).astype(np.float32)


def largest_singular(matrix, size, spare=10, turns=6):
    """Approximates the largest left singular vectors and values by randomized subspace iteration
    (Halko, Martinsson and Tropp 2011)."""
    space = np.random.default_rng(1).standard_normal((matrix.shape[1], size + spare))
    for _ in range(turns):
        space = np.linalg.qr(matrix @ space)[0]
        space = np.linalg.qr(matrix.T @ space)[0]
    space = np.linalg.qr(matrix @ space)[0]
    left, values, _ = np.linalg.svd((matrix.T @ space).T, full_matrices=False)
    left = (space @ left)[:, :size]
    # Signs are arbitrary: the largest entry of each is positive.
    signs = np.sign(left[np.abs(left).argmax(axis=0), np.arange(size)])
    return left * signs, values[:size]


def progress(what, start=time.monotonic()):
    print(f"{time.monotonic() - start:5.0f} s  {what}", file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=Path, required=True, help="folder with the unpacked downloads")
    parser.add_argument("--names", required=True, help="registered names, one a line")
    parser.add_argument("--leave-out", nargs="+", default=[], help="CSV files of names not to learn from")
    parser.add_argument("--segmenter", required=True, help="the bench `scoring` as built")
    parser.add_argument("--work", type=Path, required=True, help="folder for vectors.npz and what is made on the way")
    parser.add_argument("--out", type=Path, default=SCORER, help="folder for what goes into data/scorer [data/scorer]")
    parser.add_argument("--keep-letters", action="store_true", help="leave letters-*.bin alone")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    args.out.mkdir(parents=True, exist_ok=True)

    labels = Labels(args.names, labels_of(args.leave_out))
    progress(f"read {len(labels.text):,} labels")
    shares = frequencies(args.sources)
    stale = False
    if not args.keep_letters:
        letters = letter_costs(labels.text)
        # The segmenter was built with the file of this folder, regardless of --out.
        built_with = SCORER / "letters-names.bin"
        stale = not built_with.exists() or built_with.read_bytes() != letters
        (args.out / "letters-names.bin").write_bytes(letters)
        (args.out / "letters-polish.bin").write_bytes(letter_costs(labels.polish(), before=POLISH_LETTERS_BEFORE))
        (args.out / "letters-english.bin").write_bytes(english_letter_costs(shares["en"]))
        (args.out / "sequences.zst").write_bytes(sequence_costs(labels.text))
        progress("counted letters")
    vocabulary = Vocabulary(shares, args.sources, set(lines(SCORER / "modern.txt")))
    splitter = Splitter(args.segmenter, labels.text, args.work)
    shares, uses = estimate(vocabulary, splitter)
    write_words(args.out / "words.tsv.zst", shares, vocabulary)
    words = sorted(word for word in shares if uses[word] >= VECTOR_USES_MIN)
    vectors = word_vectors(words, splitter.pieces, labels.under_frequent(VECTOR_TLDS))
    np.savez_compressed(args.work / "vectors.npz", words=np.array(words), vectors=vectors)
    progress(f"{len(shares):,} words, {len(words):,} of them with vectors")
    if stale:
        print("letters-names.bin changed: build the segmenter with it, then run this with --keep-letters", file=sys.stderr)


if __name__ == "__main__":
    main()
