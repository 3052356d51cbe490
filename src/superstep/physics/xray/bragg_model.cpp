#include "superstep/physics/xray/bragg_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace superstep::data {
namespace {

constexpr double two_ln2 = 2 * std::numbers::ln2;

// The peak with everything that does not depend on the pixel worked out.
class Profile {
 public:
  explicit Profile(const BraggPeak& peak)
      : peak_(peak),
        u_x_(std::cos(peak.angle) / peak.sigma1),
        u_y_(std::sin(peak.angle) / peak.sigma1),
        v_x_(-std::sin(peak.angle) / peak.sigma2),
        v_y_(std::cos(peak.angle) / peak.sigma2) {}

  double operator()(double column, double row) const {
    const double x = column - peak_.column, y = row - peak_.row;
    const double u = u_x_ * x + u_y_ * y, v = v_x_ * x + v_y_ * y;
    const double q = u * u + v * v;
    return peak_.amplitude * (peak_.eta / (1 + q / two_ln2) + (1 - peak_.eta) * std::exp(-0.5 * q));
  }

  // The mean over the pixel by the 3x3 Gauss-Legendre rule.
  double integrated(double column, double row) const {
    static const double node = 0.5 * std::sqrt(0.6);
    const double offsets[] = {-node, 0, node};
    constexpr double weights[] = {5.0 / 18, 8.0 / 18, 5.0 / 18};
    double sum = 0;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j)
        sum += weights[i] * weights[j] * (*this)(column + offsets[j], row + offsets[i]);
    return sum;
  }

 private:
  BraggPeak peak_;
  double u_x_, u_y_, v_x_, v_y_;
};

// How far from its centre a peak is above `floor` counts; each part is bounded by half of it.
double reach(const BraggPeak& peak, double floor) {
  const double widest = std::max(peak.sigma1, peak.sigma2), half = 0.5 * floor;
  const double lorentz = peak.amplitude * peak.eta, gauss = peak.amplitude * (1 - peak.eta);
  const double q_lorentz = lorentz > half ? two_ln2 * (lorentz / half - 1) : 0;
  const double q_gauss = gauss > half ? 2 * std::log(gauss / half) : 0;
  return widest * std::sqrt(std::max(q_lorentz, q_gauss)) + 1;
}

struct Range {
  int begin, end;
};

// Pixels of [first, first + size) within `distance` of `center`.
Range pixels_within(double center, double distance, int first, int size) {
  const double low = std::ceil(center - distance) - first, high = std::floor(center + distance) - first + 1;
  return {static_cast<int>(std::clamp(low, 0.0, double(size))),
          static_cast<int>(std::clamp(high, 0.0, double(size)))};
}

// Shares of a Gaussian that fall on the pixels at distance 0, 1, 2, ... of its own.
std::vector<double> blur_weights(double sigma) {
  std::vector<double> weights;
  const double scale = 1 / (sigma * std::numbers::sqrt2);
  for (int i = 0; i <= std::ceil(4 * sigma); ++i)
    weights.push_back(0.5 * (std::erf((i + 0.5) * scale) - std::erf((i - 0.5) * scale)));
  return weights;
}

// Blurs `count` values `stride` apart.
void blur_line(double* values, int count, int stride, const std::vector<double>& weights,
               std::vector<double>& line) {
  line.resize(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) line[static_cast<std::size_t>(i)] = values[i * stride];
  const auto clamped = [&](int i) { return line[static_cast<std::size_t>(std::clamp(i, 0, count - 1))]; };
  for (int i = 0; i < count; ++i) {
    double sum = weights[0] * clamped(i), total = weights[0];
    for (int k = 1; k < static_cast<int>(weights.size()); ++k) {
      sum += weights[static_cast<std::size_t>(k)] * (clamped(i - k) + clamped(i + k));
      total += 2 * weights[static_cast<std::size_t>(k)];
    }
    values[i * stride] = sum / total;
  }
}

}  // namespace

RandomStream bragg_stream(std::uint64_t seed, std::uint64_t index, BraggPurpose purpose) {
  return RandomStream(seed, index, static_cast<std::uint32_t>(purpose));
}

BraggPeak draw_bragg_peak(const BraggRanges& ranges, RandomStream& random) {
  BraggPeak peak;
  peak.amplitude = std::exp(random.uniform(std::log(ranges.amplitude_low), std::log(ranges.amplitude_high)));
  peak.sigma1 = random.uniform(ranges.sigma_low, ranges.sigma_high);
  peak.sigma2 = peak.sigma1 * random.uniform(ranges.ratio_low, ranges.ratio_high);
  peak.angle = random.uniform(0, std::numbers::pi);
  peak.eta = random.uniform();
  peak.background = random.uniform(ranges.background_low, ranges.background_high);
  return peak;
}

double bragg_intensity(const BraggPeak& peak, double column, double row) {
  return Profile(peak)(column, row);
}

BraggImage::BraggImage(int first_column, int first_row, int width, int height)
    : first_column_(first_column),
      first_row_(first_row),
      width_(width),
      height_(height),
      values_(static_cast<std::size_t>(width) * static_cast<std::size_t>(height)) {}

void BraggImage::fill(double value) { std::ranges::fill(values_, value); }

void BraggImage::add(const BraggPeak& peak, bool integrate, double floor) {
  const Profile profile(peak);
  const double distance =
      floor > 0 ? reach(peak, floor) : double(width_ + height_) + std::abs(peak.column) + std::abs(peak.row);
  const Range columns = pixels_within(peak.column, distance, first_column_, width_);
  const Range rows = pixels_within(peak.row, distance, first_row_, height_);
  for (int i = rows.begin; i < rows.end; ++i)
    for (int j = columns.begin; j < columns.end; ++j) {
      const double column = first_column_ + j, row = first_row_ + i;
      values_[static_cast<std::size_t>(i * width_ + j)] +=
          integrate ? profile.integrated(column, row) : profile(column, row);
    }
}

void BraggImage::blur(double sigma) {
  if (!(sigma > 0)) return;
  const std::vector<double> weights = blur_weights(sigma);
  std::vector<double> line;
  for (int i = 0; i < height_; ++i)
    blur_line(&values_[static_cast<std::size_t>(i * width_)], width_, 1, weights, line);
  for (int j = 0; j < width_; ++j)
    blur_line(&values_[static_cast<std::size_t>(j)], height_, width_, weights, line);
}

double detect(double expected, const BraggDetector& detector, RandomStream& counts, RandomStream& noise) {
  auto reading = static_cast<double>(counts.poisson(expected));
  if (detector.read_noise > 0) reading += detector.read_noise * noise.normal();
  if (detector.saturation > 0) reading = std::min(reading, detector.saturation);
  return reading < detector.threshold ? 0 : reading;
}

}  // namespace superstep::data
