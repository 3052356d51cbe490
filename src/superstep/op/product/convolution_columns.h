// A convolution as a matrix product: the inputs of every output as a column.
#pragma once

#include <span>

#include "superstep/op/product/convolution.h"

namespace superstep::op {

// Is it worth making columns? They are shared by the maps of a group.
bool has_columns(const ConvGeometry& geometry);

// y += the convolution of x with w, each result summed in the order of the definition: channel after channel,
// tap after tap. What lies in the padding counts as zero, so that weights must be finite where there is any.
void add_by_columns(const ConvGeometry& geometry, std::span<const double> x, std::span<const double> w,
                    std::span<double> y);

}  // namespace superstep::op
