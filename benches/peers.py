#!/usr/bin/env python3
"""Runs the queries of the service bench on its names in databases, for comparison.

    peers.py postgresql|sqlite|duckdb NAMES.tsv QUERIES.json

Loads the names with the indexes that a careful user would create, runs every query on one connection, and
prints one line of JSON: the times of loading and indexing, the time of each query, and the first
results, so that the bench can compare them. If a program of a peer is missing, exits with 3 and a line on
standard error. SQLite needs only Python; DuckDB its package `duckdb`; PostgreSQL its server and the
package `psycopg`.
"""

import contextlib
import functools
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

NOT_THERE = 3
COLUMNS = ("name", "unicode", "tld", "length", "dqs", "drop_date", "release", "pending_from",
           "registered_again", "label", "rank", "words", "kind", "language", "capped", "digits", "hyphens",
           "idn", "other_tlds", "drops")
NUMBERS = COLUMNS[10:]
LISTED = "drop_date IS NOT NULL AND registered_again = 0"
STAGES = {
    "redemption": ":today < pending_from",
    "pending-delete": "pending_from <= :today AND :today < release",
    "catchable": "release <= :today AND :today < release + :catch_days",
    "released": "release + :catch_days <= :today",
}
ACTIVE = ":today < release + :catch_days"
# Totals are counted up to one more than the service shows.
TOTAL_MAX = 10_001
# Counted by the facets of drops, each on its own.
FACETS = ("tld", None, "length", "dqs / 10", "release", "language", "kind")
VIEWS = {"active": ":today < release + :catch_days", "all": "1 = 1", "today": "drop_date = :today"}
FACET_TIMES = 30
# Number of queries before the measurement, which load pages and prepared statements.
WARM_UP = 20
# The largest code point that a name can contain.
LAST = "\U0010ffff"


class Sqlite:
    """In memory, one connection. Each index contains every queried column, so that no row is
    looked up again; the indexes of drops are in the order of the results."""

    schema = ("""
        CREATE TABLE names (
            name TEXT PRIMARY KEY, unicode TEXT, tld TEXT NOT NULL, length INTEGER NOT NULL,
            dqs INTEGER NOT NULL, drop_date INTEGER, release INTEGER, pending_from INTEGER,
            registered_again INTEGER NOT NULL, label TEXT NOT NULL, """ + ", ".join(
                f"{name} INTEGER" for name in NUMBERS) + ") WITHOUT ROWID",)
    indexes = (
        "CREATE INDEX names_unicode ON names (unicode) WHERE unicode IS NOT NULL",
        """CREATE INDEX names_tld
            ON names (tld, name, length, dqs, drop_date, release, pending_from, registered_again)""",
        f"""CREATE INDEX drops_rank
            ON names (dqs DESC, rank DESC, length, name, tld, drop_date, release, pending_from, unicode,
                      registered_again, {", ".join(NUMBERS[1:])}, label) WHERE {LISTED}""",
        f"""CREATE INDEX drops_tld
            ON names (tld, dqs DESC, rank DESC, length, name, drop_date, release, pending_from, unicode,
                      registered_again) WHERE {LISTED}""",
        f"CREATE INDEX drops_release ON names (release, dqs DESC, rank DESC, length, name) WHERE {LISTED}",
        f"CREATE INDEX drops_date ON names (drop_date, dqs DESC, rank DESC, length, name) WHERE {LISTED}",
        "ANALYZE",
    )
    prefix = "{0} >= :q AND {0} < :end"
    # Faster than LIKE, and names are in lower case.
    contains = "(instr(name, :q) > 0 OR instr(unicode, :q) > 0)"
    has_text = "instr(label, :text) > 0"
    has_end = "substr(label, -length(:text)) = :text"
    # SQLite has no regular expressions of its own, so Python's are used.
    has_regex = "label REGEXP :text"

    def __init__(self, _folder):
        import sqlite3
        self.version = f"SQLite {sqlite3.sqlite_version}"
        self.database = sqlite3.connect(":memory:", cached_statements=4096)
        compiled = functools.lru_cache(64)(re.compile)
        self.database.create_function(
            "regexp", 2, lambda regex, label: compiled(regex).search(label) is not None,
            deterministic=True)

    def run(self, statement, values=()):
        return self.database.execute(statement, values)

    def load(self, path):
        places = ", ".join("?" * len(COLUMNS))
        with open(path, encoding="utf-8", newline="\n") as file:
            rows = ([cell or None for cell in line.rstrip("\n").split("\t")] for line in file)
            self.database.executemany(f"INSERT INTO names VALUES ({places})", rows)
        self.database.commit()

    def bytes(self):
        pragma = lambda name: self.run(f"PRAGMA {name}").fetchone()[0]
        return pragma("page_count") * pragma("page_size")

    def close(self):
        self.database.close()


