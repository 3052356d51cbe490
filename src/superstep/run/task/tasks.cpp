#include "superstep/run/task/tasks.h"

#include <array>

#include "superstep/base/error.h"

namespace superstep::run {
namespace {

struct Entry {
  std::string_view workload;
  std::unique_ptr<Task> (*open)(const TaskSettings& settings);
};

constexpr std::array entries = {Entry{"braggnn", open_bragg_task}, Entry{"mlp", open_mlp_task},
                                Entry{"cifar10-cnn", open_cifar10_task}};

}  // namespace

std::unique_ptr<Task> open_task(const workload::Workload& workload, const TaskSettings& settings) {
  for (const Entry& entry : entries)
    if (entry.workload == workload.name) return entry.open(settings);
  throw Error(ErrorCode::unsupported, "there are no data to train this workload on yet",
              std::string(workload.name));
}

}  // namespace superstep::run
