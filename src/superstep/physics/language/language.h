// A language of known entropy: a small grammar of noun and verb phrases with agreement in number over any
// distance ("the dog that sees the cats sleeps"), and word lists after Zipf.
#pragma once

#include <string>
#include <vector>

#include "superstep/physics/language/grammar.h"

namespace superstep::data {

// Tokens that are no words of the grammar.
namespace token {
inline constexpr int pad = 0, unknown = 1, cls = 2, sep = 3, mask = 4, stop = 5, first_word = 6;
}

struct LanguageSettings {
  int vocabulary = 30522;  // tokens, those above included; at least 64
  double zipf_exponent = 1.07;
  double zipf_shift = 2.7;
  double recursion = 0.15;  // how likely a noun takes a phrase or a clause of its own; below 0.3
};

class Language {
 public:
  explicit Language(const LanguageSettings& settings);
  const Grammar& grammar() const { return grammar_; }
  int vocabulary() const { return static_cast<int>(surface_.size()); }
  const std::string& surface(int token) const { return surface_[static_cast<std::size_t>(token)]; }

 private:
  struct Parts;
  explicit Language(Parts parts);
  static Parts build(const LanguageSettings& settings);
  Grammar grammar_;
  std::vector<std::string> surface_;
};

}  // namespace superstep::data
