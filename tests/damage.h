// Feeds a reader every way of cutting a valid file short and many ways of changing one byte of it. Each
// must be read or refused with an Error: anything else (a crash, another exception) fails the test.
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "superstep/base/error.h"

namespace superstep {

template <class Read>
bool is_refused(Read& read, std::span<const std::byte> bytes) {
  try {
    read(bytes);
    return false;
  } catch (const Error&) {
    return true;
  }
}

// How many of the damaged files were refused.
struct Refusals {
  int truncations = 0, flips = 0;
};

template <class Read>
Refusals read_damaged(const std::vector<std::byte>& valid, Read read) {
  Refusals refused;
  for (std::size_t size = 0; size < valid.size(); ++size) {
    // A copy of exactly this size, so that a sanitizer sees a read beyond the end.
    const std::vector<std::byte> cut(valid.begin(), valid.begin() + static_cast<std::ptrdiff_t>(size));
    refused.truncations += is_refused(read, cut);
  }
  for (std::size_t at = 0; at < valid.size(); ++at)
    for (const unsigned flip : {0x01u, 0x10u, 0x80u, 0xffu}) {
      std::vector<std::byte> changed = valid;
      changed[at] ^= std::byte(flip);
      refused.flips += is_refused(read, changed);
    }
  return refused;
}

}  // namespace superstep
