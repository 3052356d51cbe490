// Tensor expressions against an oracle that keeps the element at every place in a list.
#include <gtest/gtest.h>

#include <numeric>

#include "superstep/base/random.h"
#include "superstep/bsp/graph/graph.h"
#include "tests/contains.h"

namespace superstep::bsp {
namespace {

// (variable, element) at every place, row-major.
using Elements = std::vector<std::pair<std::size_t, std::int64_t>>;

Elements elements_of(const Tensor& tensor) {
  Elements elements;
  for (const Run& run : tensor.view().runs()) {
    EXPECT_EQ(run.place, static_cast<std::int64_t>(elements.size()));
    for (std::int64_t i = 0; i < run.length; ++i)
      elements.emplace_back(run.variable.index(), run.element + i * run.stride);
  }
  EXPECT_EQ(static_cast<std::int64_t>(elements.size()), tensor.num_elements());
  return elements;
}

struct Oracle {
  Shape shape;
  Elements elements;
};

// The oracle of `shape` whose place `coordinates` holds what `source` gives for it.
template <class F>
Oracle gather(const Oracle& from, Shape shape, F&& source) {
  Oracle result{shape, {}};
  const auto from_strides = from.shape.row_major_strides();
  for (std::int64_t place = 0; place < shape.element_count(); ++place) {
    std::vector<std::int64_t> at(static_cast<std::size_t>(shape.rank()));
    std::int64_t rest = place;
    const auto strides = shape.row_major_strides();
    for (std::size_t i = 0; i < at.size(); ++i) at[i] = rest / strides[i], rest %= strides[i];
    source(at);
    std::int64_t old = 0;
    for (std::size_t i = 0; i < at.size(); ++i) old += at[i] * from_strides[i];
    result.elements.push_back(from.elements[static_cast<std::size_t>(old)]);
  }
  return result;
}

Shape resized(const Shape& shape, int axis, std::int64_t extent) {
  std::vector<std::int64_t> extents = shape.extents();
  extents[static_cast<std::size_t>(axis)] = extent;
  return Shape(extents);
}

// One random operation on both.
void step(RandomStream& random, Tensor& tensor, Oracle& oracle) {
  const int rank = tensor.rank();
  const int axis = static_cast<int>(random.below(static_cast<std::uint64_t>(rank)));
  const auto a = static_cast<std::size_t>(axis);
  const std::int64_t extent = tensor.shape()[axis];
  switch (random.below(9)) {
    case 0: {
      const auto begin = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(extent)));
      const auto end =
          begin + 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(extent - begin)));
      tensor = tensor.slice(begin, end, axis);
      oracle = gather(oracle, resized(oracle.shape, axis, end - begin), [&](auto& at) { at[a] += begin; });
      break;
    }
    case 1: {
      std::vector<int> permutation(static_cast<std::size_t>(rank));
      std::iota(permutation.begin(), permutation.end(), 0);
      for (std::size_t i = permutation.size(); i > 1; --i)
        std::swap(permutation[i - 1], permutation[random.below(i)]);
      tensor = tensor.dim_shuffle(permutation);
      std::vector<std::int64_t> extents;
      for (const int p : permutation) extents.push_back(oracle.shape[p]);
      oracle = gather(oracle, Shape(extents), [&](auto& at) {
        const auto now = at;
        for (std::size_t i = 0; i < now.size(); ++i) at[static_cast<std::size_t>(permutation[i])] = now[i];
      });
      break;
    }
    case 2: {
      if (tensor.num_elements() > 300) break;
      const auto times = static_cast<std::int64_t>(1 + random.below(3));
      tensor = tensor.broadcast(times, axis);
      oracle =
          gather(oracle, resized(oracle.shape, axis, extent * times), [&](auto& at) { at[a] %= extent; });
      break;
    }
    case 3: {
      const auto step = static_cast<std::int64_t>(1 + random.below(4));
      tensor = tensor.sub_sample(step, axis);
      oracle = gather(oracle, resized(oracle.shape, axis, (extent + step - 1) / step),
                      [&](auto& at) { at[a] *= step; });
      break;
    }
    case 4:
      tensor = tensor.reverse(axis);
      oracle = gather(oracle, oracle.shape, [&](auto& at) { at[a] = extent - 1 - at[a]; });
      break;
    case 5: {
      if (tensor.num_elements() > 300) break;
      const auto scale = static_cast<std::int64_t>(1 + random.below(3));
      tensor = tensor.upsample(scale, axis);
      oracle = gather(oracle, resized(oracle.shape, axis, extent * scale), [&](auto& at) { at[a] /= scale; });
      break;
    }
    case 6: {  // flatten, or split a dimension
      if (random.below(2) == 0) {
        tensor = tensor.flatten();
      } else {
        std::vector<std::int64_t> extents = tensor.shape().extents();
        for (std::int64_t factor : {2, 3, 5})
          if (extent % factor == 0 && rank < 5) {
            extents[a] /= factor;
            extents.insert(extents.begin() + axis + 1, factor);
            break;
          }
        tensor = tensor.reshape(Shape(extents));
      }
      oracle.shape = tensor.shape();
      break;
    }
    case 7: {
      if (tensor.num_elements() > 300) break;
      const Tensor reversed = tensor.reverse(0);
      const Oracle other =
          gather(oracle, oracle.shape, [&](auto& at) { at[0] = oracle.shape[0] - 1 - at[0]; });
      Oracle both =
          gather(oracle, resized(oracle.shape, axis, 2 * extent), [&](auto& at) { at[a] %= extent; });
      const auto strides = both.shape.row_major_strides();
      const auto small = oracle.shape.row_major_strides();
      for (std::size_t place = 0; place < both.elements.size(); ++place) {
        std::int64_t rest = static_cast<std::int64_t>(place), old = 0;
        bool second = false;
        for (int i = 0; i < both.shape.rank(); ++i) {
          std::int64_t at = rest / strides[static_cast<std::size_t>(i)];
          rest %= strides[static_cast<std::size_t>(i)];
          if (i == axis && at >= extent) second = true, at -= extent;
          old += at * small[static_cast<std::size_t>(i)];
        }
        if (second) both.elements[place] = other.elements[static_cast<std::size_t>(old)];
      }
      tensor = concat(tensor, reversed, axis);
      oracle = both;
      break;
    }
    default:
      if (rank > 1 && extent > 0) {
        const auto index = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(tensor.dim(0))));
        Oracle cut = gather(oracle, resized(oracle.shape, 0, 1), [&](auto& at) { at[0] += index; });
        tensor = tensor[index];
        cut.shape = tensor.shape();
        oracle = cut;
      }
  }
}

