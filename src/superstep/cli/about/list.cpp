// superstep list: what there is.
#include "superstep/cli/about/list.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/baseline/baseline.h"
#include "superstep/cli/command.h"
#include "superstep/cli/numerics/numerics_options.h"
#include "superstep/machine/cost_model.h"
#include "superstep/machine/rates/machines.h"
#include "superstep/machine/rates/sheet_machine.h"
#include "superstep/physics/generator.h"
#include "superstep/target/operator_table.h"
#include "superstep/target/pjrt/pjrt.h"
#include "superstep/target/target.h"
#include "superstep/workload/workload.h"

namespace superstep::cli {
namespace {

// As the workloads say, without building their models.
void list_workloads() {
  TextTable table({"workload", "what it is", "parameters", "MFLOP per sample"});
  for (const workload::Workload& workload : workload::workloads())
    table.add_row({workload.name, workload.summary, format_count(static_cast<double>(workload.parameters)),
                   fmt::format("{:.3g}", static_cast<double>(workload.flops) * 1e-6)});
  fmt::print("{}", table.to_string());
}

// Both of every workload, and where a published one is from.
void list_recipes() {
  for (const workload::Workload& workload : workload::workloads()) {
    using Name = workload::RecipeName;
    fmt::print("{}\n", workload.name);
    const auto show = [&](Name name, const workload::Recipe& recipe) {
      const std::string shown =
          std::string(name_of(name)) + (name == workload.by_default ? " (default)" : "");
      fmt::print("  {:19}{}\n", shown, to_string(recipe));
    };
    show(Name::quick, workload.training);
    if (!workload.published) continue;
    show(Name::published, *workload.published);
    fmt::print("  {:19}from {}\n", "", workload.published->source);
  }
}

void list_targets() {
  TextTable table({"target", "what it is"});
  for (const target::Target* target : target::targets())
    table.add_row({std::string(target->name()), std::string(target->summary())});
  fmt::print("{}", table.to_string());
}

// Plug-ins of PJRT and what they find, and what to install for the kinds of which there is none.
void list_devices() {
  TextTable table({"--on", "device", "plug-in"}), missing({"--on", "devices", "to install"});
  for (const target::pjrt::DeviceEntry& entry : target::pjrt::list_devices()) {
    if (entry.plugin.empty()) {
      missing.add_row({entry.kind, entry.kind_of_devices, entry.trouble});
      continue;
    }
    const std::string versions = entry.versions.empty() ? "" : ", " + entry.versions;
    for (const auto& device : entry.devices)
      table.add_row({device.name, device.what, entry.plugin + versions});
    if (entry.devices.empty()) table.add_row({entry.kind, "none: " + entry.trouble, entry.plugin + versions});
  }
  if (!table.empty()) fmt::print("{}\n", table.to_string());
  if (!missing.empty()) fmt::print("without a plug-in:\n{}", missing.to_string());
}

std::string range_of(const machine::Constant& constant) {
  return constant.low == constant.high ? "" : fmt::format("{:.4g} to {:.4g}", constant.low, constant.high);
}

void list_constants(const machine::Machine& machine) {
  fmt::print("{}: {} ({}), {}\n", machine.id(), machine.name(), name_of(machine.style()), machine.file());
  TextTable table({"constant", "value", "unit", "range", "kind", "open", "source, note"});
  for (const machine::Constant& constant : machine.constants())
    table.add_row(
        {constant.name, fmt::format("{:.6g}", constant.value), constant.unit, range_of(constant),
         name_of(constant.kind), constant.open ? "open" : "",
         constant.source + (constant.source.empty() || constant.note.empty() ? "" : ": ") + constant.note});
  fmt::print("{}\n", table.to_string());
}

bool has_file(const std::string& id) {
  return std::ranges::any_of(machine::machines(),
                             [&](const machine::Machine& each) { return each.id() == id; });
}

// Machines without a file: what their data sheets say, and the styles' guesses.
void list_sheets() {
  fmt::print("\nBy their data sheets alone: predict, sweep and advise take them by name\n");
  TextTable table({"machine", "what it is", "16-bit peak", "memory per device", "memory rate", "known"});
  for (const auto& [id, sheet] : machine::sheets()) {
    const machine::MachineFacts& facts = sheet.facts;
    if (has_file(id) || !machine::can_be_made(facts)) continue;
    table.add_row({id, facts.name, format_si(facts.peak("fp16"), "FLOP/s"),
                   facts.memory > 0 ? format_bytes(facts.memory) : "", format_si(facts.memory_rate, "B/s"),
                   sheet.checked ? "its sheet" : "from memory: check before use"});
  }
  fmt::print("{}", table.to_string());
}

void list_machines(bool constants) {
  if (constants) {
    for (const machine::Machine& machine : machine::machines()) list_constants(machine);
    return;
  }
  TextTable table(
      {"machine", "what it is", "style", "16-bit peak", "memory per device", "open constants", "guesses"});
  table.add_row({"cpu", "this machine", "measured", "", "", "", ""});
  for (const machine::Machine& machine : machine::machines()) {
    int open = 0, guesses = 0;
    for (const machine::Constant& constant : machine.constants()) {
      open += constant.open ? 1 : 0;
      guesses += constant.kind == machine::Kind::guess ? 1 : 0;
    }
    const auto model = machine::cost_model(machine);
    const machine::Precision precision = machine::precision_from_name("16.16");
    table.add_row({machine.id(), machine.name(), name_of(machine.style()),
                   format_si(model->bounds(precision).peak_flops, "FLOP/s"), format_bytes(model->capacity()),
                   fmt::format("{}", open), fmt::format("{}", guesses)});
  }
  fmt::print("{}", table.to_string());
  list_sheets();
}

void list_operators() { fmt::print("{}", target::operator_table().to_string()); }

struct List {
  const char* name;
  void (*print)();
};

void list(const std::string& what, bool constants) {
  static const List lists[] = {{"workloads", list_workloads},
                               {"recipes", list_recipes},
                               {"machines", [] { list_machines(false); }},
                               {"numerics", list_numerics},
                               {"operators", list_operators},
                               {"ops", list_operators},
                               {"targets", list_targets},
                               {"backends", list_targets},
                               {"devices", list_devices},
                               {"generators", list_generators},
                               {"baselines", list_baselines}};
  if (constants && what != "machines")
    throw Error(ErrorCode::invalid_argument, "only machines have constants", "--constants",
                "superstep list machines --constants");
  if (constants) return list_machines(true);
  std::vector<std::string> known;
  for (const List& each : lists) {
    if (what == each.name) return each.print();
    known.emplace_back(each.name);
  }
  throw Error(ErrorCode::invalid_argument, "there is no such list", what, unknown_name_hint(what, known));
}

}  // namespace

void list_generators() {
  TextTable table({"workload", "data"});
  for (const data::GeneratorEntry& entry : data::generators()) table.add_row({entry.name, entry.summary});
  fmt::print("{}", table.to_string());
}

void list_baselines() {
  TextTable table({"workload", "conventional method"});
  for (const baseline::Entry& entry : baseline::baselines()) table.add_row({entry.name, entry.summary});
  fmt::print("{}", table.to_string());
}

void declare_list(CLI::App& command) {
  const auto what = std::make_shared<std::string>("workloads");
  const auto constants = std::make_shared<bool>(false);
  command
      .add_option("what", *what,
                  "workloads, recipes, machines, numerics, operators (ops), targets (backends), generators, "
                  "baselines")
      ->type_name("WHAT")
      ->capture_default_str();
  command.add_flag("--constants", *constants,
                   "list every number of the machines with its kind, source and range");
  command.callback([what, constants] { list(*what, *constants); });
}

}  // namespace superstep::cli
