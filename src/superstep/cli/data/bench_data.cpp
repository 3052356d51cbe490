#include "superstep/cli/data/bench_data.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/printable.h"
#include "superstep/base/statistics.h"
#include "superstep/base/system/standard_streams.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/file/source/forms.h"
#include "superstep/lab/bench/data_bench.h"

namespace superstep::cli {
namespace {

using lab::DataBench;
using lab::DataRates;

record::Quantity quantity(std::string name, std::string unit, const std::vector<double>& samples) {
  return {.name = std::move(name),
          .unit = std::move(unit),
          .value = median(samples),
          .statistic = "median",
          .samples = samples};
}

// "rate_in_order", "bytes_in_order".
void add_rates(record::Result& result, const DataRates& rates, std::string name) {
  std::ranges::replace(name, ' ', '_');
  if (!rates.samples.empty())
    result.quantities.push_back(quantity("rate_" + name, "samples/s", rates.samples));
  if (!rates.bytes.empty()) result.quantities.push_back(quantity("bytes_" + name, "byte/s", rates.bytes));
}

double share(const std::vector<double>& ours, const std::vector<double>& theirs) {
  return theirs.empty() ? 0 : median(ours) / median(theirs);
}

record::Result result_of(const std::string& path, const lab::DataBenchSettings& settings,
                         const DataBench& bench) {
  record::Result result = command_result("bench", "data",
                                         {{"data", path},
                                          {"batch", settings.batch},
                                          {"threads", settings.threads},
                                          {"samples", bench.samples},
                                          {"measured", bench.measured},
                                          {"sample_bytes", bench.sample_bytes},
                                          {"file_bytes", bench.file_bytes}},
                                         {});
  result.mode = "data";
  result.id = "data";
  for (const DataRates* rates : {&bench.in_order, &bench.shuffled, &bench.pread, &bench.copy, &bench.jpeg})
    add_rates(result, *rates, rates->what);
  result.add("share_of_pread", share(bench.shuffled.bytes, bench.pread.bytes), "");
  result.add("share_of_memcpy", share(bench.shuffled.bytes, bench.copy.bytes), "");
  if (!bench.jpeg.samples.empty())
    result.add("share_of_libjpeg", share(bench.shuffled.samples, bench.jpeg.samples), "");
  for (std::size_t i = 0; i < bench.peers.size(); ++i) {
    const DataRates& peer = bench.peers[i];
    result.config["peers"][settings.against[i]] = peer.why_not.empty() ? peer.what : peer.why_not;
    add_rates(result, peer, settings.against[i]);
    if (!peer.samples.empty())
      result.add("ratio_" + settings.against[i], share(bench.shuffled.samples, peer.samples), "");
  }
  return result;
}

void add_row(TextTable& table, const DataBench& bench, const DataRates& rates, const char* words) {
  if (rates.samples.empty() && rates.bytes.empty()) return;
  const std::vector<double>& ours = rates.bytes.empty() ? bench.shuffled.samples : bench.shuffled.bytes;
  const std::vector<double>& theirs = rates.bytes.empty() ? rates.samples : rates.bytes;
  table.add_row({words, rates.samples.empty() ? "-" : format_count(median(rates.samples)),
                 rates.bytes.empty() ? "-" : format_bytes(median(rates.bytes)) + "/s",
                 fmt::format("{:.2f}", share(ours, theirs))});
}

std::string text_of(const std::string& path, const DataBench& bench, int threads) {
  TextTable table({"what", "samples/s", "bytes", "shuffled to it"});
  add_row(table, bench, bench.in_order, "samples in their order");
  add_row(table, bench, bench.shuffled, "samples shuffled");
  add_row(table, bench, bench.pread, "the files' bytes (pread)");
  add_row(table, bench, bench.copy, "bytes from memory to memory (memcpy)");
  add_row(table, bench, bench.jpeg, "JPEGs in memory decoded (libjpeg)");
  std::string notes;
  for (const DataRates& peer : bench.peers) {
    add_row(table, bench, peer, peer.what.c_str());
    if (!peer.why_not.empty()) notes += fmt::format("{}: {}\n", peer.what, printable(peer.why_not));
  }
  return fmt::format("{}: {} samples of {}, {} a round, {} threads\n{}{}", printable(path),
                     format_count(static_cast<double>(bench.samples)), format_bytes(bench.sample_bytes),
                     format_count(static_cast<double>(bench.measured)), threads, table.to_string(), notes);
}

}  // namespace

void declare_data_bench(CLI::App& command, DataBenchArguments& a) {
  command
      .add_option(
          "--against", a.against,
          "data: also time dataloader (PyTorch's) and webdataset, if Python has them; rounds take turns")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->check(CLI::IsMember(lab::data_peers()));
}

void bench_data(const std::string& path, const DataBenchArguments& arguments, std::int64_t batch,
                double seconds, const std::string& python, const OutputChoice& output) {
  const record::HostLoad load;
  const auto source = data::open_source(path, {.wanted = {}, .options = {{"fit", "first"}}});
  const lab::DataBenchSettings settings{.path = path,
                                        .threads = thread_count(),
                                        .batch = batch,
                                        .seconds = seconds,
                                        .against = arguments.against,
                                        .python = python};
  const DataBench bench = lab::bench_data(*source, settings);
  std::vector<record::Result> results{result_of(path, settings, bench)};
  if (output.format != "text" || !output.file.empty()) return finish_results(results, load, output);
  keep_results(results, load, output.record);
  if (common().quiet) return;
  fmt::print("{}", text_of(path, bench, settings.threads));
  if (const std::string warning = load.warning(); !warning.empty()) tell(fmt::format("note: {}\n", warning));
}

}  // namespace superstep::cli
