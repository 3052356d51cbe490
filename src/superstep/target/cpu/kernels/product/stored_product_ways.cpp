#include "superstep/target/cpu/kernels/product/stored_product_ways.h"

#include <fmt/format.h>

#include <array>

#include "superstep/target/cpu/kernels/move/copy.h"
#include "superstep/target/cpu/kernels/product/pair_panel.h"

namespace superstep::kernels {

namespace {

// Adds the product of this shape to `products`; the reason where it cannot be made.
std::string add_product(std::vector<BatchReduceProduct>& products, const ProductShape& shape,
                        ProductMaker maker) {
  auto product = BatchReduceProduct::prepare(shape, maker);
  if (!product) return product.error();
  products.push_back(*product);
  return {};
}

std::string add_copy(std::vector<KernelPointer>& copies, Prepared copy) {
  if (!copy) return copy.error().reason;
  copies.push_back(std::move(*copy));
  return {};
}

void copy(const Kernel& kernel, const void* from, void* to) { kernel.run({{&from, 1}, {&to, 1}, nullptr}); }

// Calls body(first, second), both kinds of each of two dimensions.
template <class Body>
std::string for_kinds(const Body& body) {
  for (std::size_t first = 0; first < 2; ++first)
    for (std::size_t second = 0; second < 2; ++second)
      if (std::string fault = body(first, second); !fault.empty()) return fault;
  return {};
}

class AlongOutputs final : public StoredProductKernel {
 public:
  // Rows of weights that are gone over together. Over few rows of x memory is waited for, and is read in as
  // few streams as the processor follows by itself; else a block is reread from the first-level cache.
  static constexpr std::int64_t streamed_depth = 8, cached_depth = 128, few_rows = 16;
  static constexpr std::int64_t panels_a_part = 2;  // half a kilobyte of each row

  explicit AlongOutputs(const StoredProduct& product)
      : StoredProductKernel(product, panel_width, panels_a_part),
        depths_(product.in, product.rows < few_rows ? streamed_depth : cached_depth) {}

 private:
  std::string make(ProductMaker maker) override {
    return for_kinds([&](std::size_t panel, std::size_t depth) {
      ProductShape shape;
      shape.m = panels_.extent_of_kind(panel);
      shape.n = p_.rows;
      shape.k = depths_.extent_of_kind(depth);
      shape.a_stride = p_.out;
      shape.b_n_stride = p_.rows > 1 ? p_.x_stride : p_.in;
      shape.c_stride = std::max(sum_stride(), shape.m);
      std::string fault = add_product(products_, shape, maker);
      shape.accumulate = true;
      return fault.empty() ? add_product(products_, shape, maker) : fault;
    });
  }

  void sum(const Work& work) const override {
    for (std::int64_t depth = 0; depth < depths_.count; ++depth)
      for (std::int64_t panel = work.panels.begin; panel < work.panels.end; ++panel) {
        const std::int64_t first = depth * depths_.size;
        const std::size_t kind = panels_.kind(panel) * 4 + depths_.kind(depth) * 2 + (depth > 0);
        products_[kind](work.weights + first * p_.out + panel * panels_.size,
                        static_cast<const float*>(work.x) + first, sums_of(work, panel));
        if (depth + 1 == depths_.count) finish(work, panel);
      }
  }

  std::string describe() const override {
    return fmt::format("product, {} x {} x {} blocks", panels_.size, p_.rows, depths_.size);
  }

  Cut depths_;
  std::vector<BatchReduceProduct> products_;  // [kind of panel][of depth][later]
};

// Outputs at a time, so that with them as many rows as there are fill the sums in registers
// (dot_product.cpp).
std::int64_t dot_outputs(std::int64_t rows) { return rows < 4 ? 8 : rows == 8 ? 3 : 6; }

class AlongInputs final : public StoredProductKernel {
 public:
  static constexpr std::int64_t width = 48;  // of a panel: whole blocks, however many outputs one has

  explicit AlongInputs(const StoredProduct& product)
      : StoredProductKernel(product, width, 1), outputs_(std::min(dot_outputs(product.rows), product.out)) {}

 private:
  std::string make(ProductMaker maker) override {
    if (maker != ProductMaker::libxsmm) return "dot products are made once";
    const Cut last(panels_.extent(panels_.count - 1), outputs_);
    for (const std::int64_t m : {outputs_, last.extent(last.count - 1)}) {
      ProductShape shape;
      shape.m = m;
      shape.n = p_.rows;
      shape.k = shape.a_stride = p_.in;
      shape.b_n_stride = p_.x_stride;
      shape.c_stride = sum_stride();
      // Few streams at a time leave the processor waiting where each begins.
      if (outputs_ < 4) shape.a_ahead = m * p_.in;
      if (std::string fault = add_product(products_, shape, ProductMaker::dot); !fault.empty()) return fault;
    }
    return {};
  }

  void sum(const Work& work) const override {
    for (std::int64_t panel = work.panels.begin; panel < work.panels.end; ++panel) {
      const Cut blocks(panels_.extent(panel), outputs_);
      for (std::int64_t block = 0; block < blocks.count; ++block) {
        const std::int64_t within = block * outputs_;
        products_[blocks.extent(block) == outputs_ ? 0 : 1](
            work.weights + (panel * panels_.size + within) * p_.in, work.x, sums_of(work, panel) + within);
      }
      finish(work, panel);
    }
  }

