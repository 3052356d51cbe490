// What a model's inputs were in its training, kept with the run: what it is asked later is held against it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "superstep/base/thread_pool.h"
#include "superstep/run/model.h"
#include "superstep/run/task.h"

namespace superstep::run {

// An input of a model whose samples are rows of a batch. Of other models there are none here.
struct InputPort {
  std::string name;
  ElementType type;
  Shape row;
};
std::vector<InputPort> row_inputs(const Model& model);
// Of the samples, in the order of the ports.
std::vector<Tensor> filled_inputs(const Task& task, const std::vector<InputPort>& ports,
                                  std::span<const std::int64_t> indices, ThreadPool& pool);

struct InputRange {
  std::string name;
  double low = 0, high = 0;

  // A tenth of the range beyond it is no other kind of data: extremes of another draw of the same (chosen).
  double least() const { return low - (high - low) / 10; }
  double most() const { return high + (high - low) / 10; }
};

struct InputSurvey {
  std::vector<InputRange> ranges;  // of inputs that are floats, over all their elements
  std::int64_t samples = 0;        // that were looked at
  std::int64_t repeated = 0;       // those that are another one again, to the bit
  std::int64_t not_finite = 0;     // those with an element that is NaN or infinite

  // What is odd about them, a line each: all alike, repeated, constant, not finite. Empty: nothing is.
  std::vector<std::string> findings() const;
};

// Of samples below `count`, spread evenly, as many as fit into some MB. Nothing of a model whose inputs are
// not rows of a batch, or not floats.
InputSurvey survey_inputs(const Task& task, const Model& model, std::int64_t count, ThreadPool& pool);

// FOLDER/inputs.json. Reading gives nothing where there is none, or it is damaged: runs of older versions.
void write_input_ranges(const std::filesystem::path& folder, const InputSurvey& survey);
std::vector<InputRange> read_input_ranges(const std::filesystem::path& folder);

// Samples of all the task's that have an element outside of a range, and in which input most of them have.
struct OutsideOfRanges {
  std::int64_t samples = 0;
  std::string input;
};
OutsideOfRanges count_outside(const Task& task, const Model& model, const std::vector<InputRange>& ranges,
                              ThreadPool& pool);

}  // namespace superstep::run
