#define PCRE2_CODE_UNIT_WIDTH 8
#include "superstep/language/tokenizer/splitter.h"

#include <fmt/format.h>
#include <pcre2.h>

#include "superstep/base/error.h"

namespace superstep::language {
namespace {

// Of one match: patterns of tokenizers take a few steps a character.
constexpr std::uint32_t most_steps = 10'000'000;

std::string text_of(int code) {
  PCRE2_UCHAR buffer[256];
  return pcre2_get_error_message(code, buffer, sizeof buffer) < 0 ? "unknown"
                                                                  : reinterpret_cast<const char*>(buffer);
}

}  // namespace

// A. Radford et al. 2019: contractions, words, numbers, other signs, each with the space before it; spaces.
const char* const gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

struct Splitter::State {
  std::string where;
  std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> code{nullptr, pcre2_code_free};
  std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> context{nullptr,
                                                                                    pcre2_match_context_free};
};

Splitter::Splitter(const std::string& pattern, const std::string& where) : state_(new State{.where = where}) {
  int error = 0;
  PCRE2_SIZE at = 0;
  state_->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &at, nullptr));
  if (!state_->code)
    throw Error(ErrorCode::bad_file,
                fmt::format("its pattern cannot be read at character {}: {}", at, text_of(error)), where);
  state_->context.reset(pcre2_match_context_create(nullptr));
  if (state_->context) pcre2_set_match_limit(state_->context.get(), most_steps);
}

Splitter::~Splitter() = default;
Splitter::Splitter(Splitter&&) noexcept = default;
Splitter& Splitter::operator=(Splitter&&) noexcept = default;

std::vector<std::string_view> Splitter::split(std::string_view text) const {
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> match(
      pcre2_match_data_create_from_pattern(state_->code.get(), nullptr), pcre2_match_data_free);
  std::vector<std::string_view> pieces;
  std::size_t done = 0, from = 0;
  // The first call looks whether the whole text is UTF-8: again at every word, that would take the square of
  // its length.
  std::uint32_t known = 0;
  while (from < text.size()) {
    const int found = pcre2_match(state_->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                  from, known, match.get(), state_->context.get());
    known = PCRE2_NO_UTF_CHECK;
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0)
      throw Error(ErrorCode::bad_file, fmt::format("its pattern fails on this text: {}", text_of(found)),
                  state_->where);
    const PCRE2_SIZE* span = pcre2_get_ovector_pointer(match.get());
    if (span[1] <= span[0]) {  // a match of nothing: go on behind the next character
      do ++from;
      while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xc0) == 0x80);
      continue;
    }
    if (span[0] > done) pieces.push_back(text.substr(done, span[0] - done));
    pieces.push_back(text.substr(span[0], span[1] - span[0]));
    done = from = span[1];
  }
  if (done < text.size()) pieces.push_back(text.substr(done));
  return pieces;
}

}  // namespace superstep::language
