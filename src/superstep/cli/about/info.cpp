// superstep info: what this program is: its version, what it was built of and for, what it finds to work
// with.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/printable.h"
#include "superstep/base/system/built_kernels.h"
#include "superstep/base/system/instruction_set.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/file/optional_forms.h"
#include "superstep/lab/health/facts.h"
#include "superstep/record/environment.h"
#include "superstep/run/ranks/communicator.h"
#include "superstep/target/pjrt/pjrt.h"

namespace superstep::cli {
namespace {

using nlohmann::json;

json instruction_sets() {
  json available = json::array();
  for (const InstructionSet set : available_instruction_sets()) available.push_back(name_of(set));
  const auto given_away = widest_given_away();
  return {{"in_force", name_of(instruction_set())},
          {"available", std::move(available)},
          {"of_the_processor_alone", given_away ? json(name_of(*given_away)) : json(nullptr)}};
}

json plug_ins() {
  json list = json::array();
  for (const target::pjrt::DeviceEntry& entry : target::pjrt::list_devices()) {
    if (entry.plugin.empty()) continue;
    json devices = json::array();
    for (const auto& device : entry.devices)
      devices.push_back({{"name", device.name}, {"what", device.what}});
    list.push_back({{"kind", entry.kind},
                    {"file", entry.plugin},
                    {"versions", entry.versions},
                    {"devices", std::move(devices)},
                    {"trouble", entry.trouble}});
  }
  return list;
}

json limit_or_null(const std::optional<std::uint64_t>& limit) { return limit ? json(*limit) : json(nullptr); }

// Of what the process may use, and of what it would.
json limits(const lab::HostFacts& facts) {
  return {{"processors", facts.usable},
          {"processors_of_the_machine", facts.processors},
          {"processors_of_the_group", facts.of_group ? json(*facts.of_group) : json(nullptr)},
          {"threads", facts.threads},
          {"memory_bytes", facts.memory_bytes},
          {"available_bytes", facts.available_bytes},
          {"open_files", limit_or_null(facts.open_files)},
          {"stack_bytes", limit_or_null(facts.stack_bytes)}};
}

json optional_forms() {
  json forms = json::object();
  for (const auto& [name, read] : data::optional_forms()) forms[name] = read;
  return forms;
}

// A program may be built with MPI and stand where its library is not: ranks are what it then lacks, and no
// more.
json mpi_of_this_machine() {
  if (!run::has_ranks()) return nullptr;
  try {
    return run::ranks_library();
  } catch (const Error& error) {
    return fmt::format("not there: {}", error.message());
  }
}

json all_of_it() {
  const json environment = record::environment_record(thread_count());
  const lab::HostFacts facts = lab::host_facts();
  return {{"program", record::program_record()},
          {"compiler", environment["software"]["compiler"]},
          {"flags", environment["software"]["flags"]},
          {"libraries", environment["software"]["libraries"]},
          {"instruction_sets", instruction_sets()},
          {"mpi", mpi_of_this_machine()},
          {"optional_forms", optional_forms()},
          {"plug_ins", plug_ins()},
          {"limits", limits(facts)},
          {"folders", {{"records", facts.data.path}, {"cache", facts.cache.path}}}};
}

std::string version_text(const json& program) {
  if (!program["git"].is_string()) return program["version"].get<std::string>();
  return fmt::format("{} ({}{})", program["version"].get<std::string>(), program["git"].get<std::string>(),
                     program["dirty"].get<bool>() ? ", changed since" : "");
}

std::string libraries_text(const json& libraries) {
  std::vector<std::string> texts;
  for (const auto& [name, version] : libraries.items())
    texts.push_back(
        fmt::format("{} {}", name, version.is_string() ? version.get<std::string>() : version.dump()));
  return join(texts, ", ");
}

std::string sets_text(const json& sets) {
  std::vector<std::string> names;
  for (const json& name : sets["available"]) names.push_back(name.get<std::string>());
  const json& missing = sets["of_the_processor_alone"];
  return fmt::format("{} in force, of {}{}", sets["in_force"].get<std::string>(), join(names, ", "),
                     missing.is_null() ? ""
                                       : fmt::format("; the processor has {}, for which this program was not "
                                                     "built",
                                                     missing.get<std::string>()));
}

std::string forms_text(const json& forms) {
  std::vector<std::string> texts;
  for (const auto& [name, read] : forms.items())
    texts.push_back(fmt::format("{}: {}", name, read.get<bool>() ? "yes" : "no"));
  return join(texts, ", ");
}

void add_plug_ins(TextTable& table, const json& list) {
  if (list.empty()) table.add_row({"plug-ins", "none (superstep list devices says what to install)"});
  for (const json& each : list) {
    const std::string versions = each["versions"].get<std::string>();
    table.add_row({"plug-in " + each["kind"].get<std::string>(),
                   fmt::format("{}{}, {} devices", printable(each["file"].get<std::string>()),
                               versions.empty() ? "" : ", " + versions, each["devices"].size())});
  }
}

void print(const json& info) {
  const json& limits = info["limits"];
  TextTable table({"superstep", version_text(info["program"])});
  table.add_row({"compiler", info["compiler"].get<std::string>()});
  table.add_row({"flags", info["flags"].get<std::string>()});
  table.add_row({"libraries", libraries_text(info["libraries"])});
  table.add_row({"instruction sets", sets_text(info["instruction_sets"])});
  table.add_row({"MPI", info["mpi"].is_null() ? "built without it" : info["mpi"].get<std::string>()});
  table.add_row({"forms of files", forms_text(info["optional_forms"])});
  add_plug_ins(table, info["plug_ins"]);
  table.add_row(
      {"processors",
       fmt::format("{} of {}, {} threads unless --threads says otherwise", limits["processors"].get<int>(),
                   limits["processors_of_the_machine"].get<int>(), limits["threads"].get<int>())});
  table.add_row({"memory", fmt::format("{} of {} available", format_bytes(limits["available_bytes"]),
                                       format_bytes(limits["memory_bytes"]))});
  table.add_row({"records", printable(info["folders"]["records"].get<std::string>())});
  table.add_row({"cache", printable(info["folders"]["cache"].get<std::string>())});
  fmt::print("{}", table.to_string());
}

void tell() {
  json info = all_of_it();
  if (!common().quiet) print(info);
  record::Result result = command_result("info", "", json::object(), {});
  result.details = std::move(info);
  write_result(std::move(result));
}

}  // namespace

void declare_info(CLI::App& command) {
  command.footer(
      "superstep doctor says what of this is in the way; superstep list what there is to work on.\n"
      "Example:\n"
      "  superstep info --json info.json        for a report of a fault, or a site's records");
  command.callback(tell);
}

}  // namespace superstep::cli
