#include "superstep/file/source/order.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "superstep/base/random.h"

namespace superstep::data {
namespace {

constexpr std::uint32_t order_purpose = 0x0bde;  // separates the order from every other use of the seed

void shuffle(std::span<std::int64_t> order, RandomStream& random) {
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
}

// The samples below `count` of one shard after the other.
std::vector<std::int64_t> of_shards(std::span<const std::int64_t> shards, std::int64_t count,
                                    RandomStream& random) {
  std::vector<std::int64_t> turn(shards.size());
  std::iota(turn.begin(), turn.end(), 0);
  shuffle(turn, random);
  std::vector<std::int64_t> order;
  order.reserve(static_cast<std::size_t>(count));
  for (const std::int64_t shard : turn) {
    const auto next = static_cast<std::size_t>(shard) + 1;
    const std::int64_t end = next < shards.size() ? std::min(shards[next], count) : count;
    for (std::int64_t i = shards[next - 1]; i < end; ++i) order.push_back(i);
  }
  return order;
}

}  // namespace

std::vector<std::int64_t> epoch_order(std::int64_t count, std::uint64_t seed, std::uint64_t epoch,
                                      const ForcedOrder& forced) {
  RandomStream random(seed, epoch, order_purpose);
  if (forced.shards.empty()) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    shuffle(order, random);
    return order;
  }
  std::vector<std::int64_t> order = of_shards(forced.shards, count, random);
  // A buffer that is filled in order: what is drawn of it makes room for the next.
  std::vector<std::int64_t> kept;
  std::size_t drawn = 0;
  const auto draw = [&] {
    std::swap(kept[random.below(kept.size())], kept.back());
    order[drawn++] = kept.back();
    kept.pop_back();
  };
  for (std::size_t i = 0; i < order.size(); ++i) {
    kept.push_back(order[i]);
    if (static_cast<std::int64_t>(kept.size()) >= std::max<std::int64_t>(1, forced.buffer)) draw();
  }
  while (!kept.empty()) draw();
  return order;
}

}  // namespace superstep::data
