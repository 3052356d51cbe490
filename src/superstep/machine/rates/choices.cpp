#include "superstep/machine/rates/choices.h"

#include <fmt/format.h>

#include "superstep/base/error.h"
#include "superstep/base/option_range.h"
#include "superstep/base/text.h"
#include "superstep/machine/built_in.h"

namespace superstep::machine {
namespace {

constexpr const char* header =
    "# Means of |log error| over measured networks that both predict: the law's with the model or the "
    "machine "
    "left\n"
    "# out of its fit (their mean), and the models' of single machines, to which no such row is fitted.\n"
    "style,mode,rows,law,model\n";

Choice choice_in(const std::string& line, const std::string& place) {
  constexpr std::size_t columns = 5;  // of the header
  const std::vector<std::string> cells = split(line, ',');
  if (cells.size() != columns)
    throw Error(ErrorCode::bad_file, fmt::format("has {} cells of {}", cells.size(), columns), place);
  const auto rows = whole_number(cells[2]);
  const auto law = finite_number(cells[3]), model = finite_number(cells[4]);
  if (!rows || !law || !model || *rows < 1 || *law < 0 || *model < 0)
    throw Error(ErrorCode::bad_file, "rows and errors are numbers, not below zero", place);
  if (cells[1] != "train" && cells[1] != "infer")
    throw Error(ErrorCode::bad_file, fmt::format("'{}' is neither train nor infer", cells[1]), place);
  return {cells[0], cells[1] == "train", static_cast<std::size_t>(*rows), *law, *model};
}

}  // namespace

std::string choices_text(const std::vector<Choice>& choices) {
  std::string text = header;
  for (const Choice& one : choices)
    text += fmt::format("{},{},{},{:.3f},{:.3f}\n", one.style, one.training ? "train" : "infer", one.rows,
                        one.law_error, one.model_error);
  return text;
}

std::vector<Choice> read_choices(std::string_view text, const std::string& where) {
  std::vector<Choice> choices;
  std::size_t number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    if (line.empty() || line.front() == '#' || line.starts_with("style,")) continue;
    choices.push_back(choice_in(line, fmt::format("{}:{}", where, number)));
  }
  return choices;
}

const Choice* kept_choice(std::string_view style, bool training) {
  static const std::vector<Choice> kept = [] {
    std::vector<Choice> all;
    for (const BuiltIn& file : rate_files())
      if (file.id == "choices") all = read_choices(file.text, "machines/rates/choices.csv");
    return all;
  }();
  for (const Choice& one : kept)
    if (one.style == style && one.training == training) return &one;
  return nullptr;
}

}  // namespace superstep::machine
