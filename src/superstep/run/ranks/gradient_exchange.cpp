#include "superstep/run/ranks/gradient_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "superstep/base/error.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"

namespace superstep::run {
namespace {

constexpr std::array modes{ExchangeMode::overlapped, ExchangeMode::after, ExchangeMode::library};

// Numbers below 2^24, which a float holds exactly, that differ where plans do.
float fingerprint(std::size_t values, const std::vector<target::ValueRange>& ranges) {
  std::uint64_t hash = values;
  for (const target::ValueRange& range : ranges)
    for (const std::size_t number : {range.begin, range.count}) hash = hash * 0x9e3779b97f4a7c15 + number + 1;
  return static_cast<float>(hash >> 40);
}

}  // namespace

const char* name_of(ExchangeMode mode) {
  switch (mode) {
    case ExchangeMode::overlapped: return "overlapped";
    case ExchangeMode::after: return "after";
    case ExchangeMode::library: return "library";
  }
  return "";
}

ExchangeMode exchange_mode_from_name(const std::string& name) {
  std::vector<std::string> names;
  for (const ExchangeMode mode : modes) {
    if (name == name_of(mode)) return mode;
    names.emplace_back(name_of(mode));
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not a way to exchange gradients", name),
              "--exchange", unknown_name_hint(name, names));
}

GradientExchange::GradientExchange(Communicator& world, ExchangeSettings settings)
    : world_(world), settings_(settings) {
  if (settings_.span < 1 || world_.size() % settings_.span != 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a span of {} does not divide {} ranks", settings_.span, world_.size()),
                "--batch-norm-span");
  if (settings_.span > 1) span_ = world_.group(settings_.span);
}

target::Parts GradientExchange::parts() {
  if (world_.size() == 1) return {};
  return {.count = world_.size(), .index = world_.rank(), .exchange = this};
}

// Messages of one call are as long as they can be.
std::size_t GradientExchange::range_values() const {
  return settings_.mode == ExchangeMode::library ? std::numeric_limits<std::size_t>::max()
                                                 : settings_.range_values;
}

std::span<float> GradientExchange::open(std::size_t values, std::vector<target::ValueRange> ranges) {
  require_same_plans(values, ranges);
  ranges_ = ranges;
  bytes_ = 0;
  for (const target::ValueRange& range : ranges_) bytes_ += static_cast<double>(range.count * sizeof(float));
  means_ = world_.range_means(values, std::move(ranges));
  return means_->values();
}

// Ranks on unlike processors may choose unlike micro-batches, and then their gradients lie elsewhere.
void GradientExchange::require_same_plans(std::size_t values, const std::vector<target::ValueRange>& ranges) {
  const float own = fingerprint(values, ranges);
  const double least = -world_.maximum(-own), most = world_.maximum(own);
  if (least != most)
    throw Error(ErrorCode::invalid_argument, "the ranks have compiled different plans", {},
                "their processors differ: give --micro-batch");
}

void GradientExchange::begin() {
  means_->begin();
  overlapped_ = 0;
}

void GradientExchange::progress() {
  if (settings_.mode != ExchangeMode::overlapped) return;
  const double begun = monotonic_seconds();
  if (means_->progress()) overlapped_ += monotonic_seconds() - begun;
}

void GradientExchange::finish() {
  const double begun = monotonic_seconds();
  if (settings_.mode == ExchangeMode::library)
    finish_by_library();
  else
    means_->finish();
  const double waited = settings_.mode == ExchangeMode::library ? 0 : means_->seconds_waited();
  waiting_.push_back(waited);
  exposed_.push_back(monotonic_seconds() - begun - waited);
  communication_.push_back(overlapped_ + exposed_.back());
}

void GradientExchange::finish_by_library() {
  const float share = 1.0f / static_cast<float>(world_.size());
  for (const target::ValueRange& range : ranges_) {
    const auto values = means_->values().subspan(range.begin, range.count);
    world_.sum(values, SumOrder::library);
    for (float& value : values) value *= share;
  }
}

void GradientExchange::average_over_span(std::span<float> values) {
  if (!span_) return;
  span_->sum(values);
  const float share = 1.0f / static_cast<float>(span_->size());
  for (float& value : values) value *= share;
}

}  // namespace superstep::run
