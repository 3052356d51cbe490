#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/move/copy.h"
#include "tests/cpu_kernels/support/check.h"
#include "tests/expect_error.h"

namespace superstep::kernels {
namespace {

template <class Body>
void for_each_index(const StridedCopy& copy, const Body& body) {
  std::vector<std::int64_t> index(copy.extents.size());
  for (;;) {
    std::int64_t x = 0, y = 0;
    for (std::size_t i = 0; i < index.size(); ++i)
      x += index[i] * copy.x_strides[i], y += index[i] * copy.y_strides[i];
    body(x, y);
    std::size_t axis = index.size();
    while (axis-- > 0 && ++index[axis] == copy.extents[axis]) index[axis] = 0;
    if (axis == static_cast<std::size_t>(-1)) return;
  }
}

// Row-major strides of the axes in a random order, with gaps; `size` is what the buffer must hold.
std::vector<std::int64_t> random_strides(RandomStream& random, const std::vector<std::int64_t>& extents,
                                         std::int64_t& size) {
  std::vector<std::size_t> order(extents.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  std::vector<std::int64_t> strides(extents.size());
  std::int64_t stride = random.below(8) == 0 ? 3 : 1;
  size = 1;
  for (std::size_t i : order) {
    strides[i] = stride;
    size += (extents[i] - 1) * stride;
    stride = stride * extents[i] + (random.below(3) == 0 ? static_cast<std::int64_t>(random.below(6)) : 0);
  }
  return strides;
}

constexpr ElementType types[] = {ElementType::f32, ElementType::f32, ElementType::u8,  ElementType::bf16,
                                 ElementType::f64, ElementType::i32, ElementType::f16, ElementType::i64};

TEST(Copy, moves_every_element_and_no_other) {
  for_each_instruction_set([] {
    static constexpr std::int64_t kinds[] = {1, 2, 3, 8, 16, 17, 33, 70};
    for (std::uint64_t seed = 0; seed < 150; ++seed) {
      RandomStream random(seed);
      StridedCopy copy;
      copy.extents.resize(random.below(5));
      std::int64_t count = 1;
      for (auto& extent : copy.extents) {
        extent = kinds[random.below(std::size(kinds))];
        if (count * extent > 5000) extent = 1;
        count *= extent;
      }
      std::int64_t x_size = 0, y_size = 0;
      copy.x_strides = random_strides(random, copy.extents, x_size);
      copy.y_strides = random_strides(random, copy.extents, y_size);
      if (!copy.extents.empty() && random.below(4) == 0) copy.x_strides[0] = 0;
      copy.x_type = copy.y_type = types[random.below(std::size(types))];
      if (random.below(3) == 0)
        copy.x_type = ElementType::f32, copy.y_type = random.below(2) ? ElementType::bf16 : ElementType::f16;
      if (random.below(5) == 0) std::swap(copy.x_type, copy.y_type);
      GuardedBuffer x(copy.x_type, x_size), y(copy.y_type, y_size);
      x.fill_random(seed, 0, 100);
      y.fill(77);
      std::vector<double> expected(static_cast<std::size_t>(y_size), 77);
      GuardedBuffer one(copy.y_type, 1);
      for_each_index(copy, [&](std::int64_t from, std::int64_t to) {
        one.set(0, x.get(from));
        expected[static_cast<std::size_t>(to)] = one.get(0);
      });
      run_kernel(*require_kernel(prepare(copy)), {x.data()}, {y.data()});
      int wrong = 0;
      for (std::int64_t i = 0; i < y_size; ++i) wrong += y.get(i) != expected[static_cast<std::size_t>(i)];
      EXPECT_EQ(0, wrong) << "seed " << seed;
    }
  });
}

// Of a dense [N, C, H, W] tensor into an HWNC image.
StridedCopy from_nchw(const Image& image) {
  const std::int64_t plane = image.height * image.width;
  return {{image.height, image.width, image.batch, image.channels},
          {image.width, 1, image.channels * plane, plane},
          {image.row_stride, image.batch * image.column_stride, image.column_stride, 1},
          ElementType::f32,
          image.type};
}

TEST(Copy, takes_user_tensors_into_images_and_back) {
  for_each_instruction_set([] {
    for (std::int64_t channels : {1, 3, 16, 37}) {
      Image image = dense_image(5, 7, 3, channels);
      image.column_stride += 4;
      image.row_stride = image.columns() * image.column_stride;
      GuardedBuffer user(ElementType::f32, 3 * channels * 35), back(ElementType::f32, user.size());
      GuardedBuffer inside(ElementType::f32, extent_of(image));
      user.fill_random(1);
      run_kernel(*require_kernel(prepare(from_nchw(image))), {user.data()}, {inside.data()});
      StridedCopy out = from_nchw(image);
      std::swap(out.x_strides, out.y_strides);
      std::swap(out.x_type, out.y_type);
      run_kernel(*require_kernel(prepare(out)), {inside.data()}, {back.data()});
      EXPECT_EQ(user.get((1 * channels + channels - 1) * 35 + 2 * 7 + 6),
                inside.get(address_of(image, 2, 6, 1, channels - 1)));
      for (std::int64_t i = 0; i < user.size(); ++i) ASSERT_EQ(user.get(i), back.get(i));
    }
  });
}

TEST(Copy, refuses_what_it_cannot_do) {
  EXPECT_EQ("the destination names an element twice", prepare(StridedCopy{{4}, {1}, {0}}).error().reason);
  EXPECT_EQ("extents and strides differ in length", prepare(StridedCopy{{4}, {1}, {}}).error().reason);
  EXPECT_EQ("no conversion of i32 to f32",
            prepare(StridedCopy{{4}, {1}, {1}, ElementType::i32}).error().reason);
}

TEST(Copy, copies_nothing_of_an_empty_tensor_whatever_its_strides) {
  float x = 1, y = 2;
  run_kernel(*require_kernel(prepare(StridedCopy{{2, 0, 3}, {0, 3, 1}, {0, 3, 1}})), {&x}, {&y});
  EXPECT_EQ(2, y);
}

TEST(Gather, takes_rows_from_both_ends) {
  GatherRows g{.table_rows = 4, .rows = 4, .length = 3, .table_stride = 5, .y_stride = 4};
  std::vector<float> table(20), y(16, -1);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i);
  const std::vector<std::int64_t> index{3, -1, 0, -4};
  run_kernel(*require_kernel(prepare_gather(g)), {table.data(), index.data()}, {y.data()});
  const std::vector<float> expected{15, 16, 17, -1, 15, 16, 17, -1, 0, 1, 2, -1, 0, 1, 2, -1};
  EXPECT_EQ(expected, y);
}

TEST(Gather, refuses_an_index_outside_and_so_does_scatter) {
  const GatherRows g{.table_rows = 4, .rows = 3, .length = 1, .index_type = ElementType::i32};
  std::vector<float> table(4), y(3);
  for (const std::int32_t outside : {4, -5, 1 << 30}) {
    const std::vector<std::int32_t> index{0, outside, 1};
    const std::string expected = fmt::format("index {} of input indices lies outside [-4, 3]", outside);
    expect_error(ErrorCode::invalid_argument, {expected}, [&] {
      run_kernel(*require_kernel(prepare_gather(g)), {table.data(), index.data()}, {y.data()});
    });
    expect_error(ErrorCode::invalid_argument, {expected}, [&] {
      run_kernel(*require_kernel(prepare_scatter_add(g)), {y.data(), index.data()}, {table.data()});
    });
  }
}

TEST(Gather, takes_the_rows_of_any_index) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      RandomStream random(seed);
      const auto below = [&](std::uint64_t bound) { return static_cast<std::int64_t>(random.below(bound)); };
      GatherRows g{.table_rows = 1 + below(9), .rows = below(40), .length = 1 + below(40)};
      g.table_stride = g.length + below(3), g.y_stride = g.length + below(3);
      g.type = types[random.below(std::size(types))];
      if (below(2) == 0) g.index_type = ElementType::i32;
      GuardedBuffer table = strided_buffer(g.type, {g.table_rows, g.length}, {g.table_stride, 1}),
                    y = strided_buffer(g.type, {g.rows, g.length}, {g.y_stride, 1}),
                    index(g.index_type, g.rows);
      table.fill_random(seed, 0, 100), y.fill(77);
      index.fill_random(seed + 1, -static_cast<double>(g.table_rows), static_cast<double>(g.table_rows - 1));
      run_kernel(*require_kernel(prepare_gather(g)), {table.data(), index.data()}, {y.data()});
      int wrong = 0;
      for (std::int64_t r = 0; r < g.rows; ++r) {
        std::int64_t row = static_cast<std::int64_t>(index.get(r));
        if (row < 0) row += g.table_rows;
        for (std::int64_t i = 0; i < g.length; ++i)
          wrong += y.get(r * g.y_stride + i) != table.get(row * g.table_stride + i);
      }
      EXPECT_EQ(0, wrong) << "seed " << seed;
    }
  });
}

