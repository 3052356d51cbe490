#!/usr/bin/env python3
"""units.py LINES FOLDER FILE...: joins source files into units that are compiled together, written into FOLDER.

Much of a compilation is reading headers and making the same templates again, so files are joined into units of at most
LINES lines. A name in an unnamed namespace belongs to its file, and in a unit it would meet the others': where another
file declares it, or could mean it by what it or its headers say, it gets another name for its file (a macro, behind all
headers of the unit). A name that its file also uses for what belongs to something else (a member, a qualified name, a
name of a header) keeps its file out of the unit. What cannot be joined at all (macros, headers that only some machines
have, files compiled once for each instruction set) is compiled alone. Prints "UNIT FILE" a line; a unit of one file is
that file.
"""
import functools
import os
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
ALONE = re.compile(r'^\s*#\s*(?:define|undef|pragma|if.*\n\s*#\s*include)|foreach_target\.h|HWY_NAMESPACE'
                   r'|^using (?:namespace|enum)|^static ', re.MULTILINE)
INCLUDED = re.compile(r'^#include "((?:superstep|tests)/[^"]+)"', re.MULTILINE)
WORD = re.compile(r"[A-Za-z_]\w*")
# What could be meant by a name of another file: what is called, and types, where nothing says whose it is.
USED = re.compile(r"(?<![.>:\w])([a-z_]\w*(?=\()|[A-Z]\w*)")
COMMENT_OR_TEXT = re.compile(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"')
OF_ANOTHER = re.compile(r"(?:::|\.|->)\s*(?:template\s+)?([A-Za-z_]\w*)")
INCLUDES = re.compile(r"^#include [<\"].*$", re.MULTILINE)
KEYWORDS = {"break", "case", "catch", "continue", "do", "else", "for", "if", "operator", "return", "switch", "while"}
# Found by what they are given (argument-dependent lookup), so that their names are not the file's to choose.
HOOKS = {"to_json", "from_json", "format_as", "swap", "begin", "end", "hash", "main"}


@functools.cache
def header(name):
    for folder in (ROOT / "src", ROOT / "include", ROOT):
        if (folder / name).is_file():
            return (folder / name).read_text(encoding="utf-8")
    return ""


@functools.cache
def used_by_header(name):
    return frozenset(USED.findall(COMMENT_OR_TEXT.sub("", header(name))))


@functools.cache
def words_of_headers(name):
    """Every word of a header of the project and of those that it includes."""
    words, wanted, seen = set(), [name], set()
    while wanted:
        text = header(wanted[-1])
        seen.add(wanted.pop())
        words |= set(WORD.findall(COMMENT_OR_TEXT.sub("", text)))
        wanted += [inner for inner in INCLUDED.findall(text) if inner not in seen]
    return frozenset(words)


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
        self.values -= KEYWORDS
        self.own = (self.own | self.values) - KEYWORDS
        self.words = set(WORD.findall(code))
        self.used = set(USED.findall(code)).union(*map(used_by_header, INCLUDED.findall(text)))
        self.includes = INCLUDES.findall(text)
        self.fixed = HOOKS.union(OF_ANOTHER.findall(code), *map(words_of_headers, INCLUDED.findall(text)))
        self.renamed = set()
        if "gtest/gtest.h" in text:  # names of tests are made of the names of their classes
            self.fixed |= self.own | self.aliases.keys()

    def declare(self, code):
        self.own |= set(DECLARED.findall(code))
        self.aliases |= {alias.split(" =")[0]: alias for alias in ALIAS.findall(code)}
        for constants in CONSTANTS.findall(code):
            self.values |= set(re.findall(r"\b(\w+)(?:\[\w*\])* ?(?:=|\{)", constants))
        for enumerators in ENUMERATION.findall(code):
            self.values |= set(WORD.findall(enumerators))

    def clashes(self, other):
        """The names of this file that would meet one of the other file."""
        aliases = {name for name in self.aliases if self.aliases[name] != other.aliases.get(name)}
        return ((self.own | aliases) & (other.own | other.used | other.aliases.keys() - self.aliases.keys())
                | self.values & other.words)


def join(unit, source):
    """Whether the file can join the unit; its names and theirs are then told apart."""
    clashes = [(a, a.clashes(b)) for other in unit for a, b in ((source, other), (other, source))]
    if any(names & file.fixed for file, names in clashes):
        return False
    for file, names in clashes:
        file.renamed |= names
    unit.append(source)
    return True


def text_of(unit, folder):
    """A unit; paths from its folder, so that it is the same text wherever the tree lies."""
    lines = ["// Made by cmake/units.py."]
    lines += dict.fromkeys(line for source in unit for line in source.includes)
    for number, source in enumerate(unit):
        lines += ["#define %s %s_%d" % (name, name, number) for name in sorted(source.renamed)]
        lines += ['#include "%s"' % os.path.relpath(source.path, folder)]
        lines += ["#undef %s" % name for name in sorted(source.renamed)]
    return "\n".join(lines) + "\n"


def main():
    limit, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2])
    units = []
    for source in map(Source, sys.argv[3:]):
        if source.alone or source.lines >= limit:
            continue
        if not any(sum(s.lines for s in unit) + source.lines <= limit and join(unit, source) for unit in units):
            units.append([source])
    folder.mkdir(parents=True, exist_ok=True)
    for number, unit in enumerate(units):
        if len(unit) == 1:
            continue
        path = folder / ("unit_%d.cpp" % number)
        text = text_of(unit, folder)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
        for source in unit:
            print(path, source.path, sep="|")  # folders may have spaces


if __name__ == "__main__":
    main()
