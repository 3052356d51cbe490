// Sleeping until a word changes, for a time at most: what std::atomic::wait cannot.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace superstep {

// Returns when `word` is not `value` any more and wake_one() was called, when the time is over, or for no
// reason.
void sleep_while(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                 std::chrono::microseconds at_most);
void sleep_while(const std::atomic<std::uint32_t>& word, std::uint32_t value);
// One thread that sleeps on this word.
void wake_one(std::atomic<std::uint32_t>& word);

}  // namespace superstep
