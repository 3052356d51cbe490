#include "superstep/page/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "superstep/base/text.h"

namespace superstep::page {
namespace {

// Beyond these a range with its margins could overflow.
constexpr double greatest = 1e200, smallest_positive = 1e-200;

// 1, 2 or 5 times a power of ten: the one that divides `range` into about `wanted` parts.
double round_step(double range, int wanted) {
  const double raw = range / wanted;
  const double decade = std::pow(10, std::floor(std::log10(raw)));
  const double part = raw / decade;
  return decade * (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10);
}

std::string superscript(int number) {
  static const char* const digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = number < 0 ? "⁻" : "";
  for (char c : std::to_string(std::abs(number))) text += digits[c - '0'];
  return text;
}

std::string power_of_ten(double mantissa, int decimals, int exponent) {
  const std::string factor =
      mantissa == 1 && decimals == 0 ? "" : fmt::format("{:.{}f}×", mantissa, decimals);
  return factor + "10" + superscript(exponent);
}

std::string with_thousands(double value, int decimals) {
  if (decimals > 0 || value < 10000) return fmt::format("{:.{}f}", value, decimals);
  return format_count(value);
}

int decimals_for(double step) {
  return std::clamp(-static_cast<int>(std::floor(std::log10(step) + 1e-9)), 0, 17);
}

std::string magnitude_label(double value, double step, double largest) {
  const int exponent = static_cast<int>(std::floor(std::log10(largest) + 1e-12));
  const int mantissa_decimals = decimals_for(step / std::pow(10, exponent));
  const bool unwieldy = largest >= 1e6 || largest < 1e-3;
  if (unwieldy && mantissa_decimals <= 3)
    return power_of_ten(value / std::pow(10, exponent), mantissa_decimals, exponent);
  return with_thousands(value, decimals_for(step));
}

// The label of a mark on a logarithmic axis: plain near one, as a power elsewhere.
std::string decade_label(double mantissa, int exponent) {
  if (exponent >= -2 && exponent <= 3) return fmt::format("{:g}", mantissa * std::pow(10, exponent));
  return power_of_ten(mantissa, 0, exponent);
}

}  // namespace

Extent::Extent() : low(std::numeric_limits<double>::infinity()), high(-low) {}

void Extent::include(double value) { low = std::min(low, value), high = std::max(high, value); }

bool drawable(double value, bool log) {
  return std::abs(value) <= greatest && (!log || value >= smallest_positive);
}

std::string tick_label(double value, double step, double largest_tick) {
  if (std::abs(value) < step / 2) return "0";
  return (value < 0 ? "\u2212" : "") + magnitude_label(std::abs(value), step, largest_tick);
}

Axis::Axis(Extent extent, bool log, int wanted, double margin, bool whole) : log_(log), whole_(whole) {
  if (extent.empty()) extent.low = log ? 1 : 0, extent.high = log ? 10 : 1;
  widen(extent, margin);
  if (log_ && high_ / low_ >= 5) {
    mark_decades(wanted);
  } else {
    mark_linear(wanted);
    if (log_) thin_out();
  }
}

void Axis::widen(Extent extent, double margin) {
  const auto in = [&](double value) { return log_ ? std::log10(value) : value; };
  const auto out = [&](double value) { return log_ ? std::pow(10, value) : value; };
  double low = in(extent.low), high = in(extent.high);
  // A single value, or a range that the steps of a double can hardly divide.
  const double magnitude = std::max(std::abs(low), std::abs(high));
  if (high - low <= std::max(1e-12 * magnitude, smallest_positive)) {
    const double around = log_ ? 0.3 : magnitude < 1e-190 ? 0.5 : 0.05 * magnitude;
    low -= around, high += around;
  }
  const double range = high - low;
  const bool from_zero = !log_ && low >= 0 && low <= 0.25 * range;
  const bool to_zero = !log_ && high <= 0 && -high <= 0.25 * range;
  low_ = from_zero ? 0 : out(low - margin * range);
  high_ = to_zero ? 0 : out(high + margin * range);
}

double Axis::position(double value) const {
  if (log_) return (std::log(value) - std::log(low_)) / (std::log(high_) - std::log(low_));
  return (value - low_) / (high_ - low_);
}

void Axis::mark_linear(int wanted) {
  const double step = std::max(round_step(high_ - low_, wanted), whole_ ? 1.0 : 0.0);
  const double slack = 1e-9 * step, reach = std::max(std::abs(low_), std::abs(high_));
  const double largest_tick = step * std::floor((reach + slack) / step);
  for (double k = std::ceil((low_ - slack) / step); k * step <= high_ + slack; ++k)
    ticks_.push_back({k * step, tick_label(k * step, step, largest_tick)});
}

// Marks of equal distance stand closer and closer on a logarithmic axis: labels would run into each other.
void Axis::thin_out() {
  constexpr double least = 0.12;  // of the axis, a label of four digits and a gap: chosen
  std::vector<Tick> kept;
  for (Tick& tick : ticks_)
    if (kept.empty() || position(tick.value) - position(kept.back().value) >= least)
      kept.push_back(std::move(tick));
    else
      minor_.push_back(tick.value);
  ticks_ = std::move(kept);
}

void Axis::mark_decades(int wanted) {
  const double from = std::log10(low_), to = std::log10(high_);
  const int every = std::max(1, static_cast<int>(std::ceil((to - from) / wanted)));
  const bool sparse = to - from < 2.5;  // mark 2 and 5 as well
  const auto inside = [&](double value) { return value >= low_ * (1 - 1e-9) && value <= high_ * (1 + 1e-9); };
  for (int exponent = static_cast<int>(std::floor(from)); exponent <= to + 1e-9; ++exponent)
    for (int mantissa = 1; mantissa < 10; ++mantissa) {
      const double value = mantissa * std::pow(10, exponent);
      if (!inside(value)) continue;
      const bool labelled =
          (mantissa == 1 && exponent % every == 0) || (sparse && (mantissa == 2 || mantissa == 5));
      if (labelled)
        ticks_.push_back({value, decade_label(mantissa, exponent)});
      else if (every == 1 || mantissa == 1)
        minor_.push_back(value);
    }
}

}  // namespace superstep::page
