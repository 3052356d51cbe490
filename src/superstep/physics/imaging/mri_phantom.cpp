#include "superstep/physics/imaging/mri_phantom.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace superstep::data {
namespace {

constexpr double pi = std::numbers::pi;
constexpr double field_of_view = 1.1;
constexpr int angle_bins = 2048;   // of the outline and the folds, tabulated for a slice
constexpr int samples_a_side = 2;  // of a pixel
// Radii of the layers as shares of the head's.
constexpr double skull_outside = 0.94, skull_inside = 0.85, cortex = 0.82;
constexpr double rim_width = 0.25;  // of the enhancing rim, in units of LesionBlob::inside
// What 255 stands for in each channel: a little above the brightest tissue of interest.
constexpr double full_scale[] = {0.85, 0.36, 0.85};

Wave draw_wave(RandomStream& random, double k, double weight) {
  const double u = random.uniform(-1, 1), angle = random.uniform(0, 2 * pi), s = std::sqrt(1 - u * u);
  return {k * s * std::cos(angle), k * s * std::sin(angle), k * u, random.uniform(0, 2 * pi), weight};
}

// Waves around the head: a whole number of periods in the angle, which takes the place of x.
Wave draw_angular_wave(RandomStream& random, int periods, double kz, double weight) {
  return {static_cast<double>(periods), 0, kz * random.normal(), random.uniform(0, 2 * pi),
          weight * random.normal()};
}

LesionBlob draw_blob(RandomStream& random, const Head& head) {
  LesionBlob blob;
  const double angle = random.uniform(0, 2 * pi), distance = 0.55 * std::sqrt(random.uniform());
  blob.x = head.half_width * distance * std::cos(angle);
  blob.y = head.half_length * distance * std::sin(angle);
  blob.z = random.uniform(-0.45, 0.55);
  const double radius = random.uniform(0.1, 0.26);
  blob.rx = radius * random.uniform(0.8, 1.25);
  blob.ry = radius * random.uniform(0.8, 1.25);
  blob.rz = radius * random.uniform(0.8, 1.5);
  for (int k = 0; k < 10; ++k)
    blob.roughness.push_back(
        draw_wave(random, 2 * pi / radius * random.uniform(0.4, 1.2), std::sqrt(2.0 / 10)));
  return blob;
}

// Further blobs lie at the edge of the first, so that most lesions are one piece.
void add_blobs(RandomStream& random, Head& head) {
  head.lesion.push_back(draw_blob(random, head));
  for (auto more = random.below(4); more > 0; --more) {
    LesionBlob blob = draw_blob(random, head);
    const LesionBlob& first = head.lesion.front();
    blob.x = first.x + first.rx * random.uniform(-1, 1);
    blob.y = first.y + first.ry * random.uniform(-1, 1);
    blob.z = first.z + first.rz * random.uniform(-1, 1);
    head.lesion.push_back(blob);
  }
}

// The outline and the folds of one slice as functions of the angle.
class SliceShape {
 public:
  SliceShape(const Head& head, double z) : head_(head), z_(z), stretch_(std::sqrt(std::max(0.0, 1 - z * z))) {
    for (int bin = 0; bin < angle_bins; ++bin) {
      const double angle = 2 * pi * bin / angle_bins;
      double radius = 1, groove = 0;
      for (const Wave& wave : head.outline) radius += wave.at(angle, 0, z);
      for (const Wave& wave : head.folds) groove += wave.at(angle, 0, z);
      outline_.push_back(radius);
      // Narrow grooves with broad ridges between them.
      surface_.push_back(cortex - head.fold_depth * std::exp(-4 * groove * groove));
    }
    // The ribbon lines the walls of the grooves too: white matter keeps its distance from the surface at
    // neighbouring angles.
    const int reach = static_cast<int>(head.ribbon / cortex / (2 * pi) * angle_bins);
    for (int bin = 0; bin < angle_bins; ++bin) {
      double lowest = cortex;
      for (int k = bin - reach; k <= bin + reach; ++k)
        lowest = std::min(lowest, surface_[static_cast<std::size_t>((k + angle_bins) % angle_bins)]);
      white_.push_back(lowest - head.ribbon);
    }
  }

