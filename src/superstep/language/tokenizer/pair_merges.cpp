#include "superstep/language/tokenizer/pair_merges.h"

#include <queue>

namespace superstep::language {
namespace {

constexpr std::int32_t gone = -1;

struct Candidate {
  double rank;
  std::int64_t left, right;  // places
  std::int32_t left_token, right_token, token;
};

struct Worse {
  bool operator()(const Candidate& a, const Candidate& b) const {
    return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
  }
};

}  // namespace

std::vector<std::int32_t> join_pairs(std::span<const std::int32_t> pieces, const JoinRule& rule) {
  const auto count = static_cast<std::int64_t>(pieces.size());
  std::vector<std::int32_t> tokens(pieces.begin(), pieces.end());
  std::vector<std::int64_t> before(pieces.size()), after(pieces.size());
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  std::priority_queue<Candidate, std::vector<Candidate>, Worse> queue;
  const auto consider = [&](std::int64_t left, std::int64_t right) {
    Joined joined{};
    if (left < 0 || right >= count || !rule(tokens[at(left)], tokens[at(right)], joined)) return;
    queue.push({joined.rank, left, right, tokens[at(left)], tokens[at(right)], joined.token});
  };
  for (std::int64_t i = 0; i < count; ++i) {
    before[at(i)] = i - 1, after[at(i)] = i + 1;
    if (i > 0) consider(i - 1, i);
  }
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    // One of the two may have been joined with another meanwhile.
    if (tokens[at(best.left)] != best.left_token || tokens[at(best.right)] != best.right_token ||
        after[at(best.left)] != best.right)
      continue;
    tokens[at(best.left)] = best.token, tokens[at(best.right)] = gone;
    after[at(best.left)] = after[at(best.right)];
    if (after[at(best.left)] < count) before[at(after[at(best.left)])] = best.left;
    consider(before[at(best.left)], best.left);
    consider(best.left, after[at(best.left)]);
  }
  std::vector<std::int32_t> left;
  for (const std::int32_t token : tokens)
    if (token != gone) left.push_back(token);
  return left;
}

}  // namespace superstep::language
