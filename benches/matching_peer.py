#!/usr/bin/env python3
"""Runs alert rules in SQLite, one query per rule, for comparison.

    matching_peer.py NAMES.tsv RULES.json

Loads the new names, best first, with the indexes that a careful user would create, runs every rule on one
connection (all matches are counted and the best 500 fetched), and prints one line of JSON: the
version, the seconds of all rules, and the number of matches of each.
"""

import json
import sqlite3
import sys
import time

BEST = 500


def load(database, path):
    database.execute("""CREATE TABLE names (rank INTEGER PRIMARY KEY, name TEXT, unicode TEXT,
                        tld TEXT, length INTEGER, dqs INTEGER, stage INTEGER)""")
    with open(path, encoding="utf-8", newline="\n") as file:
        rows = ((rank, *(cell or None for cell in line.rstrip("\n").split("\t")))
                for rank, line in enumerate(file))
        database.executemany("INSERT INTO names VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    # Every queried column, so that no row is looked up again.
    database.execute("CREATE INDEX by_tld ON names (tld, dqs, length, stage, name, unicode)")
    database.execute("CREATE INDEX by_dqs ON names (dqs, length, stage, tld, name, unicode)")
    database.execute("ANALYZE")
    database.commit()


def statement(rule):
    """Returns the condition of a rule and the values of its parameters."""
    marks = lambda values: ", ".join("?" * len(values))
    parts = [f"stage IN ({marks(rule['stages'])})"]
    values = list(rule["stages"])
    if rule["tlds"]:
        parts.append(f"tld IN ({marks(rule['tlds'])})")
        values += rule["tlds"]
    if rule["min_dqs"]:
        parts.append("dqs >= ?")
        values.append(rule["min_dqs"])
    if rule["max_length"] < 63:
        parts.append("length <= ?")
        values.append(rule["max_length"])
    if rule["contains"]:
        parts.append("(instr(name, ?) > 0 OR instr(unicode, ?) > 0)")
        values += [rule["contains"]] * 2
    return f"SELECT rank FROM names WHERE {' AND '.join(parts)}", values


def main():
    names, rules = sys.argv[1:]
    database = sqlite3.connect(":memory:", cached_statements=4096)
    load(database, names)
    with open(rules, encoding="utf-8") as file:
        rules = json.load(file)
    totals = []
    begun = time.perf_counter()
    for rule in rules:
        query, values = statement(rule)
        found = [rank for (rank,) in database.execute(query, values)]
        totals.append(len(found))
        found.sort()
        del found[BEST:]
    seconds = time.perf_counter() - begun
    version = f"SQLite {sqlite3.sqlite_version}"
    json.dump({"version": version, "seconds": seconds, "totals": totals}, sys.stdout)


if __name__ == "__main__":
    main()
