// Ctrl-C (SIGINT) and SIGTERM as a flag that long work polls between steps, so that it can save and leave.
// A second Ctrl-C, a fifth of a second later or more, ends the program at once. A program may have a check of
// its own asked too: base/watch.h.
//
// Who does not look at the flag for half a second (a compilation, a library's call, one long read) is ended
// from outside, so that every command is gone within a second: end_when_asked. What must not be cut short
// says so by a HoldEnd.
#pragma once

#include <string>

namespace superstep {

void watch_for_interrupts();  // installs the handlers; call once, from main
bool interrupted();           // has the user asked to stop?
void request_interrupt();     // asks as if the user had (for tests)
void clear_interrupt();

// From now on a program that was asked to stop and still runs half a second later ends with `code`: files
// half written are removed, what `last_words` makes of the innermost StopNote (empty without one) goes to
// standard error, and nothing else is run. While that is held up by a HoldEnd with a reason, what `heard`
// makes of the reason goes there, once. Call once, from main, after watch_for_interrupts.
void end_when_asked(int code, std::string (*last_words)(const std::string& note),
                    std::string (*heard)(const std::string& reason) = nullptr);

// While one lives, the program is not ended from outside: a checkpoint is being written, a child is waited
// for. `reason`: for who asked to stop, where it may take longer than people wait in the dark.
class HoldEnd {
 public:
  explicit HoldEnd(std::string reason = {});
  ~HoldEnd();
  HoldEnd(const HoldEnd&) = delete;
  HoldEnd& operator=(const HoldEnd&) = delete;

 private:
  std::string reason_;
};

// While one lives, interrupted() says no and the program is not ended: what several processes do together is
// done by all of them or by none.
class Uninterrupted {
 public:
  Uninterrupted();
  ~Uninterrupted();
  Uninterrupted(const Uninterrupted&) = delete;
  Uninterrupted& operator=(const Uninterrupted&) = delete;

 private:
  HoldEnd hold_;
};

// What a user who stopped the program should know when it is ended from outside: how to go on.
class StopNote {
 public:
  explicit StopNote(std::string text = {});
  ~StopNote();
  StopNote(const StopNote&) = delete;
  StopNote& operator=(const StopNote&) = delete;
  void set(std::string text);

 private:
  std::string text_;
};

}  // namespace superstep
