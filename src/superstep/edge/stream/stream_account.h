// What became of every frame of a stream.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "superstep/edge/service/account.h"

namespace superstep::edge {

// received = waiting + every other count but those of series, bytes and connections, at every instant.
struct StreamAccount {
  std::uint64_t received = 0;   // messages that are a frame or were to be one
  std::uint64_t waiting = 0;    // for the model, or for what is done with its answer
  std::uint64_t corrupt = 0;    // no message of the format
  std::uint64_t unread = 0;     // of the format, in a type, a compression or channels that are not read
  std::uint64_t duplicate = 0;  // was there already
  std::uint64_t unfitting = 0;  // not what the model takes
  std::uint64_t late = 0;       // of a series that had ended
  std::array<std::uint64_t, all_outcomes.size()> outcomes{};  // of those that the model was asked

  // Of corrupt, unread, unfitting and late ones: why, and how many. Of many reasons the first ones.
  std::map<std::string, std::uint64_t> reasons;

  std::uint64_t series = 0, incomplete = 0;  // that ended; without some of their frames
  std::uint64_t missing = 0;                 // frames of ended series that never came
  std::uint64_t unwritten_bytes = 0;         // of answers whose file found no room, at the last try
  std::uint64_t refused_connections = 0;     // of ends without a key that is known (curve.h)

  // `many`: of those that have the same reason.
  void add_reason(const std::string& why, std::uint64_t many = 1) {
    constexpr std::size_t most_reasons = 16;  // texts in memory, whatever is sent (chosen)
    const bool known = reasons.contains(why) || reasons.size() < most_reasons;
    reasons[known ? why : "other reasons"] += many;
  }
  // Frames that came and were not given to the model.
  std::uint64_t unusable() const { return corrupt + unread + unfitting + late; }
  // Those of them that came whole: what is damaged on its way was lost before.
  std::uint64_t lost_here() const { return unread + unfitting + late; }

  std::uint64_t& of(Outcome outcome) { return outcomes[static_cast<std::size_t>(outcome)]; }
  std::uint64_t of(Outcome outcome) const { return outcomes[static_cast<std::size_t>(outcome)]; }
  StreamAccount& operator+=(const StreamAccount& other) {
    received += other.received, waiting += other.waiting, corrupt += other.corrupt;
    unread += other.unread, duplicate += other.duplicate, unfitting += other.unfitting, late += other.late;
    for (std::size_t i = 0; i < outcomes.size(); ++i) outcomes[i] += other.outcomes[i];
    for (const auto& [why, many] : other.reasons) add_reason(why, many);
    series += other.series, incomplete += other.incomplete, missing += other.missing;
    unwritten_bytes += other.unwritten_bytes, refused_connections += other.refused_connections;
    return *this;
  }
  bool balances() const {
    std::uint64_t sum = waiting + corrupt + unread + duplicate + unfitting + late;
    for (const std::uint64_t count : outcomes) sum += count;
    return sum == received;
  }
};

}  // namespace superstep::edge
