# Headers that read TOML.
from spack.package import *


class Tomlplusplus(CMakePackage):
    """A header-only parser of TOML for C++17."""

    homepage = "https://marzer.github.io/tomlplusplus/"
    git = "https://github.com/marzer/tomlplusplus.git"
    license("MIT")
    version("3.4.0", tag="v3.4.0")
    depends_on("cxx", type="build")
