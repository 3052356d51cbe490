// A profile as files and as text.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/lab/profile/profile.h"

namespace superstep::lab {

// A self-contained page: what was measured, time by operator, the timeline, every step, every refusal. Its
// title names `processor`.
void write_profile_page(const Profile& profile, const std::filesystem::path& path,
                        const std::string& processor = {});

// Chrome's trace events (the JSON object form), which https://ui.perfetto.dev and chrome://tracing open: the
// median run, a thread a lane.
std::string profile_trace(const Profile& profile);

// A few lines and the steps that take the most time.
std::string profile_text(const Profile& profile, std::size_t most_steps = 12);

// step_time, throughput, flops_rate, compute_utilization, share_of_floor, compile_time.
std::vector<Metric> profile_metrics(const Profile& profile);

}  // namespace superstep::lab
