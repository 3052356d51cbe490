#include "superstep/lab/numerics/node_differences.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "superstep/base/progress.h"
#include "superstep/target/numerics/numerics_target.h"

namespace superstep::lab {
namespace {

using graph::NodeId;
using numerics::Arithmetic;
using target::numerics::Emulation;
using target::numerics::Way;

NodeId id_of(std::size_t index) { return NodeId(static_cast<std::uint32_t>(index)); }

class Comparing {
 public:
  Comparing(const target::GraphAtBatch& model, const NodeQuestion& question,
            const std::vector<Tensor>& inputs, const std::map<std::string, Tensor>& states)
      : question_(question), inputs_(inputs), emulation_(make(model, question)) {
    for (const std::string& name :
         emulation_->state_names())  // trained states have an optimizer's beside them
      if (const auto given = states.find(name); given != states.end())
        emulation_->set_state(name, given->second);
    for (const auto& port : emulation_->outputs()) outputs_.emplace_back(port.type.element, port.type.shape);
    for (std::size_t i = 0; i < graph().node_count(); ++i) {
      of_.push_back(question.of.of(graph().node(id_of(i))));
      with_.push_back(question.with.of(graph().node(id_of(i))));
    }
  }

  NodeDifferences compare() {
    describe();
    run_both();
    result_.difference = difference();
    if (result_.difference > 0) find_culprit();
    return std::move(result_);
  }

 private:
  static std::unique_ptr<Emulation> make(const target::GraphAtBatch& model, const NodeQuestion& question) {
    target::CompileOptions options;
    options.batch = question.batch, options.threads = question.threads;
    auto emulation = target::numerics::emulate(model, options, question.of);
    target::numerics::check_patterns(question.with, emulation->graph());
    return emulation;
  }
  const graph::Graph& graph() const { return emulation_->graph(); }

  void describe() {
    for (std::size_t i = 0; i < graph().node_count(); ++i) {
      const graph::Node& node = graph().node(id_of(i));
      const Way way = emulation_->way_of(id_of(i));
      NodeDifference described{
          .name = node.name, .op = node.op, .way = name_of(way), .with = to_string(with_[i])};
      described.differs = way != Way::moved && way != Way::updated && !(of_[i] == with_[i]);
      for (const graph::ValueId input : node.inputs)
        if (input.valid() && graph().value(input).producer.valid())
          described.reads.push_back(graph().value(input).producer.index());
      result_.nodes.push_back(std::move(described));
    }
    for (const graph::Output& output : graph().outputs()) result_.outputs.push_back(output.name);
  }

  void run() {
    emulation_->set_run(0);
    emulation_->run(inputs_, outputs_);
  }

  void run_both() {
    std::map<std::pair<std::size_t, std::size_t>, Tensor> results;
    emulation_->watch([&](NodeId node, std::size_t output, const Tensor& value) {
      results.insert_or_assign({node.index(), output}, value.clone());
    });
    run();
    for (const Tensor& output : outputs_) expected_.push_back(output.clone());
    emulation_->watch([&](NodeId node, std::size_t output, const Tensor& value) {
      double& error = result_.nodes[node.index()].error;
      error = std::max(error, relative_difference(results.at({node.index(), output}), value));
    });
    set_range(0, graph().node_count(), with_);
    run();
    emulation_->watch({});
    for (NodeDifference& node : result_.nodes) {
      double read = 0;
      for (const std::size_t from : node.reads) read = std::max(read, result_.nodes[from].error);
      node.growth = read > 0 ? node.error / read : 0;
    }
  }

  double difference() const {
    double sum = 0;
    std::size_t count = 0;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      if (outputs_[i].type() != ElementType::f32) continue;
      const double each = relative_difference(expected_[i], outputs_[i]);
      sum += each * each, ++count;
    }
    return count > 0 ? std::sqrt(sum / static_cast<double>(count)) : 0;
  }

  void set_range(std::size_t begin, std::size_t end, const std::vector<Arithmetic>& arithmetic) {
    for (std::size_t i = begin; i < end; ++i)
      if (emulation_->way_of(id_of(i)) != Way::updated) emulation_->set_arithmetic(id_of(i), arithmetic[i]);
  }

  // What these of the candidates make of the final difference, alone.
  double made_by(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      emulation_->set_arithmetic(id_of(candidates_[i]), with_[candidates_[i]]);
    run();
    const double made = difference();
    for (std::size_t i = begin; i < end; ++i)
      emulation_->set_arithmetic(id_of(candidates_[i]), of_[candidates_[i]]);
    return made;
  }

