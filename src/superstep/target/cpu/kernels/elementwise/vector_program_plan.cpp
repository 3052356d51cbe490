#include "superstep/target/cpu/kernels/elementwise/vector_program_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/target/cpu/kernels/elementwise/vector_program_simplify.h"

namespace superstep::kernels {

namespace {

using Kind = VectorProgram::Kind;
using Target = VectorProgram::Target;
using Value = VectorProgram::Value;

constexpr std::int64_t register_bytes = 24 * 1024;  // of all registers together, in the first-level cache

int operand_count(VectorOp op) {
  if (op >= VectorOp::slope_affine) return 4;
  if (op >= VectorOp::fma) return 3;
  return op >= VectorOp::add ? 2 : 1;
}

std::string fault_of_instruction(const VectorProgram::Instruction& instruction, Value value) {
  const Value operands[] = {instruction.a, instruction.b, instruction.c, instruction.d};
  const int needed = operand_count(instruction.op);
  for (int i = 0; i < 4; ++i) {
    if ((operands[i] >= 0) != (i < needed))
      return fmt::format("{} takes {} operands", name_of(instruction.op), needed);
    if (operands[i] >= value) return fmt::format("value {} is used before it is made", operands[i]);
  }
  const bool affine = instruction.op == VectorOp::activate_affine || instruction.op == VectorOp::slope_affine;
  if (affine && !VectorProgram::has_affine(instruction.activation))
    return fmt::format("{} of {}", name_of(instruction.op), name_of(instruction.activation));
  if (instruction.op == VectorOp::output_gradient &&
      !gradient_from_output(instruction.activation, instruction.alpha))
    return std::string("the gradient of ") + name_of(instruction.activation) +
           " needs the activation's input";
  return {};
}

std::string fault_of_strides(const VectorProgram& program, const VectorProgram::Strides& strides,
                             bool written) {
  if (strides.size() != program.extents().size())
    return fmt::format("{} strides for {} axes", strides.size(), program.extents().size());
  if (!written) return {};
  for (std::size_t i = 0; i < strides.size(); ++i)
    if (strides[i] == 0 && program.extents()[i] > 1) return "an output writes an element twice";
  return {};
}

// How many of the last axes a sum keeps.
std::size_t axes_kept(Target target) {
  if (target == Target::sum_planes) return 2;
  return target == Target::sum_leading || target == Target::sum_centred ? 1 : 0;
}

std::string fault_of_centred(const VectorProgram& program, const VectorProgram::Output& output) {
  const auto count = static_cast<Value>(program.nodes().size());
  if (output.x < 0 || output.x >= count || output.centre < 0 || output.centre >= count)
    return "an output names a value that does not exist";
  const auto& centre = program.nodes()[static_cast<std::size_t>(output.centre)];
  bool fixed = centre.kind == Kind::input && !centre.strides.empty();
  for (std::size_t axis = 0; fixed && axis + 1 < centre.strides.size(); ++axis)
    fixed = centre.strides[axis] == 0;
  return fixed ? "" : "the center of a sum differs from row to row";
}

std::string fault_of_sums(const VectorProgram& program) {
  if (program.sum_parts() < 1) return "sums in no part";
  for (const auto& output : program.outputs()) {
    if (output.target == Target::sum_planes && program.extents().size() < 2) return "there are no planes";
    if (output.target == Target::sum_centred)
      if (std::string fault = fault_of_centred(program, output); !fault.empty()) return fault;
  }
  return {};
}

std::string fault_of(const VectorProgram& program) {
  for (std::int64_t extent : program.extents())
    if (extent < 0) return "an extent is negative";
  const auto count = static_cast<Value>(program.nodes().size());
  for (Value value = 0; value < count; ++value) {
    const auto& node = program.nodes()[static_cast<std::size_t>(value)];
    std::string fault;
    if (node.kind == Kind::instruction) fault = fault_of_instruction(node.instruction, value);
    if (node.kind == Kind::input) fault = fault_of_strides(program, node.strides, false);
    if (!fault.empty()) return fault;
  }
  for (const auto& output : program.outputs()) {
    if (output.value < 0 || output.value >= count) return "an output names a value that does not exist";
    if (output.target != Target::tensor) continue;
    if (std::string fault = fault_of_strides(program, output.strides, true); !fault.empty()) return fault;
  }
  return fault_of_sums(program);
}

// The axes with the strides of every tensor, merged where all tensors allow it.
struct MergedAxes {
  std::vector<std::int64_t> extents;
  std::vector<std::vector<std::int64_t>> strides;  // [axis][tensor]
};

MergedAxes merge_axes(const VectorProgram& program,
                      const std::vector<const VectorProgram::Strides*>& tensors) {
  MergedAxes merged;
  std::size_t apart = 0;  // so many of the last axes stay what they are
  for (const auto& output : program.outputs()) apart = std::max(apart, axes_kept(output.target));
  const std::size_t rank = program.extents().size();
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const std::int64_t extent = program.extents()[axis];
    const bool kept = axis + apart >= rank;
    if (extent == 1 && !kept) continue;
    std::vector<std::int64_t> strides;
    for (const auto* tensor : tensors) strides.push_back((*tensor)[axis]);
    bool joins = !kept && !merged.extents.empty();
    for (std::size_t i = 0; joins && i < strides.size(); ++i)
      joins = merged.strides.back()[i] == strides[i] * extent;
    if (joins) {
      merged.extents.back() *= extent;
      merged.strides.back() = strides;
    } else {
      merged.extents.push_back(extent);
      merged.strides.push_back(strides);
    }
  }
  while (merged.extents.size() < 3) {  // always a plane, a row and an inner axis
    merged.extents.insert(merged.extents.begin(), 1);
    merged.strides.insert(merged.strides.begin(), std::vector<std::int64_t>(tensors.size(), 0));
  }
  return merged;
}

class VectorPlanner {
 public:
  explicit VectorPlanner(const VectorProgram& program) : program_(program) {}
  std::expected<VectorPlan, std::string> plan();

