#include "superstep/lab/formats/system_json.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/option_range.h"
#include "superstep/base/text.h"
#include "superstep/record/member.h"

namespace superstep::lab {
namespace {

using nlohmann::json;

constexpr std::array members{"submitter",
                             "division",
                             "status",
                             "system_name",
                             "number_of_nodes",
                             "host_processors_per_node",
                             "host_processor_model_name",
                             "host_processor_core_count",
                             "host_processor_vcpu_count",
                             "host_processor_frequency",
                             "host_processor_caches",
                             "host_processor_interconnect",
                             "host_memory_capacity",
                             "host_storage_type",
                             "host_storage_capacity",
                             "host_networking",
                             "host_networking_topology",
                             "host_memory_configuration",
                             "accelerators_per_node",
                             "accelerator_model_name",
                             "accelerator_host_interconnect",
                             "accelerator_frequency",
                             "accelerator_on-chip_memories",
                             "accelerator_memory_configuration",
                             "accelerator_memory_capacity",
                             "accelerator_interconnect",
                             "accelerator_interconnect_topology",
                             "cooling",
                             "hw_notes",
                             "framework",
                             "other_software_stack",
                             "operating_system",
                             "sw_notes"};

// A member of nested objects as text: empty where it is not there or not known.
std::string text_at(const json& object, std::initializer_list<const char*> path) {
  const json* found = &object;
  for (const char* name : path) {
    if (!found->is_object() || !found->contains(name)) return "";
    found = &found->at(name);
  }
  if (found->is_string()) return found->get<std::string>();
  return found->is_null() ? "" : found->dump();
}

double number_at(const json& object, std::initializer_list<const char*> path) {
  return finite_number(text_at(object, path)).value_or(0);
}

std::string joined(const std::string& a, const std::string& b) { return a + (b.empty() ? "" : " " + b); }

// Of one processor of several.
std::string share_of_socket(const json& environment, const char* what) {
  const double all = number_at(environment, {"host", what}),
               sockets = number_at(environment, {"host", "sockets"});
  return all > 0 && sockets > 0 ? fmt::format("{:.0f}", all / sockets) : "";
}

std::string frequency(const json& environment) {
  std::vector<std::string> parts;
  for (const char* what : {"nominal", "maximum", "observed"})
    if (const double hertz = number_at(environment, {"host", "clock", what}); hertz > 0)
      parts.push_back(fmt::format("{} {:.2f} GHz", what, hertz * 1e-9));
  return join(parts, ", ");
}

std::string caches(const json& environment) {
  std::vector<std::string> parts;
  const json host = record::object_member(environment, "host");
  const auto found = host.find("caches");
  if (found == host.end()) return "";
  for (const json& cache : *found)
    parts.push_back(fmt::format(
        "L{}{} {} KiB x {}", text_at(cache, {"level"}), text_at(cache, {"type"}) == "instruction" ? "i" : "",
        static_cast<std::int64_t>(number_at(cache, {"size"}) / 1024), text_at(cache, {"count"})));
  return join(parts, ", ");
}

std::string memory(const json& environment) {
  const double bytes = number_at(environment, {"host", "memory_bytes"});
  return bytes > 0 ? fmt::format("{:.1f} GiB", bytes / (1 << 30)) : "";
}

std::string libraries(const json& environment) {
  std::vector<std::string> parts;
  const json found = record::object_member(record::object_member(environment, "software"), "libraries");
  for (const auto& [name, version] : found.items())
    parts.push_back(name + " " + (version.is_string() ? version.get<std::string>() : version.dump()));
  parts.push_back(text_at(environment, {"software", "compiler"}));
  return join(parts, ", ");
}

std::string framework(const json& environment) {
  return joined("superstep " + text_at(environment, {"program", "version"}),
                text_at(environment, {"program", "git"}));
}

std::map<std::string, std::string> found_in(const json& environment) {
  const bool is_virtual = text_at(environment, {"host", "virtual_machine"}) == "true";
  return {{"system_name", text_at(environment, {"host", "hostname"})},
          {"number_of_nodes", "1"},
          {"host_processors_per_node", text_at(environment, {"host", "sockets"})},
          {"host_processor_model_name", text_at(environment, {"host", "processor"})},
          {"host_processor_core_count", share_of_socket(environment, "cores")},
          {"host_processor_vcpu_count", share_of_socket(environment, "hardware_threads")},
          {"host_processor_frequency", frequency(environment)},
          {"host_processor_caches", caches(environment)},
          {"host_memory_capacity", memory(environment)},
          {"accelerators_per_node", "0"},
          {"hw_notes", is_virtual ? "a virtual machine" : ""},
          {"framework", framework(environment)},
          {"other_software_stack", libraries(environment)},
          {"operating_system", joined(text_at(environment, {"software", "system"}),
                                      text_at(environment, {"software", "kernel"}))},
          {"sw_notes", text_at(environment, {"software", "flags"})}};
}

}  // namespace

std::string write_system_json(const json& environment, const std::map<std::string, std::string>& given) {
  std::map<std::string, std::string> values = found_in(environment);
  for (const auto& [name, value] : given) {
    if (std::ranges::find(members, name) == members.end())
      throw Error(ErrorCode::invalid_argument, "a system's description has no such member", name,
                  unknown_name_hint(name, std::vector<std::string>(members.begin(), members.end())));
    values[name] = value;
  }
  nlohmann::ordered_json document = nlohmann::ordered_json::object();
  for (const char* name : members) document[name] = values[name];
  return document.dump(2) + "\n";
}

}  // namespace superstep::lab
