// Rows of language models by their shapes ("llm:llama-2-7b"): requests on units that share layers or stages,
// and training, by the laws of machine/rates.
#pragma once

#include <string>

#include "superstep/lab/validate/application_rows.h"

namespace superstep::lab {

bool is_language_model(const std::string& workload);        // "llm:" before a name
bool is_known_language_model(const std::string& workload);  // and its shape is known

// The row's `units` are pipeline_stages x replicas x those that share every layer; `micro_batch` are the
// requests of a replica at a time, each of `tokens_in` tokens that makes `tokens_out`.
RowPrediction language_row(const PublishedTable& table, std::size_t row);

}  // namespace superstep::lab
