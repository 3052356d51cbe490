#include "superstep/target/cpu/kernels/core/repeated.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace superstep::kernels {

namespace {

// More slots than any kernel of the lists has: pointers of a place stand on the stack.
constexpr std::size_t most_slots = 16;

class Repeated final : public Kernel {
 public:
  Repeated(KernelInfo info, KernelPointer kernel, std::vector<RepeatedAxis> axes, std::int64_t places)
      : Kernel(std::move(info)), kernel_(std::move(kernel)), axes_(std::move(axes)), places_(places) {}

  void run(const Arguments& arguments) const override {
    for (std::int64_t place = 0; place < places_; ++place)
      at(arguments, place, [&](const Arguments& here) { kernel_->run(here); });
  }

  // Of many places a range each; of few, each place by its own parts.
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    if (places_ >= most_parts) {
      const PartRange range = part_range(places_, part, info_.parts);
      for (std::int64_t place = range.begin; place < range.end; ++place)
        at(arguments, place, [&](const Arguments& here) { kernel_->run(here); });
      return;
    }
    const std::int64_t parts = kernel_->info().parts;
    if (part / parts >= places_) return;  // there is none
    at(arguments, part / parts, [&](const Arguments& here) { kernel_->run_part(here, part % parts); });
  }

 private:
  template <class Body>
  void at(const Arguments& arguments, std::int64_t place, const Body& body) const {
    std::array<const void*, most_slots> inputs{};
    std::array<void*, most_slots> outputs{};
    for (std::size_t i = 0; i < arguments.inputs.size(); ++i)
      inputs[i] =
          static_cast<const std::byte*>(arguments.inputs[i]) + offset(place, i, &RepeatedAxis::input_steps);
    for (std::size_t i = 0; i < arguments.outputs.size(); ++i)
      outputs[i] =
          static_cast<std::byte*>(arguments.outputs[i]) + offset(place, i, &RepeatedAxis::output_steps);
    body(Arguments{{inputs.data(), arguments.inputs.size()},
                   {outputs.data(), arguments.outputs.size()},
                   arguments.scratch});
  }

  std::int64_t offset(std::int64_t place, std::size_t slot,
                      std::vector<std::int64_t> RepeatedAxis::*steps) const {
    std::int64_t sum = 0;
    for (std::size_t i = axes_.size(); i-- > 0; place /= axes_[i].extent)
      sum += place % axes_[i].extent * (axes_[i].*steps)[slot];
    return sum;
  }

  KernelPointer kernel_;
  std::vector<RepeatedAxis> axes_;
  std::int64_t places_;
};

}  // namespace

KernelPointer repeated(KernelPointer kernel, std::vector<RepeatedAxis> axes) {
  if (axes.empty()) return kernel;
  std::int64_t places = 1;
  for (const RepeatedAxis& axis : axes) places *= axis.extent;
  KernelInfo info = kernel->info();
  info.name = fmt::format("{}, at {} places", info.name, places);
  info.flops *= static_cast<double>(places);
  info.bytes *= static_cast<double>(places);
  info.parts = places >= most_parts ? most_parts : std::max<std::int64_t>(1, places) * info.parts;
  info.members = 1;
  return std::make_unique<Repeated>(std::move(info), std::move(kernel), std::move(axes), places);
}

}  // namespace superstep::kernels
