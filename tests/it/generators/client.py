"""Queries a server with the client that openapi-generator generated, and prints what it decoded from each status."""

import json
import os

from openapi_client import ApiClient, Configuration, NamesApi
from openapi_client.exceptions import ApiException


def names(key):
    # By default the client sleeps for as long as `Retry-After` says: here, until the day ends.
    configuration = Configuration(host=os.environ["DROPDEX_URL"], access_token=key, retries=0)
    return NamesApi(ApiClient(configuration))


def ask(api, name):
    try:
        return 200, api.find_domain(name).to_dict()
    except ApiException as error:
        return error.status, error.data.to_dict()


owner = names(os.environ["DROPDEX_KEY"])
asked = [ask(owner, "solar.com"), ask(owner, "www.solar.com"), ask(names("ddx_" + "0" * 48), "solar.com")]
while asked[-1][0] != 429 and len(asked) < 20:
    asked.append(ask(owner, "solar.com"))
print(json.dumps(dict(asked), default=str))
