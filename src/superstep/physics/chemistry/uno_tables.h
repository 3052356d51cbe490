// Cell lines and drugs of a made-up screening study: what the response of each pair follows from.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "superstep/base/thread_pool.h"
#include "superstep/physics/chemistry/dose_response.h"

namespace superstep::data {

inline constexpr int gene_count = 942, descriptor_count = 5270, fingerprint_count = 2048;
inline constexpr int cell_factors = 20, drug_factors = 16, tumour_types = 21;

// Measured is at log10 concentrations (mol/l) between these, by studies each of which has an offset.
inline constexpr double lowest_uno_dose = -10, highest_uno_dose = -4;
inline constexpr int uno_studies = 5;

// Offsets of equal steps with the standard deviation 1.
double uno_study_offset(int study);

struct UnoCell {
  int tumour_type;
  std::array<double, cell_factors> z;
};
struct UnoDrug {
  std::array<double, drug_factors> z;
  int target;                               // the cell factor that the drug acts on
  double target_strength, slope, toxicity;  // slope of the Hill curve; logit of 1 - Einf
};

// All of it is a function of (seed, number) of each cell, drug, gene or descriptor.
UnoCell make_cell(std::uint64_t seed, std::uint64_t cell);
UnoDrug make_drug(std::uint64_t seed, std::uint64_t drug);

// log10 EC50 = a + z_d' M z_c + the target's term; Einf by the drug's toxicity and the cell's resistance.
// The spread about the middle is scaled so that the exact area under the curve has the given variance over a
// panel of cells and drugs of the seed.
class UnoResponse {
 public:
  UnoResponse(std::uint64_t seed, double variance);
  HillCurve curve(const UnoCell& cell, const UnoDrug& drug) const;

 private:
  std::array<double, drug_factors * cell_factors> coupling_;
  double scale_ = 1;
};

// Expression of genes in blocks that vary together: [cells, 942], and molecular descriptors, many collinear,
// some constant, some not linear in the drug's factors: [drugs, 5270]. Rows first.
std::vector<float> expression_table(std::uint64_t seed, const std::vector<UnoCell>& cells);
std::vector<float> descriptor_table(std::uint64_t seed, const std::vector<UnoDrug>& drugs);

// Bits, 0 or 1, of which substructures a molecule has, after its factors: [drugs, 2048], an eighth of them
// set in the mean, as those of circular fingerprints are few.
std::vector<float> fingerprint_table(std::uint64_t seed, const std::vector<UnoDrug>& drugs);

}  // namespace superstep::data
