"""Rewrites the OpenAPI 3.1 document on standard input in the words of 3.0, without the operations in the arguments."""

import json
import sys


def lowered(node):
    if isinstance(node, list):
        return [lowered(it) for it in node]
    if not isinstance(node, dict):
        return node
    if isinstance(node.get("$ref"), str):
        return {"$ref": node["$ref"]}  # 3.0 ignores what is beside a reference.
    node = {name: lowered(it) for name, it in node.items() if name not in ("identifier", "propertyNames")}
    kinds = node.get("type")
    if isinstance(kinds, list):
        del node["type"]
        node |= {"nullable": True} if "null" in kinds else {}
        kinds = [kind for kind in kinds if kind != "null"]
        node |= {"type": kinds[0]} if len(kinds) == 1 else {}
    forms = node.get("oneOf", [])
    if {"type": "null"} in forms:
        del node["oneOf"]
        forms = [form for form in forms if form != {"type": "null"}]
        node |= {"nullable": True, "allOf" if len(forms) == 1 else "oneOf": forms}
    if "type" in node:
        node.pop("anyOf", None)  # Some generators make a class of each form of a text.
    if isinstance(node.get("examples"), list):
        node["example"] = node.pop("examples")[0]
    return node


document = lowered(json.load(sys.stdin)) | {"openapi": "3.0.3"}
del document["webhooks"]
shared = document["components"]["responses"]
for item in document["paths"].values():
    for method, operation in list(item.items()):
        if operation["operationId"] in sys.argv[1:]:
            del item[method]
        # Some generators want one type for all refusals, and these have no body.
        for status, response in list(operation["responses"].items()):
            response = shared.get(response.get("$ref", "").rpartition("/")[2], response)
            if status >= "3" and "content" not in response:
                del operation["responses"][status]
json.dump(document, sys.stdout)
