#include "superstep/transform/precision/byte_weights.h"

#include <algorithm>
#include <cmath>

#include "superstep/op/window/window.h"

namespace superstep::transform {
namespace {

constexpr double largest_weight = 127;

// `channel_of(i)`: the output channel of element i.
template <class ChannelOf>
ByteWeights rounded(const Tensor& weights, std::int64_t channels, const ChannelOf& channel_of) {
  std::vector<double> largest(static_cast<std::size_t>(channels), 0.0);
  for (std::int64_t i = 0; i < weights.element_count(); ++i) {
    double& found = largest[static_cast<std::size_t>(channel_of(i))];
    found = std::max(found, std::abs(weights.at(i)));
  }
  ByteWeights result{.bytes = Tensor(ElementType::i8, weights.shape()), .scales = {}, .excess = {}};
  for (const double value : largest)
    result.scales.push_back(value > 0 ? static_cast<float>(value / largest_weight) : 1.0f);
  result.excess.reserve(static_cast<std::size_t>(weights.element_count()));
  for (std::int64_t i = 0; i < weights.element_count(); ++i) {
    const double scale = static_cast<double>(result.scales[static_cast<std::size_t>(channel_of(i))]);
    const double byte = std::clamp(std::nearbyint(weights.at(i) / scale), -largest_weight, largest_weight);
    result.bytes.set(i, byte);
    result.excess.push_back(byte * scale - weights.at(i));
  }
  return result;
}

Tensor transposed(const Tensor& matrix) {
  const std::int64_t rows = matrix.shape()[0], columns = matrix.shape()[1];
  Tensor result(matrix.type(), {columns, rows});
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) result.set(j * rows + i, matrix.at(i * columns + j));
  return result;
}

// Of a convolution of any number of groups: [out][in of a group][taps].
std::vector<double> convolution_excess(const ByteWeights& weights, std::span<const double> means,
                                       std::span<const double> shares) {
  const std::size_t out = weights.scales.size(), each = weights.excess.size() / out;
  const std::size_t taps = shares.size(), in = each / taps, groups = means.size() / in;
  std::vector<double> result(out, 0.0);
  for (std::size_t o = 0; o < out; ++o)
    for (std::size_t i = 0; i < each; ++i)
      result[o] +=
          weights.excess[o * each + i] * means[o / (out / groups) * in + i / taps] * shares[i % taps];
  return result;
}

}  // namespace

ByteWeights byte_weights(const Tensor& stored, const WeightAxes& axes) {
  if (axes.convolution) {
    const std::int64_t channels = stored.shape()[0], each = stored.element_count() / channels;
    return rounded(stored, channels, [each](std::int64_t i) { return i / each; });
  }
  const Tensor matrix = axes.out_in ? transposed(stored) : stored;
  const std::int64_t columns = matrix.shape()[1];
  return rounded(matrix, columns, [columns](std::int64_t i) { return i % columns; });
}

std::vector<double> shares_of_taps(const graph::Attributes& attributes, const Shape& x,
                                   const Shape& weights) {
  std::vector<double> shares{1};
  const auto windows =
      op::convolution_windows(attributes, op::spatial_extents(x), op::spatial_extents(weights));
  for (const op::Window& window : windows) {
    std::vector<double> wider;
    for (const double share : shares)
      for (std::int64_t k = 0; k < window.kernel; ++k) {
        const std::int64_t inside = std::max<std::int64_t>(0, window.last_output(k) - window.first_output(k));
        wider.push_back(share * static_cast<double>(inside) / static_cast<double>(window.output));
      }
    shares = std::move(wider);
  }
  return shares;
}

std::vector<double> mean_excess(const ByteWeights& weights, std::span<const double> means,
                                std::span<const double> shares) {
  if (!shares.empty()) return convolution_excess(weights, means, shares);
  const std::size_t out = weights.scales.size();
  std::vector<double> result(out, 0.0);
  for (std::size_t i = 0; i < weights.excess.size(); ++i)
    result[i % out] += weights.excess[i] * means[i / out];
  return result;
}

}  // namespace superstep::transform
