// What programs of a field keep beside a training while it goes on, as DeePMD-kit's lcurve.out.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace superstep::workload {

// A task that is one keeps such a file in the folder of a run.
class KeepsCurve {
 public:
  virtual ~KeepsCurve() = default;
  // After each epoch: `log` holds the lines of the run's metrics.jsonl so far.
  virtual void write_curve(const std::filesystem::path& folder,
                           const std::vector<nlohmann::json>& log) const = 0;
};

}  // namespace superstep::workload
