"""The commands of docs/openmp.md, in their order, beside the programs that they name: they print what the page
shows. page.py FOLDER-OF-PROGRAMS"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]


COMMANDS = ("superstep ", "superstep-cc ", "SUPERSTEP_OMP")


def blocks(page):
    """Indented lines that begin with a command of ours, each with the lines of code that follow it."""
    block = []
    for line in page.splitlines() + [""]:
        code = line[4:] if line.startswith("    ") and line.strip() else None
        if block and (code is None or code.startswith(COMMANDS)):
            yield block
            block = []
        if code is not None and (block or code.startswith(COMMANDS)):
            block.append(code)


def main():
    programs = pathlib.Path(sys.argv[1]).absolute()
    environment = dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}")
    tried = wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for source in (SOURCE / "examples/openmp").glob("*.c"):
            shutil.copy(source, folder)
        environment["SUPERSTEP_HOME"] = str(pathlib.Path(folder) / "home")
        for command, *expected in blocks((SOURCE / "docs/openmp.md").read_text()):
            done = subprocess.run(command, shell=True, cwd=folder, env=environment, text=True, timeout=300,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            tried += 1
            printed = done.stdout.splitlines()
            if done.returncode != 0 or [line.rstrip() for line in printed] != [line.rstrip() for line in expected]:
                wrong += 1
                print(f"{command}\nended with {done.returncode} and printed\n{done.stdout}the page has\n" +
                      "\n".join(expected))
    print(f"{tried} commands tried, {wrong} not as the page shows them")
    return 1 if wrong or tried < 4 else 0


if __name__ == "__main__":
    sys.exit(main())
