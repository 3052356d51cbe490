#include "superstep/physics/chemistry/polymer_grammar.h"

#include <array>
#include <iterator>
#include <string_view>

#include "superstep/base/error.h"

namespace superstep::data {
namespace {

std::string methylenes(std::uint64_t count) { return std::string(count, 'C'); }

// Takes slot values off a number, last slot first, like digits of mixed radix.
class Slots {
 public:
  explicit Slots(std::uint64_t place) : rest_(place) {}
  std::uint64_t take(std::uint64_t choices) {
    const std::uint64_t value = rest_ % choices;
    rest_ /= choices;
    return value;
  }
  template <std::size_t N>
  std::string pick(const std::array<std::string_view, N>& choices) {
    return std::string(choices[take(N)]);
  }

 private:
  std::uint64_t rest_;
};

constexpr std::array<std::string_view, 9> vinyl_sides = {"C", "c1ccccc1", "Cl",       "F", "C#N",
                                                         "O", "OC(C)=O",  "C1CCCCC1", "OC"};
constexpr std::array<std::string_view, 2> alpha_sides = {"C", "c1ccccc1"};
constexpr std::array<std::string_view, 2> alpha = {"", "(C)"};  // acrylate, methacrylate
constexpr std::array<std::string_view, 3> ester_ends = {"C", "c1ccccc1", "C1CCCCC1"};
constexpr std::uint64_t chain_lengths = 11;  // 0 to 10 CH2

std::string vinyl(Slots& slots, std::uint64_t lengths) {
  const std::string spacer = methylenes(slots.take(lengths));
  return "CC(*)" + spacer + slots.pick(vinyl_sides);
}

std::string acrylate(Slots& slots, std::uint64_t lengths) {
  const std::string spacer = methylenes(slots.take(lengths)), end = slots.pick(ester_ends);
  return "CC(*)" + slots.pick(alpha) + "C(=O)O" + spacer + end;
}

std::string vinyl_family(std::uint64_t place) {
  Slots slots(place);
  return "*" + vinyl(slots, chain_lengths);
}

std::string alpha_methyl_family(std::uint64_t place) {
  Slots slots(place);
  const std::string spacer = methylenes(slots.take(chain_lengths));
  return "*CC(*)(C)" + spacer + slots.pick(alpha_sides);
}

std::string acrylate_family(std::uint64_t place) {
  Slots slots(place);
  return "*" + acrylate(slots, chain_lengths);
}

// Alternating copolymer: the first unit's open end takes the second.
constexpr std::uint64_t vinyl_lengths = 3, acrylate_lengths = 4;
std::string alternating_family(std::uint64_t place) {
  Slots slots(place);
  std::string first = vinyl(slots, vinyl_lengths);
  const std::string second = acrylate(slots, acrylate_lengths);
  // "CC(*)X" becomes "CC(X)" followed by the second unit, whose own `*` stays open.
  return "*CC(" + first.substr(std::string_view("CC(*)").size()) + ")" + second;
}

// What stands between two O or two N: (CH2)n, then the blocks below.
constexpr std::uint64_t shortest_diol = 2, linear_diols = 11;
constexpr std::array<std::string_view, 14> diol_blocks = {"CC(C)",
                                                          "CC(C)(C)C",
                                                          "c1ccc(cc1)",
                                                          "c1cccc(c1)",
                                                          "c1ccc(cc1C)",
                                                          "c1ccc(cc1)C(C)(C)c2ccc(cc2)",
                                                          "c1ccc(cc1)Oc2ccc(cc2)",
                                                          "c1ccc(cc1)Cc2ccc(cc2)",
                                                          "c1ccc(cc1)S(=O)(=O)c2ccc(cc2)",
                                                          "Cc1ccc(cc1)C",
                                                          "C1CCC(CC1)",
                                                          "CC1CCC(CC1)C",
                                                          "CCOCC",
                                                          "CCOCCOCC"};
constexpr std::uint64_t diols = linear_diols + diol_blocks.size();

std::string diol(std::uint64_t choice) {
  return choice < linear_diols ? methylenes(shortest_diol + choice)
                               : std::string(diol_blocks[choice - linear_diols]);
}

// What stands between two carbonyls: (CH2)n, rings, and isophthalates with an alkoxy side chain.
constexpr std::uint64_t linear_acids = 10, alkoxy_acids = 10;
constexpr std::array<std::string_view, 6> acid_blocks = {"c1ccc(cc1)",           "c1cccc(c1)",
                                                         "c1ccc(cc1)c2ccc(cc2)", "c1ccc2cc(ccc2c1)",
                                                         "C1CCC(CC1)",           "c1ccc(cc1)Oc2ccc(cc2)"};
constexpr std::uint64_t acids = linear_acids + acid_blocks.size() + alkoxy_acids;

std::string acid(std::uint64_t choice) {
  if (choice < linear_acids) return methylenes(1 + choice);
  choice -= linear_acids;
  if (choice < acid_blocks.size()) return std::string(acid_blocks[choice]);
  return "c1cc(O" + methylenes(1 + choice - acid_blocks.size()) + ")cc(c1)";
}

std::string condensation(std::uint64_t place, const char* left, const char* right) {
  Slots slots(place);
  const std::string first = diol(slots.take(diols)), second = acid(slots.take(acids));
  return std::string("*") + left + first + right + "C(=O)" + second + "C(=O)*";
}

std::string polyester_family(std::uint64_t place) { return condensation(place, "O", "O"); }
std::string polyamide_family(std::uint64_t place) { return condensation(place, "N", "N"); }
std::string ester_amide_family(std::uint64_t place) { return condensation(place, "O", "N"); }

// Unordered pairs (i <= j) numbered row by row of the triangle.
constexpr std::uint64_t pairs_of(std::uint64_t count) { return count * (count + 1) / 2; }
std::string pair_of_diols(std::uint64_t place, const char* joint) {
  std::uint64_t second = 0;
  while (place > second) place -= ++second;
  return std::string("*") + joint + diol(place) + joint + diol(second) + "*";
}

// The last two blocks are ethers themselves and would give units that are there already.
constexpr std::uint64_t ether_diols = diols - 2;
std::string polyether_family(std::uint64_t place) { return pair_of_diols(place, "O"); }
std::string polycarbonate_family(std::uint64_t place) { return pair_of_diols(place, "OC(=O)O"); }

// Dianhydrides PMDA, BPDA, ODPA, BTDA and 6FDA as imides.
constexpr std::array<std::string_view, 5> imides = {
    "N1C(=O)c2cc3c(cc2C1=O)C(=O)N(C3=O)",
    "N1C(=O)c2ccc(cc2C1=O)c3ccc4c(c3)C(=O)N(C4=O)",
    "N1C(=O)c2ccc(cc2C1=O)Oc3ccc4c(c3)C(=O)N(C4=O)",
    "N1C(=O)c2ccc(cc2C1=O)C(=O)c3ccc4c(c3)C(=O)N(C4=O)",
    "N1C(=O)c2ccc(cc2C1=O)C(C(F)(F)F)(C(F)(F)F)c3ccc4c(c3)C(=O)N(C4=O)",
};
std::string polyimide_family(std::uint64_t place) {
  Slots slots(place);
  const std::string imide = slots.pick(imides);
  return "*" + imide + diol(slots.take(diols)) + "*";
}

// Two trimellitic imides: joined to a diol or diamine by their acid groups, to a diamine by the imides.
std::string trimellitimide(std::uint64_t place, const char* joint) {
  Slots slots(place);
  const std::string inner = diol(slots.take(diols)), outer = diol(slots.take(diols));
  return std::string("*N1C(=O)c2ccc(cc2C1=O)C(=O)") + joint + inner + joint + "C(=O)c3ccc4c(c3)C(=O)N(C4=O)" +
         outer + "*";
}

std::string ester_imide_family(std::uint64_t place) { return trimellitimide(place, "O"); }
std::string amide_imide_family(std::uint64_t place) { return trimellitimide(place, "N"); }

// Methyl or phenyl with an alkyl of 1 to 11 carbons, and two phenyls.
constexpr std::uint64_t silicon_sides = 2 * chain_lengths + 1;
std::string silicon(std::uint64_t choice) {
  if (choice == silicon_sides - 1) return "O[Si](c1ccccc1)(c1ccccc1)";
  Slots slots(choice);
  const std::string first = slots.pick(alpha_sides);
  return "O[Si](" + first + ")(" + methylenes(1 + slots.take(chain_lengths)) + ")";
}

std::string siloxane_family(std::uint64_t place) { return "*" + silicon(place) + "*"; }

constexpr std::uint64_t carbosiloxane_lengths = 11;
std::string carbosiloxane_family(std::uint64_t place) {
  Slots slots(place);
  const std::string unit = silicon(slots.take(silicon_sides));
  return "*" + unit + methylenes(2 + slots.take(carbosiloxane_lengths)) + "*";
}

constexpr std::uint64_t vinyls = vinyl_sides.size() * chain_lengths;
constexpr PolymerFamily families[] = {
    {"vinyl", vinyls, vinyl_family},
    {"alpha-methyl vinyl", alpha_sides.size() * chain_lengths, alpha_methyl_family},
    {"acrylate", ester_ends.size() * alpha.size() * chain_lengths, acrylate_family},
    {"alternating vinyl acrylate",
     vinyl_sides.size() * vinyl_lengths* ester_ends.size() * alpha.size() * acrylate_lengths,
     alternating_family},
    {"polyester", diols* acids, polyester_family},
    {"polyamide", diols* acids, polyamide_family},
    {"poly(ester amide)", diols* acids, ester_amide_family},
    {"polyether", pairs_of(ether_diols), polyether_family},
    {"polycarbonate", pairs_of(diols), polycarbonate_family},
    {"polyimide", imides.size() * diols, polyimide_family},
    {"poly(ester imide)", diols* diols, ester_imide_family},
    {"poly(amide imide)", diols* diols, amide_imide_family},
    {"siloxane", silicon_sides, siloxane_family},
    {"carbosiloxane", silicon_sides* carbosiloxane_lengths, carbosiloxane_family},
};

}  // namespace

std::span<const PolymerFamily> polymer_families() { return families; }

std::uint64_t repeat_unit_count() {
  std::uint64_t count = 0;
  for (const PolymerFamily& family : families) count += family.count;
  return count;
}

RepeatUnit repeat_unit(std::uint64_t place) {
  for (std::size_t i = 0; i < std::size(families); ++i) {
    if (place < families[i].count) return {families[i].smiles(place), static_cast<int>(i)};
    place -= families[i].count;
  }
  throw Error(ErrorCode::invalid_argument, "there are not so many repeat units");
}

}  // namespace superstep::data
