#include "superstep/physics/chemistry/rings.h"

#include <algorithm>
#include <queue>

namespace superstep::data {
namespace {

// Shortest ways from one atom to all others.
struct Ways {
  std::vector<int> from, distance;  // the atom before; -1 at the start and where no way leads
};

Ways ways_from(const Molecule& molecule, int start) {
  const auto count = static_cast<std::size_t>(molecule.atom_count());
  Ways ways{std::vector<int>(count, -1), std::vector<int>(count, -1)};
  std::queue<int> waiting({start});
  ways.distance[static_cast<std::size_t>(start)] = 0;
  while (!waiting.empty()) {
    const int atom = waiting.front();
    waiting.pop();
    for (const Molecule::Neighbor& next : molecule.neighbors(atom)) {
      const auto i = static_cast<std::size_t>(next.atom);
      if (ways.distance[i] >= 0) continue;
      ways.distance[i] = ways.distance[static_cast<std::size_t>(atom)] + 1;
      ways.from[i] = atom;
      waiting.push(next.atom);
    }
  }
  return ways;
}

std::vector<int> way_back(const Ways& ways, int atom) {
  std::vector<int> atoms;
  for (; atom >= 0; atom = ways.from[static_cast<std::size_t>(atom)]) atoms.push_back(atom);
  return atoms;
}

// From the start to one end of the bond, over it, and back from the other; empty where the ways meet on the
// way.
Ring ring_over(const Ways& ways, const Bond& bond) {
  std::vector<int> there = way_back(ways, bond.a), back = way_back(ways, bond.b);
  back.pop_back();  // the start
  Ring ring(there.rbegin(), there.rend());
  ring.insert(ring.end(), back.begin(), back.end());
  Ring sorted = ring;
  std::ranges::sort(sorted);
  return std::ranges::adjacent_find(sorted) == sorted.end() && ring.size() > 2 ? ring : Ring();
}

std::vector<Ring> candidates(const Molecule& molecule) {
  std::vector<Ring> rings;
  for (int start = 0; start < molecule.atom_count(); ++start) {
    if (!molecule.atom(start).in_ring) continue;
    const Ways ways = ways_from(molecule, start);
    for (const Bond& bond : molecule.bonds()) {
      const bool on_a_way = ways.from[static_cast<std::size_t>(bond.a)] == bond.b ||
                            ways.from[static_cast<std::size_t>(bond.b)] == bond.a;
      if (!bond.in_ring || on_a_way || ways.distance[static_cast<std::size_t>(bond.a)] < 0) continue;
      if (Ring ring = ring_over(ways, bond); !ring.empty()) rings.push_back(std::move(ring));
    }
  }
  std::ranges::stable_sort(rings, {}, &Ring::size);
  return rings;
}

// Sets of bonds that no others of them add up to (modulo 2).
class IndependentCycles {
 public:
  // Is it none of the sums? Then it becomes one of them.
  bool add(std::vector<bool> cycle) {
    for (const auto& [pivot, row] : rows_)
      if (cycle[pivot]) subtract(cycle, row);
    const auto first = std::ranges::find(cycle, true);
    if (first == cycle.end()) return false;
    rows_.emplace_back(static_cast<std::size_t>(first - cycle.begin()), std::move(cycle));
    return true;
  }
  std::size_t count() const { return rows_.size(); }

 private:
  static void subtract(std::vector<bool>& a, const std::vector<bool>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = a[i] != b[i];
  }
  std::vector<std::pair<std::size_t, std::vector<bool>>> rows_;
};

std::vector<bool> bonds_of(const Molecule& molecule, const Ring& ring) {
  std::vector<bool> bonds(static_cast<std::size_t>(molecule.bond_count()), false);
  for (std::size_t i = 0; i < ring.size(); ++i)
    bonds[static_cast<std::size_t>(molecule.bond_between(ring[i], ring[(i + 1) % ring.size()]))] = true;
  return bonds;
}

}  // namespace

std::vector<Ring> smallest_rings(const Molecule& molecule) {
  const std::vector<int> parts = connected_parts(molecule);
  const int part_count = parts.empty() ? 0 : *std::ranges::max_element(parts) + 1;
  const auto wanted = static_cast<std::size_t>(molecule.bond_count() - molecule.atom_count() + part_count);
  std::vector<Ring> rings;
  IndependentCycles cycles;
  if (wanted == 0) return rings;
  for (const Ring& ring : candidates(molecule)) {
    if (cycles.add(bonds_of(molecule, ring))) rings.push_back(ring);
    if (cycles.count() == wanted) break;
  }
  return rings;
}

}  // namespace superstep::data
