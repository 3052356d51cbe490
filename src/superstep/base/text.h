// Words and numbers for people: quantities with units, tables, the nearest name to a misspelt one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace superstep {

std::string format_bytes(double bytes);      // "131 kB", "2.1 GB" (powers of 1000)
std::string format_seconds(double seconds);  // "12.3 us", "4.56 ms", "1.23 s", "2:05 min", "1:02:03 h"
std::string format_count(double count);      // "33,172"
std::string format_si(double value, std::string_view unit);  // "104 GFLOP/s", three significant digits

std::string join(std::span<const std::string> parts, std::string_view separator);
std::vector<std::string> split(std::string_view text, char separator);

// The known name closest to `name` by edit distance, when close enough to be a misspelling.
std::optional<std::string> nearest_name(std::string_view name, std::span<const std::string> known);

// The hint that goes with an unknown name: "did you mean 'braggnn'?", or the list of what there is.
std::string unknown_name_hint(std::string_view name, std::span<const std::string> known);

// A table of text, columns aligned (numbers to the right), with a rule under the header.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) : header_(std::move(header)) {}
  void add_row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  std::string to_string() const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace superstep