  std::string describe() const override {
    return fmt::format("dot products, {} x {} at a time", outputs_, p_.rows);
  }

  std::int64_t outputs_;
  std::vector<BatchReduceProduct> products_;  // of whole blocks and of the last one
};

class AcrossRows final : public StoredProductKernel {
 public:
  static constexpr std::int64_t outputs = 48, rows = 64;  // of a tile

  explicit AcrossRows(const StoredProduct& product)
      : StoredProductKernel(product, outputs, 1), rows_(product.rows, rows) {}

 private:
  std::string make(ProductMaker maker) override {
    return for_kinds([&](std::size_t panel, std::size_t row) {
      const std::int64_t m = rows_.extent_of_kind(row), n = panels_.extent_of_kind(panel);
      ProductShape shape;
      shape.m = shape.c_stride = m;
      shape.n = n;
      shape.k = p_.in;
      shape.a_stride = p_.rows;
      shape.b_n_stride = p_.in;
      if (std::string fault = add_product(products_, shape, maker); !fault.empty()) return fault;
      return add_copy(copies_, superstep::kernels::prepare(StridedCopy{
                                   .extents = {m, n}, .x_strides = {1, m}, .y_strides = {sum_stride(), 1}}));
    });
  }

  void sum(const Work& work) const override {
    auto* tile = reinterpret_cast<float*>(work.room);
    for (std::int64_t panel = work.panels.begin; panel < work.panels.end; ++panel) {
      for (std::int64_t row = 0; row < rows_.count; ++row) {
        const std::size_t kind = panels_.kind(panel) * 2 + rows_.kind(row);
        products_[kind](static_cast<const float*>(work.x) + row * rows_.size,
                        work.weights + panel * panels_.size * p_.in, tile);
        copy(*copies_[kind], tile, sums_of(work, panel) + row * rows_.size * work.stride);
      }
      finish(work, panel);
    }
  }

  std::size_t room_bytes() const override { return static_cast<std::size_t>(outputs * rows) * sizeof(float); }
  std::string describe() const override {
    return fmt::format("product, {} x {} blocks, transposed", rows_.size, panels_.size);
  }

  Cut rows_;
  std::vector<BatchReduceProduct> products_;  // [kind of panel][of rows]
  std::vector<KernelPointer> copies_;         // likewise
};

class InPairs final : public StoredProductKernel {
 public:
  static constexpr std::int64_t depth = 2048;  // of a panel: 256 kB

  explicit InPairs(const StoredProduct& product)
      : StoredProductKernel(product, panel_width, 1), depths_(product.in, depth) {}

 private:
  std::string make(ProductMaker maker) override {
    return for_kinds([&](std::size_t panel, std::size_t part) {
      const std::int64_t width = panels_.extent_of_kind(panel), k = depths_.extent_of_kind(part);
      ProductShape shape;
      shape.m = shape.a_stride = width;
      shape.n = p_.rows;
      shape.k = k;
      shape.b_n_stride = p_.rows > 1 ? p_.x_stride : p_.in;
      shape.c_stride = std::max(sum_stride(), width);
      shape.type = ElementType::bf16;
      shape.pairs = true;
      std::string fault = add_product(products_, shape, maker);
      shape.accumulate = true;
      if (fault.empty()) fault = add_product(products_, shape, maker);
      if (!fault.empty()) return fault;
      return add_copy(
          copies_, superstep::kernels::prepare(
                       PairPanel{k, width, p_.out_in ? 1 : p_.out, p_.out_in ? p_.in : 1, ElementType::f32}));
    });
  }

  void sum(const Work& work) const override {
    for (std::int64_t panel = work.panels.begin; panel < work.panels.end; ++panel) {
      for (std::int64_t part = 0; part < depths_.count; ++part) {
        const std::int64_t first = part * depths_.size, output = panel * panels_.size;
        const std::size_t kind = panels_.kind(panel) * 2 + depths_.kind(part);
        copy(*copies_[kind], work.weights + (p_.out_in ? output * p_.in + first : first * p_.out + output),
             work.room);
        products_[kind * 2 + (part > 0)](work.room, static_cast<const bf16*>(work.x) + first,
                                         sums_of(work, panel));
      }
      finish(work, panel);
    }
  }

  std::size_t room_bytes() const override {
    return static_cast<std::size_t>(depths_.size * panels_.size) * sizeof(bf16);
  }
  std::string describe() const override {
    return fmt::format("product of pairs, {} x {} x {} blocks", panels_.size, p_.rows, depths_.size);
  }

  Cut depths_;
  std::vector<BatchReduceProduct> products_;  // [kind of panel][of depth][later]
  std::vector<KernelPointer> copies_;         // [kind of panel][of depth]
};

}  // namespace

StoredWay along_outputs(const StoredProduct& product) { return std::make_unique<AlongOutputs>(product); }
StoredWay along_inputs(const StoredProduct& product) { return std::make_unique<AlongInputs>(product); }
StoredWay across_rows(const StoredProduct& product) { return std::make_unique<AcrossRows>(product); }
StoredWay in_pairs(const StoredProduct& product) { return std::make_unique<InPairs>(product); }

}  // namespace superstep::kernels
