"""Does what it is told with the client of an installed package, and prints JSON.

    client.py calls            pages, an error, and writes above the limit of a minute
    client.py follow           the numbers of changes, one a line, without an end
    client.py verify SECRET    for each message on standard input, its type or why it is refused
    client.py download         downloads the newest Parquet file, and prints its path
"""

import json
import logging
import os
import sys
from collections.abc import Iterator

from dropdex import ApiError, Client, DamagedFile, InvalidWebhook, verify_webhook


class Waits(logging.Handler):
    """Collects the seconds of each pause."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[object] = []

    def emit(self, record: logging.LogRecord) -> None:
        assert isinstance(record.args, tuple)
        self.seconds.append(record.args[1])


def calls(client: Client) -> None:
    waits = Waits()
    logging.getLogger("dropdex").addHandler(waits)
    logging.getLogger("dropdex").setLevel(logging.INFO)
    names = [
        drop["name"]
        for drop in client.drops(
            tld=["com", "net"], release_from="tomorrow", release_to="tomorrow", limit=90
        )
    ]
    try:
        client.get("/api/v1/drops", {"min_dqs": 101})
    except ApiError as refused:
        error = [refused.status, refused.code, refused.parameter, refused.message]
    for at in range(15):
        client.post("/api/v1/watchlist", {"domainName": f"watched{at}.com"})
    watched = [entry["domain"] for entry in client.watchlist(limit=5)]
    print(json.dumps({"names": names, "error": error, "watched": watched, "waits": waits.seconds}))


def follow(client: Client) -> None:
    for change in client.follow(since=0):
        print(change["seq"], flush=True)


def verify(secret: str) -> Iterator[str]:
    for message in json.load(sys.stdin):
        try:
            yield verify_webhook(secret, message["headers"], message["body"].encode())["type"]
        except InvalidWebhook as refused:
            yield f"refused: {refused}"


def download(client: Client) -> None:
    [newest, *_] = client.files("pipeline", "parquet")
    try:
        print(json.dumps(str(client.download(newest))))
    except DamagedFile:
        print(json.dumps("damaged"))


client = Client(os.environ["DROPDEX_URL"], os.environ["DROPDEX_KEY"])
match sys.argv[1:]:
    case ["calls"]:
        calls(client)
    case ["follow"]:
        follow(client)
    case ["verify", secret]:
        print(json.dumps([*verify(secret)]))
    case ["download"]:
        download(client)
