#include "superstep/lab/ranks/collective_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/lab/measure/clock.h"
#include "superstep/lab/measure/quantities.h"

namespace superstep::lab {
namespace {

constexpr std::int64_t largest_size = std::int64_t{1} << 36;
constexpr int turn = 5;              // timed iterations of a contender before the next one has its turn
constexpr std::int64_t period = 13;  // of the values: small integers, whose sums are exact in any order

float value_at(std::int64_t rank, std::size_t i) {
  return static_cast<float>((static_cast<std::int64_t>(i) + 3 * rank) % period);
}

void fill(std::vector<float>& values, int rank) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = value_at(rank, i);
}

double count_wrong(const std::vector<float>& values, int ranks) {
  std::vector<float> expected(static_cast<std::size_t>(period));
  for (std::size_t i = 0; i < expected.size(); ++i)
    for (int r = 0; r < ranks; ++r) expected[i] += value_at(r, i);
  double wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) wrong += values[i] != expected[i % expected.size()] ? 1 : 0;
  return wrong;
}

const char* name_of(run::SumOrder order) {
  return order == run::SumOrder::by_rank ? "by rank" : "the library's";
}

class AllReduce {
 public:
  AllReduce(run::Communicator& world, const CollectiveSettings& settings, std::int64_t bytes)
      : world_(world),
        settings_(settings),
        bytes_(bytes),
        source_(static_cast<std::size_t>(bytes) / sizeof(float)),
        buffer_(source_.size()) {
    fill(source_, world.rank());
  }

  std::vector<record::Result> run() {
    std::vector<record::Result> results;
    for (const run::SumOrder order : settings_.orders) results.push_back(describe(order));
    measure(results, "out_of_place", true);
    measure(results, "in_place", false);
    return results;
  }

 private:
  record::Result describe(run::SumOrder order) const {
    record::Result result{.command = "bench", .workload = "all_reduce", .mode = "collective"};
    result.id = fmt::format("all_reduce-{}-{}{}", bytes_, world_.size(),
                            order == run::SumOrder::library ? "-library" : "");
    result.units = world_.size();
    result.parameters = {
        {"bytes", bytes_}, {"count", source_.size()}, {"type", "float"}, {"redop", "sum"}, {"root", -1}};
    result.config = {{"ranks", world_.size()},
                     {"warmup", settings_.warm_up},
                     {"iterations", settings_.iterations},
                     {"order", name_of(order)},
                     {"road", order == run::SumOrder::by_rank ? world_.road() : "the library's"}};
    return result;
  }

  // Out of place, the sum of what lies elsewhere is made in the buffer: the copy is part of it.
  double once(run::SumOrder order, bool copy) {
    if (!copy) buffer_ = source_;
    world_.barrier();
    const double begun = steady_clock().seconds();
    if (copy) std::ranges::copy(source_, buffer_.begin());
    world_.sum(buffer_, order);
    return world_.maximum(steady_clock().seconds() - begun);
  }

  void measure(std::vector<record::Result>& results, const std::string& place, bool copy) {
    std::vector<Measurement> measurements(results.size(), Measurement{.warm_up_calls = settings_.warm_up});
    std::vector<double> wrong(results.size(), 0);
    for (const run::SumOrder order : settings_.orders)
      for (int i = 0; i < settings_.warm_up; ++i) once(order, copy);
    for (int done = 0; done < settings_.iterations; done += turn)
      for (std::size_t k = 0; k < results.size(); ++k) {
        if (world_.any(interrupted())) throw Error(ErrorCode::interrupted, "while measuring all-reduce");
        // Not timed where others take turns: they have left the buffer in another rank's cache.
        if (results.size() > 1) once(settings_.orders[k], copy);
        for (int i = done; i < std::min(done + turn, settings_.iterations); ++i)
          measurements[k].samples.push_back(once(settings_.orders[k], copy));
        if (done + turn >= settings_.iterations)
          wrong[k] = world_.maximum(count_wrong(buffer_, world_.size()));
      }
    for (std::size_t k = 0; k < results.size(); ++k) note(results[k], place, measurements[k], wrong[k]);
  }

