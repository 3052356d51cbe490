#include "superstep/target/cpu/kernels/core/epilogue_run.h"

#include <algorithm>
#include <utility>

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/core/epilogue_run.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

// G vectors of one column, the last of them holding `tail` elements.
template <std::size_t G>
struct Group {
  V v[G];
  std::size_t tail;
};

template <std::size_t G, class T>
HWY_INLINE void load_group(const T* p, std::size_t tail, V (&v)[G]) {
  for (std::size_t i = 0; i + 1 < G; ++i) v[i] = load(p + i * lanes);
  v[G - 1] = load_first(p + (G - 1) * lanes, tail);
}

template <std::size_t G, class T>
HWY_INLINE void store_group(const V (&v)[G], std::size_t tail, T* p) {
  for (std::size_t i = 0; i + 1 < G; ++i) store(v[i], p + i * lanes);
  store_first(v[G - 1], p + (G - 1) * lanes, tail);
}

template <std::size_t G>
HWY_INLINE void load_operand(const BoundStep& step, std::int64_t offset, std::size_t tail, V (&v)[G]) {
  if (step.type == ElementType::f32)
    return load_group<G>(static_cast<const float*>(step.operand) + offset, tail, v);
  if (step.type == ElementType::bf16)
    return load_group<G>(static_cast<const bf16*>(step.operand) + offset, tail, v);
  load_group<G>(static_cast<const std::uint8_t*>(step.operand) + offset, tail, v);
}

// A vector of channels, or its only value for all.
template <std::size_t G>
HWY_INLINE void load_vector(const BoundStep& step, std::int64_t channel, std::size_t tail, V (&v)[G]) {
  const auto* values = static_cast<const float*>(step.operand);
  if (!step.uniform) return load_group<G>(values + channel, tail, v);
  for (std::size_t i = 0; i < G; ++i) v[i] = constant(*values);
}

template <std::size_t G>
HWY_INLINE void store_operand(const BoundStep& step, std::int64_t offset, std::size_t tail, const V (&v)[G]) {
  if (step.type == ElementType::f32)
    return store_group<G>(v, tail, static_cast<float*>(step.operand) + offset);
  store_group<G>(v, tail, static_cast<bf16*>(step.operand) + offset);
}

template <std::size_t G>
HWY_INLINE void apply_gradient(const BoundStep& step, V (&v)[G], const V (&t)[G]) {
  const V zero = hn::Zero(f32_tag), alpha = constant(step.alpha), beta = constant(step.beta);
  if (step.activation == Activation::relu) {
    for (std::size_t i = 0; i < G; ++i) v[i] = hn::IfThenElseZero(hn::Gt(t[i], zero), v[i]);
  } else if (step.activation == Activation::leaky_relu) {
    for (std::size_t i = 0; i < G; ++i) v[i] = hn::IfThenElse(hn::Gt(t[i], zero), v[i], hn::Mul(alpha, v[i]));
  } else {
    for (std::size_t i = 0; i < G; ++i)
      v[i] = hn::Mul(v[i], step.from_output ? derivative_from_output(t[i], step.activation, alpha, beta)
                                            : derivative_from_input(t[i], step.activation, alpha, beta));
  }
}

template <std::size_t G>
HWY_INLINE void apply_activation(const BoundStep& step, V (&v)[G]) {
  const V zero = hn::Zero(f32_tag), alpha = constant(step.alpha), beta = constant(step.beta);
  if (step.activation == Activation::relu) {
    for (std::size_t i = 0; i < G; ++i) v[i] = max_or_second(zero, v[i]);
  } else if (step.activation == Activation::leaky_relu) {
    for (std::size_t i = 0; i < G; ++i) v[i] = hn::IfThenElse(hn::Lt(v[i], zero), hn::Mul(alpha, v[i]), v[i]);
  } else {
    for (std::size_t i = 0; i < G; ++i) v[i] = activate_slow(v[i], step.activation, alpha, beta);
  }
}

