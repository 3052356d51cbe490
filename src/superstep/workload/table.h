// A task over tables: the fields of a generator, made in memory or read from the file it writes, one row a
// sample. A workload says which field becomes which input or target, and how.
#pragma once

#include <functional>

#include "superstep/base/random.h"
#include "superstep/workload/generated.h"

namespace superstep::workload {

// An input or a target of the training graph, made of a field. The shapes agree but for axes of one element,
// where `make` does not say otherwise.
struct Column {
  std::string field;
  double (*convert)(double) = nullptr;  // of every element; null: as it is
  // Fills the row of a sample out of the field, in place of `convert`; of integers below 2^24, too. Called by
  // several threads.
  std::function<void(const Tensor& field, std::int64_t index, std::span<float> row)> make = nullptr;
};

// What the methods that a model is held against are given.
struct TableSamples {
  const Fields& fields;
  std::int64_t training;                  // the first so many samples may be learnt from
  std::span<const std::int64_t> indices;  // the samples to be judged on, at least one
  ThreadPool& pool;
};

struct TableSpec {
  std::string generator;              // its name in physics/generators.h
  std::vector<std::string> settings;  // name=value, of the generator
  std::int64_t default_samples = 1000;
  double training_share = 0.8;
  std::string group;           // a field: neighbouring samples of one value stay on one side of the split
  bool group_required = true;  // a file must have it; else samples of one that has not are split one by one
  std::vector<Column> inputs, targets;
  std::vector<std::string> more;  // fields that the quality needs beside those
  // A field of numbers of classes, 0 to `classes` - 1: others are refused, and the model's option for how
  // many there are is advised, where it has one.
  std::string labels = {};
  std::int64_t classes = 0;
  std::string classes_option = {};
  bool looks_at_all =
      false;  // the quality needs samples beside those that are judged: all are held in memory
  // Once the fields are there, all of them in memory: columns whose `make` needs more of them than its own.
  std::function<void(TableSpec& spec, const Fields& fields)> prepare = nullptr;
  // Changes one row of a training batch, inputs and targets, by what the stream draws alone: a function of
  // seed, epoch and sample. `training` of the samples may be looked at. Called by several threads.
  std::function<void(const Fields& fields, std::int64_t training, RandomStream& random,
                     std::span<Tensor> batch, std::size_t row)>
      augment = nullptr;
  bool augments_by_others = false;  // whether that looks at other samples than its row's
  std::function<std::vector<Metric>(const Fields& fields, std::span<const std::int64_t> indices,
                                    std::span<const Tensor> outputs)>
      quality = nullptr;
  std::string mask;       // a field [T] of sequences: 0 where padding is, behind the tokens
  std::string spread_of;  // the field that the only output says: what its spread over passes is held against
  std::function<std::string(const Fields& fields, const Predictions& found, page::Page& page)> present =
      nullptr;
  std::function<References(const TableSamples& samples)> references = nullptr;
  std::function<ForecastReferences(const Fields& fields, std::int64_t training,
                                   std::span<const std::int64_t> indices)>
      forecast_references = nullptr;
  double reference_seconds = 0;               // about how long that takes
  std::vector<std::string> reference_fields;  // that it needs beside those; a file may lack them
};

// Throws Error (bad_file, not_found) naming the file and the data set.
std::unique_ptr<Task> open_table_task(TableSpec spec, const TaskSettings& settings);
// Over fields that were read from settings.data already, in a form of the workload's own.
std::unique_ptr<Task> open_table_task(TableSpec spec, Fields fields, const TaskSettings& settings);

}  // namespace superstep::workload
