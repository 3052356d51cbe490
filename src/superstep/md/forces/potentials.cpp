#include "superstep/md/forces/potentials.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/file/atoms/element.h"
#include "superstep/md/forces/classical.h"
#include "superstep/md/forces/water.h"

namespace superstep::md {
namespace {

// Where potentials begin to end, of their cutoff: as the generators of data have it.
constexpr double smooth_part = 0.875;

OptionSpec cutoff_option(const std::string& value, const std::string& more = "") {
  return {"cutoff", value, "A" + more};
}
OptionSpec smooth_option() {
  return {"smooth-from", "auto",
          "where it begins to end smoothly, A; auto: 0.875 of the cutoff; cutoff: a sharp end"};
}

SmoothCutoff end_of(const Options& options, double usual_cutoff) {
  const double cutoff = options.text("cutoff") == "auto" ? usual_cutoff : options.number("cutoff", 0.5, 100);
  if (options.text("smooth-from") == "auto") return {smooth_part * cutoff, cutoff};
  if (options.text("smooth-from") == "cutoff") return {cutoff, cutoff};
  return {options.number("smooth-from", 0, cutoff), cutoff};
}

// A pair potential has one set of parameters: all atoms are of one element, the one that they are for.
void require_element(const Options& options, const data::Configuration& start, const char* name) {
  const std::string& wanted = options.text("element");
  if (wanted == "any") return;
  if (!data::element_from_symbol(wanted))
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no element", wanted), "--set element");
  for (std::size_t i = 0; i < start.elements.size(); ++i)
    if (data::element_symbol(start.elements[i]) != wanted)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("atom {} is {}, the parameters are those of {}", i + 1,
                              data::element_symbol(start.elements[i]), wanted),
                  name, "give parameters of your own, and --set element=any");
}

std::unique_ptr<ForceField> lennard_jones(const Options& options, data::Configuration& start) {
  require_element(options, start, "lennard-jones");
  const LennardJones pair{options.number("epsilon", 0, 100), options.number("sigma", 0.1, 50)};
  return make_lennard_jones(pair, end_of(options, 2.5 * pair.sigma));
}

std::unique_ptr<ForceField> morse(const Options& options, data::Configuration& start) {
  require_element(options, start, "morse");
  const Morse pair{options.number("depth", 0, 100), options.number("alpha", 0.01, 50),
                   options.number("r0", 0.1, 50)};
  return make_morse(pair, end_of(options, 2.5 * pair.r0));
}

std::unique_ptr<ForceField> sutton_chen(const Options& options, data::Configuration& start) {
  double largest = 0;
  for (const data::SuttonChen& metal : data::sutton_chen_metals())
    if (std::ranges::find(start.elements, *data::element_from_symbol(metal.symbol)) != start.elements.end())
      largest = std::max(largest, metal.a);
  return make_sutton_chen(start.elements, end_of(options, 2 * largest));
}

std::unique_ptr<ForceField> water(const Options& options, data::Configuration& start) {
  WaterSettings settings;
  settings.end = end_of(options, 9);
  settings.damping = options.number("damping", 0, 1);
  return make_water(settings, start);
}

}  // namespace

std::span<const Potential> potentials() {
  static const std::vector<Potential> table{
      {"lennard-jones",
       "noble gases: 4 epsilon ((sigma/r)^12 - (sigma/r)^6)",
       "Ar; others with parameters",
       {{"epsilon", "0.0103", "eV; argon's"},
        {"sigma", "3.405", "A; argon's"},
        cutoff_option("auto", "; auto: 2.5 sigma"),
        smooth_option(),
        {"element", "Ar", "which atoms the parameters are for; any: for all"}},
       2,
       2e-4,
       lennard_jones},
      {"morse",
       "pairs of copper atoms: D (exp(-2 a (r - r0)) - 2 exp(-a (r - r0)))",
       "Cu; others with parameters",
       {{"depth", "0.3429", "eV; copper's, Girifalco and Weizer 1959"},
        {"alpha", "1.3588", "1/A"},
        {"r0", "2.866", "A"},
        cutoff_option("auto", "; auto: 2.5 r0"),
        smooth_option(),
        {"element", "Cu", "which atoms the parameters are for; any: for all"}},
       2,
       7e-7,
       morse},
      {"sutton-chen",
       "metals and their mixtures: pairs, and the root of a density",
       "Al, Ni, Cu, Pd, Ag, Pt, Au",
       {cutoff_option("auto", "; auto: twice the largest lattice constant"), smooth_option()},
       2,
       7e-7,
       sutton_chen},
      {"spc-fw",
       "flexible water: in a box with damped shifted Coulomb forces, in open space all pairs",
       "H, O",
       {cutoff_option("9", "; in a box"), smooth_option(), {"damping", "0.2", "of charges in a box, 1/A"}},
       0.5,
       4.6e-5,
       water},
  };
  return table;
}

const Potential* find_potential(std::string_view name) {
  for (const Potential& each : potentials())
    if (each.name == name) return &each;
  return nullptr;
}

}  // namespace superstep::md
