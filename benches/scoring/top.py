"""Third stage of the fit: short labels and numbers, other TLDs by form of the label, national suffixes, and the scale.

  top.py --names NAMES --sales SALES --registered REGISTERED [--national]

Rewrites data/scorer/model.txt after market.py. Sales alone do not decide these values: most sold numbers of five digits are
from one boom of 2017 to 2019, and most registries report no sales. The values of shapes follow the order of the market under
.com; for other classes of suffixes they are fitted, rounded and put in order. Rows of other TLDs are fitted by form of the label
and rounded. A second run changes nothing.
"""
import argparse
import csv

import numpy as np

from fit import SUFFIXES
from market import ANCHORS, FORMS, ROOT, Market, class_of

SHAPES = (
    "Digits8 Digits7 Digits6 Pattern6 Digits5 Lucky5 Letters4 Choice4 Pattern5 Spoken4 Best5 "
    "Digits4 Pattern4 Best4 Letters3 Digits3 Best3 Spoken3 Digits2 Letters2 Single"
).split()
# Hundredths of a point by class of suffix and shape.
SHAPE_POINTS = {
    "com": [-4000, -3300, 700, 2700, 2800, 3500, 2950, 3600, 4400, 4500, 5500, 5900, 6100, 6300, 6800, 7200, 7500, 7800, 14000, 14500, 15000],
    "generic": [-4500, -3500, -1800, -600, -500, -200, 1400, 1700, 800, 2400, 2800, 3300, 3800, 4200, 5500, 5600, 5700, 5900, 7200, 7700, 8000],
    "country": [-1500, -800, 300, 1500, 1000, 1300, 1500, 1600, 2000, 3200, 3300, 3500, 3900, 4100, 4200, 4700, 4900, 5000, 5800, 6200, 9000],
    "repurposed": [-2500, -1500, -500, 1000, 800, 1200, 2900, 2600, 2500, 4700, 4000, 3000, 4500, 5200, 5700, 7000, 7300, 6900, 7700, 8100, 9000],
    "new": [500, 1000, 1000, 3000, 1500, 2000, 3800, 3900, 4000, 4100, 4500, 4500, 4700, 4800, 4900, 5000, 5500, 5600, 8500, 10000, 12000],
    "polish": [-600, -400, -300, 0, -100, 0, 100, 300, 300, 900, 1000, 800, 1100, 1300, 1500, 1700, 2000, 2300, 3300, 3600, 5000],
}
SPREAD_EDGES = [2, 3, 4, 6, 9, 14, 20, 30, 50, 80]
# Hundredths of a point by other TLDs. What letters and numbers get must stay below what short words exceed them by.
SHORT_SPREAD = [-150, 60, 120, 180, 240, 270, 300, 320, 330, 340, 350]
WORD_SPREAD = {
    "com": [-100, 1100, 1500, 1900, 2200, 2500, 2700, 3000, 3300, 3700, 3900],
    "generic": [-100, 129, 612, 1763, 2200, 2700, 3000, 3100, 3200, 3300, 3300],
    "country": [500, 900, 1200, 1500, 1700, 1900, 2100, 2200, 2500, 3000, 3086],
    "repurposed": [-100, 476, 1700, 2600, 2800, 3300, 4100, 4700, 4900, 5200, 5300],
    "new": [-100, 300, 1400, 2800, 3500, 3900, 4300, 4800, 5400, 5700, 5800],
    "polish": [0, 250, 400, 600, 700, 900, 1000, 1100, 1300, 1500, 1600],
}
# Corrections at the top of the scale: class of suffix, form, the sum above which they apply, and a percentage.
LIFTS = [("com", "word", -500, 15), ("com", "pair", 400, -15), ("polish", "word", -3500, 100), ("polish", "pair", -3500, 50)]
# National suffixes: points by the number of registered names in millions, for suffixes whose registries report few sales.
NATIONAL = [(5, -5900), (1.5, -6400), (0.5, -7100), (0.15, -7700)]
# How far to move, for suffixes whose language the scorer reads, and for others.
NATIONAL_SHRINK, NATIONAL_UNREAD = 0.5, 0.25
READ = set("de at ch li fr re es mx ar cl pe uy ve ec it sm se nl be pt br dk no fi cz tr uk us au nz ie ca in za".split())


def national(tld, points, registered):
    """Returns the points of a national suffix, at least two thirds of the way to those of its size."""
    size = next((level for least, level in NATIONAL if registered.get(tld, 0) >= least), None)
    if class_of(tld) != SUFFIXES.index("country") or size is None or points >= size:
        return points
    shrink = NATIONAL_SHRINK if tld.rsplit(".", 1)[-1] in READ else NATIONAL_UNREAD
    return round(points + (size - points) * shrink)