 private:
  void settle_axes();
  bool planes_join() const;
  bool stores() const;
  bool lies_ready(const VectorStream& s, std::int64_t rows, std::int64_t planes) const;
  double bytes_of(const VectorStream& s) const;
  bool is_invariant(const VectorStream& s) const;
  VectorStream stream(std::size_t tensor, ElementType type) const;
  void find_last_uses();
  std::string add_inputs();
  void add_instructions();
  std::string add_outputs();
  void choose_direct_output();
  void choose_pieces();
  std::int64_t take_register();
  void release_operand(Value value, std::int64_t now);

  const VectorProgram& program_;
  MergedAxes axes_;
  VectorPlan p_;
  std::vector<std::int64_t> last_use_, register_of_;
  std::vector<std::int64_t> free_;
};

void VectorPlanner::settle_axes() {
  std::vector<const VectorProgram::Strides*> tensors;
  for (const auto& node : program_.nodes())
    if (node.kind == Kind::input) tensors.push_back(&node.strides);
  for (const auto& output : program_.outputs())
    if (output.target == Target::tensor) tensors.push_back(&output.strides);
  axes_ = merge_axes(program_, tensors);
  if (!planes_join()) {  // a plane is then a piece of its own
    axes_.extents.insert(axes_.extents.end() - 2, 1);
    axes_.strides.insert(axes_.strides.end() - 2, std::vector<std::int64_t>(tensors.size(), 0));
  }
  const std::size_t rank = axes_.extents.size();
  p_.outer.assign(axes_.extents.begin(), axes_.extents.end() - 3);
  p_.planes = axes_.extents[rank - 3];
  p_.rows = axes_.extents[rank - 2];
  p_.inner = axes_.extents[rank - 1];
  for (std::int64_t extent : program_.extents()) p_.elements *= static_cast<double>(extent);
}

// Whether a piece may span several planes: in every tensor they follow each other, or are the same one.
bool VectorPlanner::planes_join() const {
  const std::size_t rank = axes_.extents.size();
  const std::int64_t plane = axes_.extents[rank - 2] * axes_.extents[rank - 1];
  for (std::size_t tensor = 0; tensor < axes_.strides[rank - 3].size(); ++tensor) {
    const std::int64_t stride = axes_.strides[rank - 3][tensor];
    if (stride != 0 && stride != plane) return false;
  }
  return true;
}

// Bytes of the elements that are there: what is broadcast counts once.
double VectorPlanner::bytes_of(const VectorStream& s) const {
  double bytes = static_cast<double>(s.element_bytes);
  const auto count = [&](std::int64_t extent, std::int64_t stride) {
    if (stride != 0) bytes *= static_cast<double>(extent);
  };
  for (std::size_t axis = 0; axis < p_.outer.size(); ++axis) count(p_.outer[axis], s.outer_strides[axis]);
  count(p_.planes, s.plane_stride);
  count(p_.rows, s.row_stride);
  count(p_.inner, s.inner_stride);
  return bytes;
}

VectorStream VectorPlanner::stream(std::size_t tensor, ElementType type) const {
  const std::size_t rank = axes_.extents.size();
  VectorStream s{
      .type = type, .element_bytes = static_cast<std::int64_t>(size_in_bytes(type)), .outer_strides = {}};
  for (std::size_t axis = 0; axis + 3 < rank; ++axis) s.outer_strides.push_back(axes_.strides[axis][tensor]);
  s.plane_stride = axes_.strides[rank - 3][tensor];
  s.row_stride = axes_.strides[rank - 2][tensor];
  s.inner_stride = axes_.strides[rank - 1][tensor];
  return s;
}

void VectorPlanner::find_last_uses() {
  last_use_.assign(program_.nodes().size(), -1);
  register_of_.assign(program_.nodes().size(), -1);
  const auto end = static_cast<std::int64_t>(program_.nodes().size());
  for (std::int64_t i = 0; i < end; ++i) {
    const auto& node = program_.nodes()[static_cast<std::size_t>(i)];
    if (node.kind != Kind::instruction) continue;
    for (Value v : {node.instruction.a, node.instruction.b, node.instruction.c, node.instruction.d})
      if (v >= 0) last_use_[static_cast<std::size_t>(v)] = i;
  }
  for (const auto& output : program_.outputs())
    for (Value v : {output.value, output.x, output.centre})
      if (v >= 0) last_use_[static_cast<std::size_t>(v)] = end;
}

std::int64_t VectorPlanner::take_register() {
  if (free_.empty()) return p_.registers++;
  const std::int64_t reg = free_.back();
  free_.pop_back();
  return reg;
}

// Whether pieces of so many rows and planes are one block of f32 in memory.
bool VectorPlanner::lies_ready(const VectorStream& s, std::int64_t rows, std::int64_t planes) const {
  const bool unit = s.inner_stride == 1 || p_.inner == 1;
  return s.type == ElementType::f32 && unit && (rows == 1 || s.row_stride == p_.inner) &&
         (planes == 1 || s.plane_stride == p_.rows * p_.inner);
}

bool VectorPlanner::stores() const {
  return std::ranges::any_of(program_.outputs(),
                             [](const auto& output) { return output.target == Target::tensor; });
}

std::string VectorPlanner::add_inputs() {
  const auto& nodes = program_.nodes();
  std::size_t tensor = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].kind == Kind::constant) {
      register_of_[i] = p_.registers++;
      p_.constants.push_back({nodes[i].value, register_of_[i]});
      p_.constant_values.push_back({static_cast<Value>(i), register_of_[i]});
    }
    if (nodes[i].kind != Kind::input) continue;
    VectorInput input{stream(tensor++, nodes[i].type), static_cast<Value>(i), -1};
    input.stream.load = vector_loops().load(nodes[i].type);
    if (nodes[i].type == ElementType::f32) input.stream.load_rows = vector_loops().load_rows;
    if (!input.stream.load) return fmt::format("cannot read {}", name_of(nodes[i].type));
    // Of larger pieces than there will be: smaller ones may lie ready where these do not.
    input.stream.contiguous = lies_ready(input.stream, p_.rows, p_.planes);
    // An input that leaves unchanged is kept apart: another output may overwrite it first.
    input.kept_apart = last_use_[i] == static_cast<std::int64_t>(nodes.size()) && stores();
    if (!input.stream.contiguous || input.kept_apart) input.reg = p_.registers++;
    p_.inputs.push_back(input);
    p_.bytes += bytes_of(input.stream);
  }
  return {};
}

