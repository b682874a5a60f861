import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

URL, KEY = os.environ.get("DROPDEX_URL"), os.environ.get("DROPDEX_KEY")
if not URL or not KEY:
    sys.exit("set DROPDEX_URL, such as http://localhost:8080, and DROPDEX_KEY, a key with the scope read")
# A file in the working directory remembers what was read, so that a restart misses nothing.
STATE = "changes.next"


def pause(why, seconds):
    print(f"{why}; trying again in {seconds} seconds", file=sys.stderr)
    time.sleep(seconds)


def read(since):
    """Waits up to 30 seconds for events after a sequence number. Returns None if it failed for now."""
    query = urllib.parse.urlencode(
        {"since": since, "wait": 30, "limit": 1000, "tld": "com", "event": "left-zone,drops-tomorrow"}
    )
    request = urllib.request.Request(f"{URL}/api/v1/changes?{query}", headers={"Authorization": f"Bearer {KEY}"})
    try:
        with urllib.request.urlopen(request, timeout=40) as response:
            return json.load(response)
    except urllib.error.HTTPError as refused:
        body = refused.read().decode(errors="replace")
        if refused.code == 410:
            # Away for more than 90 days: read your copy of the list anew here.
            return {"data": [], "next": json.loads(body)["oldest"] - 1}
        if refused.code == 429 or refused.code >= 500:
            after = refused.headers.get("Retry-After", "")
            return pause(f"HTTP {refused.code}", int(after) if after.isdigit() else 5)
        sys.exit(f"HTTP {refused.code}: {body}")
    except (OSError, http.client.HTTPException, ValueError) as error:
        # The server restarts, or the network is down.
        return pause(error, 5)


since = open(STATE).read() if os.path.exists(STATE) else 0
for _ in range(int(os.environ.get("ROUNDS", 10**9))):
    page = read(since)
    if page is None:
        continue
    for change in page["data"]:
        print(change["day"], change["event"], change["domain"], change["dqs"], flush=True)
    since = page["next"]
    with open(STATE + ".new", "w") as file:
        file.write(str(since))
    os.replace(STATE + ".new", STATE)
