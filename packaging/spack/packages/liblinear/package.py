# Linear support vector machines.
from spack.package import *


class Liblinear(MakefilePackage):
    """A library for large linear classification."""

    homepage = "https://www.csie.ntu.edu.tw/~cjlin/liblinear/"
    git = "https://github.com/cjlin1/liblinear.git"
    license("BSD-3-Clause")
    version("2.47", tag="v247")
    depends_on("c", type="build")
    depends_on("cxx", type="build")
    build_targets = ["lib"]

    def install(self, spec, prefix):
        mkdirp(prefix.include, prefix.lib)
        install("linear.h", prefix.include)
        install("liblinear.so.*", prefix.lib)
        with working_dir(prefix.lib):
            symlink(find(".", "liblinear.so.*")[0], "liblinear.so")
