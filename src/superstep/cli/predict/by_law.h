// Predictions by the laws of machine/rates: language models, networks by their sums, and primitives of
// machines that work kernel by kernel; of every machine of which a data sheet is known.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

namespace superstep::cli {

// Options that are of language models alone.
struct LanguageArguments {
  std::int64_t tokens_in = 0, tokens_out = 0, concurrency = 0;
  int tensor_parallel = 0, pipeline_parallel = 0;
};
void add_language_options(CLI::App& command, LanguageArguments& to);

struct LawQuestion {
  std::string workload, machine, stack, precision;
  bool training = false;
  std::int64_t batch = 0, units = 0;
  LanguageArguments language;
};

// Whether the laws answer a question: of language models and networks always, of primitives on GPUs.
bool law_answers(const CLI::App& command, const LawQuestion& question);
// Throws Error (invalid_argument) where `stack` is given and no call of the law was measured by it.
void refuse_unmeasured_stack(const std::string& law, const std::string& stack);
// Prints the answer and writes its result. Throws Error.
void predict_by_law(const CLI::App& command, const LawQuestion& question);

}  // namespace superstep::cli