TEST(Gather, is_divided_where_it_moves_much) {
  const GatherRows g{.table_rows = 50, .rows = 30000, .length = 4};
  const KernelPointer kernel = require_kernel(prepare_gather(g));
  EXPECT_EQ(kernel->info().parts, 7);
  GuardedBuffer table(ElementType::f32, 200), index(ElementType::i64, g.rows),
      y(ElementType::f32, 4 * g.rows);
  table.fill_random(1), index.fill_random(2, -50, 49), y.fill(77);
  run_kernel(*kernel, {table.data(), index.data()}, {y.data()});
  std::int64_t wrong = 0;
  for (std::int64_t r = 0; r < g.rows; ++r) {
    const auto given = static_cast<std::int64_t>(index.get(r)), row = given < 0 ? given + 50 : given;
    for (std::int64_t i = 0; i < 4; ++i) wrong += y.get(4 * r + i) != table.get(4 * row + i);
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(require_kernel(prepare_gather({.table_rows = 50, .rows = 100, .length = 4}))->info().parts, 1);
}

TEST(Gather, scatter_adds_into_rows_in_order) {
  for_each_instruction_set([] {
    GatherRows g{.table_rows = 6, .rows = 40, .length = 19, .index_type = ElementType::i32};
    GuardedBuffer dy(ElementType::f32, 40 * 19), table(ElementType::f32, 6 * 19), index(ElementType::i32, 40);
    dy.fill_random(1), table.fill_random(2), index.fill_random(3, -6, 5.9);
    std::vector<Sum> expected(6 * 19);
    for (std::int64_t i = 0; i < table.size(); ++i) expected[static_cast<std::size_t>(i)].add(table.get(i));
    for (std::int64_t r = 0; r < 40; ++r) {
      const auto row = static_cast<std::int64_t>(index.get(r)) + (index.get(r) < 0 ? 6 : 0);
      for (std::int64_t i = 0; i < 19; ++i)
        expected[static_cast<std::size_t>(row * 19 + i)].add(dy.get(r * 19 + i));
    }
    run_kernel(*require_kernel(prepare_scatter_add(g)), {dy.data(), index.data()}, {table.data()});
    EXPECT_EQ(0, count_wrong(expected, 40, ElementType::f32,
                             [&](std::size_t i) { return table.get(static_cast<std::int64_t>(i)); }));
  });
}

}  // namespace
}  // namespace superstep::kernels
