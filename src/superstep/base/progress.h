// Signs of life of long work, on standard error: how far, how fast, how long still. On a terminal a bar on
// one line; elsewhere (a log, a queue's output) a line now and then, at least one every half minute, whatever
// the program does. A listener hears of it
// either way: base/watch.h.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <string_view>

namespace superstep {

enum class ProgressMode { none, line, bar };

class Progress {
 public:
  // `unit` names what is counted ("samples", "epochs"). `start` is where resumed work begins.
  Progress(std::string label, double total, std::string unit, double start = 0);
  // For one part of a command's work, which is often short: drawn when it has taken a second, and wiped away
  // at its end.
  static Progress passing(std::string label, double total, std::string unit);
  // For work of which nobody knows how far it is (a compilation): named in the lines of those who read lines.
  static Progress phase(std::string label);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Redraws at most ten times a second. `note` is shown at the end of the line (a loss, an error).
  void update(double done, std::string_view note = {});
  // A point that deserves a line of its own where lines are written: the end of an epoch. `words` are its
  // note.
  void milestone(std::string_view words);
  // Draws the last state and ends the line. Called by the destructor when it was not.
  void finish(std::string_view note = {});

  // "braggnn: 42 %, 1,260 of 3,000 samples, 98.1 ksamples/s, 12 s left, loss 0.1".
  std::string line() const;

 private:
  enum class Kind { whole, passing, phase };
  Progress(std::string label, double total, std::string unit, double start, Kind kind);
  void draw();
  void inform(std::string_view note);  // the listener; the mutex is held
  double seconds() const;
  std::string line_with(std::string_view note) const;  // the mutex is held

  mutable std::mutex mutex_;  // lines are written by a thread of their own
  std::string label_, unit_, last_note_;
  double total_, start_, done_;
  std::chrono::steady_clock::time_point begun_, drawn_{}, told_{};
  Kind kind_;
  bool finished_ = false;
};

// How progress is shown by the whole program. Until it is set: a bar where standard error is a terminal, and
// nothing elsewhere.
void set_progress(ProgressMode mode);
ProgressMode progress_mode();
// In mode `line`: a thread that writes one when nothing was written for `interval`. `label` names the work
// when no Progress does.
void start_progress_lines(std::string label, std::chrono::milliseconds interval = std::chrono::seconds(30));

// No tables and no signs of life (`--quiet`).
void set_quiet(bool quiet);
bool is_quiet();

// Is there a bar on the terminal's line that has not been ended?
bool progress_line_is_open();

}  // namespace superstep
