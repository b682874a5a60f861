"""Prints what Apprise posts to chat services. Standard input has an address, a title and a text for each;
standard output gets method, URL, headers and body. Both are JSON objects by service."""

import json
import logging
import sys
from unittest import mock
from urllib.parse import parse_qsl

import apprise
import requests

logging.disable(logging.CRITICAL)
given = json.load(sys.stdin)
posted = []


def post(self, method, url, params=None, data=None, json=None, headers=None, **rest):
    request = requests.Request(method, url, params=params, data=data, json=json, headers=headers).prepare()
    body = request.body.decode() if isinstance(request.body, bytes) else request.body
    posted.append({"method": request.method, "url": request.url, "headers": dict(request.headers), "body": body})
    response = requests.Response()
    response.status_code, response._content = 200, b"ok" if "slack.com" in url else b'{"status": 1, "success": true}'
    return response


def parsed(body):
    try:
        return json.loads(body)
    except ValueError:
        return dict(parse_qsl(body))


result = {}
with mock.patch.object(requests.Session, "request", post):
    for service, (address, title, text) in given.items():
        posted.clear()
        sender = apprise.Apprise.instantiate(address)
        assert sender, f"{service}: Apprise does not know {address}"
        sent = sender.notify(text, title)
        assert sent and len(posted) == 1, f"{service}: {sent} {posted}"
        result[service] = {**posted[0], "body": parsed(posted[0]["body"])}
print(json.dumps(result))
