#include <fmt/format.h>

#include "superstep/lab/formats/writers.h"
#include "superstep/record/member.h"

namespace superstep::lab {
namespace {

std::string member(const record::Result& result, const char* name) {
  const auto found = result.parameters.find(name);
  if (found == result.parameters.end()) return "n/a";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::string precision_of(const record::Result& result) {
  return record::text_member(result.config, "precision", "n/a");
}

std::string microseconds(const record::Result* result) {
  const record::Quantity* time = result ? result->find("step_time") : nullptr;
  return time ? fmt::format("{:.3f}", time->value * 1e6) : "n/a";
}

// The result of the same workload and precision in the other mode.
const record::Result* partner(const std::vector<record::Result>& results, const record::Result& result,
                              const char* mode) {
  for (const record::Result& other : results)
    if (other.workload == result.workload && precision_of(other) == precision_of(result) &&
        other.mode == mode)
      return &other;
  return nullptr;
}

// One row a configuration and precision: at the first result that has it.
bool is_first(const std::vector<record::Result>& results, const record::Result& result) {
  for (const record::Result& other : results) {
    if (&other == &result) return true;
    if (other.workload == result.workload && precision_of(other) == precision_of(result)) return false;
  }
  return true;
}

struct Kind {
  const char* name;
  const char* header;
  std::string (*row)(const std::vector<record::Result>& results, const record::Result& result);
};

std::string gemm_row(const std::vector<record::Result>& results, const record::Result& r) {
  return fmt::format("{} {} {} n n {} {}\n", member(r, "m"), member(r, "n"), member(r, "k"), precision_of(r),
                     microseconds(partner(results, r, "infer")));
}

std::string conv_row(const std::vector<record::Result>& results, const record::Result& r) {
  return fmt::format("{} {} {} {} {} {} {} {} {} 1 1 {} {} n/a n/a {} superstep\n", member(r, "width"),
                     member(r, "height"), member(r, "channels"), member(r, "batch"), member(r, "filters"),
                     member(r, "filter_width"), member(r, "filter_height"), member(r, "pad_width"),
                     member(r, "pad_height"), precision_of(r), microseconds(partner(results, r, "infer")),
                     microseconds(partner(results, r, "train")));
}

std::string lstm_row(const std::vector<record::Result>& results, const record::Result& r) {
  return fmt::format("lstm {} {} {} {} {} n/a n/a {}\n", member(r, "hidden"), member(r, "batch"),
                     member(r, "steps"), precision_of(r), microseconds(partner(results, r, "infer")),
                     microseconds(partner(results, r, "train")));
}

constexpr Kind kinds[] = {
    {"gemm", "m n k a_t b_t precision time (usec)", gemm_row},
    {"conv",
     "w h c n k f_w f_h pad_w pad_h stride_w stride_h precision fwd_time (usec) bwd_inputs_time (usec) "
     "bwd_params_time (usec) total_time (usec) fwd_algo",
     conv_row},
    {"lstm",
     "type hidden N timesteps precision fwd_time (usec) bwd_inputs_time (usec) bwd_params_time (usec) "
     "total_time (usec)",
     lstm_row}};

}  // namespace

std::string write_deepbench(const std::vector<record::Result>& results) {
  std::string text;
  for (const Kind& kind : kinds) {
    std::string rows;
    for (const record::Result& result : results)
      if (member(result, "kind") == kind.name && is_first(results, result)) rows += kind.row(results, result);
    if (!rows.empty()) text += std::string(text.empty() ? "" : "\n") + kind.header + "\n" + rows;
  }
  return text;
}

}  // namespace superstep::lab
