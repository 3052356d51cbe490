// Which section each node belongs to, and where in the body the optimiser of a large parameter runs.
#include <algorithm>
#include <limits>

#include "superstep/op/core/definition.h"
#include "superstep/op/product/convolution.h"
#include "superstep/target/cpu/lower/lowering.h"

namespace superstep::target::cpu {
namespace {

constexpr int never = std::numeric_limits<int>::max();

// Elements of a parameter from which on a pass of its own costs nothing beside the memory it saves: 256 kB.
constexpr std::int64_t smallest_early_update = 1 << 16;

// Random masks look as if they depended on state alone, but differ from one micro-batch to the next.
bool depends_on_micro_batch(const Node& node) { return node.op == "superstep.RandomMask"; }

}  // namespace

void Lowering::divide() {
  plan_.trains = !graph_.updates().empty();
  for (std::size_t i = 0; i < graph_.node_count(); ++i) {
    const Node& node = graph_.nodes()[i];
    for (ValueId input : node.inputs)
      if (input.valid()) consumers_[input.index()].push_back(NodeId(i));
    if (node.phase == graph::Phase::update) {
      section_of_[i] = Section::update;
      continue;
    }
    const bool known_before = std::ranges::all_of(node.inputs, [&](ValueId input) {
      return !input.valid() || section_of_value(input) == Section::prepare;
    });
    if (known_before && !depends_on_micro_batch(node)) section_of_[i] = Section::prepare;
  }
  for (std::size_t i = 0; i < graph_.node_count(); ++i)
    if (updates_early(NodeId(i))) section_of_[i] = Section::body;
  for (const graph::Output& output : graph_.outputs()) leaves_[output.value.index()] = true;
  for (const graph::Update& update : graph_.updates()) leaves_[update.next.index()] = true;
  for (std::size_t i = 0; i < graph_.node_count(); ++i)
    for (ValueId input : graph_.nodes()[i].inputs)
      if (input.valid() && section_of_value(input) != section_of_[i]) leaves_[input.index()] = true;
}

// A large parameter whose gradient nothing else waits for is updated as soon as that gradient is there and
// nobody reads the old values any more: the gradient is still in cache, and its memory serves the next one.
// Small ones are updated together, in one pass over flat memory.
bool Lowering::updates_early(NodeId optimizer) const {
  const Node& node = graph_.node(optimizer);
  if (!whole_batch_ || section_of_[optimizer.index()] != Section::update || !is_optimizer(node)) return false;
  const ValueId parameter = node.inputs[0], gradient = node.inputs[1];
  if (shape(parameter).element_count() < smallest_early_update) return false;
  const View& where = layout_.views[gradient.index()];
  const bool is_ready_in_body = section_of_value(gradient) == Section::body &&
                                graph_.value(where.root).kind == graph::ValueKind::computed &&
                                type(gradient).element == ElementType::f32 &&
                                where.strides == shape(gradient).row_major_strides();
  if (!is_ready_in_body || last_reader(parameter) == never) return false;
  for (const graph::Output& output : graph_.outputs())
    if (output.value == gradient) return false;
  // Parameter and moments are states that this node alone updates; the rest of its inputs are there before.
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId input = node.inputs[i];
    if (!input.valid() || input == gradient) continue;
    if (graph_.value(input).kind == graph::ValueKind::computed) return false;
  }
  for (ValueId output : node.outputs)
    if (output.valid() && !consumers_[output.index()].empty()) return false;
  return graph_.update_of(parameter) == node.outputs[0];
}

// The last node of the body that reads the value, a view of it or what it is rounded to, which is made of the
// value itself when it is packed; `never` where somebody reads it later.
int Lowering::last_reader(ValueId id) const {
  int last = -1;
  for (const graph::Output& output : graph_.outputs())
    if (output.value == id) return never;
  for (const graph::Update& update : graph_.updates())
    if (update.next == id) return never;
  for (NodeId reader : consumers_[id.index()]) {
    const Node& node = graph_.node(reader);
    if (is_optimizer(node) && node.inputs[0] == id) continue;
    if (node.phase == graph::Phase::update) return never;
    last = std::max(last, place_of(reader));
    if (!layout_.is_alias[reader.index()] && node.op != "Cast") continue;
    for (ValueId output : node.outputs)
      if (output.valid()) last = std::max(last, last_reader(output));
  }
  return last;
}

