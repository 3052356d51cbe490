#include "superstep/run/train/run_keeper.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "superstep/base/file.h"
#include "superstep/base/system/partial_files.h"

namespace superstep::run {

RunKeeper::RunKeeper(std::string workload, std::filesystem::path folder, bool resume, bool writes,
                     std::filesystem::path part_of)
    : workload_(std::move(workload)),
      folder_(std::move(folder)),
      part_of_(std::move(part_of)),
      resume_(resume),
      first_(writes) {
  note_.set(folder_.empty() ? "without --out nothing was kept" : resume_ ? how_to_go_on() : "");
  if (folder_.empty() || !first_) return;
  if (resume_) {
    RunDirectory::open(folder_);
  } else {
    RunDirectory::refuse_existing(folder_);
    require_writable_folder(folder_);
    made_ = !std::filesystem::exists(folder_);
    make_folder(folder_);
  }
  lock_ = std::make_unique<FolderLock>(folder_);
  // The lock is ours: what a killed run was writing, nobody else is.
  for (const std::filesystem::path& each : {folder_, folder_ / "checkpoints"})
    sweep_partial_files(each, std::chrono::seconds(0));
}

RunKeeper::~RunKeeper() {
  if (!made_ || directory_) return;
  std::error_code ignored;
  std::filesystem::remove(folder_ / "lock", ignored);
  std::filesystem::remove(folder_, ignored);  // if it is empty
}

std::optional<Checkpoint> RunKeeper::newest() const {
  if (folder_.empty() || !resume_) return std::nullopt;
  return read_newest_checkpoint(RunDirectory::open(folder_).checkpoints());
}

void RunKeeper::begin(const nlohmann::json& config, std::int64_t step, const nlohmann::json& environment) {
  if (folder_.empty() || !first_) return;
  if (resume_) {
    directory_ = RunDirectory::open(folder_);
    directory_->rewind_log(step);
    directory_->change_config(config);
  } else {
    directory_ = RunDirectory::create(folder_, config);
  }
  directory_->add_environment(environment);
  if (!resume_) note_.set(how_to_go_on());
}

void RunKeeper::save(const Checkpoint& checkpoint) {
  const HoldEnd until_it_is_written;
  write_checkpoint(directory_->checkpoints(), checkpoint);
  note_.set(fmt::format("step {} is saved; {}", checkpoint.step, how_to_go_on()));
}

std::string RunKeeper::how_to_go_on() const {
  return fmt::format("go on with: superstep train {} --resume {}", workload_,
                     (part_of_.empty() ? folder_ : part_of_).string());
}

void RunKeeper::log(const nlohmann::json& line) const {
  if (directory_) directory_->log(line);
}

}  // namespace superstep::run
