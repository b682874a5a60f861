"""Fits the model of `data/docs/outcomes.md` ("Expectation") to drops on standard input: CSV rows of score, length,
earlier drops, other suffixes, and 1 if the name was registered again. Prints JSON: for each of the first four, joined
by commas, the expected share and the bounds of its 95 % interval. Shares nothing with the program.
"""
import csv
import json
import math
import sys

LENGTHS = [3, 5, 8, 12, 20, 63]
Z = 1.959963984540054


def terms(score, length, earlier, others):
    tens = score / 10
    band = next(at for at, longest in enumerate(LENGTHS) if length <= longest)
    return (
        [1.0, tens, max(0.0, tens - 3), max(0.0, tens - 5)]
        + [float(at == band) for at in range(len(LENGTHS))]
        + [float(earlier == 1), float(earlier >= 2)]
        + [math.log(1 + min(others, 15))]
    )


def solved(matrix, right):
    """Gaussian elimination with pivots."""
    rows = [list(row) + [value] for row, value in zip(matrix, right)]
    size = len(rows)
    for at in range(size):
        pivot = max(range(at, size), key=lambda row: abs(rows[row][at]))
        rows[at], rows[pivot] = rows[pivot], rows[at]
        for row in range(size):
            if row != at:
                factor = rows[row][at] / rows[at][at]
                rows[row] = [a - factor * b for a, b in zip(rows[row], rows[at])]
    return [row[-1] / row[at] for at, row in enumerate(rows)]


def main():
    counts = {}
    for *drop, taken in csv.reader(sys.stdin):
        count = counts.setdefault(tuple(map(int, drop)), [0, 0])
        count[0] += 1
        count[1] += int(taken)
    known = [(terms(*drop), names, taken) for drop, (names, taken) in counts.items()]
    size = len(known[0][0])
    weights = [0.0] * size
    for _ in range(60):
        slope = [0.0 if at == 0 else -weight for at, weight in enumerate(weights)]
        bend = [[float(a == b != 0) for b in range(size)] for a in range(size)]
        for row, names, taken in known:
            share = 1 / (1 + math.exp(-sum(a * b for a, b in zip(row, weights))))
            for a in range(size):
                if row[a]:
                    slope[a] += row[a] * (taken - names * share)
                    for b in range(size):
                        bend[a][b] += names * share * (1 - share) * row[a] * row[b]
        step = solved(bend, slope)
        # Small steps first, so that no step goes too far.
        weights = [weight + min(0.5, max(-0.5, more)) for weight, more in zip(weights, step)]
    found = {}
    for drop in counts:
        row = terms(*drop)
        middle = sum(a * b for a, b in zip(row, weights))
        half = Z * math.sqrt(sum(a * b for a, b in zip(row, solved(bend, row))))
        shares = [1 / (1 + math.exp(-at)) for at in (middle, middle - half, middle + half)]
        found[",".join(map(str, drop))] = shares
    json.dump(found, sys.stdout)


main()
