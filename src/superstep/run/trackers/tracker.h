// A run's curves in the forms of programs that people watch runs with.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "superstep/run/trackers/run_story.h"

namespace superstep::run {

class Tracker {
 public:
  virtual ~Tracker() = default;
  // The story as it is now; what was written of it before stays, what is new is added. Throws Error (io).
  virtual void write(const RunStory& story) = 0;
};

// TensorBoard: a file of events, DIR/events.out.tfevents.*, which grows (tensorflow/core/util/event.proto). A
// log that became shorter, of a run that went on from a checkpoint, begins the file anew.
std::unique_ptr<Tracker> tensorboard_tracker(std::filesystem::path folder);
// MLflow: a run in the store of files DIR (`mlflow ui --backend-store-uri DIR`), in the experiment of its
// workload. The same run, watched again, is the same run there.
std::unique_ptr<Tracker> mlflow_tracker(std::filesystem::path folder);
// One table, a row an epoch, for spreadsheets and scripts.
std::unique_ptr<Tracker> csv_tracker(std::filesystem::path file);

}  // namespace superstep::run
