"""The client: requests with retries, pages, changes and dated files."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import itertools
import json
import logging
import os
import random
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Literal, TypeVar, cast
from urllib.parse import quote, urlencode

from ._typing import Unpack
from .errors import ApiError, DamagedFile, NetworkError
from .models import (
    Account,
    ApiV1ChangesGetParametersQuery as ChangesQuery,
    ApiV1DropsGetParametersQuery as DropsQuery,
    ApiV1SearchGetParametersQuery as SearchQuery,
    ApiV1SuggestGetParametersQuery as SuggestQuery,
    ApiV1WatchlistGetParametersQuery as WatchlistQuery,
    Appraisals,
    Change,
    Dossier,
    Drop,
    ExportFile,
    SearchResult,
    SuggestedName,
    WatchBatch,
    WatchEntry,
)

T = TypeVar("T")

CHANGES = "/api/v1/changes"
#: Statuses after which the same request may succeed: a limit, or a server or proxy that is busy.
_TEMPORARY = {429, 502, 503, 504}
#: What a connection that breaks raises.
_BROKEN = (OSError, http.client.HTTPException, EOFError)
_CHUNK = 1 << 16
_log = logging.getLogger("dropdex")


class Client:
    """Calls a dropdex server with a key.

    A request that fails for now is repeated up to `retries` times: after `Retry-After`, or with
    growing pauses. If the server asks for a longer pause than `max_wait` seconds, as it does when
    the allowance of a day is used up, the error is raised at once. `timeout` is the longest time in
    seconds without a byte from the server.

    A client has no state and may be used by several threads.
    """

    def __init__(
        self, url: str, key: str, *, timeout: float = 60, retries: int = 5, max_wait: float = 120
    ) -> None:
        self._url = url.rstrip("/")
        self._key = key
        self._timeout = timeout
        self._retries = retries
        self._max_wait = max_wait
        # A redirect is an error: the key must not be sent to another host.
        self._opener = urllib.request.build_opener(_NoRedirects)

    def drops(self, **query: Unpack[DropsQuery]) -> Iterator[Drop]:
        """Iterates over the drop list. With `fields`, rows have only these members."""
        return cast("Iterator[Drop]", self.rows("/api/v1/drops", "drops", {"limit": 1000, **query}))

    def search(self, **query: Unpack[SearchQuery]) -> Iterator[SearchResult]:
        """Iterates over the names that a search finds, up to 10,000."""
        return self.rows("/api/v1/search", "results", {"limit": 100, **query})

    def suggest(self, **query: Unpack[SuggestQuery]) -> list[SuggestedName]:
        """Completes a typed text, `q`."""
        return cast("list[SuggestedName]", self.get("/api/v1/suggest", query)["names"])

    def domain(self, name: str) -> Dossier:
        """Returns what is known about a name. A name that is not in the data raises a 404."""
        return cast(Dossier, self.get(f"/api/v1/domain/{quote(name, safe='')}"))

    def appraise(self, names: Sequence[str]) -> Appraisals:
        """Scores up to 100 names, known or not."""
        return cast(Appraisals, self.post("/api/v1/appraise", {"domains": [*names]}))

    def account(self) -> Account:
        """Returns plan, scopes, limits, and what is used of them."""
        return cast(Account, self.get("/api/v1/account"))

    def watchlist(self, **query: Unpack[WatchlistQuery]) -> Iterator[WatchEntry]:
        """Iterates over the watched names."""
        return self.rows("/api/v1/watchlist", "watchlist", {"limit": 1000, **query})

    def watch(self, names: Sequence[str]) -> WatchBatch:
        """Watches up to 1,000 names. The result has the reason for each name that was refused."""
        return cast(WatchBatch, self.post("/api/v1/watchlist/batch", {"domainNames": [*names]}))

    def unwatch(self, name: str) -> None:
        """Removes a name from the watchlist."""
        self.request("DELETE", "/api/v1/watchlist", query={"domain": name})

    def changes(self, **query: Unpack[ChangesQuery]) -> Changes:
        """Iterates over the changes after number `since`, up to the newest one.

        Without `since`, it begins with the oldest change that is kept.
        """
        return Changes(self, query, follows=False)

    def follow(self, **query: Unpack[ChangesQuery]) -> Changes:
        """Iterates over the changes after number `since`, and over future ones as they happen.

        Without `since`, it begins with the next change. The iterator does not end: when the
        connection breaks or the server restarts, it connects again and continues after the last
        change. An error of the API that does not pass is raised.
        """
        return Changes(self, query, follows=True)

    def files(
        self,
        kind: Literal["pipeline", "changes"] | None = None,
        format: Literal["ndjson", "csv", "parquet"] | None = None,
    ) -> list[ExportFile]:
        """Returns the dated files, the newest first."""
        listed: Iterator[ExportFile] = self.rows("/api/export/files", "files", {"limit": 1000})
        return [
            file
            for file in listed
            if kind in (None, file["kind"]) and format in (None, file["format"])
        ]

    def download(self, file: ExportFile, folder: str | os.PathLike[str] = ".") -> Path:
        """Downloads a dated file into a folder, unless it is there, and returns its path.

        An interrupted download is continued, also by a later call. The file has its name only once
        its checksum is right.
        """
        path = Path(folder) / Path(file["name"]).name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and _sha256(path) == file["sha256"]:
            return path
        part = path.with_name(f"{path.name}.{file['sha256'][:16]}.part")
        with part.open("ab") as out:
            for chunk in self._bytes(file, out.tell()):
                out.write(chunk)
        if _sha256(part) != file["sha256"]:
            part.unlink()
            raise DamagedFile(f"{path.name} has not the listed checksum; download it again")
        part.replace(path)
        return path

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Any:
        """Sends a GET and returns the body: JSON, or else text."""
        return self.request("GET", path, query=query)

    def post(self, path: str, body: Any = None) -> Any:
        """Sends a POST with a body of JSON and returns the body of the response."""
        return self.request("POST", path, body=body)

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Sends any request of the API and returns the body: JSON, or else text."""

        def call() -> Any:
            with self._open(method, path, query, body, sent) as response:
                data: bytes = response.read()
                if response.headers.get("Content-Encoding") == "gzip":
                    data = gzip.decompress(data)
                is_json = response.headers.get_content_type() == "application/json"
                return json.loads(data) if is_json else data.decode()

        sent = {"Accept-Encoding": "gzip", **(headers or {})}
        if method == "POST":
            # The same in every attempt, so that the server runs the request once.
            sent.setdefault("Idempotency-Key", str(uuid.uuid4()))
        return self._retry(call, self._retries)

    def rows(self, path: str, member: str, query: Mapping[str, Any]) -> Iterator[Any]:
        """Iterates over the rows of any list, which pages have in `member`."""
        position: dict[str, Any] = {}
        while True:
            page = self.get(path, {**query, **position})
            rows = page[member]
            yield from rows
            if "nextCursor" in page:
                position = {"cursor": page["nextCursor"], "offset": None}
                is_last = page["nextCursor"] is None
            else:
                position = {"offset": page["offset"] + len(rows)}
                is_last = not rows or position["offset"] >= page["total"]
            if is_last:
                return

    def _bytes(self, file: ExportFile, start: int) -> Iterator[bytes]:
        """The bytes of a file from an offset on, over as many connections as it takes."""
        at, tag, failures = start, "", 0
        while at < file["bytes"]:
            headers = {"Range": f"bytes={at}-", **({"If-Range": tag} if tag else {})}
            before, broken = at, "the connection was closed"
            with self._connect(file["url"], None, headers, self._retries) as response:
                if response.status != 206:
                    raise DamagedFile(f"{file['name']} has changed; list the files again")
                tag = response.headers.get("ETag", "")
                try:
                    while chunk := response.read(_CHUNK):
                        at += len(chunk)
                        yield chunk
                except _BROKEN as error:
                    broken = str(error)
            failures = failures + 1 if at == before else 0
            if failures > self._retries:
                raise NetworkError(f"{file['name']}: {broken}")

    def _connect(
        self,
        path: str,
        query: Mapping[str, Any] | None,
        headers: Mapping[str, str],
        retries: float,
    ) -> http.client.HTTPResponse:
        """Sends a GET whose response is read piece by piece."""
        return self._retry(lambda: self._open("GET", path, query, None, headers), retries)

    def _open(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None,
        body: Any,
        headers: Mapping[str, str],
    ) -> http.client.HTTPResponse:
        """Sends a request once. Raises `ApiError` for a status that is not 2xx."""
        given = {name: _text(value) for name, value in (query or {}).items() if value is not None}
        url = self._url + path + (f"?{urlencode(given)}" if given else "")
        request = urllib.request.Request(url, method=method)
        request.add_header("Authorization", f"Bearer {self._key}")
        request.add_header("User-Agent", "dropdex-python/0.2.0")
        if body is not None:
            request.add_header("Content-Type", "application/json")
            request.data = body if isinstance(body, bytes) else json.dumps(body).encode()
        for name, value in headers.items():
            request.add_header(name, value)
        try:
            return cast(http.client.HTTPResponse, self._opener.open(request, timeout=self._timeout))
        except urllib.error.HTTPError as refused:
            with refused:
                raise ApiError(refused.code, refused.headers, _error_body(refused)) from None

    def _retry(self, call: Callable[[], T], retries: float) -> T:
        """Repeats a call up to `retries` times while its errors are temporary."""
        for attempt in itertools.count():
            pause = 0.5 * 2 ** min(attempt, 6) * random.uniform(0.5, 1)
            asked = 0.0
            failure: ApiError | NetworkError
            try:
                return call()
            except ApiError as error:
                if error.status not in _TEMPORARY:
                    raise
                asked = error.retry_after or 0
                failure = error
            except _BROKEN as error:
                failure = NetworkError(f"{self._url}: {error}")
                failure.__cause__ = error
            if attempt >= retries or asked > self._max_wait:
                raise failure
            pause = max(pause, asked)
            _log.info("%s; trying again in %.1f s", failure, pause)
            time.sleep(pause)
        raise AssertionError("the loop has no end")


