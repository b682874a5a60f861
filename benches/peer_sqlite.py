#!/usr/bin/env python3
"""SQLite on the names and queries of the service bench, for comparison.

    peer_sqlite.py NAMES.tsv QUERIES.json

Loads the names into an in-memory database with the indexes a careful user would make, asks every
query on one connection, and prints one line of JSON: how long loading and indexing took, how long
each query took, and the first answers, so that the bench can compare them. Standard library only.
"""

import json
import sqlite3
import sys
import time

COLUMNS = ("name", "unicode", "tld", "length", "dqs", "drop_date", "release", "pending_from",
           "registered_again")
# Clustered by name: a prefix is one range of the table itself.
TABLE = """
CREATE TABLE names (
    name TEXT PRIMARY KEY, unicode TEXT, tld TEXT NOT NULL, length INTEGER NOT NULL,
    dqs INTEGER NOT NULL, drop_date INTEGER, release INTEGER, pending_from INTEGER,
    registered_again INTEGER NOT NULL
) WITHOUT ROWID
"""
# Each holds every column that is asked for, so that no row is looked up again; those of drops are
# in the order of the answer.
INDEXES = (
    "CREATE INDEX names_unicode ON names (unicode) WHERE unicode IS NOT NULL",
    """CREATE INDEX names_tld
        ON names (tld, name, length, dqs, drop_date, release, pending_from, registered_again)""",
    """CREATE INDEX drops_rank
        ON names (dqs DESC, length, name, tld, drop_date, release, pending_from, unicode,
                  registered_again)
        WHERE drop_date IS NOT NULL AND registered_again = 0""",
    """CREATE INDEX drops_tld
        ON names (tld, dqs DESC, length, name, drop_date, release, pending_from, unicode,
                  registered_again)
        WHERE drop_date IS NOT NULL AND registered_again = 0""",
    "ANALYZE",
)
LISTED = "drop_date IS NOT NULL AND registered_again = 0"
STAGES = {
    "redemption": ":today < pending_from",
    "pending-delete": "pending_from <= :today AND :today < release",
    "catchable": "release <= :today AND :today < release + :catch_days",
    "released": "release + :catch_days <= :today",
}
ACTIVE = ":today < release + :catch_days"
# Totals are counted one further than the service shows them.
TOTAL_MAX = 10_001
# Asked before the clock counts, so that pages and prepared statements are at hand.
WARM_UP = 20


def main():
    names_path, task_path = sys.argv[1:]
    with open(task_path, encoding="utf-8") as file:
        task = json.load(file)
    database = sqlite3.connect(":memory:", cached_statements=4096)
    begun = time.perf_counter()
    load(database, names_path)
    loaded = time.perf_counter()
    for statement in INDEXES:
        database.execute(statement)
    indexed = time.perf_counter()
    print(json.dumps({
        "version": sqlite3.sqlite_version,
        "load_s": loaded - begun,
        "index_s": indexed - loaded,
        "bytes": pragma(database, "page_count") * pragma(database, "page_size"),
        "mixes": [ask_all(database, task, queries) for queries in task["mixes"]],
    }))


def pragma(database, name):
    return database.execute(f"PRAGMA {name}").fetchone()[0]


def load(database, path):
    database.execute(TABLE)
    places = ", ".join("?" * len(COLUMNS))
    with open(path, encoding="utf-8", newline="\n") as file:
        rows = (
            [cell or None for cell in line.rstrip("\n").split("\t")]
            for line in file
        )
        database.executemany(f"INSERT INTO names VALUES ({places})", rows)
    database.commit()


def ask_all(database, task, queries):
    """Times each query, as many as the budget allows."""
    for query in queries[:WARM_UP]:
        ask(database, task, query)
    latencies, answers = [], []
    until = time.perf_counter() + task["budget_s"]
    for query in queries:
        begun = time.perf_counter_ns()
        rows, total = ask(database, task, query)
        ended = time.perf_counter_ns()
        latencies.append(ended - begun)
        if len(answers) < task["told"]:
            answers.append({"names": [row[0] for row in rows], "total": total})
        if ended / 1e9 > until:
            break
    return {"latencies_ns": latencies, "answers": answers}


def ask(database, task, query):
    """The rows of the page, and on search how many there are in all."""
    values = {"today": task["today"], "catch_days": task["catch_days"],
              "limit": query["limit"], "offset": query["offset"]}
    if query["list"] == "search":
        return search(database, query, values)
    return drops(database, query, values), None


def search(database, query, values):
    prefix = query["q"]
    # No code point that a name can hold comes after this one.
    values |= {"q": prefix, "end": prefix + "\U0010ffff", "label": prefix + "."}
    where = narrow(query, values)
    if query["stage"]:
        where += [LISTED, STAGES[query["stage"]]]
    # Two ranges instead of one condition with OR, which would look every row up twice.
    in_range = "name >= :q AND name < :end"
    by_name = " AND ".join([in_range] + where)
    by_unicode = " AND ".join(["unicode >= :q AND unicode < :end", f"NOT ({in_range})"] + where)
    # Whole names and labels come first; the range of names holds those without an IDN.
    whole = "{0} = :q" if "." in prefix else "({0} >= :label AND {0} < :label || '\U0010ffff')"
    columns = "name, tld, length, dqs, drop_date, release, registered_again"
    rows = database.execute(
        f"SELECT {columns} FROM ("
        f"SELECT {columns}, {whole.format('name')} AS whole FROM names WHERE {by_name} "
        f"UNION ALL SELECT {columns}, {whole.format('unicode')} FROM names WHERE {by_unicode}"
        f") ORDER BY whole DESC, dqs DESC, length, name LIMIT :limit OFFSET :offset",
        values).fetchall()
    total = database.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM names WHERE {by_name} "
        f"UNION ALL SELECT 1 FROM names WHERE {by_unicode} LIMIT {TOTAL_MAX})",
        values).fetchone()[0]
    return rows, total


def drops(database, query, values):
    where = [LISTED] + narrow(query, values)
    if query["stage"]:
        where.append(STAGES[query["stage"]])
    elif query["view"] == "today":
        where.append("drop_date = :today")
    elif query["view"] is None:
        where.append(ACTIVE)
    if query["q"]:
        values["q"] = query["q"]
        # Faster than LIKE, and names are in lower case.
        where.append("(instr(name, :q) > 0 OR instr(unicode, :q) > 0)")
    return database.execute(
        f"SELECT name, tld, length, dqs, drop_date FROM names WHERE {' AND '.join(where)} "
        f"ORDER BY dqs DESC, length, name LIMIT :limit OFFSET :offset", values).fetchall()


def narrow(query, values):
    """The conditions that both lists share."""
    where = []
    if query["tlds"]:
        marks = []
        for number, tld in enumerate(query["tlds"]):
            values[f"tld{number}"] = tld
            marks.append(f":tld{number}")
        where.append(f"tld IN ({', '.join(marks)})")
    if query["min_dqs"] is not None:
        values["min_dqs"] = query["min_dqs"]
        where.append("dqs >= :min_dqs")
    if query["max_len"] is not None:
        values["max_len"] = query["max_len"]
        where.append("length <= :max_len")
    return where


if __name__ == "__main__":
    main()
