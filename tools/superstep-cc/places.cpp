#include "places.h"

#include <filesystem>

namespace superstep_cc {
namespace {

// The folder of libraries of the tree that this program is installed in; empty: it is in none.
std::filesystem::path installed_libraries() {
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  auto libraries = program.parent_path() / SUPERSTEP_INSTALLED_LIBRARIES;
  return std::filesystem::exists(libraries / "superstep/openmp/omp.h", ignored) ? libraries
                                                                                : std::filesystem::path();
}

}  // namespace

std::string include_folder() {
  const auto libraries = installed_libraries();
  return libraries.empty() ? SUPERSTEP_CC_INCLUDE
                           : (libraries / "superstep/openmp").lexically_normal().string();
}

std::string library_folder() {
  const auto libraries = installed_libraries();
  return libraries.empty() ? SUPERSTEP_OMP_FOLDER : libraries.lexically_normal().string();
}

}  // namespace superstep_cc
