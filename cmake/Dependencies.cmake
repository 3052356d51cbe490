# Everything comes from packages of the distribution; tools/setup installs them.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(PkgConfig REQUIRED)

# Sets of vector instructions that no file is compiled for.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  include(cmake/NativeKernels.cmake)
  superstep_kernel_sets(kernel_sets)
  set(SUPERSTEP_NO_VECTORS "(HWY_SSSE3|HWY_SSE4${kernel_sets})")
else()
  set(SUPERSTEP_NO_VECTORS "(HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128)")
  # Highway's functions for NEON are made for processors with AES: what calls them must be too, or is not inlined.
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    add_compile_options(-march=armv8-a+crypto)
  endif()
endif()
