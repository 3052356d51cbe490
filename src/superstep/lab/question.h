// What a command asks of a machine about a model of the zoo or of a user, for the resolver of configurations
// (machine/configuration/).
#pragma once

#include <string>

#include "superstep/machine/configuration/question.h"
#include "superstep/run/model.h"

namespace superstep::lab {

// A form's name ("bert-large-squad") as the workload that it is a form of, with its options before the
// user's.
run::TrainSettings as_workload(run::TrainSettings settings);

// The name that public set-ups know the model by: the workload's or a form's, whatever length its sequences
// have; empty where its options make it another model.
std::string set_up_name(const run::TrainSettings& settings);

// Nothing stated yet: the model's own facts, and its recipe's batch (one sample for an answer).
machine::Question question_of(const run::Model& model, bool training);

}  // namespace superstep::lab
