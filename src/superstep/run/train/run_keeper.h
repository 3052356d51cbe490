// What a training run writes down while it goes on: its folder, locked, with log and checkpoints. A run
// without a folder keeps nothing, and of several ranks the first one writes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "superstep/base/system/folder_lock.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/run/train/checkpoint.h"
#include "superstep/run/train/run_directory.h"

namespace superstep::run {

class RunKeeper {
 public:
  // Before the work: locks the folder and throws the Error that begin() would end in. `folder` empty: nothing
  // is kept. `part_of`: the folder that who is stopped goes on with; empty: this one.
  RunKeeper(std::string workload, std::filesystem::path folder, bool resume, bool writes,
            std::filesystem::path part_of = {});
  // A folder that was made for a run that did not begin is taken away again.
  ~RunKeeper();
  RunKeeper(const RunKeeper&) = delete;
  RunKeeper& operator=(const RunKeeper&) = delete;

  // The newest checkpoint of the run that goes on; nothing where there is none.
  std::optional<Checkpoint> newest() const;
  // Begins the run, or goes on with it at `step`: writes its configuration where that is another now.
  void begin(const nlohmann::json& config, std::int64_t step, const nlohmann::json& environment);

  bool writes() const { return directory_.has_value(); }
  const std::filesystem::path& folder() const { return folder_; }
  // Of a run that writes.
  RunDirectory& directory() { return *directory_; }
  void log(const nlohmann::json& line) const;  // nothing where nothing is kept
  // Writes a checkpoint as a whole, whoever asks the program to stop meanwhile.
  void save(const Checkpoint& checkpoint);
  std::string how_to_go_on() const;  // "go on with: superstep train mlp --resume run"

 private:
  std::string workload_;
  std::filesystem::path folder_, part_of_;
  bool resume_, first_, made_ = false;
  std::unique_ptr<FolderLock> lock_;
  std::optional<RunDirectory> directory_;
  StopNote note_;
};

}  // namespace superstep::run
