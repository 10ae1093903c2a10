from spack_repo.builtin.build_systems.cmake import CMakePackage
from spack.package import depends_on, license, variant, version


class Kiln(CMakePackage):
    """Machine learning on large sparse and dense data at memory speed."""

    license("Apache-2.0")
    version("0.2.0")

    variant("mpi", default=False, description="Build the plug-in for MPI")

    depends_on("c", type="build")
    depends_on("cmake@3.18:", type="build")
    depends_on("zlib-api")
    depends_on("jansson")
    depends_on("zstd")
    depends_on("mpi", when="+mpi")

    def cmake_args(self):
        return ["-DKILN_TESTS=OFF"]
