// The journal of a stream: nothing that was committed is forgotten, whatever the end was like.
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "superstep/base/file.h"
#include "superstep/base/random.h"
#include "superstep/edge/journal/journal.h"
#include "tests/expect_error.h"
#include "tests/file_size_limit.h"
#include "tests/scratch.h"

namespace superstep::edge {
namespace {

std::string contents_of(std::uint64_t number) {
  return "frame " + std::to_string(number) + std::string(40, 'x');
}

void add_frame(Journal& journal, std::uint64_t number, const std::string& series = "s") {
  const std::string pixels = contents_of(number);
  journal.frame(series, number, {std::as_bytes(std::span(pixels)), std::as_bytes(std::span(series))});
}

struct Part {
  std::filesystem::path path;
  std::filesystem::path operator/(const std::string& name) const { return path / name; }
};

template <class Folder>
Journal::Settings settings_in(const Folder& folder, std::size_t segment_bytes = 4096) {
  std::filesystem::create_directories(folder / "results");
  return {.folder = folder / "kept", .results = folder / "results", .segment_bytes = segment_bytes};
}

std::set<std::uint64_t> replayed(Journal& journal, std::uint64_t& lost) {
  std::set<std::uint64_t> numbers;
  journal.replay(
      [&](const FrameParts& parts) {
        ASSERT_EQ(parts.size(), 2U);
        const std::string text(reinterpret_cast<const char*>(parts[0].data()), parts[0].size());
        const std::uint64_t number = std::stoull(text.substr(6));
        EXPECT_EQ(text, contents_of(number));
        EXPECT_TRUE(numbers.insert(number).second) << "twice";
      },
      [&](const std::string&, std::uint64_t) { ++lost; });
  return numbers;
}

std::size_t segments_in(const std::filesystem::path& folder) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    count += entry.path().extension() == ".journal";
  return count;
}

// A frame that found no room is not in it, and no frame before it is lost; when there is room again the same
// call works.
TEST(Journal, GoesOnWhenAFullDiskHasRoomAgain) {
  const ScratchFolder folder;
  constexpr std::uint64_t most = 200;
  std::uint64_t number = 0;
  {
    Journal journal(settings_in(folder));
    journal.begin("s", most);
    {
      const FileSizeLimit full(2048);  // the next segment finds no room
      try {
        while (number < most) {
          add_frame(journal, number);
          ++number;
        }
        ADD_FAILURE() << "there was room";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::io);
        EXPECT_NE(std::string(error.what()).find("kept"), std::string::npos) << error.what();
      }
      EXPECT_GT(number, 0U);
      EXPECT_THROW(add_frame(journal, number), Error);
      journal.commit();  // what was taken before can be acknowledged
    }
    for (; number < most; ++number) add_frame(journal, number);
    journal.commit();
  }
  Journal again(settings_in(folder));
  std::uint64_t lost = 0;
  EXPECT_EQ(replayed(again, lost).size(), most);
  EXPECT_EQ(lost, 0U);
}

TEST(Journal, KeepsWhatHasNoAnswerInAFile) {
  const ScratchFolder folder;
  {
    Journal journal(settings_in(folder));
    journal.begin("s", 100);
    for (std::uint64_t number = 0; number < 60; ++number) add_frame(journal, number);
    journal.announce_file("s", "s-0001.h5", 1, {0, 1, 2, 3, 10});
    write_file_atomically(folder / "results/s-0001.h5", "answers");
    journal.announce_file("s", "s-0002.h5", 2, {20, 21});  // was never written
    journal.settle("s", 30, Outcome::failed);
    journal.commit();
  }
  for (int again = 0; again < 2; ++again) {
    Journal journal(settings_in(folder));
    const Journal::Known& known = journal.known().at("s");
    EXPECT_EQ(known.series.announced(), 100U);
    EXPECT_EQ(known.series.seen(), 60U);
    EXPECT_EQ(known.files, std::vector<std::string>{"s-0001.h5"});
    EXPECT_EQ(known.files_named, 2);
    EXPECT_EQ(known.outcomes[static_cast<std::size_t>(Outcome::served)], 5U);
    EXPECT_EQ(known.outcomes[static_cast<std::size_t>(Outcome::failed)], 1U);
    EXPECT_EQ(known.ended, again == 1);
    std::uint64_t lost = 0;
    const std::set<std::uint64_t> numbers = replayed(journal, lost);
    EXPECT_EQ(numbers.size(), 54U);
    EXPECT_EQ(lost, 0U);
    EXPECT_TRUE(numbers.contains(20) && !numbers.contains(10) && !numbers.contains(30));
    journal.end("s");  // a segment of its own: the state of the second reader is read by the third
    journal.commit();
  }
}

