// tokenizer.json, as Hugging Face's tokenizers write it.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/json.h"
#include "superstep/base/printable.h"
#include "superstep/language/tokenizer/tokenizer_state.h"

namespace superstep::language {
namespace {

using nlohmann::json;
using State = Tokenizer::State;

class Reader {
 public:
  Reader(const json& object, State& state) : object_(object), s_(state) {}

  void read() {
    if (is_word_piece(object_.at("model"))) {
      s_.pieces.emplace();
      s_.pieces->form = {.clean = false, .ideographs = false, .lowercase = false, .strip_accents = false};
      if (type_of(object_.value("pre_tokenizer", json())) != "BertPreTokenizer")
        refuse("WordPiece without the pre_tokenizer 'BertPreTokenizer'");
    }
    read_normalizer(object_.value("normalizer", json()));
    read_splitting(object_.value("pre_tokenizer", json()));
    read_model(object_.at("model"));
    for (const json& each : object_.value("added_tokens", json::array())) {
      const auto id = each.at("id").get<std::int32_t>();
      s_.add_token(each.at("content").get<std::string>(), id);
      s_.added.emplace_back(each.at("content").get<std::string>(), id);
    }
    s_.index();
    if (!s_.pieces) read_merges(object_.at("model").at("merges"));
    read_unknown(object_.at("model"));
    read_template(object_.value("post_processor", json()));
    if (s_.pieces) find_separators();
    check_ends();
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(
        ErrorCode::unsupported, fmt::format("{} is not read", printable(what)), s_.where,
        "byte pair encodings as GPT-2, Llama and Mistral have them are, and pieces of words as BERT's");
  }

  static std::string type_of(const json& object) {
    return object.is_object() ? object.value("type", std::string()) : std::string();
  }

  static bool is_word_piece(const json& model) { return type_of(model) == "WordPiece"; }

  // How BERT's words look. Accents go where letters become small ones, unless the file says otherwise.
  void read_word_form(const json& normalizer) {
    WordForm& form = s_.pieces->form;
    form.clean = normalizer.value("clean_text", true);
    form.ideographs = normalizer.value("handle_chinese_chars", true);
    form.lowercase = normalizer.value("lowercase", true);
    const json accents = normalizer.value("strip_accents", json());
    form.strip_accents = accents.is_boolean() ? accents.get<bool>() : form.lowercase;
  }

  // A space before the text and a sign for spaces, the form of BERT's words, or nothing.
  void read_normalizer(const json& normalizer) {
    const std::string type = type_of(normalizer);
    if (type.empty()) return;
    if (type == "Sequence") {
      for (const json& each : normalizer.at("normalizers")) read_normalizer(each);
    } else if (type == "BertNormalizer" && s_.pieces) {
      read_word_form(normalizer);
    } else if (type == "Prepend" && normalizer.at("prepend") == space_sign) {
      s_.prefix = State::Prefix::always;
    } else if (type != "Replace" || normalizer.at("content") != space_sign ||
               normalizer.at("pattern") != json{{"String", " "}}) {
      refuse("the normalizer '" + type + "'");
    }
  }

  void read_splitting(const json& splitting) {
    const std::string type = type_of(splitting);
    if (type.empty()) return;
    if (type == "Sequence") {
      for (const json& each : splitting.at("pretokenizers")) read_splitting(each);
    } else if (type == "BertPreTokenizer" && s_.pieces) {
      return;  // spaces and signs part words, as word_pieces.h says
    } else if (type == "Split") {
      read_split(splitting);
    } else if (type == "ByteLevel") {
      s_.of_bytes = true;
      if (splitting.value("add_prefix_space", true)) s_.prefix = State::Prefix::always;
      if (splitting.value("use_regex", true)) s_.splitters.emplace_back(gpt2_pattern, s_.where);
    } else if (type == "Metaspace" && splitting.value("replacement", std::string()) == space_sign) {
      const std::string scheme = splitting.value("prepend_scheme", std::string("always"));
      s_.prefix = scheme == "never"   ? State::Prefix::never
                  : scheme == "first" ? State::Prefix::first
                                      : State::Prefix::always;
      s_.splits_at_spaces = splitting.value("split", true);
    } else {
      refuse("the pre_tokenizer '" + type + "'");
    }
  }

  void read_split(const json& split) {
    const json& pattern = split.at("pattern");
    if (!pattern.contains("Regex") || split.value("behavior", std::string()) != "Isolated" ||
        split.value("invert", false))
      refuse("a Split that does not isolate the matches of a pattern");
    s_.splitters.emplace_back(pattern.at("Regex").get<std::string>(), s_.where);
  }

