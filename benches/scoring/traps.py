"""Names that should not get a high score: known brands, their misspellings and imitations, closed suffixes; words
whose language or split is easily mistaken; and harmless names similar to a brand.

traps.txt holds one kind and name per line; lines of kind `fact` also have the correct language and words.
"""
from collections import defaultdict
from pathlib import Path

from evaluation import open_text
from typos import typos

WORDS = Path(__file__).resolve().parents[2] / "data" / "scorer" / "words.tsv.zst"
# Numbers of TLDs that a small and a large corpus hold of the same label.
TLDS = [1, 3, 10, 60]
# Kind, the caps that catch it, and the share that must be caught.
CAUGHT = [
    ("closed", {"notPublic"}, 1.0),
    ("brand", {"brand"}, 0.95),
    ("homograph", {"brand", "mixedScripts"}, 0.95),
    ("typo", {"brand"}, 0.90),
    ("mark", {"brand", "trademark", "alsoBrand"}, 0.95),
    ("word", {"brand", "trademark"}, 0.0),
]


def read():
    rows = defaultdict(list)
    for line in Path(__file__).with_name("traps.txt").read_text().splitlines():
        if line and line[0] != "#":
            kind, name, *fact = line.split()
            rows[kind].append((name, fact))
    return rows


def osa(one, other):
    """Returns the edit distance of two words: letters added, removed, changed, or swapped with their neighbour."""
    rows = [list(range(len(other) + 1))]
    for at, letter in enumerate(one, 1):
        row = [at]
        for to, its in enumerate(other, 1):
            least = min(rows[-1][to] + 1, row[-1] + 1, rows[-1][to - 1] + (letter != its))
            if at > 1 and to > 1 and letter == other[to - 2] and one[at - 2] == its:
                least = min(least, rows[-2][to - 2] + 1)
            row.append(least)
        rows.append(row)
    return rows[-1][-1]


def twins(sold, brands):
    """Returns sold names whose label is one letter from a brand but not a brand itself."""
    cut = lambda word: {word} | {word[:at] + word[at + 1 :] for at in range(len(word))}
    near = defaultdict(set)
    for brand in brands:
        for key in cut(brand):
            near[key].add(brand)
    found = []
    for name in sold:
        label = name.split(".", 1)[0].replace("-", "")
        others = set().union(*(near[key] for key in cut(label) if key in near))
        if label not in brands and any(osa(label, brand) == 1 for brand in others):
            found.append(name)
    return found


def misspelt_sites(scorer, rows):
    """Prints the share of misspelt sites that is capped, by kind and by the number of TLDs that hold the label."""
    words = {line.split("\t")[0] for line in open_text(WORDS)}
    sites = [name.split(".")[0] for name, _ in rows["site"]]
    found = defaultdict(list)
    for site in sites:
        for kind, labels in typos(site).items():
            found[kind] += [label for label in labels if label not in words][:: 1 if kind == "swapped" else 3]
    print("\n| typing error in a well-known site, no word | labels | " + " | ".join(f"{tlds} TLDs" for tlds in TLDS) + " |")
    print("| --- |" + " ---: |" * (1 + len(TLDS)))
    found["all"] = [label for labels in found.values() for label in labels]
    for kind, labels in found.items():
        shares = []
        for tlds in TLDS:
            seen = scorer.ask("explain", [f"{label}.com\t{tlds}" for label in labels])
            shares.append(sum("brand" in row[2].split() for row in seen) / len(seen))
        print(f"| {kind} | {len(labels):,} | " + " | ".join(f"{share:.1%}" for share in shares) + " |")


def report(scorer, sold, brands):
    """Prints the share that is caught of each kind, and the names that are not."""
    rows = read()
    asked = lambda names: {row[0]: row for row in scorer.ask("explain", [f"{name}\t1" for name in names])}
    caps = lambda row: set(row[2].split()) if len(row) > 2 else set()
    print("\n| trap | names | caught | must |\n| --- | ---: | ---: | ---: |")
    missed = []
    for kind, catching, must in CAUGHT:
        names = [name for name, _ in rows[kind]]
        if not names:
            continue
        seen = asked(names)
        out = [name for name in names if not caps(seen[name]) & catching]
        print(f"| {kind} | {len(names)} | {1 - len(out) / len(names):.1%} | {must:.0%} |")
        missed += out
    misspelt = {name for name, _ in rows["misspelt"]}
    harmless = [name for name in twins(sold, brands) if name not in misspelt]
    listed = [name for name, _ in rows["harmless"]]
    seen = asked(listed)
    held = [name for name in listed if {"brand", "trademark"} & caps(seen[name])]
    print(f"| harmless: words and labels one letter from a brand | {len(listed)} | {len(held) / len(listed):.1%} | at most 2% |")
    seen = asked(harmless)
    alarms = [name for name in harmless if "brand" in caps(seen[name])]
    print(f"| harmless: sold names one letter from a brand | {len(harmless)} | {len(alarms) / max(len(harmless), 1):.1%} | at most 2% |")
    sold_rows = asked(sold)
    held = [name for name in sold if {"brand"} & caps(sold_rows[name])]
    print(f"| harmless: all sold names | {len(sold)} | {len(held) / max(len(sold), 1):.2%} | at most 2% |")
    misspelt_sites(scorer, rows)
    facts = rows["fact"]
    seen = asked([name for name, _ in facts])
    wrong = [f"{name} is {seen[name][3] or 'no language'}, {seen[name][4]}" for name, (language, *words) in facts
             if (seen[name][3] or "-", seen[name][4].split()) != (language, words)]
    print(f"| facts that are right | {len(facts)} | {1 - len(wrong) / max(len(facts), 1):.1%} | |")
    print("\nnot caught: " + (", ".join(missed) or "none"))
    print("false alarms: " + (", ".join(alarms) or "none"))
    print("wrong facts: " + ("; ".join(wrong) or "none"))


def oddest(scorer, names, spreads, count=20, among=200):
    """Prints those of the best names of a day whose words explain their score least, with their explanations."""
    rows = scorer.ask("explain", [f"{name}\t{spread}" for name, spread in zip(names, spreads)])
    ranked = scorer.ask("score", [f"{name}\t{spread}" for name, spread in zip(names, spreads)])
    both = [(row, int(score[1]), int(score[2])) for row, score in zip(rows, ranked) if len(row) > 5 and len(score) > 2]
    best = sorted(both, key=lambda one: (-one[1], -one[2]))[:among]
    known = {row[0]: scorer_words(row) for row, *_ in best}
    odd = sorted(best, key=lambda one: known[one[0][0]])[:count]
    print(f"\nthe {count} oddest of the best {among} of the day:")
    for row, score, _ in odd:
        print(f"  {score:3} {row[0]}: {row[5]}")


def scorer_words(row):
    """Returns the share of a label that its words cover; labels with a cap come first."""
    label, words = row[0].split(".", 1)[0], row[4].split()
    return (not row[2], bool(row[3]), max((len(word) for word in words), default=0) / max(len(label), 1))
