#include "superstep/physics/flow/middle_atmosphere.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace superstep::data {
namespace {

constexpr double two_pi = 2 * std::numbers::pi;

double bell(double x, double centre, double width) {
  const double at = (x - centre) / width;
  return std::exp(-at * at);
}

// A smooth random profile of variance one: waves of several vertical lengths, all phases alike.
class Ripples {
 public:
  Ripples(RandomStream& random, double shortest, double longest) {  // km
    for (Wave& wave : waves_) {
      wave.number = two_pi / (shortest * std::pow(longest / shortest, random.uniform()));
      wave.phase = random.uniform(0, two_pi);
      wave.size = random.normal() * std::sqrt(2.0 / waves_.size());
    }
  }
  double at(double z) const {
    double sum = 0;
    for (const Wave& wave : waves_) sum += wave.size * std::cos(wave.number * z + wave.phase);
    return sum;
  }

 private:
  struct Wave {
    double number = 0, phase = 0, size = 0;
  };
  std::array<Wave, 6> waves_;
};

// What the zonal mean wind of a column is made of; heights in km, speeds in m/s.
struct Jets {
  double subtropical, winter, summer, oscillation, phase;

  double at(double z) const {
    const double below = z < 11 ? bell(z, 11, 6) : bell(z, 11, 7);
    // The jets of the stratosphere begin above 15 km, are strongest at 55 km and weaken above.
    const double rise = z < 15 ? 0 : z < 55 ? std::pow((z - 15) / 40, 1.2) : 1 - 0.35 * (z - 55) / 8;
    return subtropical * below + (winter - summer) * rise +
           oscillation * bell(z, 26, 11) * std::sin(two_pi * z / 24 + phase);
  }
};

Jets draw_jets(RandomStream& random, double latitude, double season) {
  const double side = std::abs(latitude), winter = latitude >= 0 ? season : -season;
  Jets jets{};
  jets.subtropical = (30 + 10 * winter) * bell(side, 35, 17) * random.uniform(0.5, 1.5);
  // Now and then the polar vortex has broken down: the factor reaches below zero.
  jets.winter = 75 * std::max(winter, 0.0) * bell(side, 60, 25) * random.uniform(-0.2, 1.4);
  jets.summer = 65 * std::max(-winter, 0.0) * bell(side, 45, 35) * random.uniform(0.6, 1.3);
  jets.oscillation = 28 * bell(side, 0, 16) * random.uniform(0.6, 1.4);
  jets.phase = random.uniform(0, two_pi);
  return jets;
}

// Temperatures at heights in km, and straight lines between them.
struct Knots {
  std::array<double, 5> z, temperature;

  double at(double height) const {
    std::size_t k = 1;
    while (k + 1 < z.size() && height > z[k]) ++k;
    const double share = (height - z[k - 1]) / (z[k] - z[k - 1]);
    return temperature[k - 1] + share * (temperature[k] - temperature[k - 1]);
  }
};

Knots draw_temperatures(RandomStream& random, double latitude, double season) {
  const double sine = std::sin(latitude * std::numbers::pi / 180), winter = latitude >= 0 ? season : -season;
  const double side = std::abs(latitude);
  const double ground = 300 - (45 + 12 * winter) * sine * sine + 3 * random.normal();
  const double tropopause = 9 + 7.5 * bell(side, 0, 38) + 0.7 * random.normal();
  const double cold = std::max(190.0, ground - 6.5 * tropopause);
  const double polar = winter * sine * sine;
  return {{0, tropopause, tropopause + 9, 48, 63},
          {ground, cold, cold + 5 - 14 * std::max(polar, 0.0), 266 - 14 * polar + 5 * random.normal(),
           236 + 6 * polar + 5 * random.normal()}};
}

}  // namespace

AirColumn draw_air_column(RandomStream& random, const WaveGrid& grid) {
  AirColumn column;
  column.latitude = std::asin(random.uniform(-1, 1)) * 180 / std::numbers::pi;
  column.season = std::cos(random.uniform(0, two_pi));
  const Jets jets = draw_jets(random, column.latitude, column.season);
  const Knots knots = draw_temperatures(random, column.latitude, column.season);
  const Ripples zonal(random, 7, 45), meridional(random, 7, 45), warm(random, 9, 45);
  for (int k = 0; k < grid.levels; ++k) {
    const double z = (k + 0.5) * grid.depth() / 1e3;  // km
    const double grown = 3 + 11 * z / 60;             // m/s: what passes by is larger the higher it is
    column.u.push_back(jets.at(z) + grown * zonal.at(z));
    column.v.push_back(0.8 * grown * meridional.at(z));
    column.temperature.push_back(knots.at(z) + (1 + 5 * z / 60) * warm.at(z));
  }
  return column;
}

}  // namespace superstep::data
