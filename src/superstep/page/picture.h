// Groups of pictures as HTML: images, the marks on them, insets, and one legend.
#pragma once

#include <string>
#include <vector>

#include "superstep/page/page.h"

namespace superstep::page {

std::string group_of(const std::vector<Picture>& pictures);

}  // namespace superstep::page
