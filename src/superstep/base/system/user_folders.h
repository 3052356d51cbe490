// Where the program keeps what is the user's: never in the folder it was started in.
#pragma once

#include <filesystem>

namespace superstep {

// What outlives a run: $SUPERSTEP_HOME, else $XDG_DATA_HOME/superstep, else ~/.local/share/superstep. ~ is
// $HOME, else what the system knows of the user; a user without a home has a folder of temporary files. Made
// when missing. Throws Error (io).
std::filesystem::path user_data_folder();

// What can be made again: $SUPERSTEP_HOME/cache, else $XDG_CACHE_HOME/superstep, else ~/.cache/superstep.
std::filesystem::path user_cache_folder();

}  // namespace superstep
