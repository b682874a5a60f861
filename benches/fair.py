#!/usr/bin/env python3
"""Measures the response times of one account while another sends as many requests as it may.

  benches/fair.py [--list FILE] [--names N] [--events N] [--seconds N] [--binary FILE]

Needs a release build (`cargo build --release`). FILE is a list of the generator (`cargo bench --bench generate -- --csv
FILE`); without it, N names are generated from syllables. Prints a Markdown table: median and 99th percentile of the
neighbour's requests in milliseconds, without load and during each attack. The attacks come from a process of their own
on the same machine.
"""
import argparse
import http.client
import itertools
import json
import multiprocessing
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TODAY = "2026-11-20"
# Enough for all requests of a run.
SETTINGS = "[plans.api]\nrequests_per_day = 2000000000\nwrites_per_minute = 1000000\n"
SETTINGS += "[server]\nvisitor_requests_per_minute = 1000000\nmax_connections_per_address = 1000\n"
# Requests of the neighbour, each measured separately.
NEIGHBOUR = {
    "search by prefix": "/api/v1/search?q=sol&limit=20",
    "search, contains": "/api/v1/search?contains=solar&limit=20",
    "drops, three filters": "/api/v1/drops?contains=an&min_dqs=20&max_len=12&limit=100",
    "changes, 1,000 rows": "/api/v1/changes?limit=1000",
}
SYLLABLES = [c + v + e for c in "bcdfghklmnprst" for v in "aeio" for e in ("", "n", "r", "s", "1")]


def syllables(count, seed):
    """Returns distinct names of two to four syllables."""
    rng, names = random.Random(seed), set()
    while len(names) < count:
        label = "".join(rng.choices(SYLLABLES, k=rng.randint(2, 4)))
        names.add(f"{label}.{rng.choice(('com', 'com', 'net', 'org', 'de', 'io'))}")
    return names


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def environment():
    return {name: value for name, value in os.environ.items() if not name.startswith("DROPDEX_")}


class Machine:
    """An installation with its server."""

    def __init__(self, binary):
        self.binary = binary
        self.folder = Path(tempfile.mkdtemp(prefix="dropdex-fair-"))
        (self.folder / "settings.toml").write_text(SETTINGS)
        self.options = ["--data", self.folder / "data", "--index", self.folder / "index"]
        self.options += ["--config", self.folder / "settings.toml"]
        self.server = None

    def run(self, *arguments):
        command = [self.binary, *arguments, *self.options]
        done = subprocess.run(command, capture_output=True, text=True, env=environment())
        if done.returncode != 0:
            raise SystemExit(f"{arguments}: {done.stderr}")
        return done.stdout.strip()

    def ingest(self, file):
        self.run("ingest", file, "--observed-at", f"{TODAY}T00:00:00Z", "--today", TODAY)

    def account(self, email):
        self.run("account", "add", email, "--plan", "api")
        return self.run("account", "key", email)

    def serve(self):
        port = free_port()
        command = [self.binary, "serve", "--listen", f"127.0.0.1:{port}", "--today", TODAY, *self.options]
        out = open(self.folder / "serve.log", "wb")
        self.server = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environment())
        until(lambda: self.server.poll() is None and is_ready(port), f"not ready: {self.folder}")
        return port

    def close(self):
        if self.server:
            self.server.send_signal(signal.SIGINT)
            self.server.wait()
        shutil.rmtree(self.folder)


def until(condition, problem):
    deadline = time.monotonic() + 300
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(problem)
        time.sleep(0.1)


def is_ready(port):
    try:
        return ask(connect(port), "/api/ready")[0] == 200
    except OSError:
        return False


def connect(port):
    return http.client.HTTPConnection("127.0.0.1", port, timeout=120)


def ask(connection, path, key=None, body=None, headers=None):
    headers = dict(headers or {})
    if key:
        headers["Authorization"] = f"Bearer {key}"
    if body is not None:
        headers["Content-Type"] = "application/json"
    connection.request("POST" if body is not None else "GET", path, body, headers)
    response = connection.getresponse()
    return response.status, response.read()


def expressions(count):
    return [f".*[a-f]1.*{a}{b}.*z" for a, b in itertools.islice(itertools.cycle(itertools.product("qwxyz", "abcdef")), count)]