template <std::size_t G>
HWY_INLINE void apply_step(const BoundStep& step, std::int64_t column, std::int64_t channel, std::size_t tail,
                           V (&v)[G]) {
  const std::int64_t offset = column * step.column_stride + channel;
  V t[G];
  switch (step.op) {
    case EpilogueOp::bias:
      load_vector<G>(step, channel, tail, t);
      for (std::size_t i = 0; i < G; ++i) v[i] = hn::Add(v[i], t[i]);
      return;
    case EpilogueOp::scale_channels:
      load_vector<G>(step, channel, tail, t);
      for (std::size_t i = 0; i < G; ++i) v[i] = hn::Mul(v[i], t[i]);
      return;
    case EpilogueOp::scale:
      for (std::size_t i = 0; i < G; ++i) v[i] = hn::Mul(v[i], constant(step.alpha));
      return;
    case EpilogueOp::add:
      load_operand<G>(step, offset, tail, t);
      if (step.type == ElementType::u8)
        for (std::size_t i = 0; i < G; ++i)
          t[i] = hn::Mul(hn::Sub(t[i], constant(step.beta)), constant(step.alpha));
      for (std::size_t i = 0; i < G; ++i) v[i] = hn::Add(v[i], t[i]);
      return;
    case EpilogueOp::subtract:
      load_operand<G>(step, offset, tail, t);
      for (std::size_t i = 0; i < G; ++i) v[i] = hn::Sub(v[i], t[i]);
      return;
    case EpilogueOp::multiply:
      load_operand<G>(step, offset, tail, t);
      for (std::size_t i = 0; i < G; ++i) v[i] = hn::Mul(v[i], t[i]);
      return;
    case EpilogueOp::activation_gradient:
      load_operand<G>(step, offset, tail, t);
      return apply_gradient<G>(step, v, t);
    case EpilogueOp::activate: return apply_activation<G>(step, v);
    case EpilogueOp::round_half:
      for (std::size_t i = 0; i < G; ++i) v[i] = round_to_f16(v[i]);
      return;
    case EpilogueOp::save: return store_operand<G>(step, offset, tail, v);
  }
}

template <std::size_t G>
HWY_INLINE void run_group(const EpilogueBlock& block, std::int64_t column, std::int64_t channel,
                          std::size_t tail) {
  V v[G];
  load_group<G>(block.source + column * block.source_stride + channel, tail, v);
  for (std::size_t s = 0; s < block.step_count; ++s) apply_step<G>(block.steps[s], column, channel, tail, v);
  const std::int64_t offset = column * block.result_stride + channel;
  if (block.result_type == ElementType::f32)
    store_group<G>(v, tail, static_cast<float*>(block.result) + offset);
  else
    store_group<G>(v, tail, static_cast<bf16*>(block.result) + offset);
}

void run_epilogue(const EpilogueBlock& block) {
  constexpr auto width = static_cast<std::int64_t>(lanes);
  for (std::int64_t column = 0; column < block.columns; ++column) {
    std::int64_t channel = 0;
    for (; channel + 4 * width <= block.channels; channel += 4 * width)
      run_group<4>(block, column, channel, lanes);
    for (; channel + width <= block.channels; channel += width) run_group<1>(block, column, channel, lanes);
    if (channel < block.channels)
      run_group<1>(block, column, channel, static_cast<std::size_t>(block.channels - channel));
  }
}

// The usual lists over f32 tensors, without a decision inside the loops.
enum class Rectifier { none, relu, leaky_relu, silu, hard_swish, gelu, gelu_tanh, clip, tanh };

template <Rectifier rectifier>
HWY_INLINE V rectify(V v, V alpha, V beta) {
  if (rectifier == Rectifier::relu) return max_or_second(hn::Zero(f32_tag), v);
  if (rectifier == Rectifier::leaky_relu)
    return hn::IfThenElse(hn::Lt(v, hn::Zero(f32_tag)), hn::Mul(alpha, v), v);
  if (rectifier == Rectifier::silu) return silu(v);
  if (rectifier == Rectifier::hard_swish) return hard_swish(v);
  if (rectifier == Rectifier::gelu) return gelu_erf(v);
  if (rectifier == Rectifier::gelu_tanh) return gelu_tanh(v);
  if (rectifier == Rectifier::clip) return clamp(v, alpha, beta);
  if (rectifier == Rectifier::tanh) return tanh(v);
  return v;
}

