#include "superstep/physics/materials/stripes.h"

#include <algorithm>
#include <cmath>

#include "superstep/physics/random_field.h"

namespace superstep::data {
namespace {

// Edges of phases are as sharp as the electron beam.
constexpr double beam_px = 0.6, grain_px = 1.5, modulation_px = 40;

std::vector<Stripe> draw_stripes(RandomStream& random, int size) {
  std::vector<Stripe> stripes(5 + random.below(max_stripes - 4));
  for (Stripe& stripe : stripes) {
    stripe.centre_px = random.uniform(0, size);
    stripe.width_px = random.uniform(1, 4);
    stripe.amplitude = random.uniform(0.05, 0.25) * (random.uniform() < 0.5 ? -1 : 1);
  }
  return stripes;
}

void add_stripe(RandomStream& random, const Stripe& stripe, std::vector<float>& grey, int size) {
  const std::vector<float> along = gaussian_field(random, size, 1, modulation_px);
  std::vector<float> across;
  for (int x = 0; x < size; ++x) {
    const double u = (x - stripe.centre_px) / stripe.width_px;
    across.push_back(static_cast<float>(stripe.amplitude * std::exp(-0.5 * u * u)));
  }
  for (std::size_t y = 0; y < along.size(); ++y)
    for (std::size_t x = 0; x < across.size(); ++x)
      grey[y * across.size() + x] += across[x] * (1 + 0.3f * along[y]);
}

std::vector<float> phases(const Microstructure& section, const Micrograph& picture) {
  std::vector<float> grey;
  for (std::uint8_t conducts : section.conductor)
    grey.push_back(static_cast<float>(conducts ? picture.conductor : picture.insulator));
  blur(grey, section.size, section.size, gaussian_kernel(beam_px), Border::clamp);
  return grey;
}

}  // namespace

void put_stripes(std::byte* memory, const Micrograph& picture) {
  float* at = reinterpret_cast<float*>(memory);
  for (const Stripe& stripe : picture.stripes)
    for (double value : {stripe.centre_px, stripe.width_px, stripe.amplitude})
      *at++ = static_cast<float>(value);
}

Micrograph draw_micrograph(RandomStream& random, const Microstructure& section) {
  const int size = section.size;
  Micrograph picture;
  picture.conductor = random.uniform(0.25, 0.40);
  picture.insulator = picture.conductor + random.uniform(0.20, 0.35);
  picture.texture = random.uniform(0.01, 0.04);
  picture.noise = random.uniform(0.01, 0.05);
  picture.stripes = draw_stripes(random, size);

  std::vector<float> grey = phases(section, picture);
  const std::vector<float> grains = gaussian_field(random, size, size, grain_px);
  for (const Stripe& stripe : picture.stripes) add_stripe(random, stripe, grey, size);
  for (std::size_t i = 0; i < grey.size(); ++i) {
    const double value = grey[i] + picture.texture * grains[i] + picture.noise * random.normal();
    picture.pixels.push_back(static_cast<std::uint8_t>(std::lround(255 * std::clamp(value, 0.0, 1.0))));
  }
  return picture;
}

}  // namespace superstep::data
