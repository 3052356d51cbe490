// Published rows: CSV with '#' lines before the header.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/error.h"

namespace superstep::lab {

class PublishedTable {
 public:
  explicit PublishedTable(const std::filesystem::path& path);  // throws Error (not_found, bad_file)
  PublishedTable(std::string_view text, std::string where);

  std::size_t rows() const { return rows_.size(); }
  bool has(std::string_view column) const;
  const std::string& text(std::size_t row,
                          std::string_view column) const;  // "" where there is no such column
  // Empty: `otherwise`. Throws Error (bad_file) with line and column when it is no number.
  double number(std::size_t row, std::string_view column, double otherwise) const;
  std::int64_t integer(std::size_t row, std::string_view column, std::int64_t otherwise,
                       std::int64_t lowest = 0) const;
  std::string where(std::size_t row) const;  // file:line
  const std::string& where() const { return where_; }

 private:
  void parse(std::string_view text);

  std::string where_;
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> lines_;
};

}  // namespace superstep::lab
