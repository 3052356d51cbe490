// Plots as pixels, where no page can be.
#pragma once

#include "superstep/page/page.h"

namespace superstep::page {

// A picture of the plot: axes with their numbers, bands, lines and points in the colours of a light page. It
// has no words: neither title nor labels nor legend. Throws Error (invalid_argument) as to_svg does, and for
// pictures of less than 100 x 80 or more than 10,000 pixels a side.
Image to_image(const Plot& plot, int width = 640, int height = 400);

}  // namespace superstep::page
