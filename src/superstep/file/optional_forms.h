// Which forms of files this build reads that need libraries not every build has.
#pragma once

#include <utility>
#include <vector>

namespace superstep::data {

// "WebP pictures", and whether this build reads them.
std::vector<std::pair<const char*, bool>> optional_forms();

}  // namespace superstep::data
