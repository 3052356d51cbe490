// What a tokenizer is made of, as its two kinds of files fill it in.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "superstep/language/tokenizer/pair_merges.h"
#include "superstep/language/tokenizer/splitter.h"
#include "superstep/language/tokenizer/tokenizer.h"
#include "superstep/language/tokenizer/word_pieces.h"

namespace superstep::language {

inline constexpr std::string_view space_sign = "\u2581";  // that SentencePiece writes for a space

// A token that is looked for in the text itself.
struct AddedToken {
  std::string text;
  std::int32_t id = 0;
  bool takes_left = false, takes_right = false;  // spaces beside it belong to it
  bool whole_word = false;                       // letters and digits beside it make it no such token
};

struct Tokenizer::State {
  std::string where;
  bool of_bytes = false;  // else of characters with a sign for spaces, or:
  struct Pieces {
    WordForm form;
    std::string within = "##";  // what a piece that begins no word begins with
    std::size_t longest = 100;  // characters of a word; longer ones are unknown
    bool tidy = true;           // decoded texts
    std::int32_t separator = -1, first = -1;
  };
  std::optional<Pieces> pieces;    // of words
  std::vector<std::string> texts;  // of tokens, as the file writes them
  std::unordered_map<std::string, std::int32_t> ids;
  std::unordered_map<std::uint64_t, Joined> merges;  // by left and right token
  std::vector<double> scores;       // in their place: tokens of a high score are joined first
  std::vector<Splitter> splitters;  // one after another
  bool words_as_they_are = false;   // a piece that is a token stays it, whatever the merges say
  enum class Prefix : std::uint8_t {
    never,
    first,
    always
  } prefix = Prefix::never;   // a space before a text that begins with none
  bool prepends = false;      // a space before every text, whatever it begins with
  bool marks_spaces = false;  // by space_sign, before added tokens are looked for a second time
  bool metaspace = false;     // or behind that
  bool splits_at_spaces = false;
  std::vector<AddedToken> added,
      added_to_normalized;                // in texts as they are, and behind normalization; longest first
  std::vector<bool> is_added, is_hidden;  // hidden: no text of its own
  std::vector<bool> only_added;           // no token of the model: pieces never become it
  std::unordered_map<std::int32_t, std::string> shown;  // texts of added tokens behind normalization
  bool names_are_bytes = true;                          // decoded: "<0x0A>" is a line's end
  enum class FirstSpace : std::uint8_t {
    kept,
    left_out,
    all_left_out
  } first_space = FirstSpace::kept;       // decoded
  std::vector<std::int32_t> begin, end;   // of every text
  std::array<std::int32_t, 256> bytes{};  // tokens of single bytes; -1: none
  std::int32_t unknown = -1;
  bool joins_unknown = false;

  // Once texts are there: ids, and the tokens of bytes.
  void index();
  // The two texts' tokens become their joined text's. Throws Error (bad_file) where one is no token.
  void add_merge(const std::string& left, const std::string& right);
  void add_token(const std::string& text, std::int32_t id);
};

// What tokenizer_config.json beside a vocabulary says of letters; small ones where there is none.
WordForm word_form_beside(const std::filesystem::path& vocabulary);

// What a text is brought to before added tokens are looked for a second time.
std::string normalized(const Tokenizer::State& s, std::string_view text);

// The letter that stands for a byte where encodings are of bytes (A. Radford et al. 2019).
std::string letter_of_byte(unsigned char byte);

}  // namespace superstep::language
