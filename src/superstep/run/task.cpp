#include "superstep/run/task.h"

#include "superstep/base/error.h"
#include "superstep/run/references.h"

namespace superstep::run {

std::optional<Quality> judge(const Task& task, const workload::Workload& workload,
                             const std::vector<Metric>& found, std::span<const std::int64_t> indices,
                             ThreadPool& pool, double seconds) {
  if (found.empty()) return std::nullopt;
  const auto samples = static_cast<std::int64_t>(indices.size());
  KnownReferences known;
  try {
    if (auto references = known.find(task, workload, indices))
      return judge(workload, found[0], samples, std::move(*references));
    if (task.reference_seconds() <= seconds)
      return judge(workload, found[0], samples, known.get(task, workload, indices, pool));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::interrupted) throw;
  }
  return judge(workload, found[0], samples, {});
}

}  // namespace superstep::run
