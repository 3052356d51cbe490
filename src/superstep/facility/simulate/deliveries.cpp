#include "superstep/facility/simulate/deliveries.h"

#include "superstep/base/error.h"

namespace superstep::facility {

std::vector<std::size_t> channels_between(const Facility& facility, int from, int to, bool same_partition) {
  std::vector<std::size_t> channels;
  if (from == to) {
    if (!same_partition && facility.sites[static_cast<std::size_t>(from)].network.value > 0)
      channels.push_back(2 * facility.links.size() + static_cast<std::size_t>(from));
    return channels;
  }
  const auto* route = facility.route(from, to);
  if (!route) throw Error(ErrorCode::internal, "a plan between sites that no link joins");
  for (const Facility::Step& step : *route)
    channels.push_back(2 * static_cast<std::size_t>(step.link) + (step.forward ? 0 : 1));
  return channels;
}

Deliveries::Deliveries(const Plan& plan) : plan_(plan), sources_(plan.workflow->sources.size()) {
  const Workflow& workflow = *plan.workflow;
  groups_.resize(sources_ + workflow.tasks.size());
  for (const Link& link : plan.facility->links) {
    latencies_.push_back(link.latency);
    latencies_.push_back(link.latency);
  }
  latencies_.resize(latencies_.size() + plan.facility->sites.size(), 0.0);
  const auto site_of = [&](int task) {
    const Place& place = plan.places[static_cast<std::size_t>(task)];
    return plan.facility->partitions[static_cast<std::size_t>(place.partition)].site;
  };
  for (std::size_t t = 0; t < workflow.tasks.size(); ++t) {
    for (std::size_t i = 0; i < workflow.tasks[t].inputs.size(); ++i) {
      const Input& input = workflow.tasks[t].inputs[i];
      const auto from = static_cast<std::size_t>(input.from);
      if (input.of_source)
        group(of_source(from), plan.source_sites[from], -1, t).takers.emplace_back(t, i);
      else
        group(of_task(from), site_of(input.from), plan.places[from].partition, t).takers.emplace_back(t, i);
    }
    for (std::size_t u = 0; u < workflow.tasks[t].uses.size(); ++u) {
      const int used = workflow.tasks[t].uses[u];
      group(of_task(static_cast<std::size_t>(used)), site_of(used),
            plan.places[static_cast<std::size_t>(used)].partition, t)
          .users.emplace_back(t, u);
    }
  }
}

Deliveries::Group& Deliveries::group(std::size_t producer, int from_site, int from_partition,
                                     std::size_t to_task) {
  const int partition = plan_.places[to_task].partition;
  const int site = plan_.facility->partitions[static_cast<std::size_t>(partition)].site;
  std::vector<std::size_t> channels =
      channels_between(*plan_.facility, from_site, site, from_partition == partition);
  for (Group& known : groups_[producer])
    if (known.channels == channels) return known;
  groups_[producer].push_back({.channels = std::move(channels)});
  return groups_[producer].back();
}

}  // namespace superstep::facility
