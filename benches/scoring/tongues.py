"""Determines which languages claim each word, and adds words of other languages that names consist of.

  tongues.py --wordfreq DIR --sources DIR --names FILE --leave-out CSV... [--work FILE]

Rewrites data/scorer/words.tsv.zst after words.py and keeps existing costs, levels and values. --wordfreq
is the unpacked wheel of PyPI wordfreq 3.1.1; --sources, --names and --leave-out are those of words.py.

A language claims a word that is at most three times rarer in it than in any other (English: nine times, as it is
the language of most names). Words that books never write in lower case, and that are names of people or places, are
claimed only by those. data/scorer/languages.csv overrides both.

New words are those of wordfreq that occur alone in registered names, in the letters that names have: ł is l, ö is o and
oe, ß is ss. Needs Python 3.11, numpy, scipy (for words.py) and msgpack.
"""
import argparse
import csv
import gzip
import math
import re
from collections import Counter, defaultdict
from pathlib import Path

import msgpack

from evaluation import open_text, write_packed
from words import (
    BIT,
    BOOKS,
    COST_MAX,
    LANGUAGES,
    LEVEL_LEAST,
    LEVELS_ENGLISH,
    LEVELS_FOREIGN,
    NAMES,
    PLACES,
    SCORER,
    TONGUES,
    UMLAUTS,
    WORD_LETTERS_MAX,
    labels_of,
    lines,
    plain,
    spellings,
)

WORDFREQ = {"no": "nb"}
SMALL = {"da", "tr"}
# A language claims a word if it is at most this many times rarer in it than in another.
LEAD, ENGLISH_LEAD = 3, 9
# Minimum uses of an added word in a million words, and minimum labels that consist of it; Polish names are many.
ADDED, ADDED_POLISH, ALONE, ALONE_POLISH = 0.3, 0.03, 3, 1
ADDED_LETTERS = 5
# A word that this many languages use alike is a brand unless film subtitles have it.
SHARED = 3
# Uses in a million from which a given name that English lacks is a word, and languages that claim the name of a town.
WORD_USES, PLACE_TONGUES = 40, 6
# A listed name that at least this many languages use equally, but rarely, is not a word of theirs.
NAME_TONGUES, NAME_LEVEL = 4, 5
# Pieces of all labels, as words.py splits them; a word stands in compounds about as often as alone.
PIECES, COMPOUNDS = 12_000_000, 2


def frequencies(folder):
    """Returns by language the uses of each spelling in a million."""
    found = {}
    for language in LANGUAGES:
        file = f"{'small' if language in SMALL else 'large'}_{WORDFREQ.get(language, language)}.msgpack.gz"
        with gzip.open(folder / "wordfreq/data" / file) as packed:
            _, *steps = msgpack.load(packed, raw=False)
        found[language] = defaultdict(float)
        for centibels, words in enumerate(steps):
            for word in words:
                for spelling in spellings(word, language in UMLAUTS):
                    found[language][spelling] += 10 ** (6 - centibels / 100)
    return found


class People:
    """Lists of names and places, and how books write words."""

    def __init__(self, sources):
        read = lambda kind: {plain(line.strip()) for line in lines(sources / f"names/first-{kind}.txt")}
        self.given, self.american = read("all") | read("us"), read("us")
        rows = list(csv.DictReader(lines(sources / "world-cities.csv")))
        self.countries = {plain(row["country"].replace(" ", "")) for row in rows}
        self.lower, self.upper = defaultdict(set), set()
        for language, file in BOOKS.items():
            for row in csv.DictReader(lines(sources / f"google-books/1grams_{file}.csv")):
                spelt = spellings(row["ngram"], language in UMLAUTS)
                if row["ngram"].islower():
                    self.lower[language].update(spelt)
                elif language != "de":
                    self.upper.update(spelt)

    def kind(self, word, levels, claims, uses):
        """Returns `names` or `places` for a word that is nothing else, otherwise None."""
        if word in self.countries:
            return PLACES
        if any(word in self.lower[language] for language in {"en", *claims}):
            return None
        if PLACES in levels and word in self.upper:
            return PLACES
        foreign = "en" not in claims and max(uses.values(), default=0) < WORD_USES
        if NAMES in levels and (word in self.american or word in self.given and foreign):
            return NAMES
        if PLACES in levels and len(claims) >= PLACE_TONGUES:
            return PLACES
        if NAMES in levels and len(claims) >= NAME_TONGUES and max(map(levels.get, claims & levels.keys()), default=0) <= NAME_LEVEL:
            return NAMES
        return None if claims else NAMES if NAMES in levels else PLACES if PLACES in levels else None


