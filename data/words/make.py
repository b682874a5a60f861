#!/usr/bin/env python3
"""Make the word lists of this folder from their sources (README.md names them).

  make.py SOURCES      SOURCES holds the unpacked downloads:
                       instant-segment-en-unigrams.txt, google-books/2grams_english.csv,
                       frequencywords/XX_50k.txt, names/*.txt, world-cities.csv

Run it only to change what is kept; the lists themselves are what the program is built with.
Needs Python 3 alone. The same sources always give the same bytes.
"""
import csv
import sys
import unicodedata
from pathlib import Path

# Words per language: more where more of the world's names are, and 229,376 in all at most, beyond
# which the table in memory doubles. English stays under 57,344 words for the same reason.
LANGUAGES = dict.fromkeys("de fr es it pl sv".split(), 15_000)
LANGUAGES |= dict.fromkeys("nl pt da no fi cs tr".split(), 11_500)
ENGLISH_COUNT_MIN = 50_000

# The two-letter strings that people read as words; all others only break real words apart.
TWO = set(
    "ad ai am an as at ax be by dj do dr eu ex fm go he hi hr id if in io is it me mr my no "
    "of oh ok on or ox pc pr so tv uk up us vr we".split()
)
# What decomposition leaves: letters with a stroke, ligatures, the dotless i.
PLAIN = str.maketrans(
    {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "ı": "i", "ß": "ss", "æ": "ae", "œ": "oe", "þ": "th"}
)
GERMAN = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe"})


def plain(word):
    """The ASCII letters of a word without its marks, or None when others are left."""
    text = unicodedata.normalize("NFD", word.lower().translate(PLAIN))
    text = "".join(c for c in text if not unicodedata.combining(c))
    return text if text.isascii() and text.isalpha() else None


def spellings(word, umlauts):
    """How a word is written in a domain name: without marks, and German style."""
    out = [plain(word)]
    if umlauts:
        out.append(plain(unicodedata.normalize("NFC", word.lower()).translate(GERMAN)))
    return [w for w in dict.fromkeys(out) if w]


def lines(path):
    return path.read_text(encoding="utf-8-sig").split("\n")


def write(name, rows):
    (Path(__file__).parent / name).write_text("".join(row + "\n" for row in rows))


def english(src):
    spoken = {}
    for rank, line in enumerate(lines(src / "frequencywords/en_50k.txt")):
        spoken.setdefault(line.split(" ")[0], rank)
    counts = {}
    for line in lines(src / "instant-segment-en-unigrams.txt"):
        if line:
            word, count = line.split("\t")
            counts[word] = int(count)

    def keep(word, count):
        if count < ENGLISH_COUNT_MIN or not word.isalpha():
            return False
        match len(word):
            case 1:
                return word in "ai"
            case 2:
                return word in TWO
            case 3:
                return spoken.get(word, 1 << 30) < 12_000
            case 4:
                return spoken.get(word, 1 << 30) < 30_000 or count >= 4_000_000
        return True

    kept = {w: c for w, c in counts.items() if keep(w, c)}
    write("en.txt", (f"{w}\t{c}" for w, c in sorted(kept.items(), key=lambda i: (-i[1], i[0]))))
    return kept


def bigrams(src, kept):
    with open(src / "google-books/2grams_english.csv", newline="") as file:
        rows = [(r["ngram"].lower().split(" "), r["freq"]) for r in csv.DictReader(file)]
    rows = [(p, f) for p, f in rows if len(p) == 2 and all(w in kept for w in p)]
    write("en-pairs.txt", (f"{a} {b}\t{f}" for (a, b), f in rows))


def foreign(src, code):
    words = {}
    for line in lines(src / f"frequencywords/{code}_50k.txt"):
        for word in spellings(line.split(" ")[0], code in ("de", "sv", "da", "no", "fi")):
            if len(word) >= 3:
                words.setdefault(word, None)
    Path(__file__).with_name("frequencywords").mkdir(exist_ok=True)
    write(f"frequencywords/{code}.txt", list(words)[: LANGUAGES[code]])


def names(src):
    found = set()
    for file in ("first-all", "first-us", "surnames-fr", "surnames-it", "surnames-pl"):
        for line in lines(src / f"names/{file}.txt"):
            found.update(w for w in spellings(line.strip(), True) if len(w) >= 4)
    write("names.txt", sorted(found))


def cities(src):
    with open(src / "world-cities.csv", newline="", encoding="utf-8") as file:
        rows = [r["name"].replace(" ", "").replace("-", "") for r in csv.DictReader(file)]
    found = {w for row in rows for w in spellings(row, True) if 4 <= len(w) <= 11}
    write("cities.txt", sorted(found))


def main():
    src = Path(sys.argv[1])
    kept = english(src)
    bigrams(src, kept)
    for code in LANGUAGES:
        foreign(src, code)
    names(src)
    cities(src)


main()
