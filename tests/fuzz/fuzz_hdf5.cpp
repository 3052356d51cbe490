// Any bytes are either a file whose data sets can be read, or refused with an Error; so are data frames in
// it.
#include "superstep/base/error.h"
#include "superstep/data/hdf5.h"
#include "superstep/data/pytables.h"
#include "tests/fuzz/attempt.h"
#include "tests/fuzz/input_file.h"

namespace {

using namespace superstep;

constexpr std::int64_t most_elements = 1 << 20;  // a damaged header may claim any number

void read_arrays(const std::filesystem::path& path) {
  const data::Hdf5File file(path);
  file.attributes();
  for (const data::DataSetInfo& info : file.data_sets()) {
    attempt([&] { file.attributes(info.name); });
    attempt([&] {
      if (info.type && info.shape.element_count() <= most_elements) file.read(info.name, ElementType::f32);
    });
    attempt([&] {
      if (info.shape.rank() > 0 && info.shape[0] > 1 && info.shape.element_count() <= most_elements)
        file.read_rows(info.name, ElementType::i32, 1, 1);
    });
    attempt([&] {
      if (info.shape.element_count() <= most_elements) file.read_strings(info.name);
    });
  }
}

void read_frames(const std::filesystem::path& path) {
  const data::PandasFile file(path);
  for (const std::string& key : file.keys())
    attempt([&] { file.read(key, 0, std::min<std::int64_t>(file.rows(key), 100)); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const InputFile file(data, size);
  attempt([&] { read_arrays(file.path()); });
  attempt([&] { read_frames(file.path()); });
  return 0;
}
