// The links between chips: a ladder of rungs, chips 2k and 2k+1 (machine description, vendor test model).
#include <algorithm>
#include <map>
#include <tuple>

#include "superstep/bsp/compile/device.h"

namespace superstep::bsp {
namespace {

enum class LinkKind : std::uint8_t { in_rung, across, along };

struct Link {
  LinkKind kind;
  std::uint32_t from, to;
  friend auto operator<=>(const Link&, const Link&) = default;
};

std::uint32_t mate(std::uint32_t chip) { return chip ^ 1u; }

// The links that a flow takes, in order.
template <class F>
void for_each_link(std::uint32_t from, std::uint32_t to, F&& f) {
  if (to == mate(from)) return f(Link{LinkKind::in_rung, from, to});
  std::uint32_t here = from;
  if (from % 2 != to % 2) {
    f(Link{LinkKind::across, here, mate(here)});
    here = mate(here);
  }
  while (here != to) {
    const std::uint32_t next = here < to ? here + 2 : here - 2;
    f(Link{LinkKind::along, here, next});
    here = next;
  }
}

}  // namespace

double link_seconds(const Device& device, std::span<const ChipFlow> flows) {
  std::map<Link, std::uint64_t> load;
  for (const ChipFlow& flow : flows)
    if (flow.from != flow.to)
      for_each_link(flow.from, flow.to, [&](const Link& link) { load[link] += flow.bytes; });
  double seconds = 0;
  for (const auto& [link, bytes] : load) {
    const std::uint32_t links = link.kind == LinkKind::in_rung  ? device.links_in_rung
                                : link.kind == LinkKind::across ? device.links_across
                                                                : device.links_along;
    seconds = std::max(seconds, static_cast<double>(bytes) / (links * device.link_bytes_per_second));
  }
  return seconds;
}

}  // namespace superstep::bsp
