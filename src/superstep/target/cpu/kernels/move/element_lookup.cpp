#include "superstep/target/cpu/kernels/move/element_lookup.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/error.h"

namespace superstep::kernels {

namespace {

class Indices {
 public:
  Indices(const void* memory, ElementType type, std::int64_t extent)
      : memory_(memory), wide_(type == ElementType::i64), extent_(extent) {}

  std::int64_t operator[](std::int64_t i) const {
    std::int64_t index =
        wide_ ? static_cast<const std::int64_t*>(memory_)[i] : static_cast<const std::int32_t*>(memory_)[i];
    if (index < -extent_ || index >= extent_)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("index {} is outside [{}, {})", index, -extent_, extent_),
                  "an index of a gather or scatter");
    return index < 0 ? index + extent_ : index;
  }

 private:
  const void* memory_;
  bool wide_;
  std::int64_t extent_;
};

bool is_index(ElementType type) { return type == ElementType::i32 || type == ElementType::i64; }

class GatherElements final : public Kernel {
 public:
  GatherElements(KernelInfo info, const ElementLookup& l) : Kernel(std::move(info)), l_(l) {}
  void run(const Arguments& arguments) const override {
    const auto* data = static_cast<const float*>(arguments.inputs[0]);
    const Indices indices(arguments.inputs[1], l_.index_type, l_.length);
    auto* y = static_cast<float*>(arguments.outputs[0]);
    for (std::int64_t line = 0; line < l_.lines; ++line)
      for (std::int64_t i = 0; i < l_.chosen; ++i)
        y[line * l_.chosen + i] = data[line * l_.length + indices[line * l_.chosen + i]];
  }

 private:
  ElementLookup l_;
};

class ScatterElements final : public Kernel {
 public:
  ScatterElements(KernelInfo info, const ElementLookup& l) : Kernel(std::move(info)), l_(l) {}
  void run(const Arguments& arguments) const override {
    const Indices indices(arguments.inputs[0], l_.index_type, l_.length);
    const auto* updates = static_cast<const float*>(arguments.inputs[1]);
    auto* y = static_cast<float*>(arguments.outputs[0]);
    std::fill_n(y, l_.lines * l_.length, 0.0f);
    for (std::int64_t line = 0; line < l_.lines; ++line)
      for (std::int64_t i = 0; i < l_.chosen; ++i)
        y[line * l_.length + indices[line * l_.chosen + i]] += updates[line * l_.chosen + i];
  }

 private:
  ElementLookup l_;
};

KernelInfo describe(std::string name, double elements, double bytes_per_element, double flops) {
  KernelInfo info;
  info.name = std::move(name);
  info.flops = flops;
  info.bytes = elements * bytes_per_element;
  info.inputs = 2;
  info.outputs = 1;
  return info;
}

std::string fault_of(const ElementLookup& l) {
  if (l.lines < 0 || l.length < 0 || l.chosen < 0) return "an extent is negative";
  if (!is_index(l.index_type)) return fmt::format("indices of {}", name_of(l.index_type));
  return {};
}

}  // namespace

Prepared prepare_gather_elements(const ElementLookup& l) {
  if (std::string fault = fault_of(l); !fault.empty()) return refuse("elements by index", fault);
  const auto elements = static_cast<double>(l.lines * l.chosen);
  return std::make_unique<GatherElements>(
      describe(fmt::format("{} elements of {} lines by index", l.chosen, l.lines), elements, 16, 0), l);
}

Prepared prepare_scatter_elements(const ElementLookup& l) {
  if (std::string fault = fault_of(l); !fault.empty()) return refuse("elements by index", fault);
  const auto elements = static_cast<double>(l.lines * l.length);
  return std::make_unique<ScatterElements>(
      describe(fmt::format("{} elements of {} lines added by index", l.chosen, l.lines), elements, 4,
               static_cast<double>(l.lines * l.chosen)),
      l);
}

}  // namespace superstep::kernels
