#include "superstep/cli/shared/profile_modelled.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/progress.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/target/ipu/ipu.h"
#include "superstep/target/ipu/lower/planned.h"
#include "superstep/target/ipu/lower/prepare.h"
#include "superstep/target/ipu/lower/timed.h"

namespace superstep::cli {
namespace {

std::vector<Metric> metrics_of(const bsp::Profile& profile, std::int64_t batch) {
  const bsp::CompilationProfile& compilation = profile.compilation;
  const double seconds = compilation.device.seconds(static_cast<double>(profile.total_cycles()));
  std::uint64_t fullest = 0, all = 0;
  for (const bsp::TileMemory& tile : compilation.tiles) {
    fullest = std::max(fullest, tile.including_gaps());
    all += tile.including_gaps();
  }
  const auto predicted = [](const char* name, double value, const char* unit) {
    return Metric{.name = name, .value = value, .unit = unit, .how = How::predicted, .samples = {}};
  };
  return {predicted("step_time", seconds, "s"),
          predicted("throughput", static_cast<double>(batch) / seconds, "samples/s"),
          predicted("memory_per_unit", static_cast<double>(fullest), "B"),
          predicted("peak_memory", static_cast<double>(all), "B"),
          Metric{.name = "compile_time", .value = compilation.compile_seconds, .unit = "s", .samples = {}}};
}

void write_files(const bsp::Profile& profile, const std::string& what, const std::filesystem::path& folder) {
  make_folder(folder);
  write_file_atomically(folder / "profile.html", bsp::profile_to_html(profile, what));
  write_file_atomically(folder / "profile.json", bsp::profile_to_json(profile));
  write_file_atomically(folder / "trace.json", bsp::profile_to_chrome_trace(profile));
  if (!common().quiet)
    fmt::print("written to {}, profile.json and trace.json beside it\n", (folder / "profile.html").string());
}

constexpr double most_seconds = 60;  // of processor time for lowering

// One chip: the program itself where it can be made in a minute; else what the machine model plans.
bsp::Profile of_one_chip(const graph::Graph& graph, const std::string& machine) {
  Progress progress("lowering", static_cast<double>(graph.node_count()), "nodes");
  try {
    return target::ipu::timed_profile(
        graph, machine, {.seconds = most_seconds, .progress = [&](std::size_t done, std::size_t) {
                           progress.update(static_cast<double>(done));
                         }});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    return target::ipu::planned_profile(graph, machine, error.what());
  }
}

target::ipu::TimedChips profiled(const std::string& machine, const lab::ProfiledModel& model,
                                 std::int64_t batch, const target::Chips& chips) {
  if (!chips.several()) return {of_one_chip(target::ipu::prepare_for_tiles(model.graph(batch)), machine), {}};
  return target::ipu::timed_profile(model.graph, machine, {.batch = batch, .chips = chips},
                                    {.seconds = most_seconds});
}

}  // namespace

void profile_modelled(const std::string& machine, lab::ProfileRequest request, const target::Chips& chips,
                      const std::filesystem::path& out) {
  const lab::ProfiledModel model = lab::open_profiled_model(request);
  const auto [profile, layout] = profiled(machine, model, request.batch, chips);
  if (!common().quiet) {
    std::ostringstream text;
    bsp::print_profile_summary(text, profile, {.show_execution_steps = true, .show_variables = true});
    fmt::print("{}", text.str());
    if (!profile.compilation.too_full.empty())
      fmt::print("{}\n", target::ipu::what_helps_to_fit(request.batch / (chips.accumulate * chips.replicas)));
    if (!layout.empty()) fmt::print("on chips: {}\n", layout);
  }
  const std::string what =
      fmt::format("{}, {}, {}, batch {}", model.name, model.mode, model.precision, request.batch);
  if (!out.empty()) write_files(profile, what, out);
  const std::vector<Metric> metrics = metrics_of(profile, request.batch);
  nlohmann::json config{{"mode", model.mode}, {"precision", model.precision}, {"batch", request.batch}};
  if (chips.several())
    config["chips"] = {{"pipeline", chips.pipeline},
                       {"accumulate", chips.accumulate},
                       {"replicas", chips.replicas},
                       {"layout", layout}};
  record::Result result = command_result("profile", model.name, std::move(config), metrics, machine);
  result.mode = model.mode;
  result.folder = out;
  keep_and_write_result(std::move(result));
}

}  // namespace superstep::cli
