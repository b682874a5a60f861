"""Exceptions of this package."""

from __future__ import annotations

from email.message import Message
from typing import Any


class Error(Exception):
    """Base class of all exceptions of this package."""


class ApiError(Error):
    """A response that reports an error."""

    def __init__(self, status: int, headers: Message, body: dict[str, Any]) -> None:
        #: HTTP status.
        self.status = status
        #: Reason for programs: `invalid_value`, `rate_limited`. Empty if a proxy sent the response.
        self.code: str = body.get("code", "")
        #: Reason for people, with what to do about it.
        self.message: str = "; ".join(
            part for part in (body.get("error", f"HTTP status {status}"), body.get("hint")) if part
        )
        #: The parameter or member of the body at fault: `min_dqs`, `channels[0].url`.
        self.parameter: str | None = body.get("parameter")
        #: Seconds after which the same request may succeed.
        self.retry_after = _seconds(headers.get("Retry-After"))
        #: The whole body: `limit`, `plan`, `resetAt` or `oldest` of some errors.
        self.body = body
        #: ID of the request in the log of the server.
        self.request_id: str | None = headers.get("X-Request-Id")
        super().__init__(f"{status} {self.code}: {self.message}")


class NetworkError(Error):
    """No response, or only a part of it, after all attempts."""


class DamagedFile(Error):
    """A downloaded file does not have the checksum that the server lists."""


class InvalidWebhook(Error):
    """A message that was not sent by the server, or not recently."""


def _seconds(value: str | None) -> float | None:
    """Reads `Retry-After`, which dropdex sends as a number of seconds."""
    return float(value) if value is not None and value.isdigit() else None
