// A task over tables: the fields of a generator, made in memory or read from the file it writes, one row a
// sample. A workload says which field becomes which input or target, and how.
#pragma once

#include <functional>
#include <map>

#include "superstep/run/task.h"

namespace superstep::run {

using Fields = std::map<std::string, Tensor>;  // by name, [samples, ...] each

// An input or a target of the training graph, made of a field. The shapes agree but for axes of one element.
struct Column {
  std::string field;
  double (*convert)(double) = nullptr;  // of every element; null: as it is
};

// What the methods that a model is held against are given.
struct TableSamples {
  const Fields& fields;
  std::int64_t training;                  // the first so many samples may be learnt from
  std::span<const std::int64_t> indices;  // the samples to be judged on, at least one
  ThreadPool& pool;
};

struct TableSpec {
  std::string generator;              // its name in data/generators.h
  std::vector<std::string> settings;  // name=value, of the generator
  std::int64_t default_samples = 1000;
  double training_share = 0.8;
  std::string group;  // a field: neighbouring samples of one value stay on one side of the split
  std::vector<Column> inputs, targets;
  std::vector<std::string> more;  // fields that the quality needs beside those
  std::vector<Metric> (*quality)(const Fields& fields, std::span<const std::int64_t> indices,
                                 std::span<const Tensor> outputs) = nullptr;
  std::string (*present)(const Fields& fields, const Predictions& found, page::Page& page) = nullptr;
  std::function<References(const TableSamples& samples)> references = nullptr;
  double reference_seconds = 0;               // about how long that takes
  std::vector<std::string> reference_fields;  // that it needs beside those; a file may lack them
};

// Throws Error (bad_file, not_found) naming the file and the data set.
std::unique_ptr<Task> open_table_task(TableSpec spec, const TaskSettings& settings);

Metric quality_metric(const char* name, double value, const char* unit = "");

// The first `count` sample numbers.
std::vector<std::int64_t> first_samples(std::int64_t count);

// The share of samples whose largest score is that of field `label`.
std::vector<Metric> accuracy_of_labels(const Fields& fields, std::span<const std::int64_t> indices,
                                       std::span<const Tensor> outputs);

// Of classifiers: the most frequent class of the training samples, and a support vector machine on oriented
// gradients. `images`: u8 [n, channels, height, width].
References image_references(const Tensor& images, const Tensor& labels, const TableSamples& samples);

// The root of the mean (output - field)^2 over all elements; the mean |output - field|.
double root_mean_square_error(const Tensor& field, std::span<const std::int64_t> indices,
                              const Tensor& output);
double mean_absolute_error(const Tensor& field, std::span<const std::int64_t> indices, const Tensor& output);

}  // namespace superstep::run
