#!/usr/bin/env python3
"""Compares three nodes of a cluster with a single node, on one machine.

  benches/cluster.py [--writes N] [--seconds N]

Needs a release build (`cargo build --release --features cluster`), `tests/tools` for the NATS servers, and wrk for reads. Prints
a Markdown table: sequential writes by one client, compared with the time that three NATS servers take to acknowledge a
record of that size; and reads on all cores.
"""
import argparse
import http.client
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DROPDEX = ROOT / "target/release/dropdex"
NATS = ROOT / "target/test-tools/bin/nats-server"
EMAIL = "bench@dropdex.example"
# Enough for all requests of a run.
PLAN = "[plans.api]\nrequests_per_day = 2000000000\nwrites_per_minute = 1000000\n"
LIST = "domain,drop_date\n" + "".join(f"name{n}.com,2026-11-20\n" for n in range(10_000))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Machine:
    """Processes and folders of a run."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="dropdex-cluster-"))
        self.running = []

    def close(self):
        for process in self.running:
            process.send_signal(signal.SIGTERM)
        for process in self.running:
            process.wait()
        shutil.rmtree(self.folder)

    def start(self, command, log):
        out = open(self.folder / log, "wb")
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environment())
        self.running.append(process)

    def nats(self):
        """Starts three servers and returns their addresses."""
        ports = [(free_port(), free_port()) for _ in range(3)]
        routes = ", ".join(f"nats://127.0.0.1:{route}" for _, route in ports)
        for at, (client, route) in enumerate(ports):
            config = self.folder / f"nats-{at}.conf"
            config.write_text(
                f"server_name: n{at}\nlisten: 127.0.0.1:{client}\n"
                f"jetstream {{ store_dir: {self.folder}/nats-{at}, sync_interval: always }}\n"
                f"cluster {{ name: bench, listen: 127.0.0.1:{route}, routes: [{routes}] }}\n"
            )
            self.start([NATS, "-c", config], f"nats-{at}.log")
        return [client for client, _ in ports]

    def dropdex(self, name, settings):
        """Creates an installation and returns its options."""
        folder = self.folder / name
        folder.mkdir()
        (folder / "settings.toml").write_text(settings)
        (folder / "list.csv").write_text(LIST)
        options = ["--data", folder / "data", "--index", folder / "index"]
        options += ["--config", folder / "settings.toml", "--today", "2026-11-25"]
        run(["ingest", folder / "list.csv", *options])
        return options

    def serve(self, name, options):
        port = free_port()
        self.start([DROPDEX, "serve", "--listen", f"127.0.0.1:{port}", *options], f"{name}.log")
        until(lambda: get(port, "/api/ready") == 200, f"{name} is not ready: {self.folder}")
        return port


def environment():
    return {name: value for name, value in os.environ.items() if not name.startswith("DROPDEX_")}


def run(arguments):
    done = subprocess.run([DROPDEX, *arguments], capture_output=True, text=True, env=environment())
    if done.returncode != 0:
        raise SystemExit(f"{arguments}: {done.stderr}")
    return done.stdout.strip()


def until(condition, problem):
    deadline = time.monotonic() + 30
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(problem)
        time.sleep(0.05)


def get(port, path, key=None):
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("GET", path, headers={"Authorization": f"Bearer {key}"} if key else {})
        return connection.getresponse().status
    except OSError:
        return 0


def write(port, key, count):
    """Returns the milliseconds of claims that are added one after the other."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    body = json.dumps({"domain": "name1.com", "status": "attempted", "userNotes": "x" * 100})
    took = []
    for _ in range(count):
        begun = time.perf_counter()
        connection.request("POST", "/api/v1/portfolio", body, headers)
        response = connection.getresponse()
        text = response.read()
        took.append((time.perf_counter() - begun) * 1e3)
        if response.status != 201:
            raise SystemExit(f"{response.status}: {text}")
    return took


