"""The commands of docs/openmp.md, in their order, beside the programs that they name: they print what the page
shows. page.py FOLDER-OF-PROGRAMS"""

import os
import pathlib
import shutil
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/docs"))
import page_commands


def main():
    programs = pathlib.Path(sys.argv[1]).absolute()
    environment = dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}")
    with tempfile.TemporaryDirectory() as folder:
        for source in (SOURCE / "examples/openmp").glob("*.c"):
            shutil.copy(source, folder)
        environment["SUPERSTEP_HOME"] = str(pathlib.Path(folder) / "home")
        return page_commands.wrong_commands((SOURCE / "docs/openmp.md").read_text(),
                                            ("superstep ", "superstep-cc ", "SUPERSTEP_OMP"), 4, cwd=folder,
                                            env=environment)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
