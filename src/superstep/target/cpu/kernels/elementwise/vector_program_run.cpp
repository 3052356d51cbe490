// Running of VectorPrograms: piece by piece, instruction by instruction.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "superstep/base/integers.h"
#include "superstep/target/cpu/kernels/core/range_kernel.h"
#include "superstep/target/cpu/kernels/elementwise/vector_program_plan.h"
#include "superstep/target/cpu/kernels/rows/channel_statistics_loops.h"
#include "superstep/target/cpu/kernels/rows/column_sum.h"

namespace superstep::kernels {

namespace {

using Target = VectorProgram::Target;

// Memory of one run, cut out of the scratch.
struct Workspace {
  float* registers;
  const float** values;  // where each value of the current piece lies
  float* axis_sums;
  const std::byte** inputs;  // of the current outer index
  std::byte** outputs;
  std::int64_t* index;  // of the outer axes
};

std::size_t aligned(std::size_t bytes) { return round_up(bytes, std::size_t{64}); }

class VectorProgramKernel final : public RangeKernel {
 public:
  VectorProgramKernel(KernelInfo info, VectorPlan plan)
      : RangeKernel(std::move(info)),
        p_(std::move(plan)),
        column_sum_(column_sum(ElementType::f32)),
        centred_sum_(centred_sum_loop()) {
    const auto pieces = [](std::int64_t extent, std::int64_t piece) {
      return extent == 0 ? 0 : (extent + piece - 1) / piece;  // a piece of nothing has no elements either
    };
    plane_pieces_ = pieces(p_.planes, p_.piece_planes);
    row_pieces_ = pieces(p_.rows, p_.piece_rows);
    inner_pieces_ = pieces(p_.inner, p_.piece_inner);
    pieces_ = plane_pieces_ * row_pieces_ * inner_pieces_;
    for (std::int64_t extent : p_.outer) pieces_ *= extent;
    // Sums go through one thread, in one order, or are divided as the program says.
    const bool sums = p_.axis_sums > 0;
    info_.parts = sums ? p_.sum_parts : std::clamp<std::int64_t>(pieces_, 1, most_parts);
  }

  static std::size_t scratch_bytes(const VectorPlan& p);
  void run(const Arguments& arguments) const override;
  void run_part(const Arguments& arguments, std::int64_t part) const override;

  // A unit is an element, where all outputs are one line of them.
  std::int64_t units() const override {
    const bool line = p_.outer.empty() && p_.planes == 1 && p_.rows == 1 && p_.axis_sums == 0;
    return line && std::ranges::all_of(
                       p_.outputs, [](const VectorOutput& output) { return output.stream.inner_stride == 1; })
               ? p_.inner
               : 0;
  }
  bool reads_units(std::size_t input) const override { return p_.inputs[input].stream.inner_stride == 1; }
  bool writes_units(std::size_t) const override { return true; }
  void run_range(const Arguments& arguments, PartRange units) const override;

 private:
  // A piece: planes by rows by inner elements from (plane, row, first).
  struct Piece {
    std::int64_t plane, row, first, planes, rows, inner;
    std::int64_t count() const { return planes * rows * inner; }
  };

  Workspace workspace(void* scratch) const;
  void start(const Workspace& w, const Arguments& arguments) const;
  void run_pieces(const Arguments& arguments, PartRange pieces, std::int64_t part) const;
  Piece piece_at(std::int64_t number) const;
  void run_piece(const Workspace& w, const Piece& piece, bool fresh) const;
  void load(const Workspace& w, const VectorInput& input, std::size_t number, const Piece& piece,
            bool fresh) const;
  void compute(const Workspace& w, const Piece& piece) const;
  void store(const Workspace& w, const VectorOutput& output, std::size_t number, const Piece& piece) const;
  std::byte* output_place(const Workspace& w, const VectorOutput& output, std::size_t number,
                          const Piece& piece) const;
  void sum_piece(const Workspace& w, const VectorOutput& output, const float* from, const Piece& piece) const;
  void advance(const Workspace& w) const;
  void move_to(const Workspace& w, std::int64_t outer) const;
  void finish(const Workspace& w, const Arguments& arguments, std::int64_t part) const;

  float* register_at(const Workspace& w, std::int64_t reg) const {
    return w.registers + reg * p_.register_floats;
  }

