// Where the law of networks is nearer to what was measured than the models of single machines, and where it
// is not: machines/rates/choices.csv, which `superstep validate --tables DIR --keep-rates FOLDER` writes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace superstep::machine {

// Of measured networks that both predict, on machines of a style; errors are means of |log|, the law's with
// the model or the machine left out of its fit, in the mean of both.
struct Choice {
  std::string style;
  bool training = true;
  std::size_t rows = 0;
  double law_error = 0, model_error = 0;

  bool law() const { return law_error < model_error; }
};

std::string choices_text(const std::vector<Choice>& choices);
// Throws Error (bad_file), naming the line.
std::vector<Choice> read_choices(std::string_view text, const std::string& where);

// Of the program's own; null: nothing was measured that says it.
const Choice* kept_choice(std::string_view style, bool training);

}  // namespace superstep::machine
