// The world of a run: its folder, its clock, its commands and the items that they give.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "superstep/base/stopwatch.h"
#include "superstep/facility/run/commands.h"
#include "superstep/facility/run/firing_folder.h"
#include "superstep/facility/simulate/world.h"

namespace superstep::facility {

class Shop final : public World {
 public:
  // The folder is there, and this process has its lock. Throws Error (bad_file, invalid_argument).
  Shop(std::filesystem::path folder, const Plan& plan, double speed);

  Restored restore() override;
  double now() override;
  bool begin(std::uint32_t firing, std::size_t task, double now, std::span<const Taken> items) override;
  bool paced(std::size_t task) const override;
  std::optional<std::uint32_t> wait(double until) override;
  ItemId give(std::uint32_t firing, std::size_t task, double now, const Course& course) override;
  ItemId give_of_source(std::size_t source, double index, double now) override;

  std::size_t went_on() const { return went_on_; }

 private:
  struct Open {
    FiringRecord record;
    std::filesystem::path folder;
    int attempts = 0;
  };
  const Task& task_at(std::size_t t) const { return plan_.workflow->tasks[t]; }
  const Partition& partition(std::size_t t) const;
  std::filesystem::path path_of(const ItemName& item) const;
  ItemId register_item(const ItemName& item);
  void read_firings(std::size_t t);
  void take_over(FiringRecord record);
  void start(std::uint32_t firing, Open& open);
  bool attach(std::uint32_t firing, Open& open);
  ScriptVariables variables_of(const Open& open) const;
  void command_failed(std::uint32_t firing, int status);

  std::filesystem::path folder_;
  const Plan& plan_;
  double speed_, offset_ = 0;
  Stopwatch clock_;
  std::vector<std::vector<std::filesystem::path>> files_;  // of sources that have files
  std::vector<ItemName> items_;
  std::map<ItemName, ItemId> ids_;
  std::vector<std::size_t> next_number_;                           // of each task's folders
  std::vector<std::vector<FiringRecord>> done_;                    // of each task, of calls before this one
  std::vector<std::set<std::pair<std::size_t, ItemName>>> taken_;  // by them, at each of the task's inputs
  std::vector<FiringRecord> unfinished_jobs_;
  std::map<std::uint32_t, Open> open_;
  Commands commands_;
  std::vector<std::uint32_t> ended_;  // told by wait(), one at a time
  std::size_t went_on_ = 0;
};

}  // namespace superstep::facility