class Nats:
    """A connection in the text protocol of NATS."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")
        self.file.readline()
        self.send(b'CONNECT {"verbose":false,"headers":true}\r\nSUB answer 1\r\n')

    def send(self, data):
        self.socket.sendall(data)

    def answer(self):
        while True:
            line = self.file.readline().split()
            if line and line[0] == b"PING":
                self.send(b"PONG\r\n")
            if line and line[0] == b"MSG":
                payload = self.file.read(int(line[-1]))
                self.file.readline()
                return json.loads(payload)

    def ask(self, subject, body):
        self.send(f"PUB {subject} answer {len(body)}\r\n{body}\r\n".encode())
        return self.answer()

    def append(self, subject, last, payload):
        head = f"NATS/1.0\r\nNats-Expected-Last-Sequence: {last}\r\n\r\n".encode()
        total = len(head) + len(payload)
        self.send(f"HPUB {subject} answer {len(head)} {total}\r\n".encode() + head + payload + b"\r\n")
        return self.answer()["seq"]


def acknowledge(port, count):
    """Returns the milliseconds until three servers acknowledge a record of the size of such a write."""
    nats = Nats(port)
    config = {"name": "raw", "subjects": ["raw"], "storage": "file", "num_replicas": 3}
    created = nats.ask("$JS.API.STREAM.CREATE.raw", json.dumps(config))
    if "error" in created:
        raise SystemExit(created)
    took = []
    for last in range(count):
        begun = time.perf_counter()
        if nats.append("raw", last, b"x" * 400) != last + 1:
            raise SystemExit("the stream has another order")
        took.append((time.perf_counter() - begun) * 1e3)
    return took


def reads(port, key, seconds):
    """Returns the requests per second."""
    command = ["wrk", "-t1", "-c16", f"-d{seconds}s", "-H", f"Authorization: Bearer {key}"]
    command.append(f"http://127.0.0.1:{port}/api/v1/search?q=name1&limit=20")
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("Requests/sec")]
    if "Non-2xx" in done.stdout or not lines:
        raise SystemExit(done.stdout)
    return float(lines[0].split()[1])


def row(what, took):
    took = sorted(took)
    p99 = took[int(len(took) * 0.99)]
    print(f"| {what} | {statistics.median(took):.2f} | {p99:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--writes", type=int, default=2_000)
    parser.add_argument("--seconds", type=int, default=5)
    options = parser.parse_args()
    machine = Machine()
    try:
        single = machine.dropdex("single", PLAN)
        run(["account", "add", EMAIL, "--plan", "api", *single])
        single_key = run(["account", "key", EMAIL, *single])
        single_port = machine.serve("single", single)
        ports = machine.nats()
        servers = json.dumps([f"nats://127.0.0.1:{port}" for port in ports])
        nodes = []
        for at in range(3):
            cluster = f"[cluster]\nservers = {servers}\n"
            nodes.append(machine.dropdex(f"node-{at}", f'node = "node-{at}"\n{PLAN}{cluster}'))
        until(lambda: subprocess.run([DROPDEX, "cluster", "init", *nodes[0]], capture_output=True,
                                     env=environment()).returncode == 0, "no stream")
        node_ports = [machine.serve(f"node-{at}", node) for at, node in enumerate(nodes)]
        run(["account", "add", EMAIL, "--plan", "api", *nodes[0]])
        key = run(["account", "key", EMAIL, *nodes[0]])
        for port in node_ports:
            until(lambda: get(port, "/api/v1/tlds", key) == 200, "the key is unknown")
        print("| one write after the other | p50 ms | p99 ms |\n| --- | ---: | ---: |")
        row("three NATS servers, acknowledgement of a record", acknowledge(ports[0], options.writes))
        row("a claim on a single node", write(single_port, single_key, options.writes))
        row("a claim on a node of three", write(node_ports[0], key, options.writes))
        turns = [(reads(single_port, single_key, options.seconds), reads(node_ports[1], key, options.seconds))
                 for _ in range(3)]
        print("\n| reads | requests/s |\n| --- | ---: |")
        for at, what in enumerate(["a single node", "a node of three"]):
            print(f"| {what} | {statistics.median(turn[at] for turn in turns):,.0f} |")
    finally:
        machine.close()


if __name__ == "__main__":
    main()