def attacks(port, key):
    """Returns name, number of connections and a generator of requests (path, key, body, headers) of each attack."""
    batch = json.dumps({"queries": [{"regex": text} for text in expressions(50)]})
    search = {"name": "all", "filter": {"regex": ".*[a-f]1.*q.*z"}}
    status, body = ask(connect(port), "/api/v1/searches", key, json.dumps(search))
    assert status == 201, body
    feeds = {"searchId": json.loads(body)["id"]}
    status, body = ask(connect(port), "/api/v1/feeds", key, json.dumps(feeds))
    assert status == 201, body
    feed = json.loads(body)["atom"]
    changes = "/api/v1/changes?since=0&wait=1&regex=.*%5Ba-f%5D1.*q.*z"
    single = [f"/api/v1/search?regex={text}".replace("[", "%5B").replace("]", "%5D") for text in expressions(30)]
    network = lambda number: {"X-Forwarded-For": f"198.18.{number // 250 % 250}.{number % 250 + 1}"}
    return [
        ("changes by expression", 90, lambda n: (changes, key, None, None)),
        ("batches of 50 expressions", 32, lambda n: ("/api/v1/search/batch", key, batch, None)),
        ("searches by expression", 32, lambda n: (single[n % len(single)], key, None, None)),
        ("facets and filtered drops", 32, lambda n: ("/api/v1/drops?contains=a&facets=tld,length&min_dqs=10", key, None, None)),
        ("feeds from many networks", 32, lambda n: (feed, None, None, network(n))),
        ("pages of visitors from many networks", 32, lambda n: (f"/?view=all&contains=a{n % 10}", None, None, network(n))),
    ]


def attack(port, key, which, stop):
    """Sends requests until `stop` is set."""
    _, connections, make = attacks(port, key)[which]
    numbers = itertools.count()

    def send():
        connection = connect(port)
        while not stop.is_set():
            try:
                status, _ = ask(connection, *make(next(numbers)))
                # A refusal is repeated, but this process must leave the cores to the server.
                if status != 200:
                    time.sleep(0.02)
            except (OSError, http.client.HTTPException):
                connection.close()
                time.sleep(0.02)

    for _ in range(connections):
        threading.Thread(target=send, daemon=True).start()
    stop.wait()
    os._exit(0)


def neighbour(port, key, seconds):
    """Returns the milliseconds of each request of the neighbour, sent one after the other."""
    connection, took = connect(port), {}
    for name, path in NEIGHBOUR.items():
        ended, took[name] = time.monotonic() + seconds / len(NEIGHBOUR), []
        while time.monotonic() < ended or len(took[name]) < 5:
            begun = time.perf_counter()
            status, body = ask(connection, path, key)
            took[name].append((time.perf_counter() - begun) * 1e3)
            if status != 200:
                raise SystemExit(f"{path}: {status} {body[:300]}")
            time.sleep(0.005)
    return took


def cells(took):
    """Returns median and 99th percentile of each request."""
    shown = []
    for times in took.values():
        times.sort()
        shown.append(f"{statistics.median(times):.1f} / {times[min(len(times) - 1, len(times) * 99 // 100)]:.1f}")
    return " | ".join(shown)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", type=Path)
    parser.add_argument("--names", type=int, default=1_000_000)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--seconds", type=int, default=40)
    parser.add_argument("--binary", type=Path, default=ROOT / "target/release/dropdex")
    options = parser.parse_args()
    machine = Machine(options.binary)
    try:
        base = options.list
        if base is None:
            base = machine.folder / "base.csv"
            rows = "\n".join(f"{name},2026-11-01" for name in syllables(options.names, 1))
            base.write_text(f"domain,drop_date\n{rows}\n")
        machine.ingest(base)
        keys = [machine.account(f"{name}@example.com") for name in ("greedy", "neighbour")]
        port = machine.serve()
        # The events come from a list that is ingested while the server runs.
        news = machine.folder / "news.csv"
        rows = "\n".join(f"news{name},{TODAY}" for name in syllables(options.events, 2))
        news.write_text(f"domain,drop_date\n{rows}\n")
        machine.ingest(news)

        def recorded():
            page = json.loads(ask(connect(port), "/api/v1/changes?limit=1000", keys[1])[1])
            return page["newest"] - page["next"] > options.events * 9 // 10

        until(recorded, "the events do not come")
        print(f"| beside | {' | '.join(NEIGHBOUR)} |\n| --- |{' ---: |' * len(NEIGHBOUR)}")
        print(f"| nothing | {cells(neighbour(port, keys[1], options.seconds))} |", flush=True)
        for which, (name, connections, _) in enumerate(attacks(port, keys[0])):
            stop = multiprocessing.Event()
            process = multiprocessing.Process(target=attack, args=(port, keys[0], which, stop))
            process.start()
            time.sleep(2)
            shown = cells(neighbour(port, keys[1], options.seconds))
            print(f"| {name}, {connections} connections | {shown} |", flush=True)
            stop.set()
            process.join()
            time.sleep(1)
    finally:
        machine.close()


if __name__ == "__main__":
    main()