void VectorPlanner::release_operand(Value value, std::int64_t now) {
  if (value < 0) return;
  const auto v = static_cast<std::size_t>(value);
  if (program_.nodes()[v].kind != Kind::instruction || last_use_[v] != now || register_of_[v] < 0) return;
  free_.push_back(register_of_[v]);
  register_of_[v] = -1;
}

void VectorPlanner::add_instructions() {
  const auto& nodes = program_.nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].kind != Kind::instruction || last_use_[i] < 0) continue;
    const auto& instruction = nodes[i].instruction;
    for (Value v : {instruction.a, instruction.b, instruction.c, instruction.d})
      release_operand(v, static_cast<std::int64_t>(i));
    register_of_[i] = take_register();
    p_.instructions.push_back(
        {instruction, static_cast<Value>(i), vector_loops().of(instruction), register_of_[i]});
    p_.flops += p_.elements * (operand_count(instruction.op) > 2 ? operand_count(instruction.op) - 1 : 1);
  }
}

std::string VectorPlanner::add_outputs() {
  std::size_t tensor = p_.inputs.size();
  for (const auto& output : program_.outputs()) {
    VectorOutput out{.output = output, .stream = {}};
    if (output.target == Target::tensor) {
      out.stream = stream(tensor++, output.type);
      out.stream.contiguous = lies_ready(out.stream, p_.rows, p_.planes);
      out.stream.store = vector_loops().store(output.type);
      if (!out.stream.store) return fmt::format("cannot write {}", name_of(output.type));
      p_.bytes += bytes_of(out.stream);
    } else {
      out.accumulator = p_.axis_sums;
      out.sum_count = p_.inner * (output.target == Target::sum_planes ? p_.rows : 1) *
                      (output.target == Target::sum_centred ? 2 : 1);
      p_.axis_sums += out.sum_count;
      p_.flops += p_.elements;
    }
    p_.outputs.push_back(out);
  }
  return {};
}

