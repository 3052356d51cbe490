#include "superstep/op/move/gather.h"
#include "superstep/op/move/index_range.h"
#include "superstep/op/move/segment.h"
#include "tests/op/cases/case.h"

namespace superstep::op::test {

std::vector<Case> index_cases() {
  const Tensor a = random_tensor({4, 3, 5}, 81), m = random_tensor({3, 4}, 82);
  const Tensor rows = i64({2, 3}, {0, 3, -1, 2, 0, 0}), places = i64({2, 4}, {0, 2, 1, 0, 2, 1, 0, 2});
  const Tensor same_column = i64({2, 4}, {1, 1, 2, -1, 1, 0, 2, 0}), vectors = i64({2, 2}, {0, 1, 3, -1});
  const Tensor in_batch = i64({4, 1}, {1, 0, 2, 2});
  const auto scatter = [](const char* reduction, std::int64_t axis) {
    return OF(scatter_elements(x[0], x[1], x[2], axis, reduction));
  };
  const Tensor packed = random_tensor({2, 4, 3}, 87), edges = i64({2, 5}, {0, 3, -1, 2, 0, 1, 1, 3, -1, 0});
  const Tensor ends = i64({2, 5}, {1, 0, 2, -1, 1, 2, 0, 0, 1, 2}), weights = random_tensor({2, 5}, 88);
  return {
      {"Gather", "first axis, repeated", OF(gather(x[0], x[1])), {a, rows}},
      {"Gather", "last axis", OF(gather(x[0], x[1], -1)), {a, rows}},
      {"Gather", "middle axis, one index", OF(gather(x[0], x[1], 1)), {a, i64({}, {1})}},
      {"GatherElements", "first axis", OF(gather_elements(x[0], x[1])), {m, places}},
      {"GatherElements", "last axis, repeated", OF(gather_elements(x[0], x[1], 1)), {m, same_column}},
      {"GatherND", "slices", OF(gather_nd(x[0], x[1])), {a, vectors}},
      {"GatherND", "elements", OF(gather_nd(x[0], x[1])), {a, i64({2, 3}, {0, 1, 2, 0, 1, 2})}},
      {"GatherND", "in batches", OF(gather_nd(x[0], x[1], 1)), {a, in_batch}},
      {"ScatterElements",
       "overwrite",
       scatter("none", 0),
       {m, i64({1, 4}, {2, 0, 1, -1}), random_tensor({1, 4}, 83)}},
      {"ScatterElements", "add", scatter("add", 1), {m, same_column, random_tensor({2, 4}, 84)}},
      {"ScatterElements",
       "mul",
       scatter("mul", 1),
       {m, same_column, random_tensor({2, 4}, 84)},
       Smooth::no,
       false},
      {"ScatterElements", "max", scatter("max", 1), {m, same_column, random_tensor({2, 4}, 84)}, Smooth::no},
      {"ScatterElements", "min", scatter("min", 1), {m, same_column, random_tensor({2, 4}, 84)}, Smooth::no},
      {"ScatterND",
       "overwrite slices",
       OF(scatter_nd(x[0], x[1], x[2])),
       {a, vectors, random_tensor({2, 5}, 85)}},
      {"ScatterND",
       "add repeatedly",
       OF(scatter_nd(x[0], x[1], x[2], "add")),
       {a, i64({3, 1}, {1, 1, 0}), random_tensor({3, 3, 5}, 86)}},
      {"superstep.IndicesWithin",
       "with one besides",
       OF(indices_within(x[0], {.first = -2, .count = 6, .besides = 9})),
       {i64({2, 3}, {0, 3, -2, 9, 1, 1})},
       Smooth::no},
      {"superstep.GatherRows", "packs, with none", OF(gather_rows(x[0], x[1])), {packed, edges}},
      {"superstep.GatherRows", "one pack", OF(gather_rows(x[0], x[1])), {m, i64({6}, {2, 0, -1, 1, 1, 2})}},
      {"superstep.GatherRows",
       "packs of packs",
       OF(gather_rows(x[0], x[1])),
       {random_tensor({2, 1, 3, 2}, 89), i64({2, 1, 2}, {2, -1, 0, 0})}},
      {"superstep.SegmentSum",
       "packs, with none",
       OF(segment_sum(x[0], x[1], 4)),
       {random_tensor({2, 5, 3}, 90), edges}},
      {"superstep.SegmentSum", "one pack", OF(segment_sum(x[0], x[1], 2)), {m, i64({3}, {1, -1, 1})}},
      {"superstep.SparseProduct",
       "packs, with none",
       OF(sparse_product(x[0], x[1], x[2], x[3], 3)),
       {packed, edges, ends, weights}},
      {"superstep.SparseProduct",
       "one pack, an entry twice",
       OF(sparse_product(x[0], x[1], x[2], x[3], 2)),
       {m, i64({4}, {2, 0, 0, 1}), i64({4}, {1, 0, 0, 1}), random_tensor({4}, 91)}},
  };
}

}  // namespace superstep::op::test
