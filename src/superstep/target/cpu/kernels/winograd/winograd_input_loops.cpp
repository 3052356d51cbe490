// Winograd's transforms of inputs.
#include "superstep/target/cpu/kernels/core/vector_targets.h"
#include "superstep/target/cpu/kernels/winograd/winograd_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/winograd/winograd_input_loops.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/winograd/winograd_planes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

WinogradInputLoops input_loops_for(std::int64_t number) {
  using namespace winograd;
  return for_tile(number, []<std::size_t tile>() {
    return WinogradInputLoops{to_planes<InputMatrix<tile>, PlainPlanes<float>>,
                              to_planes<InputMatrix<tile>, PlainPlanes<bf16>>,
                              to_planes<InputMatrix<tile>, PairPlanes>};
  });
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
