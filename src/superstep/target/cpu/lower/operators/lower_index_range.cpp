// Indices that must lie in a range: a pass that looks at all of them, and a copy.
#include <fmt/format.h>

#include <cstring>

#include "superstep/op/move/index_range.h"
#include "superstep/target/cpu/lower/lowering.h"

namespace superstep::target::cpu {
namespace {

template <class T>
bool is_outside(const op::IndexRange& range, T index) {
  const auto from_first = static_cast<std::uint64_t>(index) - static_cast<std::uint64_t>(range.first);
  return from_first >= static_cast<std::uint64_t>(range.count) &&
         !(range.besides && static_cast<std::int64_t>(index) == *range.besides);
}

// Without an exit from the loop over all of them: such loops are quick.
template <class T>
void check(const op::IndexRange& range, const T* indices, std::int64_t count) {
  bool outside = false;
  for (std::int64_t i = 0; i < count; ++i) outside |= is_outside(range, indices[i]);
  if (!outside) return;
  for (std::int64_t i = 0; i < count; ++i)
    if (is_outside(range, indices[i])) op::refuse_index(range, fmt::format("{}", indices[i]));
}

class IndexRangeKernel : public kernels::Kernel {
 public:
  IndexRangeKernel(kernels::KernelInfo info, op::IndexRange range, ElementType type, std::int64_t count)
      : Kernel(std::move(info)), range_(std::move(range)), type_(type), count_(count) {}

  void run(const kernels::Arguments& arguments) const override {
    dispatch(type_, [&]<class T>() {
      if constexpr (std::is_integral_v<T>) check(range_, static_cast<const T*>(arguments.inputs[0]), count_);
    });
    std::memcpy(arguments.outputs[0], arguments.inputs[0],
                static_cast<std::size_t>(count_) * size_in_bytes(type_));
  }

 private:
  op::IndexRange range_;
  ElementType type_;
  std::int64_t count_;
};

Lowered lower_within(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const ValueId x = node.inputs[0], y = node.outputs[0];
  if (!lowering.is_row_major(x) || !lowering.is_row_major(y))
    return refuse("range of indices", "a tensor is not row-major");
  const ElementType type = lowering.element_in_memory(x);
  const std::int64_t count = lowering.shape(x).element_count();
  kernels::KernelInfo info{.name = fmt::format("range of {} indices", count),
                           .bytes = 2 * static_cast<double>(count) * static_cast<double>(size_in_bytes(type)),
                           .inputs = 1,
                           .outputs = 1};
  lowering.emit(
      node.op, node.name,
      std::make_unique<IndexRangeKernel>(std::move(info), op::index_range(node.attributes), type, count),
      {lowering.read(x)}, {lowering.write(y)});
  return {};
}

constexpr Lowerer lowerers[] = {{"superstep.IndicesWithin", "range of indices", lower_within}};

}  // namespace

extern constinit const LowererFamily index_range_lowerers{lowerers};

}  // namespace superstep::target::cpu