TEST(Tensor, RandomExpressionsHoldTheRightElements) {
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    RandomStream random(11, seed);
    Graph graph(gc200_device());
    const Shape shape{static_cast<std::int64_t>(2 + random.below(4)),
                      static_cast<std::int64_t>(1 + random.below(6)),
                      static_cast<std::int64_t>(2 + random.below(5))};
    Tensor tensor = graph.add_variable(Type::f32, shape);
    Oracle oracle{shape, elements_of(tensor)};
    for (int i = 0; i < 8; ++i) {
      step(random, tensor, oracle);
      ASSERT_EQ(tensor.shape(), oracle.shape) << "seed " << seed << " step " << i;
      ASSERT_EQ(elements_of(tensor), oracle.elements) << "seed " << seed << " step " << i;
    }
    Elements sorted = oracle.elements;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(tensor.contains_aliases(), std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
        << seed;
    Elements counted;
    tensor.view().for_each_interval([&](VariableId id, std::int64_t begin, std::int64_t end) {
      for (std::int64_t e = begin; e < end; ++e) counted.emplace_back(id.index(), e);
    });
    std::sort(counted.begin(), counted.end());
    EXPECT_EQ(counted, sorted) << seed;
  }
}

// The control of the test above: an oracle that is wrong in one place is noticed.
TEST(Tensor, TheOracleNoticesAWrongElement) {
  Graph graph(gc200_device());
  const Tensor tensor = graph.add_variable(Type::f32, {3, 4}).transpose();
  Elements elements = elements_of(tensor);
  EXPECT_EQ(elements[1].second, 4);
  elements[1].second = 1;
  EXPECT_NE(elements_of(tensor), elements);
}

