// Learning of ptychography: phases under the probe, labelled by an iterative reconstruction of the scan.
#pragma once

#include "superstep/edge/learn/lesson.h"

namespace superstep::edge {

class PhaseLesson : public Lesson {
 public:
  explicit PhaseLesson(Settings settings) : settings_(std::move(settings)) {}

  const char* unit() const override { return "rad"; }
  bool needs_positions() const override { return true; }
  void prepare(std::span<float> pattern) const override;  // log(1 + counts)
  // By rPIE, which begins with the probe of the scan before. The labels are turned to have the same mean as
  // the present answers: a reconstruction is known up to a constant phase.
  nlohmann::json label(LearnScan& scan, Version& present, const Place& place) override;
  std::vector<double> errors(std::span<const float> answers,
                             std::span<const LearnSample> samples) const override;
  void write_training(const std::filesystem::path& file, std::span<const LearnSample> samples) const override;
  LearnScan read_labelled(const std::filesystem::path& file, std::int64_t most) const override;
  void write_labelled(const std::filesystem::path& file, const LearnScan& scan) const override;

 private:
  const Settings settings_;
  std::optional<Tensor> probe_;
};

// The mean distance of phases in the middle `crop` x `crop` px of each window, as angles: one value a sample.
std::vector<double> phase_errors(std::span<const float> answers, std::span<const LearnSample> samples,
                                 std::int64_t crop);
// The angle by which labels must be turned to have the same mean as the answers.
double turn_between(std::span<const float> answers, const LearnScan& scan, std::int64_t crop);
void turn(LearnScan& scan, double angle);

}  // namespace superstep::edge
