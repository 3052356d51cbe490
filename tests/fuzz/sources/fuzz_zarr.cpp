// A store of Zarr with one array: its metadata is the input's first line, its first chunk the rest.
#include <string_view>

#include "superstep/base/file.h"
#include "superstep/file/source/forms.h"
#include "tests/fuzz/attempt.h"
#include "tests/fuzz/input_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* input, std::size_t size) {
  using namespace superstep;
  const std::string_view bytes(reinterpret_cast<const char*>(input), size);
  const std::size_t line = std::min(bytes.find('\n'), bytes.size());
  const bool third = bytes.find("node_type") < line;
  const InputFolder folder(input, line, {third ? "zarr.json" : ".zarray"});
  const std::string_view chunk = bytes.substr(std::min(line + 1, bytes.size()));
  for (const char* name : {"0", "0.0"}) write_file_atomically(folder.path() / name, chunk);
  attempt([&] {
    constexpr std::size_t most_bytes = 1 << 22;
    const auto source = data::open_source(folder.path());
    const data::SourceArray& array = source->arrays().at(0);
    if (array.rows == 0 || array.row_bytes() > most_bytes) return;
    const std::int64_t rows[] = {0, array.rows - 1};
    data::read_rows(*source, 0, rows);
  });
  return 0;
}
