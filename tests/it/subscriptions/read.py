"""Reads an Atom feed and a calendar strictly, as readers of them do, and validates the feed (RFC 4287).
Prints their entries as JSON.

Usage: read.py FEED CALENDAR"""

import json
import sys
from pathlib import Path

import feedparser
import icalendar
import rnc2rng
from lxml import etree

schema = rnc2rng.dumps(rnc2rng.load(str(Path(__file__).with_name("atom.rnc"))))
schema = etree.RelaxNG(etree.fromstring(schema.encode()))
schema.validate(etree.parse(sys.argv[1]))
feed = feedparser.parse(open(sys.argv[1], "rb").read())
calendar = icalendar.Calendar.from_ical(open(sys.argv[2], "rb").read())
events = list(calendar.walk("VEVENT"))


def length(event):
    """Timed events have a duration, those of whole days an end."""
    if "DURATION" in event:
        return event.decoded("DURATION")
    return event.decoded("DTEND") - event.decoded("DTSTART")


print(
    json.dumps(
        {
            "bozo": str(feed.get("bozo_exception", "")) if feed.bozo else "",
            "title": feed.feed.title,
            "id": feed.feed.id,
            "alternate": [link.href for link in feed.feed.links if link.rel == "alternate"],
            "entries": [
                {key: entry.get(key) for key in ("id", "title", "updated", "link", "summary")}
                | {"content": entry.content[0].value if "content" in entry else ""}
                for entry in feed.entries
            ],
            "errors": [str(error) for part in [calendar, *events] for error in part.errors]
            + [str(error) for error in schema.error_log],
            "events": [
                {
                    "uid": str(event["UID"]),
                    "summary": str(event["SUMMARY"]),
                    "start": event.decoded("DTSTART").isoformat(),
                    "minutes": length(event).total_seconds() / 60,
                    "status": str(event["STATUS"]),
                    "description": str(event["DESCRIPTION"]),
                }
                for event in events
            ],
        }
    )
)