  void read_pieces(const json& model) {
    s_.pieces->within = model.value("continuing_subword_prefix", std::string("##"));
    s_.pieces->longest = model.value("max_input_chars_per_word", std::size_t{100});
    const json decoder = object_.value("decoder", json());
    s_.pieces->tidy = !decoder.is_object() || decoder.value("cleanup", true);
    for (const auto& [text, id] : model.at("vocab").items()) s_.add_token(text, id.get<std::int32_t>());
  }

  void find_separators() {
    const auto token = [&](const char* text) {
      const auto found = s_.ids.find(text);
      return found == s_.ids.end() ? -1 : found->second;
    };
    s_.pieces->first = token("[CLS]"), s_.pieces->separator = token("[SEP]");
  }

  void read_model(const json& model) {
    if (s_.pieces) return read_pieces(model);
    if (type_of(model) != "BPE" && model.contains("type")) refuse("the model '" + type_of(model) + "'");
    for (const char* name : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"})
      if (model.contains(name) && !model[name].is_null() && model[name] != "")
        refuse(std::string("a model's ") + name);
    for (const auto& [text, id] : model.at("vocab").items()) s_.add_token(text, id.get<std::int32_t>());
    s_.words_as_they_are = model.value("ignore_merges", false);
  }

  void read_merges(const json& merges) {
    for (const json& each : merges) {
      if (each.is_array() && each.size() == 2) {
        s_.add_merge(each[0].get<std::string>(), each[1].get<std::string>());
        continue;
      }
      const auto pair = each.get<std::string>();
      const std::size_t space = pair.find(' ', 1);
      if (space == std::string::npos)
        throw Error(ErrorCode::bad_file, fmt::format("merge '{}' is no pair", printable(pair)), s_.where);
      s_.add_merge(pair.substr(0, space), pair.substr(space + 1));
    }
  }

  void read_unknown(const json& model) {
    if (!model.value("byte_fallback", false)) s_.bytes.fill(-1);
    s_.joins_unknown = model.value("fuse_unk", false);
    if (!model.contains("unk_token") || !model["unk_token"].is_string()) return;
    const auto found = s_.ids.find(model["unk_token"].get<std::string>());
    if (found != s_.ids.end()) s_.unknown = found->second;
  }

  void check_ends() const {
    for (const auto* tokens : {&s_.begin, &s_.end})
      for (const std::int32_t token : *tokens)
        if (token < 0 || static_cast<std::size_t>(token) >= s_.texts.size())
          throw Error(ErrorCode::bad_file,
                      fmt::format("every text {} with token {}, of {}",
                                  tokens == &s_.begin ? "begins" : "ends", token, s_.texts.size()),
                      s_.where);
  }

  // The special tokens before a text and, of pieces of words, behind it: a text that is gone on with has none
  // there.
  void read_template(const json& processor) {
    const std::string type = type_of(processor);
    if (type == "Sequence")
      for (const json& each : processor.at("processors")) read_template(each);
    if (type == "BertProcessing" && s_.pieces) {
      s_.begin.push_back(processor.at("cls").at(1).get<std::int32_t>());
      s_.end.push_back(processor.at("sep").at(1).get<std::int32_t>());
    }
    if (type != "TemplateProcessing") return;
    bool behind = false;
    for (const json& part : processor.at("single")) {
      if (part.contains("Sequence")) behind = true;
      if (!part.contains("SpecialToken") || (behind && !s_.pieces)) continue;
      const auto name = part["SpecialToken"].at("id").get<std::string>();
      for (const json& id : processor.at("special_tokens").at(name).at("ids"))
        (behind ? s_.end : s_.begin).push_back(id.get<std::int32_t>());
    }
  }

  const json& object_;
  State& s_;
};

}  // namespace

Tokenizer Tokenizer::from_json(std::string_view text, const std::string& where) {
  const json object = parse_json(text);
  if (!object.is_object()) throw Error(ErrorCode::bad_file, "this is no JSON object", where);
  auto state = std::make_unique<State>();
  state->where = where;
  try {
    Reader(object, *state).read();
  } catch (const json::exception& error) {
    throw Error(ErrorCode::bad_file, fmt::format("this is no tokenizer: {}", printable(error.what())), where);
  }
  return Tokenizer(std::move(state));
}

}  // namespace superstep::language
