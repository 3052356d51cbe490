#include "superstep/target/cpu/kernels/sequence/attention_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/target/cpu/kernels/elementwise/random_mask.h"
#include "superstep/target/cpu/kernels/move/copy.h"

namespace superstep::kernels {

namespace {

constexpr std::int64_t most_keys = 512, most_rows = 96, least_rows = 32;
constexpr std::int64_t block_floats = 16 * 1024;

// Whole lines of cache; not a multiple of 1 KiB, whose lines would share a few sets of the first-level cache.
std::int64_t padded(std::int64_t keys) {
  const std::int64_t lines = (keys + 15) / 16 * 16;
  return lines % 256 == 0 ? lines + 16 : lines;
}

// The least number of pieces of at most `limit`, as even as they can be.
std::int64_t even_piece(std::int64_t total, std::int64_t limit) {
  const std::int64_t pieces = (total + limit - 1) / limit;
  return (total + pieces - 1) / pieces;
}

BatchReduceProduct make_product(const ProductShape& shape) {
  for (ProductMaker maker : {ProductMaker::libxsmm, ProductMaker::portable})
    if (auto product = BatchReduceProduct::prepare(shape, maker)) return *product;
  throw Error(ErrorCode::internal, "no product of a block of attention");
}

std::shared_ptr<const Kernel> make_copy(std::int64_t rows, std::int64_t columns, const MatrixStrides& from,
                                        std::int64_t to_stride) {
  auto copy = prepare(StridedCopy{.extents = {rows, columns},
                                  .x_strides = {from.row, from.column},
                                  .y_strides = {to_stride, 1},
                                  .x_type = from.type,
                                  .y_type = ElementType::f32});
  if (!copy) throw Error(ErrorCode::internal, to_string(copy.error()), "an operand of attention");
  return std::move(*copy);
}

void run_copy(const Kernel& kernel, const void* from, void* to) {
  kernel.run({{&from, 1}, {&to, 1}, nullptr});
}

const std::byte* start_of(const void* base, const MatrixStrides& strides, std::int64_t i, std::int64_t j,
                          std::int64_t row = 0) {
  return static_cast<const std::byte*>(base) +
         (i * strides.batch[0] + j * strides.batch[1] + row * strides.row) *
             static_cast<std::int64_t>(size_in_bytes(strides.type));
}

}  // namespace

AttentionBlocks choose_blocks(const Attention& a) {
  AttentionBlocks b{};
  b.keys = even_piece(a.keys, most_keys);
  b.rows = even_piece(a.rows, std::clamp(block_floats / b.keys, least_rows, most_rows));
  b.row_blocks = (a.rows + b.rows - 1) / b.rows;
  b.key_blocks = (a.keys + b.keys - 1) / b.keys;
  b.stride = padded(b.keys);
  return b;
}

DenseOperand::DenseOperand(const MatrixStrides& strides, std::int64_t rows, std::int64_t columns)
    : strides_(strides), rows_(rows), columns_(columns) {
  const bool in_place = strides.type == ElementType::f32 && (strides.column == 1 || columns == 1) &&
                        (strides.row >= columns || rows == 1);
  if (in_place)
    strides_.row = std::max(strides_.row, columns);
  else
    copy_ = make_copy(rows, columns, strides, columns);
}

const float* DenseOperand::place(const void* base, std::int64_t i, std::int64_t j, float* scratch) const {
  const std::byte* from = start_of(base, strides_, i, j);
  if (!copy_) return reinterpret_cast<const float*>(from);
  run_copy(*copy_, from, scratch);
  return scratch;
}

KeyPanels::KeyPanels(const MatrixStrides& strides, const Attention& a, const AttentionBlocks& blocks,
                     std::int64_t depth)
    : strides_(strides), blocks_(blocks), panel_floats_(depth * blocks.stride) {
  MatrixStrides turned = strides;
  std::swap(turned.row, turned.column);
  whole_ = make_copy(depth, blocks.keys, turned, blocks.stride);
  last_ = make_copy(depth, blocks.keys_of(a, blocks.key_blocks - 1), turned, blocks.stride);
}

void KeyPanels::pack(const void* base, std::int64_t i, std::int64_t j, float* panels) const {
  for (std::int64_t block = 0; block < blocks_.key_blocks; ++block)
    run_copy(block + 1 == blocks_.key_blocks ? *last_ : *whole_,
             start_of(base, strides_, i, j, block * blocks_.keys), panels + block * panel_floats_);
}

BlockProducts::BlockProducts(const Attention& a, const AttentionBlocks& blocks,
                             const std::function<ProductShape(std::int64_t rows, std::int64_t keys)>& shape)
    : row_blocks_(blocks.row_blocks), key_blocks_(blocks.key_blocks) {
  for (std::int64_t rows : {blocks.rows, blocks.rows_of(a, blocks.row_blocks - 1)}) {
    products_.emplace_back();
    for (std::int64_t keys : {blocks.keys, blocks.keys_of(a, blocks.key_blocks - 1)})
      products_.back().push_back(make_product(shape(rows, keys)));
  }
}

AttentionSlots::AttentionSlots(const Attention& a) {
  if (a.has_bias) bias = next++;
  if (a.has_condition) condition = next++;
  if (a.keep < 1) address = next++;
}

ScoreBlock score_block(const Attention& a, const AttentionBlocks& blocks, const Arguments& arguments,
                       std::array<std::int64_t, 4> at, float* scores) {
  const AttentionSlots slots(a);
  ScoreBlock block{.scores = scores,
                   .stride = blocks.stride,
                   .rows = blocks.rows_of(a, at[2]),
                   .keys = blocks.keys_of(a, at[3]),
                   .scale = a.scale,
                   .bias_scale = a.bias_scale,
                   .hidden_if = a.hidden_if,
                   .hidden = a.hidden};
  const auto first = [&](const MatrixStrides& s) {
    return at[0] * s.batch[0] + at[1] * s.batch[1] + at[2] * blocks.rows * s.row +
           at[3] * blocks.keys * s.column;
  };
  const auto input = [&](int slot) { return arguments.inputs[static_cast<std::size_t>(slot)]; };
  if (a.has_bias) {
    block.bias = static_cast<const float*>(input(slots.bias)) + first(a.bias);
    block.bias_row = a.bias.row;
    block.bias_column = a.bias.column;
  }
  if (a.has_condition) {
    block.condition = static_cast<const std::uint8_t*>(input(slots.condition)) + first(a.condition);
    block.condition_row = a.condition.row;
    block.condition_column = a.condition.column;
  }
  return block;
}

DropMask::DropMask(const Attention& attention, const AttentionBlocks& blocks)
    : attention_(attention), blocks_(blocks), slots_(attention), loop_(mask_loop(ElementType::f32)) {}

const float* DropMask::make(const Arguments& arguments, std::array<std::int64_t, 4> at,
                            float* dropped) const {
  if (!drops()) return nullptr;
  const Attention& a = attention_;
  const auto& address =
      *static_cast<const RandomAddress*>(arguments.inputs[static_cast<std::size_t>(slots_.address)]);
  MaskRun run{};
  run.seed = address.seed;
  run.sample = address.first_sample + static_cast<std::uint64_t>(at[0]);
  run.purpose = address.purpose;
  run.threshold = static_cast<std::uint32_t>(std::floor(static_cast<double>(a.keep) * 0x1p32));
  run.step = 1;
  run.kept = 1.0f / a.keep;
  const std::int64_t rows = blocks_.rows_of(a, at[2]), keys = blocks_.keys_of(a, at[3]);
  // Rows that follow one another, in numbers and in the block, are one run.
  const bool together = keys == a.keys && blocks_.stride == a.keys;
  for (std::int64_t row = 0; row < (together ? 1 : rows); ++row) {
    run.first = (at[1] * a.rows + at[2] * blocks_.rows + row) * a.keys + at[3] * blocks_.keys;
    run.n = together ? rows * keys : keys;
    run.mask = dropped + row * blocks_.stride;
    loop_(run);
  }
  return dropped;
}

std::string fault_of(const Attention& a) {
  for (std::int64_t extent : {a.batch[0], a.batch[1], a.rows, a.keys, a.depth, a.width})
    if (extent < 1) return "an extent is not positive";
  if (a.sharing < 1 || a.batch[1] % a.sharing != 0) return "keys are shared by a part of the attentions";
  for (const MatrixStrides* s : {&a.q, &a.k, &a.v, &a.y}) {
    if (s->type != ElementType::f32 && s->type != ElementType::bf16)
      return fmt::format("no attention of {}", name_of(s->type));
    if (s->row < 0 || s->column < 0 || s->batch[0] < 0 || s->batch[1] < 0) return "a stride is negative";
  }
  for (const MatrixStrides* s : {&a.bias, &a.condition})
    if ((s == &a.bias ? a.has_bias : a.has_condition) && s->column != 0 && s->column != 1)
      return "the columns of a mask are not contiguous";
  if (!(a.scale > 0)) return "the scale is not positive";
  if (!(a.keep > 0 && a.keep <= 1)) return "the share to keep must lie between 0 and 1";
  return {};
}

std::size_t statistics_bytes(const Attention& a) {
  return static_cast<std::size_t>(a.batch[0] * a.batch[1] * 2 * a.rows) * sizeof(float);
}

}  // namespace superstep::kernels