def rows_of_spread(lines):
    """Returns the points of other TLDs by class and form: those of the second stage, or those that a previous run wrote."""
    split = [line.split() for line in lines]
    old = next((at for at, row in enumerate(split) if row[:2] == ["table", "tldSpread"]), None)
    if old is None:
        return {(row[0], row[1]): row[2:] for row in split if len(row) > 2 and row[0] in SUFFIXES and row[1] in FORMS}
    rows = {row[0]: row[1:] for row in split[old + 2 : old + 2 + len(SUFFIXES)]}
    return {(suffix, form): row for suffix, row in rows.items() for form in FORMS}


def without_top(lines):
    """Returns the lines that this stage does not write."""
    kept, skip = [], False
    for line in lines:
        row = line.split()
        if row[:2] in (["table", "shape"], ["table", "tldSpread"]) or row[:1] == ["spread"]:
            skip = True
        elif row[:1] == ["table"]:
            skip = False
        if not skip and row[:1] != ["lift"]:
            kept.append(line)
    while not kept[-1]:
        kept.pop()
    return kept


def write_tables(path, registered=None):
    """Writes all values except the scale. National suffixes change only with `registered`, right after market.py."""
    lines = path.read_text().splitlines()
    spread = rows_of_spread(lines)
    for suffix in SUFFIXES:
        spread[suffix, "word"] = WORD_SPREAD[suffix]
        spread[suffix, "letters"] = spread[suffix, "number"] = SHORT_SPREAD
    out = []
    for line in without_top(lines):
        row = line.split()
        if registered and row[:1] == ["suffix"]:
            line = f"suffix {row[1]} {national(row[1], int(row[2]), registered)}"
        out.append(line)
    at = next(at for at, line in enumerate(out) if line.startswith("table"))
    out[at - 1 : at - 1] = [" ".join(map(str, ["lift", *lift])) for lift in LIFTS]
    out += ["", "table shape shape suffix", " ".join(map(str, ["edges", *range(1, len(SHAPES) + 1)]))]
    out += [" ".join(map(str, [suffix, 0, *SHAPE_POINTS[suffix]])) for suffix in SUFFIXES]
    out += ["", " ".join(map(str, ["spread", *SPREAD_EDGES]))]
    out += [" ".join(map(str, [*key, *spread[key]])) for key in ((suffix, form) for suffix in SUFFIXES for form in FORMS)]
    path.write_text("\n".join(out) + "\n")


def scale(lines):
    """Returns the anchors of the scale: pairs of a sum and its score."""
    values = [int(value) for line in lines if line.startswith("scale ") for value in line.split()[1:]]
    return list(zip(values[::2], values[1::2]))


def write_scale(path, ranks):
    """Writes the scale from the ranks of a day, which the scorer counts from the sum that scores 20."""
    lines = path.read_text().splitlines()
    base = next(total for total, score in scale(lines) if score == 20)
    sums = ranks - 2**15 + base
    anchors = [(int(np.quantile(sums, 1 - share)), score) for share, score in ANCHORS]
    # Scores are rounded: 100 is reached halfway to the last anchor.
    anchors[-1] = (2 * anchors[-1][0] - anchors[-2][0], 100)
    (first, _), (second, _) = anchors[:2]
    anchors.insert(0, (first - (second - first) * 13 // 20, 0))
    text = "scale " + " ".join(f"{total} {score}" for total, score in anchors)
    path.write_text("\n".join(text if line.startswith("scale ") else line for line in lines) + "\n")


def main():
    from score import Scorer

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", required=True, help="registered names, one a line")
    parser.add_argument("--sales", required=True, help="domain,price_usd,...")
    parser.add_argument("--registered", required=True, help="suffix,registered_millions,...")
    parser.add_argument("--national", action="store_true", help="also shrink the points of national suffixes, once after market.py")
    args = parser.parse_args()
    path = ROOT / "data" / "scorer" / "model.txt"
    registered = {row["suffix"]: float(row["registered_millions"]) for row in csv.DictReader(open(args.registered))}
    write_tables(path, registered if args.national else None)
    closed = {line for line in (ROOT / "data" / "scorer" / "closed.txt").read_text().splitlines() if line[0] != "#"}
    scorer = Scorer()
    market = Market(args.names, args.sales, args.registered, scorer.command, closed)
    day = ~market.sold
    rows = scorer.ask("score", [f"{name}\t{spread}" for name, spread in zip(market.name[day], market.facts["spread"][day])])
    write_scale(path, np.array([int(row[2]) for row in rows]))


if __name__ == "__main__":
    main()
