#include "superstep/physics/chemistry/activity/drug_grammar.h"

#include <array>
#include <cstdint>
#include <string_view>

namespace superstep::data {
namespace {

// Rings that drugs are made of; which of them are here is a choice (for how often each is met: R. D. Taylor,
// M. MacCoss and A. D. G. Lawson, J. Med. Chem. 57, 5845 (2014)). A ring hangs on its first atom. `a` and `b`
// are closures, `!` is the place of the next ring, `?` a free place of a carbon, `%` one of an aromatic
// nitrogen, which has no hydrogen there.
enum class Leaves : std::uint8_t { from_carbon, from_nitrogen, from_aromatic_nitrogen };
struct RingForm {
  std::string_view smiles;
  bool entered_at_nitrogen = false;
  Leaves leaves = Leaves::from_carbon;
};
constexpr std::array<RingForm, 24> rings = {{{"cac?cc!cca"},
                                             {"cac?cc?c!ca"},
                                             {"cac?cc!nca"},
                                             {"canc!c?cca"},
                                             {"cancc!cna"},
                                             {"canc!cc?na"},
                                             {"cacc!c?sa"},
                                             {"canc!c?sa"},
                                             {"caccc!oa"},
                                             {"canoc!ca?"},
                                             {"cac!c?nna%"},
                                             {"cacn!c?na", false, Leaves::from_aromatic_nitrogen},
                                             {"cacn%cbcc!cccab"},
                                             {"cancbcc!cccbna%"},
                                             {"cacc!ncbcc?cccab"},
                                             {"cac!nbcccccbna"},
                                             {"canc!ncbcc?cccab"},
                                             {"cac!cccbcc?cccab"},
                                             {"NaCCN!CCa", true, Leaves::from_nitrogen},
                                             {"NaCCC!CCa", true},
                                             {"NaCCOCCa", true},
                                             {"NaCCC!Ca", true},
                                             {"CaCCN!CCa", false, Leaves::from_nitrogen},
                                             {"CaCCC!CCa"}}};

// Between two carbons, and where one or both ends are nitrogens of rings.
constexpr std::array<std::string_view, 18> carbon_links = {
    "",   "",       "C",      "O",     "N",          "OC",      "CO",  "NC",      "CN",
    "CC", "C(=O)N", "NC(=O)", "C(=O)", "S(=O)(=O)N", "NC(=O)N", "OCC", "CNC(=O)", "C=C"};
constexpr std::array<std::string_view, 6> nitrogen_links = {"C", "C(=O)", "CC", "S(=O)(=O)", "CC(=O)", ""};

// The empty one is hydrogen, and taken most often.
constexpr std::array<std::string_view, 26> carbon_ends = {
    "",           "",           "",   "",   "C",     "CC",      "C(C)C",    "F",           "Cl",
    "Br",         "O",          "OC", "N",  "N(C)C", "C#N",     "C(F)(F)F", "C(=O)O",      "C(=O)N",
    "S(=O)(=O)N", "S(C)(=O)=O", "CO", "CN", "CCO",   "NC(C)=O", "C(=O)OC",  "[N+](=O)[O-]"};
constexpr std::array<std::string_view, 7> nitrogen_ends = {"", "", "C", "CC", "CCO", "CC#N", "C(C)C"};
constexpr std::array<std::string_view, 5> aromatic_nitrogen_ends = {"C", "CC", "CCO", "CC#N", "C(C)C"};

template <class T, std::size_t N>
const T& one_of(RandomStream& random, const std::array<T, N>& choices) {
  return choices[random.below(N)];
}

std::string branch(std::string_view text) {
  return text.empty() ? std::string() : "(" + std::string(text) + ")";
}

std::string end_at(RandomStream& random, Leaves leaves) {
  switch (leaves) {
    case Leaves::from_carbon: return branch(one_of(random, carbon_ends));
    case Leaves::from_nitrogen: return branch(one_of(random, nitrogen_ends));
    default: return branch(one_of(random, aromatic_nitrogen_ends));
  }
}

std::string written(RandomStream& random, const RingForm& form, int depth, int more);

// The next ring with what links it, as a branch at a place of `form`.
std::string next_ring(RandomStream& random, const RingForm& form, int depth, int more) {
  const RingForm& next = one_of(random, rings);
  const bool from_nitrogen = form.leaves != Leaves::from_carbon;
  std::string_view link = from_nitrogen || next.entered_at_nitrogen ? one_of(random, nitrogen_links)
                                                                    : one_of(random, carbon_links);
  // Nitrogens of two rings are not joined without a link.
  if (link.empty() && from_nitrogen && next.entered_at_nitrogen) link = "C(=O)";
  return branch(std::string(link) + written(random, next, depth + 1, more - 1));
}

// The ring and `more` of them behind it, inside of so many open ones.
std::string written(RandomStream& random, const RingForm& form, int depth, int more) {
  std::string text;
  for (const char letter : form.smiles) {
    if (letter == 'a' || letter == 'b')
      text += static_cast<char>('1' + 2 * depth + (letter == 'b'));
    else if (letter == '?')
      text += branch(one_of(random, carbon_ends));
    else if (letter == '%')
      text += branch(one_of(random, aromatic_nitrogen_ends));
    else if (letter == '!')
      text += more > 0 ? next_ring(random, form, depth, more) : end_at(random, form.leaves);
    else
      text += letter;
  }
  return text;
}

}  // namespace

std::string draw_drug(RandomStream& random) {
  const int more = 1 + static_cast<int>(random.below(2));
  const RingForm* first = &one_of(random, rings);
  while (first->smiles.find('!') == std::string_view::npos) first = &one_of(random, rings);
  return written(random, *first, 0, more);
}

}  // namespace superstep::data
