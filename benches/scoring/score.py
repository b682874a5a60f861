"""Command of benches/score: fits the model on request, and reports how well names are ranked."""
import argparse
import csv
import json
import os
import subprocess
from pathlib import Path

import numpy as np

import fit
import market
import pairs
import traps
from evaluation import Evaluation, by_group, open_text, spreads
from publish import Publication

ROOT = Path(__file__).resolve().parents[2]
MUST = {
    "sold_vs_random": (0.81, 0.86),
    "sold for 1,000 USD or more": (0.84, 0.89),
    "listed_vs_zone": (0.73, 0.77),
    "popular_vs_random": (0.70, 0.75),
    "rereg_pl": (0.59, 0.63),
    "needle_com": (0.86, 0.90),
    "needle_com, precision at 500": (0.27, 0.40),
    "price, .com, namebio": (0.45, 0.55),
    "price, .com, dnjournal": (0.36, 0.45),
}


class Scorer:
    """The built scorer, called through its bench."""

    def __init__(self):
        build = ["cargo", "bench", "--package", "dropdex-scorer", "--bench", "scoring", "--no-run", "--message-format=json", "--quiet"]
        lines = subprocess.run(build, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        messages = [json.loads(line) for line in lines.splitlines()]
        built = [message for message in messages if message.get("target", {}).get("name") == "scoring"]
        self.command = [message["executable"] for message in built if message.get("executable")][-1]

    def ask(self, what, lines):
        text = "\n".join(lines) + "\n"
        asked = subprocess.run([self.command, what], input=text, capture_output=True, text=True, check=True)
        return [line.split("\t") for line in asked.stdout.splitlines()]

    def observe(self, names):
        """Returns the inputs of the model's tables for each name, one column each; refused names look ordinary."""
        rows = self.ask("observe", names)
        at = next(at for at, row in enumerate(rows) if row[:2] == ["name", "suffix"])
        head = rows.pop(at)
        ordinary = ["", "com", "8-10", "46", "0", "100", "0", "0"] + ["0"] * (len(head) - 8) + [""]
        rows = [row if len(row) == len(head) else ordinary for row in rows]
        seen = dict(zip(head, map(list, zip(*rows))))
        out = {name: np.array([int(value) for value in seen[name]]) for name in head[3:-1]}
        out["suffix"] = np.array([fit.SUFFIXES.index(value) for value in seen["suffix"]])
        out["length"] = np.array([fit.LENGTHS.index(value) for value in seen["length"]])
        out["words"] = [value.split("|") for value in seen["words"]]
        return out

    def scores(self, names, spreads):
        rows = self.ask("score", [f"{name}\t{spread}" for name, spread in zip(names, spreads)])
        return np.array([float(row[1]) if len(row) > 1 else 0.0 for row in rows])


def print_table(figures):
    print(f"| set | {' | '.join(figures)} | must | moonshot |")
    print("| --- |" + " ---: |" * (len(figures) + 2))
    for name in next(iter(figures.values())):
        must = MUST.get(name, ("", ""))
        values = " | ".join(f"{column[name]:.3f}" for column in figures.values())
        print(f"| {name} | {values} | {must[0]} | {must[1]} |")


def print_groups(title, groups, least):
    shown = sorted((key, value) for key, value in groups.items() if value[0] >= least)
    print(f"\n{title}: " + ", ".join(f"{key} {value:.2f} ({rows:,})" for key, (rows, value) in shown))


def print_worst(evaluation, scores, count=25):
    """Prints names that show errors of the scorer."""
    rows = evaluation.rows("sold_vs_random")
    order = rows[np.argsort(scores[rows], kind="stable")]
    show = lambda row: f"{evaluation.name[row]} {scores[row]:.0f}"
    sold = [row for row in order if evaluation.wanted[row] == 1 and evaluation.price[row] >= 1000]
    others = [row for row in order[::-1] if evaluation.wanted[row] == 0]
    print("\nSold for 1,000 USD or more, and lowest: " + ", ".join(map(show, sold[:count])))
    print("\nRandom, and highest: " + ", ".join(map(show, others[:count])))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--eval", required=True, help="labelled names: domain,label,price,source,set,...")
    parser.add_argument("--names", required=True, help="registered names, one a line, over which spreads are counted")
    parser.add_argument("--day", required=True, nargs="+", help="the names that dropped on one day, one a line")
    parser.add_argument("--sales", help="sold names with prices: domain,price_usd,...; prints the traps")
    parser.add_argument("--registered", help="registered names by suffix: suffix,registered_millions,...; with --sales prints the day mix")
    parser.add_argument("--vectors", help="vectors of words, as words.py makes them")
    parser.add_argument("--fit", action="store_true", help="write data/scorer/model.txt and word values anew")
    args = parser.parse_args()

    day = sorted({line.strip().split(",")[0] for path in args.day for line in open_text(path) if "." in line})
    labels = [name.split(".", 1)[0] for name in day]
    day_spreads = spreads(args.names, day, labels)
    evaluation = Evaluation(args.eval, args.names)
    scorer = Scorer()
    figures = {}
    if args.vectors:
        seen = scorer.observe(evaluation.name) | {"spread": evaluation.spread}
        vectors = np.load(args.vectors)
        words = fit.WordSpace(vectors["words"], vectors["vectors"], seen)
        publication = Publication(evaluation, seen, scorer.observe(day) | {"spread": day_spreads})
        parts = fit.cross_validated(evaluation, seen, words)
        publication.calibrate(parts)
        figures["cross-validated"] = evaluation.figures(publication.scores(parts))
        figures["before rounding"] = evaluation.figures(sum(parts.values()))
        if args.fit:
            everything = np.ones(len(evaluation.name), bool)
            model = fit.Model(seen, words).fit(fit.Examples(evaluation), everything)
            publication.calibrate(model.parts(seen), model, vectors)
            publication.write(ROOT / "data" / "scorer", model, vectors)
            scorer = Scorer()
    scores = scorer.scores(evaluation.name, evaluation.spread)
    figures["as built"] = evaluation.figures(scores)
    print_table(figures)
    print_groups("sold_vs_random by TLD", by_group(evaluation, scores, evaluation.tld), 200)
    length = np.array([len(label) for label in evaluation.label_text])
    print_groups("sold_vs_random by length", by_group(evaluation, scores, length), 200)
    print_worst(evaluation, scores)
    print(f"\nnames a second and core, read and printed: {speed(scorer, evaluation.name):,.0f}")
    pairs.report(scorer)
    pairs.report_national(scorer)
    if args.sales:
        sold_names = sorted({row["domain"] for row in csv.DictReader(open_text(args.sales))})
        traps.report(scorer, sold_names, brands())
        traps.oddest(scorer, day, day_spreads)
    if args.sales and args.registered:
        market.run(args.names, args.sales, args.registered, scorer.command)
    shown = scorer.scores(day, day_spreads)
    sold = scores[(evaluation.set == "sold_vs_random") & (evaluation.wanted == 1)]
    print(f"\nmedian of sold names {np.median(sold):.0f}; of {len(day):,} names of the day {np.mean(shown >= 90):.2%} score 90 or more")


def brands():
    lines = (ROOT / "data" / "scorer" / "brands.txt").read_text().splitlines()
    return {line.split()[0] for line in lines if line[0] != "#" and not line.endswith("!")}


def speed(scorer, names, times=4):
    """Returns names per second of one core, without the time of a single name, which loads the dictionaries."""
    seconds = []
    for lines in (names[:1], np.tile(names, times)):
        start = os.times()
        scorer.ask("score", lines)
        end = os.times()
        seconds.append(end.children_user + end.children_system - start.children_user - start.children_system)
    return times * len(names) / (seconds[1] - seconds[0])


if __name__ == "__main__":
    main()
