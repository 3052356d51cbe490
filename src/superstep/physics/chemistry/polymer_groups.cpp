#include "superstep/physics/chemistry/polymer_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/physics/chemistry/smiles.h"

namespace superstep::data {
namespace {

std::size_t at(int position) { return static_cast<std::size_t>(position); }

constexpr int carbon = 6, nitrogen = 7, oxygen = 8;

[[noreturn]] void refuse(const Molecule& molecule, const std::string& message) {
  throw Error(ErrorCode::invalid_argument, message, fmt::format("repeat unit '{}'", write_smiles(molecule)),
              "a repeat unit has two '*', as in *CC(*)C");
}

// Cuts a repeat unit into groups. Atoms that share a ring are one "link"; the links that lie between the two
// ends, in order, are the main chain, and every other atom hangs on one of them.
class GroupCutter {
 public:
  explicit GroupCutter(const Molecule& molecule)
      : molecule_(molecule), chain_place_(molecule.atoms().size(), -1) {
    find_ends();
    find_chain();
    hang_side_groups();
    cut_side_methylenes();
  }

  GroupCounts count() {
    for (std::size_t place = 0; place < links_.size(); ++place) merge_carbonyl(static_cast<int>(place));
    merge_members();
    GroupCounts counts;
    for (const std::vector<int>& members : groups_)
      if (!members.empty()) ++counts[group_key(members)];
    if (side_methylenes_ > 0) counts[side_methylene] = side_methylenes_;
    return counts;
  }

 private:
  void find_ends() {
    for (int i = 0; i < molecule_.atom_count(); ++i)
      if (molecule_.atom(i).element == 0) ends_.push_back(i);
    if (ends_.size() != 2) refuse(molecule_, fmt::format("{} '*' where two are needed", ends_.size()));
    for (const int end : ends_)
      if (molecule_.degree(end) != 1 ||
          molecule_.bond(molecule_.neighbors(end)[0].bond).order != BondOrder::single)
        refuse(molecule_, "a '*' does not have one single bond");
    const std::vector<int> parts = connected_parts(molecule_);
    if (std::ranges::any_of(parts, [](int part) { return part != 0; }))
      refuse(molecule_, "the unit is not in one part");
  }

  std::vector<bool> ring_bonds() const {
    std::vector<bool> in_ring;
    for (const Bond& bond : molecule_.bonds()) in_ring.push_back(bond.in_ring);
    return in_ring;
  }

  // The way from end to end, by breadth-first search, each atom widened to its ring system.
  void find_chain() {
    const std::vector<int> ring_system = connected_parts(molecule_, ring_bonds());
    std::vector<int> path = shortest_path(ends_[0], ends_[1]);
    path.erase(path.begin());
    path.pop_back();
    if (path.empty()) refuse(molecule_, "nothing stands between the two '*'");
    int last_system = -1;
    for (const int atom : path) {
      if (ring_system[at(atom)] == last_system) continue;
      last_system = ring_system[at(atom)];
      add_link(last_system, ring_system);
    }
  }

  void add_link(int system, const std::vector<int>& ring_system) {
    links_.emplace_back();
    for (int i = 0; i < molecule_.atom_count(); ++i) {
      if (ring_system[at(i)] != system) continue;
      links_.back().push_back(i);
      chain_place_[at(i)] = static_cast<int>(links_.size()) - 1;
    }
  }

  std::vector<int> shortest_path(int from, int to) const {
    std::vector<int> came_from(molecule_.atoms().size(), -1), queue = {to};
    came_from[at(to)] = to;
    for (std::size_t next = 0; next < queue.size(); ++next)
      for (const auto& [neighbor, bond] : molecule_.neighbors(queue[next]))
        if (came_from[at(neighbor)] < 0) {
          came_from[at(neighbor)] = queue[next];
          queue.push_back(neighbor);
        }
    std::vector<int> path = {from};
    while (path.back() != to) path.push_back(came_from[at(path.back())]);
    return path;
  }

  // Every atom off the chain joins the link that it hangs on.
  void hang_side_groups() {
    groups_ = links_;
    std::vector<int> owner = chain_place_;
    for (auto& group : groups_)
      for (std::size_t next = 0; next < group.size(); ++next)
        for (const auto& [neighbor, bond] : molecule_.neighbors(group[next])) {
          if (owner[at(neighbor)] >= 0 || is_end(neighbor)) continue;
          owner[at(neighbor)] = owner[at(group[next])];
          group.push_back(neighbor);
        }
  }

  bool is_end(int atom) const { return atom == ends_[0] || atom == ends_[1]; }
  bool in_chain(int atom) const { return chain_place_[at(atom)] >= 0 || is_end(atom); }

