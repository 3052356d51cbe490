#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "superstep/file/atoms/element.h"
#include "superstep/physics/chemistry/smiles.h"

namespace superstep::data {
namespace {

// Valences that implicit hydrogens fill up to, of the organic subset (OpenSMILES, 3.1.5).
std::span<const int> normal_valences(int element) {
  static constexpr int boron[] = {3}, carbon[] = {4}, nitrogen[] = {3, 5}, oxygen[] = {2},
                       sulfur[] = {2, 4, 6}, halogen[] = {1};
  switch (element) {
    case 5: return boron;
    case 6: return carbon;
    case 7:
    case 15: return nitrogen;
    case 8: return oxygen;
    case 16: return sulfur;
    case 9:
    case 17:
    case 35:
    case 53: return halogen;
    default: return {};
  }
}

std::size_t at(int position) { return static_cast<std::size_t>(position); }

// Bond orders summed, an aromatic bond counting one.
int valence_used(const Molecule& molecule, int atom) {
  int sum = 0;
  for (const Molecule::Neighbor& neighbor : molecule.neighbors(atom)) {
    const BondOrder order = molecule.bond(neighbor.bond).order;
    sum += order == BondOrder::aromatic ? 1 : static_cast<int>(order) + 1;
  }
  return sum;
}

std::string signed_charge(int charge) {
  if (charge == 0) return {};
  const char sign = charge > 0 ? '+' : '-';
  return std::abs(charge) == 1 ? std::string(1, sign) : fmt::format("{}{}", sign, std::abs(charge));
}

std::string atom_text(const Molecule& molecule, int position) {
  const Atom& atom = molecule.atom(position);
  std::string symbol(element_symbol(atom.element));
  if (atom.aromatic) symbol[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(symbol[0])));
  const bool plain = atom.charge == 0 && atom.isotope == 0;
  if (plain && implied_hydrogens(molecule, position) == atom.hydrogens) return symbol;
  std::string text = "[";
  if (atom.isotope != 0) text += std::to_string(atom.isotope);
  text += symbol;
  if (atom.hydrogens > 0) text += atom.hydrogens == 1 ? "H" : fmt::format("H{}", atom.hydrogens);
  return text + signed_charge(atom.charge) + "]";
}

std::string bond_text(const Molecule& molecule, int position) {
  const Bond& bond = molecule.bond(position);
  const bool between_aromatic = molecule.atom(bond.a).aromatic && molecule.atom(bond.b).aromatic;
  switch (bond.order) {
    case BondOrder::single: return between_aromatic ? "-" : "";
    case BondOrder::double_: return "=";
    case BondOrder::triple: return "#";
    case BondOrder::quadruple: return "$";
    case BondOrder::aromatic: return between_aromatic ? "" : ":";
  }
  return "";
}

std::string ring_text(int number) {
  if (number < 10) return std::to_string(number);
  return number < 100 ? fmt::format("%{}", number) : fmt::format("%({})", number);
}

// Writes one connected part. All loops have stacks of their own: a chain may be as long as memory allows.
class PartWriter {
 public:
  PartWriter(const Molecule& molecule, std::span<const int> ranks)
      : molecule_(molecule),
        ranks_(ranks),
        entered_by_(molecule.atoms().size(), not_visited),
        children_(molecule.atoms().size()),
        rings_(molecule.atoms().size()) {}

  bool visited(int atom) const { return entered_by_[at(atom)] != not_visited; }

  std::string write(int root) {
    span_tree(root);
    std::string text;
    struct Step {
      int atom;          // -1: only the text
      std::string text;  // written before the atom
    };
    std::vector<Step> stack = {{root, ""}};
    while (!stack.empty()) {
      const Step step = std::move(stack.back());
      stack.pop_back();
      text += step.text;
      if (step.atom < 0) continue;
      text += atom_text(molecule_, step.atom) + rings_at(step.atom);
      const auto& children = children_[at(step.atom)];
      for (std::size_t i = children.size(); i-- > 0;) {
        const bool branch = i + 1 < children.size();
        if (branch) stack.push_back({-1, ")"});
        stack.push_back({children[i].atom, (branch ? "(" : "") + bond_text(molecule_, children[i].bond)});
      }
    }
    return text;
  }

 private:
  static constexpr int not_visited = -2, is_root = -1;

  std::vector<Molecule::Neighbor> by_rank(int atom) const {
    const auto span = molecule_.neighbors(atom);
    std::vector<Molecule::Neighbor> sorted(span.begin(), span.end());
    std::ranges::sort(sorted, {},
                      [&](const Molecule::Neighbor& neighbor) { return ranks_[at(neighbor.atom)]; });
    return sorted;
  }

