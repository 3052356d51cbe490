#!/usr/bin/env python3
"""Files that have passed a check need not pass it again: which of those on standard input are to be looked at.

    tools/passed.py LIST RULES...        prints each file whose text has not passed by these rules (files, or words)
    tools/passed.py --add LIST RULES...  notes that all of them have

LIST holds digests of texts with the rules; without it everything is to be looked at.
"""

import hashlib
import pathlib
import sys


def main():
    words = sys.argv[1:]
    add = words[0] == "--add"
    known, rules = pathlib.Path(words[add]), words[add + 1:]
    by = hashlib.sha256()
    for rule in rules:
        by.update(pathlib.Path(rule).read_bytes() if pathlib.Path(rule).is_file() else rule.encode())
        by.update(b"\0")
    digests = {}
    for name in sys.stdin.read().split("\n"):
        if name:
            digest = by.copy()
            digest.update(name.encode() + b"\0" + pathlib.Path(name).read_bytes())
            digests[name] = digest.hexdigest()
    if add:
        known.parent.mkdir(parents=True, exist_ok=True)
        known.write_text("\n".join(sorted(digests.values())) + "\n")
        return
    passed = set(known.read_text().split()) if known.exists() else set()
    for name, digest in digests.items():
        if digest not in passed:
            print(name)


if __name__ == "__main__":
    main()
