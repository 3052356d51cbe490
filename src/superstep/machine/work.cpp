#include "superstep/machine/work.h"

#include <algorithm>
#include <map>
#include <set>

#include "superstep/op/core/definition.h"

namespace superstep::machine {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

constexpr const char* kind_names[] = {"view",         "product",     "recurrent", "attention",
                                      "element-wise", "optimizer",   "reduction", "normalization",
                                      "pooling",      "gather",      "scatter",   "movement",
                                      "spectral",     "unsupported", "unstated"};

bool is_state(const Graph& graph, ValueId id) { return graph.value(id).kind == graph::ValueKind::state; }

bool casts_parameter(const Graph& graph, const Node& node) {
  return node.op == "Cast" && is_state(graph, node.inputs[0]);
}

// A state, or the copy in fewer bits that a kernel reads in its place.
bool is_parameter(const Graph& graph, ValueId id) {
  const graph::Value& value = graph.value(id);
  if (value.kind != graph::ValueKind::computed) return value.kind == graph::ValueKind::state;
  return casts_parameter(graph, graph.node(value.producer));
}

// All that it makes has an extent of zero.
bool makes_nothing(const Graph& graph, const Node& node) {
  return std::ranges::all_of(
      node.outputs, [&](ValueId id) { return !id.valid() || graph.type(id).shape.element_count() == 0; });
}

// What works element by element costs what its elements do where it makes as many as it reads. Where it makes
// fewer (samples of an image, a crop, norms of channels) it is no part of its neighbours' kernel: it goes
// over all that it reads.
WorkKind kind_of_node(const Graph& graph, const Node& node) {
  const WorkKind kind = kind_of(node.op);
  if (kind != WorkKind::unsupported && makes_nothing(graph, node)) return WorkKind::view;
  if (kind != WorkKind::elementwise) return kind;
  std::int64_t largest = 0;
  for (ValueId id : node.inputs)
    if (id.valid()) largest = std::max(largest, graph.type(id).shape.element_count());
  const bool has_output = !node.outputs.empty() && node.outputs[0].valid();
  if (!has_output) return WorkKind::view;
  const bool grows = graph.type(node.outputs[0]).shape.element_count() >= largest;
  return grows || op::traits_of(node.op).by_counter ? WorkKind::elementwise : WorkKind::reduction;
}

// Statistics of groups of channels of each sample.
bool is_group_normalization(std::string_view op) {
  return op == "GroupNormalization" || op == "InstanceNormalization";
}

// Repeats of its input that kernels read as they go: frameworks make a view of it, and compilers fuse it.
// Given out it is written.
bool is_repetition(const Graph& graph, ValueId id) {
  if (graph.value(id).kind != graph::ValueKind::computed) return false;
  if (graph.node(graph.value(id).producer).op != "Expand") return false;
  return std::ranges::none_of(graph.outputs(), [&](const auto& output) { return output.value == id; }) &&
         std::ranges::none_of(graph.updates(), [&](const auto& update) { return update.next == id; });
}

class Collector {
 public:
  Collector(const Graph& graph, const Precision& precision, const WorkOptions& options)
      : graph_(graph), precision_(precision), options_(options), work_of_(graph.node_count(), none) {
    for (std::size_t i = 0; i < graph.node_count(); ++i) {
      const Node& node = graph.node(NodeId(i));
      if (node.phase == graph::Phase::forward && is_group_normalization(node.op))
        gradients_.emplace("d(" + node.name + ")", none);
    }
  }