class Duckdb:
    """In memory, two threads. Rows in the order of names, so that a prefix is a range of row groups
    that is found by their minimum and maximum values."""

    schema = ("""
        CREATE TABLE names (
            name VARCHAR, unicode VARCHAR, tld VARCHAR, length UTINYINT, dqs UTINYINT,
            drop_date INTEGER, release INTEGER, pending_from INTEGER, registered_again UTINYINT,
            label VARCHAR, """ + ", ".join(f"{name} USMALLINT" for name in NUMBERS) + ")",)
    indexes = ("ANALYZE",)
    prefix = "{0} >= :q AND {0} < :end"
    contains = "(contains(name, :q) OR contains(unicode, :q))"
    has_text = "contains(label, :text)"
    has_end = "suffix(label, :text)"
    has_regex = "regexp_matches(label, :text)"

    def __init__(self, _folder):
        try:
            import duckdb
        except ImportError:
            missing("the Python package duckdb is missing")
        self.version = f"DuckDB {duckdb.__version__}"
        self.database = duckdb.connect(":memory:", config={"threads": 2})

    def run(self, statement, values=None):
        values = values or {}
        names = set(re.findall(r":(\w+)", statement))
        return self.database.execute(re.sub(r":(\w+)", r"$\1", statement),
                                     {name: values[name] for name in names})

    def load(self, path):
        self.database.execute(
            f"COPY names FROM '{path}' (DELIMITER '\t', HEADER false, QUOTE '', ESCAPE '', NULLSTR '')")

    def bytes(self):
        return self.run("SELECT sum(memory_usage_bytes) FROM duckdb_memory()").fetchone()[0]

    def close(self):
        self.database.close()


