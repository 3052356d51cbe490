#include "superstep/target/cpu/kernels/product/matrix_tiles.h"

#include <algorithm>

#include "superstep/target/cpu/kernels/core/instruction_set.h"

namespace superstep::kernels {

namespace {

constexpr std::int64_t side = 16,
                       block = 2 * side;  // rows of a register, and results of four registers along a side
constexpr std::int64_t register_bytes = 64;
// Below, setting the registers up and filling them by halves costs more than the vectors' products take.
constexpr std::int64_t least_rows = 16, least_columns = 8, least_depth = 32, least_products = 32 * 1024;

std::int64_t element_bytes(const ProductShape& s) { return s.type == ElementType::bf16 ? 2 : 1; }

// The longest step of at most a register's row, in whole groups of 4 bytes, that divides a column; 0: none is
// long enough.
std::int64_t step_of(std::int64_t bytes) {
  for (std::int64_t steps = (bytes + register_bytes - 1) / register_bytes; bytes / steps >= least_depth;
       ++steps)
    if (bytes % (4 * steps) == 0) return bytes / steps;
  return 0;
}

std::string refusal(const ProductShape& s) {
  if (instruction_set() < InstructionSet::amx) return "there are no matrix registers";
  const bool pairs = s.type == ElementType::bf16 && s.pairs && !s.b_pairs, bytes = s.type == ElementType::u8;
  if (!pairs && !bytes) return "matrix registers multiply pairs of bf16 and quads of bytes";
  if (s.b_k_stride != 1) return "the inner dimension is not contiguous";
  if (s.m < least_rows || s.n < least_columns || s.m * s.n * s.k < least_products)
    return "too small for matrix registers";
  if (step_of(s.k * element_bytes(s)) == 0) return "no step divides the inner dimension";
  return {};
}

// Registers 0 to 3 hold results (two of columns by two of rows), 4 and 5 the columns, 6 and 7 the rows.
MatrixTileSetting setting_for(std::int64_t rows, std::int64_t columns, std::int64_t depth) {
  MatrixTileSetting setting;
  const auto set = [&](std::size_t index, std::int64_t count, std::int64_t bytes) {
    setting.rows[index] = static_cast<std::uint8_t>(std::max<std::int64_t>(count, 1));
    setting.row_bytes[index] = static_cast<std::uint16_t>(std::max<std::int64_t>(bytes, 4));
  };
  const std::int64_t first_rows = std::min(rows, side), first_columns = std::min(columns, side);
  const std::int64_t row_bytes[] = {4 * first_rows, 4 * (rows - first_rows)};
  const std::int64_t counts[] = {first_columns, columns - first_columns};
  for (std::size_t j = 0; j < 2; ++j) {
    for (std::size_t i = 0; i < 2; ++i) set(2 * j + i, counts[j], row_bytes[i]);
    set(4 + j, counts[j], depth);
    set(6 + j, depth / 4, row_bytes[j]);
  }
  return setting;
}

std::int64_t last_block(std::int64_t extent) { return extent - (extent - 1) / block * block; }

}  // namespace

std::expected<MatrixTileProduct, std::string> MatrixTileProduct::prepare(const ProductShape& shape) {
  if (std::string reason = refusal(shape); !reason.empty()) return std::unexpected(reason);
  MatrixTileProduct product{.shape = shape, .depth = step_of(shape.k * element_bytes(shape))};
  for (const std::size_t row : {0, 1})
    for (const std::size_t column : {0, 1})
      product.settings[row][column] =
          setting_for(row ? last_block(shape.m) : block, column ? last_block(shape.n) : block, product.depth);
  return product;
}

#if defined(__x86_64__)

namespace {

// Instructions are written as such: compilers that know them move their loads past stores they cannot see.
template <int tile>
inline void load_tile(const void* from, std::int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(tile) : "memory");
}
template <int tile>
inline void store_tile(void* to, std::int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(tile) : "memory");
}
template <int tile>
inline void clear_tile() {
  asm volatile("tilezero %%tmm%c0" : : "i"(tile));
}
template <bool bytes, int sum, int columns, int rows>
inline void add_product() {
  if constexpr (bytes)
    asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sum), "i"(columns), "i"(rows));
  else
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sum), "i"(columns), "i"(rows));
}

// Setting registers up takes several times as long as asking how they are; others in this process may have
// set them, too.
void set_up(const MatrixTileSetting& wanted) {
  MatrixTileSetting there;
  asm volatile("sttilecfg %0" : "=m"(there));
  const bool same =
      there.palette == wanted.palette && there.row_bytes == wanted.row_bytes && there.rows == wanted.rows;
  if (!same) asm volatile("ldtilecfg %0" : : "m"(wanted));
}

