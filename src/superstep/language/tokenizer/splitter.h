// Cuts a text into the pieces that are encoded one by one, by a regular expression over Unicode.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace superstep::language {

class Splitter {
 public:
  // A pattern of Perl's kind, as files of tokenizers have it. Throws Error (bad_file) with the place in it.
  Splitter(const std::string& pattern, const std::string& where);
  ~Splitter();
  Splitter(Splitter&&) noexcept;
  Splitter& operator=(Splitter&&) noexcept;

  // Matches, and what lies between them, in order: nothing is lost. `text` is UTF-8. Throws Error (bad_file)
  // where the pattern takes too long.
  std::vector<std::string_view> split(std::string_view text) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// That of GPT-2, which its files leave out.
extern const char* const gpt2_pattern;

}  // namespace superstep::language