class Postgresql:
    """A cluster of its own on a socket in the temporary folder, C collation, everything in shared
    memory. Covering indexes for prefixes and for the order of drops; trigrams for substrings if
    the extension is available."""

    schema = ("""
        CREATE UNLOGGED TABLE names (
            name text NOT NULL, unicode text, tld text NOT NULL, length smallint NOT NULL,
            dqs smallint NOT NULL, drop_date int, release int, pending_from int,
            registered_again smallint NOT NULL, label text NOT NULL, rank int, """ + ", ".join(
                f"{name} smallint" for name in NUMBERS[1:]) + ")",)
    included = "drop_date, release, pending_from, registered_again"
    indexes = (
        f"""CREATE UNIQUE INDEX names_name ON names (name text_pattern_ops)
            INCLUDE (unicode, tld, length, dqs, {included})""",
        f"""CREATE INDEX names_tld ON names (tld, name text_pattern_ops)
            INCLUDE (unicode, length, dqs, {included})""",
        f"""CREATE INDEX names_unicode ON names (unicode text_pattern_ops)
            INCLUDE (name, tld, length, dqs, {included}) WHERE unicode IS NOT NULL""",
        f"""CREATE INDEX drops_rank ON names (dqs DESC, rank DESC, length, name)
            INCLUDE (unicode, tld, {included}) WHERE {LISTED}""",
        f"""CREATE INDEX drops_tld ON names (tld, dqs DESC, rank DESC, length, name)
            INCLUDE (unicode, {included}) WHERE {LISTED}""",
        f"CREATE INDEX drops_release ON names (release, dqs DESC, rank DESC, length, name) WHERE {LISTED}",
        f"CREATE INDEX drops_date ON names (drop_date, dqs DESC, rank DESC, length, name) WHERE {LISTED}",
    )
    trigrams = (
        f"""CREATE INDEX drops_trigrams ON names
            USING gin (name gin_trgm_ops, unicode gin_trgm_ops) WHERE {LISTED}""",
        f"CREATE INDEX drops_labels ON names USING gin (label gin_trgm_ops) WHERE {LISTED}",
        "CREATE INDEX names_labels ON names USING gin (label gin_trgm_ops)",
    )
    # The comparison operators of text_pattern_ops; with the C collation, they use byte order.
    prefix = "{0} ~>=~ :q AND {0} ~<~ :end"
    contains = "(name LIKE :like OR unicode LIKE :like)"
    has_text = "label LIKE '%' || :text || '%'"
    has_end = "label LIKE '%' || :text"
    has_regex = "label ~ :text"
    settings = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "wal_level=minimal",
                "max_wal_senders=0", "listen_addresses=", "autovacuum=off", "jit=off",
                "work_mem=256MB", "maintenance_work_mem=1GB", "max_wal_size=16GB",
                "max_parallel_workers_per_gather=2", "max_parallel_maintenance_workers=2",
                "random_page_cost=1.1")

    def __init__(self, folder):
        try:
            import psycopg
        except ImportError:
            missing("the Python package psycopg is missing")
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb")) or [shutil.which("initdb")]
        if not found[-1]:
            missing("there is no PostgreSQL server")
        self.bin, self.folder = os.path.dirname(found[-1]), folder
        # The server refuses to run as root.
        self.user = {"user": "postgres"} if os.getuid() == 0 else {}
        if self.user:
            os.chmod(folder, 0o755)
            os.makedirs(f"{folder}/cluster")
            shutil.chown(f"{folder}/cluster", "postgres")
        self.data = f"{folder}/cluster/data"
        self.tool("initdb", "-D", self.data, "--auth=trust", "--username=bench", "--locale=C",
                  "--encoding=UTF8", "--no-sync")
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        options = [f"shared_buffers={memory // 3 >> 20}MB",
                   f"unix_socket_directories={folder}/cluster", *self.settings]
        with open(f"{folder}/cluster/options", "w", encoding="utf-8") as file:
            file.writelines(option.replace("=", " = '", 1) + "'\n" for option in options)
        with open(f"{folder}/cluster/options", encoding="utf-8") as file:
            text = file.read()
        subprocess.run(["tee", "-a", f"{self.data}/postgresql.conf"], input=text.encode(),
                       stdout=subprocess.DEVNULL, check=True, **self.user)
        self.tool("pg_ctl", "-D", self.data, "-w", "-l", f"{folder}/cluster/log", "start")
        self.database = psycopg.connect(host=f"{folder}/cluster", user="bench", dbname="postgres",
                                        autocommit=True, prepare_threshold=None)
        self.version = f"PostgreSQL {self.run('SHOW server_version').fetchone()[0].split()[0]}"
        try:
            self.run("CREATE EXTENSION pg_trgm")
            self.indexes += self.trigrams
        except psycopg.Error:
            self.version += " without pg_trgm"
        self.indexes += ("VACUUM ANALYZE names",)

    def tool(self, name, *arguments):
        done = subprocess.run([f"{self.bin}/{name}", *arguments], cwd="/", check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **self.user) \
            if name != "pg_ctl" else self.control(*arguments)
        if done.returncode:
            raise SystemExit(f"{name} failed: {(done.stdout or b'').decode()}")

    def control(self, *arguments):
        # The server keeps inherited descriptors open, so a pipe would never end.
        return subprocess.run([f"{self.bin}/pg_ctl", *arguments], cwd="/", check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, **self.user)

    def run(self, statement, values=None):
        # Binary parameters of an unnamed statement: the plan depends on their values, so that a prefix
        # with many matches gets another plan than one with few.
        if values is None:
            return self.database.execute(statement)
        statement = statement.replace("%", "%%")
        return self.database.execute(re.sub(r"(?<!:):(\w+)", r"%(\1)s", statement), values)

    def load(self, path):
        with self.database.cursor() as cursor:
            with cursor.copy("COPY names FROM STDIN (FORMAT text, NULL '')") as copy, \
                    open(path, "rb") as file:
                while block := file.read(1 << 20):
                    copy.write(block)

    def bytes(self):
        return self.run("SELECT pg_total_relation_size('names')").fetchone()[0]

    def close(self):
        with contextlib.suppress(Exception):
            self.database.close()
        self.control("-D", self.data, "-m", "immediate", "-w", "stop")


