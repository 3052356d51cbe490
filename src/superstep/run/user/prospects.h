// What can be done with a user's model file, without doing it: what `superstep onnx check` says is what the
// other commands do, because it goes their way.
#pragma once

#include <string>

#include "superstep/run/user/user_model.h"

namespace superstep::run {

struct Prospects {
  std::string no_serving;     // why it cannot be served; empty: it can
  std::string no_training;    // why it cannot be trained; empty: it can
  std::string no_open_batch;  // why a file written of it has a fixed batch; empty: it has not
  std::string no_file;        // why no file can be written of it; empty: one can
};

// Builds the training step (for the model's loss, at the smallest batch) and the written files, and keeps
// neither.
Prospects prospects_of(const UserModel& model);

}  // namespace superstep::run
