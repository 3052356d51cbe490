// The steps of `prepare` in an order in which what is made on the way does not last: of a plan that is
// served, values that `prepare` alone makes and reads (a weight with a normalisation folded into it, before
// it is packed) lie in the arena, where the next layer's take their place.
#include <algorithm>
#include <map>
#include <set>

#include "superstep/target/cpu/lower/lowering.h"

namespace superstep::target::cpu {
namespace {

// A place in memory that steps of one section read and write, as a number: shared memory by where a piece of
// it begins, blocks of the arena behind all of these.
using PlaceNumber = std::size_t;

// For each step those before it whose results it reads, or whose operands it overwrites.
class Dependencies {
 public:
  explicit Dependencies(std::size_t steps) : before_(steps), is_last_(steps, true) {}

  void reads(std::size_t step, PlaceNumber place) {
    if (const auto writer = writer_.find(place); writer != writer_.end()) follows(step, writer->second);
    readers_[place].push_back(step);
  }
  void writes(std::size_t step, PlaceNumber place) {
    if (const auto writer = writer_.find(place); writer != writer_.end()) follows(step, writer->second);
    for (const std::size_t reader : readers_[place]) follows(step, reader);
    readers_[place].clear();
    writer_[place] = step;
  }

  // Each step behind those that it follows, and these no earlier than the first of the steps that nobody
  // follows needs them.
  std::vector<std::size_t> order() const {
    std::vector<std::size_t> result;
    std::vector<bool> taken(before_.size(), false);
    for (std::size_t step = 0; step < before_.size(); ++step)
      if (is_last_[step]) take(step, taken, result);
    return result;
  }

 private:
  void follows(std::size_t step, std::size_t other) {
    if (step == other) return;
    before_[step].insert(other);
    is_last_[other] = false;
  }
  void take(std::size_t step, std::vector<bool>& taken, std::vector<std::size_t>& result) const {
    std::vector<std::size_t> waiting{step};
    while (!waiting.empty()) {
      const std::size_t next = waiting.back();
      const auto missing = std::ranges::find_if(before_[next], [&](std::size_t s) { return !taken[s]; });
      if (!taken[next] && missing != before_[next].end()) {
        waiting.push_back(*missing);
        continue;
      }
      if (!taken[next]) result.push_back(next);
      taken[next] = true;
      waiting.pop_back();
    }
  }

