// SIGHUP as a flag: services take it as the word to read their files anew.
#pragma once

namespace superstep {

void watch_for_hangups();  // installs the handler; without it the signal ends the program
bool take_hangup();        // has one come since the last time?

}  // namespace superstep
