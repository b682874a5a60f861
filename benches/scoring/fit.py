"""The model of the scorer, fitted to labelled names: tables of points, and values of words.

Every set of names has a base rate of its own, and one score serves all of them: the sum of one cell
of each table and of the values of the words. The sum predicts whether a name is the wanted
one (logistic loss), and the rank of its price within one source of sales.
"""
import numpy as np

from evaluation import FOLDS, SETS

SUFFIXES = ["com", "generic", "country", "repurposed", "new", "polish"]
LENGTHS = ["1-3", "4", "5", "6-7", "8-10", "11-14", "15+"]
# part, fact, classes
TABLES = [
    ("length", "chars", "suffix"),
    ("dictionary", "bits", "suffix"),
    ("dictionary", "bits", "length"),
    ("dictionary", "bits_per_letter", "suffix"),
    ("dictionary", "bits_per_letter", "length"),
    ("dictionary", "pieces", "suffix"),
    ("dictionary", "pieces", "length"),
    ("dictionary", "unknown", "length"),
    ("dictionary", "unknown", "suffix"),
    ("dictionary", "spelt_bits", "suffix"),
    ("dictionary", "spelt_bits", "length"),
    ("language", "fit", "suffix"),
    ("language", "fit", "length"),
    ("pronounceability", "letter_cost", "suffix"),
    ("pronounceability", "letter_cost", "length"),
    ("pronounceability", "english_cost", "suffix"),
    ("pronounceability", "english_cost", "length"),
    ("pronounceability", "polish_cost", "suffix"),
    ("pronounceability", "polish_dearest", "suffix"),
    ("digits", "digits", "suffix"),
    ("digits", "digits", "length"),
    ("digits", "distinct_digits", "length"),
    ("digits", "digits_where", "length"),
    ("digits", "digits_where", "suffix"),
    ("digits", "number", "length"),
    ("digits", "number", "suffix"),
    ("hyphens", "hyphens", "suffix"),
    ("hyphens", "hyphens", "length"),
    ("tldSpread", "spread", "suffix"),
    ("tldSpread", "spread", "length"),
]
WEIGHTS = {"sold_vs_random": 1.0, "listed_vs_zone": 0.8, "popular_vs_random": 2.0, "rereg_pl": 1.2, "rereg_se_nu": 0.5}
# The needle test: few wanted names among very many.
NEEDLE_WANTED, NEEDLE_OTHERS = 8.0, 0.15
PRICE_WEIGHT = 2.0
RANGES = 14
# Most labels are known in one TLD: equally full ranges would not separate 20 from 200 TLDs.
# Ranges for properties of Polish names, about equally full.
EDGES = {
    "spread": [2, 3, 4, 6, 9, 14, 20, 30, 50, 80],
    "polish_cost": [48, 50, 52, 54, 55, 56, 58, 59, 61, 63, 65, 68, 74],
    "polish_dearest": [76, 79, 84, 87, 91, 96, 100, 103, 108, 114, 120, 127, 137],
}
# Facts that may only raise (1) or only lower (-1) a score, even if the data suggests otherwise.
ONE_WAY = {
    "chars": -1, "bits": -1, "spelt_bits": -1, "fit": 1, "letter_cost": -1, "polish_cost": -1, "polish_dearest": -1,
    "hyphens": -1, "spread": 1,
}
SWEEPS = 50
WORD_TURNS = 5
STEP = 0.3
SMOOTH = 0.3
SHRINK = 40.0
WORD_SHRINK = 30.0
# Shrinkage of a word's value beyond its direction, and number of refinements.
OWN_SHRINK = 30.0
OWN_SWEEPS, OWN_STEP = 15, 0.5


class Examples:
    """Training data: rows of the evaluation, some of them twice, with targets and weights."""

    def __init__(self, evaluation):
        e = evaluation
        weight = np.array([WEIGHTS.get(name, 0.0) for name in e.set])
        needle = e.set == "needle_com"
        weight[needle] = np.where(e.wanted[needle] == 1, NEEDLE_WANTED, NEEDLE_OTHERS)
        # A cheap sale counts less: the buyer often wants backlinks and age, not the name.
        sold = (e.set == "sold_vs_random") & (e.wanted == 1)
        weight[sold] *= np.clip(np.log10(np.maximum(e.price[sold], 50)) / 3, 0.6, 2.0) ** 1.5
        rows, target, weights = [np.arange(len(e.name))], [e.wanted.astype(float)], [weight]
        group = [np.array([SETS.index(name) for name in e.set])]
        at = len(SETS)
        for source in ("namebio", "dnjournal"):
            for com in (True, False):
                own = sold & np.char.startswith(e.source, source) & ((e.tld == "com") == com)
                own = np.where(own)[0]
                place = np.argsort(np.argsort(e.price[own], kind="stable")) + 0.5
                rows.append(own)
                target.append(place / len(own))
                weights.append(np.full(len(own), PRICE_WEIGHT if com else PRICE_WEIGHT / 2))
                group.append(np.full(len(own), at))
                at += 1
        self.row, self.target = np.concatenate(rows), np.concatenate(target)
        self.weight, self.group = np.concatenate(weights), np.concatenate(group)
        self.groups = at

    def of(self, keep):
        """Returns only the rows to keep."""
        here = keep[self.row] & (self.weight > 0)
        return self.row[here], self.target[here], self.weight[here], self.group[here]


