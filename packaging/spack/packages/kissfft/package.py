# Fourier transforms of floats.
from spack.package import *


class Kissfft(CMakePackage):
    """A Fast Fourier Transform that keeps it simple."""

    homepage = "https://github.com/mborgerding/kissfft"
    git = "https://github.com/mborgerding/kissfft.git"
    license("BSD-3-Clause")
    version("131.1.0", tag="131.1.0")
    depends_on("c", type="build")

    def cmake_args(self):
        return ["-DKISSFFT_DATATYPE=float", "-DKISSFFT_TEST=OFF", "-DKISSFFT_TOOLS=OFF"]
