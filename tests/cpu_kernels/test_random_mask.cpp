#include <gtest/gtest.h>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/elementwise/random_mask.h"
#include "tests/cpu_kernels/support/check.h"

namespace superstep::kernels {
namespace {

// Element e of a sample, from the stream it is defined by.
bool kept(const RandomAddress& a, std::uint64_t sample, std::int64_t e, float keep) {
  RandomStream stream(a.seed, sample, a.purpose);
  for (std::int64_t i = 0; i < e; ++i) stream.next_u32();
  return static_cast<double>(stream.next_u32()) < std::floor(static_cast<double>(keep) * 0x1p32);
}

void check(RandomMask mask, const RandomAddress& address) {
  GuardedBuffer buffer = image_buffer(mask.image);
  run_kernel(*require_kernel(prepare(mask)), {&address}, {buffer.data()});
  const Image& image = mask.image;
  const bool by_channel = mask.number_c == 0;
  GuardedBuffer one(image.type, 1);
  int wrong = 0;
  for_each_element(image, [&](std::int64_t h, std::int64_t w, std::int64_t n, std::int64_t c) {
    const std::int64_t e = by_channel ? (c * image.height + h) * image.width + w
                                      : h * mask.number_h + w * mask.number_w + c * mask.number_c;
    const bool keeps = kept(address, address.first_sample + static_cast<std::uint64_t>(n), e, mask.keep);
    one.set(0, !keeps ? 0 : image.type == ElementType::u8 ? 1 : static_cast<double>(1 / mask.keep));
    wrong += buffer.get(address_of(image, h, w, n, c)) != one.get(0);
  });
  EXPECT_EQ(0, wrong) << image.channels;
}

TEST(RandomMask, is_made_of_the_numbers_of_the_sample_streams) {
  for_each_instruction_set([] {
    const RandomAddress address{0x123456789abcdefull, 0xfffffffeull, 7};
    for (std::int64_t channels : {1, 5, 16, 40, 131})
      for (ElementType type : {ElementType::u8, ElementType::f32, ElementType::bf16}) {
        RandomMask mask{dense_image(2, 3, 3, channels, type), 0.7f};
        check(mask, address);
        mask.number_c = 1, mask.number_w = channels, mask.number_h = 3 * channels;
        check(mask, address);
      }
  });
}

TEST(RandomMask, fills_images_of_any_shape_and_nothing_between) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      RandomStream random(seed);
      const auto one_to = [&](std::uint64_t bound) {
        return 1 + static_cast<std::int64_t>(random.below(bound));
      };
      static constexpr ElementType types[] = {ElementType::u8, ElementType::f32, ElementType::bf16};
      RandomMask mask{dense_image(one_to(4), one_to(5), one_to(4), one_to(70), types[seed % 3]), 0.4f};
      mask.image.column_stride += one_to(4) - 1;
      mask.image.row_stride = mask.image.columns() * mask.image.column_stride + one_to(4) - 1;
      if (seed % 2 == 0) {
        mask.number_c = 1, mask.number_w = mask.image.channels;
        mask.number_h = mask.image.width * mask.image.channels;
      }
      check(mask, {seed, random.below(1000), 3});
    }
  });
}

TEST(RandomMask, does_not_depend_on_the_micro_batch) {
  const RandomMask whole{dense_image(1, 2, 6, 33, ElementType::u8), 0.5f},
      part{dense_image(1, 2, 2, 33, ElementType::u8), 0.5f};
  GuardedBuffer all(ElementType::u8, extent_of(whole.image)), some(ElementType::u8, extent_of(part.image));
  RandomAddress address{5, 100, 1};
  run_kernel(*require_kernel(prepare(whole)), {&address}, {all.data()});
  address.first_sample = 104;
  run_kernel(*require_kernel(prepare(part)), {&address}, {some.data()});
  int different = 0;
  for_each_element(part.image, [&](std::int64_t h, std::int64_t w, std::int64_t n, std::int64_t c) {
    different +=
        some.get(address_of(part.image, h, w, n, c)) != all.get(address_of(whole.image, h, w, n + 4, c));
  });
  EXPECT_EQ(0, different);
}

TEST(RandomMask, keeps_the_share_asked_for) {
  const RandomMask mask{dense_image(10, 10, 10, 100, ElementType::u8), 0.3f};
  GuardedBuffer buffer(ElementType::u8, extent_of(mask.image));
  const RandomAddress address{1, 0, 0};
  run_kernel(*require_kernel(prepare(mask)), {&address}, {buffer.data()});
  double sum = 0;
  for (std::int64_t i = 0; i < buffer.size(); ++i) sum += buffer.get(i);
  EXPECT_NEAR(0.3, sum / 1e5, 0.006);  // four standard deviations
}

TEST(RandomMask, refuses_what_it_cannot_do) {
  EXPECT_EQ("the share to keep must lie between 0 and 1",
            prepare(RandomMask{dense_image(1, 1, 1, 4), 1.0f}).error().reason);
  EXPECT_EQ("no mask of i32",
            prepare(RandomMask{dense_image(1, 1, 1, 4, ElementType::i32), 0.5f}).error().reason);
}

}  // namespace
}  // namespace superstep::kernels