  std::vector<std::set<std::size_t>> before_;
  std::vector<bool> is_last_;
  std::map<PlaceNumber, std::size_t> writer_;
  std::map<PlaceNumber, std::vector<std::size_t>> readers_;
};

}  // namespace

std::size_t Lowering::piece_at(std::size_t offset) const {
  const auto behind = std::ranges::upper_bound(shared_pieces_, offset, {}, &SharedPiece::offset);
  return static_cast<std::size_t>(behind - shared_pieces_.begin()) - 1;
}

void Lowering::order_prepare() {
  Draft& prepare = draft(Section::prepare);
  // What is in neither, a run's numbers, nobody writes.
  const auto number = [&](const DraftOperand& operand) -> PlaceNumber {
    if (const auto* block = std::get_if<BlockOperand>(&operand)) return shared_pieces_.size() + block->block;
    const auto& place = std::get<Operand>(operand);
    return place.space == Space::shared ? piece_at(place.offset)
                                        : shared_pieces_.size() + prepare.blocks.size();
  };
  Dependencies dependencies(prepare.steps.size());
  for (std::size_t i = 0; i < prepare.steps.size(); ++i) {
    for (const DraftOperand& operand : prepare.steps[i].inputs) dependencies.reads(i, number(operand));
    for (const DraftOperand& operand : prepare.steps[i].outputs) dependencies.writes(i, number(operand));
  }
  std::vector<DraftStep> ordered;
  for (const std::size_t step : dependencies.order()) ordered.push_back(std::move(prepare.steps[step]));
  prepare.steps = std::move(ordered);
}

// Which pieces of shared memory `prepare` makes, and which steps of other sections touch.
Lowering::PieceUse Lowering::use_of_pieces() {
  PieceUse use;
  const auto note = [&](const std::vector<DraftOperand>& operands, std::set<std::size_t>& pieces) {
    for (const DraftOperand& operand : operands)
      if (const auto* place = std::get_if<Operand>(&operand); place && place->space == Space::shared)
        pieces.insert(piece_at(place->offset));
  };
  for (const DraftStep& step : draft(Section::prepare).steps) note(step.outputs, use.made);
  for (const Section section : {Section::body, Section::update})
    for (const DraftStep& step : draft(section).steps)
      note(step.inputs, use.elsewhere), note(step.outputs, use.elsewhere);
  for (const SampleCounter& counter : plan_.counters) use.elsewhere.insert(piece_at(counter.offset));
  for (const auto& [offset, elements] : plan_.initial) use.initial.insert(piece_at(offset));
  return use;
}

// Gives the block of each piece that is made by steps of `prepare` and read by such steps alone.
std::map<std::size_t, std::size_t> Lowering::blocks_of_passing(const PieceUse& use) {
  std::map<std::size_t, std::size_t> blocks;
  Draft& prepare = draft(Section::prepare);
  for (const std::size_t piece : use.made) {
    if (use.elsewhere.contains(piece) || use.initial.contains(piece)) continue;
    blocks[piece] = prepare.blocks.size();
    prepare.blocks.push_back({.bytes = shared_pieces_[piece].bytes});
  }
  return blocks;
}

// Where pieces lie without those that became blocks. What begins with a value that `prepare` alone reads lies
// last: such values are mostly never there (run/initial_values.h), and between others they would take up room
// with these, by whole large pages.
std::vector<std::size_t> Lowering::moved_pieces(const PieceUse& use,
                                                const std::map<std::size_t, std::size_t>& blocks) {
  std::vector<std::size_t> moved(shared_pieces_.size());
  plan_.shared_bytes = 0;
  for (const bool last : {false, true})
    for (std::size_t i = 0; i < shared_pieces_.size(); ++i) {
      const bool passes = use.initial.contains(i) && !use.elsewhere.contains(i) && !use.made.contains(i);
      if (blocks.contains(i) || passes != last) continue;
      moved[i] = plan_.shared_bytes;
      plan_.shared_bytes += shared_pieces_[i].bytes;
    }
  return moved;
}

void Lowering::shorten_prepare() {
  if (plan_.trains || draft(Section::prepare).steps.empty()) return;
  order_prepare();
  const PieceUse use = use_of_pieces();
  const std::map<std::size_t, std::size_t> blocks = blocks_of_passing(use);
  const std::vector<std::size_t> moved = moved_pieces(use, blocks);
  const auto move = [&](std::size_t& offset) {
    const std::size_t piece = piece_at(offset);
    offset = moved[piece] + offset - shared_pieces_[piece].offset;
  };
  const auto move_operand = [&](DraftOperand& operand) {
    auto* place = std::get_if<Operand>(&operand);
    if (!place || place->space != Space::shared) return;
    const std::size_t piece = piece_at(place->offset);
    if (const auto block = blocks.find(piece); block != blocks.end())
      operand = BlockOperand{block->second, place->offset - shared_pieces_[piece].offset};
    else
      move(place->offset);
  };
  for (Draft& draft : drafts_)
    for (DraftStep& step : draft.steps)
      for (auto* operands : {&step.inputs, &step.outputs}) std::ranges::for_each(*operands, move_operand);
  for (StateSlot& state : plan_.states) move(state.offset);
  for (auto& [offset, elements] : plan_.initial) move(offset);
  for (SampleCounter& counter : plan_.counters) move(counter.offset);
  set_lifetimes(draft(Section::prepare));
}

// Of the blocks, from the steps that use them.
void Lowering::set_lifetimes(Draft& draft) {
  for (Block& block : draft.blocks) block.first = static_cast<int>(draft.steps.size()), block.last = -1;
  for (std::size_t i = 0; i < draft.steps.size(); ++i)
    for (const auto* operands : {&draft.steps[i].inputs, &draft.steps[i].outputs})
      for (const DraftOperand& operand : *operands)
        if (const auto* used = std::get_if<BlockOperand>(&operand)) {
          Block& block = draft.blocks[used->block];
          block.first = std::min(block.first, static_cast<int>(i));
          block.last = std::max(block.last, static_cast<int>(i));
        }
}

}  // namespace superstep::target::cpu
