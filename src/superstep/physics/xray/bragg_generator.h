// Generator of Bragg peaks: patches around one peak, or whole detector frames with tables of their peaks.
#pragma once

#include <memory>
#include <vector>

#include "superstep/physics/generator.h"
#include "superstep/physics/xray/bragg_model.h"

namespace superstep::data {

struct BraggPatchSettings {
  int patch_size = 11;  // px, odd
  int margin = 0;       // px stored around the patch on each side, from which training crops shifted patches
  double offset = 1.5;  // px: the centre lies within +-offset of the middle pixel in both directions
  double overlap = 0;   // share of patches with a second peak
  BraggRanges ranges;
  BraggDetector detector;
  int stored_size() const { return patch_size + 2 * margin; }
};

// Fields: patch [s,s] counts and ploc [2] = (column, row) / s where s = patch_size + 2 margin, counted from
// the centre of the patch's first pixel; then the parameters of the peak.
class BraggPatchGenerator final : public Generator {
 public:
  explicit BraggPatchGenerator(const BraggPatchSettings& settings);

  std::string_view name() const override { return "braggnn"; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override { return fields_; }
  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override;
  nlohmann::json parameters() const override;
  const BraggPatchSettings& settings() const { return settings_; }

  // The peak of a sample, and the neighbour that overlaps it (amplitude 0: none).
  BraggPeak peak(std::uint64_t seed, std::uint64_t index) const;
  BraggPeak neighbor(std::uint64_t seed, std::uint64_t index, const BraggPeak& peak) const;

 private:
  BraggPatchSettings settings_;
  std::vector<Field> fields_;
};

// A patch size that a network can have: odd, 9 to 23. Throws Error (invalid_argument).
void require_patch_size(long long size);

nlohmann::json to_json(const BraggRanges& ranges);
nlohmann::json to_json(const BraggDetector& detector);

GeneratorEntry bragg_generator_entry();

}  // namespace superstep::data
