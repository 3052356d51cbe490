#include "superstep/study/known.h"

#include <algorithm>

#include "superstep/lab/validate/language_rows.h"
#include "superstep/lab/validate/primitive_graph.h"
#include "superstep/machine/configuration/set_ups.h"
#include "superstep/machine/machine.h"
#include "superstep/machine/rates/models.h"
#include "superstep/workload/workload.h"

namespace superstep::study {
namespace {

const std::vector<std::string>& qualities() {
  static const std::vector<std::string> names{"accuracy", "error",   "loss", "mae",
                                              "mse",      "quality", "r2",   "rmse"};
  return names;
}

const std::vector<std::string>& speeds() {
  static const std::vector<std::string> names{"bandwidth_utilization",
                                              "bus_bandwidth",
                                              "compute_rate",
                                              "compute_time",
                                              "compute_utilization",
                                              "data_time",
                                              "epoch_time",
                                              "epochs_to_target",
                                              "host_time",
                                              "latency",
                                              "latency_per_sample",
                                              "launch_time",
                                              "memory",
                                              "ratio_to_a100",
                                              "ratio_to_gc200",
                                              "scaling_efficiency",
                                              "speedup_half_over_single",
                                              "step_time",
                                              "steps_to_quality",
                                              "throughput",
                                              "throughput_first_epoch",
                                              "throughput_per_price",
                                              "time_to_first_token",
                                              "time_to_quality",
                                              "time_to_solution"};
  return names;
}

}  // namespace

std::vector<std::string> names_of_workloads() {
  std::vector<std::string> names;
  for (const workload::Workload& workload : workload::workloads()) names.push_back(workload.name);
  for (const machine::Form& form : machine::public_set_ups().forms) names.push_back(form.name);
  for (const lab::PrimitiveKind kind : lab::primitive_kinds())
    for (const lab::Primitive& primitive : lab::published_primitives(kind)) names.push_back(primitive.name);
  names.emplace_back("conv2d");
  for (const std::string& model : machine::known_language_models()) names.push_back("llm:" + model);
  return names;
}

bool is_workload(const std::string& name) {
  const std::vector<std::string> names = names_of_workloads();
  return std::ranges::find(names, name) != names.end() || name.starts_with("allreduce-") ||
         lab::primitive_graph(name, "time").has_value();
}

std::vector<std::string> names_of_machines() {
  std::vector<std::string> names;
  for (const machine::Machine& machine : machine::machines()) names.push_back(machine.id());
  names.emplace_back("cpu");
  return names;
}

std::vector<std::string> known_values(std::string_view column) {
  if (column == "machine") return names_of_machines();
  if (column == "mode") return {"train", "infer", "backward", "collective"};
  if (column == "precision") return {"fp32", "tf32", "fp16", "bf16", "mixed", "amp", "16.16", "int8"};
  if (column == "framework")
    return {"pytorch", "tensorflow", "poplar", "popart", "onnx", "groqapi",
            "nccl",    "gcl",        "mxnet",  "cublas", "cudnn"};
  if (column == "unit")
    return {"samples/s",
            "images/s",
            "sequences/s",
            "frames/s",
            "tokens/s",
            "s",
            "ms",
            "us",
            "%",
            "x",
            "TFLOPS",
            "GB/s",
            "K",
            "px",
            "1",
            "samples/s per $1,000",
            "images/s per $1,000",
            "sequences/s per $1,000"};
  if (column == "metric") {
    std::vector<std::string> names = speeds();
    names.insert(names.end(), qualities().begin(), qualities().end());
    return names;
  }
  return {};
}

std::optional<lab::Primitive> primitive_of(const std::string& name) {
  if (const lab::Primitive* const published = lab::published_primitive(name)) return *published;
  return lab::product_named(name);
}

bool is_quality(const std::string& metric) {
  return std::ranges::find(qualities(), metric) != qualities().end();
}

}  // namespace superstep::study
