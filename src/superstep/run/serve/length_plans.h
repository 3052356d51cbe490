// Sequences through plans of several lengths: each goes through the shortest that holds it, so that little
// of what is computed is padding. The answers are those of the full length.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "superstep/run/serve/evaluate.h"
#include "superstep/run/train/train_settings.h"

namespace superstep::run {

// Scores where padding was, whose plan never computed them: below any that a model gives.
inline constexpr double padding_score = -10000;

class LengthPlans {
 public:
  struct Settings {
    TrainSettings model;                // as it is served; its option "length" is the full one
    std::vector<std::int64_t> lengths;  // below the full one; empty: usual_lengths()
    target::CompileOptions compile;     // of every plan
    const target::Target* target = nullptr;
  };

  // Throws Error (invalid_argument) where a length is not below the full one, (unsupported) where the model
  // has no option "length" or is not of sequences alone: every input and output [N, T, ...].
  explicit LengthPlans(const Settings& settings);

  void set_parameters(const std::map<std::string, Tensor>& states, const std::string& where);

  // As Evaluator::predict(), by Task::used_length().
  std::vector<Tensor> predict(const Task& task, std::span<const std::int64_t> indices, ThreadPool& pool);

  // Of all calls of predict(): how long plans took to compile, and how many samples went through each length.
  double compile_seconds() const { return compile_seconds_; }
  const std::map<std::int64_t, std::int64_t>& used() const { return used_; }
  // That of the plan by which a sequence of so many tokens goes.
  std::int64_t length_for(std::int64_t tokens) const;
  std::int64_t full() const { return plans_.rbegin()->first; }

 private:
  std::map<std::int64_t, std::unique_ptr<Evaluator>> plans_;  // by length, the full one last
  std::map<std::int64_t, std::int64_t> used_;
  double compile_seconds_ = 0;
  std::vector<graph::ValueType> outputs_;  // of the full length, at one sample
};

// 64, 128, 256 and 384, those below `full`.
std::vector<std::int64_t> usual_lengths(std::int64_t full);

// "64,128". Throws Error (invalid_argument) on anything else.
std::vector<std::int64_t> lengths_from_text(const std::string& text);

}  // namespace superstep::run
