// Any bytes are a data base of records that can be listed, exported and added to, or refused with an Error.
#include <cstdlib>

#include "superstep/base/error.h"
#include "superstep/record/records.h"
#include "superstep/record/result_json.h"
#include "tests/fuzz/input_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace superstep;
  const InputFolder folder(data, size, {"records.sqlite"});
  try {
    record::Records records(folder.path() / "records.sqlite");
    record::write_results(records.list());
    const std::int64_t id = records.add({.command = "bench", .workload = "mlp", .config = {{"batch", 4}}});
    if (!records.find(id)) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
