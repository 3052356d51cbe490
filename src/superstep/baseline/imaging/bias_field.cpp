#include "superstep/baseline/imaging/bias_field.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>

#include "superstep/physics/fft.h"

namespace superstep::baseline {
namespace {

constexpr std::size_t least_voxels = 1000;
constexpr int bins = 200, padded_bins = 512;  // of the histogram; padded so that its ends do not meet

// A voxel that is looked at; coordinates from 0 to 1.
struct Sample {
  std::array<double, 3> at;
  double log_value;
};

// Values of the four cubic B-splines that are not 0 at `t` in a span, 0 to 1.
std::array<double, 4> spline_weights(double t) {
  const double s = 1 - t, t2 = t * t, t3 = t2 * t;
  return {s * s * s / 6, (3 * t3 - 6 * t2 + 4) / 6, (-3 * t3 + 3 * t2 + 3 * t + 1) / 6, t3 / 6};
}

// A cubic B-spline with so many spans along each of three axes.
class Spline {
 public:
  explicit Spline(int spans) : spans_(spans), side_(spans + 3), control_(cube(side_), 0.0) {}

  double at(const std::array<double, 3>& place) const {
    double sum = 0;
    visit(place, [&](std::size_t k, double weight) { sum += weight * control_[k]; });
    return sum;
  }
  void operator+=(const Spline& other) {  // of as many spans
    for (std::size_t k = 0; k < control_.size(); ++k) control_[k] += other.control_[k];
  }
  // Lee's approximation: each control point is the weighted mean of what the values around it ask for.
  void fit(const std::vector<Sample>& samples, const std::vector<double>& values) {
    std::vector<double> weighted(control_.size(), 0.0), weights(control_.size(), 0.0);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      double squares = 0;
      visit(samples[i].at, [&](std::size_t, double w) { squares += w * w; });
      visit(samples[i].at, [&](std::size_t k, double w) {
        weighted[k] += w * w * (w * values[i] / squares);
        weights[k] += w * w;
      });
    }
    for (std::size_t k = 0; k < control_.size(); ++k)
      control_[k] = weights[k] > 0 ? weighted[k] / weights[k] : 0;
  }

 private:
  static std::size_t cube(int side) {
    const auto s = static_cast<std::size_t>(side);
    return s * s * s;
  }
  template <class F>
  void visit(const std::array<double, 3>& place, F use) const {
    std::array<int, 3> first;
    std::array<std::array<double, 4>, 3> weight;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double u = place[axis] * spans_;
      first[axis] = std::clamp(static_cast<int>(u), 0, spans_ - 1);
      weight[axis] = spline_weights(u - first[axis]);
    }
    for (std::size_t z = 0; z < 4; ++z)
      for (std::size_t y = 0; y < 4; ++y) {
        const auto row = ((static_cast<std::size_t>(first[2]) + z) * static_cast<std::size_t>(side_) +
                          static_cast<std::size_t>(first[1]) + y) *
                             static_cast<std::size_t>(side_) +
                         static_cast<std::size_t>(first[0]);
        const double both = weight[2][z] * weight[1][y];
        for (std::size_t x = 0; x < 4; ++x) use(row + x, both * weight[0][x]);
      }
  }

  int spans_, side_;
  std::vector<double> control_;
};

// Maps log intensities to where they would lie if the histogram had not been blurred.
class Sharpening {
 public:
  Sharpening(const std::vector<double>& logs, const BiasSettings& settings) {
    const auto [low, high] = std::ranges::minmax(logs);
    low_ = low;
    step_ = std::max(high - low, 1e-9) / (bins - 1);
    std::vector<std::complex<double>> counts(padded_bins, 0.0);
    for (const double value : logs) {
      const double place = (value - low_) / step_;
      const auto below = static_cast<std::size_t>(place);
      counts[below] += 1 - (place - static_cast<double>(below));
      counts[below + 1] += place - static_cast<double>(below);
    }
    expect(counts, settings);
  }
  double operator()(double value) const {
    const double place = std::clamp((value - low_) / step_, 0.0, bins - 1.0);
    const auto below = std::min(static_cast<std::size_t>(place), expected_.size() - 2);
    return std::lerp(expected_[below], expected_[below + 1], place - static_cast<double>(below));
  }