def edges_of(values):
    """Returns the ends of the ranges of a fact: at most RANGES ranges, equally full."""
    distinct = np.unique(values)
    if len(distinct) <= RANGES + 4:
        return distinct[1:]
    return np.unique(np.quantile(values, np.linspace(0, 1, RANGES + 1)[1:-1]).round().astype(int))


class Table:
    def __init__(self, part, fact, by, seen):
        self.part, self.fact, self.by = part, fact, by
        self.edges = np.array(EDGES[fact]) if fact in EDGES else edges_of(seen[fact])
        self.ranges = len(self.edges) + 1
        self.classes = len(SUFFIXES if by == "suffix" else LENGTHS)
        self.cell = self.cells(seen)
        self.points = np.zeros(self.classes * self.ranges)

    def cells(self, seen):
        """Returns the cell of each row."""
        return seen[self.by] * self.ranges + np.searchsorted(self.edges, seen[self.fact], side="right")

    def improve(self, row, gradient, hessian):
        """Takes one damped step, smoothed over neighbouring ranges. Returns it by row."""
        cell = self.cell[row]
        size = len(self.points)
        pull = np.bincount(cell, gradient, size) - SHRINK * 0.3 * self.points
        step = (pull / (np.bincount(cell, hessian, size) + SHRINK)).reshape(self.classes, self.ranges)
        if self.ranges > 6:
            padded = np.pad(step, ((0, 0), (1, 1)), mode="edge")
            step = (1 - SMOOTH) * step + SMOOTH / 2 * (padded[:, :-2] + padded[:, 2:])
        before = self.points.copy()
        self.points += STEP * step.ravel()
        if self.fact in ONE_WAY:
            self.straighten(np.bincount(cell, hessian, size) + SHRINK)
        return (self.points - before)[cell]

    def straighten(self, weight):
        """Makes the points monotonic in the fact, in each class, with the least change."""
        way = ONE_WAY[self.fact]
        rows = way * self.points.reshape(self.classes, self.ranges)
        weights = weight.reshape(self.classes, self.ranges)
        self.points = way * np.concatenate([rising(row, own) for row, own in zip(rows, weights)])


def rising(values, weights):
    """Returns the nearest values that never fall: neighbours that do are pooled."""
    pools = []
    for value, weight in zip(values, weights):
        pools.append([value, weight, 1])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            value, weight, count = pools.pop()
            before = pools[-1]
            before[0] = (before[0] * before[1] + value * weight) / (before[1] + weight)
            before[1] += weight
            before[2] += count
    return np.repeat([pool[0] for pool in pools], [pool[2] for pool in pools])


