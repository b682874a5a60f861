"""Third stage of the fit: short labels and numbers, other TLDs by form of the label, suffixes, and the scale, in one fit.

  top.py --eval EVAL --names NAMES --sales SALES --registered REGISTERED

Rewrites data/scorer/model.txt once after market.py. Sales alone do not decide these values: most sold numbers of five digits are
from one boom of 2017 to 2019, and most registries report no sales. The fit therefore stays near values that were set by judgement, and
counts, beside the day of the market, names matched by suffix and length, pairs in the order of the market (pairs.csv), prices of
sold names, and words of trade under national suffixes. Under .com, shapes keep their order; more TLDs never take points.
"""
import argparse
import csv
from collections import defaultdict

import numpy as np
from scipy.optimize import minimize

import pairs
from evaluation import FOLDS, Evaluation, auc
from fit import SUFFIXES
from market import FORMS, ROOT, Market, class_of, read_model, report, scale_of

SHAPES = (
    "Digits8 Digits7 Digits6 Pattern6 Digits5 Letters4 Lucky5 Choice4 Pattern5 Spoken4 Best5 "
    "Digits4 Pattern4 Best4 Letters3 Digits3 Best3 Spoken3 Digits2 Letters2 Single"
).split()
# By judgement, in hundredths of a point: points of shapes by class of suffix.
SHAPE_POINTS = {
    "com": [-4000, -3300, 700, 2700, 2800, 2950, 3500, 3600, 4400, 4500, 5500, 5900, 6100, 6300, 6800, 7200, 7500, 7800, 14000, 14500, 15000],
    "generic": [-4500, -3500, -1800, -600, -500, 1400, -200, 1700, 800, 2400, 2800, 3300, 3800, 4200, 5500, 5600, 5700, 5900, 7200, 7700, 8000],
    "country": [-1500, -800, 300, 1500, 1000, 1500, 1300, 1600, 2000, 3200, 3300, 3500, 3900, 4100, 4200, 4700, 4900, 5000, 5800, 6200, 9000],
    "repurposed": [-2500, -1500, -500, 1000, 800, 2900, 1200, 2600, 2500, 4700, 4000, 3000, 4500, 5200, 5700, 7000, 7300, 6900, 7700, 8100, 9000],
    "new": [500, 1000, 1000, 3000, 1500, 3800, 2000, 3900, 4000, 4100, 4500, 4500, 4700, 4800, 4900, 5000, 5500, 5600, 8500, 10000, 12000],
    "polish": [-600, -400, -300, 0, -100, 100, 0, 300, 300, 900, 1000, 800, 1100, 1300, 1500, 1700, 2000, 2300, 3300, 3600, 5000],
}
# By judgement: points of other TLDs. What letters and numbers get must stay below what short words exceed them by.
SPREAD_EDGES = [2, 3, 4, 6, 9, 14, 20, 30, 50, 80]
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
# National suffixes, by judgement: points by the number of registered names in millions, for suffixes whose registries report few sales.
NATIONAL = [(5, -5900), (1.5, -6400), (0.5, -7100), (0.15, -7700)]
# How far to move, for suffixes whose language the scorer reads, and for others.
NATIONAL_SHRINK, NATIONAL_UNREAD = 0.5, 0.25
READ = set("de at ch li fr re es mx ar cl pe uy ve ec it sm se nl be pt br dk no fi cz tr uk us au nz ie ca in za".split())

# Shapes of words of one to four letters: a word exceeds the best shape of its length by FLOOR.
BELOW_WORD, FLOOR, IDN = {1: 20, 2: 19, 3: 17, 4: 9}, 500, -2000
# Weights: of pairs of matched names by set, of pairs of prices, of pairs in market order, of words of trade; what a deviation costs.
MATCHED = {"sold_vs_random": 1 / 6, "listed_vs_zone": 1 / 6, "rereg_pl": 0.4}
PRICED, ORDERED, TRADE = 0.1, 3, 100
NEAR_SHAPE, NEAR_SPREAD, NEAR_SUFFIX = 2e-6, 5e-8, 2e-6
# Few short labels outside com are labelled, so their values stay nearer; those of Polish names and of five digits are held.
NEARER, HELD = 1e-5, 1e-3
# The sum that the best word of trade of a language should reach under its suffix, and the step between shapes under .com.
TRADE_SUM, STEP = 2000, 20
# How far the points of a suffix may move: sales of country codes are over-reported.
SUFFIX_MOVE = 600
CLASSES, UNIT = len(SUFFIXES), 300


