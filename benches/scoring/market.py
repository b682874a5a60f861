"""Second stage of the fit: the effects of suffix, length and the other facts on an unmatched day of the market.

  market.py --names NAMES --sales SALES --registered REGISTERED --scorer COMMAND [--write]

Names of a day are drawn from registered names in proportion to the drops of each suffix: its registered names times
the share that is deleted. Sold names are compared with them, weighted by price. The tables of the first stage
(matched.txt, fitted to names matched by suffix and length) give one number per name; the second stage
fits its slope, points of suffixes and further tables by class of suffix. `--write` writes model.txt.
"""
import argparse
import csv
import random
import subprocess
import zlib
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from evaluation import FOLDS, auc, open_text
from fit import LENGTHS, SUFFIXES
from histogram import histogram

ROOT = Path(__file__).resolve().parents[2]
# Forms of labels, as src/scorer/shape.rs numbers them.
FORMS = ["other", "word", "pair", "phrase", "invented", "letters", "number"]
DAY = 300_000
# Share of a suffix's names that are deleted in a year.
DELETED_GENERIC, DELETED_COUNTRY, DELETED_NEW = 0.26, 0.20, 0.62
# Registered names of the whole market, in millions, and the fraction of its share that a suffix without a figure gets.
MARKET, UNLISTED = 387, 0.5
POLISH = SUFFIXES.index("polish")
# Part, fact, edges, lowest and highest step from range to range, shrinkage. Polish names keep the tables of
# the first stage: few of them are among the sales.
TABLES = [
    ("length", "chars", [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 17, 20], None, 0, 2),
    ("tldSpread", "spread", [2, 3, 4, 6, 9, 14, 20, 30, 50, 80], 0, None, 2),
    ("dictionary", "pieces", [2, 3, 4], None, None, 4),
    ("dictionary", "bits", [17, 20, 23, 26, 28, 30, 32, 34, 36, 38, 40, 43, 47, 54], None, None, 4),
    ("dictionary", "bits_per_letter", [34, 42, 50, 59, 70, 87, 110], None, None, 4),
    ("dictionary", "spelt_bits", [10, 14, 18, 21, 24, 27, 30, 34, 40], None, None, 4),
    ("language", "fit", [10, 30, 50, 60, 70, 80, 90], None, None, 4),
    ("dictionary", "unknown", [1, 4, 7], None, None, 4),
    ("digits", "digits", [1, 2, 3, 4, 5], None, None, 4),
    ("digits", "number", [1], None, None, 4),
    ("hyphens", "hyphens", [1, 2, 3], None, 0, 3),
    ("pronounceability", "letter_cost", [45, 52, 58, 64, 72, 82], None, None, 4),
]
LABEL_PARTS = ("dictionary", "language", "pronounceability", "digits", "hyphens")
# Suffixes with this many examples have points of their own, at most this many logits from their class:
# sales of country codes and of registry releases are over-reported.
SUFFIX_EXAMPLES, SUFFIX_SHRINK, SUFFIX_MAX, REGIONAL = 60, 8, 1.5, 2.5
# Suffixes below pl that are not regional: they rank between pl and the regions.
NATIONAL = ("pl", "com.pl", "net.pl", "org.pl", "info.pl", "biz.pl", "edu.pl")
SUFFIX_FREE = {"com": 9, "net": 9, "org": 9, "ai": 9, "io": 9, "co": 9, "pl": 9, "me": 9, "tv": 9, "cc": 9, "de": 2.5}
# Hundredths of a point that Polish suffixes get by judgement: published sales list few .pl names.
POLISH_RAISED = 2500
# Shares of the day with at least a score, and the scores.
ANCHORS = [(0.5, 20), (0.1, 60), (0.01, 90), (0.001, 97), (0.0001, 99), (0.00001, 100)]
# Points of one logit in the tables of the first stage.
POINTS = 20
IDN = -2000


def class_of(tld):
    last = tld.rsplit(".", 1)[-1]
    if tld in ("com", "net", "org"):
        return 0 if tld == "com" else 1
    if tld in ("ai", "io", "co", "me", "tv", "cc"):
        return 3
    return POLISH if last == "pl" else 2 if len(last) == 2 else 4


