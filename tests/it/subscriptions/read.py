"""Reads an Atom feed and a calendar strictly, as readers of them do. Prints their entries as JSON.

Usage: read.py FEED CALENDAR"""

import json
import sys

import feedparser
import icalendar

feed = feedparser.parse(open(sys.argv[1], "rb").read())
calendar = icalendar.Calendar.from_ical(open(sys.argv[2], "rb").read())
events = list(calendar.walk("VEVENT"))
print(
    json.dumps(
        {
            "bozo": str(feed.get("bozo_exception", "")) if feed.bozo else "",
            "title": feed.feed.title,
            "id": feed.feed.id,
            "entries": [
                {key: entry.get(key) for key in ("id", "title", "updated", "link", "summary")}
                | {"content": entry.content[0].value if "content" in entry else ""}
                for entry in feed.entries
            ],
            "errors": [str(error) for part in [calendar, *events] for error in part.errors],
            "events": [
                {
                    "uid": str(event["UID"]),
                    "summary": str(event["SUMMARY"]),
                    "start": event.decoded("DTSTART").isoformat(),
                    "days": (event.decoded("DTEND") - event.decoded("DTSTART")).days,
                    "status": str(event["STATUS"]),
                    "description": str(event["DESCRIPTION"]),
                }
                for event in events
            ],
        }
    )
)
