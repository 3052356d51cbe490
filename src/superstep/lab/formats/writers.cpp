// The table of writers.
#include "superstep/lab/formats/writers.h"

#include <array>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/record/result_json.h"

namespace superstep::lab {

std::span<const Writer> writers() {
  static constexpr std::array table{
      Writer{"json", "superstep-result/1, with every sample", record::write_results},
      Writer{"google", "Google Benchmark's JSON", write_google_benchmark},
      Writer{"csv", "a row a metric", write_csv},
      Writer{"deepbench", "DeepBench's columns", write_deepbench},
      Writer{"nccl", "the table of nccl-tests", write_nccl_table},
      Writer{"nccl-json", "the JSON of nccl-tests", write_nccl_json},
      Writer{"mllog", ":::MLLOG lines", write_mllog},
      Writer{"trace", "Chrome's trace events", write_chrome_trace},
  };
  return table;
}

const Writer& find_writer(std::string_view name) {
  std::vector<std::string> names{"text"};
  for (const Writer& writer : writers()) {
    if (writer.name == name) return writer;
    names.emplace_back(writer.name);
  }
  throw Error(ErrorCode::invalid_argument, "there is no such format", std::string(name),
              unknown_name_hint(name, names));
}

}  // namespace superstep::lab
