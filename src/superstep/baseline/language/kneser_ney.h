// Counts of events in contexts, smoothed as R. Kneser and H. Ney do it (ICASSP 1995): a level of a model of
// words, which mixes in what the level below says.
#pragma once

#include <cstdint>
#include <unordered_map>

namespace superstep::baseline {

// Up to three tokens, each below 2^20, as one number.
constexpr std::uint64_t token_key(std::int32_t a, std::int32_t b = 0, std::int32_t c = 0) {
  constexpr int bits = 20;
  const auto part = [](std::int32_t token) { return static_cast<std::uint64_t>(token); };
  return (part(a) << (2 * bits)) | (part(b) << bits) | part(c);
}

class KneserNeyLevel {
 public:
  bool count(std::uint64_t context, std::uint64_t event);  // was it the first time?
  // Of the event in the context, where the level below gives it `below`.
  double mix(std::uint64_t context, std::uint64_t event, double below) const;

 private:
  struct Context {
    double total = 0, kinds = 0;  // how often it was seen, and with how many different words
  };
  double discount() const;

  std::unordered_map<std::uint64_t, Context> contexts_;
  std::unordered_map<std::uint64_t, double> counts_;
  double once_ = 0, twice_ = 0;  // events seen so often
};

}  // namespace superstep::baseline
