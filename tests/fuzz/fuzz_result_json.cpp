// Results of others: any text is refused with an Error, or read, written and read again the same.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "superstep/base/error.h"
#include "superstep/lab/formats/result.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace superstep;
  try {
    const auto results = lab::read_results({reinterpret_cast<const char*>(data), size}, "fuzz");
    if (results.empty()) return 0;
    const std::string written = lab::write_results(results);
    if (lab::write_results(lab::read_results(written, "fuzz")) != written) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
