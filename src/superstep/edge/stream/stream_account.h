// What became of every frame of a stream.
#pragma once

#include <array>
#include <cstdint>

#include "superstep/edge/service/account.h"

namespace superstep::edge {

// received = waiting + every other count but those of series and `unwritten_bytes`, at every instant.
struct StreamAccount {
  std::uint64_t received = 0;   // messages that are a frame or were to be one
  std::uint64_t waiting = 0;    // for the model, or for what is done with its answer
  std::uint64_t corrupt = 0;    // no message of the format
  std::uint64_t duplicate = 0;  // was there already
  std::uint64_t unfitting = 0;  // not what the model takes
  std::uint64_t late = 0;       // of a series that had ended
  std::array<std::uint64_t, all_outcomes.size()> outcomes{};  // of those that the model was asked

  std::uint64_t series = 0, incomplete = 0;  // that ended; without some of their frames
  std::uint64_t missing = 0;                 // frames of ended series that never came
  std::uint64_t unwritten_bytes = 0;         // of answers whose file found no room, at the last try

  std::uint64_t& of(Outcome outcome) { return outcomes[static_cast<std::size_t>(outcome)]; }
  std::uint64_t of(Outcome outcome) const { return outcomes[static_cast<std::size_t>(outcome)]; }
  StreamAccount& operator+=(const StreamAccount& other) {
    received += other.received, waiting += other.waiting, corrupt += other.corrupt;
    duplicate += other.duplicate, unfitting += other.unfitting, late += other.late;
    for (std::size_t i = 0; i < outcomes.size(); ++i) outcomes[i] += other.outcomes[i];
    series += other.series, incomplete += other.incomplete, missing += other.missing;
    unwritten_bytes += other.unwritten_bytes;
    return *this;
  }
  bool balances() const {
    std::uint64_t sum = waiting + corrupt + duplicate + unfitting + late;
    for (const std::uint64_t count : outcomes) sum += count;
    return sum == received;
  }
};

}  // namespace superstep::edge