  void note(record::Result& result, const std::string& place, Measurement& measurement, double wrong) {
    measurement.summary = record::summarize(measurement.samples);
    measurement.flags = flags_of(measurement.summary, settings_.iterations);
    const auto bytes = static_cast<double>(bytes_);
    const double ranks = world_.size();
    result.quantities.push_back(time_quantity(place + "_time", measurement));
    result.quantities.push_back(rate_quantity(place + "_algbw", bytes, "B/s", measurement));
    result.quantities.push_back(
        rate_quantity(place + "_busbw", bytes * 2 * (ranks - 1) / ranks, "B/s", measurement));
    result.add(place + "_wrong", wrong, "");
  }

  run::Communicator& world_;
  const CollectiveSettings& settings_;
  std::int64_t bytes_;
  std::vector<float> source_, buffer_;
};

double fastest(const record::Result& result, const char* name) {
  return std::ranges::min(result.find(name)->samples);
}

// How much less time the first takes than the second: its bandwidth over the other's.
std::string ratio_of(const record::Result& ours, const record::Result& other, const char* name) {
  return fmt::format("{:.2f} ({:.2f})", other.find(name)->value / ours.find(name)->value,
                     fastest(other, name) / fastest(ours, name));
}

std::int64_t parse_size(const std::string& text) {
  std::int64_t size = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, size);
  const std::string unit(failure == std::errc() ? rest : end, end);
  const int shift = unit.empty() || unit == "B" ? 0
                    : unit == "K"               ? 10
                    : unit == "M"               ? 20
                    : unit == "G"               ? 30
                                                : -1;
  if (failure == std::errc() && shift >= 0 && size >= 1 && size <= (largest_size >> shift) &&
      (size << shift) >= 4)
    return (size << shift) / 4 * 4;
  throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not a size in bytes", text), "--sizes",
              "sizes are 4 B to 64G: 4K..256M, or 1024,64K,1M");
}

}  // namespace

std::vector<std::int64_t> parse_sizes(const std::string& text) {
  std::vector<std::int64_t> sizes;
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) {
    for (const std::string& part : split(text, ',')) sizes.push_back(parse_size(part));
    return sizes;
  }
  const std::int64_t first = parse_size(text.substr(0, dots)), last = parse_size(text.substr(dots + 2));
  if (first > last) throw Error(ErrorCode::invalid_argument, "ends before it begins", "--sizes " + text);
  for (std::int64_t size = first; size <= last; size *= 2) sizes.push_back(size);
  return sizes;
}

std::vector<record::Result> bench_all_reduce(run::Communicator& world, const CollectiveSettings& settings) {
  std::vector<record::Result> results;
  for (const std::int64_t bytes : settings.sizes)
    for (record::Result& result : AllReduce(world, settings, bytes).run()) {
      results.push_back(std::move(result));
      if (settings.done) settings.done(results.back());
    }
  return results;
}

std::string contenders_table(const std::vector<record::Result>& results) {
  TextTable table({"bytes", "ours", "MPI_Allreduce", "ratio (of fastest)", "ours in place", "MPI_Allreduce",
                   "ratio (of fastest)"});
  bool any = false;
  for (std::size_t i = 0; i + 1 < results.size(); ++i) {
    const record::Result &ours = results[i], &other = results[i + 1];
    if (other.id != ours.id + "-library") continue;
    any = true;
    std::vector<std::string> row{ours.parameters["bytes"].dump()};
    for (const std::string place : {"out_of_place", "in_place"}) {
      for (const record::Result* result : {&ours, &other})
        row.push_back(format_si(result->find(place + "_busbw")->value, "B/s"));
      row.push_back(ratio_of(ours, other, (place + "_time").c_str()));
    }
    table.add_row(row);
  }
  return any ? table.to_string() : "";
}

}  // namespace superstep::lab
