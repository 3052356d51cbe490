// Memory of a decoder for the tokens that go through it together: their activations, and the panels that
// products read them from.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "superstep/base/tensor.h"

namespace superstep::language {

// Activations of several tokens, a row each. Memory stays for the next ones: asked for anew in every layer,
// the system would bring and clear its pages each time.
class Rows {
 public:
  // What they hold then is not said.
  Rows& reset(std::int64_t count, std::int64_t width) {
    count_ = count, width_ = width;
    if (values_.element_count() < count * width) values_ = Tensor(ElementType::f32, Shape{count * width});
    return *this;
  }
  std::int64_t count() const { return count_; }
  std::int64_t width() const { return width_; }
  float* row(std::int64_t i) { return values_.as<float>().data() + i * width_; }
  const float* row(std::int64_t i) const { return values_.as<float>().data() + i * width_; }
  std::span<const float> of(std::int64_t i) const { return {row(i), static_cast<std::size_t>(width_)}; }

 private:
  std::int64_t count_ = 0, width_ = 0;
  Tensor values_;
};

// Panels of tokens and what multiplies them, for each thread. They are kept for the next layer, which has as
// many tokens; those of other texts are given back.
template <class Panels, class ProductOfPanels>
class KeptPanels {
 public:
  struct Work {
    Panels panels;
    std::vector<ProductOfPanels> of_threads;

    Work(std::int64_t tokens, std::int64_t columns, int threads) : panels(tokens, columns) {
      for (int i = 0; i < threads; ++i) of_threads.emplace_back(panels);
    }
  };

  Work& of(const Rows& x, int threads) {
    if (!kept_.empty() && kept_.front()->panels.tokens() != x.count()) kept_.clear();
    for (const auto& work : kept_)
      if (work->panels.columns() == x.width()) return *work;
    return *kept_.emplace_back(std::make_unique<Work>(x.count(), x.width(), threads));
  }

 private:
  std::vector<std::unique_ptr<Work>> kept_;  // in place: products refer to their panels
};

}  // namespace superstep::language
