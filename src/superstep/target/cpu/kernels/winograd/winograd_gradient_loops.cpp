// Winograd's transforms of gradients of outputs and of weights.
#include "superstep/target/cpu/kernels/core/vector_targets.h"
#include "superstep/target/cpu/kernels/winograd/winograd_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/winograd/winograd_gradient_loops.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/winograd/winograd_planes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

WinogradOtherLoops other_loops_for(std::int64_t number) {
  using namespace winograd;
  return for_tile(number, []<std::size_t tile>() {
    return WinogradOtherLoops{to_planes<OutputMatrix<tile>, PlainPlanes<float>>,
                              to_planes<OutputMatrix<tile>, PairPlanes>,
                              to_planes<FilterMatrix<tile>, PlainPlanes<float>>};
  });
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(other_loops_for);

WinogradOtherLoops winograd_other_loops(std::int64_t tile) {
  return SUPERSTEP_VECTOR_FUNCTION(other_loops_for)(tile);
}

}  // namespace superstep::kernels
#endif
