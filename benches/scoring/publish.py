"""Turns logits into whole points: the scale of the score, and the files that are compiled into the program."""
import numpy as np

import fit
from evaluation import open_text, write_packed

# Points of one logit, before the scale.
POINTS = 20
# Anchors of the scale: the scores of the median sold name, and of the best hundredth of a day.
SOLD, BEST = 50, 90
# Beyond it: shares of the ordinary names of the needle test, and the score they begin at.
RARER = [(0.005, 93), (0.002, 95), (0.001, 97), (0.0003, 98), (0.0001, 99)]
IDN = -6
SUFFIX_WEIGHT_PLAIN, SUFFIX_WEIGHT_POINT = 46, 12
# Maximum tenths of a point that one word adds or subtracts.
VALUE_MAX = 127


def rounded(hundredths):
    """Rounds to the nearest whole point, halves away from zero, as the scorer does."""
    return np.sign(hundredths) * ((np.abs(hundredths) + 50) // 100)


def quantile(sums, share):
    """Returns the sum that this share of the values reaches, to the nearest whole point."""
    at = int(np.ceil(np.quantile(sums, 1 - share)))
    return min((at, at + 1), key=lambda total: abs(np.mean(sums >= total) - share))


class Publication:
    def __init__(self, evaluation, seen, day):
        self.evaluation, self.seen, self.day = evaluation, seen, day
        self.start, self.steps = 0, []

    def plain(self):
        """Returns unwanted names without digits and hyphens: their average is the base of a score."""
        return (self.evaluation.wanted == 0) & (self.seen["digits"] == 0) & (self.seen["hyphens"] == 0)

    def level(self, parts):
        """Returns the average logits of plain names, by class of suffix."""
        total, plain = sum(parts.values()), self.plain()
        suffix = self.seen["suffix"]
        return np.array([total[plain & (suffix == at)].mean() for at in range(len(fit.SUFFIXES))])

    def sums(self, parts, seen):
        """Returns the sums of whole points before start and scale."""
        points = [rounded(np.round(logits * POINTS * 100).astype(int)) for logits in parts.values()]
        weight = seen["tld_weight"] - SUFFIX_WEIGHT_PLAIN
        tld = np.sign(weight) * (np.abs(weight) // SUFFIX_WEIGHT_POINT)
        return sum(points) + tld + np.where(seen["idn"] == 1, IDN, 0)

    def program_sums(self, model, seen, words=None):
        """Returns the same sums as the program computes them: from centred tables, each part rounded."""
        hundredths = {"market": np.round(model.parts(seen, words)["market"] * POINTS * 100).astype(int)}
        for row in self.centred(model):
            part = np.round(self.logits(row, seen) * POINTS * 100).astype(int)
            hundredths[row[0]] = hundredths.get(row[0], 0) + part
        weight = seen["tld_weight"] - SUFFIX_WEIGHT_PLAIN
        tld = np.sign(weight) * (np.abs(weight) // SUFFIX_WEIGHT_POINT)
        points = sum(rounded(part) for part in hundredths.values())
        start = np.floor(self.level(model.parts(self.seen)) * POINTS).astype(int)[seen["suffix"]]
        return start + points + tld + np.where(seen["idn"] == 1, IDN, 0)

    def calibrate(self, parts, model=None, vectors=None):
        """Chooses start and scale from the names that were sold and from the names of the day seen by `model`,
        or, without a model, from the ordinary names of the needle test."""
        e = self.evaluation
        sums = self.sums(parts, self.seen) if model is None else self.program_sums(model, self.seen)
        # Some sold names have a cap below the median, regardless of their sum.
        free = np.where(self.seen["cap"] < SOLD, sums.min(), sums)
        sold = np.median(free[(e.set == "sold_vs_random") & (e.wanted == 1)])
        self.start = int(np.floor(SOLD - sold))
        ordinary = sums[(e.set == "needle_com") & (e.wanted == 0)]
        day = ordinary
        if model is not None:
            words = fit.WordSpace(vectors["words"], vectors["vectors"], self.day)
            day = self.program_sums(model, self.day, words)
        best = max(quantile(day, 0.01) + self.start, SOLD + 8)
        self.steps = [(0, 0), (SOLD, SOLD), (best, BEST)]
        for share, score in RARER:
            self.step(quantile(ordinary, share) + self.start, score)
        self.step(int(sums.max()) + self.start, 100)

    def step(self, total, score):
        """Adds a step to the scale, above the existing ones."""
        last, before = self.steps[-1]
        self.steps.append((max(total, last + score - before), score))

    def scores(self, parts):
        sums = self.sums(parts, self.seen) + self.start
        sums_at, scores_at = zip(*self.steps)
        return np.minimum(np.floor(np.interp(sums, sums_at, scores_at) + 0.5), self.seen["cap"])

    def write(self, folder, model, vectors):
        """Writes model.txt, and the values of words into words.tsv.zst."""
        (folder / "model.txt").write_text(self.model_text(model))
        values = model.word_values() * POINTS * 10
        values = np.clip(np.round(values), -VALUE_MAX, VALUE_MAX).astype(int)
        by_word = {word: row for word, row in zip(vectors["words"].tolist(), values.tolist())}
        lines = []
        for line in open_text(folder / "words.tsv.zst"):
            fields = line.rstrip("\n").split("\t")[:3]
            row = by_word.get(fields[0], [])
            lines.append("\t".join(fields + [" ".join(map(str, row))] if any(row) else fields))
        write_packed(folder / "words.tsv.zst", "\n".join(lines) + "\n")

    def model_text(self, model):
        steps = " ".join(f"{total} {score}" for total, score in self.steps)
        # Down: a point above the median is worth several of the score.
        start = self.start + np.floor(self.level(model.parts(self.seen)) * POINTS).astype(int)
        lines = [
            "# The tables of the scorer, fitted by benches/score: src/scorer/model.rs reads them.",
            "# `start`: what names begin with, in points, by class of suffix (com, generic, country, repurposed,",
            "# new, polish). `scale`: pairs of a sum of points and the score it means, even in between. Then",
            "# tables, each of a part of the score, a fact and classes:",
            "# a name gets, in its class, the hundredths of a point of the range its fact is in. `edges` are",
            "# the lowest values of all ranges but the first.",
            f"start {' '.join(map(str, start))}",
            f"scale {steps}",
        ]
        for part, fact, by, edges, points in self.centred(model):
            names = fit.SUFFIXES if by == "suffix" else fit.LENGTHS
            lines += ["", f"table {part} {fact} {by}", " ".join(["edges", *map(str, edges)])]
            points = np.round(points * POINTS * 100).astype(int)
            lines += [f"{name} {' '.join(map(str, row))}" for name, row in zip(names, points)]
        return "\n".join(lines) + "\n"

    def centred(self, model):
        """Returns tables in which plain names of each suffix average zero in every part, and names without
        hyphens and digits get zero for these; `length` takes over the difference."""
        rows = [[table.part, table.fact, table.by, table.edges, table.points.reshape(table.classes, -1).copy()] for table in model.tables]
        of_length = np.zeros((len(fit.LENGTHS), 1))
        for part, _, by, _, points in rows:
            if part in ("hyphens", "digits"):
                if by == "length":
                    of_length += points[:, :1]
                points -= points[:, :1].copy()
        rows.append(["length", "chars", "length", [], of_length])
        plain, suffix = self.plain(), self.seen["suffix"]
        market = model.parts(self.seen)["market"]
        centred = set()
        for part, _, by, _, points in rows:
            if by != "suffix" or part in centred or part in ("hyphens", "digits"):
                continue
            centred.add(part)
            logits = sum(self.logits(row, self.seen) for row in rows if row[0] == part)
            # Words are not in tables: the average of plain names is subtracted from the words themselves.
            logits = logits + (market if part == "dictionary" else 0)
            for at in range(len(fit.SUFFIXES)):
                points[at] -= logits[plain & (suffix == at)].mean()
        return rows

    def logits(self, row, seen):
        _, fact, by, edges, points = row
        return points[seen[by], np.searchsorted(edges, seen[fact], side="right")]
