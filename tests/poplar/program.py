"""Compiles a Poplar program with an installed prefix and runs it: what it prints is PROGRAM.expected beside its source.

program.py SOURCE --prefix FOLDER --folder FOLDER [--compiler NAME ...] [--arguments "WORD ..."]

Standard error comes behind standard output. A compiler that is not there is passed over; none: 77."""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

FLAGS = ["-std=c++11", "-Wall", "-Wextra", "-pedantic", "-Werror"]


def run(command, **more):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=280, **more)
    return done.returncode, done.stdout, done.stderr


def library_folder(prefix):
    return next(prefix.glob("lib*/**/libpoplar.so")).parent


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--prefix", type=pathlib.Path, required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", action="append")
    parser.add_argument("--arguments", default="")
    options = parser.parse_args()
    libraries = library_folder(options.prefix)
    wanted = options.source.with_suffix(".expected").read_text()
    tried = 0
    for compiler in options.compiler or ["g++"]:
        if not shutil.which(compiler):
            continue
        tried += 1
        # A folder of the program's own, with the codelets that lie beside its source.
        folder = options.folder / f"{options.source.stem}-{compiler}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for codelets in options.source.parent.glob(f"{options.source.stem}_codelets*"):
            shutil.copy(codelets, folder)
        command = [compiler, *FLAGS, f"-I{options.prefix / 'include'}", str(options.source),
                   f"-L{libraries}", "-lpoplar", "-o", str(folder / "program")]
        code, _, errors = run(command)
        if code:
            print(f"{' '.join(command)}\n{errors}")
            return 1
        environment = dict(os.environ, LD_LIBRARY_PATH=str(libraries), SUPERSTEP_HOME=str(folder / "home"))
        code, output, errors = run([str(folder / "program"), *options.arguments.split()], cwd=folder, env=environment)
        if code or output + errors != wanted:
            print(f"{options.source.name} ended with {code} and printed\n{output}{errors}expected was\n{wanted}")
            return 1
    return 0 if tried else 77


if __name__ == "__main__":
    sys.exit(main())