  VectorPlan p_;
  ColumnSum* column_sum_;
  StatisticsLoop* centred_sum_;
  std::int64_t plane_pieces_ = 1, row_pieces_ = 1, inner_pieces_ = 1;
  std::int64_t pieces_ = 0;  // of all outer indices
};

std::size_t VectorProgramKernel::scratch_bytes(const VectorPlan& p) {
  return aligned(static_cast<std::size_t>(p.registers * p.register_floats) * sizeof(float)) +
         aligned(p.values * sizeof(float*)) + aligned(static_cast<std::size_t>(p.axis_sums) * sizeof(float)) +
         aligned(p.inputs.size() * sizeof(void*)) + aligned(p.outputs.size() * sizeof(void*)) +
         aligned(p.outer.size() * sizeof(std::int64_t));
}

Workspace VectorProgramKernel::workspace(void* scratch) const {
  auto* next = static_cast<std::byte*>(scratch);
  const auto take = [&](std::size_t bytes) {
    std::byte* part = next;
    next += aligned(bytes);
    return static_cast<void*>(part);
  };
  Workspace w;
  w.registers =
      static_cast<float*>(take(static_cast<std::size_t>(p_.registers * p_.register_floats) * sizeof(float)));
  w.values = static_cast<const float**>(take(p_.values * sizeof(float*)));
  w.axis_sums = static_cast<float*>(take(static_cast<std::size_t>(p_.axis_sums) * sizeof(float)));
  w.inputs = static_cast<const std::byte**>(take(p_.inputs.size() * sizeof(void*)));
  w.outputs = static_cast<std::byte**>(take(p_.outputs.size() * sizeof(void*)));
  w.index = static_cast<std::int64_t*>(take(p_.outer.size() * sizeof(std::int64_t)));
  return w;
}

void VectorProgramKernel::start(const Workspace& w, const Arguments& arguments) const {
  for (const auto& [value, reg] : p_.constants) std::fill_n(register_at(w, reg), p_.register_floats, value);
  for (const auto& [value, reg] : p_.constant_values) w.values[value] = register_at(w, reg);
  std::fill_n(w.axis_sums, p_.axis_sums, 0.0f);
  std::fill_n(w.index, p_.outer.size(), 0);
  for (std::size_t i = 0; i < p_.inputs.size(); ++i)
    w.inputs[i] = static_cast<const std::byte*>(arguments.inputs[i]);
  for (std::size_t i = 0; i < p_.outputs.size(); ++i)
    w.outputs[i] = static_cast<std::byte*>(arguments.outputs[i]);
}

// Where a piece begins in a tensor, in elements from the current outer index.
std::int64_t offset_of(const VectorStream& s, std::int64_t plane, std::int64_t row, std::int64_t first) {
  return plane * s.plane_stride + row * s.row_stride + first * s.inner_stride;
}

void VectorProgramKernel::load(const Workspace& w, const VectorInput& input, std::size_t number,
                               const Piece& piece, bool fresh) const {
  const VectorStream& s = input.stream;
  const std::byte* from =
      w.inputs[number] + offset_of(s, piece.plane, piece.row, piece.first) * s.element_bytes;
  if (s.contiguous) {
    w.values[input.value] = reinterpret_cast<const float*>(from);
    return;
  }
  float* to = register_at(w, input.reg);
  w.values[input.value] = to;
  if (s.invariant && !fresh) return;
  for (std::int64_t plane = 0; plane < piece.planes; ++plane) {
    const std::byte* line = from + plane * s.plane_stride * s.element_bytes;
    if (s.row_stride == piece.inner && s.inner_stride == 1) {
      s.load(line, 1, piece.rows * piece.inner, to);
      to += piece.rows * piece.inner;
      continue;
    }
    if (s.load_rows && piece.rows > 1) {
      s.load_rows({line, s.row_stride, s.inner_stride, piece.rows, piece.inner, to});
      to += piece.rows * piece.inner;
      continue;
    }
    for (std::int64_t row = 0; row < piece.rows; ++row, to += piece.inner)
      s.load(line + row * s.row_stride * s.element_bytes, s.inner_stride, piece.inner, to);
  }
}

std::byte* VectorProgramKernel::output_place(const Workspace& w, const VectorOutput& output,
                                             std::size_t number, const Piece& piece) const {
  const VectorStream& s = output.stream;
  return w.outputs[number] + offset_of(s, piece.plane, piece.row, piece.first) * s.element_bytes;
}

void VectorProgramKernel::compute(const Workspace& w, const Piece& piece) const {
  const auto value = [&](VectorProgram::Value v) { return v < 0 ? nullptr : w.values[v]; };
  for (const VectorInstruction& step : p_.instructions) {
    float* out = register_at(w, step.reg);
    if (&step == &p_.instructions.back())
      for (std::size_t i = 0; i < p_.outputs.size(); ++i)
        if (p_.outputs[i].direct) out = reinterpret_cast<float*>(output_place(w, p_.outputs[i], i, piece));
    const auto& in = step.instruction;
    step.loop({value(in.a), value(in.b), value(in.c), value(in.d), out, piece.count(), &in});
    w.values[step.value] = out;
  }
}

void VectorProgramKernel::store(const Workspace& w, const VectorOutput& output, std::size_t number,
                                const Piece& piece) const {
  const float* from = w.values[output.output.value];
  if (output.output.target != Target::tensor) return sum_piece(w, output, from, piece);
  if (output.direct) return;
  const VectorStream& s = output.stream;
  std::byte* to = output_place(w, output, number, piece);
  for (std::int64_t plane = 0; plane < piece.planes; ++plane, to += s.plane_stride * s.element_bytes) {
    if (s.row_stride == piece.inner && s.inner_stride == 1) {
      s.store(from, to, 1, piece.rows * piece.inner);
      from += piece.rows * piece.inner;
      continue;
    }
    for (std::int64_t row = 0; row < piece.rows; ++row, from += piece.inner)
      s.store(from, to + row * s.row_stride * s.element_bytes, s.inner_stride, piece.inner);
  }
}

// Adds a piece to sums along axes.
void VectorProgramKernel::sum_piece(const Workspace& w, const VectorOutput& output, const float* from,
                                    const Piece& piece) const {
  float* sums = w.axis_sums + output.accumulator + piece.first;
  if (output.output.target == Target::sum_centred)
    return centred_sum_({from, w.values[output.output.x], w.values[output.output.centre], sums,
                         sums + p_.inner, piece.planes * piece.rows, piece.inner, piece.inner, piece.inner});
  if (output.output.target == Target::sum_leading)
    return column_sum_(from, piece.inner, piece.planes * piece.rows, piece.inner, sums);
  if (piece.inner == p_.inner)  // the rows of a plane, one behind the other
    return column_sum_(from, piece.rows * piece.inner, piece.planes, piece.rows * piece.inner,
                       sums + piece.row * p_.inner);
  for (std::int64_t row = 0; row < piece.rows; ++row)
    column_sum_(from + row * piece.inner, piece.rows * piece.inner, piece.planes, piece.inner,
                sums + (piece.row + row) * p_.inner);
}

void VectorProgramKernel::run_piece(const Workspace& w, const Piece& piece, bool fresh) const {
  for (std::size_t i = 0; i < p_.inputs.size(); ++i) load(w, p_.inputs[i], i, piece, fresh);
  compute(w, piece);
  for (std::size_t i = 0; i < p_.outputs.size(); ++i) store(w, p_.outputs[i], i, piece);
}

// Moves on to the next outer index; from the last one, to the first.
void VectorProgramKernel::advance(const Workspace& w) const {
  for (std::size_t axis = p_.outer.size(); axis-- > 0;) {
    const bool wraps = ++w.index[axis] == p_.outer[axis];
    const std::int64_t steps = wraps ? 1 - p_.outer[axis] : 1;
    for (std::size_t i = 0; i < p_.inputs.size(); ++i) {
      const VectorStream& s = p_.inputs[i].stream;
      w.inputs[i] += steps * s.outer_strides[axis] * s.element_bytes;
    }
    for (std::size_t i = 0; i < p_.outputs.size(); ++i) {
      const VectorStream& s = p_.outputs[i].stream;
      if (!s.outer_strides.empty()) w.outputs[i] += steps * s.outer_strides[axis] * s.element_bytes;
    }
    if (!wraps) return;
    w.index[axis] = 0;
  }
}

void VectorProgramKernel::finish(const Workspace& w, const Arguments& arguments, std::int64_t part) const {
  for (std::size_t i = 0; i < p_.outputs.size(); ++i) {
    const VectorOutput& output = p_.outputs[i];
    auto* to = static_cast<float*>(arguments.outputs[i]) + part * output.sum_count;
    std::copy_n(w.axis_sums + output.accumulator, output.sum_count, to);
  }
}

// From the first outer index to the one of this number.
void VectorProgramKernel::move_to(const Workspace& w, std::int64_t outer) const {
  for (std::size_t axis = p_.outer.size(); axis-- > 0;) {
    const std::int64_t steps = outer % p_.outer[axis];
    outer /= p_.outer[axis];
    w.index[axis] = steps;
    for (std::size_t i = 0; i < p_.inputs.size(); ++i) {
      const VectorStream& s = p_.inputs[i].stream;
      w.inputs[i] += steps * s.outer_strides[axis] * s.element_bytes;
    }
    for (std::size_t i = 0; i < p_.outputs.size(); ++i) {
      const VectorStream& s = p_.outputs[i].stream;
      if (!s.outer_strides.empty()) w.outputs[i] += steps * s.outer_strides[axis] * s.element_bytes;
    }
  }
}

// Pieces are counted inner ones first, through all outer indices.
VectorProgramKernel::Piece VectorProgramKernel::piece_at(std::int64_t number) const {
  const std::int64_t first = number % inner_pieces_ * p_.piece_inner;
  const std::int64_t row = number / inner_pieces_ % row_pieces_ * p_.piece_rows;
  const std::int64_t plane = number / (inner_pieces_ * row_pieces_) % plane_pieces_ * p_.piece_planes;
  return {plane,
          row,
          first,
          std::min(p_.piece_planes, p_.planes - plane),
          std::min(p_.piece_rows, p_.rows - row),
          std::min(p_.piece_inner, p_.inner - first)};
}

void VectorProgramKernel::run_pieces(const Arguments& arguments, PartRange pieces, std::int64_t part) const {
  const std::int64_t of_one = plane_pieces_ * row_pieces_ * inner_pieces_;  // outer index
  const Workspace w = workspace(arguments.scratch);
  start(w, arguments);
  if (pieces.begin < pieces.end) move_to(w, pieces.begin / of_one);
  for (std::int64_t number = pieces.begin; number < pieces.end; ++number) {
    if (number % of_one == 0 && number > pieces.begin) advance(w);
    run_piece(w, piece_at(number), number == pieces.begin);
  }
  finish(w, arguments, part);
}

void VectorProgramKernel::run_range(const Arguments& arguments, PartRange units) const {
  const Workspace w = workspace(arguments.scratch);
  start(w, arguments);
  for (std::int64_t first = units.begin; first < units.end; first += p_.piece_inner)
    run_piece(w, {0, 0, first, 1, 1, std::min(p_.piece_inner, units.end - first)}, first == units.begin);
}

void VectorProgramKernel::run_part(const Arguments& arguments, std::int64_t part) const {
  const bool sums = p_.axis_sums > 0;
  run_pieces(arguments, part_range(pieces_, part, info_.parts), sums ? part : 0);
}

void VectorProgramKernel::run(const Arguments& arguments) const {
  if (p_.sum_parts == 1) return run_pieces(arguments, {0, pieces_}, 0);
  for (std::int64_t part = 0; part < info_.parts; ++part) run_part(arguments, part);
}

}  // namespace

Prepared prepare(const VectorProgram& program) {
  auto plan = make_vector_plan(program);
  if (!plan) return refuse("vector program", plan.error());
  KernelInfo info;
  info.name = fmt::format("vector program, {} instructions, pieces of {} x {}", plan->instructions.size(),
                          plan->piece_planes * plan->piece_rows, plan->piece_inner);
  info.flops = plan->flops;
  info.bytes = plan->bytes;
  info.scratch_bytes = VectorProgramKernel::scratch_bytes(*plan);
  info.inputs = plan->inputs.size();
  info.outputs = plan->outputs.size();
  return std::make_unique<VectorProgramKernel>(std::move(info), std::move(*plan));
}

}  // namespace superstep::kernels
