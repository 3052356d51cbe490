#include "superstep/language/tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/printable.h"
#include "superstep/language/tokenizer/added_tokens.h"
#include "superstep/language/tokenizer/tokenizer_state.h"

namespace superstep::language {
namespace {

using Tokens = std::vector<std::int32_t>;
using State = Tokenizer::State;

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Bytes of the character that begins here; 0: none does.
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xc2 ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if (!is_continuation(text[i])) return 0;
  // Longer than needed, halves of pairs, and beyond the last character.
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) ||
      (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f))
    return 0;
  return length;
}

bool join_rule(const State& s, std::int32_t left, std::int32_t right, Joined& joined) {
  if (left < 0 || right < 0) return false;
  if (s.scores.empty()) {
    const auto found = s.merges.find(std::uint64_t{static_cast<std::uint32_t>(left)} << 32 |
                                     static_cast<std::uint32_t>(right));
    if (found == s.merges.end()) return false;
    joined = found->second;
    return true;
  }
  const auto found =
      s.ids.find(s.texts[static_cast<std::size_t>(left)] + s.texts[static_cast<std::size_t>(right)]);
  if (found == s.ids.end() || s.is_added[static_cast<std::size_t>(found->second)]) return false;
  joined = {-s.scores[static_cast<std::size_t>(found->second)], found->second};
  return true;
}

// A character that is no token becomes its bytes, where these are tokens, else the unknown one.
void add_character(const State& s, std::string_view character, Tokens& pieces) {
  const auto found = s.ids.find(std::string(character));
  if (found != s.ids.end()) return pieces.push_back(found->second);
  const bool as_bytes =
      std::ranges::all_of(character, [&](char c) { return s.bytes[static_cast<unsigned char>(c)] >= 0; });
  if (as_bytes) {
    for (const char c : character) pieces.push_back(s.bytes[static_cast<unsigned char>(c)]);
    return;
  }
  if (s.unknown < 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the tokenizer has no token for '{}'", printable(character)), s.where);
  if (!s.joins_unknown || pieces.empty() || pieces.back() != s.unknown) pieces.push_back(s.unknown);
}

// One piece of a text, in the letters of the file.
void encode_piece(const State& s, std::string_view piece, Tokens& tokens) {
  if (s.words_as_they_are)
    if (const auto found = s.ids.find(std::string(piece)); found != s.ids.end())
      return tokens.push_back(found->second);
  Tokens pieces;
  for (std::size_t at = 0; at < piece.size();) {
    const std::size_t length = std::max<std::size_t>(1, character_length(piece.substr(at)));
    add_character(s, piece.substr(at, length), pieces);
    at += length;
  }
  const Tokens joined = join_pairs(pieces, [&](std::int32_t left, std::int32_t right, Joined& result) {
    return join_rule(s, left, right, result);
  });
  tokens.insert(tokens.end(), joined.begin(), joined.end());
}

void encode_bytes(const State& s, std::string_view text, bool first, Tokens& tokens) {
  const bool spaced = s.prefix == State::Prefix::always || (s.prefix == State::Prefix::first && first);
  const std::string own = spaced && !text.starts_with(' ') ? " " + std::string(text) : std::string(text);
  std::vector<std::string_view> pieces{own};
  for (const Splitter& splitter : s.splitters) {
    std::vector<std::string_view> finer;
    for (const std::string_view piece : pieces)
      for (const std::string_view part : splitter.split(piece)) finer.push_back(part);
    pieces = std::move(finer);
  }
  for (const std::string_view piece : pieces) {
    std::string letters;
    for (const char c : piece) letters += letter_of_byte(static_cast<unsigned char>(c));
    encode_piece(s, letters, tokens);
  }
}

std::string with_signs(std::string_view text) {
  std::string own;
  for (const char c : text)
    if (c == ' ')
      own += space_sign;
    else
      own += c;
  return own;
}

void encode_characters(const State& s, std::string_view text, bool first, Tokens& tokens) {
  std::string own = s.metaspace ? with_signs(text) : std::string(text);
  const bool spaced = s.prefix == State::Prefix::always || (s.prefix == State::Prefix::first && first);
  if (spaced && !own.starts_with(space_sign)) own.insert(0, space_sign);
  const std::string_view all = own;
  std::size_t done = 0;
  while (done < all.size()) {
    std::size_t end = all.size();
    if (s.splits_at_spaces)
      end = std::min(
          end,
          all.find(space_sign, done + (all.substr(done).starts_with(space_sign) ? space_sign.size() : 1)));
    encode_piece(s, all.substr(done, end - done), tokens);
    done = end;
  }
}

// The longest pieces from the left that are tokens; a word that cannot be cut so is unknown as a whole.
void cut_word(const State& s, const Word& word, std::vector<Tokenizer::Place>& places) {
  const std::size_t before = places.size();
  std::size_t characters = 0;
  for (const char c : word.text) characters += !is_continuation(c);
  bool known = characters <= s.pieces->longest;
  for (std::size_t done = 0; known && done < word.text.size();) {
    std::size_t end = word.text.size();
    auto found = s.ids.end();
    for (; end > done; --end) {
      if (end < word.text.size() && is_continuation(word.text[end])) continue;
      found = s.ids.find((done > 0 ? s.pieces->within : std::string()) + word.text.substr(done, end - done));
      if (found != s.ids.end()) break;
    }
    known = end > done;
    if (known) places.push_back({found->second, word.begin, word.end});
    done = end;
  }
  if (known) return;
  places.resize(before);
  if (s.unknown < 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the tokenizer has no token for '{}'", printable(word.text)), s.where);
  places.push_back({s.unknown, word.begin, word.end});
}

void encode_words(const State& s, std::string_view text, bool, Tokens& tokens) {
  std::vector<Tokenizer::Place> places;
  for (const Word& word : words_of(text, s.pieces->form)) cut_word(s, word, places);
  for (const Tokenizer::Place& place : places) tokens.push_back(place.token);
}

void require_utf8(std::string_view text) {
  if (const std::size_t bad = first_bad_byte(text); bad != std::string_view::npos)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("the text is no UTF-8: byte {} is {:#04x}", bad, static_cast<unsigned char>(text[bad])),
        {}, "convert it, for example with iconv");
}

const State::Pieces& pieces_of(const State& s) {
  if (s.pieces) return *s.pieces;
  throw Error(ErrorCode::unsupported, "its tokens are no pieces of words", s.where,
              "models as BERT have such: a vocab.txt, or a tokenizer.json of the kind WordPiece");
}

std::string byte_of_name(const std::string& name) {
  if (name.size() != 6 || !name.starts_with("<0x") || name[5] != '>') return {};
  const auto value = [&](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  if (value(name[3]) < 0 || value(name[4]) < 0) return {};
  return std::string(1, static_cast<char>(value(name[3]) * 16 + value(name[4])));
}

// The bytes that letters stand for; a text that is not all such letters is itself.
std::string bytes_of_letters(const std::string& text) {
  static const auto letters = [] {
    std::unordered_map<std::string, char> map;
    for (int byte = 0; byte < 256; ++byte)
      map.emplace(letter_of_byte(static_cast<unsigned char>(byte)), static_cast<char>(byte));
    return map;
  }();
  std::string bytes;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = std::max<std::size_t>(1, character_length(std::string_view(text).substr(at)));
    const auto found = letters.find(text.substr(at, length));
    if (found == letters.end()) return text;
    bytes += found->second;
    at += length;
  }
  return bytes;
}

}  // namespace

