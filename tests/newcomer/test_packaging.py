"""What others install Superstep by: lists that agree with each other, files that can be read, releases that are tagged rightly."""

import ast
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest

root = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(root / "python"))
import licenses  # noqa: E402

# Of Debian, conda-forge and Spack: one library, as each calls it.
NAMES = [
    ("libfmt-dev", "fmt", "fmt"), ("libcli11-dev", "cli11", "cli11"), ("nlohmann-json3-dev", "nlohmann_json", "nlohmann-json"),
    ("libtomlplusplus-dev", "tomlplusplus", "tomlplusplus"), ("libpcre2-dev", "pcre2", "pcre2"), ("libutf8proc-dev", "libutf8proc", "utf8proc"),
    ("libxsmm-dev", "libxsmm", "libxsmm"), ("libhwy-dev", "libhwy", "highway"), ("libhdf5-dev", "hdf5", "hdf5"),
    ("libsqlite3-dev", "libsqlite", "sqlite"), ("zlib1g-dev", "zlib", "zlib-api"), ("libpng-dev", "libpng", "libpng"),
    ("libzip-dev", "libzip", "libzip"), ("libtiff-dev", "libtiff", "libtiff"), ("libjpeg-dev", "libjpeg-turbo", "jpeg"),
    ("libwebp-dev", "libwebp", "libwebp"), ("libzstd-dev", "zstd", "zstd"), ("liblz4-dev", "lz4-c", "lz4"), ("libeigen3-dev", "eigen", "eigen"),
    ("libceres-dev", "ceres-solver", "ceres-solver"), ("liblbfgs-dev", "liblbfgs", "liblbfgs"), ("libkissfft-dev", "kissfft", "kissfft"),
    ("libboost-dev", "libboost-headers", "boost"), ("libxgboost-dev", "libxgboost", "xgboost"), ("liblinear-dev", "liblinear", "liblinear"),
    ("libssl-dev", "openssl", "openssl"), ("libzmq3-dev", "zeromq", "libzmq"), ("libhwloc-dev", "libhwloc", "hwloc"),
    ("libopenmpi-dev", "openmpi", "mpi"),
]
# Optional: other systems build without.
ON_DEBIAN_ALONE = {"libclang-19-dev", "librdkafka-dev", "libgrpc++-dev"}


def on_debian(*words):
    said = subprocess.run([root / "tools/setup", "--list", *words], capture_output=True, text=True, check=True)
    return said.stdout.split()


def in_conda():
    return set(re.findall(r"^  - ([\w-]+)", (root / "environment.yml").read_text(), re.M))


def in_spack(file):
    """First arguments of depends_on(...)."""
    tree = ast.parse(file.read_text())
    return {call.args[0].value for call in ast.walk(tree) if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "depends_on"}


class Lists(unittest.TestCase):
    def test_what_debian_needs_others_need(self):
        libraries = {name for name in on_debian("program") if name.startswith("lib") and name.endswith("-dev")} | {"nlohmann-json3-dev", "zlib1g-dev"}
        named = {debian for debian, _, _ in NAMES}
        self.assertEqual(libraries - named, ON_DEBIAN_ALONE, "libraries that environment.yml and packaging/spack may lack")
        self.assertEqual(named - libraries, set())
        self.assertEqual({conda for _, conda, _ in NAMES} - in_conda(), set())
        self.assertEqual({spack for _, _, spack in NAMES} - in_spack(root / "packaging/spack/packages/superstep/package.py"), set())

    def test_a_program_needs_nothing_of_its_tests(self):
        tests = set(on_debian()) - set(on_debian("program"))
        self.assertTrue({"libgtest-dev", "libonnx-testdata", "libbenchmark-dev", "clang-format-14"} <= tests, tests)

    def test_another_word_is_refused(self):
        said = subprocess.run([root / "tools/setup", "--list", "everything"], capture_output=True, text=True)
        self.assertEqual((said.returncode, "everything" in said.stderr), (2, True))


