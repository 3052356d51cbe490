#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "superstep/base/file.h"
#include "superstep/base/text.h"
#include "superstep/lab/profile/device_profile.h"
#include "superstep/page/page.h"

namespace superstep::lab {
namespace {

using Row = std::vector<std::string>;
using Rows = std::vector<Row>;

std::string bytes_text(double bytes) { return format_bytes(bytes); }

Rows summary_rows(const DeviceProfile& profile) {
  const target::pjrt::ProgramFacts& program = profile.program;
  const double of_program = static_cast<double>(program.argument_bytes + program.result_bytes +
                                                program.temporary_bytes + program.code_bytes);
  Rows rows = {{"what", fmt::format("{}, {}, {}, batch {}", profile.name, profile.mode, profile.precision,
                                    profile.plan.batch)},
               {"on", fmt::format("{}", fmt::join(profile.devices, "; "))},
               {"time of a run", format_seconds(profile.seconds) + ", the median"},
               {"with the next inputs sent meanwhile", format_seconds(profile.ahead_seconds)},
               {"with each part awaited", format_seconds(profile.awaited_seconds)},
               {"samples per second", format_count(profile.throughput())},
               {"operations", fmt::format("{} per run, {}", format_si(profile.plan.flops, "FLOP"),
                                          format_si(profile.plan.flops / profile.seconds, "FLOP/s"))},
               {"compiled in", format_seconds(profile.plan.compile_seconds)}};
  if (of_program > 0)
    rows.push_back({"memory", fmt::format("{} of arguments, {} of results, {} of temporaries, {} of code",
                                          bytes_text(static_cast<double>(program.argument_bytes)),
                                          bytes_text(static_cast<double>(program.result_bytes)),
                                          bytes_text(static_cast<double>(program.temporary_bytes)),
                                          bytes_text(static_cast<double>(program.code_bytes)))});
  return rows;
}

const Row phase_header{"part", "time", "of all", "copied", "rate"};

Rows phase_rows(const DeviceProfile& profile) {
  double all = 0;
  for (const DevicePhase& phase : profile.phases) all += phase.seconds;
  Rows rows;
  for (const DevicePhase& phase : profile.phases)
    rows.push_back(
        {phase.name, format_seconds(phase.seconds),
         fmt::format("{:.0f} %", all > 0 ? 100 * phase.seconds / all : 0),
         phase.bytes > 0 ? bytes_text(phase.bytes) : "",
         phase.bytes > 0 && phase.seconds > 0 ? format_si(phase.bytes / phase.seconds, "B/s") : ""});
  return rows;
}

Rows cost_rows(const DeviceProfile& profile) {
  Rows rows;
  for (const auto& cost : profile.program.costs) rows.push_back({cost.name, format_si(cost.value, "")});
  return rows;
}

constexpr const char* phases_note =
    "Parts of runs in which each is awaited before the next begins, by the host's clock: the inputs' copies, "
    "the call that starts the program, its computation, the outputs' copies. Runs of the three kinds took "
    "turns. What takes how long within the program only the device knows.";

void write_page(const DeviceProfile& profile, const std::filesystem::path& path) {
  page::Page page(fmt::format("Profile of {}, {}, {}, batch {} on {}", profile.name, profile.mode,
                              profile.precision, profile.plan.batch, profile.target));
  page.facts(summary_rows(profile));
  page.heading("Parts of a run").table(phase_header, phase_rows(profile)).paragraph(phases_note);
  if (const Rows costs = cost_rows(profile); !costs.empty()) {
    page.heading("What the plug-in's compiler estimates").table({"", "per run"}, costs);
    page.paragraph("In its own words and numbers; they are not measured.");
  }
  if (!profile.trace.empty())
    page.paragraph(
        "device.xplane.pb beside this page is what the plug-in's profiler recorded of three runs: "
        "TensorBoard and XProf open it.");
  page.write(path);
}

// The host's view of the median run, as Chrome's trace events.
std::string host_trace(const DeviceProfile& profile) {
  using Json = nlohmann::ordered_json;
  Json events = Json::array();
  events.push_back({{"ph", "M"},
                    {"pid", 1},
                    {"tid", 0},
                    {"name", "process_name"},
                    {"args",
                     {{"name", fmt::format("{} {}, batch {} on {} (measured)", profile.name, profile.mode,
                                           profile.plan.batch, profile.target)}}}});
  for (const target::StepEvent& event : profile.timeline.events)
    events.push_back({{"ph", "X"},
                      {"pid", 1},
                      {"tid", 0},
                      {"ts", 1e6 * event.begin},
                      {"dur", 1e6 * event.seconds},
                      {"name", profile.timeline.steps[event.step].op},
                      {"cat", "host"}});
  const Json trace{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
  return trace.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string device_profile_text(const DeviceProfile& profile) {
  std::string text;
  for (const Row& row : summary_rows(profile)) text += fmt::format("{}: {}\n", row[0], row[1]);
  TextTable table(phase_header);
  for (const Row& row : phase_rows(profile)) table.add_row(row);
  text += table.to_string();
  const Rows costs = cost_rows(profile);
  for (const Row& row : costs) text += fmt::format("its compiler estimates: {} {}\n", row[0], row[1]);
  if (costs.empty()) text += "the plug-in's compiler says nothing of the program's costs\n";
  if (!profile.program.has_profiler) text += "the plug-in has no profiler: no trace from within the device\n";
  return text;
}

std::vector<Metric> device_profile_metrics(const DeviceProfile& profile) {
  const auto metric = [](std::string name, double value, const char* unit) {
    return Metric{.name = std::move(name), .value = value, .unit = unit, .samples = {}};
  };
  std::vector<Metric> metrics = {metric("step_time", profile.seconds, "s"),
                                 metric("throughput", profile.throughput(), "samples/s"),
                                 metric("flops_rate", profile.plan.flops / profile.seconds, "FLOP/s"),
                                 metric("step_time_sending_ahead", profile.ahead_seconds, "s"),
                                 metric("step_time_awaited", profile.awaited_seconds, "s"),
                                 metric("compile_time", profile.plan.compile_seconds, "s")};
  constexpr const char* names[] = {"time_to_device", "time_to_start", "time_to_compute", "time_from_device"};
  for (std::size_t i = 0; i < profile.phases.size(); ++i)
    metrics.push_back(metric(names[i], profile.phases[i].seconds, "s"));
  return metrics;
}

std::vector<std::string> write_device_profile(const DeviceProfile& profile,
                                              const std::filesystem::path& folder) {
  make_folder(folder);
  write_page(profile, folder / "profile.html");
  write_file_atomically(folder / "trace.json", host_trace(profile));
  std::vector<std::string> names = {"profile.html", "trace.json"};
  if (!profile.trace.empty()) {
    write_file_atomically(folder / "device.xplane.pb", profile.trace);
    names.emplace_back("device.xplane.pb");
  }
  return names;
}

}  // namespace superstep::lab
