// The products that a pass of a convolution can be done as: its window kept or folded into inputs or rows,
// groups of few channels done together.
#pragma once

#include <vector>

#include "superstep/machine/ipu/product_search.h"

namespace superstep::machine::ipu {

enum class ProductForm : std::uint8_t {
  collapsed,                // kernels of one position: rows are batch x positions
  windowed,                 // rows are batch and spatial axes, the window is kept
  folded,                   // kernel positions are inputs, rows are batch x positions
  folded_last,              // the last axis folded, the others kept
  weight_gradient,          // rows are inputs x kernel positions, terms the output positions
  weight_gradient_windowed  // the same with the first axes kept
};
inline constexpr ProductForm last_form = ProductForm::weight_gradient_windowed;

struct FormedProduct {
  ProductForm form = ProductForm::collapsed;
  std::int64_t combined = 1;  // groups done as one, most of whose weights are zero
  Product product;
};

// All forms of a pass, in a fixed order.
std::vector<FormedProduct> forms_of(const Convolution& forward, Pass pass, const Arrangement& arrangement);

// The product of one form; the form must be among forms_of the same pass and kind of kernel.
Product product_of(const Convolution& forward, Pass pass, const Arrangement& arrangement, ProductForm form,
                   std::int64_t combined);

}  // namespace superstep::machine::ipu