class Changes(Iterator[Change]):
    """Changes in order. Store `position` after each one, and continue with it as `since`."""

    def __init__(self, client: Client, query: ChangesQuery, *, follows: bool) -> None:
        self._client = client
        self._query: dict[str, Any] = {**query, "since": None}
        since = query.get("since", None if follows else 0)
        if since is None:
            since = cast(int, client.get(CHANGES, {"limit": 1})["newest"])
        #: Number of the last change that was returned, or passed over by the filters.
        self.position: int = since
        self._rows = self._stream() if follows else self._pages()

    def __next__(self) -> Change:
        return next(self._rows)

    def _pages(self) -> Iterator[Change]:
        while True:
            query = {"limit": 1000, **self._query, "since": self.position}
            page = self._client.get(CHANGES, query)
            for change in page["data"]:
                self.position = change["seq"]
                yield change
            self.position = page["next"]
            if page["next"] >= page["newest"]:
                return

    def _stream(self) -> Iterator[Change]:
        pause = 3.0
        while True:
            headers = {"Accept": "text/event-stream", "Last-Event-ID": str(self.position)}
            connect = self._client._connect
            with connect(CHANGES, self._query, headers, retries=float("inf")) as response:
                for event in _events(response):
                    if "retry" in event:
                        pause = int(event["retry"]) / 1000
                    if "id" in event:
                        self.position = int(event["id"])
                    if "data" in event:
                        yield json.loads(event["data"])
            time.sleep(pause)


def _events(response: IO[bytes]) -> Iterator[dict[str, str]]:
    """Yields the fields of each server-sent event, until the stream ends or breaks.

    The server sends each field on a line of its own. An event that the connection cuts is dropped:
    it is sent again after the next connection.
    """
    event: dict[str, str] = {}
    try:
        for line in response:
            text = line.decode().rstrip("\r\n")
            name, _, value = text.partition(":")
            if not text:
                yield event
                event = {}
            elif name:
                event[name] = value.removeprefix(" ")
    except _BROKEN:
        return


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def _text(value: Any) -> str:
    """A value of a query: items of a list have commas between them."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple | set):
        return ",".join(f'"{item}"' if "," in str(item) else str(item) for item in value)
    return str(value)


def _error_body(refused: urllib.error.HTTPError) -> dict[str, Any]:
    """The body of an error; empty if a proxy sent another one."""
    try:
        body = json.loads(refused.read())
    except (*_BROKEN, ValueError):
        return {}
    return body if isinstance(body, dict) else {}


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
