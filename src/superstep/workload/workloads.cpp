// Every workload there is: one line each.
#include <fmt/format.h>

#include "superstep/base/text.h"
#include "superstep/transform/training/training_form.h"
#include "superstep/workload/chemistry/uno.h"
#include "superstep/workload/language/bert.h"
#include "superstep/workload/primitive/lstm.h"
#include "superstep/workload/primitive/mlp.h"
#include "superstep/workload/vision/cifar10_cnn.h"
#include "superstep/workload/vision/efficientnet.h"
#include "superstep/workload/vision/mobilenet_v3.h"
#include "superstep/workload/vision/resnet50.h"
#include "superstep/workload/vision/unet.h"
#include "superstep/workload/workload.h"
#include "superstep/workload/xray/braggnn.h"
#include "superstep/workload/xray/ptychonn.h"

namespace superstep::workload {

std::span<const Workload> workloads() {
  static const std::vector<Workload> table = {
      braggnn(),
      ptychonn_64(),
      ptychonn_128(),
      uno(),
      unet_256(),
      unet_64(),
      cifar10_cnn(),
      resnet50(),
      efficientnet_b0(),
      efficientnet_b4(),
      mobilenet_v3_small(),
      mobilenet_v3_large(),
      bert_small(),
      distilbert(),
      lstm(),
      rnn_kernel(1),
      rnn_kernel(2),
      rnn_kernel(3),
      rnn_kernel(4),
      mlp(),
  };
  return table;
}

const Workload& find_workload(std::string_view name) {
  std::vector<std::string> names;
  for (const Workload& workload : workloads()) {
    if (workload.name == name) return workload;
    names.push_back(workload.name);
  }
  throw Error(ErrorCode::invalid_argument, "there is no such workload", std::string(name),
              unknown_name_hint(name, names));
}

graph::Graph build_model(const Workload& workload, std::int64_t batch,
                         std::span<const std::string> assignments, std::uint64_t seed) {
  if (batch < 1)
    throw Error(ErrorCode::invalid_argument, fmt::format("a batch of {} samples cannot be built", batch),
                workload.name);
  return workload.build(batch, Options(workload.options, assignments), seed);
}

std::int64_t count_parameters(const graph::Graph& model) {
  std::int64_t count = 0;
  for (graph::ValueId id : transform::trainable_states(model)) count += model.type(id).shape.element_count();
  return count;
}

}  // namespace superstep::workload
