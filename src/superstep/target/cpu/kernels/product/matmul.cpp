#include "superstep/target/cpu/kernels/product/matmul.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "superstep/base/integers.h"
#include "superstep/target/cpu/kernels/core/caches.h"
#include "superstep/target/cpu/kernels/core/epilogue_run.h"
#include "superstep/target/cpu/kernels/core/instruction_set.h"
#include "superstep/target/cpu/kernels/move/copy.h"
#include "superstep/target/cpu/kernels/product/batch_reduce.h"
#include "superstep/target/cpu/kernels/product/pair_panel.h"

namespace superstep::kernels {

namespace {

constexpr std::int64_t whole_panel = 128;   // at most so many contiguous elements of c make one panel
constexpr std::int64_t depth_limit = 1024;  // of one product: a panel of 64 is 256 kB
constexpr std::int64_t tile_bytes = 16 * 1024;
constexpr std::int64_t least_widened = 12;  // columns that are worth packing operands of bf16 as f32
// A left operand whose summed index takes such steps is a page or a set of the first-level cache apart for
// every step; copied together, in slices that share the second-level cache with the result, it is not.
constexpr std::int64_t far_bytes = 1024, slice_depth = 256, least_reuse = 128;
// Of tiles of the right operand, packed for all panels.
std::int64_t packed_limit() { return second_level_cache() * 3 / 8; }

// An operand seen column-major: `m` along c's contiguous dimension, `n` along its other one.
struct Side {
  std::array<std::int64_t, 2> batch;
  std::int64_t m = 0, n = 0, k = 0;  // strides; 0 for the dimension it has not
  ElementType type = ElementType::f32;
  std::int64_t size() const { return static_cast<std::int64_t>(size_in_bytes(type)); }
};

struct Form {
  std::array<std::int64_t, 2> batch;
  std::int64_t m, n, k;
  Side left, right, result;  // left: m x k, right: k x n
  bool swapped;              // left is b
};

Form form_of(const Matmul& p, bool columns_inner) {
  const Side a{p.a.batch, p.a.row, p.a.row, p.a.column, p.a.type};
  const Side b{p.b.batch, p.b.column, p.b.column, p.b.row, p.b.type};
  const std::int64_t stride = columns_inner ? p.c.row : p.c.column;
  const Side c{p.c.batch, 1, stride, 0, p.c.type};
  if (columns_inner) return {p.batch, p.columns, p.rows, p.inner, b, a, c, true};
  return {p.batch, p.rows, p.columns, p.inner, a, b, c, false};
}

bool has_channels(const Epilogue& epilogue) {
  return std::ranges::any_of(epilogue.steps, [](const EpilogueStep& step) {
    return step.op == EpilogueOp::bias || step.op == EpilogueOp::scale_channels;
  });
}

// Where c could be read either way (a row or a column), the way that leaves the left operand in place; but
// numbers for every channel say which dimension the channels are.
Form choose_form(const Matmul& p) {
  if (has_channels(p.epilogue) && (p.c.column == 1 || p.c.row == 1)) return form_of(p, p.c.column == 1);
  const bool columns_fit = p.c.column == 1 || p.columns == 1, rows_fit = p.c.row == 1 || p.rows == 1;
  if (columns_fit && rows_fit) {
    if (p.columns == 1) return form_of(p, p.c.column == 1 && p.c.row != 1);
    if (p.rows == 1) return form_of(p, true);
    return form_of(p, p.b.column == 1);
  }
  return form_of(p, columns_fit);
}

struct Blocks {
  std::int64_t panel, depth, tile;
  std::int64_t panels = 1, depths = 1, tiles = 1;
};

std::int64_t pieces(std::int64_t total, std::int64_t size) { return (total + size - 1) / size; }

Blocks choose_blocks(const Form& f, bool epilogue, bool staged) {
  Blocks b;
  b.panel = f.m <= whole_panel ? f.m : panel_width;
  b.depth = staged || f.k <= depth_limit ? f.k : depth_limit;
  b.tile = epilogue || staged ? std::max<std::int64_t>(tile_bytes / 4 / b.panel / 6 * 6, 6) : f.n;
  b.tile = std::min(b.tile, f.n);
  b.panels = pieces(f.m, b.panel);
  b.depths = pieces(f.k, b.depth);
  b.tiles = pieces(f.n, b.tile);
  return b;
}

// Kinds of a dimension's pieces: all of one size, or the last one smaller.
std::int64_t piece(std::int64_t total, std::int64_t size, std::int64_t index) {
  return std::min(size, total - index * size);
}

class MatmulKernel final : public Kernel {
 public:
  struct Plan {
    Form form;
    Blocks blocks;
    bool accumulate, staged, pack_left, pack_right, pairs;
    ElementType multiplied;                    // what operands are packed as
    bool one_left;                             // packed once for the whole batch
    std::vector<BatchReduceProduct> products;  // [last panel][last tile][last depth][depth > 0]
    std::vector<KernelPointer> left_copies;    // [last panel][last depth]
    std::vector<KernelPointer> right_copies;   // [last tile][last depth]
    std::int64_t left_scratch, right_tile;     // bytes; of a tile of the right operand
    std::int64_t tile_group;                   // tiles that all panels see before the next ones
    EpilogueRunner epilogue;
  };

