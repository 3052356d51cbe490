// Winograd's transforms of inputs.
#include "superstep/target/cpu/kernels/vector_targets.h"
#include "superstep/target/cpu/kernels/winograd_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/winograd_input_loops.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/winograd_planes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

template <std::size_t tile>
WinogradInputLoops loops_of_tile() {
  using namespace winograd;
  return {to_planes<InputMatrix<tile>, PlainPlanes<float>>, to_planes<InputMatrix<tile>, PlainPlanes<bf16>>,
          to_planes<InputMatrix<tile>, PairPlanes>};
}

WinogradInputLoops input_loops_for(std::int64_t tile) {
  if (tile == 2) return loops_of_tile<2>();
  if (tile == 3) return loops_of_tile<3>();
  return loops_of_tile<4>();
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(input_loops_for);

WinogradInputLoops winograd_input_loops(std::int64_t tile) {
  return SUPERSTEP_VECTOR_FUNCTION(input_loops_for)(tile);
}

}  // namespace superstep::kernels
#endif