 private:
  // E[u | v] = integral u F(v - u) U(u) du / integral F(v - u) U(u) du, U the deconvolved histogram.
  void expect(std::vector<std::complex<double>>& counts, const BiasSettings& settings) {
    auto& fft = data::thread_fft<double>({padded_bins});
    std::vector<std::complex<double>> blur(padded_bins);
    const double sigma = settings.blur_fwhm / step_ / std::sqrt(8 * std::log(2.0));
    for (int k = 0; k < padded_bins; ++k) {
      const double distance = std::min(k, padded_bins - k) / sigma;
      blur[static_cast<std::size_t>(k)] = std::exp(-distance * distance / 2);
    }
    double sum = 0;
    for (const auto& value : blur) sum += value.real();
    for (auto& value : blur) value /= sum;
    fft.forward(blur);
    fft.forward(counts);
    for (std::size_t k = 0; k < counts.size(); ++k)
      counts[k] *= std::conj(blur[k]) / (std::norm(blur[k]) + settings.wiener_noise);
    fft.inverse(counts);
    std::vector<std::complex<double>> moments(counts);
    for (std::size_t k = 0; k < counts.size(); ++k) {
      counts[k] = std::max(0.0, counts[k].real() / padded_bins);
      moments[k] = counts[k] * place_of(k);
    }
    for (auto* each : {&counts, &moments}) {
      fft.forward(*each);
      for (std::size_t k = 0; k < each->size(); ++k) (*each)[k] *= blur[k];
      fft.inverse(*each);
    }
    for (std::size_t k = 0; k < bins; ++k) {
      const double share = counts[k].real();
      expected_.push_back(share > 1e-9 * static_cast<double>(padded_bins) ? moments[k].real() / share
                                                                          : place_of(k));
    }
  }
  // Bins beyond the middle of the padding lie below the lowest value.
  double place_of(std::size_t bin) const {
    const int middle = (bins + padded_bins) / 2, k = static_cast<int>(bin);
    return low_ + step_ * (k < middle ? k : k - padded_bins);
  }

  double low_ = 0, step_ = 1;
  std::vector<double> expected_;
};

std::array<double, 3> place_of(int x, int y, int z, int width, int height, int slices) {
  const auto share = [](int k, int n) { return n > 1 ? static_cast<double>(k) / (n - 1) : 0.0; };
  return {share(x, width), share(y, height), share(z, slices)};
}

std::vector<Sample> samples_of(std::span<const std::uint8_t> volume, std::span<const std::uint8_t> mask,
                               int width, int height, int slices, int stride) {
  std::vector<Sample> samples;
  for (int z = 0; z < slices; ++z)
    for (int y = stride / 2; y < height; y += stride)
      for (int x = stride / 2; x < width; x += stride) {
        const auto at =
            (static_cast<std::size_t>(z) * static_cast<std::size_t>(height) + static_cast<std::size_t>(y)) *
                static_cast<std::size_t>(width) +
            static_cast<std::size_t>(x);
        if (mask[at] && volume[at] > 0)
          samples.push_back({place_of(x, y, z, width, height, slices), std::log(double{1} * volume[at])});
      }
  return samples;
}

// One mesh: takes what it finds out of `logs` and returns it.
Spline refine(const std::vector<Sample>& samples, std::vector<double>& logs, int spans,
              const BiasSettings& settings) {
  Spline found(spans);
  for (int k = 0; k < settings.iterations; ++k) {
    const Sharpening sharpened(logs, settings);
    std::vector<double> residual;
    for (const double value : logs) residual.push_back(value - sharpened(value));
    Spline update(spans);
    update.fit(samples, residual);
    double square = 0, mean = 0;
    std::vector<double> change;
    for (const Sample& sample : samples) change.push_back(update.at(sample.at));
    for (const double value : change) mean += value / static_cast<double>(change.size());
    for (std::size_t i = 0; i < logs.size(); ++i) {
      logs[i] -= change[i];
      square += (change[i] - mean) * (change[i] - mean);
    }
    found += update;
    if (std::sqrt(square / static_cast<double>(logs.size())) < settings.tolerance) break;
  }
  return found;
}

}  // namespace

std::vector<float> estimate_gain(std::span<const std::uint8_t> volume, std::span<const std::uint8_t> mask,
                                 int width, int height, int slices, const BiasSettings& settings) {
  const std::vector<Sample> samples = samples_of(volume, mask, width, height, slices, settings.stride);
  std::vector<float> gain(volume.size(), 1.0f);
  if (samples.size() < least_voxels / static_cast<std::size_t>(settings.stride * settings.stride))
    return gain;
  std::vector<double> logs;
  for (const Sample& sample : samples) logs.push_back(sample.log_value);
  std::vector<Spline> field;
  for (int level = 0; level < settings.levels; ++level)
    field.push_back(refine(samples, logs, 1 << level, settings));
  double mean = 0;
  for (std::size_t i = 0; i < logs.size(); ++i)
    mean += (samples[i].log_value - logs[i]) / static_cast<double>(logs.size());
  std::size_t at = 0;
  for (int z = 0; z < slices; ++z)
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x, ++at) {
        if (!mask[at]) continue;
        double sum = -mean;
        for (const Spline& each : field) sum += each.at(place_of(x, y, z, width, height, slices));
        gain[at] = static_cast<float>(std::exp(sum));
      }
  return gain;
}

std::vector<std::uint8_t> without_gain(std::span<const std::uint8_t> volume, std::span<const float> gain) {
  std::vector<std::uint8_t> corrected;
  for (std::size_t i = 0; i < volume.size(); ++i)
    corrected.push_back(
        static_cast<std::uint8_t>(std::clamp(static_cast<float>(volume[i]) / gain[i] + 0.5f, 0.0f, 255.0f)));
  return corrected;
}

}  // namespace superstep::baseline
