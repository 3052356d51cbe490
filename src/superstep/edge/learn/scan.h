// Scans that the model learns from: patterns as they came, and what the conventional method says of them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "superstep/edge/learn/drift.h"

namespace superstep::edge {

struct LearnScan {
  std::string name;
  std::int64_t window = 0;                           // px a side of a pattern
  std::vector<std::uint64_t> numbers;                // of the frames that patterns are of
  std::vector<float> patterns;                       // counts, [n, window, window]
  std::vector<std::pair<double, double>> positions;  // (y, x) in m; empty where nothing depends on them
  std::vector<float> labels;                         // as many values of each; empty before it is labelled
  std::string method;                                // of the labels, in words

  std::size_t size() const { return numbers.size(); }
  std::size_t bytes() const {
    return (patterns.size() + labels.size()) * sizeof(float) + 24 * numbers.size();
  }
  std::span<const float> pattern(std::size_t i) const { return part(patterns, i); }
  std::span<const float> label(std::size_t i) const { return part(labels, i); }
  // A tenth of the scan, a region of it, is never trained on: neighbours overlap. A sector around the middle,
  // or, without positions, one of ten runs of sixteen frames.
  bool is_held_out(std::size_t i) const;
  // Leaves those for which `kept` says so.
  void keep(const std::vector<bool>& kept);

 private:
  std::span<const float> part(const std::vector<float>& all, std::size_t i) const {
    const std::size_t values = all.size() / size();
    return {all.data() + i * values, values};
  }
};

struct LearnSample {
  const LearnScan* scan = nullptr;
  std::size_t index = 0;
};

// All of a scan's, or those that are held out, or those that are not.
std::vector<LearnSample> samples_of(const LearnScan& scan, std::optional<bool> held_out = std::nullopt);
// Of 2,000 at most, evenly from the whole scan.
std::vector<FrameFeatures> features_of_scan(const LearnScan& scan);
bool is_finite(std::span<const float> values);

}  // namespace superstep::edge
