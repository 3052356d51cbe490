// Convolutions and matrix products on tiles: the problem, its three passes, and the plan found for each.
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/machine/ipu/hardware.h"
#include "superstep/machine/ipu/plan.h"
#include "superstep/op/product/convolution.h"

namespace superstep::machine::ipu {

// One spatial axis: output o reads the inputs o * stride - pad + k * kernel_step for k in [0, kernel), those
// outside [0, input) being padding.
struct Axis {
  std::int64_t input = 1, output = 1, kernel = 1, stride = 1, kernel_step = 1;
  // A gradient with respect to the data of a strided convolution: inputs lie `dilation` outputs apart, so
  // that only one output in `dilation` meets a given kernel position.
  std::int64_t dilation = 1;
};

struct Convolution {
  std::int64_t groups = 1, batch = 1, in_channels = 1, out_channels = 1;  // channels of a group
  std::vector<Axis> axes;                                                 // none: a matrix product
  ElementType element = ElementType::f16, partials = ElementType::f32;

  double macs() const;
  std::int64_t positions() const;         // of the output: batch x axes
  std::int64_t kernel_positions() const;  // of the kernel
  double input_elements() const;
  double weight_elements() const;
  double output_elements() const;
};

// m x k by k x n, `groups` times.
Convolution matrix_product(std::int64_t groups, std::int64_t m, std::int64_t k, std::int64_t n,
                           ElementType element, ElementType partials = ElementType::f32);

// A convolution as its operator describes it. Types other than f32 are done in f16.
Convolution convolution_of(const op::ConvGeometry& geometry, ElementType element,
                           ElementType partials = ElementType::f32);

enum class Pass : std::uint8_t { forward, data_gradient, weight_gradient };
Pass pass_of(op::ProductKind kind);

// How operands lie before the pass: `rearranged` ones were written in another pass's order.
struct Arrangement {
  bool input = false, weights = false;
};

// The fastest plan whose temporaries keep within the share of a tile's memory that the hardware allows; when
// none does, the bound is doubled until one fits. The gradient with respect to the data is planned as a
// convolution of the results' gradient, that with respect to the weights as a product that sums over the
// output positions.
Plan plan_convolution(const Hardware& hardware, const Convolution& forward, Pass pass,
                      const Arrangement& arrangement = {});

// Plans of products in this process so far: searched for, and served from what was found before for the same
// product on the same machine.
struct PlanCounts {
  std::uint64_t searched = 0, remembered = 0;
};
PlanCounts plan_counts();

}  // namespace superstep::machine::ipu