  MatmulKernel(KernelInfo info, Plan plan) : Kernel(std::move(info)), p_(std::move(plan)) {
    const std::int64_t panels = p_.form.batch[0] * p_.form.batch[1] * p_.blocks.panels;
    stretches_ = std::clamp<std::int64_t>(most_parts / panels, 1, p_.blocks.tiles);
    info_.parts = panels * stretches_;
  }

  void run(const Arguments& arguments) const override {
    for (std::int64_t i = 0; i < p_.form.batch[0]; ++i)
      for (std::int64_t j = 0; j < p_.form.batch[1]; ++j) {
        const bool packed = p_.one_left && (i > 0 || j > 0);
        run_panels(arguments, place_of(arguments, i, j), {0, p_.blocks.panels}, {0, p_.blocks.tiles}, packed);
      }
  }

  // A stretch of the tiles of one panel of one product.
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    const std::int64_t panel = part / stretches_ % p_.blocks.panels,
                       product = part / stretches_ / p_.blocks.panels;
    const PartRange tiles = part_range(p_.blocks.tiles, part % stretches_, stretches_);
    run_panels(arguments, place_of(arguments, product / p_.form.batch[1], product % p_.form.batch[1]),
               {panel, panel + 1}, tiles, false);
  }

 private:
  struct Place {
    const std::byte *left, *right;
    std::byte* result;
    std::int64_t shift;  // of the result, elements
  };
  struct Index {
    std::int64_t panel, depth, tile;
  };

  Place place_of(const Arguments& arguments, std::int64_t i, std::int64_t j) const;
  // `packed`: the left operand is in scratch already.
  void run_panels(const Arguments& arguments, const Place& place, PartRange panels, PartRange tiles,
                  bool packed) const;
  void run_group(const Arguments& arguments, const Place& place, PartRange panels, PartRange tiles,
                 bool packed) const;
  const std::byte* packed_left(const Place& place, const Index& at, std::byte* scratch, bool fresh) const;
  const std::byte* packed_right(const Place& place, const Index& at, std::byte* scratch, bool fresh) const;
  void run_tile(const Arguments& arguments, const Place& place, const Index& at, const std::byte* left,
                const std::byte* right) const;

  std::size_t last_panel(const Index& at) const { return at.panel + 1 == p_.blocks.panels; }
  std::size_t last_depth(const Index& at) const { return at.depth + 1 == p_.blocks.depths; }
  std::size_t last_tile(const Index& at) const { return at.tile + 1 == p_.blocks.tiles; }

