import hashlib
import json
import os
import sys
import urllib.error
import urllib.request

import duckdb

URL, KEY = os.environ.get("DROPDEX_URL"), os.environ.get("DROPDEX_KEY")
if not URL or not KEY:
    sys.exit("set DROPDEX_URL, such as http://localhost:8080, and DROPDEX_KEY, a key with the scopes export and read")
# The last change of each name decides: a name that was kept or registered again is removed.
APPLY = """
create or replace temp table latest as
    select distinct on (domain) domain, event, dqs, "releaseDate" from events order by domain, seq desc;
create or replace temp table kept as
    from latest where event not in ('renewed', 'registered-again');
delete from drops where name in (select domain from latest where event in ('renewed', 'registered-again'));
update drops set dqs = kept.dqs, "releaseDate" = kept."releaseDate" from kept where name = domain;
insert into drops by name
    select domain as name, substr(domain, strpos(domain, '.') + 1) as tld, dqs, "releaseDate"
    from kept where domain not in (select name from drops);
"""


def get(path):
    request = urllib.request.Request(URL + path, headers={"Authorization": f"Bearer {KEY}"})
    return urllib.request.urlopen(request, timeout=300)


def download(file):
    """Downloads a file unless it is there, checks it, and returns its name."""
    if not os.path.exists(file["name"]):
        digest = hashlib.sha256()
        with get(file["url"]) as response, open(file["name"] + ".new", "wb") as out:
            while chunk := response.read(1 << 20):
                digest.update(chunk)
                out.write(chunk)
        if digest.hexdigest() != file["sha256"]:
            sys.exit(f"{file['name']} is damaged; run this again")
        os.replace(file["name"] + ".new", file["name"])
    return file["name"]


def apply(rows, seq):
    """Applies changes, and stores the number of the last one with them."""
    db.execute("begin")
    db.execute(f"create or replace temp table events as {rows}")
    for statement in filter(str.strip, APPLY.split(";")):
        db.execute(statement)
    db.execute("update position set seq = ?", [seq])
    db.execute("commit")


db = duckdb.connect("drops.duckdb")
db.execute("create table if not exists position as select 0::ubigint as seq")
seq = db.execute("select seq from position").fetchone()[0]
files = json.load(get("/api/export/files?limit=1000"))["files"]
files = [file for file in files if file["format"] == "parquet"]

# A new copy, if there is none or it is asked for: `python copy_duckdb.py new`. Names that are new since have all columns then.
if seq == 0 or sys.argv[1:] == ["new"]:
    newest = next((file for file in files if file["kind"] == "pipeline"), None)
    if newest is None:
        sys.exit("the server has no file of the pipeline yet; run this again later")
    seq = newest["lastSeq"]
    db.execute("begin")
    db.execute(f"create or replace table drops as from '{download(newest)}'")
    db.execute("update position set seq = ?", [seq])
    db.execute("commit")

# The changes of whole days, as long as they continue the copy.
days = (file for file in files if file["kind"] == "changes")
for file in sorted(days, key=lambda file: file["firstSeq"]):
    if file["firstSeq"] <= seq + 1 <= file["lastSeq"]:
        apply(f"select * from '{download(file)}' where seq > {seq}", file["lastSeq"])
        seq = file["lastSeq"]

# What happened since.
while True:
    try:
        page = json.load(get(f"/api/v1/changes?limit=1000&since={seq}"))
    except urllib.error.HTTPError as refused:
        if refused.code != 410:
            raise
        db.execute("update position set seq = 0")
        sys.exit("the changes since the last run are no longer kept; run this again for a new copy")
    with open("changes.json", "w") as out:
        json.dump(page["data"], out)
    columns = "{seq: 'ubigint', domain: 'varchar', event: 'varchar', dqs: 'int', releaseDate: 'date'}"
    apply(f"select * from read_json('changes.json', format = 'array', columns = {columns})", page["next"])
    seq = page["next"]
    if seq >= page["newest"]:
        break
print(db.execute("select count(*) from drops").fetchone()[0], "names, up to change", seq)
