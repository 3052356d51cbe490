// Who may do what at a server's doors: tokens, each for reading, for asking a model, for changing models.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace superstep::edge {

enum class Scope : std::uint8_t {
  read,    // what there is, counts, pages, pictures
  infer,   // answers of a model
  change,  // loading, unloading, going back, learning
};
inline constexpr std::array all_scopes{Scope::read, Scope::infer, Scope::change};
const char* name_of(Scope scope);
// "read,infer": nothing where one of the words is no scope.
std::optional<std::vector<Scope>> scopes_of(std::string_view text);

class Tokens {
 public:
  Tokens() = default;  // none

  // Lines "TOKEN [SCOPE,SCOPE... [NAME]]"; a token alone is good for everything. '#' begins a comment. Throws
  // Error (invalid_argument) on a line that is none, and what reading a file throws.
  static Tokens read(const std::filesystem::path& file);
  static Tokens from_text(std::string_view text, const std::string& where);

  // From now on these need a token, too; changes do in any case.
  void protect(const std::vector<Scope>& scopes);

  bool empty() const { return entries_.empty(); }
  bool needs(Scope scope) const { return protected_[static_cast<std::size_t>(scope)]; }

  enum class Verdict : std::uint8_t {
    good,
    missing,  // no token, or none that is known
    wrong,    // a token for something else
    off,      // there is no token that would do: nobody may
  };
  struct Judged {
    Verdict verdict = Verdict::good;
    std::string name;  // of the token, for logs; empty: none was given, or needed
  };
  // `authorization`: the header of that name, "Bearer TOKEN" (the scheme in any case); for browsers, which
  // ask for a password, "Basic BASE64" with the token as the password, for reading alone. Takes as long for a
  // guess that begins well as for another.
  Judged judge(std::string_view authorization, Scope scope) const;

 private:
  struct Entry {
    std::string token, name;
    std::array<bool, all_scopes.size()> scopes{};
  };
  const Entry* find(std::string_view token) const;

  std::vector<Entry> entries_;
  std::array<bool, all_scopes.size()> protected_{false, false, true};
};

}  // namespace superstep::edge
