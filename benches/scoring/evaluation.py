"""Labelled names, and measures of how well scores rank them."""
import csv
import gzip
import io
import shutil
import subprocess
import zlib
from collections import Counter, defaultdict

import numpy as np

SETS = ["sold_vs_random", "listed_vs_zone", "popular_vs_random", "rereg_pl", "rereg_se_nu", "needle_com"]
FOLDS = 5


def open_text(path):
    """Returns the lines of a file, plain, gzip or zstd."""
    path = str(path)
    if path.endswith(".gz"):
        return io.TextIOWrapper(gzip.open(path), encoding="utf-8")
    if path.endswith(".zst"):
        if not shutil.which("zstd"):
            raise SystemExit(f"{path}: zstd is missing; install it or unpack the file")
        pipe = subprocess.Popen(["zstd", "-dc", path], stdout=subprocess.PIPE)
        return io.TextIOWrapper(pipe.stdout, encoding="utf-8")
    return open(path, encoding="utf-8")


def write_packed(path, text):
    """Writes a zstd file."""
    subprocess.run(["zstd", "-19", "-q", "-f", "-o", path], input=text.encode(), check=True)


def ranks(values):
    """Returns ranks from 1; equal values get their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return ((ends - counts + 1 + ends) / 2)[inverse]


def auc(labels, scores):
    """Returns how often a wanted name scores higher than an unwanted one; ties count half."""
    labels = np.asarray(labels, bool)
    wanted = int(labels.sum())
    others = len(labels) - wanted
    if not wanted or not others:
        return float("nan")
    return (ranks(scores)[labels].sum() - wanted * (wanted + 1) / 2) / (wanted * others)


def spearman(one, other):
    return float(np.corrcoef(ranks(one), ranks(other))[0, 1])


class Evaluation:
    """Rows of labelled names, one numpy array per column."""

    def __init__(self, path, names):
        with open_text(path) as file:
            rows = list(csv.DictReader(file))
        self.name = np.array([row["domain"] for row in rows])
        parts = [row["domain"].split(".", 1) for row in rows]
        self.label_text = np.array([label for label, _ in parts])
        self.tld = np.array([tld for _, tld in parts])
        self.wanted = np.array([int(row["label"]) for row in rows])
        self.set = np.array([row["set"] for row in rows])
        self.price = np.array([float(row["price"] or 0) for row in rows])
        self.source = np.array([row["source"] for row in rows])
        # No label is on both sides of a fold, whatever its TLD.
        self.fold = np.array([zlib.crc32(label.encode()) % FOLDS for label in self.label_text])
        self.spread = spreads(names, self.name, self.label_text)

    def rows(self, name):
        return np.where(self.set == name)[0]

    def sold_pairs(self):
        """Rows of sold names and of the names matched with each."""
        return self.rows("sold_vs_random").reshape(-1, 2)

    def priced(self, source):
        """Sold .com names of one kind of source."""
        sold = (self.set == "sold_vs_random") & (self.wanted == 1) & (self.tld == "com")
        return np.where(sold & np.char.startswith(self.source, source))[0]

    def figures(self, scores):
        """All figures of the table, by name."""
        out = {name: auc(self.wanted[rows], scores[rows]) for name in SETS for rows in [self.rows(name)]}
        sold, matched = self.sold_pairs().T
        for name, low, high in (("sold for 1,000 USD or more", 1000, np.inf), ("sold for less than 300 USD", 0, 300)):
            here = (self.price[sold] >= low) & (self.price[sold] < high)
            both = np.r_[scores[sold[here]], scores[matched[here]]]
            out[name] = auc(np.r_[np.ones(here.sum()), np.zeros(here.sum())], both)
        needle = self.rows("needle_com")
        order = needle[np.lexsort((self.wanted[needle], -scores[needle]))]
        out["needle_com, precision at 500"] = float(self.wanted[order[:500]].mean())
        for name, source in (("namebio", "namebio"), ("dnjournal", "dnjournal")):
            rows = self.priced(source)
            out[f"price, .com, {name}"] = spearman(scores[rows], np.log(self.price[rows]))
        return out


def spreads(names, domains, labels):
    """Returns the number of TLDs in which a list of names holds each label, including the name's own."""
    wanted, own = set(labels), set(domains)
    counts, held = Counter(), set()
    with open_text(names) as file:
        for line in file:
            name = line.strip()
            label = name.split(".", 1)[0]
            if label in wanted:
                counts[label] += 1
                if name in own:
                    held.add(name)
    return np.array([counts[label] + (name not in held) for label, name in zip(labels, domains)])


def by_group(evaluation, scores, groups):
    """AUC of sold_vs_random for each group of rows, with its size."""
    found = defaultdict(list)
    for row in evaluation.rows("sold_vs_random"):
        found[groups[row]].append(row)
    return {group: (len(rows), auc(evaluation.wanted[rows], scores[rows])) for group, rows in found.items()}
