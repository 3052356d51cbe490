#include "superstep/physics/chemistry/uno_tables.h"

#include <algorithm>
#include <cmath>

#include "superstep/base/random.h"

namespace superstep::data {
namespace {

enum Purpose : std::uint32_t {
  purpose_type = 1,
  purpose_cell,
  purpose_drug,
  purpose_coupling,
  purpose_block,
  purpose_gene,
  purpose_gene_noise,
  purpose_descriptor,
  purpose_descriptor_noise,
  purpose_fingerprint,
  purpose_fingerprint_noise,
};

// Shares of what log10 EC50 consists of; their common scale is found by UnoResponse.
constexpr double middle_log10_ec50 = -5.9, coupling_spread = 0.62, target_spread = 0.75, drug_spread = 0.75;
constexpr double middle_toxicity = 1.6, toxicity_spread = 1.2, slope_spread = 0.35;

template <std::size_t N>
std::array<double, N> normals(RandomStream& random, double sd) {
  std::array<double, N> values;
  for (double& value : values) value = sd * random.normal();
  return values;
}

template <std::size_t N>
double product(const std::array<double, N>& a, const std::array<double, N>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < N; ++i) sum += a[i] * b[i];
  return sum;
}

// Variance of the area under curves whose log10 EC50 lies `scale` times as far from the middle.
double area_variance(const std::vector<HillCurve>& curves, double scale) {
  double sum = 0, squares = 0;
  for (HillCurve each : curves) {
    each.log10_ec50 = middle_log10_ec50 + scale * (each.log10_ec50 - middle_log10_ec50);
    const double area = area_under_curve(each);
    sum += area;
    squares += area * area;
  }
  const auto count = static_cast<double>(curves.size());
  return squares / count - sum * sum / (count * count);
}

// A descriptor: what it is made from, the same for every drug.
class Descriptor {
 public:
  Descriptor(std::uint64_t seed, int number) {
    RandomStream random(seed, static_cast<std::uint64_t>(number), purpose_descriptor);
    kind_ = random.uniform();
    constant_ = std::floor(random.uniform(0, 10));
    scale_ = std::pow(10.0, random.uniform(-1, 2));
    first_ = normals<drug_factors>(random, 0.25);
    second_ = normals<drug_factors>(random, 0.25);
    // Three of the factors matter to a descriptor, as they do to a count of one kind of atom.
    for (std::size_t dropped = 0; dropped + 3 < drug_factors; ++dropped)
      first_[(dropped + static_cast<std::size_t>(number)) % drug_factors] = 0;
  }

  double value(const UnoDrug& drug, double noise) const {
    const double a = 2 * product(first_, drug.z), b = product(second_, drug.z);
    if (kind_ < 0.10) return constant_;
    if (kind_ < 0.55) return scale_ * (a + 0.1 * noise);
    if (kind_ < 0.70) return scale_ * std::tanh(a);
    if (kind_ < 0.80) return scale_ * a * b;
    if (kind_ < 0.90) return std::round(3 * a + 6);  // a count
    return constant_ + scale_ * b;                   // collinear with all others of this kind
  }

 private:
  double kind_, constant_, scale_;
  std::array<double, drug_factors> first_, second_;
};

}  // namespace

double uno_study_offset(int study) { return (study - 2) / std::sqrt(2.0); }

UnoCell make_cell(std::uint64_t seed, std::uint64_t cell) {
  RandomStream random(seed, cell, purpose_cell);
  UnoCell made;
  made.tumour_type = static_cast<int>(random.below(tumour_types));
  RandomStream type(seed, static_cast<std::uint64_t>(made.tumour_type), purpose_type);
  const auto centre = normals<cell_factors>(type, std::sqrt(0.5));
  made.z = normals<cell_factors>(random, std::sqrt(0.5));
  for (std::size_t i = 0; i < cell_factors; ++i) made.z[i] += centre[i];
  return made;
}

UnoDrug make_drug(std::uint64_t seed, std::uint64_t drug) {
  RandomStream random(seed, drug, purpose_drug);
  UnoDrug made;
  made.z = normals<drug_factors>(random, 1);
  // The target and its strength follow from the factors, so that the descriptors know of them.
  made.target = static_cast<int>(std::ranges::max_element(made.z) - made.z.begin());
  made.target_strength = target_spread * (1 + 0.5 * std::tanh(made.z[0]));
  made.slope = std::exp(slope_spread * made.z[1]);
  made.toxicity = middle_toxicity + toxicity_spread * made.z[2];
  return made;
}

