#include "superstep/show/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace superstep::show {
namespace {

constexpr std::int64_t most_blocks = 64;

// Shrinks axes from `axis` on, outermost first, until the block has at most `limit` elements.
void shrink_to(Block& block, const Shape& shape, int from, std::int64_t limit) {
  for (int axis = from; axis < shape.rank(); ++axis) {
    std::int64_t inner = 1;
    for (int i = axis + 1; i < shape.rank(); ++i) inner *= block.count[static_cast<std::size_t>(i)];
    const auto a = static_cast<std::size_t>(axis);
    block.count[a] = std::clamp<std::int64_t>(limit / inner, 1, shape[axis]);
    block.first[a] = (shape[axis] - block.count[a]) / 2;
    limit /= block.count[a];
  }
}

Block whole(const Shape& shape) {
  return {std::vector<std::int64_t>(static_cast<std::size_t>(shape.rank())), shape.extents()};
}

void add(Statistics& statistics, double value) {
  ++statistics.looked_at;
  if (std::isfinite(value))
    statistics.values.push_back(value);
  else
    ++statistics.not_finite;
}

void summarize(Statistics& statistics) {
  const auto& values = statistics.values;
  if (values.empty()) return;
  const auto [low, high] = std::ranges::minmax(values);
  statistics.low = low, statistics.high = high;
  // Running mean and sum of squared deviations (Welford 1962): no cancellation.
  double mean = 0, squares = 0, count = 0;
  for (double value : values) {
    const double before = value - mean;
    mean += before / ++count;
    squares += before * (value - mean);
  }
  statistics.mean = mean;
  statistics.deviation = std::sqrt(squares / count);
}

}  // namespace

std::vector<Block> sample_blocks(const Shape& shape, std::int64_t limit) {
  if (shape.element_count() == 0) return {};
  if (shape.element_count() <= limit || shape.rank() == 0) return {whole(shape)};
  const std::int64_t blocks = std::min(most_blocks, shape[0]);
  Block block = whole(shape);
  const std::int64_t row = shape.element_count() / shape[0];
  block.count[0] = std::clamp<std::int64_t>(limit / blocks / row, 1, shape[0]);
  shrink_to(block, shape, 1, std::max<std::int64_t>(limit / blocks / block.count[0], 1));
  std::vector<Block> all;
  for (std::int64_t i = 0; i < blocks; ++i) {
    block.first[0] = blocks == 1 ? 0 : (shape[0] - block.count[0]) * i / (blocks - 1);
    all.push_back(block);
  }
  return all;
}

Shape shape_of_elements(const data::DataSetInfo& info) {
  std::vector<std::int64_t> extents = info.shape.extents();
  if (info.complex) extents.pop_back();
  return Shape(extents);
}

std::vector<double> amplitudes(const Tensor& pairs) {
  const auto parts = pairs.as<double>();
  std::vector<double> values;
  for (std::size_t i = 0; i + 1 < parts.size(); i += 2) values.push_back(std::hypot(parts[i], parts[i + 1]));
  return values;
}

Statistics look_at(const ArrayFile& file, const data::DataSetInfo& info) {
  const Shape shape = shape_of_elements(info);
  const std::int64_t most = file.most_looked_at(info);
  Statistics statistics;
  statistics.sampled = shape.element_count() > most;
  for (const Block& block : sample_blocks(shape, most)) {
    const Tensor tensor = file.read_block(info, ElementType::f64, block.first, block.count);
    if (info.complex)
      for (double value : amplitudes(tensor)) add(statistics, value);
    else
      for (double value : tensor.as<double>()) add(statistics, value);
  }
  summarize(statistics);
  return statistics;
}

}  // namespace superstep::show