def national(tld, points, registered):
    """Returns the points of a national suffix, moved towards those of its size."""
    size = next((level for least, level in NATIONAL if registered.get(tld, 0) >= least), None)
    if class_of(tld) != SUFFIXES.index("country") or size is None or points >= size:
        return points
    shrink = NATIONAL_SHRINK if tld.rsplit(".", 1)[-1] in READ else NATIONAL_UNREAD
    return round(points + (size - points) * shrink)


class Names:
    """Names with what the fitted values do not change, as src/scorer/signals.rs adds it up."""

    def __init__(self, model, facts, tlds):
        one = lambda part: sum(
            points[facts[by], np.searchsorted(edges, facts[fact], side="right")]
            for own, fact, by, edges, points in model.tables if own == part
        )
        slope = model.slope[facts["suffix"]] / 100
        label = one("length") + (one("dictionary") + one("language") + one("pronounceability") + facts["market"]) * slope
        characters = (one("digits") + one("hyphens")) * slope + IDN * facts["idn"]
        self.classes, self.form, self.shape = facts["suffix"], facts["form"], facts["shape"]
        self.suffix = np.array([model.place.get(tld, -1) for tld in tlds])
        self.label = np.where(self.shape > 0, 0, label)
        self.fixed = np.where(self.shape > 0, 0, characters) + np.where(self.suffix < 0, model.start[self.classes], 0)
        words = self.form == FORMS.index("word")
        self.below = np.array([BELOW_WORD.get(chars, -1) if word else -1 for chars, word in zip(facts["chars"], words)])
        self.spread = np.searchsorted(SPREAD_EDGES, facts["spread"], side="right")

    def sums(self, values):
        """Returns the sum of each name, and what `gradient` needs."""
        shape, spread, suffix = values
        label, floor = self.label.copy(), np.full(len(self.label), -np.inf)
        short = self.below >= 0
        floor[short] = shape[self.classes[short], self.below[short]] + FLOOR
        raised = (floor > label) & (self.shape == 0)
        label = np.where(raised, floor, label)
        shaped = self.shape > 0
        label[shaped] = shape[self.classes[shaped], self.shape[shaped] - 1]
        sums = self.fixed + label + spread[self.classes, self.form, self.spread] + np.where(self.suffix >= 0, suffix[self.suffix], 0)
        rate, lifted = np.ones(len(sums)), sums.copy()
        for suffix_class, form, start, percent in LIFTS:
            here = (self.classes == SUFFIXES.index(suffix_class)) & (self.form == FORMS.index(form)) & (sums > start)
            rate[here] += percent / 100
            lifted[here] += (sums[here] - start) * percent / 100
        return lifted, raised, rate

    def gradient(self, by_sum, raised, rate, suffixes):
        by_sum, shape = by_sum * rate, np.zeros((CLASSES, len(SHAPES)))
        shaped = self.shape > 0
        np.add.at(shape, (self.classes[shaped], self.shape[shaped] - 1), by_sum[shaped])
        np.add.at(shape, (self.classes[raised], self.below[raised]), by_sum[raised])
        width = len(SPREAD_EDGES) + 1
        place = (self.classes * len(FORMS) + self.form) * width + self.spread
        spread = np.bincount(place, by_sum, CLASSES * len(FORMS) * width).reshape(CLASSES, len(FORMS), width)
        own = self.suffix >= 0
        return pack(shape, spread, np.bincount(self.suffix[own], by_sum[own], suffixes), steps_of=tails)


def steps(table):
    return np.concatenate([table[..., :1], np.diff(table, axis=-1)], axis=-1)


def tails(table):
    return np.cumsum(table[..., ::-1], axis=-1)[..., ::-1]


def pack(shape, spread, suffix, steps_of=steps):
    """Tables are fitted as their first value and the steps between neighbours, which can be kept from falling."""
    return np.concatenate([steps_of(shape).ravel(), steps_of(spread).ravel(), suffix])


def unpack(found):
    shapes, spreads = CLASSES * len(SHAPES), CLASSES * len(FORMS) * (len(SPREAD_EDGES) + 1)
    shape, spread, suffix = np.split(found, [shapes, shapes + spreads])
    return np.cumsum(shape.reshape(CLASSES, -1), axis=-1), np.cumsum(spread.reshape(CLASSES, len(FORMS), -1), axis=-1), suffix


