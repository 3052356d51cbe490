// Keeps what a plug-in writes to standard error from it: logs from inside the library, which no setting of
// theirs silences wholly.
#pragma once

namespace superstep::target::pjrt {

// From here to its end nothing that is written to standard error is seen, by any thread; but where the user
// set the level of the plug-in's log (TF_CPP_MIN_LOG_LEVEL), all is. May be nested.
class Quiet {
 public:
  Quiet();
  ~Quiet();
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;
};

}  // namespace superstep::target::pjrt
