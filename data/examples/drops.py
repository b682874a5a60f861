import os

from drops_client import AuthenticatedClient
from drops_client.api.names import list_drops
from drops_client.models import Drops, Error

client = AuthenticatedClient(os.environ["DROPDEX_URL"], token=os.environ["DROPDEX_KEY"])
# Items of a list in one text: this generator sends them one at a time, which is refused.
page = list_drops.sync(client=client, tld=["com,net"], min_dqs=40, limit=5)
match page:
    case Drops():
        for drop in page.drops:
            print(drop.dqs, drop.name)
    case Error():
        raise SystemExit(page.error)