  // Depth first; a bond back to an atom above becomes a ring closure at both ends.
  void span_tree(int root) {
    struct Frame {
      int atom;
      std::vector<Molecule::Neighbor> neighbors;
      std::size_t next = 0;
    };
    std::vector<Frame> stack;
    const auto enter = [&](int atom, int bond) {
      entered_by_[at(atom)] = bond;
      stack.push_back({atom, by_rank(atom)});
    };
    enter(root, is_root);
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next == frame.neighbors.size()) {
        stack.pop_back();
        continue;
      }
      const Molecule::Neighbor neighbor = frame.neighbors[frame.next++];
      if (neighbor.bond == entered_by_[at(frame.atom)]) continue;
      if (!visited(neighbor.atom)) {
        children_[at(frame.atom)].push_back(neighbor);
        enter(neighbor.atom, neighbor.bond);
      } else if (closing_.insert(neighbor.bond).second) {
        // Met first from below: the atom above opens the ring, this one closes it.
        rings_[at(neighbor.atom)].push_back(neighbor.bond);
        rings_[at(frame.atom)].push_back(neighbor.bond);
      }
    }
  }

  std::string rings_at(int atom) {
    std::string text;
    for (const int bond : rings_[at(atom)]) {
      const auto open = open_.find(bond);
      if (open != open_.end()) {
        text += ring_text(open->second);
        used_.erase(open->second);
        open_.erase(open);
      } else {
        const int number = free_number();
        used_.insert(number);
        open_[bond] = number;
        text += bond_text(molecule_, bond) + ring_text(number);
      }
    }
    return text;
  }

  int free_number() const {
    int number = 1;
    while (used_.contains(number)) ++number;
    return number;
  }

  const Molecule& molecule_;
  std::span<const int> ranks_;
  std::vector<int> entered_by_;
  std::vector<std::vector<Molecule::Neighbor>> children_;
  std::vector<std::vector<int>> rings_;  // bonds that open or close a ring, by atom
  std::set<int> closing_, used_;
  std::map<int, int> open_;
};

std::vector<std::string> write_parts(const Molecule& molecule, std::span<const int> ranks) {
  std::vector<int> order(molecule.atoms().size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](int atom) { return ranks[at(atom)]; });
  PartWriter writer(molecule, ranks);
  std::vector<std::string> parts;
  for (const int atom : order)
    if (!writer.visited(atom)) parts.push_back(writer.write(atom));
  return parts;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ".") + part;
  return text;
}

// Replaces keys by their place in sorted order; equal keys share one. Returns the number of classes.
template <class Key>
int ranks_of(const std::vector<Key>& keys, std::vector<int>& ranks) {
  std::vector<int> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [&](int a, int b) { return keys[at(a)] < keys[at(b)]; });
  ranks.resize(keys.size());
  int classes = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || keys[at(order[i - 1])] < keys[at(order[i])]) ++classes;
    ranks[at(order[i])] = classes - 1;
  }
  return classes;
}

std::vector<int> first_ranks(const Molecule& molecule, int& classes) {
  std::vector<std::tuple<int, bool, int, int, int, int>> keys;
  for (int i = 0; i < molecule.atom_count(); ++i) {
    const Atom& atom = molecule.atom(i);
    keys.emplace_back(atom.element, atom.aromatic, molecule.degree(i), atom.hydrogens, atom.charge,
                      atom.isotope);
  }
  std::vector<int> ranks;
  classes = ranks_of(keys, ranks);
  return ranks;
}

// Splits classes by the classes of their neighbours until nothing changes (Morgan 1965).
int refine(const Molecule& molecule, std::vector<int>& ranks, int classes) {
  for (;;) {
    std::vector<std::pair<int, std::vector<std::pair<int, int>>>> keys(ranks.size());
    for (int i = 0; i < molecule.atom_count(); ++i) {
      keys[at(i)].first = ranks[at(i)];
      for (const auto& [neighbor, bond] : molecule.neighbors(i))
        keys[at(i)].second.emplace_back(static_cast<int>(molecule.bond(bond).order), ranks[at(neighbor)]);
      std::ranges::sort(keys[at(i)].second);
    }
    const int now = ranks_of(keys, ranks);
    if (now == classes) return now;
    classes = now;
  }
}

// Sets one atom of the first class of several before the others.
void break_tie(std::vector<int>& ranks) {
  std::vector<int> first(ranks.size(), -1);
  int tied = static_cast<int>(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (first[at(ranks[i])] >= 0) tied = std::min(tied, ranks[i]);
    if (first[at(ranks[i])] < 0) first[at(ranks[i])] = static_cast<int>(i);
  }
  for (int& rank : ranks) rank *= 2;
  --ranks[at(first[at(tied)])];
}

std::vector<int> canonical_ranks(const Molecule& molecule) {
  int classes = 0;
  std::vector<int> ranks = first_ranks(molecule, classes);
  classes = refine(molecule, ranks, classes);
  while (classes < molecule.atom_count()) {
    break_tie(ranks);
    classes = refine(molecule, ranks, classes);
  }
  return ranks;
}

}  // namespace

// An aromatic atom gives one electron to the ring, so that it has one hydrogen less.
std::optional<int> implied_hydrogens(const Molecule& molecule, int position) {
  const Atom& atom = molecule.atom(position);
  if (atom.element == 0) return 0;
  const std::span<const int> valences = normal_valences(atom.element);
  const int used = valence_used(molecule, position);
  if (valences.empty() || used > valences.back()) return std::nullopt;
  if (atom.aromatic) return std::max(0, valences.front() - used - 1);
  return *std::ranges::lower_bound(valences, used) - used;
}

std::string canonical_smiles(const Molecule& molecule) {
  std::vector<std::string> parts = write_parts(molecule, canonical_ranks(molecule));
  std::ranges::sort(parts);
  return joined(parts);
}

std::string write_smiles(const Molecule& molecule, std::span<const int> ranks) {
  std::vector<int> order(molecule.atoms().size());
  std::iota(order.begin(), order.end(), 0);
  return joined(write_parts(molecule, ranks.empty() ? std::span<const int>(order) : ranks));
}

}  // namespace superstep::data