  void look_into(std::size_t begin, std::size_t end, double made, Progress& progress) {
    progress.update(static_cast<double>(begin));
    if (end - begin == 1) {
      result_.nodes[candidates_[begin]].alone = made;
      return;
    }
    const std::size_t middle = begin + (end - begin) / 2;
    const double parts[] = {made_by(begin, middle), made_by(middle, end)};
    const auto squared = [](double x) {
      return std::isfinite(x) ? x * x : std::numeric_limits<double>::infinity();
    };
    // What is found in other ranges may be larger still; what is small beside this one's is small beside all.
    largest_ = std::max({largest_, squared(parts[0]), squared(parts[1])});
    for (int i = 0; i < 2; ++i)
      if (parts[i] > 0 &&
          (largest_ == squared(parts[i]) || squared(parts[i]) >= question_.least_share * largest_))
        look_into(i == 0 ? begin : middle, i == 0 ? middle : end, parts[i], progress);
  }

  void find_culprit() {
    for (std::size_t i = 0; i < result_.nodes.size(); ++i)
      if (result_.nodes[i].differs) candidates_.push_back(i);
    if (candidates_.empty()) return;
    set_range(0, graph().node_count(), of_);
    Progress progress = Progress::passing("replacing one node's arithmetic at a time",
                                          static_cast<double>(candidates_.size()), "nodes");
    look_into(0, candidates_.size(), result_.difference, progress);
    share();
    cure();
  }

  void share() {
    double sum = 0;
    int infinite = 0;
    for (const NodeDifference& node : result_.nodes)
      if (node.alone > 0) std::isfinite(node.alone) ? sum += node.alone * node.alone : ++infinite;
    for (std::size_t i = 0; i < result_.nodes.size(); ++i) {
      NodeDifference& node = result_.nodes[i];
      if (node.alone < 0) continue;
      node.share = infinite > 0                ? (std::isfinite(node.alone) ? 0.0 : 1.0 / infinite)
                   : sum > 0 && node.alone > 0 ? node.alone * node.alone / sum
                                               : 0.0;
      if (node.share > result_.nodes[result_.culprit].share) result_.culprit = i;
    }
  }

  // What is left where one setting of the culprit is that of the other arithmetic.
  void cure() {
    const std::size_t culprit = result_.culprit;
    if (result_.nodes[culprit].share <= 0) return;
    set_range(0, graph().node_count(), with_);
    const auto left_with = [&](const Arithmetic& arithmetic) {
      emulation_->set_arithmetic(id_of(culprit), arithmetic);
      run();
      return difference();
    };
    for (const char* const setting : {"chunk", "sum_rounding", "sums", "subnormals", "operands", "results"}) {
      Arithmetic cured = with_[culprit];
      const std::string value = get(of_[culprit], setting);
      if (get(cured, setting) == value) continue;
      set(cured, setting, value);
      result_.cures.push_back({setting, value, left_with(cured)});
    }
    result_.cures.push_back({"all", question_.of.base.name, left_with(of_[culprit])});
  }

  const NodeQuestion& question_;
  const std::vector<Tensor>& inputs_;
  std::unique_ptr<Emulation> emulation_;
  std::vector<Tensor> outputs_, expected_;
  std::vector<Arithmetic> of_, with_;    // by node
  std::vector<std::size_t> candidates_;  // nodes whose arithmetic differs
  double largest_ = 0;                   // square of what a range made
  NodeDifferences result_;
};

}  // namespace

double relative_difference(const Tensor& of, const Tensor& with) {
  const auto a = of.as<float>(), b = with.as<float>();
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) {
      if (std::isfinite(a[i])) size += static_cast<double>(a[i]) * static_cast<double>(a[i]);
      continue;
    }
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return std::numeric_limits<double>::infinity();
    const double apart = static_cast<double>(b[i]) - static_cast<double>(a[i]);
    difference += apart * apart;
    size += static_cast<double>(a[i]) * static_cast<double>(a[i]);
  }
  if (difference == 0) return 0;
  return size > 0 ? std::sqrt(difference / size) : std::numeric_limits<double>::infinity();
}

NodeDifferences node_differences(const target::GraphAtBatch& model, const NodeQuestion& question,
                                 const std::vector<Tensor>& inputs,
                                 const std::map<std::string, Tensor>& states) {
  return Comparing(model, question, inputs, states).compare();
}

}  // namespace superstep::lab