def day_mix(names, registered, sold_labels):
    """Draws names in the proportions in which the market loses them, without labels that were sold."""
    by_suffix = defaultdict(list)
    for line in open_text(names):
        by_suffix[line.strip().split(".", 1)[1]].append(line.strip())
    total = sum(map(len, by_suffix.values()))
    weight = {}
    for tld, own in by_suffix.items():
        generic = tld in ("com", "net", "org", "info", "biz")
        deleted = DELETED_GENERIC if generic else DELETED_COUNTRY if len(tld.rsplit(".", 1)[-1]) == 2 else DELETED_NEW
        weight[tld] = registered.get(tld, len(own) / total * MARKET * UNLISTED) * deleted
    unit, draw, mix = DAY / sum(weight.values()), random.Random(7), []
    for tld in sorted(by_suffix):
        wanted = weight[tld] * unit
        free = [name for name in by_suffix[tld] if name.split(".", 1)[0] not in sold_labels]
        draw.shuffle(free)
        mix += free[: int(wanted) + (draw.random() < wanted - int(wanted))]
    return mix


def spreads(names, wanted, closed):
    """Returns the number of public suffixes in which NAMES holds each label, including the name's own."""
    labels, counts, held = {name.split(".", 1)[0] for name in wanted}, Counter(), set()
    for line in open_text(names):
        label, tld = line.strip().split(".", 1)
        if label in labels and tld not in closed:
            counts[label] += 1
            held.add(line.strip())
    return np.array([counts[name.split(".", 1)[0]] + (name not in held) for name in wanted])


def read_model(path):
    """Reads tables as part, fact, classes, edges, points."""
    lines = [line.split() for line in Path(path).read_text().splitlines() if line and line[0] != "#"]
    tables, at = [], 0
    while at < len(lines):
        if lines[at][0] == "table":
            part, fact, by = lines[at][1:]
            rows = len(SUFFIXES if by == "suffix" else LENGTHS)
            edges = [int(value) for value in lines[at + 1][1:]]
            points = np.array([[int(value) for value in row[1:]] for row in lines[at + 2 : at + 2 + rows]])
            tables.append((part, fact, by, edges, points))
            at += 1 + rows
        at += 1
    return tables


class Market:
    """Sold names, then names of the day, with the first stage's number for each."""

    def __init__(self, names, sales, registered, scorer, closed):
        prices = defaultdict(float)
        for row in csv.DictReader(open_text(sales)):
            prices[row["domain"]] = max(prices[row["domain"]], float(row["price_usd"]))
        registered = {row["suffix"]: float(row["registered_millions"]) for row in csv.DictReader(open(registered))}
        sold_labels = {name.split(".", 1)[0] for name in prices}
        asked = list(prices) + day_mix(names, registered, sold_labels)
        spread = dict(zip(asked, spreads(names, asked, closed)))
        text = subprocess.run([scorer, "observe"], input="\n".join(asked), capture_output=True, text=True, check=True)
        rows = [line.split("\t") for line in text.stdout.splitlines()]
        head = next(row for row in rows if row[:2] == ["name", "suffix"])
        rows = [row for row in rows if len(row) == len(head) and row != head]
        self.name = np.array([row[0] for row in rows])
        self.tld = np.array([row[0].split(".", 1)[1] for row in rows])
        skipped = ("name", "suffix", "length", "words")
        self.facts = {fact: np.array([int(row[at]) for row in rows]) for at, fact in enumerate(head) if fact not in skipped}
        self.facts["suffix"] = np.array([SUFFIXES.index(row[1]) for row in rows])
        self.facts["length"] = np.array([LENGTHS.index(row[2]) for row in rows])
        self.facts["spread"] = np.array([spread[name] for name in self.name])
        self.price = np.array([prices.get(name, 0.0) for name in self.name])
        self.sold = self.price > 0
        self.weight = np.where(self.sold, np.clip(np.log10(np.maximum(self.price, 1)) - 1.5, 0.3, 3), 1.0)
        self.fold = np.array([zlib.crc32(name.split(".", 1)[0].encode()) % FOLDS for name in self.name])
        self.suffix = self.facts["suffix"]
        self.first = read_model(Path(__file__).with_name("matched.txt"))
        self.stage1 = {part: self.points(part) for part in LABEL_PARTS} | {"market": self.facts["market"]}
        polish = self.suffix == POLISH
        self.label = sum(self.stage1.values()) + np.where(polish, sum(self.polish(fact, self.facts[fact]) for fact in ("chars", "spread")), 0)

    def points(self, part):
        out = np.zeros(len(self.name))
        for own, fact, by, edges, points in self.first:
            if own == part:
                out += points[self.facts[by], np.searchsorted(edges, self.facts[fact], side="right")]
        return out

    def polish(self, fact, values):
        """Returns the points of the first stage for the length or the spread of a Polish name."""
        edges, points = next(
            table[3:] for table in self.first if table[0] in ("length", "tldSpread") and table[1:3] == (fact, "suffix")
        )
        return points[POLISH][np.searchsorted(edges, values, side="right")]


