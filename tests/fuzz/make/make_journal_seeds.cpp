// Writes seeds of journals, as files and as records: make_journal_seeds FOLDER.
#include <cstdio>
#include <filesystem>

#include "superstep/base/file.h"
#include "superstep/edge/journal/journal.h"

using namespace superstep;

namespace {

void add_frame(edge::Journal& journal, const std::string& series, std::uint64_t number) {
  const std::string head = R"({"protocol":"superstep-frame/1"})",
                    pixels = "pixels of " + std::to_string(number);
  journal.frame(series, number, {std::as_bytes(std::span(head)), std::as_bytes(std::span(pixels))});
}

// What servers leave: in the midst of a series; with files, outcomes and ends; after one went on.
void keep(const edge::Journal::Settings& settings, int seed) {
  edge::Journal journal(settings);
  journal.begin("s", 20);
  for (std::uint64_t number = 0; number < 6; ++number) add_frame(journal, "s", number);
  if (seed > 0) {
    journal.announce_file("s", "s-0001.h5", 1, {0, 1, 2});
    write_file_atomically(settings.results / "s-0001.h5", "answers");
    journal.file_is_there("s", "s-0001.h5", {0, 1, 2});
    journal.settle("s", 4, edge::Outcome::failed);
    journal.end("s");
    add_frame(journal, "t", 3);
  }
  if (seed > 1) journal.close("s");
  journal.commit();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path out = argv[1];
  for (int seed = 0; seed < 4; ++seed) {
    const std::filesystem::path work = out / "work";
    std::filesystem::create_directories(work);
    const edge::Journal::Settings settings{.folder = work / "kept", .results = work, .segment_bytes = 4096};
    keep(settings, seed);
    if (seed == 3) keep(settings, 0);
    edge::SegmentLog log(settings.folder, 4096);
    std::string records = "r";
    for (const std::uint64_t segment : log.segments()) {
      log.read(segment, [&](const edge::LogRecord& record) {
        records.push_back(static_cast<char>(record.kind));
        records.push_back(static_cast<char>(record.contents.size() % 256));
        records.push_back(static_cast<char>(record.contents.size() / 256));
        records.append(reinterpret_cast<const char*>(record.contents.data()), record.contents.size());
      });
      std::string file =
          read_text_file(settings.folder / (std::string(8 - std::to_string(segment).size(), '0') +
                                            std::to_string(segment) + ".journal"));
      file.resize(file.find_last_not_of('\0') + 1);
      write_file_atomically(out / ("file" + std::to_string(seed)), file);
    }
    write_file_atomically(out / ("records" + std::to_string(seed)), records);
    std::filesystem::remove_all(work);
  }
  return 0;
}
