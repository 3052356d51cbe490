// Winograd's transforms of gradients of outputs and of weights.
#include "superstep/target/cpu/kernels/vector_targets.h"
#include "superstep/target/cpu/kernels/winograd_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/winograd_gradient_loops.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/winograd_planes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

template <std::size_t tile>
WinogradOtherLoops loops_of_tile() {
  using namespace winograd;
  return {to_planes<OutputMatrix<tile>, PlainPlanes<float>>, to_planes<OutputMatrix<tile>, PairPlanes>,
          to_planes<FilterMatrix<tile>, PlainPlanes<float>>};
}

WinogradOtherLoops other_loops_for(std::int64_t tile) {
  if (tile == 2) return loops_of_tile<2>();
  if (tile == 3) return loops_of_tile<3>();
  return loops_of_tile<4>();
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
