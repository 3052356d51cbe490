// The shot behind a histogram of electrons, by maximum likelihood: what is best when the physics is known.
#pragma once

#include <cstdint>
#include <span>

#include "superstep/physics/xray/cookiebox.h"

namespace superstep::baseline {

struct ShotFit {
  data::Shot shot;
  double background = 0;  // density of every bin, fitted for itself
  double deviance = 0;    // of the counts about the fit: twice the difference of log likelihoods
};

struct ShotFitSettings {
  int most_spikes = 12;
  double least_gain = 30;  // of the deviance, without which no further spike is taken; three parameters each
  std::size_t starts = 4;  // kicks to begin with, those that gather the electrons best
};

// Counts [128 angles, 128 bins] are Poisson with mean 5 x density. Spikes are found one after another, each
// where the electrons that the fit so far leaves over agree best, and all are then fitted together by
// damped scoring. The best of several such searches is kept; nothing
// proves that it is the best there is.
ShotFit fit_shot(std::span<const std::uint8_t> counts, const ShotFitSettings& settings = {});

// The density of the fit, [128, 128].
data::CookieboxDensity density_of(const ShotFit& fit);

}  // namespace superstep::baseline
