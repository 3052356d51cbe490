#include "superstep/md/start/structures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/option_range.h"
#include "superstep/base/random.h"
#include "superstep/base/text.h"
#include "superstep/file/atoms/element.h"
#include "superstep/file/atoms/extxyz.h"
#include "superstep/md/forces/neighbours.h"
#include "superstep/md/motion/protocol.h"
#include "superstep/physics/materials/water.h"

namespace superstep::md {
namespace {

using data::Cartesian;

constexpr std::int64_t most_atoms = 10'000'000;

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw Error(ErrorCode::invalid_argument, why, fmt::format("--lattice {}", text),
              "as in fcc:Cu:3.61:5x5x5: lattice, atoms, lattice constant in A, cells along each edge");
}

std::vector<Cartesian> basis_of(const std::string& lattice, const std::string& text) {
  if (lattice == "fcc") return {{0, 0, 0}, {0, 0.5, 0.5}, {0.5, 0, 0.5}, {0.5, 0.5, 0}};
  if (lattice == "bcc") return {{0, 0, 0}, {0.5, 0.5, 0.5}};
  if (lattice == "sc") return {{0, 0, 0}};
  refuse(text, fmt::format("there is no lattice '{}': fcc, bcc, sc", lattice));
}

struct Share {
  int element;
  double share;
};

// "Cu", "Ni0.3Cu0.7".
std::vector<Share> shares_of(const std::string& formula, const std::string& text) {
  std::vector<Share> shares;
  for (std::size_t at = 0; at < formula.size();) {
    std::size_t end = at + 1;
    while (end < formula.size() && std::islower(static_cast<unsigned char>(formula[end])) != 0) ++end;
    const std::string symbol = formula.substr(at, end - at);
    const std::optional<int> element = data::element_from_symbol(symbol);
    if (!element || *element == 0) refuse(text, fmt::format("'{}' is no element", symbol));
    at = end;
    while (end < formula.size() &&
           (std::isdigit(static_cast<unsigned char>(formula[end])) != 0 || formula[end] == '.'))
      ++end;
    double share = 1;
    if (end > at) {
      const auto given = finite_number(formula.substr(at, end - at));
      if (!given || *given <= 0) refuse(text, fmt::format("'{}' is no share", formula.substr(at, end - at)));
      share = *given;
    }
    shares.push_back({*element, share});
    at = end;
  }
  if (shares.empty()) refuse(text, "names no element");
  return shares;
}

std::array<std::int64_t, 3> cells_of(const std::string& cells, const std::string& text) {
  std::vector<std::string> parts = split(cells, 'x');
  if (parts.size() == 1) parts = {parts[0], parts[0], parts[0]};
  if (parts.size() != 3) refuse(text, fmt::format("'{}' are no cells along three edges", cells));
  std::array<std::int64_t, 3> numbers{};
  for (std::size_t k = 0; k < 3; ++k) {
    const auto number = whole_number(parts[k]);
    if (!number || *number < 1 || *number > 10'000)
      refuse(text, fmt::format("'{}' is no number of cells", parts[k]));
    numbers[k] = *number;
  }
  return numbers;
}

// Whole numbers of atoms near the shares, on sites in random order.
std::vector<int> drawn_elements(const std::vector<Share>& shares, std::size_t atoms, std::uint64_t seed) {
  double all = 0, before = 0;
  for (const Share& each : shares) all += each.share;
  std::vector<int> elements;
  for (const Share& each : shares) {
    before += each.share;
    const auto until = static_cast<std::size_t>(std::lround(before / all * static_cast<double>(atoms)));
    elements.resize(std::max(elements.size(), until), each.element);
  }
  elements.resize(atoms, shares.back().element);
  if (shares.size() == 1) return elements;
  RandomStream random(seed, 0, purpose::sites);
  for (std::size_t left = atoms; left > 1; --left)
    std::swap(elements[left - 1], elements[random.below(left)]);
  return elements;
}

// At least so many sites in a unit cube, as far apart as one of the cubic lattices allows.
std::vector<Cartesian> spread_sites(std::int64_t count) {
  std::vector<Cartesian> best;
  double farthest = 0;
  for (const auto& [lattice, nearest] :
       {std::pair("sc", 1.0), std::pair("bcc", 0.866), std::pair("fcc", 0.707)}) {
    const std::vector<Cartesian> basis = basis_of(lattice, lattice);
    std::int64_t cells = 1;
    while (cells * cells * cells * static_cast<std::int64_t>(basis.size()) < count) ++cells;
    if (nearest / static_cast<double>(cells) <= farthest) continue;
    farthest = nearest / static_cast<double>(cells);
    best.clear();
    for (std::int64_t cell = 0; cell < cells * cells * cells; ++cell)
      for (const Cartesian& site : basis)
        best.push_back(
            (site + Cartesian{static_cast<double>(cell / (cells * cells)),
                              static_cast<double>(cell / cells % cells), static_cast<double>(cell % cells)}) *
            (1 / static_cast<double>(cells)));
  }
  return best;
}

}  // namespace

Structure make_lattice(const std::string& text, std::uint64_t seed) {
  const std::vector<std::string> parts = split(text, ':');
  if (parts.size() != 4) refuse(text, fmt::format("has {} parts, not four", parts.size()));
  const std::vector<Cartesian> basis = basis_of(parts[0], text);
  const std::vector<Share> shares = shares_of(parts[1], text);
  const auto constant = finite_number(parts[2]);
  if (!constant || *constant < 0.5 || *constant > 1000)
    refuse(text, fmt::format("'{}' is no lattice constant in A", parts[2]));
  const auto cells = cells_of(parts[3], text);
  const double edge = *constant;
  if (static_cast<double>(basis.size()) * static_cast<double>(cells[0]) * static_cast<double>(cells[1]) *
          static_cast<double>(cells[2]) >
      most_atoms)
    refuse(text, fmt::format("has more than {} atoms", most_atoms));
  Structure made;
  for (std::int64_t x = 0; x < cells[0]; ++x)
    for (std::int64_t y = 0; y < cells[1]; ++y)
      for (std::int64_t z = 0; z < cells[2]; ++z)
        for (const Cartesian& site : basis)
          made.atoms.positions.push_back(
              edge *
              (Cartesian{static_cast<double>(x), static_cast<double>(y), static_cast<double>(z)} + site));
  made.atoms.cell = data::Cell{{edge * static_cast<double>(cells[0]), 0, 0},
                               {0, edge * static_cast<double>(cells[1]), 0},
                               {0, 0, edge * static_cast<double>(cells[2])}};
  made.atoms.elements = drawn_elements(shares, made.atoms.positions.size(), seed);
  return made;
}

Structure make_water_box(std::int64_t molecules, double density, std::uint64_t seed) {
  constexpr double cubic_angstrom_per_cubic_cm = 1e24, avogadro = 6.02214076e23;
  double mass = 0;
  for (const double each : data::water_masses(1)) mass += each;
  const double edge =
      std::cbrt(static_cast<double>(molecules) * mass / avogadro / density * cubic_angstrom_per_cubic_cm);
  const std::vector<Cartesian> sites = spread_sites(molecules);
  RandomStream random(seed, 0, purpose::orientations);
  Structure made;
  made.atoms.cell = data::Cell{{edge, 0, 0}, {0, edge, 0}, {0, 0, edge}};
  made.atoms.elements = data::water_elements(static_cast<int>(molecules));
  for (std::int64_t k = 0; k < molecules; ++k) {
    // Sites that stay empty are spread over the box.
    const auto site = static_cast<std::size_t>(k) * sites.size() / static_cast<std::size_t>(molecules);
    data::add_random_molecule({}, edge * sites[site], random, made.atoms.positions);
  }
  return made;
}

Structure make_water_cluster(std::int64_t molecules, std::uint64_t seed) {
  RandomStream random(seed, 0, purpose::orientations);
  Structure made;
  made.atoms.elements = data::water_elements(static_cast<int>(molecules));
  made.atoms.positions = data::pack_water({}, static_cast<int>(molecules), random);
  return made;
}

Structure read_structure(const std::filesystem::path& path, std::int64_t frame) {
  data::XyzReader reader(path);
  std::int64_t number = 0;
  data::XyzFrame last;
  for (data::XyzFrame next; (frame == 0 || number < frame) && reader.next(next); ++number)
    last = std::move(next);
  if (number == 0 || number < frame)
    throw Error(ErrorCode::bad_file,
                fmt::format("has {} frames, not {}", number, std::max<std::int64_t>(frame, 1)),
                path.string());
  if (last.configuration.positions.empty())
    throw Error(ErrorCode::bad_file, fmt::format("frame {} has no atoms", number), path.string());
  return {std::move(last.configuration), std::move(last.velocities)};
}

std::string formula_of(const std::vector<int>& elements) {
  std::map<std::string, std::size_t> counts;
  for (const int element : elements) ++counts[std::string(data::element_symbol(element))];
  std::string text;
  for (const auto& [symbol, count] : counts) text += count == 1 ? symbol : fmt::format("{}{}", symbol, count);
  return text;
}

void require_sound(const data::Configuration& atoms) {
  for (std::size_t i = 0; i < atoms.elements.size(); ++i)
    if (!(data::element_mass(atoms.elements[i]) > 0))
      throw Error(ErrorCode::invalid_argument, fmt::format("atom {} has no mass", i + 1), "the structure");
  if (atoms.cell) inverse_of(*atoms.cell);
}

}  // namespace superstep::md
