// Writes small valid files of every format to the folders DIR/FORMAT: what the fuzzers start from.
#include <cstdio>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/hdf5/pytables.h"
#include "superstep/file/npy.h"
#include "superstep/file/npz.h"
#include "superstep/file/safetensors.h"

namespace {

using namespace superstep;

void make_hdf5_seeds(const std::filesystem::path& folder) {
  make_folder(folder);
  data::Hdf5Writer arrays(folder / "arrays");
  arrays.write("whole", Tensor::full(ElementType::f32, {4, 3}, 2));
  arrays.write("group/packed", Tensor::full(ElementType::u16, {16, 8}, 7), {.chunk_rows = 4, .deflate = 6});
  arrays.write_strings("names", std::vector<std::string>{"one", "two", "three"});
  arrays.set_attribute("", "made by", std::string("make_seeds"));
  arrays.set_attribute("whole", "scale", 0.5);
  arrays.close();
  data::PandasWriter frames(folder / "frames");
  frames.create("train", 3, {"a", "b"}, {"name"});
  frames.write_rows("train", 0, std::vector<float>{1, 2, 3, 4, 5, 6}, {{"x", "y", "z"}});
  frames.close();
}

void make_seeds(const std::filesystem::path& folder) {
  make_hdf5_seeds(folder / "hdf5");
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