PEERS = {"sqlite": Sqlite, "duckdb": Duckdb, "postgresql": Postgresql}


def missing(what):
    print(what, file=sys.stderr)
    raise SystemExit(NOT_THERE)


def main():
    name, names_path, task_path = sys.argv[1:]
    with open(task_path, encoding="utf-8") as file:
        task = json.load(file)

    def over(*_):
        missing(f"{name} was not done after {task['budget_s']} s")

    signal.signal(signal.SIGALRM, over)
    signal.signal(signal.SIGTERM, over)
    signal.alarm(task["budget_s"])
    with tempfile.TemporaryDirectory(prefix="dropdex-peer-") as folder:
        peer = PEERS[name](folder)
        try:
            print(json.dumps(measure(peer, names_path, task)))
        finally:
            peer.close()


def measure(peer, names_path, task):
    for statement in peer.schema:
        peer.run(statement)
    begun = time.perf_counter()
    peer.load(names_path)
    loaded = time.perf_counter()
    for statement in peer.indexes:
        peer.run(statement)
    indexed = time.perf_counter()
    return {
        "version": peer.version,
        "load_s": loaded - begun,
        "index_s": indexed - loaded,
        "bytes": peer.bytes(),
        "mixes": [ask_all(peer, task, queries) for queries in task["mixes"]],
        "facets_ns": count_all(peer, task),
    }


def count_all(peer, task):
    """Times the counts of all facets of some views."""
    values = {"today": task["today"], "catch_days": task["catch_days"]}
    times, until = [], time.perf_counter() + task["mix_budget_s"]
    for turn in range(FACET_TIMES):
        view = VIEWS[task["faceted"][turn % len(task["faceted"])]]
        begun = time.perf_counter_ns()
        for facet in FACETS:
            # Stages are computed; the others are columns.
            by = facet or "CASE " + " ".join(
                f"WHEN {when} THEN {at}" for at, when in enumerate(STAGES.values())) + " END"
            where = LISTED if facet is None else f"{LISTED} AND {view}"
            peer.run(f"SELECT value, count(*) AS names FROM (SELECT {by} AS value FROM names WHERE {where}) "
                     "AS found GROUP BY value ORDER BY names DESC LIMIT 100", values).fetchall()
        times.append(time.perf_counter_ns() - begun)
        if time.perf_counter() > until:
            break
    return times


def ask_all(peer, task, queries):
    """Times each query, as many as the budget allows."""
    until = time.perf_counter() + task["mix_budget_s"]
    for query in queries[:WARM_UP]:
        ask(peer, task, query)
        if time.perf_counter() > until:
            break
    latencies, answers = [], []
    until = time.perf_counter() + task["mix_budget_s"]
    for query in queries:
        begun = time.perf_counter_ns()
        rows, total = ask(peer, task, query)
        ended = time.perf_counter_ns()
        latencies.append(ended - begun)
        if len(answers) < task["told"]:
            answers.append({"names": [row[0] for row in rows], "total": total})
        if ended / 1e9 > until:
            break
    return {"latencies_ns": latencies, "answers": answers}


def ask(peer, task, query):
    """Returns the rows of the page, and for a search the number of matches."""
    values = {"today": task["today"], "catch_days": task["catch_days"],
              "limit": query["limit"], "offset": query["offset"]}
    if query["list"] == "search":
        return search(peer, query, values)
    return drops(peer, query, values), None


