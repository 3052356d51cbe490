// Profiles of a model on a machine that is not there.
#pragma once

#include <filesystem>
#include <string>

#include "superstep/lab/profile/model.h"
#include "superstep/target/target.h"

namespace superstep::cli {

// superstep profile on a bulk-synchronous machine: cycles and memory of the lowered program, counted without
// running it; where it is out of reach, of the machine model's plans. Prints the summary; with a folder,
// writes profile.html, profile.json and trace.json into it.
void profile_modelled(const std::string& machine, lab::ProfileRequest request, const target::Chips& chips,
                      const std::filesystem::path& out);

}  // namespace superstep::cli
