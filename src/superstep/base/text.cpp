#include "superstep/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>
#include <utility>

namespace superstep {
namespace {

struct Prefix {
  double factor;
  const char* name;
};

// Three significant digits, after rounding: 99.97 is "100", not "100.0".
std::string three_digits(double value) {
  const double magnitude = std::abs(value);
  if (magnitude >= 99.95 || value == std::floor(value)) return fmt::format("{:.0f}", value);
  if (magnitude >= 9.995) return fmt::format("{:.1f}", value);
  return magnitude >= 0.9995 ? fmt::format("{:.2f}", value) : fmt::format("{:.3g}", value);
}

// Which prefixes a unit takes. Rates and counts of things take large ones alone: "876 msamples/s" and
// "3 mFLOP" are read as millions. Angles, pixels, what is an ångström here and units that have their prefix
// already take none.
enum class Prefixes { all, large, none };

Prefixes prefixes_of(std::string_view unit) {
  static constexpr std::string_view physical[] = {"s", "J", "W"};
  static constexpr std::string_view plain[] = {"rad",  "deg", "px", "A",  "K",  "eV",
                                               "eV/A", "ms",  "us", "fs", "1/s"};
  if (std::ranges::find(physical, unit) != std::end(physical)) return Prefixes::all;
  return std::ranges::find(plain, unit) != std::end(plain) ? Prefixes::none : Prefixes::large;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// Letters put in, left out, replaced, or in each other's place ("trian").
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({last[j] + (a[i] != b[j]), row[j] + 1, last[j + 1] + 1});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j])
        row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
    before = std::exchange(last, row);
  }
  return last[b.size()];
}

// Columns on a terminal: UTF-8 continuation bytes take none.
std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

// "790 of 10000 samples are outliers" starts with a number, too: a row of plain words makes a sentence.
bool looks_like_a_sentence(std::string_view cell) {
  int words = 0;
  for (const std::string& word : split(cell, ' '))
    words = !word.empty() && std::ranges::all_of(word, [](unsigned char c) { return std::isalpha(c); })
                ? words + 1
                : 0;
  return words >= 3;
}

bool looks_numeric(std::string_view cell) {
  const bool starts_so = !cell.empty() && (std::isdigit(static_cast<unsigned char>(cell[0])) ||
                                           cell[0] == '-' || cell[0] == '+' || cell[0] == '.');
  return starts_so && !looks_like_a_sentence(cell);
}

}  // namespace

std::string format_si(double value, std::string_view unit) {
  static constexpr Prefix prefixes[] = {{1e15, "P"}, {1e12, "T"}, {1e9, "G"},  {1e6, "M"},  {1e3, "k"},
                                        {1, ""},     {1e-3, "m"}, {1e-6, "u"}, {1e-9, "n"}, {1e-12, "p"}};
  if (value == 0 || !std::isfinite(value)) return fmt::format("{} {}", value, unit);
  const Prefixes allowed = prefixes_of(unit);
  if (allowed != Prefixes::none)
    for (const Prefix& prefix : prefixes) {
      if (prefix.factor < 1 && allowed != Prefixes::all) break;
      if (std::abs(value) >= prefix.factor * 0.9995)
        return fmt::format("{} {}{}", three_digits(value / prefix.factor), prefix.name, unit);
    }
  if (std::abs(value) >= 999.5 && allowed == Prefixes::none)
    return fmt::format("{} {}", format_count(value), unit);
  return fmt::format("{}{}{}", three_digits(value), unit.empty() ? "" : " ", unit);
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
  const std::string wanted = lower_case(name);
  std::optional<std::string> best;
  std::size_t best_distance = std::max<std::size_t>(2, wanted.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(wanted, lower_case(candidate));
    if (distance >= std::max(wanted.size(), candidate.size())) continue;  // no letter in common
    if (distance < best_distance) best = candidate, best_distance = distance;
  }
  return best;
}

namespace {

// The names that go on where `name` ends: "unet-64" and "unet-256" for "unet".
std::vector<std::string> completions(std::string_view name, std::span<const std::string> known) {
  std::vector<std::string> found;
  if (name.size() < 2) return found;
  const std::string wanted = lower_case(name);
  for (const std::string& candidate : known)
    if (lower_case(candidate).starts_with(wanted)) found.push_back(fmt::format("'{}'", candidate));
  return found;
}

}  // namespace

std::string unknown_name_hint(std::string_view name, std::span<const std::string> known) {
  constexpr std::size_t most = 4;
  if (const auto longer = completions(name, known); !longer.empty() && longer.size() <= most)
    return fmt::format("did you mean {}?", join(longer, " or "));
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