  struct Layers {
    TissueKind tissue;
    bool brain;
  };
  Layers at(double x, double y) const {
    if (stretch_ <= 0) return {TissueKind::air, false};
    const double u = x / head_.half_width, v = y / head_.half_length;
    const auto bin = static_cast<std::size_t>((std::atan2(v, u) / (2 * pi) + 1) * angle_bins) % angle_bins;
    const double radius = std::sqrt(u * u + v * v + z_ * z_) / outline_[bin];
    if (radius > 1) return {TissueKind::air, false};
    if (radius > skull_outside) return {TissueKind::fat, false};
    if (radius > skull_inside) return {TissueKind::bone, false};
    if (radius > surface_[bin] || in_fissure(u, v) || in_ventricle(u, v)) return {TissueKind::csf, false};
    const bool grey = radius > white_[bin] || in_deep_grey(u, v);
    return {grey ? TissueKind::grey : TissueKind::white, true};
  }

 private:
  // Between the hemispheres, in front and behind.
  bool in_fissure(double u, double v) const { return std::abs(u) < 0.012 && std::abs(v) > 0.3 && z_ > -0.3; }
  bool in_ventricle(double u, double v) const {
    const double side = std::abs(u) - 0.1 - 0.1 * v * v, w = v + 0.02, h = z_ - 0.08;
    const double s = head_.ventricle_size;
    return side * side / (0.055 * 0.055) + w * w / (0.3 * 0.3) + h * h / (0.25 * 0.25) < s * s;
  }
  bool in_deep_grey(double u, double v) const {
    const double side = std::abs(u) - 0.2, w = v - 0.05, h = z_ + 0.05;
    return side * side / (0.09 * 0.09) + w * w / (0.16 * 0.16) + h * h / (0.2 * 0.2) < 1;
  }

  const Head& head_;
  double z_, stretch_;
  std::vector<double> outline_, surface_, white_;
};

using Signals = std::array<double, 3>;

Signals signals_of(const Tissue& tissue, double contrast_mmol_l) {
  return {t1_weighted_signal(tissue), flair_signal(tissue),
          t1_weighted_signal(with_contrast(tissue, contrast_mmol_l))};
}

// Signals of every tissue, made once for a slice. The agent stays in the vessels of healthy tissue.
struct Palette {
  explicit Palette(const Head& head) {
    for (int kind = 0; kind < tissue_kinds; ++kind)
      healthy[static_cast<std::size_t>(kind)] = signals_of(tissue_of(static_cast<TissueKind>(kind)), 0);
    rim = signals_of(tissue_of(TissueKind::lesion), head.rim_contrast);
  }
  const Signals& of(TissueKind kind) const { return healthy[static_cast<std::size_t>(kind)]; }
  std::array<Signals, tissue_kinds> healthy;
  Signals rim;
};

// How far inside the lesion a point is; far outside without evaluating waves.
double lesion_depth(const Head& head, double x, double y, double z) {
  double depth = -10;
  for (const LesionBlob& blob : head.lesion) {
    const double far = std::max(
        {std::abs(x - blob.x) / blob.rx, std::abs(y - blob.y) / blob.ry, std::abs(z - blob.z) / blob.rz});
    if (far < 2) depth = std::max(depth, blob.inside(x, y, z));
  }
  return depth;
}

bool in_bright_spot(const Head& head, double x, double y, double z) {
  return std::any_of(head.spots.begin(), head.spots.end(), [&](const BrightSpot& spot) {
    return std::hypot(x - spot.x, y - spot.y, z - spot.z) < spot.radius;
  });
}

Signals mix(const Signals& a, const Signals& b, double share) {
  Signals mixed;
  for (std::size_t k = 0; k < 3; ++k) mixed[k] = std::lerp(a[k], b[k], share);
  return mixed;
}

struct Point {
  Signals signals;
  bool lesion;
};

Point point_at(const Head& head, const SliceShape& shape, const Palette& palette, double x, double y,
               double z) {
  const SliceShape::Layers layers = shape.at(x, y);
  const Signals &healthy = palette.of(layers.tissue), &sick = palette.of(TissueKind::lesion);
  if (!layers.brain) return {healthy, false};
  const double depth = lesion_depth(head, x, y, z);
  if (depth > head.necrosis) return {mix(sick, palette.of(TissueKind::csf), 0.7), true};
  if (depth > 0) {
    double share = head.infiltration + 0.5 * depth;
    for (const Wave& wave : head.unevenness) share += wave.at(x, y, z);
    return {mix(healthy, depth < rim_width ? palette.rim : sick, std::clamp(share, 0.25, 1.0)), true};
  }
  if (layers.tissue != TissueKind::white) return {healthy, false};
  // Fluid between the fibres of white matter looks like a thinner lesion, and so do bright spots.
  if (depth > -head.oedema) return {mix(healthy, sick, 0.4), false};
  return {in_bright_spot(head, x, y, z) ? mix(healthy, sick, 0.8) : healthy, false};
}

std::uint8_t to_byte(double signal, double scale) {
  return static_cast<std::uint8_t>(std::lround(255 * std::min(1.0, signal / scale)));
}

}  // namespace