def claims_of(uses):
    top = max(uses.values(), default=0)
    lead = lambda language: ENGLISH_LEAD if language == "en" else LEAD
    return {language for language, share in uses.items() if share * lead(language) >= top}


def alone(names, leave_out):
    """Counts the labels that consist of each run of letters, for names under pl and for all."""
    seen, polish, every = set(), Counter(), Counter()
    with open_text(names) as file:
        for line in file:
            label, _, tld = line.strip().partition(".")
            if label.startswith("xn--") or label in leave_out:
                continue
            runs = re.findall("[a-z]+", label)
            if tld.rsplit(".", 1)[-1] == "pl":
                polish.update(runs)
            if label not in seen:
                seen.add(label)
                every.update(runs)
    return polish, every


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wordfreq", type=Path, required=True, help="the unpacked wheel")
    parser.add_argument("--sources", type=Path, required=True, help="folder with the unpacked downloads")
    parser.add_argument("--names", required=True, help="registered names, one a line")
    parser.add_argument("--leave-out", nargs="+", default=[], help="CSV files of names not to learn from")
    args = parser.parse_args()
    used = frequencies(args.wordfreq)
    subtitles = {
        spelling
        for language in LANGUAGES
        for line in lines(args.sources / f"frequencywords/{language}_50k.txt")
        for spelling in spellings(line.split()[0], language in UMLAUTS)
    }
    rank = {
        language: {word: at for at, word in enumerate(sorted(words, key=lambda word: (-words[word], word)))}
        for language, words in used.items()
    }

    def level(word, language):
        steps = LEVELS_ENGLISH if language == "en" else LEVELS_FOREIGN
        return next((level for below, level in steps if rank[language].get(word, 10**9) < below), LEVEL_LEAST)

    rows = {}
    for row in (line.rstrip("\n").split("\t") for line in open_text(SCORER / "words.tsv.zst")):
        pairs = [row[2][at : at + 2].lower() for at in range(0, len(row[2]), 2)]
        levels = {TONGUES[ord(pair[0]) - ord("a")]: int(pair[1], 16) for pair in pairs}
        rows[row[0]] = (int(row[1]), levels, row[3:])
    polish, every = alone(args.names, labels_of(args.leave_out))
    for language, words in used.items():
        own = language == "pl"
        least, uses_min, uses = (ADDED_POLISH, ALONE_POLISH, polish) if own else (ADDED, ALONE, every)
        for word, share in words.items():
            if share < least or uses[word] < uses_min or word in rows or language == "en":
                continue
            if not ADDED_LETTERS <= len(word) <= WORD_LETTERS_MAX:
                continue
            shares = {other: used[other][word] for other in LANGUAGES if word in used[other]}
            claims = claims_of(shares)
            if language not in claims or len(claims) > SHARED and word not in subtitles:
                continue
            cost = min(COST_MAX, round(-BIT * math.log2((COMPOUNDS * every[word] + 0.5) / PIECES)))
            rows[word] = (cost, {one: level(word, one) for one in shares if shares[one] >= ADDED or one in claims}, [])
    people = People(args.sources)
    hand = [line.split(",") for line in lines(SCORER / "languages.csv") if line[0] != "#"][1:]
    hand = {word: set(claims.split()) for word, claims in hand}
    written = []
    for word, (cost, levels, values) in sorted(rows.items()):
        uses = {language: words[word] for language, words in used.items() if word in words}
        claims = claims_of(uses) or {language for language in levels if language in LANGUAGES}
        kind = people.kind(word, levels, claims if uses else set(), uses)
        claims = hand.get(word) or ({kind} if kind else claims)
        if len(word) < 3 and word not in hand and len(claims) == 1:
            # Two letters are too few to identify a language.
            claims |= {"en", "es"}
        levels = {one: level(word, one) for one in claims if one in LANGUAGES} | levels
        levels |= {one: LEVEL_LEAST for one in claims if one not in levels}
        letter = lambda at, tongue: chr(ord("A" if tongue in claims else "a") + at)
        text = "".join(f"{letter(at, one)}{levels[one]:x}" for at, one in enumerate(TONGUES) if one in levels)
        written.append("\t".join([word, str(cost), text, *values]) + "\n")
    write_packed(SCORER / "words.tsv.zst", "".join(written))


if __name__ == "__main__":
    main()
