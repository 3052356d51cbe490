// The folder that a training's run is kept in where none is named.
#pragma once

#include <string>
#include <string_view>

namespace superstep::cli {

// "runs/braggnn-2026-03-14-150926" in the folder of the call, by its clock, with "-2" and so on behind it
// where that is there. `model` may be a model's file. Throws Error (io) where nothing can be written there,
// with the option that keeps nothing.
std::string new_run_folder(std::string_view model);

}  // namespace superstep::cli
