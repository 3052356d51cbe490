// The steps of a workflow, remembered in its folder: a call that was stopped goes on where it was.
//
//   workflow.json   which workflow, with which options, and the steps that are done with their seconds
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "superstep/base/options.h"
#include "superstep/base/system/folder_lock.h"

namespace superstep::workflow {

class Steps {
 public:
  // Opens or makes the folder and keeps others out of it. Throws Error: invalid_argument naming the first
  // option that the folder's study has another value of, or when the folder has other things in it; bad_file
  // for a damaged workflow.json; io.
  Steps(std::filesystem::path folder, std::string workflow, const Options& options, int count);

  // Does `work` unless a call before did and `files` are there. Once it returns the step is done for good.
  void step(const std::string& name, const std::vector<std::filesystem::path>& files,
            const std::function<void()>& work);

  struct Done {
    std::string name;
    double seconds =
        0;  // of all calls that worked on it to its end; those of a call that was stopped are lost
  };
  const std::vector<Done>& done() const { return done_; }

 private:
  void read(const Options& options);
  void write() const;
  const Done* find(const std::string& name) const;

  std::filesystem::path folder_;
  std::string workflow_;
  std::map<std::string, std::string> options_;
  int count_, at_ = 0;
  std::unique_ptr<FolderLock> lock_;
  std::vector<Done> done_;
};

}  // namespace superstep::workflow
