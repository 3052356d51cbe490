#include "superstep/edge/door/tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "superstep/base/encoding/base64.h"
#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/text.h"

namespace superstep::edge {
namespace {

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  for (const char letter : line) {
    if (!std::isspace(static_cast<unsigned char>(letter))) {
      word += letter;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

bool same_secret(std::string_view a, std::string_view b) {
  unsigned differ = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i)
    differ |= static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^
                                    static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]));
  return differ == 0;
}

bool same_word(std::string_view a, std::string_view lower) {
  return std::ranges::equal(
      a, lower, {}, [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
}

// What follows the scheme; empty where the header has another one.
std::string_view credentials(std::string_view authorization, std::string_view scheme) {
  const std::size_t space = authorization.find(' ');
  if (space == std::string_view::npos || !same_word(authorization.substr(0, space), scheme)) return {};
  const std::size_t begin = authorization.find_first_not_of(' ', space);
  return begin == std::string_view::npos ? std::string_view() : authorization.substr(begin);
}

std::string password_of(std::string_view basic) {
  const auto bytes = base64_decode(basic);
  if (!bytes) return {};
  const std::string text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  const std::size_t colon = text.find(':');
  return colon == std::string::npos ? std::string() : text.substr(colon + 1);
}

}  // namespace

const char* name_of(Scope scope) {
  switch (scope) {
    case Scope::read: return "read";
    case Scope::infer: return "infer";
    case Scope::change: return "change";
  }
  return "?";
}

std::optional<std::vector<Scope>> scopes_of(std::string_view text) {
  std::vector<Scope> scopes;
  for (const std::string& word : split(text, ',')) {
    const auto found = std::ranges::find(all_scopes, word, [](Scope scope) { return name_of(scope); });
    if (found == all_scopes.end()) return std::nullopt;
    scopes.push_back(*found);
  }
  return scopes;
}

Tokens Tokens::read(const std::filesystem::path& file) {
  Tokens tokens = from_text(read_text_file(file), file.string());
  if (tokens.empty())
    throw Error(ErrorCode::invalid_argument, "holds no token", file.string(),
                "head -c 24 /dev/urandom | base64 makes one");
  return tokens;
}

Tokens Tokens::from_text(std::string_view text, const std::string& where) {
  constexpr std::size_t least = 8, most = 1024, most_tokens = 10'000;
  Tokens tokens;
  int number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    const auto refuse = [&](std::string what, std::string hint) {
      throw Error(ErrorCode::invalid_argument, std::move(what), fmt::format("{}: line {}", where, number),
                  std::move(hint));
    };
    const std::vector<std::string> words = words_of(line);
    if (words.empty() || words[0].starts_with('#')) continue;
    if (words[0].size() < least || words[0].size() > most)
      refuse("a token has 8 to 1,024 letters", "head -c 24 /dev/urandom | base64 makes one");
    const auto scopes =
        words.size() > 1 ? scopes_of(words[1]) : std::vector<Scope>(all_scopes.begin(), all_scopes.end());
    if (!scopes || words.size() > 3)
      refuse("is no token with its scopes",
             "write TOKEN, or TOKEN SCOPES NAME with scopes of read, infer, change");
    if (tokens.find(words[0])) refuse("this token stands there twice", "give each a line of its own");
    if (tokens.entries_.size() == most_tokens) refuse("there are more than 10,000 tokens", {});
    Entry entry{.token = words[0], .name = words.size() > 2 ? words[2] : fmt::format("line {}", number)};
    for (const Scope scope : *scopes) entry.scopes[static_cast<std::size_t>(scope)] = true;
    tokens.entries_.push_back(std::move(entry));
  }
  return tokens;
}

void Tokens::protect(const std::vector<Scope>& scopes) {
  for (const Scope scope : scopes) protected_[static_cast<std::size_t>(scope)] = true;
}

const Tokens::Entry* Tokens::find(std::string_view token) const {
  const Entry* found = nullptr;
  for (const Entry& entry : entries_)
    if (same_secret(token, entry.token)) found = &entry;
  return found;
}

Tokens::Judged Tokens::judge(std::string_view authorization, Scope scope) const {
  std::string_view token = credentials(authorization, "bearer");
  const std::string password =
      scope == Scope::read ? password_of(credentials(authorization, "basic")) : std::string();
  if (!password.empty()) token = password;
  const Entry* entry = token.empty() ? nullptr : find(token);
  if (!needs(scope)) return {Verdict::good, entry ? entry->name : ""};
  const auto allows = [&](const Entry& one) { return one.scopes[static_cast<std::size_t>(scope)]; };
  if (std::ranges::none_of(entries_, allows)) return {Verdict::off, entry ? entry->name : ""};
  if (!entry) return {Verdict::missing, ""};
  return {allows(*entry) ? Verdict::good : Verdict::wrong, entry->name};
}

}  // namespace superstep::edge
