// Learning of peaks: their centres in patches, labelled by fits of pseudo-Voigt peaks.
#pragma once

#include "superstep/edge/learn/lesson.h"

namespace superstep::edge {

class PeakLesson : public Lesson {
 public:
  explicit PeakLesson(Settings settings) : settings_(std::move(settings)) {}

  const char* unit() const override { return "px"; }
  bool needs_positions() const override { return false; }
  void prepare(std::span<float> pattern) const override;  // to [0, 1]
  // By `baseline braggnn` (rotated pseudo-Voigt peaks). What did not converge, or lies outside of its patch,
  // has no label and is taken out.
  nlohmann::json label(LearnScan& scan, Version& present, const Place& place) override;
  std::vector<double> errors(std::span<const float> answers,
                             std::span<const LearnSample> samples) const override;
  void write_training(const std::filesystem::path& file, std::span<const LearnSample> samples) const override;
  LearnScan read_labelled(const std::filesystem::path& file, std::int64_t most) const override;
  void write_labelled(const std::filesystem::path& file, const LearnScan& scan) const override;

 private:
  const Settings settings_;
};

}  // namespace superstep::edge
