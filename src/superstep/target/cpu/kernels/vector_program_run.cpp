// Running of VectorPrograms: piece by piece, instruction by instruction.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "superstep/target/cpu/kernels/column_sum.h"
#include "superstep/target/cpu/kernels/vector_program_plan.h"

namespace superstep::kernels {

namespace {

using Target = VectorProgram::Target;

// Memory of one run, cut out of the scratch.
struct Workspace {
  float* registers;
  const float** values;  // where each value of the current piece lies
  double* sums;
  float* row_sums;
  const std::byte** inputs;  // of the current outer index
  std::byte** outputs;
  std::int64_t* index;  // of the outer axes
};

std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

class VectorProgramKernel final : public Kernel {
 public:
  VectorProgramKernel(KernelInfo info, VectorPlan plan)
      : Kernel(std::move(info)),
        p_(std::move(plan)),
        column_sum_(column_sum(ElementType::f32)),
        sum_(vector_loops().sum) {
    for (std::int64_t extent : p_.outer) outer_count_ *= extent;
    row_pieces_ = (p_.rows + p_.piece_rows - 1) / std::max<std::int64_t>(1, p_.piece_rows);
    inner_pieces_ = (p_.inner + p_.piece_inner - 1) / std::max<std::int64_t>(1, p_.piece_inner);
    const std::int64_t pieces = outer_count_ * row_pieces_ * inner_pieces_;
    // Sums go through one thread, in one order.
    if (p_.sums == 0 && p_.row_sums == 0) info_.parts = std::clamp<std::int64_t>(pieces, 1, most_parts);
  }

  static std::size_t scratch_bytes(const VectorPlan& p);
  void run(const Arguments& arguments) const override;
  void run_part(const Arguments& arguments, std::int64_t part) const override;

 private:
  // A piece: rows by inner elements from (row, first).
  struct Piece {
    std::int64_t row, first, rows, inner;
    std::int64_t count() const { return rows * inner; }
  };

  Workspace workspace(void* scratch) const;
  void start(const Workspace& w, const Arguments& arguments) const;
  void run_rows(const Workspace& w, bool& fresh) const;
  void run_piece(const Workspace& w, const Piece& piece, bool fresh) const;
  void load(const Workspace& w, const VectorInput& input, std::size_t number, const Piece& piece,
            bool fresh) const;
  void compute(const Workspace& w, const Piece& piece) const;
  void store(const Workspace& w, const VectorOutput& output, std::size_t number, const Piece& piece) const;
  std::byte* output_place(const Workspace& w, const VectorOutput& output, std::size_t number,
                          const Piece& piece) const;
  bool advance(const Workspace& w) const;
  void move_to(const Workspace& w, std::int64_t outer) const;
  void finish(const Workspace& w, const Arguments& arguments) const;

  float* register_at(const Workspace& w, std::int64_t reg) const {
    return w.registers + reg * p_.register_floats;
  }

