// Ctrl-C (SIGINT) and SIGTERM as a flag that long work polls between steps, so that it can save and leave.
// A second Ctrl-C ends the program at once. A program may have a check of its own asked too: base/watch.h.
#pragma once

namespace superstep {

void watch_for_interrupts();  // installs the handlers; call once, from main
bool interrupted();           // has the user asked to stop?
void request_interrupt();     // asks as if the user had (for tests)
void clear_interrupt();

}  // namespace superstep