// A block of results and how its operands are walked. Strides in bytes.
struct Walk {
  const std::byte *a, *b;
  float* c;
  std::int64_t a_stride, a_step, b_stride, b_step, c_stride, steps;
  std::uint64_t count;
  const std::uint64_t *a_offsets, *b_offsets;
  bool accumulate;
};

// Two registers of rows or one, two of columns or one.
template <bool bytes, bool two_rows, bool two_columns>
void block_product(const Walk& w) {
  constexpr bool both = two_rows && two_columns;
  float *right = w.c + side, *below = w.c + side * w.c_stride, *last = below + side;
  const std::int64_t c_bytes = w.c_stride * static_cast<std::int64_t>(sizeof(float));
  if (w.accumulate) {
    load_tile<0>(w.c, c_bytes);
    if constexpr (two_rows) load_tile<1>(right, c_bytes);
    if constexpr (two_columns) load_tile<2>(below, c_bytes);
    if constexpr (both) load_tile<3>(last, c_bytes);
  } else {
    clear_tile<0>();
    if constexpr (two_rows) clear_tile<1>();
    if constexpr (two_columns) clear_tile<2>();
    if constexpr (both) clear_tile<3>();
  }
  for (std::uint64_t number = 0; number < w.count; ++number) {
    const std::byte *a = w.a + w.a_offsets[number], *b = w.b + w.b_offsets[number];
    for (std::int64_t step = 0; step < w.steps; ++step, a += w.a_step, b += w.b_step) {
      load_tile<4>(b, w.b_stride);
      load_tile<6>(a, w.a_stride);
      add_product<bytes, 0, 4, 6>();
      if constexpr (two_rows) {
        load_tile<7>(a + register_bytes, w.a_stride);
        add_product<bytes, 1, 4, 7>();
      }
      if constexpr (two_columns) {
        load_tile<5>(b + side * w.b_stride, w.b_stride);
        add_product<bytes, 2, 5, 6>();
      }
      if constexpr (both) add_product<bytes, 3, 5, 7>();
    }
  }
  store_tile<0>(w.c, c_bytes);
  if constexpr (two_rows) store_tile<1>(right, c_bytes);
  if constexpr (two_columns) store_tile<2>(below, c_bytes);
  if constexpr (both) store_tile<3>(last, c_bytes);
}

template <bool bytes>
void block_product(const Walk& w, std::int64_t rows, std::int64_t columns) {
  if (rows > side)
    columns > side ? block_product<bytes, true, true>(w) : block_product<bytes, true, false>(w);
  else
    columns > side ? block_product<bytes, false, true>(w) : block_product<bytes, false, false>(w);
}

}  // namespace

void MatrixTileProduct::operator()(const void* a, const void* b, float* c, std::uint64_t count,
                                   const std::uint64_t* a_offsets, const std::uint64_t* b_offsets) const {
  const ProductShape& s = shape;
  const bool bytes = s.type == ElementType::u8;
  constexpr std::int64_t group = 4;  // bytes of a pair of bf16, of a quad of bytes
  Walk w{.a = static_cast<const std::byte*>(a),
         .b = static_cast<const std::byte*>(b),
         .c = c,
         .a_stride = s.a_stride * group,
         .a_step = s.a_stride * depth,
         .b_stride = s.b_n_stride * element_bytes(s),
         .b_step = depth,
         .c_stride = s.c_stride,
         .steps = s.k * element_bytes(s) / depth,
         .count = count,
         .a_offsets = a_offsets,
         .b_offsets = b_offsets,
         .accumulate = s.accumulate};
  for (std::int64_t column = 0; column < s.n; column += block)
    for (std::int64_t row = 0; row < s.m; row += block) {
      w.a = static_cast<const std::byte*>(a) + row * group;
      w.b = static_cast<const std::byte*>(b) + column * w.b_stride;
      w.c = c + row + column * s.c_stride;
      const std::int64_t rows = std::min(block, s.m - row), columns = std::min(block, s.n - column);
      set_up(settings[row + block >= s.m][column + block >= s.n]);
      bytes ? block_product<true>(w, rows, columns) : block_product<false>(w, rows, columns);
    }
}

#else

void MatrixTileProduct::operator()(const void*, const void*, float*, std::uint64_t, const std::uint64_t*,
                                   const std::uint64_t*) const {}

#endif

}  // namespace superstep::kernels
