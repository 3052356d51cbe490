// Masks of dropout and normal random numbers: the same whatever the micro-batch and the number of threads.
#include "superstep/target/cpu/lower/operators/lower_random.h"

#include <algorithm>

#include "superstep/target/cpu/kernels/elementwise/random_mask.h"
#include "superstep/target/cpu/kernels/elementwise/random_normal.h"
#include "superstep/target/cpu/lower/image_operands.h"
#include "superstep/target/cpu/run/run_info.h"

namespace superstep::target::cpu {
namespace {

kernels::KernelInfo address_info() {
  kernels::KernelInfo info;
  info.name = "address of random numbers";
  info.inputs = 2;
  info.outputs = 1;
  return info;
}

// Row r of the batch has the numbers of sample counter + r: see op/elementwise/random.h.
class AddressKernel : public kernels::Kernel {
 public:
  AddressKernel(std::uint64_t seed, std::uint32_t purpose)
      : Kernel(address_info()), seed_(seed), purpose_(purpose) {}
  void run(const kernels::Arguments& arguments) const override {
    const auto counter = static_cast<std::uint64_t>(*static_cast<const std::int64_t*>(arguments.inputs[0]));
    const auto& info = *static_cast<const RunInfo*>(arguments.inputs[1]);
    *static_cast<kernels::RandomAddress*>(arguments.outputs[0]) = {
        .seed = seed_, .first_sample = counter + info.first_row, .purpose = purpose_};
  }

 private:
  std::uint64_t seed_;
  std::uint32_t purpose_;
};

// Numbers follow a sample's elements in the graph's order: a row-major tensor is one long row of channels.
std::expected<kernels::Image, Refusal> mask_image(const Lowering& lowering, ValueId id) {
  const Shape& shape = lowering.shape(id);
  if (shape.rank() < 2 || !lowering.is_row_major(id)) return as_image(lowering, id);
  return kernels::dense_image(1, 1, shape[0], shape.element_count() / std::max<std::int64_t>(1, shape[0]),
                              lowering.element_in_memory(id));
}

Lowered lower_mask(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const auto image = mask_image(lowering, node.outputs[0]);
  if (!image) return std::unexpected(image.error());
  auto kernel = kernels::prepare(
      kernels::RandomMask{.image = *image, .keep = static_cast<float>(node.attributes.number("keep"))});
  if (!kernel) return std::unexpected(kernel.error());
  const DraftOperand address = emit_random_address(lowering, node);
  lowering.emit(node.op, node.name, std::move(*kernel), {address}, {lowering.write(node.outputs[0])});
  return {};
}

Lowered lower_normal(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const ValueId numbers = node.outputs[0];
  if (lowering.element_in_memory(numbers) != ElementType::f32 || !lowering.is_row_major(numbers))
    return refuse("normal random numbers", "the result is not row-major f32");
  auto kernel = kernels::prepare(
      kernels::RandomNormal{.seed = static_cast<std::uint64_t>(node.attributes.integer("seed", 0)),
                            .stream = static_cast<std::uint32_t>(node.attributes.integer("stream", 0)),
                            .count = lowering.shape(numbers).element_count()});
  if (!kernel) return std::unexpected(kernel.error());
  lowering.emit(node.op, node.name, std::move(*kernel), {lowering.read(node.inputs[0])},
                {lowering.write(numbers)});
  return {};
}

constexpr Lowerer lowerers[] = {{"superstep.RandomMask", "random mask", lower_mask},
                                {"superstep.RandomNormal", "normal random numbers", lower_normal}};

}  // namespace

extern constinit const LowererFamily random_lowerers{lowerers};

DraftOperand emit_random_address(Lowering& lowering, const Node& mask) {
  const DraftOperand address = lowering.temporary(sizeof(kernels::RandomAddress));
  lowering.emit(
      "address", mask.name,
      std::make_unique<AddressKernel>(static_cast<std::uint64_t>(mask.attributes.integer("seed")),
                                      static_cast<std::uint32_t>(mask.attributes.integer("stream"))),
      {lowering.read(mask.inputs[0]), Operand{Space::run, 0, 0}}, {address});
  return address;
}

}  // namespace superstep::target::cpu