def search(peer, query, values):
    if query["q"] is None:
        return search_texts(peer, query, values)
    prefix = query["q"]
    values |= {"q": prefix, "end": prefix + LAST, "label": prefix + ".", "label_end": prefix + "." + LAST}
    where = narrow(query, values)
    if query["stage"]:
        where += [LISTED, STAGES[query["stage"]]]
    # Two ranges instead of one condition with OR, which would look every row up twice.
    in_names, in_forms = peer.prefix.format("name"), peer.prefix.format("unicode")
    by_name = " AND ".join([in_names] + where)
    by_unicode = " AND ".join([in_forms, f"NOT ({in_names})"] + where)
    # Whole names and labels come first; the range of names holds those without an IDN.
    whole = "{0} = :q" if "." in prefix else "({0} >= :label AND {0} < :label_end)"
    columns = "name, tld, length, dqs, drop_date, release, registered_again"
    rows = peer.run(
        f"SELECT {columns} FROM ("
        f"SELECT {columns}, {whole.format('name')} AS whole FROM names WHERE {by_name} "
        f"UNION ALL SELECT {columns}, {whole.format('unicode')} FROM names WHERE {by_unicode}"
        f") AS found ORDER BY whole DESC, dqs DESC, length, name LIMIT :limit OFFSET :offset",
        values).fetchall()
    total = peer.run(
        f"SELECT count(*) FROM (SELECT 1 FROM names WHERE {by_name} "
        f"UNION ALL SELECT 1 FROM names WHERE {by_unicode} LIMIT {TOTAL_MAX}) AS found",
        values).fetchone()[0]
    return rows, total


def search_texts(peer, query, values):
    """A search for a text without a prefix."""
    where = " AND ".join(narrow(query, values) + [has_text(peer, query["text"], values)])
    columns = "name, tld, length, dqs, drop_date, release, registered_again"
    rows = peer.run(f"SELECT {columns} FROM names WHERE {where} "
                    "ORDER BY dqs DESC, length, name LIMIT :limit OFFSET :offset", values).fetchall()
    total = peer.run(f"SELECT count(*) FROM (SELECT 1 FROM names WHERE {where} LIMIT {TOTAL_MAX}) AS found",
                     values).fetchone()[0]
    return rows, total


def has_text(peer, text, values):
    """The condition on the text of a label."""
    if text["parameter"] in ("contains", "ends"):
        values["text"] = text["value"]
        return peer.has_text if text["parameter"] == "contains" else peer.has_end
    values["text"] = text["regex"]
    return peer.has_regex


def drops(peer, query, values):
    where = [LISTED] + narrow(query, values)
    if query["text"]:
        where.append(has_text(peer, query["text"], values))
    for at, condition in enumerate(query["conditions"]):
        column = condition["column"]
        if condition["any"]:
            where.append(f"{column} IN ({', '.join(map(str, condition['any']))})")
            continue
        values |= {f"low{at}": condition["low"], f"high{at}": condition["high"]}
        where.append(f"{column} BETWEEN :low{at} AND :high{at}")
    if query["stage"]:
        where.append(STAGES[query["stage"]])
    elif query["view"] == "today":
        where.append("drop_date = :today")
    elif query["view"] is None:
        where.append(ACTIVE)
    if query["q"]:
        escaped = re.sub(r"([\\%_])", r"\\\1", query["q"])
        values |= {"q": query["q"], "like": f"%{escaped}%"}
        where.append(peer.contains)
    order = "dqs DESC, rank DESC, length, name"
    if query["sort"]:
        by, is_down = query["sort"]
        order = f"{by}{' DESC' if is_down else ''}, {order}"
    return peer.run(
        f"SELECT name, tld, length, dqs, drop_date FROM names WHERE {' AND '.join(where)} "
        f"ORDER BY {order} LIMIT :limit OFFSET :offset", values).fetchall()


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
