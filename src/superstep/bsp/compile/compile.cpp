// compile_graph: checks, then steps with their costs, then memory.

#include "superstep/base/error.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/bsp/compile/check.h"
#include "superstep/bsp/compile/executable_data.h"
#include "superstep/bsp/compile/memory.h"
#include "superstep/bsp/compile/step_lowering.h"

namespace superstep::bsp {
namespace {

class Compiler {
 public:
  Compiler(const GraphData& graph, std::span<const Program> programs, const CompileOptions& options)
      : graph_(graph),
        programs_(programs),
        options_(options),
        accesses_(graph, options.most_accesses),
        mapping_(graph),
        lowering_(graph, options.timing_only),
        data_(std::make_shared<ExecutableData>()) {}

  std::shared_ptr<const ExecutableData> run() {
    const Stopwatch watch;
    copy_declarations();
    for (const Program& program : programs_) check(program);
    for (const auto& [handle, host] : graph_.writes) check_host(handle, host);
    for (const auto& [handle, host] : graph_.reads) check_host(handle, host);
    if (!options_.allow_undefined_reads) check_definitions(graph_, programs_, accesses_);
    set_of_.assign(graph_.compute_sets.size(), LoweredNode::none);
    for (const Program& program : programs_) data_->programs.push_back(lower(program));
    memory();
    summarize();
    data_->profile.compile_seconds = watch.seconds();
    return data_;
  }

 private:
  void copy_declarations() {
    data_->classes = graph_.classes;
    data_->streams = graph_.streams;
    data_->buffers = graph_.buffers;
    data_->timing_only = options_.timing_only;
    for (const Variable& variable : graph_.variables) {
      VariableInfo info{variable.name, variable.type, variable.count(), {}, variable.replica_index};
      if (!options_.timing_only) info.initial = variable.initial;
      data_->variables.push_back(std::move(info));
    }
    const auto handle = [](const HostHandle& host) {
      return LoweredHandle{host.tensor.element_type(), host.tensor.num_elements(), host.tensor.view().runs()};
    };
    for (const auto& [name, host] : graph_.writes) data_->writes[name] = handle(host);
    for (const auto& [name, host] : graph_.reads) data_->reads[name] = handle(host);
  }

  void check_host(const std::string& handle, const HostHandle& host) {
    ProgramNode node;
    node.kind = ProgramKind::print_tensor;
    node.name = "host handle " + handle;
    node.tensors = {host.tensor};
    check_leaf(graph_, node, mapping_);
  }

  void check(const Program& program) {
    const ProgramNode& node = program.node();
    if (!checked_.insert(&node).second) return;
    for (const Program& child : node.children) check(child);
    if (node.kind == ProgramKind::call) {
      if (node.function.index() >= graph_.functions.size())
        throw Error(ErrorCode::bad_graph, "a function of another graph", describe(node),
                    "add it to this graph");
      check(graph_.functions[node.function.index()]);
    } else if (node.kind == ProgramKind::execute) {
      if (node.compute_set.index() >= graph_.compute_sets.size())
        throw Error(ErrorCode::bad_graph, "a compute set of another graph", describe(node),
                    "add it to this graph");
      check_set(node.compute_set);
      check_leaf(graph_, node, mapping_);
    } else {
      check_leaf(graph_, node, mapping_);
    }
  }

  // Every compute set is met twice: when it is checked, and when it is lowered.
  void report_progress() {
    if (interrupted()) throw Error(ErrorCode::interrupted, "stopped while compiling");
    if (options_.progress) options_.progress(sets_met_++, 2 * graph_.compute_sets.size());
  }

  void check_set(ComputeSetId id) {
    if (!checked_sets_.insert(id).second) return;
    report_progress();
    check_compute_set(graph_, id, mapping_);
    check_races(graph_, id, accesses_.vertices(id), options_.allow_vertex_aliases);
    accesses_.forget_vertices(id);
  }

  std::uint32_t lower(const Program& program) {
    const ProgramNode& node = program.node();
    if (const auto known = node_of_.find(&node); known != node_of_.end()) return known->second;
    if (node.kind == ProgramKind::call) return lower(graph_.functions[node.function.index()]);
    LoweredNode lowered;
    lowered.kind = node.kind;
    lowered.name = node.name;
    lowered.count = node.count;
    lowered.wanted = node.wanted;
    lowered.cases = node.cases;
    lowered.stream = node.stream;
    lowered.buffer = node.buffer;
    lowered.message = node.message;
    lowered.printer = node.printer;
    if (node.kind == ProgramKind::repeat_while) {  // the condition comes first, then the decision
      lowered.children.push_back(lower(node.children[0]));
      add_step(node, lowered);
      lowered.children.push_back(lower(node.children[1]));
    } else {
      if (node.kind != ProgramKind::sequence && node.kind != ProgramKind::repeat) add_step(node, lowered);
      for (const Program& child : node.children) lowered.children.push_back(lower(child));
    }
    const auto number = static_cast<std::uint32_t>(data_->nodes.size());
    data_->nodes.push_back(std::move(lowered));
    node_of_[&node] = number;
    return number;
  }

