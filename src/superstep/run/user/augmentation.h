// What is drawn anew for every sample of every epoch of a model of one's own: mirrored, turned, moved, noisy.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/tensor.h"

namespace superstep::run {

// One step, done alike to all of its arrays: a picture and its mask are mirrored together.
struct Augmentation {
  enum class Step {
    flip_horizontal,  // along the last axis, one time in two
    flip_vertical,    // along the one before, one time in two
    rotate,           // by 0 to 3 quarter turns, each as likely
    shift,            // by up to `amount` elements along both axes; zeros come in
    cutout,           // a square of `amount` elements a side, wholly within, becomes zero
    noise,            // normal, of the standard deviation `amount`, added to every element
    gain,             // all elements times one factor from 1 - amount to 1 + amount
  };
  std::vector<std::string> arrays;
  Step step = Step::flip_horizontal;
  double amount = 0;

  friend bool operator==(const Augmentation&, const Augmentation&) = default;
};

// "x,mask=flip-horizontal", "x=noise:0.01": in their order. Throws Error (invalid_argument) naming the
// option, a step that there is not with the nearest name, and an amount that makes no sense.
std::vector<Augmentation> augmentations_from_text(std::span<const std::string> texts);

// An array that is filled for training, as augmentation sees it.
struct AugmentedArray {
  std::vector<std::string> names;  // each of which it goes by
  ElementType type = ElementType::f32;
  Shape row;            // of one sample
  bool labels = false;  // classes, which have no noise
};

// The steps, with the arrays that they are of by their positions.
class Augmenter {
 public:
  Augmenter() = default;
  // Throws Error (invalid_argument): an array that is not there, one that is no picture or not square where
  // that is needed, pictures of a step that are not of one size, noise in labels or whole numbers.
  Augmenter(std::vector<Augmentation> steps, std::span<const AugmentedArray> arrays, std::uint64_t seed);

  bool empty() const { return steps_.empty(); }
  // Sample `indices[k]` of epoch `epoch` is row k of the tensors, which begin with the arrays in their order.
  // What is drawn depends on the seed, the sample and the epoch alone.
  void apply(std::span<const std::int64_t> indices, std::uint64_t epoch, std::span<Tensor> tensors) const;

 private:
  struct Placed {
    Augmentation step;
    std::vector<std::size_t> positions;
  };
  std::vector<Placed> steps_;
  std::uint64_t seed_ = 0;
};

}  // namespace superstep::run
