"""The commands of docs/poplar.md, beside the programs that they name and with an installed prefix: they print what the
page shows. page.py PREFIX"""

import os
import pathlib
import shutil
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/docs"))
import page_commands


def main():
    prefix = pathlib.Path(sys.argv[1]).absolute()
    libraries = str(next(prefix.glob("lib*/**/libpoplar.so")).parent)
    with tempfile.TemporaryDirectory() as folder:
        for source in (SOURCE / "examples/poplar").glob("*.cpp"):
            shutil.copy(source, folder)
        environment = dict(os.environ, PATH=f"{prefix / 'bin'}:{os.environ['PATH']}", CPATH=str(prefix / "include"),
                           LIBRARY_PATH=libraries, LD_LIBRARY_PATH=libraries,
                           SUPERSTEP_HOME=str(pathlib.Path(folder) / "home"))
        return page_commands.wrong_commands((SOURCE / "docs/poplar.md").read_text(), ("g++ ", "./", "popc "), 3,
                                            cwd=folder, env=environment)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
