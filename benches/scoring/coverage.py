"""Chooses the labels that estimate how much of the market a corpus holds, and measures the effect of its size on scores.

  coverage.py --names NAMES --scorer COMMAND [--write]

NAMES are the reference names, which `tldSpread` was fitted to. --write creates data/scorer/frequent.txt: words of
words.tsv that a dozen public TLDs have there. They are chosen from one half of the names and counted in the other;
otherwise labels favoured by chance would seem frequent. COMMAND is the built bench `scoring`. Then the names of a
corpus of 50,000 are scored in corpora of several sizes, each a part of the next, and compared with NAMES.
"""
import argparse
import subprocess
import zlib
from collections import Counter
from pathlib import Path

import numpy as np

from evaluation import open_text, ranks

SCORER = Path(__file__).resolve().parents[2] / "data" / "scorer"
# Minimum public TLDs of a label in the first half, and maximum labels.
CHOSEN_BY, PROBES = range(4, 9), 1500
SIZES = [50_000, 200_000, 1_000_000, 3_000_000]
HEAD = """# Frequent labels, and how many public TLDs have each in six million registered names: by them the scorer
# estimates how much of the market a corpus holds. benches/scoring/coverage.py writes them.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", required=True, help="registered names, one a line")
    parser.add_argument("--scorer", required=True, help="the bench `scoring` as built")
    parser.add_argument("--write", action="store_true", help="write data/scorer/frequent.txt anew")
    args = parser.parse_args()
    closed = {line for line in (SCORER / "closed.txt").read_text().splitlines() if line[0] != "#"}
    with open_text(args.names) as file:
        names = [name for name in file.read().split() if name.split(".", 1)[1] not in closed]
    # As good as random, and the same everywhere.
    draw = np.array([zlib.crc32(name.encode()) for name in names], np.uint32)
    label = [name.split(".", 1)[0] for name in names]
    if args.write:
        words = {line.split("\t")[0] for line in open_text(SCORER / "words.tsv.zst")}
        halves = [Counter(), Counter()]
        for one, half in zip(label, (draw & 1).tolist()):
            if one in words and len(one) > 3:
                halves[half][one] += 1
        chosen = sorted((one for one in halves[0] if halves[0][one] in CHOSEN_BY), key=lambda one: zlib.crc32(one.encode()))
        rows = sorted((one, 2 * halves[1][one]) for one in chosen[:PROBES] if halves[1][one])
        (SCORER / "frequent.txt").write_text(HEAD + "".join(f"{one} {count}\n" for one, count in rows))
    probes = dict(line.split() for line in (SCORER / "frequent.txt").read_text().splitlines() if line[0] != "#")
    order = np.argsort(draw >> 1, kind="stable")
    asked = order[: SIZES[0]]
    before = None
    print("| names | coverage | DQS on average | mean difference | more than 5 | more than 10 | rank correlation |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for size in [len(names), *reversed(SIZES), 0]:
        part = order[: max(size, 1)]
        spread = Counter(label[at] for at in part.tolist())
        found = sum(spread[one] for one in probes) if size else 0
        text = "".join(f"{names[at]}\t{spread[label[at]] if size else 1}\t{found}\n" for at in asked.tolist())
        lines = subprocess.run([args.scorer, "score"], input=text, capture_output=True, text=True, check=True).stdout.splitlines()
        # A refused name has neither.
        scores, fine = np.array([line.split("\t")[1:] for line in lines if "\t" in line], int).T
        if before is None:
            before, fine_before = scores, fine
        apart = np.abs(scores - before)
        share = found / sum(map(int, probes.values()))
        alike = np.corrcoef(ranks(fine), ranks(fine_before))[0, 1]
        print(
            f"| {size:,} | {share:.3f} | {scores.mean():.1f} | {apart.mean():.2f} | {(apart > 5).mean():.1%} "
            f"| {(apart > 10).mean():.1%} | {alike:.3f} |"
        )


if __name__ == "__main__":
    main()
