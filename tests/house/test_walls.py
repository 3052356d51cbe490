"""The walls find what they are there to find: a small tree with one fault of each kind, and one without."""

import pathlib
import tempfile
import unittest

import walls

limits = {"knot": 2, "folder_files": 3, "function_lines": 5}


def tree(files):
    """A folder that holds src/superstep with these files: {path: text}."""
    folder = tempfile.TemporaryDirectory()
    root = pathlib.Path(folder.name) / "src" / "superstep"
    rooms = {"low/CMakeLists.txt": "superstep_room(low)", "high/CMakeLists.txt": "superstep_room(high USES low)",
             "side/CMakeLists.txt": "# nothing\nsuperstep_room(side LIBRARIES Some::library)"}
    for path, text in (rooms | files).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return folder


def found(files, exceptions=None):
    with tree(files) as folder:
        return walls.findings(walls.House(folder), limits | {"exceptions": exceptions or {}})


def header(*included):
    return "// A header.\n" + "".join(f'#include "superstep/{name}"\n' for name in included)


def function(lines, indent="", signature="int longest(int a,\n  int b) {"):
    signature = [indent + line for line in signature.split("\n")]
    body = [indent + "  if (a) {", indent + "  }"] * (lines // 2) + [indent + "}"]
    return "\n".join(signature + body) + "\n"


class Walls(unittest.TestCase):
    def test_a_tidy_tree_has_no_findings(self):
        self.assertEqual(found({"low/a.h": header(), "high/b.h": header("low/a.h")}), [])

    def test_includes_follow_what_a_room_names(self):
        lines = found({"low/a.h": header("high/b.h"), "high/b.h": header(), "side/c.h": header("low/a.h")})
        self.assertEqual(len(lines), 2)
        self.assertIn("low includes high", lines[0])
        self.assertIn("side includes low", lines[1])

    def test_a_program_may_use_what_it_names_and_its_room_does_not(self):
        rooms = {"high/CMakeLists.txt": "superstep_program(one FILES wing/a.cpp USES side)\nsuperstep_room(high USES low)"}
        own = rooms | {"side/s.h": header(), "low/l.h": header(), "high/wing/a.cpp": header("side/s.h", "low/l.h")}
        self.assertEqual(found(own | {"high/wing/a.h": header("side/s.h")}), [])
        (line,) = found(own | {"high/b.cpp": header("side/s.h")})
        self.assertIn("high includes side", line)
        self.assertIn("high/b.cpp", line)

    def test_knots_are_found_through_sources(self):
        files = {"low/a.h": header(), "low/a.cpp": header("low/b.h"), "low/b.h": header("low/c.h")}
        self.assertEqual(found(files | {"high/d.h": header()}), [])
        files = {"low/a.h": header(), "low/a.cpp": header("low/b.h"), "low/b.h": header("low/c.h")}
        (line,) = [line for line in found(files | {"low/c.h": header("low/a.h")}) if "one another" in line]
        self.assertIn("low/a, low/b, low/c", line)

    def test_folders_fill_up(self):
        (line,) = found({f"low/{name}.h": header() for name in "abcd"})
        self.assertIn("low/ holds 4 files", line)

    def test_functions_grow_long(self):
        for text in (function(8), "class A {\n" + function(8, "  ") + "};\n",
                     "namespace a {\n\n" + function(8, signature="template <class T>\nauto longest(T a)\n  -> int {") + "}\n"):
            (line,) = found({"low/a.cpp": text})
            self.assertIn("longest has", line)
        table = "constexpr int table[] = {\n" + "  1,\n" * 9 + "};\n"
        short = "int f(int a) { return a; }\n" * 9
        declared = "class A {\n" + "  int f();\n" * 9 + "};\n"
        self.assertEqual(found({"low/a.cpp": table, "low/b.cpp": short + function(2), "low/c.cpp": declared}), [])

    def test_headers_say_what_they_are_for(self):
        self.assertIn("does not say", found({"low/a.h": "#pragma once\n"})[0])

    def test_texts_of_strangers_have_one_reader(self):
        text = 'auto a = nlohmann::json::parse(text);  // json::parse(text)\nauto b = parse_json(text);\n'
        (line,) = found({"low/a.cpp": text})
        self.assertIn("low/a.cpp:1: json::parse()", line)
        self.assertEqual(found({"base/json.cpp": text}), [])
        self.assertIn("Json::parse(", found({"low/a.cpp": "auto a = Json::parse(in, nullptr, false);\n"})[0])
        self.assertIn("toml::parse(", found({"low/a.cpp": "auto a = toml::parse(text);\n"})[0])

    def test_files_of_users_are_opened_at_one_door(self):
        text = 'void f() { std::ifstream in(path); }\n'
        (line,) = found({"low/a.cpp": text})
        self.assertIn("low/a.cpp:1: std::ifstream in) may wait for a pipe", line)
        self.assertEqual(found({"low/a.cpp": '#include "superstep/base/system/regular_file.h"\n' + text}), [])
        self.assertEqual(found({"low/a.cpp": text}, {"openers": {"low/a.cpp": {"reason": "the system's own files"}}}), [])
        self.assertEqual(found({"low/a.cpp": "int file = gzread(a);  // gzopen(path)\n"}), [])

    def test_exceptions_have_reasons_bounds_and_an_end(self):
        files = {"low/a.cpp": function(8)}
        key = "low/a.cpp longest"
        self.assertEqual(found(files, {"functions": {key: {"most": 20, "reason": "a table"}}}), [])
        self.assertIn("longest has", found(files, {"functions": {key: {"most": 7, "reason": "a table"}}})[0])
        self.assertIn("no reason", found(files, {"functions": {key: {"most": 20}}})[0])
        self.assertIn("no longer needed", found({}, {"functions": {key: {"reason": "a table"}}})[0])


if __name__ == "__main__":
    unittest.main()
