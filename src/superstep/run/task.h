// What a run asks of a workload's samples (workload/task.h), under the names that this room uses.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "superstep/file/source/order.h"
#include "superstep/run/quality.h"
#include "superstep/workload/task.h"

namespace superstep::run {

using workload::open_task;
using workload::Predictions;
using workload::Task;
using workload::TaskSettings;

// The quality `found` on the samples `indices`, beside what others reach on them; nothing without a quality.
// Others that take longer than `seconds` are left out, unless what they reach is known from before
// (run/references.h), and all are when the user interrupts them.
std::optional<Quality> judge(const Task& task, const workload::Workload& workload,
                             const std::vector<Metric>& found, std::span<const std::int64_t> indices,
                             ThreadPool& pool, double seconds);

using data::epoch_order;  // file/source/order.h

}  // namespace superstep::run
