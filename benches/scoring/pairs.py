"""Pairs of names in the order of the market (pairs.csv), scored without an index and with indexes of several sizes."""
import csv
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Sizes of an index, in multiples of the reference names; 0 is no index.
SIZES = [0, 0.2, 1, 3]


# National suffixes and the column of trade.csv with their language; words of others are English.
NATIONAL = {"de": "de", "pl": "pl", "ru": "en", "com.br": "pt", "fr": "fr", "it": "it", "es": "es", "nl": "nl", "cz": "cs", "com.tr": "tr", "jp": "en"}


def read():
    lines = Path(__file__).with_name("pairs.csv").read_text().splitlines()
    return list(csv.DictReader(line for line in lines if line[0] != "#"))


def probes():
    """Returns the TLDs that frequent labels have in the reference names."""
    lines = (ROOT / "data" / "scorer" / "frequent.txt").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line[0] != "#")


def line(name, tlds, size):
    return f"{name}\t{max(1, round(int(tlds) * size))}\t{round(probes() * size)}" if size else name


def report(scorer):
    """Prints the share of pairs in market order by kind and size of the index, and the pairs that are not."""
    rows = read()
    found, wrong = defaultdict(list), []
    for size in SIZES:
        asked = [line(row[name], row[name + "_tlds"], size) for row in rows for name in ("better", "worse")]
        ranks = [(int(dqs), int(rank)) for _, dqs, rank in scorer.ask("score", asked)]
        for row, better, worse in zip(rows, ranks[::2], ranks[1::2]):
            found[row["kind"], size].append(better > worse)
            found["all", size].append(better > worse)
            if size == SIZES[-1] and better <= worse:
                wrong.append(f"{row['better']} {better[0]} under {row['worse']} {worse[0]}")
    kinds = [*dict.fromkeys(row["kind"] for row in rows), "all"]
    print(f"\n| pairs in market order | pairs | {' | '.join(f'index of {size:g}' if size else 'no index' for size in SIZES)} |")
    print("| --- |" + " ---: |" * (len(SIZES) + 1))
    for kind in kinds:
        shares = [sum(found[kind, size]) / len(found[kind, size]) for size in SIZES]
        print(f"| {kind} | {len(found[kind, 1])} | {' | '.join(f'{share:.1%}' for share in shares)} |")
    print(f"\nnot in order, index of {SIZES[-1]:g}: " + ("; ".join(wrong) or "none"))


def report_national(scorer):
    """Prints the best words of trade under national suffixes, as if 100 TLDs had them, and as if only their own had."""
    rows = list(csv.DictReader(line for line in open(ROOT / "data" / "scorer" / "trade.csv") if line[0] != "#"))
    print("\n| suffix | best word | score | median of all, in 100 TLDs | in one |\n| --- | --- | ---: | ---: | ---: |")
    for suffix, language in NATIONAL.items():
        names = [f"{row[language].split()[0]}.{suffix}" for row in rows]
        often, once = ([(int(row[1]), row[0]) for row in scorer.ask("score", [f"{name}\t{tlds}" for name in names]) if len(row) > 1] for tlds in (100, 1))
        middle = lambda scored: sorted(scored)[len(scored) // 2][0]
        print(f"| {suffix} | {max(often)[1]} | {max(often)[0]} | {middle(often)} | {middle(once)} |")
