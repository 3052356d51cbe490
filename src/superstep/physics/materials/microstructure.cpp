#include "superstep/physics/materials/microstructure.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "superstep/physics/random_field.h"

namespace superstep::data {
namespace {

constexpr double smallest_radius_px = 3;
constexpr int trials_a_size = 200;

struct Particle {
  double radius, aspect, angle;  // radius of the disc of equal area; long axis = radius * sqrt(aspect)
};

// The pixels of a particle as offsets from its centre pixel: one span [first, last] a row.
struct Footprint {
  struct Row {
    int y, first, last;
  };
  std::vector<Row> rows;
  int area = 0;
};

Footprint footprint_of(const Particle& particle) {
  const double a = particle.radius * std::sqrt(particle.aspect),
               b = particle.radius / std::sqrt(particle.aspect);
  const double c = std::cos(particle.angle), s = std::sin(particle.angle);
  const int reach = static_cast<int>(std::ceil(a));
  Footprint footprint;
  for (int y = -reach; y <= reach; ++y) {
    int first = reach + 1, last = -reach - 1;
    for (int x = -reach; x <= reach; ++x) {
      const double u = (c * x + s * y) / a, v = (c * y - s * x) / b;
      if (u * u + v * v > 1) continue;
      first = std::min(first, x);
      last = x;
    }
    if (first > last) continue;
    footprint.rows.push_back({y, first, last});
    footprint.area += last - first + 1;
  }
  return footprint;
}

// Calls visit(x, y) for the pixels of a footprint inside the image until it returns false.
template <class Visit>
bool for_each_pixel(const Footprint& footprint, int cx, int cy, int size, Visit visit) {
  for (const Footprint::Row& row : footprint.rows) {
    const int y = cy + row.y;
    if (y < 0 || y >= size) continue;
    for (int x = std::max(0, cx + row.first); x <= std::min(size - 1, cx + row.last); ++x)
      if (!visit(x, y)) return false;
  }
  return true;
}

int place(Microstructure& image, const Footprint& footprint, int cx, int cy) {
  int covered = 0;
  for_each_pixel(footprint, cx, cy, image.size, [&](int x, int y) {
    covered += image.at(x, y);
    image.at(x, y) = 0;
    return true;
  });
  return covered;
}

bool fits(const Microstructure& image, const Footprint& footprint, int cx, int cy, int allowed) {
  return for_each_pixel(footprint, cx, cy, image.size,
                        [&](int x, int y) { return image.at(x, y) || --allowed >= 0; });
}

// A centre for which some of the particle may lie outside the image, so that edges look like cuts.
int draw_centre(RandomStream& random, int size, double margin) {
  return static_cast<int>(std::floor(random.uniform(-margin, size + margin)));
}

Particle draw_particle(RandomStream& random, const ParticlePacking& packing) {
  Particle particle{packing.median_radius_px * std::exp(packing.sigma_ln * random.normal()), 1, 0};
  if (random.uniform() < packing.ellipse_share) particle.aspect = random.uniform(1, packing.max_aspect);
  particle.angle = random.uniform(0, std::numbers::pi);
  return particle;
}

// Enough particles to cover the fraction, overlaps and cut edges included, largest first.
std::vector<Particle> draw_particles(RandomStream& random, int size, const ParticlePacking& packing) {
  std::vector<Particle> particles;
  double area = 2 * packing.fraction * size * size;
  while (area > 0) {
    particles.push_back(draw_particle(random, packing));
    area -= std::numbers::pi * particles.back().radius * particles.back().radius;
  }
  return particles;
}

// Covered pixels; 0 when the particle found no room at this size.
int try_to_place(RandomStream& random, Microstructure& image, const Particle& particle, double max_overlap) {
  const Footprint footprint = footprint_of(particle);
  const int allowed = static_cast<int>(max_overlap * footprint.area);
  for (int trial = 0; trial < trials_a_size; ++trial) {
    const int cx = draw_centre(random, image.size, particle.radius / 2);
    const int cy = draw_centre(random, image.size, particle.radius / 2);
    if (!fits(image, footprint, cx, cy, allowed)) continue;
    if (const int covered = place(image, footprint, cx, cy)) return covered;
  }
  return 0;
}

}  // namespace

double Microstructure::insulator_fraction() const {
  const auto conducting = std::accumulate(conductor.begin(), conductor.end(), std::size_t{0});
  return 1.0 - static_cast<double>(conducting) / static_cast<double>(conductor.size());
}

Microstructure pack_particles(RandomStream& random, int size, const ParticlePacking& packing) {
  Microstructure image(size);
  // The list is cut where its discs would cover the fraction, then sorted: what is left over serves as
  // replacement for area lost to overlaps and edges, in the order it was drawn.
  std::vector<Particle> particles = draw_particles(random, size, packing);
  const auto needed = static_cast<std::ptrdiff_t>(particles.size() / 2);
  std::sort(particles.begin(), particles.begin() + needed,
            [](const Particle& a, const Particle& b) { return a.radius > b.radius; });
  int missing = static_cast<int>(packing.fraction * size * size);
  for (Particle particle : particles) {
    int covered = 0;
    while (missing > 0 && !(covered = try_to_place(random, image, particle, packing.max_overlap))) {
      particle.radius *= 0.9;
      if (particle.radius < smallest_radius_px) return image;
    }
    missing -= covered;
    if (missing <= 0) break;
  }
  return image;
}

Microstructure overlapping_discs(RandomStream& random, int size, double min_radius_px, double max_radius_px,
                                 double fraction) {
  Microstructure image(size);
  int missing = static_cast<int>(fraction * size * size);
  while (missing > 0) {
    const double radius = random.uniform(min_radius_px, max_radius_px);
    const int cx = draw_centre(random, size, radius), cy = draw_centre(random, size, radius);
    missing -= place(image, footprint_of({radius, 1, 0}), cx, cy);
  }
  return image;
}

Microstructure threshold_field(RandomStream& random, int size, double correlation_px, double fraction) {
  Microstructure image(size);
  const std::vector<float> field = gaussian_field(random, size, size, correlation_px / 2);
  std::vector<float> sorted = field;
  const auto below = static_cast<std::ptrdiff_t>((1 - fraction) * static_cast<double>(field.size()));
  if (below >= static_cast<std::ptrdiff_t>(sorted.size())) return image;
  std::nth_element(sorted.begin(), sorted.begin() + below, sorted.end());
  const float level = sorted[static_cast<std::size_t>(below)];
  for (std::size_t i = 0; i < field.size(); ++i) image.conductor[i] = field[i] < level;
  return image;
}

void add_cracks(RandomStream& random, Microstructure& image, int count) {
  for (int crack = 0; crack < count; ++crack) {
    double x = random.uniform(0, image.size), y = random.uniform(0, image.size);
    double direction = random.uniform(0, 2 * std::numbers::pi);
    const Footprint pen = footprint_of({random.uniform(0.5, 1.0), 1, 0});
    for (double length = random.uniform(30, 120); length > 0; length -= 0.5) {
      place(image, pen, static_cast<int>(x), static_cast<int>(y));
      direction += 0.12 * random.normal();
      x += 0.5 * std::cos(direction);
      y += 0.5 * std::sin(direction);
    }
  }
}

Section draw_section(RandomStream& random, const SectionRanges& ranges) {
  constexpr double largest_field_fraction = 0.5;
  Section section;
  section.is_field = random.uniform() >= ranges.particle_share;
  section.length_px = section.is_field ? random.uniform(6, 20) : random.uniform(8, 14);
  const double highest =
      section.is_field ? std::min(ranges.fraction_high, largest_field_fraction) : ranges.fraction_high;
  section.fraction = random.uniform(ranges.fraction_low, std::max(ranges.fraction_low, highest));
  section.max_overlap = random.uniform(0, 0.05);
  if (random.uniform() < ranges.crack_share) section.cracks = 1 + static_cast<int>(random.below(8));
  return section;
}

Microstructure build_section(RandomStream& random, int size, const Section& section) {
  Microstructure image = section.is_field ? threshold_field(random, size, section.length_px, section.fraction)
                                          : pack_particles(random, size,
                                                           {.fraction = section.fraction,
                                                            .median_radius_px = section.length_px,
                                                            .max_overlap = section.max_overlap});
  add_cracks(random, image, section.cracks);
  return image;
}

}  // namespace superstep::data
