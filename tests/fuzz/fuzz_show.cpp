// What `superstep show` draws: a page of any file of arrays, or an Error.
#include <string_view>

#include "superstep/base/error.h"
#include "superstep/show/show.h"
#include "tests/fuzz/input_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace superstep;
  const bool hdf5 = std::string_view(reinterpret_cast<const char*>(data), size).starts_with("\x89HDF");
  const char* name = hdf5 ? "arrays.h5" : "arrays.safetensors";  // the others are told by their first bytes
  const InputFolder folder(data, size, {name});
  try {
    show::show_file(folder.path() / name, {.pictures = 3}).page.to_html();
  } catch (const Error&) {
  }
  return 0;
}
