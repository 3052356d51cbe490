// Weights whose packed form is the stored one.
#include <gtest/gtest.h>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/product/weights.h"
#include "tests/cpu_kernels/support/check.h"

namespace superstep::kernels {
namespace {

bool moves_nothing(const WeightTransfer& transfer) {
  const std::int64_t count =
      transfer.groups * transfer.in * transfer.out * transfer.kernel_h * transfer.kernel_w;
  if (static_cast<std::int64_t>(packed_elements(transfer)) != count) return false;
  GuardedBuffer stored(ElementType::f32, count), packed(ElementType::f32, count);
  for (std::int64_t i = 0; i < count; ++i) stored.set(i, static_cast<double>(i));
  run_kernel(*require_kernel(prepare_pack(transfer)), {stored.data()}, {packed.data()});
  for (std::int64_t i = 0; i < count; ++i)
    if (packed.get(i) != stored.get(i)) return false;
  return true;
}

TEST(StoredWeights, are_in_their_stored_form_exactly_where_packing_moves_nothing) {
  static constexpr WeightLayout layouts[] = {WeightLayout::taps_in_out, WeightLayout::taps_out_in,
                                             WeightLayout::taps_out_in_rows, WeightLayout::taps_in_out_rows};
  static constexpr std::int64_t channels[] = {1, 2, 30, 64, 65, 128}, taps[] = {1, 1, 3};
  int alike = 0, different = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    RandomStream random(seed);
    WeightTransfer transfer{.groups = 1 + static_cast<std::int64_t>(random.below(2)),
                            .in = channels[random.below(6)],
                            .out = channels[random.below(6)],
                            .kernel_h = taps[random.below(3)],
                            .kernel_w = taps[random.below(3)],
                            .order = random.below(2) ? WeightOrder::out_in_taps : WeightOrder::in_out_taps,
                            .layout = layouts[seed % 4]};
    const bool stored = is_stored_form(transfer);
    ASSERT_EQ(stored, moves_nothing(transfer)) << seed;
    ++(stored ? alike : different);
  }
  EXPECT_GT(alike, 20);
  EXPECT_GT(different, 100);
}

TEST(StoredWeights, that_change_their_type_are_packed) {
  const WeightTransfer transfer{
      .in = 8, .out = 8, .layout = WeightLayout::taps_out_in_rows, .type = ElementType::bf16};
  EXPECT_FALSE(is_stored_form(transfer));
}

}  // namespace
}  // namespace superstep::kernels
