#include "superstep/target/cpu/lower/operators/lower_attention.h"

#include <algorithm>

#include "superstep/target/cpu/kernels/sequence/attention.h"
#include "superstep/target/cpu/lower/operators/lower_random.h"

namespace superstep::target::cpu {
namespace {

using kernels::Attention;
using kernels::MatrixStrides;

// The strides of a matrix of each attention; `turned` exchanges its axes. One batch dimension is the first
// one: the sample.
MatrixStrides strides_of(const Lowering& lowering, ValueId id, const Shape& shape, bool turned = false) {
  const Strides strides = lowering.broadcast_strides(id, shape);
  const std::size_t rank = strides.size();
  MatrixStrides matrix{.type = lowering.element_in_memory(id)};
  for (std::size_t axis = 0; axis + 2 < rank; ++axis) matrix.batch[axis] = strides[axis];
  matrix.row = strides[rank - (turned ? 1 : 2)];
  matrix.column = strides[rank - (turned ? 2 : 1)];
  return matrix;
}

Shape with_batches_of(const Shape& batches, const Shape& matrix) {
  std::vector<std::int64_t> extents = batches.extents();
  for (std::size_t k = 1; k <= 2; ++k)
    extents[extents.size() - k] = matrix[matrix.rank() - static_cast<int>(k)];
  return Shape(extents);
}

// A single row or column may have any stride; broadcasting gave it 0, which results must not have.
MatrixStrides result_strides(const Lowering& lowering, ValueId id, bool turned = false) {
  const Shape& shape = lowering.shape(id);
  MatrixStrides matrix = strides_of(lowering, id, shape, turned);
  const std::int64_t rows = shape[shape.rank() - (turned ? 1 : 2)],
                     columns = shape[shape.rank() - (turned ? 2 : 1)];
  if (columns == 1) matrix.column = 1;
  if (rows == 1) matrix.row = std::max<std::int64_t>(columns, matrix.column * columns);
  return matrix;
}

// Of [batch, heads, 1, rows, columns]: heads that are shared.
MatrixStrides shared_strides(const Lowering& lowering, ValueId id) {
  const Strides strides = lowering.broadcast_strides(id, lowering.shape(id));
  return {.batch = {strides[0], strides[1]},
          .row = strides[3],
          .column = strides[4],
          .type = lowering.element_in_memory(id)};
}

// Where the matrix of scores would lie.
Shape scores_of(const Lowering& lowering, const AttentionMatch& match) {
  const Shape &q = lowering.shape(match.q), &k = lowering.shape(match.k);
  std::vector<std::int64_t> extents = lowering.shape(match.y).extents();
  extents[extents.size() - 2] = q[q.rank() - 2];
  extents[extents.size() - 1] = k[k.rank() - (match.sharing > 1 ? 2 : 1)];
  return Shape(extents);
}

Attention describe(const Lowering& lowering, const AttentionMatch& match) {
  const Shape scores = scores_of(lowering, match), &q = lowering.shape(match.q), &y = lowering.shape(match.y);
  const int rank = scores.rank();
  Attention a;
  for (int axis = 0; axis + 2 < rank; ++axis) a.batch[static_cast<std::size_t>(axis)] = scores[axis];
  a.rows = scores[rank - 2];
  a.keys = scores[rank - 1];
  a.depth = q[q.rank() - 1];
  a.width = y[rank - 1];
  const auto operand = [&](ValueId id, bool turned) {
    return strides_of(lowering, id, with_batches_of(scores, lowering.shape(id)), turned);
  };
  a.q = operand(match.q, false);
  a.sharing = match.sharing;
  a.k = a.sharing > 1 ? shared_strides(lowering, match.k) : operand(match.k, true);
  a.v = a.sharing > 1 ? shared_strides(lowering, match.v) : operand(match.v, false);
  a.y = result_strides(lowering, match.y);
  a.scale = static_cast<float>(match.scale);
  if (match.bias) {
    a.has_bias = true;
    a.bias = strides_of(lowering, *match.bias, scores);
    a.bias_scale = static_cast<float>(match.bias_scale);
  }
  if (match.condition) {
    a.has_condition = true;
    a.condition = strides_of(lowering, *match.condition, scores);
    a.hidden_if = match.hidden_if;
    a.hidden = static_cast<float>(match.hidden);
  }
  a.nan_to_zero = match.nan_to_zero;
  if (match.drop) a.keep = static_cast<float>(lowering.graph().node(*match.drop).attributes.number("keep"));
  return a;
}

std::vector<DraftOperand> inputs_of(Lowering& lowering, const AttentionMatch& match,
                                    const std::optional<DraftOperand>& address) {
  std::vector<DraftOperand> inputs{lowering.read(match.q), lowering.read(match.k), lowering.read(match.v)};
  if (match.bias) inputs.push_back(lowering.read(*match.bias));
  if (match.condition) inputs.push_back(lowering.read(*match.condition));
  if (address) inputs.push_back(*address);
  return inputs;
}

// What the step replaces: "MatMul+Add+Softmax+MatMul".
std::string operators_of(const Graph& graph, std::vector<NodeId> nodes) {
  std::ranges::sort(nodes);
  std::string text;
  for (NodeId id : nodes) {
    if (graph.node(id).op == "superstep.RandomMask") continue;
    text += (text.empty() ? "" : "+") + graph.node(id).op;
  }
  return text;
}

// Scores of that many bytes stay in the second-level cache from one step to the next. Products and softmax
// alone are then as fast as steps of their own, and the gradient need not make scores again; with a mask or
// dropout there are passes to save, with shared heads copies of them.
constexpr std::int64_t cached_scores = 512 * 1024;

bool pays(const Lowering& lowering, const AttentionMatch& match) {
  const std::int64_t bytes =
      scores_of(lowering, match).element_count() * static_cast<std::int64_t>(sizeof(float));
  return match.bias || match.condition || match.drop || match.sharing > 1 || bytes > cached_scores;
}

kernels::KernelPointer require(kernels::Prepared kernel, const Node& node) {
  if (!kernel) throw Error(ErrorCode::internal, to_string(kernel.error()), node.name);
  return std::move(*kernel);
}

}  // namespace

bool attention_fits(const Lowering& lowering, const AttentionMatch& match) {
  const auto is_float = [&](ValueId id) {
    const ElementType element = lowering.type(id).element;
    return element == ElementType::f32 || element == ElementType::bf16;
  };
  if (match.condition && size_in_bytes(lowering.type(*match.condition).element) != 1) return false;
  for (const std::optional<ValueId>& mask : {match.bias, match.condition})
    if (mask && lowering.shape(*mask).rank() > lowering.shape(match.y).rank()) return false;
  for (ValueId id : {match.q, match.k, match.v, match.y}) {
    const bool shared = match.sharing > 1 && (id == match.k || id == match.v);
    const int most = shared ? 5 : lowering.shape(match.y).rank();
    if (!is_float(id) || lowering.shape(id).rank() > most || lowering.shape(id).rank() < 2) return false;
  }
  if (match.gradient)
    for (ValueId id : {match.gradient->dy, match.gradient->dq, match.gradient->dk, match.gradient->dv})
      if (!is_float(id)) return false;
  return pays(lowering, match) && kernels::fault_of(describe(lowering, match)).empty();
}

void lower_attention(Lowering& lowering, const AttentionMatch& match) {
  const Node& root = lowering.graph().node(match.root);
  const Attention attention = describe(lowering, match);
  std::optional<DraftOperand> address;
  if (match.drop) address = emit_random_address(lowering, lowering.graph().node(*match.drop));
  const DraftOperand statistics = lowering.temporary(kernels::statistics_bytes(attention));
  std::vector<NodeId> nodes = match.inner;
  nodes.push_back(match.root);
  lowering.emit(operators_of(lowering.graph(), nodes), root.name,
                require(kernels::prepare_attention(attention), root), inputs_of(lowering, match, address),
                {lowering.write(match.y), statistics});
  if (!match.gradient) return;
  std::vector<DraftOperand> kept{statistics};
  if (address) kept.push_back(*address);
  lowering.keep_for(match.gradient->first, std::move(kept));
}

void lower_attention_gradient(Lowering& lowering, const AttentionMatch& match) {
  const AttentionMatch::Gradient& g = *match.gradient;
  const Node& first = lowering.graph().node(g.first);
  const kernels::AttentionGradient gradient{.forward = describe(lowering, match),
                                            .dy = strides_of(lowering, g.dy, lowering.shape(g.dy)),
                                            .dq = result_strides(lowering, g.dq),
                                            .dk = result_strides(lowering, g.dk, true),
                                            .dv = result_strides(lowering, g.dv)};
  const std::vector<DraftOperand> kept = lowering.kept_for(g.first);
  std::vector<DraftOperand> inputs =
      inputs_of(lowering, match, kept.size() > 1 ? std::optional(kept[1]) : std::nullopt);
  for (const DraftOperand& operand : {lowering.read(match.y), kept[0], lowering.read(g.dy)})
    inputs.push_back(operand);
  lowering.emit(operators_of(lowering.graph(), g.inner), first.name,
                require(kernels::prepare_attention_gradient(gradient), first), std::move(inputs),
                {lowering.write(g.dq), lowering.write(g.dk), lowering.write(g.dv)});
}

}  // namespace superstep::target::cpu
