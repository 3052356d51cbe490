// The configuration that a question means, and the prediction of it. One order for every command: what is
// stated; then what public set-ups of this model on this kind of machine say; then a search for the best cut
// over the units that there are; then the zoo's recipe. What is still open is a set of plausible
// configurations: the median is reported, and the interval holds all of them.
#pragma once

#include <string>
#include <vector>

#include "superstep/machine/configuration/question.h"

namespace superstep::machine {

// Those that are plausible, at most a dozen, likeliest first. `graph_at` is asked only where a search is
// needed. Throws what predict() throws.
std::vector<Configuration> plausible_configurations(const Machine& machine, const Question& question,
                                                    const GraphAt& graph_at);

// Those that public set-ups say, and nothing contradicts that is stated; empty: there are none.
std::vector<Configuration> set_up_configurations(const Machine& machine, const Question& question);

// Balances a pipeline of which only the number of stages is known. Throws what predict() throws.
void balance_stages(const Machine& machine, Configuration& configuration, const GraphAt& graph_at);

struct Answer {
  Configuration configuration;  // of `prediction`
  Prediction prediction;        // of the median configuration; its intervals hold all plausible ones
  std::size_t plausible = 1;    // configurations that were predicted and fit
  std::string nearest;          // where it does not fit: what would, in words
};

// Where no plausible configuration fits, a training is recomputed and then cut otherwise, as far as what was
// stated leaves that open; the answer says what was changed. Throws what predict() throws.
Answer answer(const Machine& machine, const Question& question, const GraphAt& graph_at);

// "micro-batch 20: set-up poptorch/resnet50 (graphcore/examples ...)" for each fact.
std::vector<std::string> words_of(const std::vector<Fact>& facts);

// All facts of a configuration, stated: the same one on another machine.
Stated stated_by(const PredictSettings& settings);

}  // namespace superstep::machine
