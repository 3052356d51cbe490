// The tokenizer that a GGUF file carries in its notes.
#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/base/printable.h"
#include "superstep/language/tokenizer/tokenizer_state.h"

namespace superstep::language {
namespace {

using State = Tokenizer::State;

// That of Llama 3, which GGUF files name "llama-bpe".
constexpr const char* llama3_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Kinds of tokens, as the format numbers them.
constexpr std::int64_t kind_unknown = 2, kind_control = 3, kind_of_user = 4;

class Reader {
 public:
  Reader(const data::WeightFile& file, State& state) : file_(file), s_(state) {}

  void read() {
    require_known_notes();
    const auto* model = find<std::string>("model");
    if (!model) refuse("it carries no tokenizer");
    s_.of_bytes = *model == "gpt2";
    if (*model != "gpt2" && *model != "llama")
      throw Error(ErrorCode::unsupported, fmt::format("the tokenizer '{}' is not read", printable(*model)),
                  s_.where, "gpt2 and llama are");
    const auto* tokens = find<std::vector<std::string>>("tokens");
    if (!tokens) refuse("its tokenizer has no tokens");
    for (std::size_t i = 0; i < tokens->size(); ++i) s_.add_token((*tokens)[i], static_cast<std::int32_t>(i));
    read_kinds(tokens->size());
    s_.index();
    if (s_.of_bytes)
      read_merges();
    else
      read_scores(tokens->size());
    read_begin();
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorCode::bad_file, what, s_.where);
  }

  // What else would change a text's tokens.
  void require_known_notes() const {
    static constexpr std::string_view known[] = {"model",
                                                 "pre",
                                                 "tokens",
                                                 "scores",
                                                 "token_type",
                                                 "merges",
                                                 "bos_token_id",
                                                 "eos_token_id",
                                                 "eot_token_id",
                                                 "eom_token_id",
                                                 "unknown_token_id",
                                                 "padding_token_id",
                                                 "add_bos_token",
                                                 "add_eos_token",
                                                 "add_sep_token",
                                                 "add_space_prefix",
                                                 "seperator_token_id",
                                                 "separator_token_id",
                                                 "cls_token_id",
                                                 "mask_token_id",
                                                 "prefix_token_id",
                                                 "suffix_token_id",
                                                 "middle_token_id",
                                                 "fim_pre_token_id",
                                                 "fim_suf_token_id",
                                                 "fim_mid_token_id",
                                                 "fim_pad_token_id",
                                                 "fim_rep_token_id",
                                                 "fim_sep_token_id",
                                                 "token_type_count"};
    constexpr std::string_view prefix = "tokenizer.ggml.";
    for (const auto& [name, note] : file_.notes()) {
      if (!name.starts_with(prefix)) continue;
      const std::string_view rest = std::string_view(name).substr(prefix.size());
      const bool is_off = rest == "remove_extra_whitespaces" && !flag("remove_extra_whitespaces", true);
      if (!is_off && std::ranges::find(known, rest) == std::end(known))
        throw Error(ErrorCode::unsupported,
                    fmt::format("'{}' of its tokenizer is not honored", printable(name)), s_.where,
                    "give numbers of tokens: --tokens");
    }
  }

  template <class T>
  const T* find(const std::string& name) const {
    const auto found = file_.notes().find("tokenizer.ggml." + name);
    return found == file_.notes().end() ? nullptr : std::get_if<T>(&found->second);
  }
  bool flag(const std::string& name, bool otherwise) const {
    const auto* value = find<std::int64_t>(name);
    return value ? *value != 0 : otherwise;
  }

  void read_kinds(std::size_t tokens) {
    const auto* kinds = find<std::vector<std::int64_t>>("token_type");
    if (!kinds) return;
    if (kinds->size() != tokens) refuse("its tokenizer has another number of tokens and of their kinds");
    s_.is_hidden.assign(tokens, false);
    for (std::size_t i = 0; i < tokens; ++i) {
      const auto id = static_cast<std::int32_t>(i);
      if ((*kinds)[i] == kind_control || (*kinds)[i] == kind_of_user)
        s_.added.push_back({.text = s_.texts[i], .id = id});
      if ((*kinds)[i] == kind_control) s_.is_hidden[i] = true;
      if ((*kinds)[i] == kind_unknown) s_.unknown = id;
    }
  }

  void read_merges() {
    const auto* kind = find<std::string>("pre");
    const std::string name = kind ? *kind : "default";
    if (name == "llama-bpe" || name == "llama3" || name == "llama-v3")
      s_.splitters.emplace_back(llama3_pattern, s_.where), s_.words_as_they_are = true;
    else if (name == "gpt-2" || name == "default")
      s_.splitters.emplace_back(gpt2_pattern, s_.where);
    else
      throw Error(ErrorCode::unsupported, fmt::format("texts split as '{}' are not read", printable(name)),
                  s_.where, "gpt-2 and llama-bpe are");
    const auto* merges = find<std::vector<std::string>>("merges");
    if (!merges) refuse("its tokenizer has no merges");
    for (const std::string& pair : *merges) {
      const std::size_t space = pair.find(' ', 1);
      if (space == std::string::npos) refuse(fmt::format("merge '{}' is no pair", printable(pair)));
      s_.add_merge(pair.substr(0, space), pair.substr(space + 1));
    }
  }

  void read_scores(std::size_t tokens) {
    const auto* scores = find<std::vector<double>>("scores");
    if (!scores || scores->size() != tokens)
      refuse("its tokenizer has another number of tokens and of scores");
    s_.scores = *scores;
    s_.marks_spaces = true;
    s_.prepends = flag("add_space_prefix", true);
    if (s_.prepends) s_.first_space = State::FirstSpace::left_out;
    s_.joins_unknown = true;
  }

  void read_begin() {
    const auto* begin = find<std::int64_t>("bos_token_id");
    if (!begin || !flag("add_bos_token", !s_.of_bytes || s_.words_as_they_are))
      return;  // as llama.cpp has it
    if (*begin < 0 || *begin >= static_cast<std::int64_t>(s_.texts.size()))
      refuse("its bos_token_id is no token");
    s_.begin.push_back(static_cast<std::int32_t>(*begin));
  }

  const data::WeightFile& file_;
  State& s_;
};

}  // namespace

Tokenizer Tokenizer::from_notes(const data::WeightFile& gguf) {
  auto state = std::make_unique<State>();
  state->where = gguf.path().string();
  Reader(gguf, *state).read();
  return Tokenizer(std::move(state));
}

}  // namespace superstep::language
