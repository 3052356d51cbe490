#include "superstep/openmp/program/profile_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <numeric>

#include "superstep/base/file.h"
#include "superstep/base/text.h"
#include "superstep/page/page.h"

namespace superstep::openmp {
namespace {

constexpr std::size_t most_pages = 12;

std::filesystem::path program_page(const std::filesystem::path& folder, std::size_t number) {
  return folder / fmt::format("program-{}.html", number);
}

std::string count(std::uint64_t value) { return format_count(static_cast<double>(value)); }

// The line of the source that "heat.c:15" names, and those that go on with it; empty when it is not there.
std::string source_text(const std::string& place) {
  const std::size_t colon = place.rfind(':');
  if (colon == std::string::npos) return "";
  std::ifstream file(place.substr(0, colon));
  int wanted = std::atoi(place.c_str() + colon + 1);
  std::string line, text;
  while (wanted-- > 0 && std::getline(file, line)) {
  }
  if (wanted >= 0 || !file) return "";
  while (true) {
    const bool goes_on = line.ends_with('\\');
    if (goes_on) line.pop_back();
    const std::size_t first = line.find_first_not_of(" \t");
    if (first != std::string::npos) text += (text.empty() ? "" : " ") + line.substr(first);
    if (!goes_on || !std::getline(file, line)) return text;
  }
}

std::string where_it_ran(const RegionOutcome& outcome) {
  std::string text;
  for (const auto& [launches, place] : {std::pair{outcome.dealt, "dealt to tiles"},
                                        {outcome.on_one_tile, "on one tile"},
                                        {outcome.on_host, "on the host"}})
    if (launches > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", launches, place);
  return outcome.reason.empty() ? text : text + ": " + outcome.reason;
}

class ProgramPage {
 public:
  ProgramPage(const ProgramReport& report, const std::string& title)
      : report_(report.report), outcomes_(report.regions), page_("Target regions of " + title) {}

  page::Page make(const std::filesystem::path& folder) {
    overview();
    regions();
    moved();
    outcomes();
    programs(folder);
    return std::move(page_);
  }

 private:
  void overview() {
    page_.paragraph(
        "Cycles and bytes are those of the machine's model, not measured on hardware. A region is named by "
        "the "
        "line of its directive.");
    std::vector<std::vector<std::string>> facts{
        {"machine", report_.device},
        {"time",
         fmt::format("{}, {} cycles", format_seconds(static_cast<double>(report_.cycles) / report_.clock_hz),
                     count(report_.cycles))},
        {"fullest tile",
         fmt::format("{} of {} bytes", count(report_.fullest_tile_bytes), count(report_.bytes_per_tile))},
        {"queues", fmt::format("{} compiled, {} run", report_.programs, report_.runs)}};
    for (const std::string& captured : report_.captured) facts.push_back({"captured", captured});
    std::vector<page::Bar> bars;
    std::uint64_t most = 1;
    for (const ReportRow& row : report_.rows) most = std::max(most, row.cycles());
    for (const ReportRow& row : report_.rows)
      bars.push_back({row.what, count(row.cycles()) + " cycles",
                      static_cast<double>(row.cycles()) / static_cast<double>(most),
                      static_cast<double>(row.compute) / static_cast<double>(most), 0,
                      fmt::format("{} of them compute", count(row.compute))});
    page_.begin_row().facts(facts).begin_column();
    page_.heading("Cycles by region", 3).paragraph("Full: compute. Faint: exchange, sync, host, control.");
    page_.bars(bars).end_column().end_row();
  }

  void regions() {
    page_.heading("Regions");
    std::vector<std::vector<std::string>> rows;
    std::vector<std::size_t> main;
    for (const ReportRow& row : report_.rows) {
      if (2 * row.cycles() > report_.cycles) main.push_back(rows.size());
      rows.push_back({row.what, source_text(row.what), count(row.launches), count(row.tiles),
                      count(row.compute), count(row.exchange), count(row.sync), count(row.host),
                      count(row.exchanged_bytes + row.host_bytes)});
    }
    page_.table(
        {"region", "directive", "launches", "tiles", "compute", "exchange", "sync", "host", "B moved"}, rows,
        main);
  }

  void moved() {
    page_.heading("Steps of each region");
    page_.paragraph(
        "Halo: what neighbors own and a tile reads. Gathered: elements that are found by numbers in other "
        "arrays. Copy: boxes that are received apart, and whole arrays. Bytes are those that tiles receive "
        "from "
        "other tiles, and those that pass between host and tiles.");
    std::vector<std::vector<std::string>> rows;
    for (const ReportRow& row : report_.rows)
      for (const ReportStep& step : report_.steps)
        if (step.region == row.what)
          rows.push_back({step.region, step.what, count(step.times), count(step.cycles), count(step.tiles),
                          count(step.exchanged_bytes), count(step.host_bytes)});
    page_.table({"region", "step", "times", "cycles", "tiles that compute", "B exchanged", "B host"}, rows);
  }

  void outcomes() {
    page_.heading("Where they ran");
    std::vector<std::vector<std::string>> rows;
    for (const RegionOutcome& outcome : outcomes_)
      rows.push_back({outcome.what, where_it_ran(outcome),
                      outcome.checked == 0         ? "not checked"
                      : outcome.difference.empty() ? fmt::format("{} as on the host", outcome.checked)
                                                   : outcome.difference});
    page_.table({"region", "launches", "check"}, rows);
    for (const std::string& replaced : report_.replaced) page_.paragraph(replaced);
  }

  void programs(const std::filesystem::path& folder) {
    std::string links;
    for (std::size_t number = 1; std::filesystem::exists(program_page(folder, number)); ++number)
      links += fmt::format(" <a href=\"{0}\">{0}</a>", program_page("", number).string());
    if (links.empty()) return;
    page_.heading("On the machine");
    page_.paragraph("Each compiled queue: its timeline, the memory of every tile, its vertices.");
    page_.raw("<p>" + links + "</p>");
  }

  const Report& report_;
  const std::vector<RegionOutcome>& outcomes_;
  page::Page page_;
};

}  // namespace

void write_program_pages(std::vector<const bsp::Profile*> profiles, const std::filesystem::path& folder) {
  make_folder(folder);
  std::ranges::stable_sort(profiles, std::greater(),
                           [](const bsp::Profile* each) { return each->total_cycles(); });
  for (std::size_t i = 0; i < std::min(most_pages, profiles.size()); ++i)
    write_file_atomically(program_page(folder, i + 1), std::string_view(bsp::profile_to_html(
                                                           *profiles[i], fmt::format("queue {}", i + 1))));
}

void write_profile_page(const ProgramReport& report, const std::string& title,
                        const std::filesystem::path& folder) {
  ProgramPage(report, title).make(folder).write(folder / "profile.html");
}

}  // namespace superstep::openmp
