"""Numbers of models and laboratories that nobody explains, and tests that lie where nobody looks for them."""

import pathlib
import re

# Where a bare number is a claim about a machine or a choice that decides results.
ROOMS = ("machine", "bsp", "target/ipu", "target/cpu/plan", "lab")

number = re.compile(r"(?<![\w.\"'])(\d[\d']*\.\d*(?:e[-+]?\d+)?|\d[\d']*e[-+]?\d+|\d[\d']*)f?(?![\w.])")
# From one unit to another, or a share in percent.
CONVERSIONS = {10.0**power for power in (-12, -9, -6, -3, 2, 3, 6, 9, 12)} | {1024.0, 60.0, 3600.0}
LARGEST = 64  # of whole numbers that say themselves: lanes, letters, a bit more


def explained(value, whole):
    return value in CONVERSIONS or (value <= LARGEST if whole else value in (0, 0.5, 1, 2))


def bare_numbers(lines):
    """(line, text of the number) of each that is no conversion and has no comment in its paragraph, above it or beside it."""
    found, commented = [], False
    for i, line in enumerate(lines, 1):
        if not line.strip():
            commented = False
            continue
        commented = commented or "//" in line
        code = re.sub(r'"(\\.|[^"\\])*"', '""', line).split("//")[0]
        if commented or code.lstrip().startswith("#"):
            continue
        for text in number.findall(code):
            if not explained(float(text.replace("'", "")), whole=re.fullmatch(r"[\d']+", text) is not None):
                found.append((i, text))
    return found


def unexplained(root):
    """A line for each bare number in the rooms above."""
    source = pathlib.Path(root) / "src" / "superstep"
    files = sorted(path for room in ROOMS for ending in ("h", "cpp") for path in (source / room).rglob("*." + ending))
    return ["%s:%d: %s: say why, its unit and its source, or that it was chosen" % (path.relative_to(source), line, text)
            for path in files for line, text in bare_numbers(path.read_text().split("\n"))]


def misplaced_tests(root):
    """Tests that are not in tests/ROOM/test_SUBJECT.cpp: the examples of the how-to pages alone are called example_*."""
    tests, lines = pathlib.Path(root) / "tests", []
    for path in sorted(tests.rglob("*.cpp")):
        if not re.search(r"^(TEST|TEST_F|TEST_P|TYPED_TEST)\(", path.read_text(), re.MULTILINE):
            continue
        place = path.relative_to(tests)
        example = place.parts[0] == "docs" and path.name.startswith("example_")
        if len(place.parts) != 2 or not (path.name.startswith("test_") or example):
            lines.append("tests/%s: tests are in tests/ROOM/test_SUBJECT.cpp" % place)
    return lines