  std::vector<Work> run() {
    for (std::size_t i = 0; i < graph_.node_count(); ++i) place(NodeId(i));
    find_readers();
    for (std::size_t i = 0; i < works_.size(); ++i) measure(i);
    std::erase_if(works_, [](const Work& work) { return work.kind == WorkKind::view; });
    return std::move(works_);
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  void place(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.phase == graph::Phase::backward)
      if (const auto gradient = gradients_.find(node.name); gradient != gradients_.end())
        return join_gradient(id, gradient->second);
    const bool repeats = !node.outputs.empty() && is_repetition(graph_, node.outputs[0]);
    const WorkKind kind = repeats ? WorkKind::view : kind_of_node(graph_, node);
    if (kind == WorkKind::elementwise)
      if (const std::size_t host = host_of(node); host != none) {
        works_[host].nodes.push_back(id);
        work_of_[id.index()] = host;
        return;
      }
    work_of_[id.index()] = works_.size();
    works_.push_back({.kind = kind, .name = node.name, .op = node.op, .phase = node.phase, .nodes = {id}});
  }

  // A graph has the gradient of a normalisation by groups as two dozen nodes; every library has it as one
  // operator, and so does this list. What follows the normalisation under its name is done on the way.
  void join_gradient(NodeId id, std::size_t& work) {
    if (work == none) {
      work = works_.size();
      works_.push_back({.kind = WorkKind::normalization,
                        .name = graph_.node(id).name,
                        .op = "GroupNormalizationGradient",
                        .phase = graph::Phase::backward,
                        .nodes = {}});
    }
    works_[work].nodes.push_back(id);
    work_of_[id.index()] = work;
  }

  // The latest element-wise kernel that makes one of the node's inputs, looking through views.
  std::size_t host_of(const Node& node) const {
    std::size_t host = none;
    for (ValueId id : node.inputs) {
      const std::size_t found = maker_of(id);
      if (found == none || works_[found].kind != WorkKind::elementwise) continue;
      const Work& work = works_[found];
      if (work.phase != node.phase || (!options_.fuse_across_layers && work.name != node.name)) continue;
      // Nothing may lie between: the kernel must still be the last one that could have made it.
      if (found + options_reach() < works_.size()) continue;
      if (host == none || found > host) host = found;
    }
    return host;
  }

  // How many kernels back one may still be joined: between it and here, others read and write.
  static constexpr std::size_t options_reach() { return 3; }

  std::size_t maker_of(ValueId id) const {
    if (!id.valid() || graph_.value(id).kind != graph::ValueKind::computed) return none;
    return work_of_[graph_.value(id).producer.index()];
  }

  // Where the elements lie that a reader of `id` reads.
  ValueId stored(ValueId id) const {
    while (is_repetition(graph_, id)) id = graph_.node(graph_.value(id).producer).inputs[0];
    return id;
  }

  void find_readers() {
    readers_.resize(graph_.value_count());
    for (std::size_t i = 0; i < graph_.node_count(); ++i)
      for (ValueId id : graph_.node(NodeId(i)).inputs)
        if (id.valid()) readers_[id.index()].insert(work_of_[i]);
    for (const graph::Output& output : graph_.outputs()) readers_[output.value.index()].insert(none);
    for (const graph::Update& update : graph_.updates()) readers_[update.next.index()].insert(none);
  }

  void measure(std::size_t index) {
    Work& work = works_[index];
    std::set<std::size_t> seen;
    for (NodeId id : work.nodes) {
      const Node& node = graph_.node(id);
      work.flops += work.kind == WorkKind::view ? 0 : op::cost(graph_, node).flops;
      for (ValueId input : node.inputs) {
        if (!input.valid() || maker_of(input) == index || !seen.insert(input.index()).second) continue;
        const double bytes = precision_.bytes(graph_.value(stored(input)));
        work.read_bytes += bytes;
        if (is_parameter(graph_, input)) work.weight_bytes += bytes;
      }
      for (ValueId output : node.outputs) {
        if (!output.valid()) continue;
        work.elements =
            std::max(work.elements, static_cast<double>(graph_.type(output).shape.element_count()));
        const std::set<std::size_t>& readers = readers_[output.index()];
        const bool outside = readers.size() > (readers.contains(index) ? 1u : 0u);
        if (outside || readers.empty()) work.write_bytes += precision_.bytes(graph_.value(output));
      }
    }
  }

