#include "superstep/target/cpu/kernels/product/batch_reduce.h"

#if !defined(SUPERSTEP_NO_LIBXSMM)
#include <libxsmm.h>
#endif
#include <sys/mman.h>

#include <limits>
#include <mutex>
#include <new>

#include "superstep/target/cpu/kernels/bytes/byte_product.h"
#include "superstep/target/cpu/kernels/core/caches.h"
#include "superstep/target/cpu/kernels/core/instruction_set.h"
#include "superstep/target/cpu/kernels/product/dot_product.h"
#include "superstep/target/cpu/kernels/product/narrow_product.h"
#include "superstep/target/cpu/kernels/product/pair_product.h"
#include "superstep/target/cpu/kernels/product/portable_product.h"

namespace superstep::kernels {

namespace {

#if !defined(SUPERSTEP_NO_LIBXSMM)
int libxsmm_architecture(InstructionSet set) {
  switch (set) {
    case InstructionSet::scalar: return LIBXSMM_TARGET_ARCH_GENERIC;
    case InstructionSet::avx2: return LIBXSMM_X86_AVX2;
    case InstructionSet::avx512: return LIBXSMM_X86_AVX512_CORE;
    case InstructionSet::avx512_bf16:
    case InstructionSet::amx: return LIBXSMM_X86_AVX512_CPX;
  }
  return LIBXSMM_TARGET_ARCH_GENERIC;
}
#endif

bool fits_int(std::int64_t value) { return value >= 1 && value <= std::numeric_limits<int>::max() / 8; }

std::string libxsmm_refusal(const ProductShape& s) {
  const InstructionSet set = instruction_set();
  if (set == InstructionSet::scalar) return "generated code needs AVX2 or AVX-512";
  if (s.b_k_stride != 1 && s.b_n_stride != 1)
    return "neither dimension of the second operand has unit stride";
  for (std::int64_t value : {s.m, s.n, s.k, s.a_stride, s.b_k_stride, s.b_n_stride, s.c_stride})
    if (!fits_int(value)) return "an extent or stride is too large";
  if (s.b_k_stride == 1 && s.b_n_stride < s.k && s.n > 1) return "columns of the second operand overlap";
  if (s.b_k_stride != 1 && s.b_k_stride < s.n && s.k > 1) return "rows of the second operand overlap";
  if (s.type == ElementType::f32) return {};
  if (s.type == ElementType::u8) return generated_bytes_refusal(s);
  if (s.type != ElementType::bf16) return std::string("no products of ") + name_of(s.type);
  if (!s.pairs) return "bf16 products need the first operand in pairs";
  if (s.b_pairs) return "both operands are in pairs";
  if (s.k % 2 != 0) return "bf16 products need an even inner dimension";
  if (s.b_k_stride != 1) return "bf16 products need the inner dimension contiguous in the second operand";
  if (s.b_n_stride % 2 != 0 && s.n > 1)
    return "bf16 products need an even distance of the second operand's columns";
  return {};
}

#if !defined(SUPERSTEP_NO_LIBXSMM)
std::mutex& generator_mutex() {
  static std::mutex mutex;
  return mutex;
}

// libxsmm ends the program where it does not get the memory of its tables, some 20 MB: asked for here,
// before.
void require_room_for_tables() {
  constexpr std::size_t room = std::size_t{64} << 20;
  void* const memory =
      mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  munmap(memory, room);
}

// libxsmm keeps one target architecture and one table of generated code for the whole process; the hint
// is part of the table's key and unused by kernels addressed by offsets, so it keeps the sets apart.
// `Factor` is the type of alpha and beta: float, or int where sums are integers.
template <class Function, class Factor>
Function generate(const ProductShape& s,
                  Function (*dispatch)(int, int, int, int, const int*, const int*, const int*, const Factor*,
                                       const Factor*, const int*, const int*)) {
  const std::lock_guard lock(generator_mutex());
  const InstructionSet set = instruction_set();
  static const bool ready = [] {
    require_room_for_tables();
    libxsmm_init();
    return true;
  }();
  (void)ready;
  const bool bytes = s.type == ElementType::u8;
  libxsmm_set_target_archid(bytes && set == InstructionSet::avx512 ? LIBXSMM_X86_AVX512_CLX
                                                                   : libxsmm_architecture(set));
  const bool transposed = s.b_k_stride != 1;
  const auto narrow = [](std::int64_t value) { return static_cast<int>(value); };
  const int lda = narrow(s.a_stride), ldc = narrow(std::max(s.c_stride, s.m));
  const int ldb = narrow(transposed ? std::max(s.b_k_stride, s.n) : std::max(s.b_n_stride, s.k));
  const Factor alpha = 1, beta = s.accumulate ? 1 : 0;
  const int flags =
      (transposed ? LIBXSMM_GEMM_FLAG_TRANS_B : 0) | (s.pairs || bytes ? LIBXSMM_GEMM_FLAG_VNNI_A : 0);
  const int prefetch = LIBXSMM_PREFETCH_NONE;
  return dispatch(narrow(s.m), narrow(s.n), narrow(s.k), static_cast<int>(set) + 1, &lda, &ldb, &ldc, &alpha,
                  &beta, &flags, &prefetch);
}
#endif

}  // namespace

const char* name_of(ProductMaker maker) {
  static constexpr const char* names[] = {"libxsmm", "portable", "few outputs"};
  return names[static_cast<int>(maker)];
}

namespace {

std::string dot_refusal(const ProductShape& s) {
  if (s.m > most_dot_rows(s.n)) return "more outputs than sums stay in registers";
  if (s.b_k_stride != 1) return "the inner dimension is not contiguous";
  if (s.k < (s.m == 1 ? 16 : 32)) return "the inner dimension is too short to run vectors along it";
  return {};
}

}  // namespace

std::expected<BatchReduceProduct, std::string> BatchReduceProduct::prepare(const ProductShape& shape,
                                                                           ProductMaker maker) {
  BatchReduceProduct product;
  product.shape_ = shape;
  if (maker == ProductMaker::portable) {
    const bool whole_pairs = shape.pairs && shape.k % 2 == 0 && (shape.b_pairs || shape.b_k_stride == 1);
    product.portable_ = shape.type == ElementType::u8 ? portable_byte_product
                        : whole_pairs                 ? pair_product()
                                                      : portable_product();
    return product;
  }
  if (maker == ProductMaker::dot) {
    if (std::string reason = dot_refusal(shape); !reason.empty()) return std::unexpected(reason);
    product.portable_ = dot_product(shape.m, shape.type);
    return product;
  }
  if (std::string reason = libxsmm_refusal(shape); !reason.empty()) return std::unexpected(reason);
  if (shape.type == ElementType::f32 && shape.m <= narrow_rows_limit) {
    product.portable_ = narrow_product();
    if (product.portable_) return product;
  }
  if (auto tiles = MatrixTileProduct::prepare(shape)) {
    product.tiles_ = std::make_shared<const MatrixTileProduct>(*tiles);
    return product;
  }
  if (widens(shape)) {
    auto widened = WidenedProduct::prepare(shape);
    if (!widened) return std::unexpected(widened.error());
    product.widened_ = std::move(*widened);
    return product;
  }
  if (shape.type == ElementType::bf16 && instruction_set() < InstructionSet::avx512_bf16) {
    product.portable_ = pair_product();  // few columns: each half is widened in a register
    return product;
  }
#if !defined(SUPERSTEP_NO_LIBXSMM)
  product.generated_ =
      shape.type == ElementType::f32
          ? reinterpret_cast<Generated>(generate(shape, libxsmm_smmdispatch_reducebatch_offs_unroll))
      : shape.type == ElementType::u8
          ? reinterpret_cast<Generated>(generate(shape, libxsmm_subimmdispatch_reducebatch_offs_unroll))
          : reinterpret_cast<Generated>(generate(shape, libxsmm_bsmmdispatch_reducebatch_offs_unroll));
#endif
  if (!product.generated_) return std::unexpected("libxsmm made no code for this shape");
  if (std::string fault = product.cut(shape); !fault.empty()) return std::unexpected(fault);
  return product;
}

// Leaves the product whole where A fits, or is used too seldom for a second pass over C.
std::string BatchReduceProduct::cut([[maybe_unused]] const ProductShape& shape) {
#if !defined(SUPERSTEP_NO_LIBXSMM)
  constexpr std::int64_t least_columns = 12, least_depth = 32, depth_unit = 8;
  const bool wanted = instruction_set() == InstructionSet::avx2 && shape.type == ElementType::f32;
  const std::int64_t room = first_level_cache() / 2, row = shape.m * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t most = room / row / depth_unit * depth_unit;
  if (!wanted || shape.n < least_columns || most < least_depth) return {};
  const std::int64_t number = (shape.k + most - 1) / most;  // pieces of nearly one depth
  const std::int64_t even = (shape.k + number - 1) / number;
  const std::int64_t depth = std::min(shape.k, (even + depth_unit - 1) / depth_unit * depth_unit);
  const auto piece = [&](std::int64_t k, bool later) {
    ProductShape part = shape;
    part.k = k;
    part.accumulate = later || shape.accumulate;
    return k == 0 ? nullptr
                  : reinterpret_cast<Generated>(generate(part, libxsmm_smmdispatch_reducebatch_offs_unroll));
  };
  const std::int64_t rest = shape.k % depth, size = sizeof(float);
  const Pieces pieces{piece(depth, false),
                      piece(depth, true),
                      piece(rest, false),
                      piece(rest, true),
                      shape.k / depth,
                      rest > 0,
                      depth * shape.a_stride * size,
                      depth * shape.b_k_stride * size,
                      room / (shape.k * row)};
  if (!pieces.first || !pieces.later || (rest > 0 && (!pieces.first_rest || !pieces.later_rest)))
    return "libxsmm made no code for a piece of this shape";
  pieces_ = std::make_shared<const Pieces>(pieces);
#endif
  return {};
}

void BatchReduceProduct::run_in_pieces(const void* a, const void* b, float* c, std::uint64_t count,
                                       const std::uint64_t* a_offsets, const std::uint64_t* b_offsets) const {
  const Pieces& p = *pieces_;
  const std::uint64_t one = 1;
  bool begun = false;
  const auto add = [&](Generated first, Generated later, std::uint64_t i, std::int64_t number) {
    const std::uint64_t a_offset = a_offsets[i] + static_cast<std::uint64_t>(number * p.a_step),
                        b_offset = b_offsets[i] + static_cast<std::uint64_t>(number * p.b_step);
    (begun ? later : first)(a, b, c, &one, &a_offset, &b_offset);
    begun = true;
  };
  for (std::uint64_t i = 0; i < count; ++i) {
    for (std::int64_t number = 0; number < p.whole; ++number) add(p.first, p.later, i, number);
    if (p.rest) add(p.first_rest, p.later_rest, i, p.whole);
  }
}

}  // namespace superstep::kernels