class Fit:
    """The second stage: one column for each unknown."""

    def __init__(self, market, closed):
        self.market, self.meta = market, []
        rows, values, low, high, shrink, prior = [], [], [], [], [], []

        def add(what, where, value=1.0, bounds=(None, None), by=0.01, expected=0.0):
            self.meta.append(what)
            rows.append(where)
            values.append(np.broadcast_to(np.asarray(value, float), len(where)))
            low.append(bounds[0])
            high.append(bounds[1])
            shrink.append(by)
            prior.append(expected)

        for at in range(len(SUFFIXES)):
            own = np.where(market.suffix == at)[0]
            add(("start", at), own)
            add(("slope", at), own, market.label[own] / 100 / POINTS, (0.2, 2), 20 if at == POLISH else 2, 0.8)
            for _, fact, edges, *bounds, by in TABLES if at != POLISH else ():
                for edge in edges:
                    here = own[market.facts[fact][own] >= edge]
                    if len(here) >= 20:
                        add((fact, at, edge), here, 1.0, bounds, by)
        for tld, count in Counter(market.tld.tolist()).items():
            if count >= SUFFIX_EXAMPLES and tld not in closed:
                add(("suffix", tld), np.where(market.tld == tld)[0], by=SUFFIX_SHRINK)
        columns = np.repeat(np.arange(len(rows)), [len(own) for own in rows])
        shape = (len(market.name), len(rows))
        self.matrix = csr_matrix((np.concatenate(values), (np.concatenate(rows), columns)), shape)
        self.bounds, self.shrink, self.prior = list(zip(low, high)), np.array(shrink), np.array(prior)

    def solve(self, keep, turns, begin=None):
        matrix, sold, weight = self.matrix[keep], self.market.sold[keep], self.market.weight[keep]
        turned = matrix.T.tocsr()

        def loss(found):
            logit, apart = matrix @ found, found - self.prior
            slope = weight * (1 / (1 + np.exp(-logit)) - sold)
            value = (weight * (np.logaddexp(0, logit) - sold * logit)).sum() + (self.shrink * apart**2).sum() / 2
            return value, turned @ slope + self.shrink * apart

        begin = self.prior - 3 * np.array([what[0] == "start" for what in self.meta]) if begin is None else begin
        return minimize(loss, begin, jac=True, method="L-BFGS-B", bounds=self.bounds, options={"maxiter": turns}).x


