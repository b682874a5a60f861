"""Verification of webhooks by the Standard Webhooks specification."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from email.message import Message
from typing import cast

from .errors import InvalidWebhook
from .models import WebhookMessage


def verify_webhook(
    secret: str, headers: Mapping[str, str] | Message, body: bytes, *, tolerance: float = 300
) -> WebhookMessage:
    """Returns the message of a webhook.

    `secret` is the one of the channel (`whsec_...`), and `body` the bytes as received. A message
    whose time is more than `tolerance` seconds away may have been recorded and sent again.

    Raises `InvalidWebhook` if the message is not genuine.
    """
    given = {name.lower(): value for name, value in headers.items()}
    message_id, sent_at = given.get("webhook-id", ""), given.get("webhook-timestamp", "")
    if not (sent_at.isascii() and sent_at.isdigit() and len(sent_at) < 20):
        raise InvalidWebhook("webhook-timestamp is missing or not a number")
    if abs(time.time() - int(sent_at)) > tolerance:
        raise InvalidWebhook("webhook-timestamp is too far from the time of this machine")
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.digest(key, f"{message_id}.{sent_at}.".encode() + body, hashlib.sha256)
    expected = b"v1," + base64.b64encode(digest)
    # The specification allows several, so that a secret can be replaced.
    signatures = given.get("webhook-signature", "").encode().split()
    if not any(hmac.compare_digest(expected, signature) for signature in signatures):
        raise InvalidWebhook("no signature matches; is this the secret of the channel?")
    return cast(WebhookMessage, json.loads(body))
