"""Client for dropdex, a search service for dropping domain names."""

from .client import Changes, Client
from .errors import ApiError, DamagedFile, Error, InvalidWebhook, NetworkError
from .webhooks import verify_webhook

__all__ = [
    "ApiError",
    "Changes",
    "Client",
    "DamagedFile",
    "Error",
    "InvalidWebhook",
    "NetworkError",
    "verify_webhook",
]
