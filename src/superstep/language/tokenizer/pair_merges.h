// Byte pair encoding (R. Sennrich et al., ACL 2016): pieces that stand side by side are joined, the best pair
// first, until no pair has a rule.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace superstep::language {

struct Joined {
  double rank;         // the lowest is joined first; of equal ones the leftmost
  std::int32_t token;  // that the two become
};

// Whether two tokens are joined; false: they are not.
using JoinRule = std::function<bool(std::int32_t left, std::int32_t right, Joined& joined)>;

// In time n log n of the number of pieces.
std::vector<std::int32_t> join_pairs(std::span<const std::int32_t> pieces, const JoinRule& rule);

}  // namespace superstep::language