def report(market, scores, title):
    """AUC; and among the day and 600 names sold for 1,000 USD or more, the share of sold names in the best,
    and the share of them in the best hundredth."""
    dear, draw, found = np.where(market.price >= 1000)[0], np.random.default_rng(1), []
    day = np.where(~market.sold)[0]
    for _ in range(5):
        rows = np.r_[draw.choice(dear, 600, replace=False), day]
        best = market.sold[rows[np.argsort(-scores[rows], kind="stable")]]
        found.append([best[:100].mean(), best[:500].mean(), best[:2000].mean(), best[: len(best) // 100].sum() / 600])
    both = np.r_[dear, day]
    figures = [auc(market.sold, scores), auc(market.sold[both], scores[both]), *np.mean(found, axis=0)]
    print(f"| {title} | " + " | ".join(f"{figure:.3f}" for figure in figures) + " |")


def top_suffixes(market, scores, count=1000):
    day = np.where(~market.sold)[0]
    best = day[np.argsort(-scores[day], kind="stable")[:count]]
    shares = Counter(market.tld[best].tolist()).most_common(12)
    print(f"\nsuffixes of the best {count:,}: " + ", ".join(f"{tld} {share / count:.1%}" for tld, share in shares))


def calibration(market, scores):
    """Returns the share of sold names at each level of the score, compared with the share of the day."""
    print("\n| DQS | share of the day | share of sold names | density |\n| --- | ---: | ---: | ---: |")
    for low in range(0, 100, 10):
        here = (scores >= low) & ((scores < low + 10) | (low == 90))
        day, sold = here[~market.sold].mean(), here[market.sold].mean()
        print(f"| {low}–{100 if low == 90 else low + 9} | {day:.2%} | {sold:.2%} | {sold / max(day, 1e-9):.2f} |")
    day = scores[~market.sold]
    print(f"\n90 or more: {(day >= 90).mean():.2%} of the day, 100: {(day >= 100).mean():.4%}; {len(set(day[(day >= 50) & (day < 100)].tolist()))} values from 50 to 99")


def calibration_by_form(market, scores):
    """Prints by form of the label how many names of the day and dear ones score 90 or more, and their ratio against all forms."""
    day, dear, free = ~market.sold, market.price >= 1000, market.facts["cap"] == 100
    print("\n| 90 or more | of the day | sold for 1,000 USD or more | ratio |\n| --- | ---: | ---: | ---: |")
    best = (scores >= 90) & free
    overall = (best & dear).sum() / (best & day).sum()
    for number, form in enumerate(FORMS):
        here = best & (market.facts["form"] == number)
        ordinary, wanted = (here & day).sum(), (here & dear).sum()
        print(f"| {form} | {ordinary:,} | {wanted:,} | {(wanted + 3 * overall) / (ordinary + 3) / overall:.2f} |")


def write(path, market, fit, found):
    """Writes model.txt: tables of both stages in hundredths of a point."""
    logits, day = fit.matrix @ found, ~market.sold
    low, high = np.quantile(logits[day], [0.5, 0.99])
    scale = 70 / (high - low)
    at = dict(zip(fit.meta, found))
    classes = range(len(SUFFIXES))
    start = np.array([at[("start", one)] for one in classes])
    slope = np.array([at[("slope", one)] for one in classes])
    steps = lambda fact, one, edges: np.concatenate([[0], np.cumsum([at.get((fact, one, edge), 0) for edge in edges])])
    new = [[part, fact, edges, np.array([steps(fact, one, edges) for one in classes])] for part, fact, edges, *_ in TABLES]
    for part, fact, edges, rows in new:
        if part in ("length", "tldSpread"):
            rows[POLISH] = market.polish(fact, np.array([1, *edges])) * slope[POLISH] / 100 / POINTS
    place = lambda fact, edges: np.searchsorted(edges, market.facts[fact][day], side="right")
    # Each part averages to zero over all names of the day as if they were under a suffix of the class.
    # Parts that depend on the language of the suffix are averaged over the names of the class.
    for parts, into in ((("length",), "chars"), (("tldSpread",), "spread"), (("dictionary", "language"), "pieces")):
        for one in classes:
            mean = sum(rows[one, place(fact, edges)].mean() for part, fact, edges, rows in new if part in parts)
            for part, fact, by, edges, points in market.first:
                if part in parts and into == "pieces":
                    row = one if by == "suffix" else market.facts["length"][day]
                    mean += slope[one] * points[row, place(fact, edges)].mean() / 100 / POINTS
            next(rows for _, fact, _, rows in new if fact == into)[one] -= mean
            start[one] += mean
    edges, sound = next((edges, rows) for _, fact, edges, rows in new if fact == "letter_cost")
    for one in classes:
        own = market.suffix[day] == one
        mean = (sound[one, place("letter_cost", edges)] + slope[one] * market.stage1["pronounceability"][day] / 100 / POINTS)[own].mean()
        sound[one] -= mean
        start[one] += mean
    weights = [round(value * scale * 100 / POINTS) for value in slope]
    tables = [combined(market, one, slope, scale) for one in new]
    done = {table[:3] for table in tables}
    tables += [table for table in market.first if table[:3] not in done and table[0] not in ("length", "tldSpread")]
    parts = ("length", *LABEL_PARTS, "tldSpread")
    tables.sort(key=lambda table: parts.index(table[0]))
    limit = lambda tld, value: max(-SUFFIX_MAX if tld not in SUFFIX_FREE else -9, min(value, SUFFIX_FREE.get(tld, SUFFIX_MAX)))
    own = {what[1]: limit(what[1], value) for what, value in at.items() if what[0] == "suffix"}
    start[POLISH] += POLISH_RAISED / scale / 100
    points = {tld: round((start[class_of(tld)] + value) * scale * 100) for tld, value in sorted(own.items())}
    # A regional suffix (waw.pl) is worth less than the country's own.
    start[POLISH] += min(0, own.get("pl", 0) - REGIONAL)
    regional = round(start[POLISH] * scale * 100)
    points |= {tld: min(value, regional) for tld, value in points.items() if class_of(tld) == POLISH and tld not in NATIONAL}
    default = [points["com"], *(round(value * scale * 100) for value in start[1:])]
    sums = np.array([points.get(tld, default[one]) for tld, one in zip(market.tld, market.suffix)])
    for part, fact, by, edges, values in tables:
        own_points = values[market.facts[by], np.searchsorted(edges, market.facts[fact], side="right")]
        sums = sums + (own_points if part in ("length", "tldSpread") else own_points * np.array(weights)[market.suffix] / 100)
    sums = sums + market.facts["market"] * np.array(weights)[market.suffix] / 100 + IDN * market.facts["idn"]
    header = [line for line in path.read_text().splitlines() if line.startswith("#")]
    text = [*header, "start " + " ".join(map(str, default)), "slope " + " ".join(map(str, weights))]
    text.append(scale_of(sums[day]))
    text += [f"suffix {tld} {value}" for tld, value in points.items()]
    for part, fact, by, edges, values in tables:
        text += ["", f"table {part} {fact} {by}", " ".join(["edges", *map(str, edges)])]
        text += [f"{one} " + " ".join(str(int(value)) for value in row) for one, row in zip(SUFFIXES if by == "suffix" else LENGTHS, values)]
    path.write_text("\n".join(text) + "\n")


def scale_of(sums):
    """Returns the line of the scale, from the sums of a day."""
    anchors = [(int(np.quantile(sums, 1 - share)), score) for share, score in ANCHORS]
    # Scores are rounded: 100 is reached halfway to the last anchor.
    anchors[-1] = (2 * anchors[-1][0] - anchors[-2][0], 100)
    (first, _), (second, _) = anchors[:2]
    anchors.insert(0, (first - (second - first) * 4 // 5, 0))
    return "scale " + " ".join(f"{total} {score}" for total, score in anchors)


def combined(market, table, slope, scale):
    """Adds a table of the second stage to that of the same fact in the first, if any."""
    part, fact, edges, logits = table
    if part in ("length", "tldSpread"):
        return part, fact, "suffix", edges, np.round(logits * scale * 100).astype(int)
    points = np.round(logits * 100 * POINTS / slope[:, None]).astype(int)
    before = [own for own in market.first if own[:3] == (part, fact, "suffix")]
    if not before:
        return part, fact, "suffix", edges, points
    _, _, _, old_edges, old_points = before[0]
    union = sorted({*edges, *old_edges})
    lows = [-(10**9), *union]
    found = lambda own, rows: rows[:, np.searchsorted(own, lows, side="right")]
    return part, fact, "suffix", union, found(edges, points) + found(old_edges, old_points)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", required=True, help="registered names, one a line")
    parser.add_argument("--sales", required=True, help="domain,price_usd,...")
    parser.add_argument("--registered", required=True, help="suffix,registered_millions,...")
    parser.add_argument("--scorer", required=True, help="the bench `scoring` as built")
    parser.add_argument("--write", action="store_true", help="write data/scorer/model.txt anew")
    args = parser.parse_args()
    run(args.names, args.sales, args.registered, args.scorer, args.write)


def run(names, sales, registered, scorer, refit=False):
    """Prints how well the scorer as built ranks a day of the market; with `refit`, fits and writes the model first."""
    folder = ROOT / "data" / "scorer"
    closed = {line for line in (folder / "closed.txt").read_text().splitlines() if line[0] != "#"}
    market = Market(names, sales, registered, scorer, closed)
    print("| | AUC | sold for 1,000 USD or more | P@100 | P@500 | P@2,000 | recall in the best 1 % |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    asked = "".join(f"{name}\t{spread}\n" for name, spread in zip(market.name, market.facts["spread"]))
    text = subprocess.run([scorer, "score"], input=asked, capture_output=True, text=True, check=True).stdout
    scores, rank = np.array([line.split("\t")[1:] for line in text.splitlines()], int).T
    report(market, scores + rank / 1e6, "as built")
    if refit:
        fit = Fit(market, closed)
        found = fit.solve(np.ones(len(market.name), bool), 250)
        held_out = np.zeros(len(market.name))
        for fold in range(FOLDS):
            here = market.fold == fold
            held_out[here] = (fit.matrix @ fit.solve(~here, 40, found))[here]
        report(market, held_out, "second stage, cross-validated")
        write(folder / "model.txt", market, fit, found)
    top_suffixes(market, scores + rank / 1e6)
    calibration(market, scores)
    calibration_by_form(market, scores)
    (ROOT / "benches" / "score.svg").write_text(histogram(scores[~market.sold], scores[market.sold]))


if __name__ == "__main__":
    main()