  void add_step(const ProgramNode& node, LoweredNode& lowered) {
    lowered.step = static_cast<std::uint32_t>(steps_.size());
    step_of_[&node] = lowered.step;
    steps_.emplace_back();  // numbers in the order of the program
    steps_[lowered.step] =
        node.kind == ProgramKind::execute ? execute(node, lowered) : lowering_.leaf(node, lowered);
    if (node.kind == ProgramKind::execute && !node.name.empty())
      steps_[lowered.step].profile.name = node.name;
    if (graph_.device.ipus > 1) steps_[lowered.step].profile.chips = chips_of(steps_[lowered.step]);
  }

  // Steps that stay on some chips; none listed where all must meet.
  std::vector<std::uint32_t> chips_of(const LoweredStep& step) const {
    const StepProfile& profile = step.profile;
    const bool local = profile.kind == ProgramKind::execute || profile.kind == ProgramKind::copy;
    if (!local || profile.link_bytes > 0 || step.tiles.empty()) return {};
    std::set<std::uint32_t> chips;
    for (const StepTile& tile : step.tiles) chips.insert(graph_.device.ipu_of(tile.tile));
    return {chips.begin(), chips.end()};
  }

  LoweredStep execute(const ProgramNode& node, LoweredNode& lowered) {
    std::uint32_t& number = set_of_[node.compute_set.index()];
    if (number == LoweredNode::none) {
      report_progress();
      number = static_cast<std::uint32_t>(data_->compute_sets.size());
      data_->compute_sets.push_back(lowering_.compute_set(node.compute_set, data_->classes));
      set_steps_.push_back(lowering_.execute(node.compute_set, vertices_));
      data_->profile.compute_set_names.push_back(graph_.compute_sets[node.compute_set.index()].name);
    }
    lowered.compute_set = number;
    if (!node.tensors.empty() && !options_.timing_only) {
      lowered.type = node.tensors[0].element_type();
      lowered.runs = node.tensors[0].view().runs();
    }
    return set_steps_[number];
  }

  void memory() {
    const Liveness liveness = analyze_liveness(graph_, programs_, accesses_, step_of_, steps_.size());
    const MemoryInput input{graph_,    lowering_.placement(),         liveness, steps_,
                            vertices_, options_.merge_equal_constants};
    MemoryPlan plan = plan_memory(input);
    if (const std::optional<Error> error = misfit(input, plan)) {
      if (!options_.allow_out_of_memory) throw *error;
      data_->profile.too_full = error->message();
    }
    data_->profile.tiles = std::move(plan.tiles);
    data_->profile.liveness = std::move(plan.liveness);
  }

  void summarize() {
    CompilationProfile& profile = data_->profile;
    profile.device = graph_.device;
    profile.replicas = graph_.replicas;
    for (const Variable& variable : graph_.variables) {
      ++(variable.constant ? profile.constants : profile.variables);
      profile.variable_bytes += variable.bytes();
    }
    profile.compute_sets = data_->compute_sets.size();
    profile.programs = programs_.size();
    for (const VertexData& vertex : graph_.vertices)
      for (const FieldConnection& field : vertex.fields) profile.edges += field.tensors.size();
    for (LoweredStep& step : steps_) profile.steps.push_back(std::move(step.profile));
    for (const auto& [name, use] : vertices_.classes) {
      profile.vertices += use.instances;
      profile.vertex_kinds.push_back(
          {name, use.instances, use.state_bytes, use.code_bytes, use.default_estimate, use.counted});
    }
  }

  const GraphData& graph_;
  std::span<const Program> programs_;
  const CompileOptions& options_;
  AccessTable accesses_;
  MappingCheck mapping_;
  StepLowering lowering_;
  std::shared_ptr<ExecutableData> data_;
  std::set<const ProgramNode*> checked_;
  std::set<ComputeSetId> checked_sets_;
  std::size_t sets_met_ = 0;
  std::unordered_map<const ProgramNode*, std::uint32_t> node_of_, step_of_;
  std::vector<std::uint32_t> set_of_;
  std::vector<LoweredStep> steps_, set_steps_;
  VertexMemory vertices_;
};

}  // namespace

Executable compile_graph(const Graph& graph, std::span<const Program> programs,
                         const CompileOptions& options) {
  return Executable(Compiler(graph.data(), programs, options).run());
}

const CompilationProfile& Executable::profile() const { return data_->profile; }

}  // namespace superstep::bsp