class Files(unittest.TestCase):
    def test_packages_of_spack_are_classes_of_their_folders_name(self):
        files = sorted((root / "packaging/spack/packages").glob("*/package.py"))
        self.assertEqual(len(files), 4)
        for file in files:
            classes = [node.name.lower() for node in ast.parse(file.read_text()).body if isinstance(node, ast.ClassDef)]
            self.assertEqual(classes, [file.parent.name])

    def test_the_wheel_says_whose_it_is(self):
        project = tomllib.loads((root / "python/pyproject.toml").read_text())["project"]
        self.assertTrue(project["authors"] and project["license"] == "Apache-2.0")
        extras = project["optional-dependencies"]
        plain = {re.split(r"[<>=]", name)[0] for extra, names in extras.items() if extra != "all" for name in names}
        self.assertEqual({re.split(r"[<>=]", name)[0] for name in extras["all"]}, plain)


class Licenses(unittest.TestCase):
    def test_a_bundled_library_is_known_by_its_own_name(self):
        names = ["superstep.libs/libzmq-1a2b3c4d.so.5.2.4", "superstep.libs/libopenblasp-r0-234bd196.3.21.so", "superstep/_core.abi3.so"]
        self.assertEqual(licenses.bundled(names), {"libzmq.so.5.2.4", "libopenblasp-r0.3.21.so"})

    def test_a_library_of_nobody_ends_it(self):
        with self.assertRaises(SystemExit) as ended:
            licenses.additions({"superstep.libs/libnobodys-1a2b3c4d.so.1": None}, "{}")
        self.assertIn("libnobodys.so.1", str(ended.exception))


class Tags(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name)
        (self.tree / "tools").mkdir()
        shutil.copy(root / "tools/tag", self.tree / "tools/tag")
        (self.tree / "CMakeLists.txt").write_text("project(superstep VERSION 0.2.0 LANGUAGES C)\n")
        (self.tree / "CITATION.cff").write_text("title: x\nversion: 0.2.0\n")
        (self.tree / "CHANGELOG.md").write_text("# What changed\n\n## Next\n- a thing\n\n## 0.2.0\n- others\n")
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-qm", "first")

    def git(self, *words):
        who = ["-c", "user.name=N", "-c", "user.email=n@localhost"]
        return subprocess.run(["git", *who, *words], cwd=self.tree, capture_output=True, text=True, check=True).stdout

    def tag(self, *words):
        who = {"GIT_AUTHOR_NAME": "N", "GIT_AUTHOR_EMAIL": "n@localhost", "GIT_COMMITTER_NAME": "N", "GIT_COMMITTER_EMAIL": "n@localhost"}
        return subprocess.run([self.tree / "tools/tag", *words], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", **who})

    def test_a_release_stands_everywhere(self):
        said = self.tag("0.3.0", "2027-01-31")
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("VERSION 0.3.0 ", (self.tree / "CMakeLists.txt").read_text())
        self.assertIn("version: 0.3.0\ndate-released: 2027-01-31\n", (self.tree / "CITATION.cff").read_text())
        self.assertIn("## Next\n\n## 0.3.0, 2027-01-31\n- a thing", (self.tree / "CHANGELOG.md").read_text())
        self.assertEqual(self.git("tag").split(), ["v0.3.0"])
        self.assertEqual(self.git("status", "--porcelain"), "")
        self.assertEqual(self.tag("0.3.1").returncode, 1, "there are no notes since")

    def test_what_is_no_next_version_is_refused(self):
        for words in (["0.2"], ["0.4.0"], ["0.2.2"], ["2.0.0"], ["v0.3.0"], ["0.3.0", "soon"], []):
            self.assertEqual(self.tag(*words).returncode, 2, words)
        (self.tree / "new").touch()
        self.assertEqual(self.tag("0.3.0").returncode, 1)
        self.assertEqual(self.git("tag"), "")


if __name__ == "__main__":
    unittest.main()
