// Texts as samples: blocks of tokens for models that go on with a text, questions and the places of their
// answers for models that answer. Behind the interface of file/source/sample_source.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "superstep/file/source/sample_source.h"
#include "superstep/language/tokenizer/tokenizer.h"

namespace superstep::language {

struct TextSettings {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::int64_t length = 128;  // tokens of a block
  std::int64_t stride = 128;  // of windows of a text that answers stand in, in its tokens
};

// `given` names text files, or folders of them (data::named_paths). One array, `tokens` i32 [length]: a
// document's tokens, with those that the tokenizer begins and ends a text with; -1 behind the last. A file is
// a document, and of one that is longer than 1 MB every megabyte, cut at the end of a line; a block holds
// tokens of one document. A block begins with the last token of the one before it, so that every token but a
// document's first is told once, and a full block never ends with token 0, which as the last of a block may
// also be padding. Throws Error (not_found, bad_file) naming the file: no text, not UTF-8, no tokens.
std::unique_ptr<data::SampleSource> open_text_blocks(const std::filesystem::path& given,
                                                     const TextSettings& settings);

// Whether a file is questions in the form of SQuAD, 1.1 or 2.0.
bool is_squad(const std::filesystem::path& path);

// Windows of a text behind each question (language/answer/windows.h): `input_ids`, `attention_mask` and
// `token_type_ids` i32 [length], `start` and `end` i32, the first token and the last of the first answer
// that the file has, and `question` i64, its number. Windows without the whole answer are left out, and so
// are, counted in notes(), questions without an answer and answers that are not where the file says. Throws
// Error (bad_file) naming the file and the question, (unsupported) where the tokenizer has no pieces of
// words.
std::unique_ptr<data::SampleSource> open_squad(const std::filesystem::path& path,
                                               const TextSettings& settings);

// Either, by what `given` is.
std::unique_ptr<data::SampleSource> open_texts(const std::filesystem::path& given,
                                               const TextSettings& settings);

}  // namespace superstep::language