template <Rectifier rectifier>
HWY_INLINE V rectify_gradient(V v, V y, V alpha) {
  const Mask positive = hn::Gt(y, hn::Zero(f32_tag));
  if (rectifier == Rectifier::relu) return hn::IfThenElseZero(positive, v);
  if (rectifier == Rectifier::leaky_relu) return hn::IfThenElse(positive, v, hn::Mul(alpha, v));
  return v;
}

struct UsualSteps {
  const float* bias;
  const void *added, *output;
  std::int64_t added_stride, output_stride;
  float alpha, beta;
};

// Which steps there are: v + bias + a tensor of `Added`, rectified, or multiplied by the slope of a rectifier
// with outputs of `Output`; void where there is no such tensor.
template <bool bias_, class Added_, Rectifier forward_, Rectifier backward_, class Output_, class Result_>
struct UsualKind {
  static constexpr bool bias = bias_, added = !std::is_void_v<Added_>, output = !std::is_void_v<Output_>;
  static constexpr Rectifier forward = forward_, backward = backward_;
  using Added = std::conditional_t<added, Added_, float>;
  using Output = std::conditional_t<output, Output_, float>;
  using Result = Result_;
};

// G vectors of channels of all columns.
template <class Kind, std::size_t G>
HWY_INLINE void usual_columns(const EpilogueBlock& block, const UsualSteps& s, std::int64_t channel,
                              std::size_t tail) {
  const V alpha = constant(s.alpha), beta = constant(s.beta);
  V bias[G], t[G], y[G], v[G];
  if (Kind::bias) load_group<G>(s.bias + channel, tail, bias);
  const float* source = block.source + channel;
  auto* result = static_cast<typename Kind::Result*>(block.result) + channel;
  const auto* added = static_cast<const typename Kind::Added*>(s.added) + channel;
  const auto* output = static_cast<const typename Kind::Output*>(s.output) + channel;
  for (std::int64_t column = 0; column < block.columns; ++column) {
    load_group<G>(source, tail, v);
    if (Kind::added) load_group<G>(added, tail, t);
    if (Kind::output) load_group<G>(output, tail, y);
    for (std::size_t i = 0; i < G; ++i) {
      if (Kind::bias) v[i] = hn::Add(v[i], bias[i]);
      if (Kind::added) v[i] = hn::Add(v[i], t[i]);
      v[i] = rectify<Kind::forward>(v[i], alpha, beta);
      if (Kind::output) v[i] = rectify_gradient<Kind::backward>(v[i], y[i], alpha);
    }
    store_group<G>(v, tail, result);
    source += block.source_stride, result += block.result_stride;
    added += s.added_stride, output += s.output_stride;
  }
}

template <class Kind>
void usual_epilogue(const EpilogueBlock& block) {
  UsualSteps s{};
  for (std::size_t i = 0; i < block.step_count; ++i) {
    const BoundStep& step = block.steps[i];
    if (step.op == EpilogueOp::bias) s.bias = static_cast<const float*>(step.operand);
    if (step.op == EpilogueOp::add) s.added = step.operand, s.added_stride = step.column_stride;
    if (step.op == EpilogueOp::activation_gradient)
      s.output = step.operand, s.output_stride = step.column_stride;
    if (step.op != EpilogueOp::bias && step.op != EpilogueOp::add) s.alpha = step.alpha, s.beta = step.beta;
  }
  constexpr auto width = static_cast<std::int64_t>(lanes);
  std::int64_t channel = 0;
  for (; channel + 4 * width <= block.channels; channel += 4 * width)
    usual_columns<Kind, 4>(block, s, channel, lanes);
  for (; channel + width <= block.channels; channel += width)
    usual_columns<Kind, 1>(block, s, channel, lanes);
  if (channel < block.channels)
    usual_columns<Kind, 1>(block, s, channel, static_cast<std::size_t>(block.channels - channel));
}

template <bool bias, class Added, class Result, Rectifier forward>
constexpr EpilogueFunction* usual_of =
    usual_epilogue<UsualKind<bias, Added, forward, Rectifier::none, void, Result>>;