double Wave::at(double x, double y, double z) const {
  return weight * std::cos(kx * x + ky * y + kz * z + phase);
}

double LesionBlob::inside(double px, double py, double pz) const {
  const double u = (px - x) / rx, v = (py - y) / ry, w = (pz - z) / rz;
  double value = 1 - (u * u + v * v + w * w);
  for (const Wave& wave : roughness) value += 0.22 * wave.at(px, py, pz);
  return value;
}

Head::Head(RandomStream& random) {
  half_width = random.uniform(0.70, 0.80);
  half_length = random.uniform(0.90, 1.0);
  for (std::size_t k = 0; k < outline.size(); ++k)
    outline[k] = draw_angular_wave(random, static_cast<int>(k) + 1, 2, 0.012);
  for (std::size_t k = 0; k < folds.size(); ++k)
    folds[k] = draw_angular_wave(random, 4 + static_cast<int>(k), 8, 0.28);
  fold_depth = random.uniform(0.08, 0.14);
  ribbon = random.uniform(0.05, 0.07);
  ventricle_size = random.uniform(0.7, 1.4);
  add_blobs(random, *this);
  infiltration = random.uniform(0.35, 0.7);
  for (Wave& wave : unevenness) wave = draw_wave(random, random.uniform(8, 25), 0.12);
  necrosis = random.uniform() < 0.3 ? random.uniform(0.5, 0.8) : 2;
  oedema = random.uniform() < 0.5 ? random.uniform(0.2, 0.8) : 0;
  rim_contrast = random.uniform() < 0.5 ? random.uniform(0.3, 1.0) : 0;
  spots.resize(random.below(9));
  for (BrightSpot& spot : spots)
    spot = {random.uniform(-0.4, 0.4), random.uniform(-0.5, 0.5), random.uniform(-0.4, 0.6),
            random.uniform(0.02, 0.06)};
  bias_amplitude = random.uniform(0.05, 0.2);
  for (Wave& wave : bias) wave = draw_wave(random, random.uniform(1, 2), bias_amplitude / 2);
  signal_to_noise = random.uniform(20, 40);
}

MriSlice draw_slice(const Head& head, double z, int size, RandomStream& noise) {
  const SliceShape shape(head, z);
  const Palette palette(head);
  const auto plane = static_cast<std::size_t>(size) * static_cast<std::size_t>(size);
  MriSlice slice{std::vector<std::uint8_t>(3 * plane), std::vector<std::uint8_t>(plane)};
  const Signals white = palette.healthy[static_cast<std::size_t>(TissueKind::white)];
  constexpr int samples = samples_a_side * samples_a_side;
  for (std::size_t i = 0; i < plane; ++i) {
    Signals mean{};
    int lesion = 0;
    double x = 0, y = 0;
    for (int s = 0; s < samples; ++s) {
      x = field_of_view * (2 *
                               (static_cast<double>(i % static_cast<std::size_t>(size)) +
                                (s % samples_a_side + 0.5) / samples_a_side) /
                               size -
                           1);
      y = field_of_view * (2 *
                               (static_cast<double>(i / static_cast<std::size_t>(size)) +
                                (s / samples_a_side + 0.5) / samples_a_side) /
                               size -
                           1);
      const Point point = point_at(head, shape, palette, x, y, z);
      for (std::size_t k = 0; k < 3; ++k) mean[k] += point.signals[k] / samples;
      lesion += point.lesion;
    }
    double gain = 1;
    for (const Wave& wave : head.bias) gain += wave.at(x, y, z);
    slice.mask[i] = 2 * lesion >= samples;
    for (std::size_t k = 0; k < 3; ++k)
      slice.pixels[k * plane + i] =
          to_byte(rician(noise, gain * mean[k], white[k] / head.signal_to_noise), full_scale[k]);
  }
  return slice;
}

}  // namespace superstep::data