// The last instruction may write its output where it belongs: nothing is read after it.
void VectorPlanner::choose_direct_output() {
  if (p_.instructions.empty()) return;
  for (VectorOutput& out : p_.outputs) {
    if (out.output.target != Target::tensor || !out.stream.contiguous) continue;
    if (out.output.value != p_.instructions.back().value) continue;
    out.direct = true;
    return;
  }
}

// Whether every piece reads the same of this input, so that it is loaded once.
bool VectorPlanner::is_invariant(const VectorStream& s) const {
  const auto is_zero = [](std::int64_t stride) { return stride == 0; };
  if (!std::ranges::all_of(s.outer_strides, is_zero)) return false;
  if (p_.planes > 1 && s.plane_stride != 0) return false;
  if (p_.piece_rows < p_.rows && s.row_stride != 0) return false;
  return p_.piece_inner == p_.inner || s.inner_stride == 0;
}

void VectorPlanner::choose_pieces() {
  const std::int64_t floats = register_bytes / 4 / std::max<std::int64_t>(p_.registers, 1) / 64 * 64;
  const std::int64_t most = std::clamp<std::int64_t>(floats, 64, 1024);
  const auto fitting = [&](std::int64_t size, std::int64_t extent) {
    return std::clamp<std::int64_t>(most / std::max<std::int64_t>(size, 1), 1,
                                    std::max<std::int64_t>(extent, 1));
  };
  const std::int64_t inner_pieces =
      std::max<std::int64_t>(1, (p_.inner + most - 1) / most);  // of about a size
  p_.piece_inner = std::min(p_.inner, (p_.inner + inner_pieces * 16 - 1) / (inner_pieces * 16) * 16);
  p_.piece_rows = p_.piece_inner == p_.inner ? fitting(p_.inner, p_.rows) : 1;
  p_.piece_planes =
      p_.piece_rows == p_.rows && p_.piece_inner == p_.inner ? fitting(p_.rows * p_.inner, p_.planes) : 1;
  p_.register_floats = (p_.piece_inner * p_.piece_rows * p_.piece_planes + 15) / 16 * 16;
  for (VectorInput& input : p_.inputs) {
    input.stream.invariant = is_invariant(input.stream);
    input.stream.contiguous = !input.kept_apart && lies_ready(input.stream, p_.piece_rows, p_.piece_planes);
  }
}

std::expected<VectorPlan, std::string> VectorPlanner::plan() {
  p_.sum_parts = program_.sum_parts();
  p_.values = program_.nodes().size();
  settle_axes();
  find_last_uses();
  if (std::string fault = add_inputs(); !fault.empty()) return std::unexpected(fault);
  add_instructions();
  if (std::string fault = add_outputs(); !fault.empty()) return std::unexpected(fault);
  choose_direct_output();
  choose_pieces();
  return std::move(p_);
}

}  // namespace

std::expected<VectorPlan, std::string> make_vector_plan(const VectorProgram& program) {
  if (std::string fault = fault_of(program); !fault.empty()) return std::unexpected(fault);
  const VectorProgram simple = simplified(program);
  return VectorPlanner(simple).plan();
}

}  // namespace superstep::kernels
