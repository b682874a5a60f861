"""Parses `/metrics` with the parser of Prometheus' own client: `parse.py FILE`.

Prints JSON: `families` (name to type) and `samples` (`name{label="value"}` to value). Exits with 1 for text
that the parser refuses, for a family without help or type, and for a repeated name.
"""

import json
import sys

from prometheus_client.parser import text_string_to_metric_families

families, samples = {}, {}
with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
for family in text_string_to_metric_families(text):
    if family.name in families:
        sys.exit(f"{family.name} is told twice")
    if family.type == "unknown" or not family.documentation:
        sys.exit(f"{family.name} has no type or no help")
    families[family.name] = family.type
    for sample in family.samples:
        labels = ",".join(f'{name}="{value}"' for name, value in sorted(sample.labels.items()))
        key = f"{sample.name}{{{labels}}}" if labels else sample.name
        if key in samples:
            sys.exit(f"{key} is told twice")
        samples[key] = sample.value
json.dump({"families": families, "samples": samples}, sys.stdout)