std::size_t first_bad_byte(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

std::string normalized(const State& s, std::string_view text) {
  if (s.of_bytes || s.pieces || text.empty()) return std::string(text);
  return (s.prepends ? std::string(space_sign) : std::string()) +
         (s.marks_spaces ? with_signs(text) : std::string(text));
}

std::string letter_of_byte(unsigned char byte) {
  const auto is_itself = [](int b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174; };
  int code = byte;
  if (!is_itself(byte)) {
    code = 256;
    for (int b = 0; b < byte; ++b) code += !is_itself(b);
  }
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}

void Tokenizer::State::add_token(const std::string& text, std::int32_t id) {
  constexpr std::int32_t most_tokens = 1 << 22;
  if (id < 0 || id >= most_tokens)
    throw Error(ErrorCode::bad_file, fmt::format("token '{}' has the number {}", printable(text), id), where);
  if (static_cast<std::size_t>(id) >= texts.size()) texts.resize(static_cast<std::size_t>(id) + 1);
  texts[static_cast<std::size_t>(id)] = text;
}

void Tokenizer::State::index() {
  is_added.assign(texts.size(), false);
  bytes.fill(-1);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty() || (i < only_added.size() && only_added[i])) continue;
    ids.emplace(texts[i], static_cast<std::int32_t>(i));
    if (of_bytes) continue;
    if (const std::string byte = byte_of_name(texts[i]); !byte.empty())
      bytes[static_cast<unsigned char>(byte[0])] = static_cast<std::int32_t>(i);
  }
  is_hidden.resize(texts.size(), false);
  for (std::vector<AddedToken>* kind : {&added, &added_to_normalized}) {
    std::erase_if(*kind, [](const AddedToken& each) { return each.text.empty(); });
    std::ranges::stable_sort(*kind, std::ranges::greater(),
                             [](const AddedToken& each) { return each.text.size(); });
    for (const AddedToken& each : *kind) is_added[static_cast<std::size_t>(each.id)] = true;
  }
}

