#include "superstep/edge/learn/lesson.h"

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/edge/learn/peaks.h"
#include "superstep/edge/learn/phases.h"
#include "superstep/edge/service/job.h"

namespace superstep::edge {

std::unique_ptr<Lesson> lesson_for(const std::string& workload, const std::vector<std::string>& options,
                                   const Lesson::Settings& settings) {
  const bool plain_counts = std::ranges::find(options, "counts=plain") != options.end();
  if (workload == "ptychonn-128" && !plain_counts) return std::make_unique<PhaseLesson>(settings);
  if (workload == "braggnn") return std::make_unique<PeakLesson>(settings);
  throw Error(ErrorCode::unsupported, "labels are made for ptychonn-128 with counts=log and for braggnn",
              workload);
}

std::vector<float> answers_to(Version& version, std::span<const LearnSample> samples, const Lesson& lesson) {
  std::vector<float> all;
  const auto most = static_cast<std::size_t>(version.max_batch());
  for (std::size_t first = 0; first < samples.size(); first += most) {
    const auto some = samples.subspan(first, std::min(most, samples.size() - first));
    const auto rows = static_cast<std::int64_t>(some.size());
    std::vector<Tensor> inputs;
    for (const ServedPort& port : version.ports().inputs) {
      std::vector<std::int64_t> extents = port.shape.extents();
      extents.insert(extents.begin(), rows);
      inputs.emplace_back(port.element, Shape(std::move(extents)));
    }
    std::span<float> rest = inputs[0].as<float>();
    for (const LearnSample& sample : some) {
      const auto pattern = sample.scan->pattern(sample.index);
      std::ranges::copy(pattern, rest.begin());
      lesson.prepare(rest.first(pattern.size()));
      rest = rest.subspan(pattern.size());
    }
    std::vector<Tensor> outputs = make_outputs(version.ports(), rows);
    const RowRange range{.inputs = inputs, .outputs = outputs, .first = 0, .count = rows};
    version.run(0, {&range, 1});
    const auto values = outputs.back().as<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

}  // namespace superstep::edge
