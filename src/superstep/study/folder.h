// Whose folder a study's is: study.json in it says so.
#pragma once

#include <filesystem>
#include <string>

namespace superstep::study {

// Makes the folder that of this study, or finds that it is. Throws Error (invalid_argument) where it holds
// another study, or other things.
void claim_folder(const std::filesystem::path& folder, const std::string& name);

}  // namespace superstep::study
