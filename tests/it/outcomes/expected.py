"""Computes the outcomes of dropped names from labels alone: the names of two zones with the day of their release
and the days until their registration, which come from the zones' own daily files (.ee: Estonian Internet
Foundation, .nu: The Swedish Internet Foundation, both CC BY 4.0).

    python3 expected.py labels.csv.gz 2024-04-01 2025-05-05

Prints JSON: `names`, the time of the registration after each drop, newest first; `rows`, for each of the given days, suffix, length and
horizon, the names, those that were registered again, and the bounds of Wilson's interval; `tests`, rules on suffix
and length, tried on the last 24 months before the last of the days. Shares nothing with the program; `data/docs/outcomes.md` has the rules.
"""
import csv
import datetime
import gzip
import json
import sys

HORIZONS = [1, 7, 30, 400]
BANDS = [("1-3", 3), ("4-5", 5), ("6-8", 8), ("9-12", 12), ("13-20", 20), ("21+", 63)]


def band(name):
    label = name.split(".")[0]
    if label.startswith("xn--"):
        label = label[4:].encode().decode("punycode")
    return next(text for text, longest in BANDS if len(label) <= longest)


def time(row):
    if row["outcome"] == "renewed":
        return "renewed"
    if not row["days_to_registration"]:
        return "none"
    days = int(row["days_to_registration"])
    return str(next((horizon for horizon in HORIZONS if days <= horizon), "later"))


def wilson(count, names):
    z = 1.959963984540054
    share = count / names
    spread = 1 + z * z / names
    middle = (share + z * z / (2 * names)) / spread
    half = z * (share * (1 - share) / names + z * z / (4 * names * names)) ** 0.5 / spread
    low = 0.0 if count == 0 else middle - half
    high = 1.0 if count == names else middle + half
    return [round(share, 4), round(low, 4), round(high, 4)]


def cells(rows, as_of):
    found = {}
    for row in rows:
        if row["outcome"] == "renewed":
            continue
        age = (as_of - datetime.date.fromisoformat(row["release_day"])).days
        days = row["days_to_registration"]
        for horizon in HORIZONS:
            if not horizon <= age < horizon + 365:
                continue
            taken = days != "" and int(days) <= horizon
            tld = row["name"].split(".")[-1]
            for length in (None, band(row["name"])):
                cell = found.setdefault((tld, length, horizon), [0, 0])
                cell[0] += 1
                cell[1] += taken
    return [
        {"tld": tld, "length": length, "horizon": horizon, "names": names, "taken": taken, "bounds": wilson(taken, names)}
        for (tld, length, horizon), (names, taken) in sorted(found.items(), key=str)
    ]


def backtest(rows, as_of, months, horizon, zone, longest):
    """A rule on suffix and length, tried on the releases of some months."""
    last = as_of - datetime.timedelta(days=horizon)
    first = last - datetime.timedelta(days=(months * 365 + 6) // 12 - 1)
    found = {"names": 0, "renewed": 0, "count": 0, "months": {}}
    for row in rows:
        label, tld = row["name"].split(".")
        shown = label[4:].encode().decode("punycode") if label.startswith("xn--") else label
        day = datetime.date.fromisoformat(row["release_day"])
        if tld != zone or len(shown) > longest or not first <= day <= last:
            continue
        if row["outcome"] == "renewed":
            found["renewed"] += 1
            continue
        month = found["months"].setdefault(row["release_day"][:7], [0, 0])
        taken = row["days_to_registration"] != "" and int(row["days_to_registration"]) <= horizon
        month[0] += 1
        month[1] += taken
        found["names"] += 1
        found["count"] += taken
    found["bounds"] = wilson(found["count"], found["names"])
    return found


def main():
    with gzip.open(sys.argv[1], "rt") as file:
        rows = list(csv.DictReader(file))
    names = {}
    for row in sorted(rows, key=lambda row: row["release_day"], reverse=True):
        names.setdefault(row["name"], []).append(time(row))
    days = {day: cells(rows, datetime.date.fromisoformat(day)) for day in sys.argv[2:]}
    last = datetime.date.fromisoformat(sys.argv[-1])
    rules = [[24, horizon, zone, longest] for horizon in HORIZONS for zone in ("ee", "nu") for longest in (5, 63)]
    tests = [[rule, backtest(rows, last, *rule)] for rule in rules]
    json.dump({"names": names, "rows": days, "tests": tests}, sys.stdout)


main()