  bool is_methylene(int atom) const {
    const Atom& a = molecule_.atom(atom);
    return a.element == carbon && a.hydrogens == 2 && !a.in_ring && molecule_.degree(atom) == 2;
  }

  void cut_side_methylenes() {
    cut_.assign(molecule_.atoms().size(), false);
    for (int i = 0; i < molecule_.atom_count(); ++i)
      if (!in_chain(i) && is_methylene(i)) {
        cut_[at(i)] = true;
        ++side_methylenes_;
      }
  }

  // The element of a link of one atom, 0 of a ring system.
  int single_element(int place) const {
    return links_[at(place)].size() == 1 ? molecule_.atom(links_[at(place)][0]).element : 0;
  }

  bool is_carbonyl(int place) const {
    if (single_element(place) != carbon) return false;
    return std::ranges::any_of(
        molecule_.neighbors(links_[at(place)][0]), [&](const Molecule::Neighbor& neighbor) {
          return molecule_.atom(neighbor.atom).element == oxygen && !in_chain(neighbor.atom) &&
                 molecule_.bond(neighbor.bond).order == BondOrder::double_;
        });
  }

  // An oxygen or nitrogen beside a carbonyl goes to it, unless another carbonyl has it already.
  void merge_carbonyl(int place) {
    if (!is_carbonyl(place)) return;
    const int count = static_cast<int>(links_.size());
    for (const int beside : {(place + count - 1) % count, (place + 1) % count}) {
      const int element = single_element(beside);
      if (beside == place || (element != oxygen && element != nitrogen)) continue;
      if (std::ranges::any_of(merges_, [&](const auto& merge) { return merge.second == beside; })) continue;
      merges_.emplace_back(place, beside);
    }
  }

  void merge_members() {
    for (const auto& [into, from] : merges_) {
      groups_[at(into)].insert(groups_[at(into)].end(), groups_[at(from)].begin(), groups_[at(from)].end());
      groups_[at(from)].clear();
    }
  }

  // The group as a molecule of its own: bonds of the chain that leave it end in `*`, cut CH2 are bridged.
  std::string group_key(const std::vector<int>& members) const {
    Molecule group;
    std::vector<int> place(molecule_.atoms().size(), -1);
    for (const int atom : members)
      if (!cut_[at(atom)]) place[at(atom)] = group.add_atom(molecule_.atom(atom));
    for (const int atom : members)
      if (!cut_[at(atom)]) join_neighbors(atom, place, group);
    group.perceive();
    return canonical_smiles(group);
  }

  void join_neighbors(int atom, const std::vector<int>& place, Molecule& group) const {
    for (const auto& [neighbor, bond] : molecule_.neighbors(atom)) {
      const int reached =
          is_end(neighbor) ? across_the_seam(atom, neighbor) : over_cut_methylenes(atom, neighbor);
      const bool inside = place[at(reached)] >= 0 && reached != atom;
      if (inside && group.bond_between(place[at(atom)], place[at(reached)]) < 0)
        group.add_bond(place[at(atom)], place[at(reached)], molecule_.bond(bond).order);
      if (!inside && in_chain(atom) && in_chain(reached))
        group.add_bond(place[at(atom)], group.add_atom(Atom{}), molecule_.bond(bond).order);
    }
  }

  // The atom that the next repeat unit puts in the place of `end`; `atom` itself where both are one link.
  int across_the_seam(int atom, int end) const {
    const int other_end = end == ends_[0] ? ends_[1] : ends_[0];
    const int reached = molecule_.neighbors(other_end)[0].atom;
    return chain_place_[at(reached)] == chain_place_[at(atom)] || molecule_.bond_between(atom, reached) >= 0
               ? atom
               : reached;
  }

  int over_cut_methylenes(int from, int atom) const {
    while (cut_[at(atom)]) {
      const auto neighbors = molecule_.neighbors(atom);
      const int next = neighbors[0].atom == from ? neighbors[1].atom : neighbors[0].atom;
      from = atom;
      atom = next;
    }
    return atom;
  }

  const Molecule& molecule_;
  std::vector<int> ends_;
  std::vector<std::vector<int>> links_;   // atoms of each link of the chain, in order
  std::vector<std::vector<int>> groups_;  // the same with what hangs on them
  std::vector<int> chain_place_;          // link of each atom, -1 off the chain
  std::vector<bool> cut_;                 // CH2 of side chains
  std::vector<std::pair<int, int>> merges_;
  int side_methylenes_ = 0;
};

}  // namespace

GroupCounts count_groups(const Molecule& repeat_unit) { return GroupCutter(repeat_unit).count(); }

}  // namespace superstep::data
