#include "superstep/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace superstep {
namespace {

struct Prefix {
  double factor;
  const char* name;
};

std::string three_digits(double value) {
  const double magnitude = std::abs(value);
  if (magnitude >= 100 || value == std::floor(value)) return fmt::format("{:.0f}", value);
  return magnitude >= 10 ? fmt::format("{:.1f}", value) : fmt::format("{:.2f}", value);
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substitute = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substitute, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

// Columns on a terminal: UTF-8 continuation bytes take none.
std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

bool looks_numeric(std::string_view cell) {
  return !cell.empty() && (std::isdigit(static_cast<unsigned char>(cell[0])) || cell[0] == '-' ||
                           cell[0] == '+' || cell[0] == '.');
}

}  // namespace

std::string format_si(double value, std::string_view unit) {
  static constexpr Prefix prefixes[] = {{1e15, "P"}, {1e12, "T"}, {1e9, "G"},  {1e6, "M"},  {1e3, "k"},
                                        {1, ""},     {1e-3, "m"}, {1e-6, "u"}, {1e-9, "n"}, {1e-12, "p"}};
  if (value == 0 || !std::isfinite(value)) return fmt::format("{} {}", value, unit);
  for (const Prefix& prefix : prefixes)
    if (std::abs(value) >= prefix.factor * 0.9995)
      return fmt::format("{} {}{}", three_digits(value / prefix.factor), prefix.name, unit);
  return fmt::format("{:.3g} {}", value, unit);
}

std::string format_bytes(double bytes) { return format_si(bytes, "B"); }

std::string format_seconds(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  if (seconds < 60) return format_si(seconds, "s");
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02} h", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string format_count(double count) {
  std::string digits = fmt::format("{:.0f}", count);
  const std::ptrdiff_t first = count < 0 ? 1 : 0;
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > first; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::optional<std::string> nearest_name(std::string_view name, std::span<const std::string> known) {
  std::optional<std::string> best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) best = candidate, best_distance = distance;
  }
  return best;
}

std::string unknown_name_hint(std::string_view name, std::span<const std::string> known) {
  if (const auto nearest = nearest_name(name, known)) return fmt::format("did you mean '{}'?", *nearest);
  return "there are: " + join(known, ", ");
}

std::string TextTable::to_string() const {
  std::vector<std::size_t> widths;
  for (const std::string& cell : header_) widths.push_back(display_width(cell));
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i)
      widths[i] = std::max(widths[i], display_width(row[i]));
  // A column is set to the right when every cell of it that says something starts like a number.
  std::vector<bool> right(widths.size(), true);
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i)
      if (!row[i].empty() && row[i] != "-" && !looks_numeric(row[i])) right[i] = false;

  std::string text;
  const auto append = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::string cell = i < cells.size() ? cells[i] : "";
      const std::string padding(widths[i] - display_width(cell), ' ');
      line += (i ? "  " : "") + (right[i] ? padding + cell : cell + padding);
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    text += line + "\n";
  };
  append(header_);
  std::size_t total = widths.empty() ? 0 : 2 * (widths.size() - 1);
  for (std::size_t width : widths) total += width;
  text += std::string(total, '-') + "\n";
  for (const auto& row : rows_) append(row);
  return text;
}

}  // namespace superstep
