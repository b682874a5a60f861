"""Checks responses against the OpenAPI document: `check.py DOCUMENT ANSWERS`.

ANSWERS has one line of JSON per response: method, path (as in the document), status, contentType and
body. The document must be valid, and each response must be one that it describes, without further
members. Prints a line for each fault; exits with 1 if there is one.
"""

import json
import sys

from jsonschema import Draft202012Validator, FormatChecker
from openapi_spec_validator import validate


def close(schema):
    """Refuses members that a schema does not describe, at every level."""
    if isinstance(schema, dict):
        if "properties" in schema:
            schema["additionalProperties"] = False
        for below in schema.values():
            close(below)
    elif isinstance(schema, list):
        for below in schema:
            close(below)


def fault(document, answer):
    operation = document["paths"].get(answer["path"], {}).get(answer["method"].lower())
    if operation is None:
        return "the document has no such operation"
    response = operation["responses"].get(str(answer["status"]))
    if response is None:
        return f"the document has no status {answer['status']}"
    if "$ref" in response:
        response = document["components"]["responses"][response["$ref"].rpartition("/")[2]]
    told = {name.lower() for name in response.get("headers", {})}
    for name in ["link", "location", "idempotency-replayed"]:
        if name in answer["headers"] and name not in told:
            return f"the document has no header {name} for status {answer['status']}"
    if answer["status"] == 201 and ("location" in told) != ("location" in answer["headers"]):
        return "Location is in the document or in the response, but not in both"
    if "content" not in response:
        return "there is a body" if answer["contentType"] else None
    kind = answer["contentType"].partition(";")[0]
    if kind not in response["content"]:
        return f"the document has no {kind} for status {answer['status']}"
    if kind != "application/json":
        return None
    schema = {**response["content"][kind]["schema"], "components": document["components"]}
    errors = Draft202012Validator(schema, format_checker=FormatChecker()).iter_errors(answer["body"])
    return next((f"{error.json_path}: {error.message}" for error in errors), None)


with open(sys.argv[1]) as file:
    document = json.load(file)
validate(document)
close(document["components"]["schemas"])
with open(sys.argv[2]) as file:
    answers = [json.loads(line) for line in file]
faults = [(answer, fault(document, answer)) for answer in answers]
for answer, text in faults:
    if text is not None:
        print(answer["method"], answer["path"], answer["status"], text)
sys.exit(any(text is not None for _, text in faults))
