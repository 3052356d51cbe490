"""The project beside this file, by find_package(poplar) and by pkg-config, with nothing but an installed prefix: it is
configured, built and run. The prefix is moved first: nothing in it may know where it was. project.py PREFIX FOLDER"""

import os
import pathlib
import shutil
import subprocess
import sys

PROJECT = pathlib.Path(__file__).resolve().parent / "project"
WANTED = "2\n4\n6\n9\n"


def output(*command, **more):
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=250, **more)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def held(what, printed):
    if printed != WANTED:
        raise SystemExit(f"{what}: the program printed\n{printed}expected was\n{WANTED}")


def by_cmake(prefix, folder):
    build = folder / "cmake"
    output("cmake", "-S", PROJECT, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}")
    output("cmake", "--build", build)
    held("find_package(poplar)", output(build / "double", cwd=build))


def by_pkg_config(prefix, folder):
    package = next(prefix.glob("lib*/**/pkgconfig/poplar.pc"))
    build = folder / "pkg-config"
    build.mkdir()
    environment = dict(os.environ, PKG_CONFIG_PATH=str(package.parent))
    flags = output("pkg-config", "--cflags", "--libs", "poplar", env=environment).split()
    output(prefix / "bin/popc", PROJECT / "double_codelets.cpp", "-o", build / "double.gp")
    output("g++", "-std=c++11", PROJECT / "double.cpp", *flags, "-o", build / "double")
    held("pkg-config", output(build / "double", cwd=build,
                              env=dict(os.environ, LD_LIBRARY_PATH=str(package.parent.parent))))


def main():
    installed, folder = (pathlib.Path(word).absolute() for word in sys.argv[1:])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    prefix = folder / "moved"
    shutil.copytree(installed, prefix, symlinks=True)
    by_cmake(prefix, folder)
    if shutil.which("pkg-config"):
        by_pkg_config(prefix, folder)


if __name__ == "__main__":
    main()
