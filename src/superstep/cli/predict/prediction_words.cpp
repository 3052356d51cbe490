#include "superstep/cli/predict/prediction_words.h"

#include <fmt/format.h>

#include "superstep/base/text.h"

namespace superstep::cli {
namespace {

void add_rows(const std::string& whose, const std::vector<machine::Constant>& constants, TextTable& table) {
  for (const machine::Constant& c : constants)
    table.add_row({whose, c.name, format_si(c.value, c.unit), c.defaulted ? "default" : name_of(c.kind),
                   fmt::format("{:.3g} to {:.3g}", c.low, c.high), c.source.empty() ? c.note : c.source});
}

}  // namespace

std::string provenance_text(const machine::Machine& machine) {
  TextTable table({"of", "constant", "value", "kind", "range", "source"});
  add_rows(machine.id(), machine.constants(), table);
  if (machine.stack()) add_rows(machine.stack()->name, machine.stack()->constants, table);
  return table.to_string();
}

std::string operators_text(const machine::Prediction& prediction) {
  TextTable table({"kernel", "operator", "phase", "stage", "time", "bound by", "how"});
  for (const machine::OperatorCost& cost : prediction.operators)
    table.add_row(
        {cost.work.name,
         cost.work.op + (cost.work.nodes.size() > 1 ? fmt::format(" +{}", cost.work.nodes.size() - 1) : ""),
         name_of(cost.work.phase), fmt::format("{}", cost.work.stage + 1), format_seconds(cost.parts.total()),
         cost.parts.largest(), cost.how});
  return table.to_string();
}

std::string scaling_text(const std::vector<machine::ScalingPoint>& points) {
  TextTable table({"replicas", "micro-batch", "accumulated", "samples per step", "step", "80 %", "all-reduce",
                   "samples/s", "efficiency"});
  for (const machine::ScalingPoint& p : points) {
    std::vector<std::string> row{fmt::format("{}", p.replicas), fmt::format("{}", p.micro_batch),
                                 fmt::format("{}", p.accumulate), fmt::format("{:.0f}", p.samples)};
    if (p.fits)
      for (const std::string& cell :
           {format_seconds(p.step_seconds),
            fmt::format("{} to {}", format_seconds(p.low), format_seconds(p.high)),
            format_seconds(p.collective_seconds), fmt::format("{:.4g}", p.throughput()),
            fmt::format("{:.1f} %", 100 * p.efficiency)})
        row.push_back(cell);
    else
      row.insert(row.end(), {"does not fit", "-", "-", "-", "-"});
    table.add_row(row);
  }
  return table.to_string();
}

}  // namespace superstep::cli
