// Plans of products on disk, by what they depend on: what one process has searched for the next ones read.
//
// A file of one model of costs: its name carries a digest of the planners' sources and of nothing else, so
// that a program with other planners begins a file of its own. Records are appended whole, each with a
// checksum; what is damaged, and what follows it, is not read.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/machine/ipu/part_plan.h"

namespace superstep::machine::ipu {

using PlanKey = std::vector<double>;
using PlansByKey = std::map<PlanKey, PartPlan>;

// One record: key and plan.
std::string record_of(const PlanKey& key, const PartPlan& plan);

// All whole records of a file's text, up to the first that is not; how many bytes of it those are.
std::size_t read_records(std::string_view text, PlansByKey& to);

// From here on plans are looked for in this file, too, which is read when the first plan is asked for; empty:
// in the user's cache folder. Where it cannot be read it counts as empty.
void look_for_plans_in(std::filesystem::path path = {});

// Appends what was searched for since. A file that cannot be written is left alone: plans can be made again.
// Nothing where look_for_plans_in() was not called.
void keep_plans();

// For a command that plans: looks for plans in the user's cache folder, and keeps those it has searched for
// in the end.
struct KeptPlans {
  KeptPlans() { look_for_plans_in(); }
  ~KeptPlans() { keep_plans(); }
  KeptPlans(const KeptPlans&) = delete;
  KeptPlans& operator=(const KeptPlans&) = delete;
};

}  // namespace superstep::machine::ipu
