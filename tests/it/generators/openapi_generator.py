"""Pages through the drops with the client that openapi-generator generated, then reads two errors."""

import json
import os

from openapi_client import ApiClient, Configuration, NamesApi
from openapi_client.exceptions import ApiException

# By default the client sleeps for as long as `Retry-After` says: here, until the day ends.
configuration = Configuration(host=os.environ["DROPDEX_URL"], access_token=os.environ["DROPDEX_KEY"], retries=0)
api = NamesApi(ApiClient(configuration))


def page(cursor):
    return api.list_drops(tld=["com", "org"], limit=200, cursor=cursor)


def refused():
    try:
        return page("x").to_dict()
    except ApiException as error:
        return error.data.to_dict() | {"status": error.status}


names, cursor, more = [], None, True
while more:
    drops = page(cursor)
    names += [drop.name for drop in drops.drops]
    cursor, more = drops.next_cursor, drops.next_cursor is not None
print(json.dumps({"names": names, "errors": [refused(), refused()]}))
