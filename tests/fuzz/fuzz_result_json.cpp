// Results of others: any text is refused with an Error, or read, written and read again the same.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "superstep/base/error.h"
#include "superstep/record/result.h"
#include "superstep/record/result_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace superstep;
  try {
    const auto results = record::read_results({reinterpret_cast<const char*>(data), size}, "fuzz");
    if (results.empty()) return 0;
    const std::string written = record::write_results(results);
    if (record::write_results(record::read_results(written, "fuzz")) != written) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