// Where in the body a node runs: fused ones at the place of the last of their group.
int Lowering::place_of(NodeId id) const {
  int place = static_cast<int>(id.index());
  if (fusion_.group_of.empty()) return place;
  if (const int group = fusion_.group_of[id.index()]; group >= 0)
    place = static_cast<int>(fusion_.groups[static_cast<std::size_t>(group)].root.index());
  for (const auto& [root, match] : softmax_gradients_)
    if (std::ranges::find(match.inner, id) != match.inner.end())
      place = std::max(place, static_cast<int>(root.index()));
  for (const AttentionMatch& match : attentions_)
    if (std::ranges::find(match.inner, id) != match.inner.end())
      place = std::max(place, static_cast<int>(match.root.index()));
  return place;
}

// The node of the body after which the value is in memory.
int Lowering::made_at(ValueId id) const {
  const graph::Value& value = graph_.value(id);
  if (value.kind != graph::ValueKind::computed) return -1;
  if (!layout_.is_alias[value.producer.index()]) return place_of(value.producer);
  int made = -1;
  for (ValueId input : graph_.node(value.producer).inputs)
    if (input.valid()) made = std::max(made, made_at(input));
  return made;
}

// A node of the update that divide() has put into the body.
bool Lowering::is_early(NodeId id) const {
  return section_of_[id.index()] == Section::body && graph_.node(id).phase == graph::Phase::update;
}

void Lowering::find_early_updates() {
  for (std::size_t i = 0; i < graph_.node_count(); ++i) {
    const Node& node = graph_.nodes()[i];
    if (!is_early(NodeId(i))) continue;
    const int made = made_at(node.inputs[1]);
    early_updates_[std::max(made, last_reader(node.inputs[0]))].push_back(NodeId(i));
  }
}

// A gradient in bf16 is widened for the optimiser: the product and that conversion are one group.
std::optional<NodeId> Lowering::product_of_gradient(NodeId optimizer) const {
  const ValueId gradient = graph_.node(optimizer).inputs[1];
  const graph::Value& value = graph_.value(gradient);
  if (!is_early(optimizer) || value.kind != graph::ValueKind::computed) return std::nullopt;
  if (consumers_[gradient.index()].size() != 1 || leaves_[gradient.index()]) return std::nullopt;
  NodeId product = value.producer;
  if (const int number = fusion_.group_of[product.index()]; number >= 0) {
    const FusionGroup& group = fusion_.groups[static_cast<std::size_t>(number)];
    if (group.members.size() != 1 || !group.product || graph_.node(product).op != "Cast") return std::nullopt;
    product = *group.product;
  }
  const bool plain = op::is_matrix_product(op::traits_of(graph_.node(product).op).product_kind);
  return plain ? std::optional(product) : std::nullopt;
}

bool Lowering::waits_for_optimizer(NodeId id) const {
  if (section_of_[id.index()] != Section::body) return false;
  for (ValueId output : graph_.node(id).outputs) {
    if (!output.valid() || consumers_[output.index()].size() != 1) continue;
    const NodeId reader = consumers_[output.index()][0];
    const Node& node = graph_.node(reader);
    if (is_early(reader) && is_optimizer(node) && node.inputs[1] == output)
      return product_of_gradient(reader).has_value();
  }
  return false;
}

Section Lowering::section_of_value(ValueId id) const {
  const graph::Value& value = graph_.value(id);
  if (value.kind == graph::ValueKind::computed) return section_of_[value.producer.index()];
  return value.kind == graph::ValueKind::input ? Section::body : Section::prepare;
}

}  // namespace superstep::target::cpu
