// What became of everything that was asked: every request, and every row of it, is counted once.
#pragma once

#include <array>
#include <cstdint>

namespace superstep::edge {

enum class Outcome : std::uint8_t {
  served,
  refused,  // the queue was full
  dropped,  // made room for newer ones
  expired,  // its time was over before its turn came
  failed,   // the model could not compute it
  invalid,  // not what the model takes: never queued
  closed,   // came, or still waited, when the server shut down
};
inline constexpr std::array all_outcomes{Outcome::served,  Outcome::refused, Outcome::dropped,
                                         Outcome::expired, Outcome::failed,  Outcome::invalid,
                                         Outcome::closed};
const char* name_of(Outcome outcome);

struct Tally {
  std::uint64_t requests = 0, rows = 0;
  Tally& operator+=(const Tally& other) {
    requests += other.requests;
    rows += other.rows;
    return *this;
  }
  friend bool operator==(const Tally&, const Tally&) = default;
};

// received = waiting + running + the sum over all outcomes, at every instant.
struct Account {
  Tally received, waiting, running;
  std::array<Tally, all_outcomes.size()> outcomes;

  Tally& of(Outcome outcome) { return outcomes[static_cast<std::size_t>(outcome)]; }
  const Tally& of(Outcome outcome) const { return outcomes[static_cast<std::size_t>(outcome)]; }
  bool balances() const;
};

}  // namespace superstep::edge