void Tokenizer::State::add_merge(const std::string& left, const std::string& right) {
  const auto a = ids.find(left), b = ids.find(right), both = ids.find(left + right);
  if (a == ids.end() || b == ids.end() || both == ids.end())
    throw Error(ErrorCode::bad_file,
                fmt::format("merge {} joins '{}' and '{}', which are not all tokens", merges.size(),
                            printable(left), printable(right)),
                where);
  const std::uint64_t key =
      std::uint64_t{static_cast<std::uint32_t>(a->second)} << 32 | static_cast<std::uint32_t>(b->second);
  merges.emplace(key, Joined{static_cast<double>(merges.size()), both->second});
}

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::int64_t Tokenizer::size() const { return static_cast<std::int64_t>(state_->texts.size()); }

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  require_utf8(text);
  const State& s = *state_;
  Tokens tokens = s.begin;
  const auto encode_part = s.pieces ? encode_words : s.of_bytes ? encode_bytes : encode_characters;
  for (const TextPart& part : parts_between(text, s.added)) {
    if (part.token >= 0) {
      tokens.push_back(part.token);
      continue;
    }
    const std::string own = normalized(s, text.substr(part.begin, part.end - part.begin));
    for (const TextPart& finer : parts_between(own, s.added_to_normalized))
      if (finer.token >= 0)
        tokens.push_back(finer.token);
      else
        encode_part(s, std::string_view(own).substr(finer.begin, finer.end - finer.begin),
                    part.begin == 0 && finer.begin == 0, tokens);
  }
  tokens.insert(tokens.end(), s.end.begin(), s.end.end());
  return tokens;
}

std::vector<Tokenizer::Place> Tokenizer::places_of(std::string_view text) const {
  require_utf8(text);
  std::vector<Place> places;
  for (const Word& word : words_of(text, pieces_of(*state_).form)) cut_word(*state_, word, places);
  return places;
}

std::int32_t Tokenizer::first_token() const {
  if (pieces_of(*state_).first >= 0) return state_->pieces->first;
  throw Error(ErrorCode::unsupported, "it has no token [CLS]", state_->where);
}

std::int32_t Tokenizer::separator() const {
  if (pieces_of(*state_).separator >= 0) return state_->pieces->separator;
  throw Error(ErrorCode::unsupported, "it has no token [SEP]", state_->where);
}

std::string Tokenizer::bytes_of(std::int32_t token) const {
  const State& s = *state_;
  if (token < 0 || static_cast<std::size_t>(token) >= s.texts.size() ||
      s.is_hidden[static_cast<std::size_t>(token)])
    return {};
  const auto shown = s.shown.find(token);
  const std::string& text = shown != s.shown.end() ? shown->second : s.texts[static_cast<std::size_t>(token)];
  if (s.pieces) return text.starts_with(s.pieces->within) ? text.substr(s.pieces->within.size()) : " " + text;
  if (s.of_bytes) return bytes_of_letters(text);
  if (std::string byte = byte_of_name(text); s.names_are_bytes && !byte.empty()) return byte;
  if (!s.marks_spaces && !s.metaspace) return text;
  std::string plain;
  for (std::size_t at = 0; at < text.size();) {
    const bool space = std::string_view(text).substr(at).starts_with(space_sign);
    plain += space ? ' ' : text[at];
    at += space ? space_sign.size() : 1;
  }
  return plain;
}

std::string Tokenizer::decode(const std::vector<std::int32_t>& tokens) const {
  using FirstSpace = State::FirstSpace;
  std::string text;
  bool first = true;  // of those that have a text
  for (const std::int32_t token : tokens) {
    std::string bytes = bytes_of(token);
    if (std::exchange(first, first && bytes.empty()) && state_->first_space == FirstSpace::all_left_out)
      std::erase(bytes, ' ');
    if (state_->pieces && text.empty() && bytes.starts_with(' ')) bytes.erase(0, 1);  // the first word
    text += state_->pieces && state_->pieces->tidy ? tidied(std::move(bytes)) : bytes;
  }
  if (state_->pieces) return text;
  if (state_->first_space == FirstSpace::left_out && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

Tokenizer Tokenizer::beside(const data::WeightFile& file) {
  if (file.format() == "GGUF") return from_notes(file);
  const std::filesystem::path folder = file.path().parent_path(), path = folder / "tokenizer.json",
                              vocabulary = folder / "vocab.txt";
  if (!std::filesystem::exists(path) && std::filesystem::exists(vocabulary)) return from_file(vocabulary);
  if (!std::filesystem::exists(path))
    throw Error(ErrorCode::not_found, "the model's tokens are not known", path.string(),
                "put the model's tokenizer.json beside its weights, or give numbers of tokens: --tokens");
  return from_file(path);
}

Tokenizer Tokenizer::from_file(const std::filesystem::path& path) {
  const std::string text = read_text_file(path);
  if (path.extension() == ".json") return from_json(text, path.string());
  return from_vocabulary(text, word_form_beside(path), path.string());
}

}  // namespace superstep::language
