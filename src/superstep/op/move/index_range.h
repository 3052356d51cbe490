// Integers that must lie in a range, passed on as they are: what operators made of others say about indices
// that nothing else of them would notice.
#pragma once

#include <optional>
#include <string>

#include "superstep/op/core/definition.h"

namespace superstep::op {

struct IndexRange {
  std::int64_t first = 0, count = 0;         // [first, first + count)
  std::optional<std::int64_t> besides = {};  // a number outside that is allowed, too
  std::string what = "input indices";        // what holds them, for the refusal
};

// `indices`, of any integer type. A run throws Error (invalid_argument) on one outside the range.
Var indices_within(Var indices, const IndexRange& range);

// Of a node's attributes, for kernels; and what they throw.
IndexRange index_range(const Attributes& attributes);
[[noreturn]] void refuse_index(const IndexRange& range, const std::string& index);

std::span<const Definition> index_range_operators();  // superstep.IndicesWithin

}  // namespace superstep::op