class Model:
    """The model of market.py, with the values by judgement in place of those that this stage fits."""

    def __init__(self, path, registered):
        self.path, self.text = path, path.read_text().splitlines()
        lines = [line.split() for line in self.text]
        values = lambda name: np.array(next(row[1:] for row in lines if row[:1] == [name]), int)
        self.start, self.slope = values("start"), values("slope")
        self.tables = [table for table in read_model(path) if table[0] not in ("shape", "tldSpread")]
        rows = next((table[4] for table in read_model(path) if table[0] == "tldSpread"), None)
        if rows is None:
            raise SystemExit(f"{path}: top.py runs once, after market.py")
        suffixes = [(row[1], int(row[2])) for row in lines if row[:1] == ["suffix"]]
        self.place = {tld: at for at, (tld, _) in enumerate(suffixes)}
        spread = np.repeat(rows[:, None, :], len(FORMS), axis=1).astype(float)
        for at, suffix in enumerate(SUFFIXES):
            spread[at, FORMS.index("word")] = WORD_SPREAD[suffix]
            spread[at, [FORMS.index("letters"), FORMS.index("number")]] = SHORT_SPREAD
        shape = np.array([SHAPE_POINTS[suffix] for suffix in SUFFIXES], float)
        self.judged = pack(shape, spread, np.array([national(tld, points, registered) for tld, points in suffixes], float))

    def write(self, values):
        """Writes everything except the scale."""
        shape, spread, suffix = (np.round(table).astype(int) for table in values)
        out, skip = [], False
        for line in self.text:
            row = line.split()
            skip = row[:2] == ["table", "tldSpread"] or skip and row[:1] != ["table"]
            if not skip:
                out.append(f"suffix {row[1]} {suffix[self.place[row[1]]]}" if row[:1] == ["suffix"] else line)
        at = next(at for at, line in enumerate(out) if line.startswith("table"))
        out[at - 1 : at - 1] = [" ".join(map(str, ["lift", *lift])) for lift in LIFTS]
        out += ["table shape shape suffix", " ".join(map(str, ["edges", *range(1, len(SHAPES) + 1)]))]
        out += [" ".join(map(str, [name, 0, *row])) for name, row in zip(SUFFIXES, shape)]
        out += ["", " ".join(map(str, ["spread", *SPREAD_EDGES]))]
        out += [" ".join(map(str, [name, form, *row])) for name, rows in zip(SUFFIXES, spread) for form, row in zip(FORMS, rows)]
        self.path.write_text("\n".join(out) + "\n")


def near(model):
    """Returns what a deviation of each value costs."""
    shape = np.full((CLASSES, len(SHAPES)), NEARER)
    shape[SUFFIXES.index("com")] = NEAR_SHAPE
    shape[SUFFIXES.index("com"), SHAPES.index("Digits5")] = HELD
    spread = np.full((CLASSES, len(FORMS), len(SPREAD_EDGES) + 1), NEAR_SPREAD)
    spread[SUFFIXES.index("polish")] = HELD
    spread[SUFFIXES.index("com"), [FORMS.index("letters"), FORMS.index("number")]] = NEARER
    suffix = [HELD if class_of(tld) == SUFFIXES.index("polish") else NEAR_SUFFIX for tld in model.place]
    return shape, spread, np.array(suffix)


