"""Computes comparable sales as `data/docs/facts.md` ("Comparable sales") describes them, from JSON on standard input:
the sales of a file with the words of their names, names to compare, and a day. Compares every sale with every other
one. Prints the markets with their back-tests, and the comparable sales of each name. Shares nothing with the program.
"""
import json
import math
import statistics
import sys
from datetime import date

VENUES = {"NameJet": "auction", "DropCatch": "auction", "Sedo": "retail", "Afternic": "retail"}


def suffix_class(suffix):
    for number, suffixes in enumerate([{"com"}, {"net", "org"}, {"io", "ai", "co", "me", "tv"}]):
        if suffix in suffixes:
            return number
    return 3 if len(suffix.split(".")[-1]) == 2 else 4


def shape(label, words):
    if "-" in label:
        return "hyphen"
    if label.isdigit():
        return "digits", len(label)
    if any(letter.isdigit() for letter in label):
        return "mixed"
    if len(words) <= 3 and all(words):
        return "words", len(words)
    return ("letters", len(label)) if len(label) <= 4 else "other"


def read(name):
    label, suffix = name["domain"].split(".", 1)
    words = name["words"]
    kind = suffix_class(suffix), shape(label, words), name["adult"]
    return {**name, "label": label, "suffix": suffix, "kind": kind, "first": words[0], "last": words[-1]}


def weight(name, sold, day):
    if name["kind"] != sold["kind"] or sold["day"] >= day:
        return 0.0
    found = 1.0 if name["suffix"] == sold["suffix"] else 0.4
    found *= math.exp(-abs(len(name["label"]) - len(sold["label"])) / 2)
    if any(name[end] and name[end] == sold[end] for end in ("first", "last")):
        found *= 4.0
    return found * 0.5 ** ((day - sold["day"]).days / (3 * 365.25))


def rounded(cents):
    digits = len(str(cents))
    unit = 10 ** max(0, digits - 2)
    return (cents + unit // 2) // unit * unit


def point(sales, share):
    """The price at a share of the weight, between the middles of the weights of two sales."""
    total = sum(one for _, one in sales)
    below, places = 0.0, []
    for cents, one in sales:
        places.append(((below + one / 2) / total, cents))
        below += one
    if share <= places[0][0]:
        return places[0][1]
    for (start, low), (end, high) in zip(places, places[1:]):
        if share <= end:
            if low == high:
                return high
            part = (share - start) / (end - start)
            return round(math.exp(math.log(low) + (math.log(high) - math.log(low)) * part))
    return places[-1][1]


def compared(name, sales, day):
    weighed = [(weight(name, sold, day), sold) for sold in sales]
    weighed = [it for it in weighed if it[0] > 0.02]
    weighed.sort(key=lambda it: (it[0], it[1]["place"]), reverse=True)
    best = weighed[:25]
    prices = sorted(((sold["cents"], one) for one, sold in best), key=lambda it: it[0])
    has_range = len(best) >= 5 and name["kind"][1] not in (("words", 2), ("letters", 4))
    points = [rounded(point(prices, share)) for share in (0.1, 0.25, 0.5, 0.75, 0.9)] if has_range else None
    return [sold for _, sold in best], points


def backtest(sales):
    tested = sales[len(sales) - min(1000, len(sales) * 30 // 100):]
    misses, inside, wide = [], 0, 0
    for sold in tested:
        points = compared(sold, sales, sold["day"])[1]
        if points:
            lowest, low, middle, high, highest = points
            inside += low <= sold["cents"] <= high
            wide += lowest <= sold["cents"] <= highest
            misses.append(max(sold["cents"] / middle, middle / sold["cents"]))
    miss = statistics.median(misses) if misses else None
    return {"tested": len(tested), "ranges": len(misses), "inRange": inside, "inWideRange": wide, "medianMiss": miss}


def markets(sales):
    sales = sorted(sales, key=lambda it: (it["day"], it["domain"], it["cents"], it["channel"], it["currency"]))
    last, found, repeats = {}, {}, 0
    for sold in sales:
        key = sold["domain"], sold["cents"], sold["currency"]
        if key in last and (sold["day"] - last[key]).days <= 60:
            repeats += 1
            continue
        last[key] = sold["day"]
        market = found.setdefault((sold["channel"], sold["currency"]), [])
        market.append({**sold, "place": len(market)})
    return found, repeats


def main():
    given = json.load(sys.stdin)
    sales = []
    for sold in map(read, given["sales"]):
        channel = VENUES.get(sold["venue"], "unknown")
        sales.append({**sold, "channel": channel, "day": date.fromisoformat(sold["date"])})
    found, repeats = markets(sales)
    day = date.fromisoformat(given["asOf"])
    names = []
    for name in map(read, given["names"]):
        comparables = []
        for channel, currency in sorted(found):
            best, points = compared(name, found[channel, currency], day)
            if best:
                shown = [[sold["domain"], sold["date"], sold["cents"]] for sold in best]
                comparables.append({"channel": channel, "currency": currency, "points": points, "sales": shown})
        names.append({"domain": name["domain"], "comparables": comparables})
    out = [
        {"channel": channel, "currency": currency, "sales": len(found[channel, currency]),
         "backtest": backtest(found[channel, currency])}
        for channel, currency in sorted(found)
    ]
    json.dump({"repeats": repeats, "markets": out, "names": names}, sys.stdout)


main()