  VectorPlan p_;
  ColumnSum* column_sum_;
  SumLoop* sum_;
  std::int64_t outer_count_ = 1, row_pieces_ = 1, inner_pieces_ = 1;
};

std::size_t VectorProgramKernel::scratch_bytes(const VectorPlan& p) {
  return aligned(static_cast<std::size_t>(p.registers * p.register_floats) * sizeof(float)) +
         aligned(p.values * sizeof(float*)) + aligned(static_cast<std::size_t>(p.sums) * sizeof(double)) +
         aligned(static_cast<std::size_t>(p.row_sums * p.inner) * sizeof(float)) +
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
  w.sums = static_cast<double*>(take(static_cast<std::size_t>(p_.sums) * sizeof(double)));
  w.row_sums = static_cast<float*>(take(static_cast<std::size_t>(p_.row_sums * p_.inner) * sizeof(float)));
  w.inputs = static_cast<const std::byte**>(take(p_.inputs.size() * sizeof(void*)));
  w.outputs = static_cast<std::byte**>(take(p_.outputs.size() * sizeof(void*)));
  w.index = static_cast<std::int64_t*>(take(p_.outer.size() * sizeof(std::int64_t)));
  return w;
}

void VectorProgramKernel::start(const Workspace& w, const Arguments& arguments) const {
  for (const auto& [value, reg] : p_.constants) std::fill_n(register_at(w, reg), p_.register_floats, value);
  for (const auto& [value, reg] : p_.constant_values) w.values[value] = register_at(w, reg);
  std::fill_n(w.sums, p_.sums, 0.0);
  std::fill_n(w.row_sums, p_.row_sums * p_.inner, 0.0f);
  std::fill_n(w.index, p_.outer.size(), 0);
  for (std::size_t i = 0; i < p_.inputs.size(); ++i)
    w.inputs[i] = static_cast<const std::byte*>(arguments.inputs[i]);
  for (std::size_t i = 0; i < p_.outputs.size(); ++i)
    w.outputs[i] = static_cast<std::byte*>(arguments.outputs[i]);
}

void VectorProgramKernel::load(const Workspace& w, const VectorInput& input, std::size_t number,
                               const Piece& piece, bool fresh) const {
  const VectorStream& s = input.stream;
  const std::byte* from =
      w.inputs[number] + (piece.row * s.row_stride + piece.first * s.inner_stride) * s.element_bytes;
  if (s.contiguous) {
    w.values[input.value] = reinterpret_cast<const float*>(from);
    return;
  }
  float* to = register_at(w, input.reg);
  w.values[input.value] = to;
  if (s.invariant && !fresh) return;
  if (s.row_stride == piece.inner && s.inner_stride == 1) return s.load(from, 1, piece.count(), to);
  for (std::int64_t row = 0; row < piece.rows; ++row)
    s.load(from + row * s.row_stride * s.element_bytes, s.inner_stride, piece.inner, to + row * piece.inner);
}

std::byte* VectorProgramKernel::output_place(const Workspace& w, const VectorOutput& output,
                                             std::size_t number, const Piece& piece) const {
  const VectorStream& s = output.stream;
  return w.outputs[number] + (piece.row * s.row_stride + piece.first * s.inner_stride) * s.element_bytes;
}

void VectorProgramKernel::compute(const Workspace& w, const Piece& piece) const {
  const auto value = [&](VectorProgram::Value v) { return v < 0 ? nullptr : w.values[v]; };
  for (const VectorInstruction& step : p_.instructions) {
    float* out = register_at(w, step.reg);
    if (&step == &p_.instructions.back())
      for (std::size_t i = 0; i < p_.outputs.size(); ++i)
        if (p_.outputs[i].direct) out = reinterpret_cast<float*>(output_place(w, p_.outputs[i], i, piece));
    const auto& in = step.instruction;
    step.loop({value(in.a), value(in.b), value(in.c), out, piece.count(), &in});
    w.values[step.value] = out;
  }
}

void VectorProgramKernel::store(const Workspace& w, const VectorOutput& output, std::size_t number,
                                const Piece& piece) const {
  const float* from = w.values[output.output.value];
  if (output.output.target == Target::sum_all) {
    w.sums[output.accumulator] += static_cast<double>(sum_(from, piece.count()));
    return;
  }
  if (output.output.target == Target::sum_leading) {
    column_sum_(from, piece.inner, piece.rows, piece.inner,
                w.row_sums + output.accumulator * p_.inner + piece.first);
    return;
  }
  if (output.direct) return;
  const VectorStream& s = output.stream;
  std::byte* to = output_place(w, output, number, piece);
  if (s.row_stride == piece.inner && s.inner_stride == 1) return s.store(from, to, 1, piece.count());
  for (std::int64_t row = 0; row < piece.rows; ++row)
    s.store(from + row * piece.inner, to + row * s.row_stride * s.element_bytes, s.inner_stride, piece.inner);
}

void VectorProgramKernel::run_piece(const Workspace& w, const Piece& piece, bool fresh) const {
  for (std::size_t i = 0; i < p_.inputs.size(); ++i) load(w, p_.inputs[i], i, piece, fresh);
  compute(w, piece);
  for (std::size_t i = 0; i < p_.outputs.size(); ++i) store(w, p_.outputs[i], i, piece);
}

void VectorProgramKernel::run_rows(const Workspace& w, bool& fresh) const {
  for (std::int64_t row = 0; row < p_.rows; row += p_.piece_rows)
    for (std::int64_t first = 0; first < p_.inner; first += p_.piece_inner) {
      run_piece(
          w, {row, first, std::min(p_.piece_rows, p_.rows - row), std::min(p_.piece_inner, p_.inner - first)},
          fresh);
      fresh = false;
    }
}

// Moves on to the next outer index; false after the last.
bool VectorProgramKernel::advance(const Workspace& w) const {
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
    if (!wraps) return true;
    w.index[axis] = 0;
  }
  return false;
}

void VectorProgramKernel::finish(const Workspace& w, const Arguments& arguments) const {
  for (std::size_t i = 0; i < p_.outputs.size(); ++i) {
    const VectorOutput& output = p_.outputs[i];
    auto* to = static_cast<float*>(arguments.outputs[i]);
    if (output.output.target == Target::sum_all)
      *to = static_cast<float>(w.sums[output.accumulator]) + (output.output.accumulate ? *to : 0.0f);
    if (output.output.target != Target::sum_leading) continue;
    const float* sums = w.row_sums + output.accumulator * p_.inner;
    for (std::int64_t c = 0; c < p_.inner; ++c) to[c] = sums[c] + (output.output.accumulate ? to[c] : 0.0f);
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

// Pieces in the order of run(), counted through all outer indices.
void VectorProgramKernel::run_part(const Arguments& arguments, std::int64_t part) const {
  if (info_.parts == 1) return run(arguments);
  const std::int64_t of_one = row_pieces_ * inner_pieces_;
  const PartRange pieces = part_range(outer_count_ * of_one, part, info_.parts);
  const Workspace w = workspace(arguments.scratch);
  start(w, arguments);
  move_to(w, pieces.begin / of_one);
  for (std::int64_t number = pieces.begin; number < pieces.end; ++number) {
    const std::int64_t inside = number % of_one;
    if (inside == 0 && number > pieces.begin) advance(w);
    const std::int64_t row = inside / inner_pieces_ * p_.piece_rows,
                       first = inside % inner_pieces_ * p_.piece_inner;
    run_piece(
        w, {row, first, std::min(p_.piece_rows, p_.rows - row), std::min(p_.piece_inner, p_.inner - first)},
        number == pieces.begin);
  }
}

void VectorProgramKernel::run(const Arguments& arguments) const {
  const Workspace w = workspace(arguments.scratch);
  start(w, arguments);
  bool fresh = true;
  const bool empty = std::find(p_.outer.begin(), p_.outer.end(), 0) != p_.outer.end();
  if (!empty) do
      run_rows(w, fresh);
    while (advance(w));
  finish(w, arguments);
}

}  // namespace

Prepared prepare(const VectorProgram& program) {
  auto plan = make_vector_plan(program);
  if (!plan) return refuse("vector program", plan.error());
  KernelInfo info;
  info.name = fmt::format("vector program, {} instructions, pieces of {} x {}", plan->instructions.size(),
                          plan->piece_rows, plan->piece_inner);
  info.flops = plan->flops;
  info.bytes = plan->bytes;
  info.scratch_bytes = VectorProgramKernel::scratch_bytes(*plan);
  info.inputs = plan->inputs.size();
  info.outputs = plan->outputs.size();
  return std::make_unique<VectorProgramKernel>(std::move(info), std::move(*plan));
}

}  // namespace superstep::kernels
