// Runs an epilogue over rectangular blocks of a result. Internal to the kernels.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <string>

#include "superstep/target/cpu/kernels/core/epilogue.h"
#include "superstep/target/cpu/kernels/core/image.h"
#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

inline constexpr std::size_t max_epilogue_steps = 8;

// One step over one block: the operand's pointer stands at the block's first element.
struct BoundStep {
  EpilogueOp op;
  Activation activation;
  bool from_output;
  ElementType type;
  float alpha, beta;
  void* operand;               // null where the step has none
  std::int64_t column_stride;  // elements between columns of the operand; 0 for a vector of channels
  bool uniform = false;        // a vector of channels that has one value for all
};

// `columns` columns of `channels` contiguous elements.
struct EpilogueBlock {
  const float* source;  // may be the result itself
  std::int64_t source_stride;
  void* result;
  ElementType result_type;  // f32 or bf16
  std::int64_t result_stride;
  std::int64_t columns, channels;
  const BoundStep* steps;
  std::size_t step_count;
};

using EpilogueFunction = void(const EpilogueBlock&);

// The lists that have loops of their own.
struct UsualList {
  bool usual = false;
  bool narrow = false;  // the result is bf16
  bool bias = false, added = false, gradient = false;
  int sums = 0;  // 2 or 3: so many f32 tensors are added, and nothing else is done
  ElementType added_type = ElementType::f32, output_type = ElementType::f32;  // f32 or bf16
  Activation activation = Activation::identity;
};

// An epilogue with its function and the strides of its operands settled.
class EpilogueRunner {
 public:
  EpilogueRunner() = default;
  // `result` gives default strides; the reason on an unusable list.
  static std::expected<EpilogueRunner, std::string> prepare(const Epilogue& epilogue, const Image& result);

  // Whether apply() has anything to do when source and result are the same f32 block.
  bool empty() const { return count_ == 0; }
  std::size_t steps() const { return count_; }
  std::size_t inputs() const { return inputs_; }
  std::size_t outputs() const { return outputs_; }
  double bytes_per_element() const { return bytes_per_element_; }

  // Which block of the result: it starts `row` rows and `column` columns in, at channel `channel`; its
  // columns are `column_step` columns of the image apart. `shift` counts elements to add to every tensor
  // operand (batches of a product).
  struct Place {
    std::int64_t row = 0, column = 0, channel = 0, column_step = 1, shift = 0;
  };
  // `inputs` and `outputs` are the epilogue's own slots. The block's steps are filled in here.
  void apply(EpilogueBlock block, const Place& place, const void* const* inputs, void* const* outputs) const;

 private:
  std::array<EpilogueStep, max_epilogue_steps> steps_{};
  std::size_t count_ = 0, inputs_ = 0, outputs_ = 0;
  double bytes_per_element_ = 0;
  EpilogueFunction* function_ = nullptr;
  EpilogueFunction* any_list_ = nullptr;  // what runs every list
};

}  // namespace superstep::kernels
