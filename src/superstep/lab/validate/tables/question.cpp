#include "superstep/lab/validate/tables/question.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "superstep/base/error.h"
#include "superstep/machine/rates/models.h"

namespace superstep::lab {
namespace {

constexpr std::string_view onnx = "onnx:";

std::string metric_of(const RowQuestion& question) {
  const bool recurrent = question.workload.starts_with("rnn_") || question.workload.starts_with("lstm_") ||
                         question.workload.starts_with("gru_");
  return recurrent                              ? "time_forward,1,s"
         : law_knows_network(question.workload) ? "throughput,1,images/s"
                                                : "time,1,s";
}

}  // namespace

bool law_knows_primitive(const std::string& name) {
  constexpr std::array<std::string_view, 12> prefixes{
      "gemm_",      "bgemm_",     "conv_",          "rnn_",      "lstm_",    "gru_",
      "allreduce-", "allgather-", "reducescatter-", "alltoall-", "permute-", "softmax_"};
  return std::ranges::any_of(prefixes, [&](std::string_view prefix) {
    return name.starts_with(prefix) && name.size() > prefix.size() &&
           std::ranges::count_if(name, [](char c) { return c >= '0' && c <= '9'; }) > 1;
  });
}

bool law_knows_network(const std::string& name) {
  const std::string plain = name.starts_with(onnx) ? name.substr(onnx.size()) : name;
  return plain.find('/') != std::string::npos && machine::known_network(plain).has_value();
}

TableCall call_of(const RowQuestion& question, const machine::MachineFacts& machine) {
  std::string workload = question.workload;
  if (law_knows_network(workload) && !workload.starts_with(onnx)) workload = std::string(onnx) + workload;
  const auto number = [](std::int64_t value) { return value > 0 ? std::to_string(value) : std::string(); };
  const PublishedTable table(
      fmt::format(
          "id,source,place,workload,mode,machine,units,framework,precision,micro_batch,global_batch,replicas,"
          "pipeline_stages,grad_accum,metric,value,unit,note\n"
          "asked,asked,asked,{},{},{},{},{},{},{},,{},,,{},{}\n",
          workload, question.mode, machine.id, number(question.units), question.software, question.precision,
          number(question.micro_batch), number(question.groups), metric_of(question), question.note),
      question.workload);
  TableFacts facts;
  facts.machines[machine.id] = machine;
  TableCall call = call_of(table, 0, facts);
  if (!call.understood())
    throw Error(ErrorCode::invalid_argument, call.reason, question.workload,
                "docs/machines.md has the forms of names");
  return call;
}

}  // namespace superstep::lab
