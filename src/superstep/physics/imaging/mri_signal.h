// Contrast of magnetic resonance images: signal of a tissue in a sequence, and the noise of magnitudes.
#pragma once

#include <span>
#include <string_view>

#include "superstep/base/random.h"

namespace superstep::data {

struct Tissue {
  std::string_view name;
  double t1_ms, t2_ms;    // relaxation times
  double proton_density;  // relative to water
};

enum class TissueKind { air, bone, fat, csf, grey, white, lesion };
inline constexpr int tissue_kinds = 7;
const Tissue& tissue_of(TissueKind kind);

// Fluid-attenuated inversion recovery, TR/TE/TI 9000/120/2400 ms:
// PD (1 - 2 exp(-TI/T1) + exp(-TR/T1)) exp(-TE/T2). Fluid is nulled.
double flair_signal(const Tissue& tissue);

// T1-weighted spin echo, TR/TE 600/12 ms: PD (1 - exp(-TR/T1)) exp(-TE/T2).
double t1_weighted_signal(const Tissue& tissue);

// The tissue with a contrast agent of that concentration: 1/T1' = 1/T1 + r1 C, r1 = 4.5 /(mmol/l s).
Tissue with_contrast(const Tissue& tissue, double concentration_mmol_l);

// The magnitude of a complex signal with normal noise of deviation `sigma` in both parts (S. O. Rice).
double rician(RandomStream& random, double signal, double sigma);

}  // namespace superstep::data