  Plan p_;
  std::int64_t stretches_ = 1;  // parts that the tiles of a panel are divided into
};

const std::byte* start_of(const void* base, const Side& side, std::int64_t i, std::int64_t j) {
  return static_cast<const std::byte*>(base) + (i * side.batch[0] + j * side.batch[1]) * side.size();
}

void copy(const Kernel& kernel, const std::byte* from, std::byte* to) {
  const void* input = from;
  void* output = to;
  kernel.run({{&input, 1}, {&output, 1}, nullptr});
}

// Packed where `fresh` asks for it, else as it was left there.
const std::byte* MatmulKernel::packed_left(const Place& place, const Index& at, std::byte* scratch,
                                           bool fresh) const {
  const Side& left = p_.form.left;
  const std::byte* from =
      place.left + (at.panel * p_.blocks.panel * left.m + at.depth * p_.blocks.depth * left.k) * left.size();
  if (!p_.pack_left) return from;
  const std::size_t kind = last_panel(at) * 2 + last_depth(at);
  if (fresh) copy(*p_.left_copies[kind], from, scratch);
  return scratch;
}

const std::byte* MatmulKernel::packed_right(const Place& place, const Index& at, std::byte* scratch,
                                            bool fresh) const {
  const Side& right = p_.form.right;
  const std::byte* from =
      place.right +
      (at.tile * p_.blocks.tile * right.n + at.depth * p_.blocks.depth * right.k) * right.size();
  if (!p_.pack_right) return from;
  if (fresh) copy(*p_.right_copies[last_tile(at) * 2 + last_depth(at)], from, scratch);
  return scratch;
}

void MatmulKernel::run_tile(const Arguments& arguments, const Place& place, const Index& at,
                            const std::byte* left, const std::byte* right) const {
  const Form& f = p_.form;
  const std::int64_t first = at.panel * p_.blocks.panel, column = at.tile * p_.blocks.tile;
  const std::int64_t channels = piece(f.m, p_.blocks.panel, at.panel),
                     columns = piece(f.n, p_.blocks.tile, at.tile);
  std::byte* result = place.result + (first + column * f.result.n) * f.result.size();
  float* product = p_.staged ? reinterpret_cast<float*>(static_cast<std::byte*>(arguments.scratch) +
                                                        p_.left_scratch + p_.tile_group * p_.right_tile)
                             : reinterpret_cast<float*>(result);
  const std::size_t kind =
      last_panel(at) * 8 + last_tile(at) * 4 + last_depth(at) * 2 + (at.depth > 0 ? 1 : 0);
  p_.products[kind](left, right, product);
  if (!last_depth(at) || (p_.epilogue.empty() && !p_.staged)) return;
  p_.epilogue.apply(
      {product, p_.staged ? channels : f.result.n, result, f.result.type, f.result.n, columns, channels},
      {0, column, first, 1, place.shift}, arguments.inputs.data() + 2, arguments.outputs.data() + 1);
}

MatmulKernel::Place MatmulKernel::place_of(const Arguments& arguments, std::int64_t i, std::int64_t j) const {
  const Form& f = p_.form;
  const Side& c = f.result;
  Place place{start_of(arguments.inputs[f.swapped ? 1 : 0], f.left, i, j),
              start_of(arguments.inputs[f.swapped ? 0 : 1], f.right, i, j),
              static_cast<std::byte*>(arguments.outputs[0]), i * c.batch[0] + j * c.batch[1]};
  place.result += place.shift * c.size();
  return place;
}

// Tiles whose packed right operands stay in the second-level cache for all panels.
void MatmulKernel::run_group(const Arguments& arguments, const Place& place, PartRange panels,
                             PartRange tiles, bool packed) const {
  auto* scratch = static_cast<std::byte*>(arguments.scratch);
  Index at{};
  for (at.depth = 0; at.depth < p_.blocks.depths; ++at.depth)
    for (at.panel = panels.begin; at.panel < panels.end; ++at.panel) {
      const std::byte* left = packed_left(place, at, scratch, !packed);
      for (at.tile = tiles.begin; at.tile < tiles.end; ++at.tile) {
        std::byte* room = scratch + p_.left_scratch + (at.tile - tiles.begin) * p_.right_tile;
        run_tile(arguments, place, at, left, packed_right(place, at, room, at.panel == panels.begin));
      }
    }
}

void MatmulKernel::run_panels(const Arguments& arguments, const Place& place, PartRange panels,
                              PartRange tiles, bool packed) const {
  for (std::int64_t first = tiles.begin; first < tiles.end; first += p_.tile_group)
    run_group(arguments, place, panels, {first, std::min(first + p_.tile_group, tiles.end)}, packed);
}

// Left as [k][m], or in pairs [k/2][m][2].
Prepared left_copy(const Side& left, std::int64_t m, std::int64_t k, bool pairs, ElementType packed) {
  if (pairs) return prepare(PairPanel{k, m, left.k, left.m, left.type, PairPanel::Order::panels});
  return prepare(StridedCopy{{k, m}, {left.k, left.m}, {m, 1}, left.type, packed});
}

// Right as [n][k], in pairs with an even k.
Prepared right_copy(const Side& right, std::int64_t n, std::int64_t k, bool pairs, ElementType packed) {
  if (pairs) return prepare(PairPanel{k, n, right.k, right.n, right.type, PairPanel::Order::columns});
  return prepare(StridedCopy{{n, k}, {right.n, right.k}, {k, 1}, right.type, packed});
}

std::int64_t aligned(std::int64_t bytes) { return round_up(bytes, std::int64_t{64}); }

class MatmulBuilder {
 public:
  MatmulBuilder(const Matmul& description, ProductMaker maker) : d_(description), maker_(maker) {}
  Prepared build();

