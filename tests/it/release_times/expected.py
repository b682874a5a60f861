"""Computes the hours of release of the names in lists, from data/docs/release-times.md alone. Prints them as
JSON: start, certainty and minutes by name.

Usage: expected.py LIST..."""

import csv
import json
import sys
from datetime import date, datetime, timedelta, timezone
from pathlib import Path


def sunday(year, month, number):
    """Returns a Sunday of a month by number, from 1; 0 is the last."""
    days = [date(year, month, 1) + timedelta(days=at) for at in range(31)]
    sundays = [day for day in days if day.month == month and day.weekday() == 6]
    return sundays[number - 1]


def in_rome(day, hour):
    """Clocks go forward on the last Sunday of March and back on that of October, at 01:00 UTC."""
    summer = sunday(day.year, 3, 0) <= day < sunday(day.year, 10, 0)
    return utc(day, hour - (2 if summer else 1))


def in_new_york(day, hour):
    """Clocks change on the second Sunday of March and the first of November, at 02:00."""
    summer = sunday(day.year, 3, 2) <= day < sunday(day.year, 11, 1)
    return utc(day, hour + (4 if summer else 5))


def utc(day, hour):
    return datetime(day.year, day.month, day.day, tzinfo=timezone.utc) + timedelta(hours=hour)


def by_suffix(name, day):
    suffix = name.split(".")[-1]
    match suffix:
        case "se" | "nu":
            return utc(day, 4), "hour", 60
        case "au":
            return utc(day, 3), "hour", 30
        case "com" | "net":
            return in_new_york(day, 14), "window", 60
        case "fr" | "uk" | "it":
            return None, "day", 1440
    return None, "estimate", 4320


def releases(path):
    text = path.read_text()
    if path.suffix == ".json":
        for row in json.loads(text)["data"]:
            yield row["name"], by_suffix(row["name"], date.fromisoformat(row["release_at"]))
    elif path.name.startswith("uk"):
        for row in csv.DictReader(text.splitlines()):
            yield row["domain"], (datetime.fromisoformat(row["drop_time"]), "exact", 1)
    elif path.suffix == ".txt":
        stem = path.name.split(".")[0]
        day = date(int(stem[:4]), int(stem[4:6]), int(stem[6:8]))
        for name in text.split():
            yield name, (in_rome(day, int(stem[8:])), "exact", 1)
    else:
        for row in csv.DictReader(text.splitlines()):
            day = date.fromisoformat(row["release_date"])
            yield row["domain"], by_suffix(row["domain"], day)


found = {}
for path in map(Path, sys.argv[1:]):
    for name, (at, certainty, minutes) in releases(path):
        at = at and at.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        found[name] = [at, certainty, minutes]
json.dump(found, sys.stdout)
