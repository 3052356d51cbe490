#include "superstep/lab/advise/shared_batch.h"

#include <fmt/format.h>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/lab/question.h"
#include "superstep/machine/configuration/resolve.h"

namespace superstep::lab {

machine::Prediction predict_shared(const machine::Machine& machine, const run::Model& model,
                                   GraphsByBatch& graphs, const SharedBatch& asked) {
  if (asked.batch % asked.units != 0)
    throw Error(ErrorCode::unsupported, fmt::format("{} devices do not share it evenly", asked.units));
  machine::Question question = question_of(model, true);
  if (!asked.precision.empty()) question.stated.precision = asked.precision;
  question.stated.global_batch = asked.batch;
  question.stated.units = question.stated.replicas = asked.units;
  question.stated.micro_batch = asked.batch / asked.units;
  question.stated.accumulate = 1;
  question.stated.input_bytes = asked.input_bytes;
  return machine::answer(machine, question,
                         [&](std::int64_t batch) -> const graph::Graph& { return graphs.at(batch); })
      .prediction;
}

void require_possible(const machine::Prediction& prediction) {
  if (!prediction.unsupported.empty())
    throw Error(ErrorCode::unsupported, "no cost model for " + join(prediction.unsupported, ", "));
  if (!prediction.fits) throw Error(ErrorCode::unsupported, "it does not fit");
}

}  // namespace superstep::lab
