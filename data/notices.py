#!/usr/bin/env python3
"""Writes data/docs/notices.md: licences of the data and libraries compiled into the binary.

    python3 data/notices.py            writes the page
    python3 data/notices.py --check    fails if the page does not list the libraries of Cargo.lock

Reads the licence files of the crates from cargo's own source cache (`cargo fetch` fills it).
"""
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "data/docs/notices.md"
TARGET = "x86_64-unknown-linux-gnu"
# A crate under several licences is used under the first of these that it offers.
PREFERRED = ["MIT", "Apache-2.0", "BSD-3-Clause", "BSD-2-Clause", "ISC", "Zlib", "BSL-1.0", "Unicode-3.0", "CC0-1.0", "0BSD", "Unlicense"]

DATA = """# Third-party notices
The dropdex binary contains data and libraries by others. This page lists them with their licences; `data/notices.py` writes it.

## Data
| data | source | licence |
| --- | --- | --- |
| `data/scorer/words.tsv.zst`, `letters-english.bin` | [FrequencyWords](https://github.com/hermitdave/FrequencyWords) by Hermit Dave, made from [OpenSubtitles](https://opus.nlpl.eu/OpenSubtitles2018.php) | [CC BY-SA 4.0](https://creativecommons.org/licenses/by-sa/4.0/) |
| `data/scorer/words.tsv.zst` | Google Books Ngram Corpus, through [google-books-ngram-frequency](https://github.com/orgtre/google-books-ngram-frequency) by orgtre | [CC BY 3.0](https://creativecommons.org/licenses/by/3.0/) |
| `data/scorer/words.tsv.zst` | [wordfreq](https://github.com/rspeer/wordfreq) 3.1.1 by Robyn Speer ([doi:10.5281/zenodo.7199437](https://doi.org/10.5281/zenodo.7199437)), made from Wikipedia, ParaCrawl, the Leeds Internet Corpus, Google Books Ngrams, OpenSubtitles and others, and from the freely available SUBTLEX word lists by Marc Brysbaert et al. | [CC BY-SA 4.0](https://creativecommons.org/licenses/by-sa/4.0/) |
| `data/scorer/words.tsv.zst` | [instant-segment](https://github.com/InstantDomain/instant-segment), words by [SCOWL](https://wordlist.aspell.net/) | Apache-2.0; SCOWL's notice in `data/scorer/LICENSE-SCOWL` |
| `data/scorer/words.tsv.zst` | public lists of given names and surnames | public domain |
| `data/scorer/words.tsv.zst` | [world-cities](https://github.com/datasets/world-cities), from [GeoNames](https://www.geonames.org/) | [CC BY 4.0](https://creativecommons.org/licenses/by/4.0/) |
| `data/scorer/brands.txt` | [name-suggestion-index](https://github.com/osmlab/name-suggestion-index), copyright 2021 its contributors | BSD 3-Clause; text in `data/scorer/LICENSE-name-suggestion-index` |
| `data/scorer/brands.txt` | [cspell-dicts](https://github.com/streetsidesoftware/cspell-dicts), copyright 2017–2025 Street Side Software and 2020 Shane Fontaine | MIT; text in `data/scorer/LICENSE-cspell` |
| `data/scorer/brands.txt` | [pytickersymbols](https://github.com/portfolioplus/pytickersymbols), copyright 2023 portfolio+ | MIT; text in `data/scorer/LICENSE-pytickersymbols` |
| `data/sample/sample.csv.gz` | [tb0hdan/domains](https://github.com/tb0hdan/domains), copyright 2020 Bohdan Turkynewych | BSD 3-Clause; text in `data/sample/README.md` |
| `data/rdap/dns.json` | IANA's RDAP bootstrap registry (RFC 9224) | public |
| the Public Suffix List, in the crate `psl` | [publicsuffix.org](https://publicsuffix.org/) | MPL-2.0; its data is unmodified and available from the source |

`data/scorer/README.md` and `data/sample/README.md` say what was taken from each.

"""


def libraries():
    """Crates that the binary links, without build scripts and development tools."""
    command = ["cargo", "metadata", "--format-version=1", "--locked", f"--filter-platform={TARGET}"]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    packages = {package["id"]: package for package in metadata["packages"]}
    root = metadata["resolve"]["root"]
    seen, waiting = set(), [root]
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        for dependency in nodes[current]["deps"]:
            is_macro = any("proc-macro" in target["kind"] for target in packages[dependency["pkg"]]["targets"])
            if not is_macro and any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    # Crates without a source are those of this workspace.
    foreign = (packages[each] for each in seen if packages[each]["source"])
    return sorted(foreign, key=lambda package: (package["name"], package["version"]))


def chosen(licence):
    """The licence that the crate is used under."""
    offered = re.split(r"\s+OR\s+|/", licence.replace("(", "").replace(")", ""))
    return next((name for name in PREFERRED if name in offered), licence)


def texts(package, licence):
    """The licence texts in the crate's folder that apply."""
    folder = Path(package["manifest_path"]).parent
    files = sorted(path for path in folder.iterdir() if re.match(r"(?i)(licen[cs]e|copying|notice|unlicense)", path.name) and path.is_file())
    matching = [path for path in files if licence.split("-")[0].lower() in path.name.lower()]
    return [path.read_text(errors="replace").strip() for path in (matching or files)]


def page():
    lines = [DATA, "## Libraries\n", "| library | version | used under |\n| --- | --- | --- |\n"]
    users = {}
    for package in libraries():
        licence = chosen(package["license"] or "see its text")
        lines.append(f"| {package['name']} | {package['version']} | {licence} |\n")
        # Apache-2.0 asks for its text once; it is in LICENSE-APACHE.
        if licence != "Apache-2.0":
            for text in texts(package, licence):
                users.setdefault(re.sub(r"\s+", " ", text), (text, []))[1].append(package["name"])
    lines.append("\n## Licence texts\nThe text of Apache-2.0 is in `LICENSE-APACHE`.\n")
    for text, names in sorted(users.values(), key=lambda entry: entry[1]):
        lines.append(f"\n### {', '.join(dict.fromkeys(names))}\n```text\n{text.replace('```', chr(39) * 3)}\n```\n")
    return "".join(lines)


def rows(text):
    return {line for line in text.splitlines() if re.match(r"\| [\w-]+ \| \d", line)}


if sys.argv[1:] == ["--check"]:
    missing = rows(page()) ^ rows(PAGE.read_text())
    if missing:
        sys.exit("data/docs/notices.md is out of date; run python3 data/notices.py: " + ", ".join(sorted(missing)))
else:
    PAGE.write_text(page())
