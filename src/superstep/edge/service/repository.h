// The models of a server, by name.
#pragma once

#include <atomic>
#include <map>
#include <memory>

#include "superstep/edge/service/model_service.h"

namespace superstep::edge {

class Repository {
 public:
  // Throws Error (invalid_argument) on a name that is taken or is no name for a path.
  void add(std::unique_ptr<ModelService> model);

  ModelService* find(std::string_view name) const;  // null: there is none
  const std::map<std::string, std::unique_ptr<ModelService>, std::less<>>& models() const { return models_; }

  // Takes requests: not before all models are added, nor once it shuts down.
  bool is_open() const { return open_; }
  void open() { open_ = ready_ = true; }
  // What those are told who ask whether to come here: also no, while it still is open, before it shuts down.
  bool is_ready() const { return open_ && ready_; }
  void say_not_ready() { ready_ = false; }
  // Refuses what comes and waits until what is there is answered, or until `until`; tells the rest that it is
  // not. True: all was answered.
  bool drain(Clock::time_point until);

 private:
  std::map<std::string, std::unique_ptr<ModelService>, std::less<>> models_;
  std::atomic<bool> open_ = false, ready_ = false;
};

}  // namespace superstep::edge
