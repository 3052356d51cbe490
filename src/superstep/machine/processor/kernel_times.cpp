#include "superstep/machine/processor/kernel_times.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

namespace superstep::machine {
namespace {

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

// What stands before " + ": what is added there is done on the way.
std::string without_additions(const std::string& kernel) { return kernel.substr(0, kernel.find(" + ")); }

// A number that a letter precedes is part of a word (f32), but for the second of two extents (3x3).
bool begins_number(const std::string& text, std::size_t i) {
  if (!is_digit(text[i])) return false;
  if (i == 0) return true;
  const bool extent = i > 1 && text[i - 1] == 'x' && is_digit(text[i - 2]);
  return extent || !(std::isalpha(static_cast<unsigned char>(text[i - 1])) || is_digit(text[i - 1]));
}

// Larger ones count as this: files are hostile.
constexpr double largest_number = 1e15;

std::vector<double> numbers_of(const std::string& text) {
  std::vector<double> numbers;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (begins_number(text, i))
      numbers.push_back(std::log2(1 + std::min(largest_number, std::strtod(text.c_str() + i, nullptr))));
  return numbers;
}

// Functions that take many instructions an element: beside few terms of a product they are most of its time.
bool takes_long(std::string_view function) {
  constexpr std::string_view names[] = {"tanh", "silu", "gelu",     "sigmoid", "hard sigmoid", "exp",
                                        "log",  "erf",  "softplus", "elu",     "mish"};
  return std::ranges::any_of(names, [&](std::string_view name) {
    return function == name || (function.starts_with(name) && function.substr(name.size()).starts_with(" ("));
  });
}

// What is added to a kernel on the way, " + bias, tanh": names without numbers, in order; the functions that
// take long apart.
std::pair<std::vector<std::string>, std::vector<std::string>> additions_of(const std::string& kernel) {
  std::vector<std::string> others, functions;
  const std::size_t at = kernel.find(" + ");
  if (at == std::string::npos) return {};
  std::string text = kernel.substr(at + 3);
  for (std::size_t next = 0; next != std::string::npos;) {
    next = text.find_first_of(",+");
    std::string name = text.substr(0, next);
    std::erase_if(name, is_digit);
    name.erase(0, name.find_first_not_of(' '));
    name.erase(name.find_last_not_of(' ') + 1);
    (takes_long(name) ? functions : others).push_back(name);
    if (next != std::string::npos) text.erase(0, next + 1);
  }
  std::ranges::sort(others);
  std::ranges::sort(functions);
  return {std::move(others), std::move(functions)};
}

// How many names one of both has and the other has not; both in order.
double differing(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<std::string> found;
  std::ranges::set_symmetric_difference(a, b, std::back_inserter(found));
  return static_cast<double>(found.size());
}

// "f32 convolution": what is left of a family that nothing was measured of.
std::string kind_of(const std::string& kernel) { return kernel.substr(0, kernel.find_first_of(",+(")); }

// Squares of differences count with these weights: of binary logarithms of operations a byte, of bytes, of
// the numbers in descriptions, of what the caches would have to hold; and once for each addition and each
// function that only one of both has, and where one plan's bytes lie in the last cache and the other's do
// not, since what is carried over is counted from another rate. Chosen by leaving every probe's plan out in
// turn, on one computer (AVX-512): within a factor of two of each the errors hardly move.
constexpr double weight_of_intensity = 1, weight_of_size = 0.1, weight_of_numbers = 0.3,
                 weight_of_cache = 0.15, weight_of_addition = 0.1, weight_of_function = 3,
                 weight_of_memory = 4;
// Another number of threads is as far away as a factor of 8 in size.
constexpr double weight_of_threads = 9 * weight_of_size;
// So many neighbours are asked, each with one over its square distance; what is nearer than this counts
// alike.
constexpr std::size_t neighbours = 5;
constexpr double nearest = 0.02;
// The least that a step takes, which also stands in for steps without arithmetic or bytes: reading a clock
// takes as long.
constexpr double least_step = 20e-9;
// What lies outside is in no cache, or in all of them.
constexpr double smallest_set = 64e3, largest_set = 64e6;

double square(double x) { return x * x; }

}  // namespace

std::string family_of(const std::string& kernel) {
  const std::string text = without_additions(kernel);
  std::string family;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!begins_number(text, i)) {
      family += text[i];
      continue;
    }
    family += '#';
    while (i + 1 < text.size() && (is_digit(text[i + 1]) || text[i + 1] == '.')) ++i;
  }
  return family;
}

