// A progress bar for long work: how far, how fast, how long still. Drawn on standard error, on one line,
// only when that is a terminal and the user did not ask for quiet; silent otherwise. A listener hears of it
// either way: base/watch.h.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace superstep {

class Progress {
 public:
  // `unit` names what is counted ("samples", "epochs"). `start` is where resumed work begins.
  Progress(std::string label, double total, std::string unit, double start = 0);
  // For one part of a command's work, which is often short: drawn when it has taken a second, and wiped away
  // at its end.
  static Progress passing(std::string label, double total, std::string unit);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Redraws at most ten times a second. `note` is shown at the end of the line (a loss, an error).
  void update(double done, std::string_view note = {});
  // Draws the last state and ends the line. Called by the destructor when it was not.
  void finish(std::string_view note = {});

 private:
  Progress(std::string label, double total, std::string unit, double start, bool passing);
  void draw(std::string_view note);
  void tell(std::string_view note);

  std::string label_, unit_, last_note_;
  double total_, start_, done_;
  std::chrono::steady_clock::time_point begun_, drawn_{}, told_{};
  bool visible_, passing_, finished_ = false;
};

// Turns progress bars off for the whole program (`--quiet`).
void set_quiet(bool quiet);
bool is_quiet();

}  // namespace superstep
