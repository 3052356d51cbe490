// Attention of panels of tokens against its definition in f64.
#include <gtest/gtest.h>

#include <cmath>

#include "superstep/base/random.h"
#include "superstep/language/decode/attention.h"
#include "superstep/language/decode/panels.h"

namespace superstep::language {
namespace {

constexpr std::int64_t heads = 2, size = 20;

KeyValueCache random_cache(std::int64_t positions, RandomStream& random) {
  KeyValueCache cache(1, heads, size);
  cache.grow(positions);
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t p = 0; p < positions; ++p)
      for (std::int64_t i = 0; i < size; ++i) {
        cache.key(0, h, p)[i] = static_cast<float>(random.uniform(-2, 2));
        cache.value(0, h, p)[i] = static_cast<float>(random.uniform(-1, 1));
      }
  return cache;
}

std::vector<double> defined(KeyValueCache& cache, std::int64_t head, const float* query, std::int64_t last) {
  std::vector<double> mixed(size);
  double sum = 0;
  for (std::int64_t p = 0; p <= last; ++p) {
    double score = 0;
    for (std::int64_t i = 0; i < size; ++i) score += static_cast<double>(query[i]) * cache.key(0, head, p)[i];
    const double share = std::exp(score / std::sqrt(static_cast<double>(size)));
    sum += share;
    for (std::int64_t i = 0; i < size; ++i)
      mixed[static_cast<std::size_t>(i)] += share * cache.value(0, head, p)[i];
  }
  for (double& value : mixed) value /= sum;
  return mixed;
}

// From the beginning of a text and later, over pages and their edges; the same object again with fewer
// tokens.
TEST(PanelAttention, IsWhatItIsDefinedAs) {
  RandomStream random(11);
  const std::int64_t most = 300;
  KeyValueCache cache = random_cache(most, random);
  PanelAttention attend(size, most);
  for (const std::int64_t position : {0, 1, 40, 64, 127, 200})
    for (const std::int64_t tokens : {panel_width(), std::int64_t{17}, std::int64_t{1}})
      for (std::int64_t head = 0; head < heads; ++head) {
        const std::int64_t used = std::min(tokens, panel_width()), stride = 2 * size + 3;
        std::vector<float> queries(static_cast<std::size_t>(used * stride)), mixed(queries.size(), -7);
        for (float& value : queries) value = static_cast<float>(random.uniform(-3, 3));
        attend(cache, 0, head, {queries.data(), stride, used, position}, mixed.data(), stride);
        for (std::int64_t t = 0; t < used; ++t) {
          const auto expected = defined(cache, head, queries.data() + t * stride, position + t);
          for (std::int64_t i = 0; i < size; ++i)
            EXPECT_NEAR(mixed[static_cast<std::size_t>(t * stride + i)],
                        expected[static_cast<std::size_t>(i)], 2e-6)
                << "token " << t << " of " << used << " at " << position;
          for (std::int64_t i = size; i < stride; ++i)
            EXPECT_EQ(mixed[static_cast<std::size_t>(t * stride + i)], -7) << "written beyond the head";
        }
      }
}

}  // namespace
}  // namespace superstep::language
