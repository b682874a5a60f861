import json
import os
import urllib.error
import urllib.parse
import urllib.request

URL, KEY = os.environ["DROPDEX_URL"], os.environ["DROPDEX_KEY"]
# A file beside the program remembers what was read, so that a restart misses nothing.
STATE = "changes.next"


def read(since):
    """Waits up to 30 seconds for events after a sequence number."""
    query = urllib.parse.urlencode(
        {"since": since, "wait": 30, "limit": 1000, "tld": "com", "event": "left_zone,drops_tomorrow"}
    )
    request = urllib.request.Request(f"{URL}/api/v1/changes?{query}", headers={"Authorization": f"Bearer {KEY}"})
    try:
        with urllib.request.urlopen(request) as response:
            return json.load(response)
    except urllib.error.HTTPError as refused:
        error = json.load(refused)
        if refused.code != 410:
            raise SystemExit(error["error"])
        # Away for more than 90 days: read your copy of the list anew here.
        return {"data": [], "next": error["oldest"] - 1}


since = open(STATE).read() if os.path.exists(STATE) else 0
for _ in range(int(os.environ.get("ROUNDS", 10**9))):
    page = read(since)
    for change in page["data"]:
        print(change["day"], change["event"], change["domain"], change["dqs"])
    since = page["next"]
    with open(STATE, "w") as file:
        file.write(str(since))
