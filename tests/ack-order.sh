#!/usr/bin/env bash
# Watches a server with strace and checks every acknowledged write: between the arrival of its request
# and its response, its record was written to the log, and an fdatasync of that file began after the
# write and returned before the response was sent.
#
# usage: tests/ack-order.sh [ACKS]      (default 2000)
# needs: strace, python3, a built binary (target/release/dropdex, else target/debug/dropdex, or
#        DROPDEX_BIN)
# prints one line with the count; exits 1 and names the first write that breaks the rule.
set -euo pipefail
acks=${1:-2000}
cd "$(dirname "$0")/.."
binary=${DROPDEX_BIN:-}
for built in target/release/dropdex target/debug/dropdex; do
    [ -n "$binary" ] || [ ! -x "$built" ] || binary=$PWD/$built
done
[ -n "$binary" ] || { echo "no binary: cargo build first" >&2; exit 1; }

folder=$(mktemp -d)
server=
stop() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$folder"
}
trap stop EXIT
export DROPDEX_DATA=$folder/data DROPDEX_INDEX=$folder/index
mkdir "$DROPDEX_DATA" "$DROPDEX_INDEX"
cat > "$folder/settings.toml" <<TOML
[plans.api]
requests_per_day = 1000000000
external_names = 1000000
TOML
printf 'domain,drop_date\nsolar.com,2026-03-15\n' > "$folder/list.csv"
"$binary" ingest --observed-at 2026-03-15T00:00:00Z "$folder/list.csv" > "$folder/out" 2>&1 ||
    { cat "$folder/out" >&2; exit 1; }
# One account per writer: changes of one account are serialised, those of many share a sync.
keys=
for number in $(seq 16); do
    "$binary" account add "owner$number@example.com" --plan api > "$folder/out" 2>&1
    keys+="$("$binary" account key "owner$number@example.com" 2> /dev/null) "
done

# Traces every call that can carry a request, a record, a sync or a response, with all data and file names.
strace -f -y -s 1048576 -o "$folder/trace" \
    -e trace=read,readv,recvfrom,recvmsg,write,writev,sendto,sendmsg,pwrite64,pwritev,fdatasync,fsync \
    "$binary" serve --config "$folder/settings.toml" --today 2026-03-15 --listen 127.0.0.1:0 \
    > "$folder/ready" 2> "$folder/log" &
tracer=$!
until grep -q '^listening on ' "$folder/ready"; do
    kill -0 "$tracer" 2> /dev/null || { cat "$folder/log" >&2; exit 1; }
    sleep 0.1
done
server=$(pgrep -P "$tracer" | head -1)
address=$(sed -n 's|^listening on http://||p' "$folder/ready")

python3 - "$address" "$keys" "$acks" > "$folder/acked" <<'PY'
"""Runs a writer for each key concurrently; prints the name in every write whose response was 201."""
import http.client, json, sys, threading

address, keys, acks = sys.argv[1], sys.argv[2].split(), int(sys.argv[3])
printing = threading.Lock()


def write(first):
    connection = http.client.HTTPConnection(address, timeout=60)
    headers = {"Authorization": f"Bearer {keys[first]}", "Content-Type": "application/json"}
    # Claims, since no cap ends them; the name is in the record, the request and the response.
    for number in range(first, acks, len(keys)):
        name = f"ack-{number}-end.com"
        body = json.dumps({"domain": name, "status": "caught"})
        connection.request("POST", "/api/v1/portfolio", body, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        if answer.status == 201:
            with printing:
                print(name)
        else:
            sys.exit(f"{name}: {answer.status} {text}")


threads = [threading.Thread(target=write, args=(first,)) for first in range(len(keys))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
PY
kill -TERM "$server"
wait "$tracer" || { cat "$folder/log" >&2; exit 1; }
server=

python3 - "$folder/trace" "$folder/acked" <<'PY'
"""Reads the trace. A call begins at its line, or at its `<unfinished ...>` line, and has returned at
its line, or at its `resumed>` line. The order of lines is the order of events: strace stops a thread
at both ends of every call."""
import bisect, re, sys

trace, acked = sys.argv[1], sys.argv[2]
NAME = re.compile(r"ack-\d+-end\.com")
CALL = re.compile(r"^(\d+)\s+(\w+)\((.*)$", re.S)
RESUMED = re.compile(r"^(\d+)\s+<\.\.\. (\w+) resumed>(.*)$", re.S)
FILE = re.compile(r"^\d+<([^>]*)>")
READS = {"read", "readv", "recvfrom", "recvmsg"}

read_at, written, sent_at = {}, {}, {}  # by name
syncs = {}  # by file: (began, returned)
unfinished = {}


def ended(call, arguments, began, returned):
    failed = re.search(r"= -1 \w+", arguments[-200:])
    file = FILE.match(arguments)
    file = file.group(1) if file else ""
    if call in ("fdatasync", "fsync"):
        if failed:
            sys.exit(f"line {returned}: a sync failed: {arguments}")
        syncs.setdefault(file, []).append((began, returned))
        return
    if failed:
        return
    names = NAME.findall(arguments)
    if not names:
        return
    for name in names:
        if call in READS and not file.startswith("/"):
            read_at.setdefault(name, returned)
        elif file.endswith(".seg"):
            written.setdefault(name, (file, returned))
        elif not file.startswith("/"):
            sent_at.setdefault(name, began)


with open(trace, encoding="utf-8", errors="replace") as lines:
    for at, line in enumerate(lines, 1):
        if match := RESUMED.match(line):
            thread, call, rest = match.groups()
            head, began = unfinished.pop((thread, call))
            ended(call, head + rest, began, at)
        elif match := CALL.match(line):
            thread, call, rest = match.groups()
            if "<unfinished ...>" in rest[-40:]:
                unfinished[thread, call] = (rest.rsplit("<unfinished", 1)[0], at)
            else:
                ended(call, rest, at, at)

names = [line.strip() for line in open(acked)]
for of_file in syncs.values():
    of_file.sort()
shared = {}
for name in names:
    for what, found in (("read", read_at), ("written", written), ("answered", sent_at)):
        if name not in found:
            sys.exit(f"{name}: acknowledged, and its trace does not show it {what}")
    file, written_at = written[name]
    if not read_at[name] < written_at:
        sys.exit(f"{name}: written at line {written_at}, asked for at line {read_at[name]}")
    # Syncs of a file do not overlap: the first one that began after the write also returns first.
    of_file = syncs.get(file, [])
    first = bisect.bisect_right(of_file, (written_at, float("inf")))
    if first == len(of_file) or not of_file[first][1] < sent_at[name]:
        sys.exit(
            f"{name}: written at line {written_at}, answered at line {sent_at[name]}, and no sync of "
            f"{file} began and returned between them"
        )
    sync = (file, of_file[first])
    shared[sync] = shared.get(sync, 0) + 1
if not names:
    sys.exit("nothing was acknowledged")
print(
    f"{len(names)} acknowledged writes, each answered after an fdatasync that began after its write "
    f"and returned; {len(shared)} syncs, {max(shared.values())} writes under one of them at most"
)
PY
