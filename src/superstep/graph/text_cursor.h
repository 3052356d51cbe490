// A place in a text that is being parsed.
#pragma once

#include <string>
#include <string_view>

#include "superstep/base/error.h"

namespace superstep::graph {

// Every `take` skips white space and comments ("// to the end of the line") first. Errors are thrown and
// say line and column.
class TextCursor {
 public:
  explicit TextCursor(std::string_view text) : text_(text) {}

  bool at_end();
  bool at(char c);    // is this the next character?
  bool take(char c);  // takes it if it is
  void expect(char c, std::string_view why);
  bool take_word(std::string_view word);  // takes `word` when it is the whole next word
  void expect_word(std::string_view word, std::string_view why);

  std::string name(std::string_view what);  // plain or quoted
  std::string quoted(std::string_view what);
  std::string_view word();    // the characters of a plain name; may be empty
  std::string_view number();  // the characters a number is made of; may be empty

  // An error at the next character, or at the place where `mark` was taken.
  struct Mark {
    std::size_t offset;
  };
  Mark mark();
  Error error(std::string message) { return error(mark(), std::move(message)); }
  Error error(Mark mark, std::string message, std::string hint = {}) const;

 private:
  void skip_space();
  char escaped_character();
  template <class Accept>
  std::string_view take_while(Accept accept);

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace superstep::graph
