// vocab.txt, as BERT's models came with it: a piece a line, its number that of the line.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/printable.h"
#include "superstep/language/tokenizer/tokenizer_state.h"

namespace superstep::language {

Tokenizer Tokenizer::from_vocabulary(std::string_view lines, const WordForm& form, const std::string& where) {
  auto state = std::make_unique<State>();
  State& s = *state;
  s.where = where;
  s.pieces = State::Pieces{.form = form};
  std::int32_t id = 0;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    std::string text(lines.substr(0, end));
    lines.remove_prefix(std::min(lines.size(), end + 1));
    if (text.ends_with('\r')) text.pop_back();
    const bool special = text.size() > 2 && text.starts_with('[') && text.ends_with(']');
    if (special) s.added.push_back({.text = text, .id = id});
    s.is_hidden.push_back(special);
    s.add_token(text, id++);
  }
  s.index();
  for (const auto& [name, to] : {std::pair("[UNK]", &s.unknown), std::pair("[CLS]", &s.pieces->first),
                                 std::pair("[SEP]", &s.pieces->separator)}) {
    const auto found = s.ids.find(name);
    if (found == s.ids.end())
      throw Error(ErrorCode::bad_file, fmt::format("it has no line {}", name), where,
                  "a vocabulary of pieces of words has one token a line");
    *to = found->second;
  }
  s.begin = {s.pieces->first};
  s.end = {s.pieces->separator};
  return Tokenizer(std::move(state));
}

WordForm word_form_beside(const std::filesystem::path& vocabulary) {
  const std::filesystem::path path = vocabulary.parent_path() / "tokenizer_config.json";
  WordForm form;
  if (!std::filesystem::exists(path)) return form;
  const auto config = parse_json(read_text_file(path));
  if (!config.is_object()) throw Error(ErrorCode::bad_file, "this is no JSON object", path.string());
  const auto said = [&](const char* name, bool otherwise) {
    const auto found = config.find(name);
    return found != config.end() && found->is_boolean() ? found->get<bool>() : otherwise;
  };
  form.lowercase = said("do_lower_case", true);
  form.strip_accents = said("strip_accents", form.lowercase);
  form.ideographs = said("tokenize_chinese_chars", true);
  return form;
}

}  // namespace superstep::language
