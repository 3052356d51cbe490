// A score for every token, as models of language give them: losses, guesses in words, and their picture.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "superstep/page/page.h"
#include "superstep/physics/language/language.h"

namespace superstep::workload {

// The log of the sum of their exponentials; less the score of a token it is that token's loss, nat.
double log_of_sum(std::span<const float> scores);

// What tokens are called on pages: the words of the generated language, or, of texts of others, whose words
// the data do not hold, their numbers: "#50256".
class TokenWords {
 public:
  TokenWords(int vocabulary, bool generated);
  bool is_generated() const { return language_.has_value(); }
  std::string operator()(std::int64_t token) const;

 private:
  std::optional<data::Language> language_;
};

// The four likeliest words: "dog 31 %, cat 12 %, ...".
std::string guesses_of(const TokenWords& words, std::span<const float> scores);

// How often words have which loss, nat: the model's and the least there is, where that is known.
page::Plot losses_plot(const char* title, const std::vector<double>& losses,
                       const std::vector<double>& least);

}  // namespace superstep::workload
