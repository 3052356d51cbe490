// Writes small valid files of every format to the folders DIR/FORMAT: what the fuzzers start from.
#include <cstdio>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/data/npy.h"
#include "superstep/data/npz.h"
#include "superstep/data/safetensors.h"

namespace {

using namespace superstep;

void make_seeds(const std::filesystem::path& folder) {
  for (const char* format : {"npy", "npz", "safetensors"}) make_folder(folder / format);
  std::map<std::string, Tensor> all;
  for (const ElementType type : all_element_types) {
    const std::string name = name_of(type);
    all[name] = Tensor::full(type, {2, 3}, 1);
    if (type == ElementType::bf16) continue;
    data::write_npy(folder / "npy" / name, all[name]);
  }
  data::write_safetensors(folder / "safetensors/all", {all, {{"format", "test"}}});
  all.erase("bf16");
  data::write_npz(folder / "npz/all", all);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    make_seeds(argc > 1 ? argv[1] : ".");
  } catch (const superstep::Error& error) {
    std::fprintf(stderr, "make_seeds: %s\n", error.what());
    return 1;
  }
  return 0;
}
