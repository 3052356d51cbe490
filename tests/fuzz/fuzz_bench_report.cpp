// Results of others, as far as they are used: what is read can be compared, drawn and written in every form,
// or is refused with an Error.
#include <string_view>

#include "superstep/base/error.h"
#include "superstep/lab/compare/compare.h"
#include "superstep/lab/formats/writers.h"
#include "superstep/lab/report/bench_report.h"
#include "superstep/record/result_json.h"
#include "tests/fuzz/attempt.h"
#include "tests/fuzz/input_folder.h"

using namespace superstep;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  std::vector<record::Result> results;
  attempt([&] { results = record::read_results({reinterpret_cast<const char*>(data), size}, "fuzz"); });
  if (results.empty()) return 0;
  for (const lab::Writer& writer : lab::writers()) attempt([&] { writer.write(results); });
  attempt([&] { lab::comparison_table(lab::compare(results, results, {.resamples = 10})); });
  const InputFolder folder(data, 0, {});
  attempt([&] { lab::make_bench_report({.results = results, .out = folder.path() / "report"}); });
  return 0;
}
