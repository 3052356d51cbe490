// Random numbers: the integers of Philox4x32-10 made in the program, the same bits as on every target.
#include <array>
#include <numbers>

#include "superstep/base/random.h"
#include "superstep/op/elementwise/random.h"
#include "superstep/target/pjrt/stablehlo/lowering.h"
#include "superstep/transform/rewrite.h"

namespace superstep::target::stablehlo {
namespace {

using Values = std::vector<Value>;
constexpr ElementType u32 = ElementType::u32, u64 = ElementType::u64;

// Constants of the generator (J. K. Salmon et al., SC 2011, section 4).
constexpr double multiplier_0 = 0xD2511F53, multiplier_1 = 0xCD9E8D57;
constexpr std::uint32_t step_0 = 0x9E3779B9, step_1 = 0xBB67AE85;
constexpr int rounds = 10;

Value low_half(Emitter& emit, const Value& x) { return emit.convert(x, u32); }
Value high_half(Emitter& emit, const Value& x) {
  return emit.convert(emit.binary("shift_right_logical", x, emit.like(x, 32)), u32);
}

// One block of four words for each element of the counter's parts.
std::array<Value, 4> philox_blocks(Emitter& emit, std::array<Value, 4> c, std::uint64_t seed) {
  auto key_0 = static_cast<std::uint32_t>(seed), key_1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < rounds; ++round, key_0 += step_0, key_1 += step_1) {
    const Value a = emit.multiply(emit.convert(c[0], u64), multiplier_0);
    const Value b = emit.multiply(emit.convert(c[2], u64), multiplier_1);
    const auto mixed = [&](const Value& product, const Value& other, std::uint32_t key) {
      return emit.binary("xor", emit.binary("xor", high_half(emit, product), other), emit.like(other, key));
    };
    c = {mixed(b, c[1], key_0), low_half(emit, b), mixed(a, c[3], key_1), low_half(emit, a)};
  }
  return c;
}

// The first `length` words of each of `rows` streams: [rows, length]. `index` (u64 [rows]) numbers them.
Value words(Emitter& emit, const Value& index, std::int64_t length, std::uint64_t seed,
            std::uint32_t purpose) {
  const std::int64_t rows = index.shape()[0], blocks = (length + 3) / 4;
  const Shape shape{rows, blocks};
  const auto along_rows = [&](const Value& x) { return emit.broadcast(x, shape, {0}); };
  const std::array<Value, 4> block =
      philox_blocks(emit,
                    {emit.iota(u32, shape, 1), emit.splat(u32, shape, purpose),
                     along_rows(low_half(emit, index)), along_rows(high_half(emit, index))},
                    seed);
  Values lanes;
  for (const Value& lane : block) lanes.push_back(emit.reshape(lane, {rows, blocks, 1}));
  return emit.cut(emit.reshape(emit.concatenate(lanes, 2), {rows, 4 * blocks}), 1, 0, length);
}

std::uint64_t seed_of(const Site& s) { return static_cast<std::uint64_t>(s.attributes().integer("seed", 0)); }
std::uint32_t stream_of(const Site& s) {
  return static_cast<std::uint32_t>(s.attributes().integer("stream", 0));
}

// Of `rows` samples from `first` on.
Value counter_of(const Site& s, std::int64_t rows, std::int64_t first) {
  const Value counter = s.emit.bitcast(s.emit.reshape(s.in(0), Shape{}), u64);
  Value row = s.emit.iota(u64, {rows}, 0);
  if (first > 0) row = s.emit.add(row, s.emit.splat(u64, {rows}, static_cast<double>(first)));
  return s.emit.add(s.emit.broadcast(counter, {rows}, {}), row);
}

Values random_mask(const Site& s) {
  const Shape& shape = s.out_shape();
  const double keep = s.attributes().number("keep");
  const std::uint64_t threshold = op::keep_threshold(keep);
  const std::int64_t rows = shape.rank() > 0 ? shape[0] : 1;
  if (shape.element_count() == 0 || threshold >> 32) return {s.emit.splat(s.out().element, shape, 1 / keep)};
  const Value drawn =
      words(s.emit, counter_of(s, rows, s.first_row), shape.element_count() / rows, seed_of(s), stream_of(s));
  const Value kept = s.emit.compare("LT", drawn, static_cast<double>(threshold));
  const Value mask = s.emit.select(kept, s.emit.splat(s.out().element, kept.shape(), 1 / keep),
                                   s.emit.splat(s.out().element, kept.shape(), 0));
  return {s.emit.reshape(mask, shape)};
}

// (word / 2^9 + 1/2) / 2^23, exactly.
Value fraction(Emitter& emit, const Value& word) {
  const Value top =
      emit.convert(emit.binary("shift_right_logical", word, emit.like(word, 9)), ElementType::f32);
  return emit.multiply(emit.add(top, 0.5), 0x1p-23);
}

Values random_normal(const Site& s) {
  const std::int64_t count = s.out_shape().element_count(), pairs = (count + 1) / 2;
  if (count == 0) return {s.emit.splat(s.out().element, s.out_shape(), 0)};
  const Value drawn =
      s.emit.reshape(words(s.emit, counter_of(s, 1, 0), 2 * pairs, seed_of(s), stream_of(s)), {pairs, 2});
  const Value u = fraction(s.emit, s.emit.cut(drawn, 1, 0, 1)),
              t = fraction(s.emit, s.emit.cut(drawn, 1, 1, 2));
  const Value radius = s.emit.unary("sqrt", s.emit.multiply(s.emit.unary("log", u), -2));
  const Value angle = s.emit.multiply(t, 2 * std::numbers::pi);
  const Values both = {s.emit.multiply(radius, s.emit.unary("cosine", angle)),
                       s.emit.multiply(radius, s.emit.unary("sine", angle))};
  const Value numbers = s.emit.reshape(s.emit.concatenate(both, 1), {2 * pairs});
  return {s.emit.reshape(s.emit.cut(numbers, 0, 0, count), s.out_shape())};
}

// --- ONNX's own, whose numbers are the same at every run

Value scalar_f64(const Site& s, const Value& x) {
  return s.emit.convert(s.emit.reshape(x, Shape{}), ElementType::f64);
}

// The share that is dropped: f64 [].
Value drop_share(const Site& s) {
  const Value none = s.emit.splat(ElementType::f64, {}, 0);
  const Value share = s.has(1) ? scalar_f64(s, s.in(1)) : s.emit.splat(ElementType::f64, {}, 0.5);
  const Value used = s.emit.select(s.emit.reshape(s.in(2), Shape{}), share, none);
  const Value right = s.emit.binary("and", s.emit.compare("GE", used, 0), s.emit.compare("LT", used, 1));
  s.emit.refuse_where(s.emit.unary("not", right),
                      transform::describe(s.node) + ": input ratio is not in [0, 1)");
  return used;
}

Values dropout(const Site& s) {
  const Value x = s.in(0);
  const Shape& shape = x.shape();
  const Tensor* const training = s.known(2);
  const bool serves = !s.has(2) || (training && training->at(0) == 0);
  if (serves || shape.element_count() == 0) return {x, s.emit.splat(ElementType::boolean, shape, 1)};
  const Value keep = s.emit.subtract(s.emit.splat(ElementType::f64, {}, 1), drop_share(s));
  const Value threshold =
      s.emit.convert(s.emit.unary("round_nearest_afz", s.emit.multiply(keep, 0x1p32)), u64);
  const Value index = s.emit.splat(u64, {1}, 0);
  const Value drawn = s.emit.reshape(words(s.emit, index, shape.element_count(), seed_of(s), 0), shape);
  const Value kept = s.emit.compare("LT", s.emit.convert(drawn, u64), s.emit.broadcast(threshold, shape, {}));
  const Value scale = s.emit.broadcast(s.emit.convert(keep, x.element()), shape, {});
  return {s.emit.select(kept, s.emit.divide(x, scale), s.emit.like(x, 0)), kept};
}

// Uniform numbers in [0, 1), f64, drawn while the program is written: they depend on the seed alone.
Value uniform_numbers(const Site& s, const Shape& shape, op::RandomPurpose purpose) {
  RandomStream random = op::number_stream(s.attributes(), purpose);
  Tensor numbers(ElementType::f64, shape);
  for (double& number : numbers.as<double>()) number = random.uniform();
  return s.emit.constant(numbers);
}

Values bernoulli(const Site& s) {
  const Value drawn = uniform_numbers(s, s.in(0).shape(), op::RandomPurpose::bernoulli);
  const Value share = s.emit.convert(s.in(0), ElementType::f64);
  const Value right = s.emit.binary("and", s.emit.compare("GE", share, 0), s.emit.compare("LE", share, 1));
  s.emit.refuse_where(s.emit.unary("not", right),
                      transform::describe(s.node) + ": input holds what is not a probability");
  return {s.emit.compare("LT", drawn, share)};
}

// The class at which the running sum of a row's probabilities passes a uniform number.
Values multinomial(const Site& s) {
  const Value scores = s.emit.convert(s.in(0), ElementType::f64);
  const std::int64_t rows = scores.shape()[0], classes = scores.shape()[1], samples = s.out_shape()[1];
  const Value top = s.emit.broadcast(s.emit.reduce(scores, {1}, Fold::largest), scores.shape(), {0});
  Value sums = s.emit.unary("exponential", s.emit.subtract(scores, top));
  for (std::int64_t back = 1; back < classes; back *= 2)
    sums = s.emit.add(sums, s.emit.pad(sums, s.emit.splat(ElementType::f64, {}, 0), {0, back}, {0, -back}));
  const Value totals = s.emit.reshape(s.emit.cut(sums, 1, classes - 1, classes), {rows});
  const Value drawn = uniform_numbers(s, {rows, samples}, op::RandomPurpose::multinomial);
  const Value targets = s.emit.multiply(drawn, s.emit.broadcast(totals, drawn.shape(), {0}));
  const Shape all{rows, samples, classes};
  const Value passed =
      s.emit.compare("LE", s.emit.broadcast(sums, all, {0, 2}), s.emit.broadcast(targets, all, {0, 1}));
  const Value place = s.emit.reduce(s.emit.convert(passed, ElementType::i64), {2}, Fold::sum);
  return {s.emit.minimum(place, s.emit.like(place, static_cast<double>(classes - 1)))};
}

}  // namespace

std::span<const Lowering> random_lowerings() {
  static const Lowering table[] = {
      {"superstep.RandomMask", random_mask},
      {"superstep.RandomNormal", random_normal},
      {"Dropout", dropout},
      {"Bernoulli", bernoulli, Inputs::as_they_are},
      {"Multinomial", multinomial, Inputs::as_they_are},
  };
  return table;
}

}  // namespace superstep::target::stablehlo
