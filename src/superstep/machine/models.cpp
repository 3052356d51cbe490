// The table of models: one a style of machine.
#include "superstep/machine/cost_model.h"
#include "superstep/machine/ipu/ipu_model.h"
#include "superstep/machine/kernel/kernel_model.h"
#include "superstep/machine/spatial/spatial_model.h"
#include "superstep/machine/stream/stream_model.h"

namespace superstep::machine {

std::unique_ptr<CostModel> cost_model(const Machine& machine) {
  switch (machine.style()) {
    case Style::bulk_synchronous: return std::make_unique<ipu::IpuModel>(machine);
    case Style::kernel_by_kernel: return std::make_unique<KernelModel>(machine);
    case Style::spatial_pipeline: return std::make_unique<SpatialModel>(machine);
    case Style::static_stream: return std::make_unique<StreamModel>(machine);
  }
  throw Error(ErrorCode::internal, "style out of range", machine.id());
}

}  // namespace superstep::machine
