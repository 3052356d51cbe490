// The log of a training run as lines of MLPerf's form (mllog.h), as its HPC rules 3.0 want them: one file a
// run, written while it goes on, so that a killed run leaves what it did. Not a result verified by MLCommons:
// nothing is submitted, and the workload's own name stands where the rules list theirs.
//
// Time: initialisation ends where the data are opened or made; the compilation comes after that and so counts
// as running time, as does every evaluation. The page cache is left as it is found, and the line says so.
#pragma once

#include <filesystem>
#include <string>

#include "superstep/lab/formats/mllog.h"
#include "superstep/run/train/train_observer.h"

namespace superstep::lab {

class TrainingLog : public run::TrainObserver {
 public:
  // Begins the file anew. `ranks` are processes, each counted as a node without accelerators.
  TrainingLog(std::filesystem::path file, const std::string& workload, int ranks = 1);
  ~TrainingLog() override;  // says that the run was aborted, where it did not finish
  TrainingLog(const TrainingLog&) = delete;
  TrainingLog& operator=(const TrainingLog&) = delete;

  void data_touched(const run::TrainSettings& settings, const run::Schedule& schedule) override;
  void begun(const run::TrainBeginning& beginning) override;
  void epoch_begun(std::int64_t epoch) override;
  void epoch_ended(std::int64_t epoch, double samples_a_second) override;
  void evaluation_begun(std::int64_t epoch) override;
  void evaluation_ended(std::int64_t epoch, const std::vector<Metric>& metrics) override;
  void finished() override;

 private:
  void write();  // what the log has gathered, to the end of the file
  void stop(const char* status);

  std::filesystem::path file_;
  MlLog log_;
  std::size_t written_ = 0;
  bool running_ = false;
};

}  // namespace superstep::lab
