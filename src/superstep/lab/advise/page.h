// Advice as one page: the ranking, why, a roofline, and what every configuration gives and costs.
#pragma once

#include <filesystem>

#include "superstep/lab/advise/advise.h"

namespace superstep::lab {

// Writes a self-contained page. Throws Error (io).
void write_page(const Advice& advice, const std::filesystem::path& file);

}  // namespace superstep::lab
