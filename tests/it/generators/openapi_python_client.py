"""Pages through the drops with the client that openapi-python-client generated, then reads two errors."""

import json
import os

from openapi_client import AuthenticatedClient
from openapi_client.api.names import list_drops
from openapi_client.models import Error

client = AuthenticatedClient(os.environ["DROPDEX_URL"], token=os.environ["DROPDEX_KEY"])


def page(**cursor):
    # Items of a list in one text: this generator sends them one at a time, which is refused.
    return list_drops.sync_detailed(client=client, tld=["com,org"], limit=200, **cursor)


def refused():
    response = page(cursor="x")
    assert isinstance(response.parsed, Error), response
    return response.parsed.to_dict() | {"status": response.status_code}


drops = page().parsed
names = [drop.name for drop in drops.drops]
while drops.next_cursor is not None:
    drops = page(cursor=drops.next_cursor).parsed
    names += [drop.name for drop in drops.drops]
print(json.dumps({"names": names, "errors": [refused(), refused()]}))
