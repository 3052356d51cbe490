#include "superstep/target/cpu/kernels/core/bands.h"

#include <algorithm>

#include "superstep/target/cpu/kernels/core/caches.h"

namespace superstep::kernels {
namespace {

// Of the second-level cache, for what all members touch of a band. Chosen: the rest is for what comes next.
constexpr std::int64_t share_of_cache = 4;

class BandedKernel final : public Kernel {
 public:
  BandedKernel(KernelInfo info, Bands bands) : Kernel(std::move(info)), bands_(std::move(bands)) {
    units_ = bands_.members.front()->units();
    const std::int64_t of_unit = std::max<std::int64_t>(1, static_cast<std::int64_t>(info_.bytes) / units_);
    band_ = std::clamp<std::int64_t>(second_level_cache() / share_of_cache / of_unit, 1, units_);
    info_.parts = std::clamp<std::int64_t>(units_ / band_, 1, most_parts);
  }

  const Bands& bands() const { return bands_; }

  void run(const Arguments& arguments) const override { run_units(arguments, {0, units_}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    run_units(arguments, part_range(units_, part, info_.parts));
  }

 private:
  void run_units(const Arguments& arguments, PartRange units) const {
    for (std::int64_t begin = units.begin; begin < units.end; begin += band_)
      run_band(arguments, {begin, std::min(units.end, begin + band_)});
  }

  void run_band(const Arguments& arguments, PartRange band) const {
    std::size_t input = 0, output = 0;
    for (const auto& member : bands_.members) {
      const std::size_t inputs = member->info().inputs, outputs = member->info().outputs;
      const std::int64_t units = member->units() / units_;
      member->run_range({arguments.inputs.subspan(input, inputs), arguments.outputs.subspan(output, outputs),
                         arguments.scratch},
                        {band.begin * units, band.end * units});
      input += inputs, output += outputs;
    }
  }

  Bands bands_;
  std::int64_t units_ = 1, band_ = 1;
};

}  // namespace

Prepared prepare(const Bands& bands) {
  if (bands.members.empty()) return refuse("bands", "there is no kernel");
  const std::int64_t units = bands.members.front()->units();
  KernelInfo info;
  for (const auto& member : bands.members) {
    if (units < 1 || member->units() < 1 || member->units() % units != 0)
      return refuse("bands", "a kernel is not made of as many pieces as the first");
    const KernelInfo& own = member->info();
    info.name += (info.name.empty() ? "" : "; ") + own.name;
    info.flops += own.flops;
    info.bytes += own.bytes;
    info.scratch_bytes = std::max(info.scratch_bytes, own.scratch_bytes);
    info.inputs += own.inputs;
    info.outputs += own.outputs;
  }
  return std::make_unique<BandedKernel>(std::move(info), bands);
}

std::vector<std::shared_ptr<const RangeKernel>> members_of(const std::shared_ptr<const Kernel>& kernel) {
  if (const auto* banded = dynamic_cast<const BandedKernel*>(kernel.get())) return banded->bands().members;
  auto alone = std::dynamic_pointer_cast<const RangeKernel>(kernel);
  if (!alone || alone->units() < 1) return {};
  return {std::move(alone)};
}

}  // namespace superstep::kernels
