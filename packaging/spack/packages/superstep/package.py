# Superstep as a package for Spack, and beside it three that Spack's own catalog lacks. Nobody has tried them: no Spack was at hand
# where they were written, and a test reads their syntax alone (docs/install.md). In the sources:
#   spack repo add packaging/spack && spack dev-build superstep@main
from spack.package import *


class Superstep(CMakePackage):
    """Compiles, trains, serves and predicts scientific machine-learning models."""

    license("Apache-2.0")
    version("main", branch="main", no_cache=True)

    variant("mpi", default=True, description="runs of several ranks")
    variant("grpc", default=True, description="requests over gRPC")
    variant("kafka", default=False, description="frames and answers over Kafka")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.11:", type="build")
    generator("ninja")

    depends_on("fmt")
    depends_on("cli11")
    depends_on("nlohmann-json")
    depends_on("tomlplusplus")
    depends_on("pcre2")
    depends_on("utf8proc")
    depends_on("highway")
    depends_on("libxsmm")
    depends_on("onednn")
    depends_on("hdf5")
    depends_on("sqlite")
    depends_on("zlib-api")
    depends_on("libpng")
    depends_on("libzip")
    depends_on("libtiff")
    depends_on("jpeg")
    depends_on("libwebp")
    depends_on("zstd")
    depends_on("lz4")
    depends_on("eigen")
    depends_on("ceres-solver")
    depends_on("liblbfgs")
    depends_on("kissfft")
    depends_on("boost")
    depends_on("xgboost")
    depends_on("liblinear")
    depends_on("openssl")
    depends_on("libzmq")
    depends_on("hwloc")
    depends_on("mpi", when="+mpi")
    depends_on("grpc", when="+grpc")
    depends_on("librdkafka", when="+kafka")

    # C++23 as the sources write it.
    conflicts("%gcc@:11")
    conflicts("%clang@:16")

    def cmake_args(self):
        return [
            self.define("SUPERSTEP_TESTS", False),
            self.define("SUPERSTEP_BENCHMARKS", False),
            self.define_from_variant("SUPERSTEP_MPI", "mpi"),
            self.define_from_variant("SUPERSTEP_GRPC", "grpc"),
            self.define_from_variant("SUPERSTEP_KAFKA", "kafka"),
        ]
