#include "superstep/machine/processor/kernel_times.h"

#include <algorithm>
#include <cmath>
#include <span>

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

double additions_of(const std::string& kernel) {
  const std::size_t at = kernel.find(" + ");
  if (at == std::string::npos) return 0;
  return 1 +
         static_cast<double>(std::count(kernel.begin() + static_cast<std::ptrdiff_t>(at), kernel.end(), ','));
}

// "f32 convolution": what is left of a family that nothing was measured of.
std::string kind_of(const std::string& kernel) { return kernel.substr(0, kernel.find_first_of(",+(")); }

// Squares of differences count with these weights: of binary logarithms of operations a byte, of bytes, of
// the numbers in descriptions, of what the caches would have to hold; and of each addition. Chosen by leaving
// every measured step out in turn, on one computer (AVX2): within a factor of two of each the errors hardly
// move.
constexpr double weight_of_intensity = 1, weight_of_size = 0.1, weight_of_numbers = 0.15,
                 weight_of_cache = 0.3, weight_of_addition = 0.2;
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

double KernelTimes::least_seconds(const KernelTime& kernel) const {
  const bool from_memory = peaks_.memory_bytes > 0 && kernel.working_set > peaks_.cache;
  const double bytes = kernel.bytes / (from_memory ? peaks_.memory_bytes : peaks_.bytes);
  return least_step + std::max(kernel.flops / peaks_.flops, bytes) / kernel.sharing;
}

KernelTimes::Point KernelTimes::point_of(const KernelTime& kernel) const {
  return {.numbers = numbers_of(without_additions(kernel.kernel)),
          .flops = std::log2(1 + kernel.flops),
          .bytes = std::log2(1 + kernel.bytes),
          .working_set = std::log2(std::clamp(kernel.working_set, smallest_set, largest_set)),
          .added = additions_of(kernel.kernel),
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
          weight_of_addition * square(point.added - asked.added);
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