TEST(Journal, GivesBackSegmentsInWhichNothingWaits) {
  const ScratchFolder folder;
  Journal journal(settings_in(folder));
  for (std::uint64_t number = 0; number < 500; ++number) add_frame(journal, number);
  EXPECT_GT(segments_in(folder / "kept"), 10U);
  for (std::uint64_t number = 499; number > 0; --number) journal.settle("s", number, Outcome::failed);
  EXPECT_GT(segments_in(folder / "kept"), 10U) << "frame 0 waits in the first";
  journal.settle("s", 0, Outcome::failed);
  EXPECT_EQ(segments_in(folder / "kept"), 1U);
  journal.close("s");
  EXPECT_EQ(journal.closed(), std::list<std::string>{"s"});
}

TEST(Journal, IsOfOneProcess) {
  const ScratchFolder folder;
  const Journal journal(settings_in(folder));
  expect_error(ErrorCode::io, {"process"}, [&] { Journal(settings_in(folder)); });
}

// What was on the disk when the program ended, for every end there can be.
TEST(Journal, ReadsEveryBeginningOfItself) {
  const ScratchFolder folder;
  {
    Journal journal(settings_in(folder, 8192));
    journal.begin("s", 40);
    for (std::uint64_t number = 0; number < 40; ++number) {
      add_frame(journal, number);
      if (number % 5 == 4) journal.settle("s", number - 2, Outcome::failed);
    }
    journal.commit();
  }
  const std::string whole = read_text_file(folder / "kept/00000001.journal");
  std::uint64_t seen = 0;
  for (std::size_t size = 0; size <= whole.size(); size += 13) {
    const Part cut{folder / ("cut" + std::to_string(size))};
    std::filesystem::create_directories(cut / "kept");
    std::ofstream(cut / "kept/00000001.journal", std::ios::binary)
        << whole.substr(0, size) << std::string(size % 2 ? whole.size() - size : 0, '\0');
    Journal journal(settings_in(cut));
    const auto known = journal.known().find("s");
    const std::uint64_t now = known == journal.known().end() ? 0 : known->second.series.seen();
    EXPECT_GE(now, seen);
    seen = now;
    std::uint64_t lost = 0;
    if (known != journal.known().end()) {
      EXPECT_EQ(
          replayed(journal, lost).size() + known->second.outcomes[static_cast<std::size_t>(Outcome::failed)],
          now);
    }
    EXPECT_EQ(lost, 0U);
    add_frame(journal, 39);  // goes on
    journal.commit();
  }
  EXPECT_EQ(seen, 40U);
}

TEST(Journal, SurvivesFlippedBytes) {
  const ScratchFolder folder;
  {
    Journal journal(settings_in(folder, 8192));
    journal.begin("s", 40);
    for (std::uint64_t number = 0; number < 40; ++number) add_frame(journal, number);
    journal.announce_file("s", "s-0001.h5", 1, {1, 2, 3});
    journal.commit();
  }
  const std::string whole = read_text_file(folder / "kept/00000001.journal");
  int refused = 0;
  for (std::uint64_t i = 0; i < 300; ++i) {
    const Part damaged{folder / ("damaged" + std::to_string(i))};
    std::filesystem::create_directories(damaged / "kept");
    std::string bytes = whole;
    RandomStream random(7, i);
    bytes[random.below(4600)] ^= static_cast<char>(1 << random.below(8));
    std::ofstream(damaged / "kept/00000001.journal", std::ios::binary) << bytes;
    try {
      const Journal journal(settings_in(damaged));
      for (const auto& [name, known] : journal.known()) EXPECT_LE(known.series.seen(), 40U);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_file);
      ++refused;
    }
  }
  EXPECT_LT(refused, 100) << "damage ends a segment; only its head is refused";
}

}  // namespace
}  // namespace superstep::edge
