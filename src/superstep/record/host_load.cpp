#include "superstep/record/host_load.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

namespace superstep::record {
namespace {

using nlohmann::json;

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double own_seconds() {
  double sum = 0;
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    if (getrusage(who, &usage) == 0) sum += seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  }
  return sum;
}

}  // namespace

nlohmann::json load_average() {
  double load[3];
  if (getloadavg(load, 3) != 3) return nullptr;
  return json{load[0], load[1], load[2]};
}

// "cpu  user nice system idle iowait irq softirq steal guest guest_nice", in ticks; guest time is contained
// in user time (proc(5)).
std::optional<ProcessorTime> parse_processor_time(const std::string& stat, double ticks_a_second) {
  std::istringstream words(stat);
  std::string name;
  double fields[8];
  if (!(words >> name) || name != "cpu") return std::nullopt;
  for (double& field : fields)
    if (!(words >> field) || field < 0) return std::nullopt;
  ProcessorTime time;
  for (const double field : fields) time.total += field / ticks_a_second;
  time.idle = (fields[3] + fields[4]) / ticks_a_second;
  time.stolen = fields[7] / ticks_a_second;
  return time;
}

HostLoad::Moment HostLoad::now() const {
  std::ifstream file(stat_);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return {parse_processor_time(text, static_cast<double>(sysconf(_SC_CLK_TCK))), own_seconds(),
          load_average()};
}

HostLoad::HostLoad(std::filesystem::path stat) : stat_(std::move(stat)), begin_(now()) {}

std::optional<std::array<double, 2>> HostLoad::shares() const {
  const Moment end = now();
  if (!begin_.all || !end.all) return std::nullopt;
  const double total = end.all->total - begin_.all->total;
  if (total <= 0) return std::nullopt;
  const double stolen = end.all->stolen - begin_.all->stolen;
  const double working = total - (end.all->idle - begin_.all->idle) - stolen;
  return std::array{std::max(0.0, working - (end.own - begin_.own)) / total, std::max(0.0, stolen) / total};
}

json HostLoad::record() const {
  json record{{"load_average_before", begin_.load_average}, {"load_average_after", load_average()}};
  const auto found = shares();
  record["others_share"] = found ? json((*found)[0]) : json(nullptr);
  record["stolen_share"] = found ? json((*found)[1]) : json(nullptr);
  record["busy"] = found ? json((*found)[0] + (*found)[1] > busy_share) : json(nullptr);
  return record;
}

std::string HostLoad::warning() const {
  const auto found = shares();
  if (!found || (*found)[0] + (*found)[1] <= busy_share) return {};
  std::string text = fmt::format("the machine was busy: {:.0f} % of its processors' time went to other work",
                                 100 * (*found)[0]);
  if ((*found)[1] > busy_share / 2) text += fmt::format(", {:.0f} % to the hypervisor", 100 * (*found)[1]);
  return text;
}

}  // namespace superstep::record