 private:
  void choose();
  std::optional<std::string> make_products();
  std::optional<std::string> make_copies();
  bool gathers_left() const;
  void slice_left();
  void shorten_tiles(std::int64_t column_bytes);
  std::int64_t stored_depth(std::int64_t k) const { return p_.pairs ? padded_depth(k) : k; }
  ProductShape shape_of(std::int64_t m, std::int64_t n, std::int64_t k, bool accumulate) const;
  KernelInfo describe() const;

  const Matmul& d_;
  ProductMaker maker_;
  MatmulKernel::Plan p_;
};

void MatmulBuilder::choose() {
  p_.form = choose_form(d_);
  const Form& f = p_.form;
  const bool bf16 = f.left.type == ElementType::bf16;
  p_.staged = f.result.type != ElementType::f32;
  p_.accumulate = d_.accumulate;
  p_.blocks = choose_blocks(f, !d_.epilogue.steps.empty(), p_.staged);
  // Where pairs are slow, operands are packed as f32; over few columns that would take longer than the
  // product.
  const bool libxsmm = maker_ == ProductMaker::libxsmm;
  const bool widened = bf16 && libxsmm && f.n >= least_widened && multiplied_as(f.left.type) != f.left.type;
  p_.multiplied = widened ? ElementType::f32 : f.left.type;
  p_.pairs = bf16 && libxsmm && !widened;
  p_.pack_left = (f.left.m != 1 && f.m > 1) || p_.pairs || widened;
  if (gathers_left()) slice_left();
  const bool k_unit = f.right.k == 1 || f.k == 1, n_unit = f.right.n == 1 || f.n == 1;
  const bool in_pairs = k_unit && f.k % 2 == 0 && (f.right.n % 2 == 0 || f.n == 1);
  p_.pack_right = p_.pairs ? !in_pairs : widened || (libxsmm && !k_unit && !n_unit);
  // Overlapping columns (zero strides) are copied apart: generated code expects distances.
  if (f.n > 1 && f.right.n == 0) p_.pack_right = true;
  if (f.k > 1 && f.left.k < f.m) p_.pack_left = true;
  const std::int64_t depth = stored_depth(p_.blocks.depth);
  const auto packed_size = static_cast<std::int64_t>(size_in_bytes(p_.multiplied));
  if (p_.pack_right) shorten_tiles(depth * packed_size);
  p_.left_scratch = p_.pack_left ? aligned(p_.blocks.panel * depth * packed_size) : 0;
  p_.right_tile = p_.pack_right ? aligned(p_.blocks.tile * depth * packed_size) : 0;
  p_.one_left = p_.pack_left && f.left.batch[0] == 0 && f.left.batch[1] == 0 && p_.blocks.panels == 1 &&
                p_.blocks.depths == 1;
  p_.tile_group = p_.pack_right ? std::clamp<std::int64_t>(packed_limit() / p_.right_tile, 1, p_.blocks.tiles)
                                : p_.blocks.tiles;
}

bool MatmulBuilder::gathers_left() const {
  const Form& f = p_.form;
  return !p_.pack_left && !p_.staged && f.left.k * f.left.size() >= far_bytes && f.m >= panel_width &&
         f.n >= least_reuse && f.k > 1;
}

void MatmulBuilder::slice_left() {
  Blocks& b = p_.blocks;
  p_.pack_left = true;
  b.depths = pieces(p_.form.k, slice_depth);
  b.depth = pieces(p_.form.k, b.depths);
}

// A packed tile of the right operand stays in the second-level cache.
void MatmulBuilder::shorten_tiles(std::int64_t column_bytes) {
  Blocks& b = p_.blocks;
  b.tile = std::clamp<std::int64_t>(packed_limit() / column_bytes / 6 * 6, std::min<std::int64_t>(6, b.tile),
                                    b.tile);
  b.tiles = pieces(p_.form.n, b.tile);
}

ProductShape MatmulBuilder::shape_of(std::int64_t m, std::int64_t n, std::int64_t k, bool accumulate) const {
  const Form& f = p_.form;
  ProductShape s;
  s.m = m;
  s.n = n;
  s.k = stored_depth(k);
  s.a_stride = p_.pack_left ? m : std::max(f.left.k, m);
  s.b_k_stride = p_.pack_right || f.k == 1 ? 1 : f.right.k;
  s.b_n_stride = p_.pack_right ? s.k : f.n == 1 && f.right.k != 1 ? 1 : f.right.n;
  s.c_stride = p_.staged ? m : std::max(f.result.n, m);
  s.accumulate = accumulate;
  s.type = p_.multiplied;
  s.pairs = p_.pairs;
  return s;
}

std::optional<std::string> MatmulBuilder::make_products() {
  const Form& f = p_.form;
  const Blocks& b = p_.blocks;
  for (std::int64_t last_panel = 0; last_panel < 2; ++last_panel)
    for (std::int64_t last_tile = 0; last_tile < 2; ++last_tile)
      for (std::int64_t last_depth = 0; last_depth < 2; ++last_depth)
        for (std::int64_t later = 0; later < 2; ++later) {
          const ProductShape shape =
              shape_of(last_panel ? piece(f.m, b.panel, b.panels - 1) : b.panel,
                       last_tile ? piece(f.n, b.tile, b.tiles - 1) : b.tile,
                       last_depth ? piece(f.k, b.depth, b.depths - 1) : b.depth, later || p_.accumulate);
          auto product = BatchReduceProduct::prepare(shape, maker_);
          if (!product) return product.error();
          p_.products.push_back(*product);
        }
  return std::nullopt;
}

std::optional<std::string> add_copy(std::vector<KernelPointer>& copies, Prepared kernel) {
  if (!kernel) return kernel.error().reason;
  copies.push_back(std::move(*kernel));
  return std::nullopt;
}

std::optional<std::string> MatmulBuilder::make_copies() {
  const Form& f = p_.form;
  const Blocks& b = p_.blocks;
  for (std::int64_t last = 0; last < 2; ++last)
    for (std::int64_t last_depth = 0; last_depth < 2; ++last_depth) {
      const std::int64_t k = last_depth ? piece(f.k, b.depth, b.depths - 1) : b.depth;
      const std::int64_t m = last ? piece(f.m, b.panel, b.panels - 1) : b.panel;
      const std::int64_t n = last ? piece(f.n, b.tile, b.tiles - 1) : b.tile;
      if (p_.pack_left)
        if (auto fault = add_copy(p_.left_copies, left_copy(f.left, m, k, p_.pairs, p_.multiplied)))
          return fault;
      if (p_.pack_right)
        if (auto fault = add_copy(p_.right_copies, right_copy(f.right, n, k, p_.pairs, p_.multiplied)))
          return fault;
    }
  return std::nullopt;
}

KernelInfo MatmulBuilder::describe() const {
  const Form& f = p_.form;
  const Blocks& b = p_.blocks;
  const auto count = static_cast<double>(f.batch[0] * f.batch[1]);
  const auto m = static_cast<double>(f.m), n = static_cast<double>(f.n), k = static_cast<double>(f.k);
  KernelInfo info;
  info.name = fmt::format("product, {}, {} x {} x {} blocks{}{}{}", name_of(maker_), b.panel, b.tile, b.depth,
                          !p_.pack_left   ? ""
                          : f.left.m == 1 ? (f.swapped ? ", b copied" : ", a copied")
                                          : (f.swapped ? ", b transposed" : ", a transposed"),
                          p_.pack_right ? (f.swapped ? ", a copied" : ", b copied") : "",
                          d_.epilogue.steps.empty() ? "" : " + " + to_string(d_.epilogue));
  info.flops = 2 * count * m * n * k;
  info.arithmetic = multiplied_as(d_.a.type);
  info.bytes =
      count * (m * k * static_cast<double>(f.left.size()) + k * n * static_cast<double>(f.right.size()) +
               m * n *
                   (static_cast<double>(f.result.size()) * (d_.accumulate ? 2 : 1) +
                    p_.epilogue.bytes_per_element()));
  info.scratch_bytes = static_cast<std::size_t>(p_.left_scratch + p_.tile_group * p_.right_tile +
                                                (p_.staged ? aligned(b.panel * b.tile * 4) : 0));
  info.inputs = 2 + p_.epilogue.inputs();
  info.outputs = 1 + p_.epilogue.outputs();
  return info;
}

Prepared MatmulBuilder::build() {
  const char* name = name_of(maker_);
  if (std::string fault = fault_of(d_); !fault.empty()) return refuse(name, fault);
  choose();
  const Form& f = p_.form;
  if (p_.pairs && instruction_set() < InstructionSet::avx512_bf16)
    return refuse(name, "bf16 products of few columns need AVX-512 BF16");
  if (d_.accumulate && p_.staged)
    return refuse(name, "only an f32 result can be added to; the epilogue's `add` reads bf16");
  Image result = dense_image(1, f.n, 1, f.m, f.result.type);
  result.column_stride = f.result.n;
  auto epilogue = EpilogueRunner::prepare(d_.epilogue, result);
  if (!epilogue) return refuse(name, epilogue.error());
  p_.epilogue = *epilogue;
  if (auto fault = make_products()) return refuse(name, *fault);
  if (auto fault = make_copies()) return refuse(name, *fault);
  KernelInfo info = describe();
  return std::make_unique<MatmulKernel>(std::move(info), std::move(p_));
}

template <ProductMaker maker>
Prepared prepare_matmul(const Matmul& description) {
  return MatmulBuilder(description, maker).build();
}

}  // namespace

