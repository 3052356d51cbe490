#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/language/decode/attention.cpp"
#include "superstep/language/decode/attention.h"

#include <algorithm>
#include <cmath>

#include "superstep/language/decode/panels.h"

// foreach_target.h must come before the others.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace superstep::language::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// scores [position][token] to exp(score - the token's largest); their inverse sums are left in `inverse`.
void Exponentials(float* scores, std::int64_t positions, std::int64_t width, float* inverse) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t first = 0; first < width; first += lanes) {
    float* own = scores + first;
    auto largest = hn::LoadU(d, own);
    for (std::int64_t p = 1; p < positions; ++p) largest = hn::Max(largest, hn::LoadU(d, own + p * width));
    auto sum = hn::Zero(d);
    for (std::int64_t p = 0; p < positions; ++p) {
      const auto power = hn::Exp(d, hn::Sub(hn::LoadU(d, own + p * width), largest));
      sum = hn::Add(sum, power);
      hn::StoreU(power, d, own + p * width);
    }
    hn::StoreU(hn::Div(hn::Set(d, 1.0f), sum), d, inverse + first);
  }
}

}  // namespace superstep::language::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::language {

HWY_EXPORT(Exponentials);

namespace {

// A token sees nothing behind its own position.
void hide_later(float* scores, const PanelOfQueries& queries, std::int64_t width) {
  constexpr float hidden = -1e30f;  // its exponential is zero, and so is what is left of it by any score
  for (std::int64_t later = 1; later < queries.tokens; ++later)
    std::fill_n(scores + (queries.position + later) * width, later, hidden);
}

}  // namespace

PanelAttention::PanelAttention(std::int64_t head_size, std::int64_t positions)
    : size_(head_size),
      width_(panel_width()),
      queries_(ElementType::f32, Shape{head_size, width_}),
      scores_(ElementType::f32, Shape{positions, width_}),
      mixed_(ElementType::f32, Shape{head_size + 1, width_}) {}

void PanelAttention::operator()(KeyValueCache& cache, std::int64_t layer, std::int64_t key_head,
                                const PanelOfQueries& queries, float* mixed, std::int64_t stride) {
  constexpr std::int64_t page = KeyValueCache::page_positions;
  const std::int64_t tokens = queries.tokens, positions = queries.position + tokens;
  float *own = queries_.as<float>().data(), *scores = scores_.as<float>().data(),
        *sums = mixed_.as<float>().data(), *inverse = sums + size_ * width_;
  const float scale = 1 / std::sqrt(static_cast<float>(size_));
  turn_over(queries.values, queries.stride, tokens, size_, own, width_);
  for (std::int64_t i = 0; i < size_ * width_; ++i) own[i] *= scale;
  for (std::int64_t p = 0; p < positions; p += page)
    multiply_tile({.rows = cache.key(layer, key_head, p),
                   .stride = size_,
                   .tokens = own,
                   .columns = size_,
                   .width = width_,
                   .sums = scores + p * width_},
                  std::min(page, positions - p), tokens);
  hide_later(scores, queries, width_);
  HWY_DYNAMIC_DISPATCH(Exponentials)(scores, positions, width_, inverse);
  for (std::int64_t p = 0; p < positions; p += page)
    multiply_tile({.rows = cache.value(layer, key_head, p),
                   .stride = 1,
                   .step = size_,
                   .tokens = scores + p * width_,
                   .columns = std::min(page, positions - p),
                   .width = width_,
                   .sums = sums,
                   .added = p > 0},
                  size_, tokens);
  turn_over(sums, width_, size_, tokens, mixed, stride);
  for (std::int64_t t = 0; t < tokens; ++t)
    for (std::int64_t i = 0; i < size_; ++i) mixed[t * stride + i] *= inverse[t];
}

}  // namespace superstep::language
#endif  // HWY_ONCE
