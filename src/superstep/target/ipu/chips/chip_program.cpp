#include "superstep/target/ipu/chips/chip_program.h"

#include "superstep/target/ipu/chips/chip_options.h"
#include "superstep/target/ipu/ipu.h"
#include "superstep/target/ipu/lower/prepare.h"

namespace superstep::target::ipu {

ChipProgram lower_for(const GraphAtBatch& model, std::string_view machine_name, const BatchedPorts& ports,
                      const CompileOptions& options, const LowerOptions& lower_options,
                      std::span<const std::string> left_out) {
  const machine::Machine machine = machine::find_machine(std::string(machine_name));
  const machine::ipu::Hardware hardware = machine::ipu::hardware_of(machine);
  if (!options.chips.several()) {
    graph::Graph graph = prepare_for_tiles(model(options.batch), left_out);
    LoweredGraph lowered = lower(graph, device_of(machine_name), hardware, lower_options);
    return {std::move(graph), std::move(lowered), {}};
  }
  graph::Graph graph = prepare_for_tiles(model(micro_batch_of(model, ports, options)), left_out);
  const ChipLayout layout = layout_of(machine, graph, options);
  const bsp::Device device =
      device_of(machine_name, layout.chips() * static_cast<std::uint32_t>(layout.replicas));
  LoweredGraph lowered = is_training(graph) ? lower_training(graph, device, hardware, layout, lower_options)
                                            : lower_pipeline(graph, device, hardware, layout, lower_options);
  return {std::move(graph), std::move(lowered), description_of(layout)};
}

}  // namespace superstep::target::ipu
