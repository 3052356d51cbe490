// superstep list: what there is.
#include <fmt/format.h>

#include <memory>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/op/definition.h"
#include "superstep/target/operator_table.h"
#include "superstep/target/target.h"
#include "superstep/workload/workload.h"

namespace superstep::cli {
namespace {

void list_workloads() {
  TextTable table({"workload", "what it is", "parameters", "MFLOP a sample"});
  for (const workload::Workload& workload : workload::workloads()) {
    const graph::Graph graph = workload::build_model(workload, 1);
    table.add_row({workload.name, workload.summary,
                   format_count(static_cast<double>(workload::count_parameters(graph))),
                   fmt::format("{:.3g}", op::cost(graph).flops * 1e-6)});
  }
  fmt::print("{}", table.to_string());
}

void list_backends() {
  TextTable table({"backend", "what it is"});
  for (const target::Target* target : target::targets())
    table.add_row({std::string(target->name()), std::string(target->summary())});
  fmt::print("{}", table.to_string());
}

void list_machines() { fmt::print("cpu    this machine, measured\n"); }

void list(const std::string& what) {
  if (what == "workloads") return list_workloads();
  if (what == "backends") return list_backends();
  if (what == "machines") return list_machines();
  if (what == "ops") return (void)fmt::print("{}", target::operator_table().to_string());
  const std::vector<std::string> known{"workloads", "machines", "ops", "backends"};
  throw Error(ErrorCode::invalid_argument, "there is no such list", what, unknown_name_hint(what, known));
}

}  // namespace

void declare_list(CLI::App& command) {
  const auto what = std::make_shared<std::string>("workloads");
  command.add_option("what", *what, "workloads, machines, ops or backends")->capture_default_str();
  command.callback([what] { list(*what); });
}

}  // namespace superstep::cli