bool KernelTimes::from_memory(const KernelTime& kernel) const {
  return peaks_.memory_bytes > 0 && kernel.working_set > peaks_.cache;
}

double KernelTimes::least_seconds(const KernelTime& kernel) const {
  const double bytes = kernel.bytes / (from_memory(kernel) ? peaks_.memory_bytes : peaks_.bytes);
  return least_step + std::max(kernel.flops / peaks_.flops, bytes) / kernel.sharing;
}

KernelTimes::Point KernelTimes::point_of(const KernelTime& kernel) const {
  auto [others, functions] = additions_of(kernel.kernel);
  return {.numbers = numbers_of(without_additions(kernel.kernel)),
          .flops = std::log2(1 + kernel.flops),
          .bytes = std::log2(1 + kernel.bytes),
          .working_set = std::log2(std::clamp(kernel.working_set, smallest_set, largest_set)),
          .added = std::move(others),
          .functions = std::move(functions),
          .from_memory = from_memory(kernel),
          .sharing = kernel.sharing,
          .busy = kernel.busy};
}

KernelTimes::KernelTimes(std::vector<KernelTime> times, ThreadPeaks peaks) : peaks_(peaks) {
  for (const KernelTime& time : times) {
    Point point = point_of(time);
    point.excess = std::log(time.seconds / least_seconds(time));
    families_[family_of(time.kernel)].push_back(points_.size());
    kinds_[kind_of(time.kernel)].push_back(points_.size());
    points_.push_back(std::move(point));
  }
}

void KernelTimes::set_groups(std::vector<int> groups) {
  for (std::size_t i = 0; i < points_.size() && i < groups.size(); ++i) points_[i].group = groups[i];
}

KernelTimes::Estimate KernelTimes::estimate(const KernelTime& kernel, int left_out) const {
  const Point asked = point_of(kernel);
  struct Near {
    double distance, excess;
  };
  std::vector<Near> near;
  const auto ask = [&](std::span<const std::size_t> places, bool by_numbers) {
    for (const std::size_t place : places) {
      const Point& point = points_[place];
      if (left_out != none && point.group == left_out) continue;
      double distance =
          weight_of_intensity * square((point.flops - point.bytes) - (asked.flops - asked.bytes)) +
          weight_of_size * square(point.bytes - asked.bytes) +
          weight_of_cache * square(point.working_set - asked.working_set) +
          weight_of_addition * differing(point.added, asked.added) +
          weight_of_function * differing(point.functions, asked.functions) +
          (point.from_memory == asked.from_memory ? 0 : weight_of_memory);
      for (std::size_t i = 0; by_numbers && i < std::min(point.numbers.size(), asked.numbers.size()); ++i)
        distance += weight_of_numbers * square(point.numbers[i] - asked.numbers[i]);
      if (point.sharing != asked.sharing) distance += weight_of_threads;
      if (point.busy != asked.busy) distance += weight_of_threads;
      near.push_back({distance, point.excess});
    }
  };
  Estimate estimate;
  if (const auto own = families_.find(family_of(kernel.kernel)); own != families_.end())
    ask(own->second, true);
  estimate.known = !near.empty();
  if (near.empty())
    if (const auto kind = kinds_.find(kind_of(kernel.kernel)); kind != kinds_.end()) ask(kind->second, false);
  if (near.empty())
    for (const auto& [name, places] : kinds_) ask(places, false);
  const std::size_t count = std::min(neighbours, near.size());
  std::ranges::partial_sort(near, near.begin() + static_cast<std::ptrdiff_t>(count), {}, &Near::distance);
  double sum = 0, weights = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double weight = 1 / (near[i].distance + nearest);
    sum += weight * near[i].excess;
    weights += weight;
  }
  estimate.seconds = least_seconds(kernel) * (weights > 0 ? std::exp(sum / weights) : 1);
  return estimate;
}

}  // namespace superstep::machine
