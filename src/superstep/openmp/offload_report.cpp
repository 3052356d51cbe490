#include "superstep/openmp/offload_implementation.h"

namespace superstep::openmp {
namespace {

void add(ReportRow& row, const bsp::StepProfile& step, std::uint64_t times) {
  row.compute += step.cost.compute * times;
  row.exchange += (step.cost.exchange + step.cost.global_exchange) * times;
  row.sync += step.cost.sync * times;
  row.host += step.cost.host_exchange * times;
  row.control += step.cost.control * times;
  row.exchanged_bytes += step.exchanged_bytes * times;
  row.host_bytes += step.host_bytes * times;
  row.flops += step.flops * times;
  row.tiles = std::max(row.tiles, step.compute_tiles);
}

void add(std::vector<ReportStep>& steps, const std::string& region, const std::string& what,
         const bsp::StepProfile& step, std::uint64_t times) {
  auto place = std::ranges::find_if(
      steps, [&](const ReportStep& known) { return known.region == region && known.what == what; });
  if (place == steps.end()) place = steps.insert(steps.end(), {region, what});
  place->times += times;
  place->cycles += step.cost.total() * times;
  place->exchanged_bytes += step.exchanged_bytes * times;
  place->host_bytes += step.host_bytes * times;
  place->tiles = std::max(place->tiles, step.compute_tiles);
}

}  // namespace

Report Offload::Implementation::report() const {
  Report report;
  report.device = device_.name;
  report.clock_hz = device_.clock_hz;
  report.bytes_per_tile = device_.bytes_per_tile;
  report.programs = programs_.size();
  report.runs = runs_;
  report.replaced = replaced_;
  for (const std::string& place : order_) report.rows.push_back({.what = place});
  report.rows.push_back({.what = "transfers, loops"});
  for (const auto& [key, program] : programs_) {
    const bsp::Profile& profile = program->queue.engine->profile();
    report.cycles += profile.total_cycles();
    if (!program->queue.captured.empty()) report.captured.push_back(program->queue.captured);
    for (const bsp::TileMemory& tile : profile.compilation.tiles)
      report.fullest_tile_bytes = std::max(report.fullest_tile_bytes, tile.including_gaps());
    for (std::size_t i = 0; i < profile.total.times.size(); ++i) {
      const bsp::StepProfile& step = profile.compilation.steps[i];
      auto row = std::ranges::find_if(report.rows, [&](const ReportRow& candidate) {
        return step.name.starts_with(candidate.what + " ");
      });
      if (profile.total.times[i] == 0) continue;
      const bool found = row != report.rows.end();
      add(found ? *row : report.rows.back(), step, profile.total.times[i]);
      add(report.steps, found ? row->what : report.rows.back().what,
          found ? step.name.substr(row->what.size() + 1) : step.name, step, profile.total.times[i]);
    }
    for (ReportRow& row : report.rows)
      if (const auto found = program->launches.find(row.what); found != program->launches.end())
        row.launches += found->second * profile.run_count;
  }
  return report;
}

std::vector<const bsp::Profile*> Offload::Implementation::profiles() const {
  std::vector<const bsp::Profile*> result;
  for (const auto& [key, program] : programs_) result.push_back(&program->queue.engine->profile());
  return result;
}

}  // namespace superstep::openmp
