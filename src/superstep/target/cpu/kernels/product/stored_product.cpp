#include "superstep/target/cpu/kernels/product/stored_product.h"

#include <fmt/format.h>

#include "superstep/base/integers.h"
#include "superstep/target/cpu/kernels/core/image.h"
#include "superstep/target/cpu/kernels/core/instruction_set.h"
#include "superstep/target/cpu/kernels/product/stored_product_ways.h"

namespace superstep::kernels {

namespace {

using Source = StoredProduct::Source;

constexpr std::int64_t few_rows = 16;  // below: bound by memory

Image result_image(const StoredProduct& p) {
  Image image = dense_image(1, 1, p.rows, p.out, p.y_type);
  image.column_stride = p.y_stride;
  image.row_stride = p.rows * p.y_stride;
  return image;
}

StoredWay way_of(const StoredProduct& p) {
  if (p.source == Source::narrow) return in_pairs(p);
  if (!p.out_in) return along_outputs(p);
  return p.source == Source::columns ? across_rows(p) : along_inputs(p);
}

template <ProductMaker maker>
Prepared prepare_stored(const StoredProduct& product) {
  if (std::string fault = fault_of(product); !fault.empty()) return refuse(name_of(maker), fault);
  StoredWay way = way_of(product);
  if (std::string fault = way->prepare(maker); !fault.empty()) return refuse(name_of(maker), fault);
  return way;
}

std::size_t aligned(std::size_t bytes) { return round_up(bytes, std::size_t{64}); }

}  // namespace

StoredProductKernel::StoredProductKernel(const StoredProduct& product, std::int64_t width,
                                         std::int64_t panels_a_part)
    : Kernel({}), p_(product), panels_(product.out, width), staged_(product.y_type != ElementType::f32) {
  info_.parts = std::clamp<std::int64_t>(panels_.count / panels_a_part, 1, most_parts);
}

std::int64_t StoredProductKernel::widest_part() const {
  return std::min(p_.out, (panels_.count + info_.parts - 1) / info_.parts * panels_.size);
}

std::string StoredProductKernel::prepare(ProductMaker maker) {
  auto epilogue = EpilogueRunner::prepare(p_.epilogue, result_image(p_));
  if (!epilogue) return epilogue.error();
  epilogue_ = *epilogue;
  if (std::string fault = make(maker); !fault.empty()) return fault;
  const auto rows = static_cast<double>(p_.rows), in = static_cast<double>(p_.in),
             out = static_cast<double>(p_.out);
  info_.name = fmt::format("{}, weights as they lie{}", describe(),
                           p_.epilogue.steps.empty() ? "" : " + " + to_string(p_.epilogue));
  info_.flops = 2 * rows * in * out;
  info_.bytes = 4 * in * out + rows * in * (p_.source == Source::narrow ? 2 : 4) +
                rows * out * (static_cast<double>(size_in_bytes(p_.y_type)) + epilogue_.bytes_per_element());
  info_.arithmetic = p_.source == Source::narrow ? ElementType::bf16 : ElementType::f32;
  info_.inputs = 2 + epilogue_.inputs();
  info_.outputs = 1 + epilogue_.outputs();
  const std::int64_t sums = staged_ ? p_.rows * widest_part() : 0;
  info_.scratch_bytes = aligned(static_cast<std::size_t>(sums) * sizeof(float)) + room_bytes();
  return {};
}

// In one piece the parts follow each other where sums lie in scratch, which has room for one.
void StoredProductKernel::run(const Arguments& arguments) const {
  if (!staged_) return run_panels(arguments, {0, panels_.count});
  for (std::int64_t part = 0; part < info_.parts; ++part) run_part(arguments, part);
}

void StoredProductKernel::run_part(const Arguments& arguments, std::int64_t part) const {
  run_panels(arguments, part_range(panels_.count, part, info_.parts));
}

void StoredProductKernel::run_panels(const Arguments& arguments, PartRange panels) const {
  auto* scratch = static_cast<std::byte*>(arguments.scratch);
  float* sums = staged_ ? reinterpret_cast<float*>(scratch)
                        : static_cast<float*>(arguments.outputs[0]) + panels.begin * panels_.size;
  const std::size_t taken =
      staged_ ? aligned(static_cast<std::size_t>(p_.rows * widest_part()) * sizeof(float)) : 0;
  sum({arguments, panels, arguments.inputs[0], static_cast<const float*>(arguments.inputs[1]), sums,
       sum_stride(), scratch + taken});
}

void StoredProductKernel::finish(const Work& work, std::int64_t panel) const {
  if (!staged_ && epilogue_.empty()) return;
  const std::int64_t first = panel * panels_.size;
  auto* result = static_cast<std::byte*>(work.arguments.outputs[0]) +
                 first * static_cast<std::int64_t>(size_in_bytes(p_.y_type));
  EpilogueBlock block{};
  block.source = sums_of(work, panel);
  block.source_stride = work.stride;
  block.result = result;
  block.result_type = p_.y_type;
  block.result_stride = p_.y_stride;
  block.columns = p_.rows;
  block.channels = panels_.extent(panel);
  epilogue_.apply(block, {.channel = first}, work.arguments.inputs.data() + 2,
                  work.arguments.outputs.data() + 1);
}

StoredProduct::Source best_source(std::int64_t rows, bool out_in, ElementType x_type) {
  if (rows < few_rows) return Source::rows;
  if (multiplied_as(x_type) == ElementType::bf16) return Source::narrow;
  return out_in ? Source::columns : Source::rows;
}

std::string fault_of(const StoredProduct& p) {
  if (p.rows < 1 || p.in < 1 || p.out < 1) return "an extent of the product is not positive";
  if (p.source != Source::columns && p.x_stride < p.in && p.rows > 1) return "rows of x overlap";
  if (p.y_stride < p.out && p.rows > 1) return "rows of y overlap";
  if (p.source == Source::columns && !p.out_in) return "columns of x are for weights [out][in]";
  if (p.source == Source::narrow && (p.in % 2 != 0 || p.x_stride % 2 != 0))
    return "bf16 pairs need an even number of inputs and an even distance of rows";
  if (p.y_type != ElementType::f32 && p.y_type != ElementType::bf16)
    return std::string("no product's result of ") + name_of(p.y_type);
  return {};
}

extern constinit const Implementation<StoredProduct> libxsmm_stored{"libxsmm",
                                                                    prepare_stored<ProductMaker::libxsmm>};
extern constinit const Implementation<StoredProduct> portable_stored{"portable",
                                                                     prepare_stored<ProductMaker::portable>};

SUPERSTEP_KERNELS(stored_product, StoredProduct, libxsmm_stored, portable_stored)

}  // namespace superstep::kernels