TEST(Tensor, HugeViewsAreSmall) {
  Graph graph(gc200_device());
  const Tensor matrix = graph.add_variable(Type::f16, {10000, 10000});
  const Tensor view = matrix.transpose().reshape({100, 100, 10000}).slice(3, 97, 1).reverse(0).flatten();
  EXPECT_EQ(view.num_elements(), 94000000);
  EXPECT_LE(view.view().regions().size(), 4u);
  EXPECT_FALSE(view.contains_aliases());
  EXPECT_TRUE(matrix.flatten().is_contiguous());
  EXPECT_FALSE(view.is_contiguous());
}

TEST(Tensor, JoiningTheSlicesGivesTheWhole) {
  Graph graph(gc200_device());
  const Tensor x = graph.add_variable(Type::f32, {1472, 10});
  std::vector<Tensor> rows;
  for (std::int64_t i = 0; i < 1472; ++i) rows.push_back(x.slice(i, i + 1));
  const Tensor joined = concat(rows);
  EXPECT_EQ(joined.view().regions().size(), 1u);
  EXPECT_TRUE(joined.is_contiguous());
  EXPECT_TRUE(joined.is_parallel_writeable());
  EXPECT_FALSE(concat(joined, x).is_parallel_writeable());
  EXPECT_FALSE(graph.add_constant(Type::f32, {2}, 1).is_parallel_writeable());
  const auto regions = x.slice(0, 4, 1).slice(0, 2).contiguous_regions();
  EXPECT_EQ(regions, (std::vector<Interval>{{0, 4}, {4, 8}}));
}

void expect_refused(const std::function<void()>& act, const std::string& part) {
  try {
    act();
    FAIL() << "not refused: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_TRUE(contains(error.what(), part)) << error.what();
  }
}

TEST(Tensor, RefusalsNameTensorAndShape) {
  Graph graph(gc200_device()), other(gc200_device());
  const Tensor x = graph.add_variable(Type::f32, {3, 4}, "x");
  expect_refused([&] { x[3]; }, "tensor x[3,4]: index 3");
  expect_refused([&] { x.slice(2, 5, 1); }, "slice [2, 5) lies outside dimension 1");
  expect_refused([&] { x.slice(0, 1, 2); }, "there is no dimension 2");
  expect_refused([&] { x.reshape({5}); }, "12 elements are not 5");
  expect_refused([&] { x.dim_shuffle({0, 0}); }, "[0,0] is not a permutation");
  expect_refused([&] { x.reinterpret(Type::f16); }, "half is not of the size of float");
  expect_refused([&] { concat(x, other.add_variable(Type::f32, {3, 4})); }, "does not go with");
  expect_refused([&] { graph.add_variable(Type::f64, {1}, "d"); }, "a tile does not have f64");
  expect_refused([&] { x.sub_sample(0, 0); }, "a step of 0");
}

TEST(Tensor, ViewsOfOneVariableCanBeCloned) {
  Graph graph(gc200_device());
  const Tensor x = graph.add_variable(Type::f32, {8}, "x");
  graph.set_tile_mapping(x, {{{0, 3}}, {{3, 8}}});
  const Tensor even = x.sub_sample(2, 0), copy = graph.clone(even, "copy");
  EXPECT_EQ(copy.shape(), Shape{4});
  EXPECT_EQ(graph.tile_mapping(copy)[1], (std::vector<Interval>{{2, 4}}));
  const Tensor repeated = graph.clone(even.broadcast(2, 0), "r", CloneMethod::preserve_order_and_aliases);
  EXPECT_TRUE(repeated.contains_aliases());
  EXPECT_FALSE(graph.clone(even.broadcast(2, 0)).contains_aliases());
}

}  // namespace
}  // namespace superstep::bsp
