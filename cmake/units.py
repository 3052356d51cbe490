#!/usr/bin/env python3
"""units.py LINES FILE...: which source files can be compiled together, as text for CMake: "UNIT FILE" a line.

Much of a compilation is reading headers and making the same templates again, so files are joined into units. A name in
an unnamed namespace belongs to its file, and in a unit it would meet the others': a file joins the first unit of at
most LINES lines in which no other file declares one of its names, or could mean one of them by what it or its headers
say. What cannot be joined (macros, files compiled once for each instruction set) is left out and compiled alone.
"""
import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
UNNAMED = re.compile(r"^namespace \{$(.*?)^\}  // namespace$", re.MULTILINE | re.DOTALL)
# A declaration begins at the margin: the name before its parameters, value, body or base.
DECLARED = re.compile(
    r"^(?:\[\[\w+\]\] )?(?![\s/#}\])]|template|namespace|using|[A-Z_]+\()[^\n(=\[{;]*?\b(\w+)\s*(?:[(=\[{;]|:[^:]|final\b)",
    re.MULTILINE)
CONSTANTS = re.compile(r"^(?:inline |static )*const(?:expr)?\b[^;]*;", re.MULTILINE)
ALIAS = re.compile(r"^using (\w+ =[^;]*);", re.MULTILINE)
ENUMERATION = re.compile(r"^enum\b[^{;]*\{([^}]*)\}", re.MULTILINE)
ALONE = re.compile(r'^\s*#\s*(?:define|undef|pragma)|foreach_target\.h|HWY_NAMESPACE|^using (?:namespace|enum)|^static ', re.MULTILINE)
INCLUDED = re.compile(r'^#include "((?:superstep|tests)/[^"]+)"', re.MULTILINE)
WORD = re.compile(r"[A-Za-z_]\w*")
# What could be meant by a name of another file: what is called, and types, where nothing says whose it is.
USED = re.compile(r"(?<![.>:\w])([a-z_]\w*(?=\()|[A-Z]\w*)")
COMMENT_OR_TEXT = re.compile(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"')


@functools.cache
def used_by_header(name):
    for folder in (ROOT / "src", ROOT):
        if (folder / name).is_file():
            return frozenset(USED.findall(COMMENT_OR_TEXT.sub("", (folder / name).read_text(encoding="utf-8"))))
    return frozenset()


class Source:
    def __init__(self, path):
        text = pathlib.Path(path).read_text(encoding="utf-8")
        code = COMMENT_OR_TEXT.sub("", text)
        self.path = path
        self.lines = text.count("\n")
        self.alone = bool(ALONE.search(text))
        self.own, self.values, self.aliases = set(), set(), {}
        for unnamed in UNNAMED.findall(text):
            self.declare(COMMENT_OR_TEXT.sub("", unnamed))
        self.own |= self.values
        self.words = set(WORD.findall(code))
        self.used = set(USED.findall(code)).union(*map(used_by_header, INCLUDED.findall(text)))

    def declare(self, code):
        self.own |= set(DECLARED.findall(code))
        self.aliases |= {alias.split(" =")[0]: alias for alias in ALIAS.findall(code)}
        for constants in CONSTANTS.findall(code):
            self.values |= set(re.findall(r"\b(\w+)(?:\[\w*\])* ?(?:=|\{)", constants))
        for enumerators in ENUMERATION.findall(code):
            self.values |= set(WORD.findall(enumerators))

    def clashes(self, other):
        """Whether a name of this file would meet one of the other file."""
        aliases = {name for name in self.aliases if self.aliases[name] != other.aliases.get(name)}
        return bool((self.own | aliases) & (other.own | other.used | other.aliases.keys() - self.aliases.keys())
                    or self.values & other.words)


def main():
    limit = int(sys.argv[1])
    units = []
    for source in map(Source, sys.argv[2:]):
        if source.alone or source.lines >= limit:
            continue
        for unit in units:
            if sum(s.lines for s in unit) + source.lines <= limit and not any(
                    source.clashes(s) or s.clashes(source) for s in unit):
                unit.append(source)
                break
        else:
            units.append([source])
    for number, unit in enumerate(units):
        for source in unit:
            print(f"unit_{number} {source.path}")


if __name__ == "__main__":
    main()