template <bool bias, class Added, class Result>
EpilogueFunction* usual_forward(Activation activation) {
  if (activation == Activation::relu) return usual_of<bias, Added, Result, Rectifier::relu>;
  if (activation == Activation::leaky_relu) return usual_of<bias, Added, Result, Rectifier::leaky_relu>;
  // In bf16 not behind a sum with a tensor: no model has it.
  if constexpr (std::is_same_v<Result, float> || std::is_void_v<Added>) {
    if (activation == Activation::silu) return usual_of<bias, Added, Result, Rectifier::silu>;
    if (activation == Activation::hard_swish) return usual_of<bias, Added, Result, Rectifier::hard_swish>;
    if (activation == Activation::gelu_erf) return usual_of<bias, Added, Result, Rectifier::gelu>;
    if (activation == Activation::gelu_tanh) return usual_of<bias, Added, Result, Rectifier::gelu_tanh>;
    if (activation == Activation::clip) return usual_of<bias, Added, Result, Rectifier::clip>;
    if (activation == Activation::tanh) return usual_of<bias, Added, Result, Rectifier::tanh>;
  }
  return usual_of<bias, Added, Result, Rectifier::none>;
}

template <bool bias, class Added, class Output, class Result>
EpilogueFunction* usual_backward(Activation activation) {
  if (activation == Activation::relu)
    return usual_epilogue<UsualKind<bias, Added, Rectifier::none, Rectifier::relu, Output, Result>>;
  return usual_epilogue<UsualKind<bias, Added, Rectifier::none, Rectifier::leaky_relu, Output, Result>>;
}

// Tangents have a bias, in f32; gradients have none.
template <class Added, class Result>
EpilogueFunction* usual_slope(const UsualList& list) {
  if constexpr (std::is_same_v<Result, float> && !std::is_same_v<Added, bf16>)
    if (list.bias) return usual_backward<true, Added, float, Result>(list.activation);
  return list.output_type == ElementType::f32 ? usual_backward<false, Added, float, Result>(list.activation)
                                              : usual_backward<false, Added, bf16, Result>(list.activation);
}

template <class Added, class Result>
EpilogueFunction* usual_with(const UsualList& list) {
  if (list.gradient) return usual_slope<Added, Result>(list);
  return list.bias ? usual_forward<true, Added, Result>(list.activation)
                   : usual_forward<false, Added, Result>(list.activation);
}

template <class Result>
EpilogueFunction* usual_giving(const UsualList& list) {
  if (!list.added) return usual_with<void, Result>(list);
  return list.added_type == ElementType::f32 ? usual_with<float, Result>(list)
                                             : usual_with<bf16, Result>(list);
}

// G vectors of channels of all columns, plus N tensors.
template <std::size_t N, std::size_t G>
HWY_INLINE void sum_columns(const EpilogueBlock& block, std::int64_t channel, std::size_t tail) {
  const float *source = block.source + channel, *added[N];
  auto* result = static_cast<float*>(block.result) + channel;
  std::int64_t strides[N];
  for (std::size_t t = 0; t < N; ++t) {
    added[t] = static_cast<const float*>(block.steps[t].operand) + channel;
    strides[t] = block.steps[t].column_stride;
  }
  V v[G], term[G];
  for (std::int64_t column = 0; column < block.columns; ++column) {
    load_group<G>(source, tail, v);
    for (std::size_t t = 0; t < N; ++t) {
      load_group<G>(added[t], tail, term);
      for (std::size_t i = 0; i < G; ++i) v[i] = hn::Add(v[i], term[i]);
      added[t] += strides[t];
    }
    store_group<G>(v, tail, result);
    source += block.source_stride, result += block.result_stride;
  }
}

// Gradients of a value with several readers.
template <std::size_t N>
void sum_of_tensors(const EpilogueBlock& block) {
  constexpr auto width = static_cast<std::int64_t>(lanes);
  std::int64_t channel = 0;
  for (; channel + 4 * width <= block.channels; channel += 4 * width)
    sum_columns<N, 4>(block, channel, lanes);
  for (; channel + width <= block.channels; channel += width) sum_columns<N, 1>(block, channel, lanes);
  if (channel < block.channels)
    sum_columns<N, 1>(block, channel, static_cast<std::size_t>(block.channels - channel));
}