class Model:
    """Tables and word values, in logits."""

    def __init__(self, seen, words):
        self.tables = [Table(*spec, seen) for spec in TABLES]
        self.words = words
        self.suffix = seen["suffix"]
        self.direction = np.zeros((words.size, len(SUFFIXES) + 1))
        self.own = np.zeros(len(words.names))

    def fit(self, examples, keep):
        row, target, weight, group = examples.of(keep)
        offset, score = np.zeros(examples.groups), np.zeros(len(row))
        for _ in range(SWEEPS):
            gradient, hessian = slopes(score + offset[group], target, weight)
            offset += np.bincount(group, gradient, examples.groups) / (
                np.bincount(group, hessian, examples.groups) + 1e-3
            )
            for table in self.tables:
                gradient, hessian = slopes(score + offset[group], target, weight)
                score += table.improve(row, gradient, hessian)
        score = self.fit_words(row, target, weight, group, score)
        self.fit_own(row, target, weight, group, score)
        return self

    def fit_words(self, row, target, weight, group, score):
        """Fits directions in the space of words: one for all suffixes, and an addition for each class."""
        size, classes = self.words.size, len(SUFFIXES)
        suffix = self.suffix[row]
        members = [np.where(suffix == at)[0] for at in range(classes)]
        used, group = np.unique(group, return_inverse=True)
        # First the shared directions, then those of each class, then base rates.
        shared, rates = slice(0, size), slice((classes + 1) * size, None)
        shrink = np.full((classes + 1) * size + len(used), WORD_SHRINK)
        shrink[rates] = 1e-3
        found = np.zeros(len(shrink))
        for _ in range(WORD_TURNS):
            directions = found[: (classes + 1) * size].reshape(classes + 1, size)
            logit = score + found[rates][group]
            for at, rows in enumerate(members):
                logit[rows] += self.words.rows[row[rows]] @ (directions[0] + directions[at + 1])
            gradient, hessian = slopes(logit, target, weight)
            curve, pull = np.diag(shrink), -shrink * found
            curve[rates, rates] += np.diag(np.bincount(group, hessian, len(used)))
            pull[rates] += np.bincount(group, gradient, len(used))
            for at, rows in enumerate(members):
                words = self.words.rows[row[rows]]
                weighted = words * hessian[rows, None]
                inner = weighted.T @ words
                by_group = np.array([weighted[group[rows] == one].sum(axis=0) for one in range(len(used))])
                class_own = slice((at + 1) * size, (at + 2) * size)
                for one in (shared, class_own):
                    pull[one] += words.T @ gradient[rows]
                    curve[one, rates] += by_group.T
                    curve[rates, one] += by_group
                    for other in (shared, class_own):
                        curve[one, other] += inner
            found += np.linalg.solve(curve, pull)
        self.direction = found[: (classes + 1) * size].reshape(classes + 1, size).T
        return score + self.market(self.words, self.suffix)[row] + found[rates][group]

    def fit_own(self, row, target, weight, group, score):
        """Fits the value of each word beyond that of its direction: the same under all suffixes."""
        words, groups = self.words, int(group.max()) + 1
        rows, known = len(words.rows), len(words.names)
        for _ in range(OWN_SWEEPS):
            gradient, hessian = slopes(score, target, weight)
            score += (np.bincount(group, gradient, groups) / (np.bincount(group, hessian, groups) + 1e-3))[group]
            gradient, hessian = slopes(score, target, weight)
            of_row = [np.bincount(row, slope, rows)[words.row] for slope in (gradient, hessian)]
            pull = np.bincount(words.word, of_row[0] * words.share, known) - OWN_SHRINK * self.own
            step = OWN_STEP * pull / (np.bincount(words.word, of_row[1] * words.share**2, known) + OWN_SHRINK)
            self.own += step
            score += words.sums(step)[row]

    def market(self, words, suffix):
        """Returns the logits of the words of each row."""
        values = self.direction[:, :1] + self.direction[:, 1:]
        return np.einsum("rd,dr->r", words.rows, values[:, suffix])

    def word_values(self):
        """Returns the logits of each word, by class of suffix."""
        return self.words.vectors @ (self.direction[:, :1] + self.direction[:, 1:]) + self.own[:, None]

    def parts(self, seen, words=None):
        """Logits of each part, by row of `seen`, of which `words` holds the vectors."""
        out = {}
        for table in self.tables:
            out[table.part] = out.get(table.part, 0) + table.points[table.cells(seen)]
        words = words or self.words
        out["market"] = self.market(words, seen["suffix"]) + words.sums(self.own)
        return out


def slopes(logit, target, weight):
    chance = 1 / (1 + np.exp(-logit))
    return weight * (target - chance), weight * chance * (1 - chance)


class WordSpace:
    """Vectors of words, and for each row its words and the mean of their vectors over its parts."""

    def __init__(self, names, vectors, seen):
        self.names, self.vectors, self.size = names, vectors, vectors.shape[1]
        number = {word: at for at, word in enumerate(names)}
        self.rows = np.zeros((len(seen["words"]), self.size))
        # One entry for each use of a word: its row, its number and its share.
        self.row, self.word, self.share = [], [], []
        for at, pieces in enumerate(seen["words"]):
            known = [number[word] for word in pieces if word in number]
            if known:
                share = min(len(pieces), 7) ** -0.5
                self.rows[at] = vectors[known].sum(axis=0) * share
                self.row += [at] * len(known)
                self.word += known
                self.share += [share] * len(known)
        self.row, self.word, self.share = map(np.array, (self.row, self.word, self.share))

    def sums(self, values):
        """Returns for each row the mean of the values of its words, by number, over its parts."""
        return np.bincount(self.row, values[self.word] * self.share, len(self.rows))


def cross_validated(evaluation, seen, words):
    """Returns the logits of every row by part, from a model that saw no row with its label."""
    examples = Examples(evaluation)
    out = {}
    for fold in range(FOLDS):
        model = Model(seen, words).fit(examples, evaluation.fold != fold)
        here = evaluation.fold == fold
        for part, logits in model.parts(seen).items():
            out.setdefault(part, np.zeros(len(here)))[here] = logits[here]
    return out
