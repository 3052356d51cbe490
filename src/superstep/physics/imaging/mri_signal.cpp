#include "superstep/physics/imaging/mri_signal.h"

#include <cmath>

namespace superstep::data {

const Tissue& tissue_of(TissueKind kind) {
  // At 1.5 T. Cortical bone gives next to no signal: its T2 is shorter than any echo time.
  static const Tissue table[] = {
      {"air", 1000, 100, 0},   {"bone", 300, 0.5, 0.15}, {"fat", 250, 70, 0.9},      {"csf", 4000, 2000, 1},
      {"grey", 950, 100, 0.8}, {"white", 600, 80, 0.7},  {"lesion", 1500, 180, 0.85}};
  return table[static_cast<int>(kind)];
}

double flair_signal(const Tissue& tissue) {
  constexpr double repetition = 9000, echo = 120, inversion = 2400;
  return tissue.proton_density *
         (1 - 2 * std::exp(-inversion / tissue.t1_ms) + std::exp(-repetition / tissue.t1_ms)) *
         std::exp(-echo / tissue.t2_ms);
}

double t1_weighted_signal(const Tissue& tissue) {
  constexpr double repetition = 600, echo = 12;
  return tissue.proton_density * (1 - std::exp(-repetition / tissue.t1_ms)) * std::exp(-echo / tissue.t2_ms);
}

Tissue with_contrast(const Tissue& tissue, double concentration_mmol_l) {
  constexpr double relaxivity_per_ms = 4.5e-3;
  Tissue enhanced = tissue;
  enhanced.t1_ms = 1 / (1 / tissue.t1_ms + relaxivity_per_ms * concentration_mmol_l);
  return enhanced;
}

double rician(RandomStream& random, double signal, double sigma) {
  const double real = signal + sigma * random.normal(), imaginary = sigma * random.normal();
  return std::hypot(real, imaginary);
}

}  // namespace superstep::data
