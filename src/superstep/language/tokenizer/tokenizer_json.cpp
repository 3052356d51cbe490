// tokenizer.json, as Hugging Face's tokenizers write it.
#include <fmt/format.h>

#include <algorithm>
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
    // What a text is cut or filled up to is of training: transformers sets both anew for every text.
    require_known(object_, "the file",
                  {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                   "post_processor", "decoder", "model"});
    if (is_word_piece(object_.at("model"))) {
      s_.pieces.emplace();
      s_.pieces->form = {.clean = false, .ideographs = false, .lowercase = false, .strip_accents = false};
      if (type_of(object_.value("pre_tokenizer", json())) != "BertPreTokenizer")
        refuse("WordPiece without the pre_tokenizer 'BertPreTokenizer'");
    }
    read_normalizer(object_.value("normalizer", json()));
    read_splitting(object_.value("pre_tokenizer", json()));
    read_model(object_.at("model"));
    for (const json& each : object_.value("added_tokens", json::array())) read_added(each);
    s_.index();
    if (!s_.pieces) read_merges(object_.at("model").at("merges"));
    read_unknown(object_.at("model"));
    read_template(object_.value("post_processor", json()));
    if (s_.pieces) find_separators();
    const json decoder = object_.value("decoder", json());
    s_.names_are_bytes = decoder.is_null();
    read_decoder(decoder);
    check_ends();
    if (s_.of_bytes && (s_.prepends || s_.marks_spaces)) refuse("a sign for spaces beside letters for bytes");
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(
        ErrorCode::unsupported, fmt::format("{} is not read", printable(what)), s_.where,
        "byte pair encodings as GPT-2, Llama and Mistral have them are, and pieces of words as BERT's");
  }

  // An entry that nothing here knows may change a text's tokens.
  void require_known(const json& object, const std::string& part,
                     std::initializer_list<std::string_view> known) const {
    if (!object.is_object()) return;
    for (const auto& [name, value] : object.items())
      if (name != "type" && !value.is_null() && std::ranges::find(known, name) == known.end())
        refuse(fmt::format("'{}' of {}", name, part));
  }

  void read_added(const json& token) {
    require_known(token, "an added token",
                  {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
    const bool special = token.value("special", true);
    AddedToken added{.text = token.at("content").get<std::string>(),
                     .id = token.at("id").get<std::int32_t>(),
                     .takes_left = token.value("lstrip", false),
                     .takes_right = token.value("rstrip", false),
                     .whole_word = token.value("single_word", false)};
    const auto place = static_cast<std::size_t>(std::max(added.id, 0));
    const bool of_model = place < s_.texts.size() && !s_.texts[place].empty();
    s_.add_token(added.text, added.id);
    s_.only_added.resize(s_.texts.size(), false);
    s_.only_added[place] = !of_model;
    s_.is_hidden.resize(s_.texts.size(), false);
    s_.is_hidden[static_cast<std::size_t>(added.id)] = special;
    if (!token.value("normalized", !special)) {
      s_.added.push_back(std::move(added));
    } else if (s_.pieces) {
      const WordForm& form = s_.pieces->form;
      if (form.clean || form.ideographs || form.lowercase || form.strip_accents)
        refuse(
            fmt::format("the added token '{}', which is looked for behind the BertNormalizer,", added.text));
      s_.added_to_normalized.push_back(std::move(added));
    } else {
      added.text = normalized(s_, added.text);
      s_.shown.emplace(added.id, added.text);
      s_.added_to_normalized.push_back(std::move(added));
    }
  }

  static std::string type_of(const json& object) {
    return object.is_object() ? object.value("type", std::string()) : std::string();
  }

  static bool is_word_piece(const json& model) { return type_of(model) == "WordPiece"; }

  // How BERT's words look. Accents go where letters become small ones, unless the file says otherwise.
  void read_word_form(const json& normalizer) {
    WordForm& form = s_.pieces->form;
    require_known(normalizer, "a BertNormalizer",
                  {"clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
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
      s_.prepends = true;
    } else if (type == "Replace" && normalizer.at("content") == space_sign &&
               normalizer.at("pattern") == json{{"String", " "}}) {
      s_.marks_spaces = true;
    } else {
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
      require_known(splitting, "a ByteLevel", {"add_prefix_space", "trim_offsets", "use_regex"});
      if (s_.of_bytes) refuse("a ByteLevel behind another one");
      s_.of_bytes = true;
      const bool spaced = splitting.value("add_prefix_space", true);
      if (spaced && !s_.splitters.empty()) refuse("a ByteLevel that adds spaces to the pieces of a Split");
      if (spaced) s_.prefix = State::Prefix::always;
      if (splitting.value("use_regex", true)) s_.splitters.emplace_back(gpt2_pattern, s_.where);
    } else if (type == "Metaspace" && splitting.value("replacement", std::string()) == space_sign &&
               s_.splitters.empty()) {
      s_.prefix = prefix_of(splitting);
      s_.metaspace = true;
      s_.splits_at_spaces = splitting.value("split", true);
    } else {
      refuse("the pre_tokenizer '" + type + "'");
    }
  }

  // Older files have add_prefix_space alone.
  State::Prefix prefix_of(const json& metaspace) const {
    require_known(metaspace, "a Metaspace",
                  {"replacement", "str_rep", "prepend_scheme", "add_prefix_space", "split"});
    const bool added = metaspace.value("add_prefix_space", true);
    const std::string scheme = metaspace.value("prepend_scheme", std::string(added ? "always" : "never"));
    if (scheme == "never") return State::Prefix::never;
    if (scheme == "first") return State::Prefix::first;
    if (scheme != "always") refuse(fmt::format("the prepend_scheme '{}'", scheme));
    return State::Prefix::always;
  }

  void read_split(const json& split) {
    require_known(split, "a Split", {"pattern", "behavior", "invert"});
    if (s_.of_bytes) refuse("a Split behind a ByteLevel");
    const json& pattern = split.at("pattern");
    if (!pattern.contains("Regex") || split.value("behavior", std::string()) != "Isolated" ||
        split.value("invert", false))
      refuse("a Split that does not isolate the matches of a pattern");
    s_.splitters.emplace_back(pattern.at("Regex").get<std::string>(), s_.where);
  }

  void read_pieces(const json& model) {
    s_.pieces->within = model.value("continuing_subword_prefix", std::string("##"));
    s_.pieces->longest = model.value("max_input_chars_per_word", std::size_t{100});
    require_known(model, "a WordPiece",
                  {"unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"});
    for (const auto& [text, id] : model.at("vocab").items()) s_.add_token(text, id.get<std::int32_t>());
  }

  void find_separators() {
    const auto token = [&](const char* text) {
      const auto found = std::ranges::find(s_.texts, text);
      return found == s_.texts.end() ? -1 : static_cast<std::int32_t>(found - s_.texts.begin());
    };
    s_.pieces->first = token("[CLS]"), s_.pieces->separator = token("[SEP]");
  }

  void read_model(const json& model) {
    if (s_.pieces) return read_pieces(model);
    if (type_of(model) != "BPE" && model.contains("type")) refuse("the model '" + type_of(model) + "'");
    for (const char* name : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"})
      if (model.contains(name) && !model[name].is_null() && model[name] != "" && model[name] != 0)
        refuse(std::string("a model's ") + name);
    require_known(model, "a BPE",
                  {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "unk_token", "fuse_unk",
                   "byte_fallback", "ignore_merges", "vocab", "merges"});
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
    if (type.empty() || type == "ByteLevel") return;  // places within the text alone
    if (type == "Sequence") {
      for (const json& each : processor.at("processors")) read_template(each);
      return;
    }
    if (type == "BertProcessing" && s_.pieces) {
      s_.begin.push_back(processor.at("cls").at(1).get<std::int32_t>());
      s_.end.push_back(processor.at("sep").at(1).get<std::int32_t>());
      return;
    }
    if (type != "TemplateProcessing") refuse("the post_processor '" + type + "'");
    require_known(processor, "a TemplateProcessing", {"single", "pair", "special_tokens"});
    bool behind = false;
    for (const json& part : processor.at("single")) {
      if (part.contains("Sequence")) behind = true;
      if (!part.contains("SpecialToken") || (behind && !s_.pieces)) continue;
      const auto name = part["SpecialToken"].at("id").get<std::string>();
      for (const json& id : processor.at("special_tokens").at(name).at("ids"))
        (behind ? s_.end : s_.begin).push_back(id.get<std::int32_t>());
    }
  }

  // How tokens become a text again.
  void read_decoder(const json& decoder) {
    const std::string type = type_of(decoder);
    if (s_.pieces) return read_decoder_of_words(decoder);
    if (type.empty()) {
      if (s_.prepends || s_.prefix != State::Prefix::never) s_.first_space = State::FirstSpace::left_out;
    } else if (type == "Sequence") {
      for (const json& each : decoder.at("decoders")) read_decoder(each);
    } else if (type == "Metaspace") {
      if (prefix_of(decoder) != State::Prefix::never) s_.first_space = State::FirstSpace::all_left_out;
    } else if (type == "Strip") {
      if (decoder != json{{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}})
        refuse("a decoder that strips more than the first space");
      s_.first_space = State::FirstSpace::left_out;
    } else if (type == "Replace") {
      if (decoder != json{{"type", "Replace"}, {"pattern", {{"String", space_sign}}}, {"content", " "}})
        refuse("a decoder that replaces something else than the sign for spaces");
    } else if (type == "ByteFallback") {
      s_.names_are_bytes = true;
    } else if (type != "ByteLevel" && type != "Fuse") {
      refuse("the decoder '" + type + "'");
    }
  }

  void read_decoder_of_words(const json& decoder) {
    const std::string type = type_of(decoder);
    if (type.empty()) return;
    if (type != "WordPiece") refuse("the decoder '" + type + "'");
    require_known(decoder, "a WordPiece decoder", {"prefix", "cleanup"});
    if (decoder.value("prefix", std::string("##")) != s_.pieces->within)
      refuse("a decoder of another prefix than the model's");
    s_.pieces->tidy = decoder.value("cleanup", true);
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