EpilogueFunction* epilogue_function(const UsualList& list) {
  if (list.sums > 0) return list.sums == 2 ? sum_of_tensors<2> : sum_of_tensors<3>;
  if (!list.usual) return run_epilogue;
  return list.narrow ? usual_giving<bf16>(list) : usual_giving<float>(list);
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(epilogue_function);

namespace {

bool reads_vector(EpilogueOp op) { return op == EpilogueOp::bias || op == EpilogueOp::scale_channels; }
bool has_tensor(EpilogueOp op) { return op == EpilogueOp::save || EpilogueStep{.op = op}.reads_tensor(); }

std::string fault_of(const EpilogueStep& step) {
  if (!has_tensor(step.op)) return {};
  const bool bytes =
      (step.op == EpilogueOp::multiply || step.op == EpilogueOp::add) && step.type == ElementType::u8;
  if (step.type != ElementType::f32 && step.type != ElementType::bf16 && !bytes)
    return std::string("the epilogue cannot read ") + name_of(step.type);
  if (step.op == EpilogueOp::activation_gradient && step.from_output &&
      !gradient_from_output(step.activation, step.alpha))
    return std::string("the gradient of ") + name_of(step.activation) + " needs the activation's input";
  return {};
}

bool is_rectifier(Activation activation) {
  return activation == Activation::relu || activation == Activation::leaky_relu;
}

// Those that have a loop of their own as the last step forward; `plain`: of all, else of rectifiers alone.
bool is_usual(Activation activation, bool plain) {
  return is_rectifier(activation) ||
         (plain && (activation == Activation::silu || activation == Activation::hard_swish ||
                    activation == Activation::gelu_erf || activation == Activation::gelu_tanh ||
                    activation == Activation::clip || activation == Activation::tanh));
}

// Whether the list is [bias] [add] [a usual activation, or the gradient of a relu or leaky relu], or two or
// three sums.
UsualList usual_list(const Epilogue& epilogue, ElementType result) {
  UsualList list{.usual = true, .narrow = result == ElementType::bf16};
  std::size_t i = 0;
  const auto& steps = epilogue.steps;
  const bool sums = !list.narrow && std::ranges::all_of(steps, [](const EpilogueStep& step) {
    return step.op == EpilogueOp::add && step.type == ElementType::f32;
  });
  if (sums && (steps.size() == 2 || steps.size() == 3)) return {.sums = static_cast<int>(steps.size())};
  const auto next_is = [&](EpilogueOp op) { return i < steps.size() && steps[i].op == op; };
  if (next_is(EpilogueOp::bias)) list.bias = true, ++i;
  if (next_is(EpilogueOp::add) && steps[i].type != ElementType::u8)
    list.added = true, list.added_type = steps[i++].type;
  if (!list.bias && next_is(EpilogueOp::bias)) list.bias = true, ++i;
  if (next_is(EpilogueOp::activate) && is_usual(steps[i].activation, !list.narrow || !list.added))
    list.activation = steps[i++].activation;
  const bool all_f32 = !list.narrow && list.added_type == ElementType::f32;
  if (i == std::size_t{list.bias} + std::size_t{list.added} && next_is(EpilogueOp::activation_gradient) &&
      is_rectifier(steps[i].activation) && (!list.bias || (all_f32 && steps[i].type == ElementType::f32)))
    list.gradient = true, list.output_type = steps[i].type, list.activation = steps[i++].activation;
  list.usual = i == steps.size() && (i > 0 || list.narrow);
  return list;
}

// A single channel without gaps: vectors can run along the columns.
bool is_one_row(const EpilogueBlock& block) {
  if (block.channels != 1 || block.columns == 1 || block.source_stride != 1 || block.result_stride != 1)
    return false;
  return std::all_of(block.steps, block.steps + block.step_count,
                     [](const BoundStep& step) { return !has_tensor(step.op) || step.column_stride == 1; });
}

EpilogueBlock as_one_column(EpilogueBlock block, std::array<BoundStep, max_epilogue_steps>& steps) {
  for (BoundStep& step : steps) step.uniform = true;
  block.channels = block.columns;
  block.columns = 1;
  return block;
}

// A single channel whose columns lie apart, as those of a transposed convolution do, and no tensor beside it:
// columns are brought together, so that vectors can run along them.
bool can_be_gathered(const EpilogueBlock& block) {
  return block.channels == 1 && block.columns > 1 &&
         std::none_of(block.steps, block.steps + block.step_count,
                      [](const BoundStep& step) { return has_tensor(step.op); });
}

constexpr std::int64_t columns_together = 256;  // a kilobyte on the stack

void run_gathered(EpilogueBlock block, std::array<BoundStep, max_epilogue_steps>& steps,
                  EpilogueFunction* function) {
  float row[columns_together];
  const std::int64_t columns = block.columns, stride = block.result_stride;
  const bool narrow = block.result_type == ElementType::bf16;
  void* const result = std::exchange(block.result, row);
  const float* const source = std::exchange(block.source, row);
  block.result_type = ElementType::f32;
  for (std::int64_t first = 0; first < columns; first += columns_together) {
    block.columns = std::min(columns_together, columns - first);
    const float* from = source + first * block.source_stride;
    for (std::int64_t i = 0; i < block.columns; ++i) row[i] = from[i * block.source_stride];
    function(as_one_column(block, steps));
    for (std::int64_t i = 0; i < block.columns; ++i) {
      const std::int64_t at = (first + i) * stride;
      if (narrow)
        static_cast<bf16*>(result)[at] = bf16(row[i]);
      else
        static_cast<float*>(result)[at] = row[i];
    }
  }
}

}  // namespace

std::expected<EpilogueRunner, std::string> EpilogueRunner::prepare(const Epilogue& epilogue,
                                                                   const Image& result) {
  EpilogueRunner runner;
  if (epilogue.steps.size() > max_epilogue_steps) return std::unexpected("the epilogue has too many steps");
  for (EpilogueStep step : epilogue.steps) {
    if (std::string fault = fault_of(step); !fault.empty()) return std::unexpected(fault);
    if (step.column_stride == 0) step.column_stride = result.column_stride;
    if (step.row_stride == 0) step.row_stride = result.row_stride;
    if (has_tensor(step.op)) runner.bytes_per_element_ += static_cast<double>(size_in_bytes(step.type));
    runner.steps_[runner.count_++] = step;
  }
  runner.inputs_ = epilogue.inputs();
  runner.outputs_ = epilogue.outputs();
  runner.function_ = SUPERSTEP_VECTOR_FUNCTION(epilogue_function)(usual_list(epilogue, result.type));
  runner.any_list_ = SUPERSTEP_VECTOR_FUNCTION(epilogue_function)(UsualList{});
  return runner;
}

void EpilogueRunner::apply(EpilogueBlock block, const Place& place, const void* const* inputs,
                           void* const* outputs) const {
  std::array<BoundStep, max_epilogue_steps> bound;
  for (std::size_t i = 0; i < count_; ++i) {
    const EpilogueStep& step = steps_[i];
    BoundStep& b = bound[i];
    b = {step.op, step.activation, step.from_output, step.type, step.alpha, step.beta, nullptr, 0};
    if (reads_vector(step.op)) {
      b.operand = const_cast<float*>(static_cast<const float*>(*inputs++) + place.channel);
    } else if (has_tensor(step.op)) {
      void* base = step.op == EpilogueOp::save ? *outputs++ : const_cast<void*>(*inputs++);
      const std::int64_t offset =
          place.shift + place.row * step.row_stride + place.column * step.column_stride + place.channel;
      b.operand =
          static_cast<std::byte*>(base) + offset * static_cast<std::int64_t>(size_in_bytes(step.type));
      b.column_stride = step.column_stride * place.column_step;
    }
  }
  block.steps = bound.data();
  block.step_count = count_;
  if (is_one_row(block))
    any_list_(as_one_column(block, bound));
  else if (can_be_gathered(block))
    run_gathered(block, bound, any_list_);
  else
    function_(block);
}

}  // namespace superstep::kernels
#endif