  const Graph& graph_;
  const Precision& precision_;
  const WorkOptions& options_;
  std::vector<Work> works_;
  std::vector<std::size_t> work_of_;
  std::vector<std::set<std::size_t>> readers_;
  std::map<std::string, std::size_t> gradients_;  // of normalisations by groups: name -> kernel
};

}  // namespace

const char* name_of(WorkKind kind) { return kind_names[static_cast<std::size_t>(kind)]; }

WorkKind kind_of(std::string_view op) {
  const op::Definition* definition = op::find(op);
  return definition ? definition->traits.work : WorkKind::unsupported;
}

std::vector<Work> works_of(const Graph& graph, const Precision& precision, const WorkOptions& options) {
  return Collector(graph, precision, options).run();
}

std::vector<std::string> unsupported_operators(std::span<const Work> works) {
  std::vector<std::string> names;
  for (const Work& work : works)
    if (work.kind == WorkKind::unsupported && std::find(names.begin(), names.end(), work.op) == names.end())
      names.push_back(work.op);
  return names;
}

namespace {

// "d(conv1)" -> "conv1".
std::string forward_name(const std::string& name) {
  return name.starts_with("d(") && name.ends_with(")") ? name.substr(2, name.size() - 3) : name;
}

}  // namespace

void assign_stages(const Graph& graph, std::vector<Work>& works, std::span<const int> shares) {
  double all_shares = 0;
  for (int share : shares) all_shares += share;
  std::vector<std::size_t> layers;  // forward kernels with parameters
  for (std::size_t i = 0; i < works.size(); ++i)
    if (works[i].phase == graph::Phase::forward && works[i].weight_bytes > 0 &&
        (works[i].kind == WorkKind::product || works[i].kind == WorkKind::recurrent))
      layers.push_back(i);
  std::vector<std::size_t> first(shares.size() + 1, works.size());  // kernel at which a stage begins
  double before = 0;
  for (std::size_t stage = 0; stage < shares.size(); before += shares[stage], ++stage) {
    const auto layer =
        static_cast<std::size_t>(before / all_shares * static_cast<double>(layers.size()) + 0.5);
    first[stage] = stage == 0 ? 0 : layer < layers.size() ? layers[layer] : works.size();
  }
  // What makes a layer's parameters ready in fewer bits is with the layer, not one chip before it.
  const auto makes_ready = [&](const Work& work) {
    return std::ranges::all_of(work.nodes, [&](NodeId id) { return casts_parameter(graph, graph.node(id)); });
  };
  for (std::size_t& kernel : first)
    while (kernel > 0 && kernel < works.size() && makes_ready(works[kernel - 1])) --kernel;
  std::map<std::string, std::size_t> stage_of_name;
  std::map<std::size_t, std::size_t> stage_of_state;
  std::size_t latest = shares.size() - 1;
  for (std::size_t i = 0; i < works.size(); ++i) {
    Work& work = works[i];
    if (work.phase == graph::Phase::forward) {
      work.stage =
          static_cast<std::size_t>(std::upper_bound(first.begin(), first.end() - 1, i) - first.begin()) - 1;
      stage_of_name[work.name] = work.stage;
      for (NodeId id : work.nodes)
        for (ValueId input : graph.node(id).inputs)
          if (input.valid() && is_parameter(graph, input)) stage_of_state.emplace(input.index(), work.stage);
    } else if (work.phase == graph::Phase::backward) {
      const auto found = stage_of_name.find(forward_name(work.name));
      if (found != stage_of_name.end()) latest = found->second;
      work.stage = latest;
    } else {
      work.stage = shares.size() - 1;
      for (ValueId input : graph.node(work.nodes[0]).inputs)
        if (input.valid())
          if (const auto found = stage_of_state.find(input.index()); found != stage_of_state.end()) {
            work.stage = found->second;
            break;
          }
    }
  }
}

}  // namespace superstep::machine
