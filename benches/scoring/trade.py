"""Raises words of trade to the level of their English twins (data/scorer/trade.csv), in data/scorer/words.tsv.zst.

  trade.py --names FILE --leave-out CSV...

Runs after tongues.py and the fit, and may run again. A word of another language gets at least the level of a common
word there, and at least the value of its English twins under country-code suffixes; half of it elsewhere, where fewer
buyers know the word. Words that the list lacks are added, with the cost of the labels that consist of them.
"""
import argparse
import csv
import math

from evaluation import open_text, write_packed
from fit import SUFFIXES
from tongues import COMPOUNDS, PIECES, alone
from words import BIT, COST_MAX, LANGUAGES, SCORER, TONGUES, UMLAUTS, labels_of, spellings

LEVEL = 8
LETTERS_MIN = 3
AT_HOME = {SUFFIXES.index("country"), SUFFIXES.index("polish")}
COUNTRY = SUFFIXES.index("country")


def pairs(text):
    """Returns the levels of a row by language, and the languages that claim it."""
    both = [(TONGUES[ord(text[at].lower()) - ord("a")], text[at].isupper(), int(text[at + 1], 16)) for at in range(0, len(text), 2)]
    return {tongue: level for tongue, _, level in both}, {tongue for tongue, claimed, _ in both if claimed}


def written(levels, claims):
    letter = lambda at, tongue: chr(ord("A" if tongue in claims else "a") + at)
    return "".join(f"{letter(at, tongue)}{levels[tongue]:x}" for at, tongue in enumerate(TONGUES) if tongue in levels)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", required=True, help="registered names, one a line")
    parser.add_argument("--leave-out", nargs="+", default=[], help="CSV files of names not to learn from")
    args = parser.parse_args()
    rows = {}
    for line in open_text(SCORER / "words.tsv.zst"):
        word, cost, text, *values = line.rstrip("\n").split("\t")
        rows[word] = [int(cost), *pairs(text), [int(value) for value in values[0].split()] if values else [0] * len(SUFFIXES)]
    concepts = list(csv.reader(line for line in open(SCORER / "trade.csv") if line[0] != "#"))
    _, every = alone(args.names, labels_of(args.leave_out))
    for english, *others in concepts[1:]:
        known = [rows[word][3] for word in english.split() if word in rows]
        twin = [max(0, round(sum(column) / len(column))) for column in zip(*known)] if known else [0] * len(SUFFIXES)
        for language, cell in zip(list(LANGUAGES)[1:], others):
            for word in {form for own in cell.split() for form in spellings(own, language in UMLAUTS)}:
                if len(word) < LETTERS_MIN:
                    continue
                if word not in rows:
                    cost = round(-BIT * math.log2((COMPOUNDS * every[word] + 0.5) / PIECES))
                    rows[word] = [min(COST_MAX, cost), {}, {language}, [0] * len(SUFFIXES)]
                _, levels, claims, values = rows[word]
                levels[language] = max(LEVEL, levels.get(language, 0))
                if claims <= {"names", "places"}:
                    claims.clear()
                    claims.add(language)
                for at in range(len(SUFFIXES)):
                    least = twin[COUNTRY] if at in AT_HOME else twin[at] // 2
                    values[at] = max(values[at], least)
    lines = []
    for word, (cost, levels, claims, values) in sorted(rows.items()):
        fields = [word, str(cost), written(levels, claims), *([" ".join(map(str, values))] if any(values) else [])]
        lines.append("\t".join(fields) + "\n")
    write_packed(SCORER / "words.tsv.zst", "".join(lines))


if __name__ == "__main__":
    main()
