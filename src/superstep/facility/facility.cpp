#include "superstep/facility/facility.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <queue>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/statistics.h"
#include "superstep/base/text.h"
#include "superstep/facility/keys.h"

namespace superstep::facility {
namespace {

using machine::Keys;

// Of the standard normal distribution: 90 % lies below.
constexpr double normal_p90 = 1.2815515655446004;

struct Queue {
  std::string name;
  Wait wait;
  double longest = 0;
};

Queue queue_of(const Named& of, const std::string& where) {
  Keys keys(*of.table, where, fmt::format("[queue.{}]", of.name));
  Queue queue{.name = of.name};
  const std::string trace = keys.text("trace");
  queue.wait.median = exact(keys, "median", Dimension::time, trace.empty());
  queue.wait.p90 = exact(keys, "p90", Dimension::time);
  queue.longest = exact(keys, "longest", Dimension::time);
  queue.wait.source = keys.text("source");
  if (!trace.empty() && queue.wait.median > 0) keys.refuse("median", "says what the trace says: one of both");
  if (queue.wait.p90 > 0 && queue.wait.p90 < queue.wait.median)
    keys.refuse("p90", "must not be below the median");
  if (queue.wait.p90 == 0) queue.wait.p90 = queue.wait.median;
  if (!trace.empty()) {
    const auto file = std::filesystem::path(where).parent_path() / trace;
    queue.wait.trace = waits_of_trace(read_text_file(file), file.string());
    queue.wait.p90 = 0;
    queue.wait.source = trace;
  }
  keys.refuse_others();
  return queue;
}

Site site_of(const Named& of, const std::string& where) {
  Keys keys(*of.table, where, fmt::format("[site.{}]", of.name));
  Site site{.name = of.name, .network = amount(keys, "network", Dimension::data_rate)};
  keys.refuse_others();
  return site;
}

Link link_of(const Named& of, const std::vector<Site>& sites, const std::string& where) {
  Keys keys(*of.table, where, fmt::format("[link.{}]", of.name));
  Link link{.name = of.name,
            .source = keys.text("source"),
            .rate = amount(keys, "rate", Dimension::data_rate, true),
            .latency = exact(keys, "latency", Dimension::time),
            .others = share(keys, "others"),
            .fails = failures(keys, where)};
  const std::vector<std::string> ends = keys.list("between");
  if (ends.size() != 2 || ends[0] == ends[1]) keys.refuse("between", "must be a list of two sites");
  link.from = position_of(keys, "between", sites, ends[0], "site");
  link.to = position_of(keys, "between", sites, ends[1], "site");
  keys.refuse_others();
  return link;
}

// Devices are counted one by one where they fail, and a plan of more than this is nobody's.
constexpr std::int64_t most_devices_of_a_partition = 1'000'000;

Partition partition_of(const Named& of, const Facility& facility, const std::vector<Queue>& queues,
                       const std::string& where) {
  Keys keys(*of.table, where, fmt::format("[partition.{}]", of.name));
  Partition partition{.name = of.name,
                      .source = keys.text("source"),
                      .machine = keys.text("machine"),
                      .stack = keys.text("stack"),
                      .price = keys.number("price", 0),
                      .power = exact(keys, "power", Dimension::power),
                      .queue = keys.text("queue"),
                      .start = amount(keys, "start", Dimension::time),
                      .fails = failures(keys, where)};
  partition.site = position_of(keys, "at", facility.sites, keys.text("at", true), "site");
  const std::int64_t devices = keys.count("devices", 1);
  if (devices > most_devices_of_a_partition)
    keys.refuse("devices", fmt::format("must be at most {}", most_devices_of_a_partition));
  partition.devices = static_cast<int>(devices);
  if (!partition.queue.empty()) {
    const Queue& queue =
        queues[static_cast<std::size_t>(position_of(keys, "queue", queues, partition.queue, "queue"))];
    partition.wait = queue.wait;
    partition.longest = queue.longest;
  }
  const std::string runs = keys.one_of("runs", {"here", "slurm", "emulated"});
  const bool is_here = partition.machine.empty() || partition.machine == "cpu";
  partition.runs = runs == "slurm"                               ? Partition::Runs::slurm
                   : runs == "here" || (runs.empty() && is_here) ? Partition::Runs::here
                                                                 : Partition::Runs::emulated;
  partition.sbatch = keys.list("sbatch");
  if (!partition.sbatch.empty() && partition.runs != Partition::Runs::slurm)
    keys.refuse("sbatch", "is of partitions that run by Slurm: runs = \"slurm\"");
  if (!partition.stack.empty() && partition.machine.empty())
    keys.refuse("stack", "drives a machine, and none is named");
  if (partition.price > 0 && facility.currency.empty())
    keys.refuse("price", "is in which currency? The file has no key currency");
  keys.refuse_others();
  return partition;
}

// Fewest links first, then the lowest latency: Dijkstra's algorithm from each site.
void find_routes(Facility& facility) {
  const std::size_t sites = facility.sites.size();
  facility.routes.assign(sites, std::vector<std::vector<Facility::Step>>(sites));
  facility.reached.assign(sites, std::vector<bool>(sites, false));
  for (std::size_t start = 0; start < sites; ++start) {
    using Length = std::pair<int, double>;
    std::map<std::size_t, Length> best{{start, {0, 0.0}}};
    std::priority_queue<std::pair<Length, std::size_t>, std::vector<std::pair<Length, std::size_t>>,
                        std::greater<>>
        open;
    open.push({{0, 0.0}, start});
    while (!open.empty()) {
      const auto [length, at] = open.top();
      open.pop();
      if (facility.reached[start][at]) continue;
      facility.reached[start][at] = true;
      for (std::size_t l = 0; l < facility.links.size(); ++l) {
        const Link& link = facility.links[l];
        const bool forward = link.from == static_cast<int>(at);
        if (!forward && link.to != static_cast<int>(at)) continue;
        const auto next = static_cast<std::size_t>(forward ? link.to : link.from);
        const Length there{length.first + 1, length.second + link.latency};
        const auto known = best.find(next);
        if (known != best.end() && known->second <= there) continue;
        best[next] = there;
        facility.routes[start][next] = facility.routes[start][at];
        facility.routes[start][next].push_back({static_cast<int>(l), forward});
        open.push({there, next});
      }
    }
  }
}

}  // namespace

double Wait::usual() const { return trace.empty() ? median : quantile(trace, 0.5); }

double Wait::draw(RandomStream& random) const {
  if (!trace.empty()) return trace[static_cast<std::size_t>(random.below(trace.size()))];
  if (median == 0) return 0;
  return median * std::exp(random.normal() * std::log(p90 / median) / normal_p90);
}

const std::vector<Facility::Step>* Facility::route(int from, int to) const {
  const auto a = static_cast<std::size_t>(from), b = static_cast<std::size_t>(to);
  return reached[a][b] ? &routes[a][b] : nullptr;
}

Facility parse_facility(std::string_view text, const std::string& where) {
  const toml::table table = machine::users_toml(text, where);
  Keys keys(table, where, "a facility");
  Facility facility{.name = keys.text("name", true),
                    .summary = keys.text("summary"),
                    .file = where,
                    .currency = keys.text("currency")};
  for (const Named& one : named(keys, "site")) facility.sites.push_back(site_of(one, where));
  if (facility.sites.empty()) keys.refuse("site", "is missing: a facility has sites, [site.NAME]");
  for (const Named& one : named(keys, "link")) facility.links.push_back(link_of(one, facility.sites, where));
  std::vector<Queue> queues;
  for (const Named& one : named(keys, "queue")) queues.push_back(queue_of(one, where));
  for (const Named& one : named(keys, "partition"))
    facility.partitions.push_back(partition_of(one, facility, queues, where));
  if (facility.partitions.empty())
    keys.refuse("partition", "is missing: a facility has machines, [partition.NAME]");
  keys.refuse_others();
  for (const Partition& partition : facility.partitions) facility.most_devices += partition.devices;
  find_routes(facility);
  return facility;
}

Facility read_facility(const std::filesystem::path& file) {
  return parse_facility(read_text_file(file), file.string());
}

std::vector<double> waits_of_trace(std::string_view text, const std::string& where) {
  std::vector<double> waits;
  int number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    std::string_view rest = line;
    double wait = 0;
    int column = 0;
    while (column < 3) {
      while (!rest.empty() && (rest.front() == ' ' || rest.front() == '\t' || rest.front() == '\r'))
        rest.remove_prefix(1);
      if (rest.empty() || rest.front() == ';') break;
      const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), wait);
      if (error != std::errc())
        throw Error(ErrorCode::bad_file, "is no line of the Standard Workload Format",
                    fmt::format("{}:{}", where, number), "columns are numbers; remarks begin with ';'");
      rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
      ++column;
    }
    if (column == 0) continue;
    if (column < 3)
      throw Error(ErrorCode::bad_file, "has fewer than three columns", fmt::format("{}:{}", where, number),
                  "the third is the seconds that a job waited");
    if (std::isfinite(wait) && wait >= 0) waits.push_back(wait);
  }
  if (waits.empty()) throw Error(ErrorCode::bad_file, "has no job of which the wait is known", where);
  std::ranges::sort(waits);
  return waits;
}

}  // namespace superstep::facility