class Joint:
    """All sets of names, and the loss over them."""

    def __init__(self, model, market, evaluation, scorer):
        self.model, self.market, self.evaluation, self.near = model, market, evaluation, near(model)
        self.day = Names(model, market.facts, market.tld)
        self.labelled = self.names(scorer, evaluation.name, evaluation.spread)
        self.draw = np.random.default_rng(3)
        self.compared = [(*self.matched(name), weight) for name, weight in MATCHED.items()] + [(*self.priced(), PRICED)]
        rows = pairs.read()
        both = [row[which] for row in rows for which in ("better", "worse")]
        tlds = np.array([int(row[which + "_tlds"]) for row in rows for which in ("better", "worse")])
        sizes = [size for size in pairs.SIZES if size]
        self.ordered = [self.names(scorer, both, np.maximum(1, np.round(tlds * size)).astype(int)) for size in sizes]
        trade = list(csv.DictReader(line for line in open(ROOT / "data" / "scorer" / "trade.csv") if line[0] != "#"))
        words = {tld: [f"{row[language].split()[0]}.{tld}" for row in trade if row[language].split()] for tld, language in pairs.NATIONAL.items()}
        self.trade = {tld: self.names(scorer, names, np.full(len(names), 100)) for tld, names in words.items()}

    def names(self, scorer, names, spread):
        facts = scorer.observe(names) | {"spread": spread}
        return Names(self.model, facts, [name.split(".", 1)[1] for name in names])

    def matched(self, name, draws=3):
        """Draws pairs of a wanted name and another of the same suffix and length."""
        drawn = []
        for rows in alike(self.evaluation, name):
            wanted = self.evaluation.wanted[rows].astype(bool)
            if not wanted.all():
                drawn += [(one, other) for one in rows[wanted] for other in self.draw.choice(rows[~wanted], draws)]
        return np.array(drawn).T

    def priced(self, draws=6):
        """Draws pairs of sold names of one source, of which one cost 1.5 times the other or more."""
        price, drawn = self.evaluation.price, []
        for source, times in (("namebio", 1), ("dnjournal", 2)):
            rows = self.evaluation.priced(source)
            for one in rows:
                for other in self.draw.choice(rows, draws * times):
                    high, low = (one, other) if price[one] > price[other] else (other, one)
                    if price[high] > 1.5 * price[low]:
                        drawn.append((high, low))
        return np.array(drawn).T

    def loss(self, found, day, labels):
        """Returns the loss of values, an intercept and the slope of the logit, with its gradient. `day` and `labels` say which
        names count."""
        count, market = len(self.model.judged), self.market
        packed, slope = found[:count] * UNIT, np.exp(found[-1]) / 1000
        values, gradient, suffixes = unpack(packed), np.zeros(count), len(self.model.place)
        sums, *way = self.day.sums(values)
        weight, logit = np.where(day, market.weight, 0), slope * sums + found[-2]
        total = (weight * (np.logaddexp(0, logit) - market.sold * logit)).sum()
        by_logit = weight * (1 / (1 + np.exp(-logit)) - market.sold)
        gradient += self.day.gradient(by_logit * slope, *way, suffixes)
        by_start, by_slope = by_logit.sum(), (by_logit * sums).sum() * slope

        def compare(names, better, worse, weight, scale, gap=0):
            sums, *way = names.sums(values)
            apart = (sums[better] - sums[worse] - gap) * scale
            by_apart, by_sum = -weight / (1 + np.exp(apart)), np.zeros(len(sums))
            np.add.at(by_sum, better, by_apart * scale)
            np.add.at(by_sum, worse, -by_apart * scale)
            return weight * np.logaddexp(0, -apart).sum(), names.gradient(by_sum, *way, suffixes), (by_apart * apart).sum()

        for better, worse, weight in self.compared:
            kept = labels[better] & labels[worse]
            more, by_value, by_scale = compare(self.labelled, better[kept], worse[kept], weight, slope)
            total, gradient, by_slope = total + more, gradient + by_value, by_slope + by_scale
        for names in self.ordered:
            places = np.arange(0, len(names.label), 2)
            more, by_value, _ = compare(names, places, places + 1, ORDERED, 1 / 150, 60)
            total, gradient = total + more, gradient + by_value
        for names in self.trade.values():
            sums, *way = names.sums(values)
            best = int(np.argmax(sums))
            missing, by_sum = max(0, TRADE_SUM - sums[best]) / UNIT, np.zeros(len(sums))
            by_sum[best] = -2 * TRADE * missing / UNIT
            total, gradient = total + TRADE * missing**2, gradient + names.gradient(by_sum, *way, suffixes)
        apart = [value - judged for value, judged in zip(values, unpack(self.model.judged))]
        total += sum((near * far**2).sum() for near, far in zip(self.near, apart))
        gradient += pack(*(2 * near * far for near, far in zip(self.near, apart)), steps_of=tails)
        return total, np.concatenate([gradient * UNIT, [by_start, by_slope]])

    def solve(self, day, labels, turns):
        shape = np.full((CLASSES, len(SHAPES)), -np.inf)
        shape[SUFFIXES.index("com"), 1:] = STEP
        spread = np.full((CLASSES, len(FORMS), len(SPREAD_EDGES) + 1), -np.inf)
        spread[..., 1:] = 1
        shape[1:, 1:] = 0
        suffix = self.model.judged[-len(self.model.place) :]
        # The others move by com.
        move = np.array([0 if tld == "com" else SUFFIX_MOVE for tld in self.model.place])
        low = np.concatenate([shape.ravel(), spread.ravel(), suffix - move])
        high = np.concatenate([np.full(low.size - suffix.size, np.inf), suffix + move])
        begin = np.concatenate([np.maximum(self.model.judged, low) / UNIT, [1, np.log(0.65)]])
        bounds = [*zip(np.r_[low, -np.inf, -np.inf] / UNIT, np.r_[high, np.inf, np.inf] / UNIT)]
        found = minimize(self.loss, begin, (day, labels), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": turns, "maxfun": 3 * turns})
        return unpack(found.x[:-2] * UNIT)

    def report(self, title, day, labelled):
        report(self.market, day, title)
        print("; ".join(f"{name} {within(self.evaluation, name, labelled):.4f}" for name in MATCHED) + " within suffix and length")


def alike(evaluation, name):
    """Yields the names of a set that have the same suffix and length, as an array of rows."""
    groups = defaultdict(list)
    for row in evaluation.rows(name):
        groups[evaluation.tld[row], len(evaluation.label_text[row])].append(row)
    yield from map(np.array, groups.values())


def within(evaluation, name, scores):
    """AUC within groups of names of the same suffix and length, weighted by their wanted names."""
    total, count = 0.0, 0
    for rows in alike(evaluation, name):
        wanted = int(evaluation.wanted[rows].sum())
        if 0 < wanted < len(rows):
            total, count = total + wanted * auc(evaluation.wanted[rows], scores[rows]), count + wanted
    return total / count


def write_scale(path, ranks):
    """Writes the scale from the ranks of a day, which the scorer counts from the sum that scores 20."""
    lines = path.read_text().splitlines()
    values = [int(value) for line in lines if line.startswith("scale ") for value in line.split()[1:]]
    base = next(total for total, score in zip(values[::2], values[1::2]) if score == 20)
    text = scale_of(ranks - 2**15 + base)
    path.write_text("\n".join(text if line.startswith("scale ") else line for line in lines) + "\n")


def main():
    from score import Scorer

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--eval", required=True, help="labelled names: domain,label,price,source,set,...")
    parser.add_argument("--names", required=True, help="registered names, one a line")
    parser.add_argument("--sales", required=True, help="domain,price_usd,...")
    parser.add_argument("--registered", required=True, help="suffix,registered_millions,...")
    args = parser.parse_args()
    path = ROOT / "data" / "scorer" / "model.txt"
    registered = {row["suffix"]: float(row["registered_millions"]) for row in csv.DictReader(open(args.registered))}
    closed = {line for line in (ROOT / "data" / "scorer" / "closed.txt").read_text().splitlines() if line[0] != "#"}
    model = Model(path, registered)
    # The scorer reads a model with all tables.
    model.write(unpack(model.judged))
    scorer = Scorer()
    market, evaluation = Market(args.names, args.sales, args.registered, scorer.command, closed), Evaluation(args.eval, args.names)
    joint = Joint(model, market, evaluation, scorer)
    found = joint.solve(np.ones(len(market.name), bool), np.ones(len(evaluation.name), bool), 150)
    print("| | AUC | sold for 1,000 USD or more | P@100 | P@500 | P@2,000 | recall in the best 1 % |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for title, values in (("by judgement", unpack(model.judged)), ("fitted", found)):
        joint.report(title, joint.day.sums(values)[0], joint.labelled.sums(values)[0])
    day, labelled = np.zeros(len(market.name)), np.zeros(len(evaluation.name))
    for fold in range(FOLDS):
        values = joint.solve(market.fold != fold, evaluation.fold != fold, 80)
        for names, own, out in ((joint.day, market.fold, day), (joint.labelled, evaluation.fold, labelled)):
            out[own == fold] = names.sums(values)[0][own == fold]
    joint.report("cross-validated", day, labelled)
    model.write(found)
    scorer, ordinary = Scorer(), ~market.sold
    rows = scorer.ask("score", [f"{name}\t{spread}" for name, spread in zip(market.name[ordinary], market.facts["spread"][ordinary])])
    write_scale(path, np.array([int(row[2]) for row in rows]))


if __name__ == "__main__":
    main()
