// A run of a translated program as a page: which construct of the source took what, array by array.
#pragma once

#include <filesystem>
#include <span>

#include "superstep/bsp/profile/profile.h"
#include "superstep/openmp/program/report_json.h"

namespace superstep::openmp {

// folder/program-1.html and so on: the machine's page of each compiled queue, those that took most cycles
// first, at most twelve. Throws Error (io).
void write_program_pages(std::vector<const bsp::Profile*> profiles, const std::filesystem::path& folder);

// folder/profile.html: regions with their lines, read from the sources where they are still there, and links
// to those pages. Throws Error (io).
void write_profile_page(const ProgramReport& report, const std::string& title,
                        const std::filesystem::path& folder);

}  // namespace superstep::openmp
