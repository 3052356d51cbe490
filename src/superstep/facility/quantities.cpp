#include "superstep/facility/quantities.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "superstep/base/text.h"

namespace superstep::facility {
namespace {

struct Unit {
  std::string_view name;
  double size;
};

constexpr Unit times[] = {{"ns", 1e-9}, {"us", 1e-6},  {"ms", 1e-3}, {"s", 1},
                          {"min", 60},  {"h", 3600.0}, {"d", 86400}};
constexpr Unit data[] = {{"B", 1},     {"kB", 1e3},     {"MB", 1e6},      {"GB", 1e9},          {"TB", 1e12},
                         {"PB", 1e15}, {"KiB", 1024.0}, {"MiB", 1048576}, {"GiB", 1073741824.0}};
constexpr Unit data_rates[] = {{"B/s", 1},          {"kB/s", 1e3},       {"MB/s", 1e6},
                               {"GB/s", 1e9},       {"TB/s", 1e12},      {"kbit/s", 1e3 / 8},
                               {"Mbit/s", 1e6 / 8}, {"Gbit/s", 1e9 / 8}, {"Tbit/s", 1e12 / 8}};
constexpr Unit rates[] = {{"/s", 1}, {"/min", 1.0 / 60}, {"/h", 1.0 / 3600}, {"/d", 1.0 / 86400},
                          {"Hz", 1}, {"kHz", 1e3},       {"MHz", 1e6}};
constexpr Unit powers[] = {{"mW", 1e-3}, {"W", 1}, {"kW", 1e3}, {"MW", 1e6}};
constexpr Unit energies[] = {{"J", 1},     {"kJ", 1e3},    {"MJ", 1e6},   {"GJ", 1e9},
                             {"Wh", 3600}, {"kWh", 3.6e6}, {"MWh", 3.6e9}};

struct Kind {
  const char* words;
  std::span<const Unit> units;
};

Kind kind_of(Dimension dimension) {
  switch (dimension) {
    case Dimension::time: return {"time", times};
    case Dimension::data: return {"data", data};
    case Dimension::data_rate: return {"data rate", data_rates};
    case Dimension::rate: return {"rate", rates};
    case Dimension::power: return {"power", powers};
    case Dimension::energy: return {"energy", energies};
  }
  return {"time", times};
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Takes a number off the front; none where there is none, or it is not above zero.
std::optional<double> number_off(std::string_view& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !(value > 0) || !std::isfinite(value)) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

}  // namespace

std::expected<Amount, std::string> amount_from(std::string_view text, Dimension dimension) {
  const Kind kind = kind_of(dimension);
  std::string_view rest = trimmed(text);
  // "1..2": a number ends before the two dots, which from_chars would take the first of.
  const std::size_t dots = rest.find("..");
  std::string_view first = dots == std::string_view::npos ? rest : rest.substr(0, dots);
  const std::optional<double> low = number_off(first);
  std::optional<double> high = low;
  if (dots != std::string_view::npos) {
    if (!trimmed(first).empty())
      return std::unexpected("must be a number and a unit, or LOW..HIGH and a unit");
    rest.remove_prefix(dots + 2);
    high = number_off(rest);
  } else {
    rest = first;
  }
  if (!low || !high)
    return std::unexpected("must be a number above zero and a unit, or LOW..HIGH and a unit");
  if (*high < *low) return std::unexpected("must be LOW..HIGH: the first number is the larger one");
  const std::string_view name = trimmed(rest);
  std::vector<std::string> known;
  for (const Unit& unit : kind.units) {
    known.emplace_back(unit.name);
    if (unit.name != name) continue;
    if (*low == *high) return Amount::exactly(*low * unit.size);
    return Amount{std::sqrt(*low * *high) * unit.size, *low * unit.size, *high * unit.size};
  }
  if (name.empty())
    return std::unexpected(fmt::format("has no unit of {} ({})", kind.words, join(known, ", ")));
  return std::unexpected(fmt::format("'{}' is no unit of {} ({})", name, kind.words, join(known, ", ")));
}

}  // namespace superstep::facility
