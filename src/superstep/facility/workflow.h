// A workflow: sources of data, tasks that take and give items, and what is wanted of it, as workflow.toml
// describes them (docs/facility.md). An item is whatever a source or a task gives at a time: a frame, a table
// of peaks, the weights of a trained model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/facility/quantities.h"

namespace superstep::facility {

struct Source {
  std::string name, at;  // at: a site of the facility
  double rate = 0;       // items/s, evenly spaced; 0: all are there at the start
  double bytes = 0;      // of an item
  std::int64_t count = 1;
  std::string files;  // a pattern: the items of `superstep run`, in the order of their names; empty: made up
};

// What a task takes from: a source or a task before it, by its position.
struct Input {
  bool of_source = false;
  int from = 0;
  double every = 1;  // items of it that one firing takes, where the trigger is by items
};

enum class Trigger { items, period, drift, end };

// Seconds of a firing on one partition, or on every one with this machine, or on all ("any").
struct Stated {
  std::string on;
  Amount seconds;
};

struct Task {
  std::string name;
  std::vector<Input> inputs;
  std::vector<int> uses;  // tasks whose newest item it works with, whichever that is: weights
  Trigger trigger = Trigger::items;
  double period = 0;  // s; of a drift the mean of an exponential time
  std::vector<Stated> seconds;
  // What is predicted where no time is stated: a workload or a model file, trained, or applied to samples.
  std::string model, precision;
  bool trains = false;
  std::int64_t samples = 0, batch = 0;  // of a firing; of a step
  double epochs = 0;                    // 0: the recipe's
  std::vector<std::string> options;     // of the model, name=value
  double bytes = 0;                     // of an item that it gives
  std::vector<int> devices{1};          // that a firing may take: one is chosen
  int copies = 0;                       // firings at once; 0: as many as there are devices
  bool job = false;                     // each firing is a job of its own; else one runs as long as data come
  double checkpoint = 0;                // s of work that a failure loses at most; 0: all of the firing
  std::vector<std::string> on;          // partitions or sites; empty: all
  std::string run;                      // the command of `superstep run`; empty: it is emulated
  int retries = 0;                      // of a command that fails
  int line = 0;
};

enum class Wish { latency, age, end, cost, energy };

// What is wanted: at most so much.
struct Target {
  std::string name;
  Wish wish = Wish::end;
  int task = -1;       // of latency and age
  double share = .99;  // of items that must be within the limit
  double limit = 0;    // s, money or J
};

struct Workflow {
  std::string name, summary, file;
  std::vector<Source> sources;
  std::vector<Task> tasks;  // in the order of the file
  std::vector<Target> targets;
  std::vector<int> order;  // of tasks: each after those whose items it takes
};

// "p99 of steer" and the like: what is counted of it.
std::string words_of(const Workflow& workflow, const Target& target);

// Throws Error (invalid_argument) with file, line and key: circles of `from` are refused by name.
Workflow parse_workflow(std::string_view text, const std::string& where);
Workflow read_workflow(const std::filesystem::path& file);

}  // namespace superstep::facility
