// Options of deepmd, and what they come to.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "superstep/base/text.h"
#include "superstep/file/atoms/element.h"
#include "superstep/workload/materials/deepmd/deepmd.h"

namespace superstep::workload {
namespace {

[[noreturn]] void refuse(const std::string& option, const std::string& message,
                         const std::string& hint = {}) {
  throw Error(ErrorCode::invalid_argument, message, "--set " + option, hint);
}

template <class Number>
std::vector<Number> numbers(const Options& options, const std::string& name, Number low, Number high) {
  std::vector<Number> found;
  for (const std::string& word : split(options.text(name), ',')) {
    Number value{};
    const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (code != std::errc() || end != word.data() + word.size() || !(value >= low && value <= high))
      refuse(name, fmt::format("'{}' is not a number from {} to {}", word, low, high),
             "several are separated by commas");
    found.push_back(value);
  }
  return found;
}

std::vector<std::int64_t> counts(const Options& options, const char* name, std::int64_t high) {
  return numbers<std::int64_t>(options, name, 1, high);
}

std::vector<int> elements_of(const Options& options) {
  std::vector<int> elements;
  for (const std::string& symbol : split(options.text("types"), ',')) {
    const auto element = data::element_from_symbol(symbol);
    if (!element || *element < 1)
      refuse("types", fmt::format("'{}' is no element", symbol), "as in --set types=O,H");
    if (std::ranges::find(elements, *element) != elements.end())
      refuse("types", fmt::format("{} is there twice", symbol));
    elements.push_back(*element);
  }
  return elements;
}

std::vector<std::int64_t> one_a_type(const Options& options, const char* name, std::size_t types) {
  const std::vector<std::int64_t> found = counts(options, name, 65536);
  if (found.size() != types)
    refuse(name, fmt::format("has {} numbers for {} types", found.size(), types),
           "one for each element of --set types=, by commas");
  return found;
}

Prefactor prefactor(const Options& options, const char* name) {
  const auto found = numbers<double>(options, name, 0, 1e9);
  if (found.size() > 2) refuse(name, "takes two numbers: at first and at last");
  return {found.front(), found.back()};
}

}  // namespace

std::int64_t DeepmdSizes::all_atoms() const { return std::reduce(atoms.begin(), atoms.end()); }
std::int64_t DeepmdSizes::all_near() const { return std::reduce(near.begin(), near.end()); }

std::vector<OptionSpec> deepmd_options() {
  return {
      {"types", "Cu", "elements, by commas: an atom's type is its place here"},
      {"atoms", "32", "room for atoms of each type in a frame, by commas"},
      {"sel", "100", "room for neighbors of each type around an atom, by commas"},
      {"cutoff", "6", "beyond which atoms are no neighbors, A"},
      {"smooth", "0.5", "from where on a neighbor's weight falls, A"},
      {"embedding", "25,50,100", "widths of the networks that see a neighbor"},
      {"axis", "16", "of the last width, in the descriptor's second factor"},
      {"fitting", "240,240,240", "widths of the networks that give an atom's energy"},
      {"precision", "f32", "f32, f64, or mixed: geometry and sums in f64, networks in f32"},
      {"energy", "0.02,1", "weight of its errors in the loss, at first and at last"},
      {"force", "1000,1", "the same, of the forces'"},
      {"virial", "0,0", "the same, of the virials'"},
      {"halving", "0", "epochs in which what is left between first and last weights is halved; 0: the last"},
      {"box", "2", "of generated crystals: cubic cells along an edge"},
      {"trajectory", "10", "of generated crystals: frames of each trajectory"}};
}

DeepmdSizes deepmd_sizes(const Options& options) {
  DeepmdSizes sizes;
  sizes.elements = elements_of(options);
  sizes.atoms = one_a_type(options, "atoms", sizes.elements.size());
  sizes.near = one_a_type(options, "sel", sizes.elements.size());
  sizes.cutoff = options.number("cutoff", 0.5, 100);
  sizes.smooth = options.number("smooth", 0, 100);
  if (sizes.smooth >= sizes.cutoff) refuse("smooth", "must be below the cutoff");
  sizes.embedding = counts(options, "embedding", 4096);
  sizes.axis = options.integer("axis", 1, 4096);
  if (sizes.axis > sizes.embedding.back())
    refuse("axis", fmt::format("is more than the embedding's last width, {}", sizes.embedding.back()));
  sizes.fitting = counts(options, "fitting", 65536);
  const std::vector<std::string> precisions{"f32", "f64", "mixed"};
  const int precision = options.choice("precision", precisions);
  sizes.outer = precision > 0 ? ElementType::f64 : ElementType::f32;
  sizes.inner = precision == 1 ? ElementType::f64 : ElementType::f32;
  sizes.energy = prefactor(options, "energy");
  sizes.force = prefactor(options, "force");
  sizes.virial = prefactor(options, "virial");
  sizes.halving = options.number("halving", 0, 1e9);
  return sizes;
}

double switched_inverse(double r, double smooth, double cutoff) {
  const double x = std::clamp((r - smooth) / (cutoff - smooth), 0.0, 1.0);
  return (x * x * x * (-6 * x * x + 15 * x - 10) + 1) / r;
}

}  // namespace superstep::workload
