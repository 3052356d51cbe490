// Where the elements of a tensor follow one another in memory.
#include <poplar/Graph.hpp>
#include <tuple>

#include "superstep/bsp/graph/graph_data.h"
#include "superstep/poplar/core/guard.h"
#include "superstep/poplar/core/handles.h"
#include "superstep/poplar/core/regions.h"
#include "superstep/poplar/replicas/replicas.h"

namespace poplar {
namespace core {

void append_runs(const bsp::Tensor& flat, std::int64_t begin, std::int64_t end,
                 std::vector<MemoryRun>& runs) {
  if (begin == end) return;
  const bsp::Tensor part = flat.slice(begin, end);
  for (const bsp::Run& run : part.view().runs()) {
    const bool together = run.stride == 1 || run.length == 1;
    const std::int64_t pieces = together ? 1 : run.length, length = run.length / pieces;
    for (std::int64_t i = 0; i < pieces; ++i) {
      const MemoryRun next{run.variable, run.element + i * run.stride, length, begin + run.place + i};
      if (!runs.empty() && runs.back().variable == next.variable && runs.back().end() == next.element &&
          runs.back().place + runs.back().length == next.place)
        runs.back().length += length;
      else
        runs.push_back(next);
    }
  }
}

void sort_by_memory(std::vector<MemoryRun>& runs) {
  const auto before = [](const MemoryRun& a, const MemoryRun& b) {
    return std::tie(a.variable, a.element, a.place) < std::tie(b.variable, b.element, b.place);
  };
  if (!std::is_sorted(runs.begin(), runs.end(), before)) std::sort(runs.begin(), runs.end(), before);
}

}  // namespace core

namespace {

using core::MemoryRun;

// Cuts runs so that any two have the same elements or none in common. They are in the order of memory before
// and after.
void cut_at_aliases(std::vector<MemoryRun>& runs) {
  std::vector<MemoryRun> result;
  for (std::size_t first = 0; first < runs.size();) {
    std::size_t last = first + 1;
    std::int64_t reached = runs[first].end();
    for (; last < runs.size() && runs[last].variable == runs[first].variable && runs[last].element < reached;
         ++last)
      reached = std::max(reached, runs[last].end());
    std::vector<std::int64_t> cuts;
    if (last - first > 1)
      for (std::size_t i = first; i < last; ++i) cuts.insert(cuts.end(), {runs[i].element, runs[i].end()});
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    for (std::size_t i = first; i < last; ++i) {
      MemoryRun rest = runs[i];
      for (auto cut = std::upper_bound(cuts.begin(), cuts.end(), rest.element);
           cut != cuts.end() && *cut < rest.end(); ++cut) {
        MemoryRun part = rest;
        part.length = *cut - rest.element;
        result.push_back(part);
        rest = {rest.variable, *cut, rest.length - part.length, rest.place + part.length};
      }
      result.push_back(rest);
    }
    first = last;
  }
  runs = std::move(result);
  core::sort_by_memory(runs);
}

bool same_elements(const MemoryRun& a, const MemoryRun& b) {
  return a.variable == b.variable && a.element == b.element && a.length == b.length;
}

// Intervals in their lists, and what each of them is an alias of, as they are put together.
struct Regions {
  std::vector<std::vector<Interval>> lists;
  std::vector<std::size_t> firsts;
  MemoryRun last;

  void add(const MemoryRun& run, std::int64_t first, bool keep_firsts) {
    const bool goes_on = !lists.empty() && run.variable == last.variable && run.element == last.end();
    const bool same_interval =
        goes_on && run.place == last.place + last.length &&
        (!keep_firsts || static_cast<std::size_t>(first) == firsts.back() + lists.back().back().size());
    if (!goes_on) lists.emplace_back();
    const auto end = static_cast<std::size_t>(run.place + run.length);
    if (same_interval) {
      lists.back().back() = Interval(lists.back().back().begin(), end);
    } else {
      lists.back().emplace_back(static_cast<std::size_t>(run.place), end);
      firsts.push_back(static_cast<std::size_t>(first));
    }
    last = run;
  }
};

}  // namespace

std::vector<std::vector<Interval>> Graph::getSortedContiguousRegions(
    const Tensor& tensor, ArrayRef<Interval> regions, bool remove_aliased,
    std::vector<std::size_t>* aliases) const {
  const std::size_t count = tensor.numElements();
  return core::guarded([&] {
    const core::bsp::Tensor flat = core::machine_tensor(tensor).flatten();
    std::vector<MemoryRun> runs;
    for (const Interval& region : regions) {
      if (region.begin() > region.end() || region.end() > count)
        throw index_error(fmt::format("getSortedContiguousRegions: [{}, {}) lies outside tensor {}",
                                      region.begin(), region.end(), core::describe(tensor)));
      core::append_runs(flat, static_cast<std::int64_t>(region.begin()),
                        static_cast<std::int64_t>(region.end()), runs);
    }
    core::sort_by_memory(runs);
    if (remove_aliased || aliases) cut_at_aliases(runs);
    Regions result;
    std::int64_t first = 0;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const bool again = i > 0 && same_elements(runs[i - 1], runs[i]);
      if (!again) first = runs[i].place;
      if (again && remove_aliased) continue;
      result.add(runs[i], aliases ? first : 0, aliases != nullptr);
    }
    if (aliases) *aliases = std::move(result.firsts);
    return std::move(result.lists);
  });
}

Tensor Graph::getVariable(VariableRef variable) const {
  const auto type = handle().state->types.find(variable.getId());
  if (type == handle().state->types.end()) throw poplar_error("a variable that is not there");
  const Tensor whole(std::make_shared<const core::TensorData>(core::TensorData{
      handle().state, handle().state->graph.variable(core::bsp::VariableId(variable.getId())),
      type->second}));
  const core::Replicas* replicas = handle().replicas.get();
  return replicas && replicas->replication()->variables.contains(variable.getId())
             ? replicas->replicated(whole)
             : whole;
}

bool Graph::isConstant(VariableRef variable) const {
  const core::bsp::GraphData& data = handle().state->graph.data();
  if (variable.getId() >= data.variables.size()) throw poplar_error("a variable that is not there");
  return data.variables[variable.getId()].constant;
}

}  // namespace poplar
