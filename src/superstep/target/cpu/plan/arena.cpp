#include "superstep/target/cpu/plan/arena.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "superstep/base/integers.h"

namespace superstep::target::cpu {
namespace {

// Extents are powers of two as often as not: without something between large blocks what a step reads and
// what it writes would lie a multiple of 4 kB apart, and each load wait for a store that it has nothing to do
// with.
constexpr std::size_t large_block = 256 << 10, between_large_blocks = 2112;

std::size_t aligned(std::size_t bytes) {
  const std::size_t lines = round_up(bytes, arena_alignment);
  return lines + (lines >= large_block ? between_large_blocks : 0);
}

bool alive_together(const Block& a, const Block& b) { return a.first <= b.last && b.first <= a.last; }

// The lowest offset at which `block` overlaps no placed block of its lifetime. `placed` is sorted by offset.
std::size_t lowest_fit(const Block& block, const std::vector<const Block*>& placed) {
  std::size_t offset = 0;
  for (const Block* other : placed) {
    if (!alive_together(block, *other)) continue;
    if (offset + aligned(block.bytes) <= other->offset) break;
    offset = std::max(offset, other->offset + aligned(other->bytes));
  }
  return offset;
}

}  // namespace

std::size_t pack(std::vector<Block>& blocks) {
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return blocks[a].bytes > blocks[b].bytes; });
  std::vector<const Block*> placed;
  std::size_t total = 0;
  for (std::size_t index : order) {
    Block& block = blocks[index];
    block.offset = lowest_fit(block, placed);
    total = std::max(total, block.offset + aligned(block.bytes));
    const auto after =
        std::upper_bound(placed.begin(), placed.end(), block.offset,
                         [](std::size_t offset, const Block* other) { return offset < other->offset; });
    placed.insert(after, &block);
  }
  return total;
}

std::size_t lower_bound(const std::vector<Block>& blocks) {
  std::map<int, std::ptrdiff_t> changes;
  for (const Block& block : blocks) {
    changes[block.first] += static_cast<std::ptrdiff_t>(aligned(block.bytes));
    changes[block.last + 1] -= static_cast<std::ptrdiff_t>(aligned(block.bytes));
  }
  std::ptrdiff_t alive = 0, most = 0;
  for (const auto& [step, change] : changes) most = std::max(most, alive += change);
  return static_cast<std::size_t>(most);
}

}  // namespace superstep::target::cpu