UnoResponse::UnoResponse(std::uint64_t seed, double variance) {
  RandomStream random(seed, 0, purpose_coupling);
  coupling_ =
      normals<drug_factors * cell_factors>(random, coupling_spread / std::sqrt(drug_factors * cell_factors));
  constexpr int panel = 150;  // cells and drugs
  std::vector<UnoCell> cells;
  std::vector<HillCurve> curves;
  for (std::uint64_t i = 0; i < panel; ++i) cells.push_back(make_cell(seed, i));
  for (std::uint64_t i = 0; i < panel; ++i)
    for (const UnoCell& cell : cells) curves.push_back(curve(cell, make_drug(seed, i)));
  double low = 0, high = 4;
  for (int step = 0; step < 16; ++step) {
    scale_ = (low + high) / 2;
    (area_variance(curves, scale_) < variance ? low : high) = scale_;
  }
}

HillCurve UnoResponse::curve(const UnoCell& cell, const UnoDrug& drug) const {
  double deviation = drug_spread * drug.z[3];
  for (std::size_t d = 0; d < drug_factors; ++d)
    for (std::size_t c = 0; c < cell_factors; ++c)
      deviation += drug.z[d] * coupling_[d * cell_factors + c] * cell.z[c];
  deviation -= drug.target_strength * std::tanh(cell.z[static_cast<std::size_t>(drug.target)]);
  const double resistance = 0.5 * cell.z[cell_factors - 1];
  return {drug.slope, middle_log10_ec50 + scale_ * deviation, 1 / (1 + std::exp(drug.toxicity - resistance))};
}

std::vector<float> expression_table(std::uint64_t seed, const std::vector<UnoCell>& cells) {
  constexpr int genes_a_block = 16;
  constexpr double noise = 0.5;
  std::vector<float> table(cells.size() * gene_count);
  for (int gene = 0; gene < gene_count; ++gene) {
    RandomStream block(seed, static_cast<std::uint64_t>(gene / genes_a_block), purpose_block);
    RandomStream own(seed, static_cast<std::uint64_t>(gene), purpose_gene);
    const double mean = own.uniform(0, 10);
    auto weights = normals<cell_factors>(block, 0.2);
    const auto apart = normals<cell_factors>(own, 0.12);
    for (std::size_t i = 0; i < cell_factors; ++i) weights[i] += apart[i];
    RandomStream random(seed, static_cast<std::uint64_t>(gene), purpose_gene_noise);
    for (std::size_t cell = 0; cell < cells.size(); ++cell)
      table[cell * gene_count + static_cast<std::size_t>(gene)] =
          static_cast<float>(mean + product(weights, cells[cell].z) + noise * random.normal());
  }
  return table;
}

std::vector<float> descriptor_table(std::uint64_t seed, const std::vector<UnoDrug>& drugs) {
  std::vector<float> table(drugs.size() * descriptor_count);
  for (int number = 0; number < descriptor_count; ++number) {
    const Descriptor descriptor(seed, number);
    RandomStream random(seed, static_cast<std::uint64_t>(number), purpose_descriptor_noise);
    for (std::size_t drug = 0; drug < drugs.size(); ++drug)
      table[drug * descriptor_count + static_cast<std::size_t>(number)] =
          static_cast<float>(descriptor.value(drugs[drug], random.normal()));
  }
  return table;
}

std::vector<float> fingerprint_table(std::uint64_t seed, const std::vector<UnoDrug>& drugs) {
  // Of a standard normal number, what an eighth lies above.
  constexpr double eighth = 1.1503, noise = 0.3;
  std::vector<float> table(drugs.size() * fingerprint_count);
  for (int bit = 0; bit < fingerprint_count; ++bit) {
    RandomStream own(seed, static_cast<std::uint64_t>(bit), purpose_fingerprint);
    const auto weights = normals<drug_factors>(own, std::sqrt((1 - noise * noise) / drug_factors));
    RandomStream random(seed, static_cast<std::uint64_t>(bit), purpose_fingerprint_noise);
    for (std::size_t drug = 0; drug < drugs.size(); ++drug)
      table[drug * fingerprint_count + static_cast<std::size_t>(bit)] =
          product(weights, drugs[drug].z) + noise * random.normal() > eighth ? 1.0f : 0.0f;
  }
  return table;
}

}  // namespace superstep::data
