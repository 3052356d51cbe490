// Packed weights, element by element, and back.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/core/instruction_set.h"
#include "superstep/target/cpu/kernels/product/pair_panel.h"
#include "superstep/target/cpu/kernels/product/weights.h"
#include "superstep/target/cpu/kernels/winograd/winograd_weights.h"
#include "tests/cpu_kernels/support/check.h"

namespace superstep::kernels {
namespace {

constexpr WeightLayout plain_layouts[] = {WeightLayout::taps_in_out,       WeightLayout::taps_out_in,
                                          WeightLayout::taps_in_out_pairs, WeightLayout::taps_out_in_pairs,
                                          WeightLayout::taps_out_in_rows,  WeightLayout::taps_in_out_rows,
                                          WeightLayout::taps_channels};
const WeightLayout winograd_layouts[] = {winograd_weights(2, false), winograd_weights(3, false),
                                         winograd_weights(4, false), winograd_weights(2, true),
                                         winograd_weights(3, true),  winograd_weights(4, true)};

bool is_pairs(WeightLayout layout) {
  return layout == WeightLayout::taps_in_out_pairs || layout == WeightLayout::taps_out_in_pairs;
}

struct Element {
  std::int64_t group, in, out, tap;
};

template <class Body>
void for_each_weight(const WeightTransfer& t, const Body& body) {
  for (std::int64_t g = 0; g < t.groups; ++g)
    for (std::int64_t i = 0; i < t.in; ++i)
      for (std::int64_t o = 0; o < t.out; ++o)
        for (std::int64_t k = 0; k < t.taps(); ++k) body(Element{g, i, o, k});
}

std::int64_t stored_at(const WeightTransfer& t, const Element& e) {
  const std::int64_t taps = t.taps();
  if (t.order == WeightOrder::out_in_taps) return ((e.group * t.out + e.out) * t.in + e.in) * taps + e.tap;
  return ((e.group * t.in + e.in) * t.out + e.out) * taps + e.tap;
}

std::int64_t packed_at(const WeightTransfer& t, const Element& e) {
  const std::int64_t taps = t.taps();
  if (t.layout == WeightLayout::taps_channels) return e.tap * t.groups + e.group;
  const bool out_inside = t.layout == WeightLayout::taps_in_out ||
                          t.layout == WeightLayout::taps_in_out_pairs ||
                          t.layout == WeightLayout::taps_in_out_rows;
  const bool rows = t.layout == WeightLayout::taps_in_out_rows || t.layout == WeightLayout::taps_out_in_rows;
  const std::int64_t width = out_inside ? t.out : t.in, column = out_inside ? e.out : e.in;
  const std::int64_t row = out_inside ? e.in : e.out;
  const std::int64_t depth =
      is_pairs(t.layout) ? padded_depth(out_inside ? t.in : t.out) : (out_inside ? t.in : t.out);
  const std::int64_t first = rows ? 0 : column / panel_width * panel_width;
  const std::int64_t panel = rows ? width : std::min(panel_width, width - first);
  const std::int64_t start = (e.group * width + first) * depth * taps + e.tap * depth * panel;
  if (is_pairs(t.layout)) return start + (row / 2 * panel + column - first) * 2 + row % 2;
  return start + row * panel + column - first;
}

WeightTransfer random_transfer(std::uint64_t seed, WeightLayout layout) {
  RandomStream random(seed);
  static constexpr std::int64_t channels[] = {1, 2, 3, 5, 16, 17, 63, 64, 65, 70, 130};
  const auto one_to = [&](std::uint64_t bound) { return 1 + static_cast<std::int64_t>(random.below(bound)); };
  WeightTransfer t{.groups = one_to(3),
                   .in = channels[random.below(std::size(channels))],
                   .out = channels[random.below(std::size(channels))],
                   .kernel_d = random.below(3) == 0 ? one_to(3) : 1,
                   .kernel_h = one_to(3),
                   .kernel_w = one_to(3),
                   .layout = layout};
  if (random.below(3) == 0) t.kernel_d = t.kernel_h = t.kernel_w = 1;
  if (random.below(2) == 0) t.order = WeightOrder::in_out_taps;
  if (is_pairs(layout) || random.below(3) == 0) t.type = ElementType::bf16;
  if (layout == WeightLayout::taps_channels)
    t.groups = channels[random.below(std::size(channels))], t.in = t.out = 1;
  return t;
}

std::string describe(const WeightTransfer& t) {
  return fmt::format("{}: {} x {} -> {}, taps {} x {} x {}, order {}, {}", name_of(t.layout), t.groups, t.in,
                     t.out, t.kernel_d, t.kernel_h, t.kernel_w, static_cast<int>(t.order), name_of(t.type));
}

GuardedBuffer stored_weights(const WeightTransfer& t, std::uint64_t seed) {
  GuardedBuffer stored(ElementType::f32, t.groups * t.in * t.out * t.taps());
  stored.fill_random(seed);
  return stored;
}

GuardedBuffer pack(const WeightTransfer& t, const GuardedBuffer& stored) {
  GuardedBuffer packed(t.type, static_cast<std::int64_t>(packed_elements(t)));
  packed.fill(7);
  run_kernel(*require_kernel(prepare_pack(t)), {stored.data()}, {packed.data()});
  return packed;
}

// Elements that are not where they belong, or something else than zero between them.
int wrong_elements(const WeightTransfer& t, const GuardedBuffer& stored, const GuardedBuffer& packed) {
  std::vector<double> expected(static_cast<std::size_t>(packed.size()));
  GuardedBuffer one(t.type, 1);
  for_each_weight(t, [&](const Element& e) {
    one.set(0, stored.get(stored_at(t, e)));
    expected.at(static_cast<std::size_t>(packed_at(t, e))) = one.get(0);
  });
  int wrong = 0;
  for (std::int64_t i = 0; i < packed.size(); ++i)
    wrong += packed.get(i) != expected[static_cast<std::size_t>(i)];
  return wrong;
}

TEST(Weights, lie_where_the_layout_says) {
  for_each_instruction_set([] {
    for (const WeightLayout layout : plain_layouts)
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const WeightTransfer t = random_transfer(seed, layout);
        const GuardedBuffer stored = stored_weights(t, seed);
        EXPECT_EQ(0, wrong_elements(t, stored, pack(t, stored))) << "seed " << seed << ", " << describe(t);
      }
  });
}

TEST(Weights, come_back_as_they_were) {
  for_each_instruction_set([] {
    for (const WeightLayout layout : plain_layouts)
      for (std::uint64_t seed = 0; seed < 10 && !is_pairs(layout); ++seed) {
        WeightTransfer t = random_transfer(seed, layout);
        t.type = ElementType::f32;
        const GuardedBuffer stored = stored_weights(t, seed), packed = pack(t, stored);
        GuardedBuffer back(ElementType::f32, stored.size());
        run_kernel(*require_kernel(prepare_unpack(t)), {packed.data()}, {back.data()});
        int wrong = 0;
        for (std::int64_t i = 0; i < back.size(); ++i) wrong += back.get(i) != stored.get(i);
        EXPECT_EQ(0, wrong) << "seed " << seed << ", " << describe(t);
      }
  });
}

// Transformed ones are checked by the convolutions that read them; here, that both orders are understood.
TEST(Weights, are_the_same_packed_from_either_order) {
  for_each_instruction_set([] {
    for (const WeightLayout layout : winograd_layouts)
      for (std::uint64_t seed = 0; seed < 6; ++seed) {
        WeightTransfer t = random_transfer(seed, layout), other;
        t.groups = t.kernel_d = 1, t.kernel_h = t.kernel_w = 3, t.type = ElementType::f32,
        t.order = WeightOrder::out_in_taps;
        other = t;
        other.order = WeightOrder::in_out_taps;
        const GuardedBuffer stored = stored_weights(t, seed);
        GuardedBuffer turned(ElementType::f32, stored.size());
        for_each_weight(
            t, [&](const Element& e) { turned.set(stored_at(other, e), stored.get(stored_at(t, e))); });
        const GuardedBuffer a = pack(t, stored), b = pack(other, turned);
        int wrong = 0;
        for (std::int64_t i = 0; i < a.size(); ++i) wrong += a.get(i) != b.get(i);
        EXPECT_EQ(0, wrong) << "seed " << seed << ", " << describe(t);
      }
  });
}

TEST(Weights, the_test_would_notice_another_order) {
  WeightTransfer t{.in = 20, .out = 30, .kernel_h = 2};
  const GuardedBuffer stored = stored_weights(t, 1), packed = pack(t, stored);
  t.order = WeightOrder::in_out_taps;
  EXPECT_LT(1000, wrong_elements(t, stored, packed));
}

TEST(Weights, refuse_what_no_kernel_reads) {
  const auto reason = [](const WeightTransfer& t) { return prepare_pack(t).error().reason; };
  EXPECT_EQ("an extent of the weights is not positive", reason({.in = 0}));
  EXPECT_EQ("pairs are a layout of bf16", reason({.layout = WeightLayout::taps_in_out_pairs}));
  EXPECT_EQ("the depthwise layout needs one input and one output channel a group",
            reason({.in = 2, .layout = WeightLayout::taps_channels}));
  EXPECT_EQ("gradients are unpacked in f32 only", prepare_unpack({.type = ElementType::bf16}).error().reason);
  EXPECT_EQ("a kernel's own order of weights is not unpacked",
            prepare_unpack({.layout = winograd_weights(2, false)}).error().reason);
}

}  // namespace
}  // namespace superstep::kernels
