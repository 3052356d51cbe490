#include "superstep/lab/measure/energy.h"

#include <algorithm>
#include <fstream>

#include "superstep/base/text.h"

namespace superstep::lab {
namespace {

namespace fs = std::filesystem;

std::optional<std::uint64_t> read_number(const fs::path& path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  if (!(file >> number)) return std::nullopt;
  return number;
}

std::string read_word(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

}  // namespace

EnergyMeter::EnergyMeter(const fs::path& root) {
  std::error_code failure;
  bool found = false;
  for (const auto& entry : fs::directory_iterator(root, failure)) {
    // Packages alone: cores and memory within a package are zones of their own that it contains.
    const std::string name = read_word(entry.path() / "name");
    if (!name.starts_with("package")) continue;
    found = true;
    const auto counter = read_number(entry.path() / "energy_uj");
    const auto range = read_number(entry.path() / "max_energy_range_uj");
    if (counter && range) zones_.push_back({entry.path() / "energy_uj", name, *range});
  }
  if (!zones_.empty()) return;
  reason_ =
      found ? "the host's energy counters may not be read by this user" : "the host shows no energy counters";
}

std::string EnergyMeter::source() const {
  std::vector<std::string> names;
  for (const Zone& zone : zones_) names.push_back(zone.name);
  return zones_.empty() ? "" : "RAPL: " + join(names, ", ");
}

void EnergyMeter::sample() {
  for (Zone& zone : zones_) {
    const auto now = read_number(zone.counter);
    if (!now) continue;
    const std::uint64_t step = *now >= zone.last ? *now - zone.last : zone.range - zone.last + *now;
    if (started_) joules_ += static_cast<double>(step) * 1e-6;
    zone.last = *now;
  }
  started_ = true;
}

EnergyReport measure_energy(const std::function<void()>& call, EnergyMeter& meter, double seconds, Clock& clock) {
  constexpr double piece = 0.5;
  EnergyReport report;
  meter.sample();
  const double start = clock.seconds(), before = meter.joules();
  double last = start, last_joules = before;
  do {
    call();
    ++report.calls;
    const double now = clock.seconds();
    if (now - last < piece && now - start < seconds) continue;
    meter.sample();
    report.power_max = std::max(report.power_max, (meter.joules() - last_joules) / (now - last));
    last = now;
    last_joules = meter.joules();
  } while (last - start < seconds);
  report.joules = last_joules - before;
  report.seconds = last - start;
  return report;
}

}  // namespace superstep::lab
