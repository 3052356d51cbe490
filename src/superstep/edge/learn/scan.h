// Scans that the model learns from: patterns as they came, and what the conventional method says of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "superstep/base/tensor.h"

namespace superstep::edge {

struct LearnScan {
  std::string name;
  std::int64_t window = 0;                           // px a side of a pattern
  std::vector<std::uint64_t> numbers;                // of the frames
  std::vector<float> patterns;                       // counts, [n, window, window]
  std::vector<std::pair<double, double>> positions;  // (y, x) in m
  std::vector<float> labels;  // the phase under the probe, [n, window, window]; empty before it is labelled
  std::string method;         // of the labels, in words

  std::size_t size() const { return numbers.size(); }
  std::size_t bytes() const {
    return (patterns.size() + labels.size()) * sizeof(float) + 24 * numbers.size();
  }
  std::span<const float> pattern(std::size_t i) const { return plane(patterns, i); }
  std::span<const float> label(std::size_t i) const { return plane(labels, i); }
  // A tenth of the scan, a region of it (a sector around the middle), is never trained on: neighbours
  // overlap.
  bool is_held_out(std::size_t i) const;

 private:
  std::span<const float> plane(const std::vector<float>& all, std::size_t i) const {
    const auto values = static_cast<std::size_t>(window * window);
    return {all.data() + i * values, values};
  }
};

// Patterns and positions, as the reconstruction reads them; `probe` [1, n, n, 2] where one is known.
void write_measurement(const std::filesystem::path& file, const LearnScan& scan,
                       const std::optional<Tensor>& probe);

// What a reconstruction (of write_measurement()'s file) says under the probe at each point, and its probe.
struct Reconstruction {
  std::vector<float> labels;
  Tensor probe;
  double error = 0;  // of the patterns, after the last pass
};
Reconstruction read_reconstruction(const std::filesystem::path& file, const LearnScan& scan, double pixel);

struct LearnSample {
  const LearnScan* scan = nullptr;
  std::size_t index = 0;
};
// A file that the training reads: samples in this order, each a group of its own.
void write_training(const std::filesystem::path& file, std::span<const LearnSample> samples);

// A file of the generator's form (patterns, phases, positions), at most `most` rows, as a labelled scan.
// Throws Error.
LearnScan read_labelled(const std::filesystem::path& file, std::int64_t most);
void write_labelled(const std::filesystem::path& file, const LearnScan& scan);

}  // namespace superstep::edge
