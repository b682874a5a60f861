"""Additions to the document for Schemathesis: formats of texts that no schema can describe."""

import datetime
import itertools

import schemathesis
from hypothesis import strategies as st

LABELS = st.from_regex(r"\A[a-z0-9]([a-z0-9]{0,20}[a-z0-9])?\Z")
SUFFIXES = st.sampled_from(["com", "de", "org", "co.uk", "COM"])
NAMES = st.builds("{}.{}".format, LABELS, SUFFIXES) | st.sampled_from(
    ["solar.com", "kept.org", "münchen.de", "xn--mnchen-3ya.de", "SOLAR.DE."]
)
# Without control characters, and not empty once it is trimmed and mapped.
PARTS = st.builds(
    "{}{}".format,
    st.text(st.characters(exclude_categories=["Cc", "Cs", "Cn", "Co", "Z", "M", "Cf"]), max_size=20),
    st.sampled_from(["a", "sol", "ü", "-", "1", ".c"]),
)

# Days that dropdex knows.
DAYS = st.dates(datetime.date(1985, 1, 2), datetime.date(2164, 1, 1)).map(datetime.date.isoformat)
TURNS = itertools.count(1)
# Members that may be null, by name; cached, since a run has one document.
NULLABLE = set()

schemathesis.openapi.format("date", DAYS)
# One day for every bound, so that none crosses another.
schemathesis.openapi.format("day", st.just("2026-03-20"))
schemathesis.openapi.format("past-day", st.just("2026-03-01"))
schemathesis.openapi.format("instant", DAYS | DAYS.map("{}T12:00:00Z".format))
schemathesis.openapi.format("text", LABELS)
# The facts that the server has.
FACTS = st.sampled_from(["acme.rank", "acme.kind"])
RANGES = st.sampled_from(["acme.rank:1..9", "acme.rank:..5", "acme.kind:red|blue"])
schemathesis.openapi.format("fact-name", FACTS)
schemathesis.openapi.format("fact", RANGES | FACTS)
schemathesis.openapi.format("fact-range", RANGES)
schemathesis.openapi.format("fact-presence", FACTS | FACTS.map("!{}".format))
schemathesis.openapi.format("currency", st.sampled_from(["EUR", "usd"]))
schemathesis.openapi.format("tag", LABELS)
schemathesis.openapi.format("domain", NAMES)
schemathesis.openapi.format("name-part", PARTS)
schemathesis.openapi.format("name-prefix", PARTS)
schemathesis.openapi.format("pattern", st.from_regex(r"\A[CVLNA?a-z0-9]{1,20}\*?\Z"))
schemathesis.openapi.format("regex", st.sampled_from(["^(shop|store)", "a.c$", "[0-9]{2}", "bank"]))
schemathesis.openapi.format("label", st.from_regex(r"\A[a-z][a-z0-9]{2,20}\Z"))
schemathesis.openapi.format("tld", SUFFIXES | LABELS)
schemathesis.openapi.format("time-zone", st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"]))
# Greater numbers belong to future events.
schemathesis.openapi.format("sequence", st.just("0"))
schemathesis.openapi.format("delivery", st.from_regex(r"\Amsg_[A-Za-z0-9]{1,40}\Z"))


@schemathesis.hook
def map_headers(context, headers):
    """Each key is used once: with a used key, a POST returns its first response again, although the object
    may have been removed since."""
    key = (headers or {}).get("Idempotency-Key")
    if isinstance(key, str) and 1 <= len(key) <= 200:
        headers["Idempotency-Key"] = f"turn-{next(TURNS)}"
    return headers


@schemathesis.hook
def map_query(context, query):
    """Requests do not wait for events that never come, and ask for facts that the server has."""
    known = {"sort": ("fact:", "fact:acme.rank"), "facets": ("fact:", "fact:acme.rank")}
    known |= {"fact": ("acme.", "acme.rank:1..9"), "has": ("acme.", "acme.rank")}
    for name, (start, fact) in known.items():
        value = (query or {}).get(name)
        asked = lambda it: fact if isinstance(it, str) and it.startswith(start) else it
        if value is not None:
            query[name] = [asked(it) for it in value] if isinstance(value, list) else asked(value)
    # Greater numbers belong to future events.
    since = (query or {}).get("since")
    if isinstance(since, int) and since > 0:
        query["since"] = 0
    wait = (query or {}).get("wait")
    if isinstance(wait, int) and 1 < wait <= 30:
        query["wait"] = 1
    return query


@schemathesis.hook
def filter_query(context, query):
    """An empty value counts as absent, whatever the schema of the parameter says (`allowEmptyValue`)."""
    return not query or all(value != "" for value in query.values())


def nullable(schema):
    """Members that may be null, by name."""
    if isinstance(schema, list):
        return set().union(*map(nullable, schema))
    if not isinstance(schema, dict):
        return set()
    found = set().union(*map(nullable, schema.values()))
    for name, member in schema.get("properties", {}).items():
        kinds = [member.get("type"), *(it.get("type") for it in member.get("oneOf", []))]
        if any("null" in (kind if isinstance(kind, list) else [kind]) for kind in kinds):
            found.add(name)
    return found


def nulls(body):
    """Members that are null, by name."""
    if isinstance(body, list):
        return set().union(*map(nulls, body))
    if not isinstance(body, dict):
        return set()
    return {name for name, value in body.items() if value is None}.union(*map(nulls, body.values()))


def is_list_of_texts(value):
    """Whether a value is a list whose items are not empty."""
    return isinstance(value, list) and value and all(isinstance(it, str) and it.strip(", ") for it in value)


@schemathesis.hook
def filter_case(context, case):
    """If an invalid member becomes null, the body may be valid, and any text is a list with commas, whose
    empty items are ignored: such a case is not sent as an invalid one."""
    if case.meta is None or case.meta.generation.mode != schemathesis.GenerationMode.NEGATIVE:
        return True
    for parameter in case.operation.definition.raw.get("parameters", []):
        is_list = parameter.get("schema", {}).get("type") == "array"
        if is_list and parameter["name"] in (case.query or {}):
            if not is_list_of_texts(case.query[parameter["name"]]):
                return False
    if not NULLABLE:
        NULLABLE.update(nullable(case.operation.schema.raw_schema["components"]["schemas"]))
    return not nulls(case.body) & NULLABLE
