// Texts as tokens and back: byte pair encodings, of bytes (GPT-2, Llama 3) or of characters with a sign for
// spaces (SentencePiece: Llama 2, Mistral), and pieces of words (BERT), as tokenizer.json of Hugging Face, a
// GGUF file or BERT's vocab.txt describe them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/file/weights/weight_file.h"
#include "superstep/language/tokenizer/word_pieces.h"

namespace superstep::language {

class Tokenizer {
 public:
  // Throws Error: not_found, bad_file (what is wrong), unsupported (another kind of model, which it names).
  static Tokenizer from_json(std::string_view text, const std::string& where);
  static Tokenizer from_notes(const data::WeightFile& gguf);
  // Pieces of words, one a line; tokens in brackets ("[CLS]") are added ones.
  static Tokenizer from_vocabulary(std::string_view lines, const WordForm& form, const std::string& where);
  // A tokenizer.json, or a vocab.txt (in small letters unless a tokenizer_config.json beside it says
  // otherwise).
  static Tokenizer from_file(const std::filesystem::path& path);
  // Of a GGUF file its own, else the tokenizer.json beside the weights, else the vocab.txt.
  static Tokenizer beside(const data::WeightFile& file);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  std::int64_t size() const;  // tokens, those that were added included

  // With the tokens that every text begins and ends with. What is written as an added token ("</s>") becomes
  // that. Throws Error (invalid_argument) where the text is no UTF-8, with the place.
  std::vector<std::int32_t> encode(std::string_view text) const;
  // The bytes of a token, which may end in the middle of a character; of added ones nothing.
  std::string bytes_of(std::int32_t token) const;
  // The text of several: where every text begins with a space that nobody wrote, without it.
  std::string decode(const std::vector<std::int32_t>& tokens) const;

  // A token of a text and the bytes that its word has there.
  struct Place {
    std::int32_t token;
    std::size_t begin, end;
  };
  // Pieces of words without what begins and ends a text; added tokens are not looked for. Throws Error
  // (unsupported) where tokens are no pieces of words, (invalid_argument) where the text is no UTF-8.
  std::vector<Place> places_of(std::string_view text) const;
  // "[CLS]" and "[SEP]", which stand before and between texts. Throws Error (unsupported) where there are
  // none.
  std::int32_t first_token() const;
  std::int32_t separator() const;

  struct State;

 private:
  explicit Tokenizer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The first byte that is no part of UTF-8; npos: there is none.
std::size_t first_bad_byte(std::string_view text);

}  // namespace superstep::language
