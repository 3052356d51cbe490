// Any text is either a study or refused with an Error.
#include <string_view>

#include "superstep/study/cells.h"
#include "tests/fuzz/attempt.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace superstep;
  attempt([&] {
    study::Study read = study::parse_study({reinterpret_cast<const char*>(data), size}, "fuzz.toml");
    read.rows.clear();  // a file of whoever wrote the study
    study::cells_of(read);
  });
  return 0;
}
