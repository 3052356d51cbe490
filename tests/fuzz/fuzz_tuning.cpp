// The cache of tuned settings: a damaged file is one without entries, and what is added is found again.
#include <cstdlib>

#include "superstep/base/error.h"
#include "superstep/run/tune.h"
#include "tests/fuzz/input_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace superstep::run;
  const InputFolder folder(data, size, {"tuning.json"});
  TuningCache cache(folder.path() / "tuning.json");
  const auto found = cache.find("0123456789abcdef");
  if (found && (found->micro_batch < 1 || found->threads < 1)) std::abort();
  cache.add("fedcba9876543210", {4, 2, 0.5});
  if (!cache.find("fedcba9876543210")) std::abort();
  if (found && cache.find("0123456789abcdef") != found) std::abort();
  return 0;
}
