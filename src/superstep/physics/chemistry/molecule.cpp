#include "superstep/physics/chemistry/molecule.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "superstep/base/error.h"
#include "superstep/file/atoms/element.h"

namespace superstep::data {
namespace {

// Finds the bridges of a graph by depth-first search (Tarjan 1974) with a stack of its own, so that a chain
// of a million atoms does not overflow the program's.
class BridgeSearch {
 public:
  BridgeSearch(const Molecule& molecule, const std::vector<bool>& kept)
      : molecule_(molecule),
        kept_(kept),
        order_(molecule.atoms().size(), -1),
        low_(molecule.atoms().size(), 0),
        on_cycle_(molecule.bonds().size(), false) {}

  std::vector<bool> run() {
    for (int root = 0; root < molecule_.atom_count(); ++root)
      if (order_[at(root)] < 0) search_from(root);
    return std::move(on_cycle_);
  }

 private:
  struct Frame {
    int atom, entered_by;
    std::size_t next = 0;
  };

  static std::size_t at(int position) { return static_cast<std::size_t>(position); }
  bool is_kept(int bond) const { return kept_.empty() || kept_[at(bond)]; }

  void enter(int atom, int entered_by) {
    order_[at(atom)] = low_[at(atom)] = counter_++;
    stack_.push_back({atom, entered_by});
  }

  void search_from(int root) {
    enter(root, -1);
    while (!stack_.empty()) step();
  }

  void step() {
    const int atom = stack_.back().atom;
    const auto neighbors = molecule_.neighbors(atom);
    if (stack_.back().next == neighbors.size()) return leave();
    const Molecule::Neighbor neighbor = neighbors[stack_.back().next++];
    if (!is_kept(neighbor.bond) || neighbor.bond == stack_.back().entered_by) return;
    if (order_[at(neighbor.atom)] < 0) return enter(neighbor.atom, neighbor.bond);
    on_cycle_[at(neighbor.bond)] = true;
    low_[at(atom)] = std::min(low_[at(atom)], order_[at(neighbor.atom)]);
  }

  // A bond is no bridge when what hangs below it reaches back above it.
  void leave() {
    const Frame left = stack_.back();
    stack_.pop_back();
    if (stack_.empty()) return;
    const int parent = stack_.back().atom;
    low_[at(parent)] = std::min(low_[at(parent)], low_[at(left.atom)]);
    if (low_[at(left.atom)] <= order_[at(parent)]) on_cycle_[at(left.entered_by)] = true;
  }

  const Molecule& molecule_;
  const std::vector<bool>& kept_;
  std::vector<int> order_, low_;
  std::vector<bool> on_cycle_;
  std::vector<Frame> stack_;
  int counter_ = 0;
};

bool is_unsaturated(const Molecule& molecule, int atom) {
  return std::ranges::any_of(molecule.neighbors(atom), [&](const Molecule::Neighbor& neighbor) {
    return molecule.bond(neighbor.bond).order != BondOrder::single;
  });
}

}  // namespace

int Molecule::add_atom(const Atom& atom) {
  atoms_.push_back(atom);
  neighbors_.emplace_back();
  return atom_count() - 1;
}

int Molecule::add_bond(int a, int b, BondOrder order) {
  if (a == b || a < 0 || b < 0 || a >= atom_count() || b >= atom_count() || bond_between(a, b) >= 0)
    throw Error(ErrorCode::internal, fmt::format("atoms {} and {} cannot be joined", a, b));
  bonds_.push_back({a, b, order});
  neighbors_[static_cast<std::size_t>(a)].push_back({b, bond_count() - 1});
  neighbors_[static_cast<std::size_t>(b)].push_back({a, bond_count() - 1});
  return bond_count() - 1;
}

int Molecule::bond_between(int a, int b) const {
  // The shorter of the two lists, so that an atom with very many bonds costs nothing to join to.
  if (degree(b) < degree(a)) std::swap(a, b);
  for (const Neighbor& neighbor : neighbors(a))
    if (neighbor.atom == b) return neighbor.bond;
  return -1;
}

void Molecule::perceive() {
  const std::vector<bool> in_ring = bonds_on_cycles(*this);
  for (Atom& each : atoms_) each.in_ring = false;
  for (std::size_t i = 0; i < bonds_.size(); ++i) {
    Bond& each = bonds_[i];
    each.in_ring = in_ring[i];
    if (each.in_ring) atom(each.a).in_ring = atom(each.b).in_ring = true;
  }
  for (Bond& each : bonds_)
    each.conjugated =
        each.order == BondOrder::aromatic ||
        (each.order == BondOrder::single && is_unsaturated(*this, each.a) && is_unsaturated(*this, each.b));
}

double molecular_weight(const Molecule& molecule) {
  double weight = 0;
  for (const Atom& atom : molecule.atoms())
    weight += element_mass(atom.element) + atom.hydrogens * element_mass(1);
  return weight;
}

std::string molecular_formula(const Molecule& molecule) {
  std::map<std::string_view, int> counts;
  for (const Atom& atom : molecule.atoms()) {
    if (atom.element > 0) ++counts[element_symbol(atom.element)];
    if (atom.hydrogens > 0) counts["H"] += atom.hydrogens;
  }
  std::string formula;
  const auto append = [&](std::string_view symbol, int count) {
    formula += symbol;
    if (count > 1) formula += std::to_string(count);
  };
  if (const auto carbon = counts.find("C"); carbon != counts.end()) {
    append("C", carbon->second);
    counts.erase(carbon);
    if (const auto hydrogen = counts.find("H"); hydrogen != counts.end()) {
      append("H", hydrogen->second);
      counts.erase(hydrogen);
    }
  }
  for (const auto& [symbol, count] : counts) append(symbol, count);
  return formula;
}

std::vector<int> connected_parts(const Molecule& molecule, const std::vector<bool>& kept) {
  std::vector<int> part(molecule.atoms().size(), -1), waiting;
  int parts = 0;
  for (int root = 0; root < molecule.atom_count(); ++root) {
    if (part[static_cast<std::size_t>(root)] >= 0) continue;
    part[static_cast<std::size_t>(root)] = parts;
    waiting.push_back(root);
    while (!waiting.empty()) {
      const int atom = waiting.back();
      waiting.pop_back();
      for (const auto& [neighbor, bond] : molecule.neighbors(atom)) {
        if (part[static_cast<std::size_t>(neighbor)] >= 0) continue;
        if (!kept.empty() && !kept[static_cast<std::size_t>(bond)]) continue;
        part[static_cast<std::size_t>(neighbor)] = parts;
        waiting.push_back(neighbor);
      }
    }
    ++parts;
  }
  return part;
}

std::vector<bool> bonds_on_cycles(const Molecule& molecule, const std::vector<bool>& kept) {
  return BridgeSearch(molecule, kept).run();
}

}  // namespace superstep::data
