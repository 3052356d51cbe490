#include <fmt/format.h>
#include <fmt/ostream.h>

#include "superstep/openmp/offload.h"

namespace superstep::openmp {

void print_report(std::ostream& out, const Report& report) {
  fmt::print(out, "{:<24}{:>9}{:>7}{:>12}{:>12}{:>10}{:>10}{:>14}{:>12}\n", "region", "launches", "tiles",
             "compute", "exchange", "sync", "host", "bytes moved", "GFLOP/s");
  for (const ReportRow& row : report.rows) {
    const double seconds = static_cast<double>(row.cycles()) / report.clock_hz;
    const double rate = seconds > 0 ? static_cast<double>(row.flops) / seconds / 1e9 : 0;
    fmt::print(out, "{:<24}{:>9}{:>7}{:>12}{:>12}{:>10}{:>10}{:>14}{:>12.1f}\n", row.what, row.launches,
               row.tiles, row.compute, row.exchange, row.sync, row.host, row.exchanged_bytes + row.host_bytes,
               rate);
  }
  fmt::print(out, "{} cycles, {:.3f} us on {} (modeled); fullest tile {} of {} bytes\n", report.cycles,
             1e6 * static_cast<double>(report.cycles) / report.clock_hz, report.device,
             report.fullest_tile_bytes, report.bytes_per_tile);
  fmt::print(out, "{} program{} compiled, {} run{}", report.programs, report.programs == 1 ? "" : "s",
             report.runs, report.runs == 1 ? "" : "s");
  for (const std::string& captured : report.captured) fmt::print(out, "; captured {}", captured);
  fmt::print(out, "\n");
}

}  // namespace superstep::openmp
