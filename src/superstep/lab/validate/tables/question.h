// A question about one call, put as a row of a table of measurements: what `predict` answers is what
// `validate` judges.
#pragma once

#include <cstdint>
#include <string>

#include "superstep/lab/validate/tables/call.h"

namespace superstep::lab {

struct RowQuestion {
  std::string workload, mode = "infer", software, precision;
  std::int64_t units = 1, groups = 1, micro_batch = 0;
  std::string note;
};

// Whether a name is one that the laws answer for: a primitive of tables, or a network of
// machines/rates/networks.csv
// ("timm/resnet50d@224", with or without "onnx:").
bool law_knows_primitive(const std::string& name);
bool law_knows_network(const std::string& name);

// The call that a row of such a question would be. Throws Error (invalid_argument) with the reason where it
// is none.
TableCall call_of(const RowQuestion& question, const machine::MachineFacts& machine);

}  // namespace superstep::lab