std::string fault_of(const Matmul& m) {
  if (m.batch[0] < 1 || m.batch[1] < 1 || m.rows < 1 || m.columns < 1 || m.inner < 1)
    return "an extent of the product is not positive";
  const bool columns_fit = m.c.column == 1 || m.columns == 1, rows_fit = m.c.row == 1 || m.rows == 1;
  if (!columns_fit && !rows_fit) return "the result has no unit stride";
  if (m.a.type != m.b.type) return "the operands differ in type";
  if (m.a.type != ElementType::f32 && m.a.type != ElementType::bf16)
    return std::string("no products of ") + name_of(m.a.type);
  if (m.c.type != ElementType::f32 && m.c.type != ElementType::bf16)
    return std::string("no product's result of ") + name_of(m.c.type);
  for (const MatrixStrides* s : {&m.a, &m.b, &m.c})
    if (s->row < 0 || s->column < 0 || s->batch[0] < 0 || s->batch[1] < 0) return "a stride is negative";
  if (std::max(m.c.row, m.c.column) < (m.c.column == 1 ? m.columns : m.rows) && m.rows > 1 && m.columns > 1)
    return "rows of the result overlap";
  return {};
}

extern constinit const Implementation<Matmul> libxsmm_matmul{"libxsmm",
                                                             prepare_matmul<ProductMaker::libxsmm>};
extern constinit const Implementation<Matmul> portable_matmul{"portable",
                                                              prepare_matmul<ProductMaker::portable>};

SUPERSTEP_KERNELS(matmul, Matmul, libxsmm_matmul, portable_matmul)

}  // namespace superstep::kernels
