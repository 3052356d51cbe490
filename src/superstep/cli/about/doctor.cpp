// superstep doctor: what this program is, what it finds on this machine, and what to do about it.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/lab/health/findings.h"
#include "superstep/record/environment.h"

namespace superstep::cli {
namespace {

constexpr const char* footer =
    "The status is 1 where something does not work. A report of a fault should have this in it:\n"
    "  superstep doctor --json doctor.json";

void print(const std::vector<lab::Finding>& findings) {
  const nlohmann::json program = record::program_record();
  fmt::print("superstep {}{}\n\n", program["version"].get<std::string>(),
             program["git"].is_string() ? fmt::format(" ({}{})", program["git"].get<std::string>(),
                                                      program["dirty"].get<bool>() ? ", changed since" : "")
                                        : "");
  TextTable table({"", "subject", "found"});
  for (const lab::Finding& finding : findings)
    table.add_row({name_of(finding.health), finding.subject, finding.found});
  fmt::print("{}", table.to_string());
  for (const lab::Finding& finding : findings)
    if (!finding.advice.empty()) fmt::print("\n{}: {}\n", finding.subject, finding.advice);
}

record::Result result_of(const std::vector<lab::Finding>& findings) {
  double notes = 0, wrong = 0;
  nlohmann::json list = nlohmann::json::array();
  for (const lab::Finding& finding : findings) {
    notes += finding.health == lab::Health::note;
    wrong += finding.health == lab::Health::wrong;
    list.push_back({{"subject", finding.subject},
                    {"found", finding.found},
                    {"health", name_of(finding.health)},
                    {"advice", finding.advice}});
  }
  record::Result result = command_result("doctor", "", nlohmann::json::object(), {});
  result.add("notes", notes, "");
  result.add("wrong", wrong, "");
  result.details = {{"findings", std::move(list)}};
  return result;
}

void examine() {
  const std::vector<lab::Finding> findings = lab::findings(lab::host_facts());
  if (!common().quiet) print(findings);
  write_result(result_of(findings));
  for (const lab::Finding& finding : findings)
    if (finding.health == lab::Health::wrong)
      throw Error(ErrorCode::io, finding.found, finding.subject, finding.advice);
}

}  // namespace

void declare_doctor(CLI::App& command) {
  command.footer(footer);
  command.callback(examine);
}

}  // namespace superstep::cli
