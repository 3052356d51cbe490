// Frames from a detector to files: both formats, every fault counted exactly, nothing else lost.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "superstep/base/file.h"
#include "superstep/edge/model/pixels.h"
#include "superstep/edge/stream/cbor.h"
#include "superstep/edge/stream/detector.h"
#include "superstep/edge/stream/ends.h"
#include "superstep/edge/stream/frames.h"
#include "superstep/edge/stream/receiver.h"
#include "superstep/run/user/arrays.h"
#include "tests/edge/models.h"
#include "tests/expect_error.h"
#include "tests/file_size_limit.h"
#include "tests/scratch.h"

namespace superstep::edge {
namespace {

using nlohmann::json;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

StreamMessage decode(const std::vector<std::string>& message) {
  std::vector<std::span<const std::byte>> parts;
  for (const std::string& part : message) parts.push_back(bytes_of(part));
  return decode_message(parts);
}

Frame frame_over(const Tensor& pixels, std::uint64_t number = 7) {
  return {.series = "scan-1",
          .number = number,
          .element = pixels.type(),
          .extents = pixels.shape().extents(),
          .pixels = {pixels.bytes(), pixels.byte_count()}};
}

TEST(Wire, CarriesFramesOfEveryTypeInBothFormats) {
  for (const WireFormat format : {WireFormat::raw, WireFormat::stream2})
    for (const ElementType type : {ElementType::u8, ElementType::u16, ElementType::u32, ElementType::u64,
                                   ElementType::i8, ElementType::i16, ElementType::i32, ElementType::i64,
                                   ElementType::f16, ElementType::f32, ElementType::f64}) {
      Tensor pixels(type, {3, 5});
      for (std::int64_t i = 0; i < 15; ++i) pixels.set(i, static_cast<double>(i * 3));
      const auto message = encode_frame(format, frame_over(pixels));
      const auto read = std::get<Frame>(decode(message));
      EXPECT_EQ(read.series, "scan-1");
      EXPECT_EQ(read.number, 7U);
      EXPECT_EQ(read.element, type);
      EXPECT_EQ(read.extents, (std::vector<std::int64_t>{3, 5}));
      EXPECT_TRUE(std::equal(read.pixels.begin(), read.pixels.end(), pixels.bytes()));
      const auto begin =
          std::get<SeriesBegin>(decode(encode_begin(format, {"scan-1", 42}, frame_over(pixels))));
      EXPECT_EQ(begin.series, "scan-1");
      EXPECT_EQ(begin.frames, 42U);
      EXPECT_EQ(std::get<SeriesEnd>(decode(encode_end(format, {"scan-1"}))).series, "scan-1");
    }
}

// As a detector may write it: indefinite lengths, keys that nobody knows, tags around.
TEST(Wire, ReadsWhatOthersWrite) {
  std::string message = "\xd9\xd9\xf7\xbf";  // self-described, a map without a length
  const auto text = [](std::string_view value) {
    return std::string(1, static_cast<char>(0x60 + value.size())) + std::string(value);
  };
  message += text("type") + text("image");
  message += text("series_id") + '\x05';
  message += text("start_time") + "\x82\x01\x1a" + std::string("\x05\xf5\xe1\x00", 4);  // a fraction
  message += text("user_data") + "\xa1" + text("a") + "\x9f\x01\xf6\xfb" + std::string(8, '\1') + "\xff";
  message +=
      "\x70"
      "series_unique_id" +
      text("abc");
  message += text("image_id") + '\x03';
  message += text("data") + "\xbf" + text("threshold_1") + "\xd8\x28\x82\x82\x01\x02\xd8\x45\x44" +
             std::string("\1\0\2\0", 4);
  message += text("threshold_2") +
             "\xd8\x28\x82\x81\x01\xd8\x40\x41"
             "x" +
             "\xff\xff";
  const std::vector<std::string> parts{message};  // a frame's pixels are where its message is
  const auto frame = std::get<Frame>(decode(parts));
  EXPECT_EQ(frame.number, 3U);
  EXPECT_EQ(frame.element, ElementType::u16);
  EXPECT_EQ(frame.extents, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(static_cast<int>(frame.pixels[2]), 2);
}

// A frame of one element in stream2 whose array has this tag, or whose pixels have this form.
std::string tagged_frame(std::string_view array_tag, std::string_view pixels,
                         std::string_view more_channels = {}) {
  const auto text = [](std::string_view value) {
    return std::string(1, static_cast<char>(0x60 + value.size())) + std::string(value);
  };
  std::string message = "\xbf" + text("type") + text("image") + "\x70" + "series_unique_id" + text("abc");
  message += text("image_id") + '\x03' + text("data") + "\xbf" + text("threshold_1");
  message += std::string("\xd8\x28\x82\x81\x01") + std::string(array_tag) + std::string(pixels);
  return message + std::string(more_channels) + "\xff\xff";
}

// What is whole but of another type or compression is told apart from what is damaged.
TEST(Wire, NamesWhatItDoesNotRead) {
  using namespace std::string_view_literals;
  expect_error(ErrorCode::unsupported, {"tag 65", "not read"},
               [] { decode({tagged_frame("\xd8\x41", "\x42\0\1"sv)}); });
  expect_error(ErrorCode::unsupported, {"'zstd'", "lz4 and bslz4"},
               [] { decode({tagged_frame("\xd8\x45", "\xd9\xdc\xb4\x83\x64zstd\x02\x42\0\1"sv)}); });
  expect_error(ErrorCode::unsupported, {"tag 1234"},
               [] { decode({tagged_frame("\xd8\x45", "\xd9\x04\xd2\x42\0\1"sv)}); });
  expect_error(ErrorCode::bad_file, {"bytes of pixels"},
               [] { decode({tagged_frame("\xd8\x45", "\x41\1"sv)}); });
  const std::string second = "\x6bthreshold_2\xd8\x28\x82\x81\x01\xd8\x40\x41x";
  const std::vector<std::string> parts{tagged_frame("\xd8\x45", "\x42\1\2"sv, second)};
  const std::vector<std::span<const std::byte>> message{bytes_of(parts[0])};
  EXPECT_EQ(std::get<Frame>(decode_message(message)).other_channels, std::vector<std::string>{"threshold_2"});
  const auto chosen = std::get<Frame>(decode_message(message, "threshold_2"));
  EXPECT_EQ(chosen.element, ElementType::u8);
  EXPECT_EQ(static_cast<char>(chosen.pixels[0]), 'x');
  expect_error(ErrorCode::unsupported, {"no channel 'threshold_3'", "threshold_1, threshold_2"},
               [&] { decode_message(message, "threshold_3"); });
}

// What the filters of HDF5 have written: tests/fuzz/make/make_stream_seeds.py.
TEST(Wire, ReadsCompressedPixels) {
  std::size_t checked = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(SUPERSTEP_SOURCE "/tests/fuzz/seeds/stream_message")) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("lz4_") && !name.starts_with("bslz4_")) continue;
    const std::string message = read_text_file(entry.path());
    const std::vector<std::string> parts{message};
    const auto frame = std::get<Frame>(decode(parts));
    std::vector<float> values(frame.pixels.size() / size_in_bytes(frame.element));
    convert_pixels(frame.element, frame.pixels, 1, false, values);
    ASSERT_EQ(values.size(), frame.extents[0] == 5 ? 35U : 13130U);
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(values[i], static_cast<float>(i * 37 % 251)) << name << ' ' << i;
    for (std::size_t size = 0; size < message.size(); size += 1 + message.size() / 200)
      EXPECT_THROW(decode({message.substr(0, size)}), Error) << name << ' ' << size;
    ++checked;
  }
  EXPECT_EQ(checked, 16U);
}

// Every number of elements: whole blocks, parts of one, the few at the end that are as they were.
TEST(Wire, CompressesPixelsAndReadsThem) {
  for (const char* method : {"lz4", "bslz4"})
    for (const ElementType type : {ElementType::u8, ElementType::u16, ElementType::u32, ElementType::f64})
      for (const std::int64_t count : {1, 7, 8, 9, 64, 100, 511, 512, 520, 1024, 4096, 8192, 9000, 30'001}) {
        Tensor pixels(type, {count});
        RandomStream random(static_cast<std::uint64_t>(count));
        for (std::int64_t i = 0; i < count; ++i) pixels.set(i, static_cast<double>(random.below(200)));
        const auto message = encode_frame(WireFormat::stream2, frame_over(pixels), method);
        const auto read = std::get<Frame>(decode(message));
        ASSERT_TRUE(std::equal(read.pixels.begin(), read.pixels.end(), pixels.bytes())) << method << count;
        if (count > 8000 && type != ElementType::u8) {
          EXPECT_LT(message[0].size(), pixels.byte_count());
        }
      }
  Tensor pixels(ElementType::u8, {4});
  EXPECT_THROW(encode_frame(WireFormat::raw, frame_over(pixels), "lz4"), Error);
  EXPECT_THROW(encode_frame(WireFormat::stream2, frame_over(pixels), "zip"), Error);
}

TEST(Wire, RefusesEveryMessageThatIsCutShort) {
  Tensor pixels(ElementType::u16, {2, 3});
  for (const WireFormat format : {WireFormat::raw, WireFormat::stream2})
    for (const auto& message :
         {encode_frame(format, frame_over(pixels)), encode_begin(format, {"s", 5}, frame_over(pixels)),
          encode_end(format, {"s"})})
      for (std::size_t size = 0; size < message.back().size(); ++size) {
        std::vector<std::string> cut = message;
        cut.back().resize(size);
        EXPECT_THROW(decode(cut), Error) << size;
      }
}

TEST(Wire, RefusesWhatWouldTakeMemory) {
  const auto refused = [](const std::string& bytes) { EXPECT_THROW(decode({bytes}), Error); };
  refused("\xbb" + std::string(8, '\xff'));              // a map of 2^64 - 1 pairs
  refused("\xa1\x64type\x9b" + std::string(8, '\x7f'));  // an array of 2^63
  refused("\xa1\x61x" + std::string(100'000, '\x81'));   // arrays in arrays
  refused("\xa1\x61x" + std::string(100'000, '\xc1'));   // tags of tags
  refused("\xa1\x61x\x5b" + std::string(8, '\xff'));     // bytes beyond all memory
  refused(
      R"({"protocol":"superstep-frame/1","type":"frame","series":"../../etc","frame":1,"shape":[1],"dtype":"u8"})");
  Tensor pixels(ElementType::u8, {4});
  Frame far = frame_over(pixels, most_frames);
  EXPECT_THROW(decode(encode_frame(WireFormat::raw, far)), Error);
  EXPECT_THROW(decode(encode_frame(WireFormat::stream2, far)), Error);
  for (const char* name : {"", ".", "..", "a/b", "a b"}) {
    Frame other = frame_over(pixels);
    other.series = name;
    EXPECT_THROW(decode(encode_frame(WireFormat::stream2, other)), Error) << name;
  }
}

TEST(Pixels, BecomeNumbers) {
  const std::vector<std::uint16_t> pixels{0, 7, 65535};
  std::vector<float> values(3);
  convert_pixels(ElementType::u16, std::as_bytes(std::span(pixels)), 0.5F, true, values);
  EXPECT_EQ(values, (std::vector<float>{0, 3.5F, 0}));
  convert_pixels(ElementType::u16, std::as_bytes(std::span(pixels)), 1, false, values);
  EXPECT_EQ(values[2], 65535);
}

TEST(Series, KnowsWhatIsMissing) {
  Series series("s");
  series.announce(10);
  for (const std::uint64_t number : {0, 1, 4, 7, 6, 12}) EXPECT_TRUE(series.add(number));
  EXPECT_FALSE(series.add(4));
  EXPECT_EQ(series.missing(), 5U);
  using Range = std::pair<std::uint64_t, std::uint64_t>;
  EXPECT_EQ(series.missing_ranges(10), (std::vector<Range>{{2, 3}, {5, 5}, {8, 9}}));
  EXPECT_EQ(series.missing_ranges(1), (std::vector<Range>{{2, 3}}));
  Series open("t");  // nothing announced: what is before the last
  open.add(3);
  EXPECT_EQ(open.missing(), 3U);
}

// Anybody may announce a series of millions, a thousand times over: what never came is counted, not looked
// for.
TEST(Series, FindsWhatIsMissingWhereLittleCame) {
  using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  std::uint64_t last = 0;
  for (int i = 0; i < 20'000; ++i) {
    Series series("s");
    series.announce(~std::uint64_t{0});
    series.add(1);
    const Ranges ranges = series.missing_ranges(10);
    ASSERT_EQ(ranges.size(), 2U);
    last = ranges.back().second;
  }
  EXPECT_EQ(last, most_frames - 1);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {  // as one by one
    RandomStream random(seed, 0);
    Series series("s");
    const std::uint64_t announced = random.below(300);
    series.announce(announced);
    std::vector<bool> there(announced);
    for (std::uint64_t i = random.below(40); i > 0; --i) {
      const std::uint64_t number = random.below(260);
      EXPECT_EQ(series.add(number), number >= there.size() || !there[number]);
      if (number >= there.size()) there.resize(number + 1);
      there[number] = true;
    }
    const std::uint64_t expected = announced > 0 ? announced : series.end();
    Ranges ranges;
    std::uint64_t missing = 0;
    for (std::uint64_t number = 0; number < expected; ++number) {
      if (number < there.size() && there[number]) continue;
      ++missing;
      if (!ranges.empty() && ranges.back().second + 1 == number)
        ++ranges.back().second;
      else
        ranges.emplace_back(number, number);
    }
    EXPECT_EQ(series.missing_ranges(1000), ranges) << seed;
    EXPECT_EQ(series.missing(), missing) << seed;
  }
}

// --- all the way

struct Way {
  explicit Way(const std::filesystem::path& folder, const ServiceSettings& service = small_service(),
               float scale = 1)
      : model("m", {.what = "mlp"}, service),
        receiver({.pull = "tcp://127.0.0.1:*", .folder = folder, .scale = scale, .part_bytes = 2'000},
                 model) {}

  StreamAccount end() {
    receiver.stop();
    EXPECT_TRUE(model.batcher().wait_until_idle(Clock::now() + std::chrono::seconds(60)));
    receiver.finish();
    return receiver.account();
  }
  void wait_for_series(std::uint64_t count) {
    for (int i = 0; i < 6000 && receiver.account().series < count; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_GE(receiver.account().series, count);
  }

  ModelService model;
  Receiver receiver;
};

// The receiver is bound here, so that no port is guessed: messages are pushed by a socket that connects.
class Sender {
 public:
  explicit Sender(const std::string& to)
      : socket_(SocketKind::push, to, {.linger = std::chrono::seconds(20), .connects = true}) {}
  void send(const std::vector<std::string>& message) {
    ASSERT_TRUE(socket_.send(message, std::chrono::milliseconds(60'000)));
  }

 private:
  Socket socket_;
};

Tensor mlp_frames(std::int64_t count, std::uint64_t seed) {
  const target::Target& cpu = target::find_target("cpu");
  const ServedPort port = read_blueprint({.what = "mlp"}, cpu).ports.inputs[0];
  std::vector<std::int64_t> extents = port.shape.extents();
  extents.insert(extents.begin(), count);
  Tensor frames(ElementType::f32, Shape(std::move(extents)));
  RandomStream(seed).fill_uniform(frames.as<float>(), -1, 1);
  return frames;
}

// Port of a socket that was closed just now: for a detector that binds.
std::string free_endpoint() { return Socket(SocketKind::push, "tcp://127.0.0.1:*", {}).endpoint(); }

TEST(Stream, CountsEveryFaultExactly) {
  for (const WireFormat format : {WireFormat::raw, WireFormat::stream2}) {
    const ScratchFolder folder;
    const Tensor frames = mlp_frames(50, 3);
    ServiceSettings service = small_service();
    service.batcher.when_full = QueueFull::wait;
    service.batcher.queue_rows = 64;
    ModelService model("m", {.what = "mlp"}, service);
    const DetectorSettings settings{.to = free_endpoint(),
                                    .format = format,
                                    .series = "scan",
                                    .frames = 5000,
                                    .rate = 0,
                                    .faults = {.drop = 0.02, .twice = 0.03, .corrupt = 0.01, .reorder = 16},
                                    .seed = 9};
    Receiver receiver({.pull = settings.to, .folder = folder / "out", .part_bytes = 100'000}, model);
    const DetectorReport sent = send_series(frames, settings);
    for (int i = 0; i < 6000 && receiver.account().series == 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const StreamAccount account = receiver.account();
    EXPECT_GT(sent.dropped, 50U);
    EXPECT_GT(sent.corrupt, 20U);
    EXPECT_EQ(account.received, sent.sent);
    EXPECT_EQ(account.corrupt, sent.corrupt);
    EXPECT_EQ(account.duplicate, sent.twice);
    EXPECT_EQ(account.missing, sent.dropped + sent.corrupt);
    EXPECT_EQ(account.of(Outcome::served), 5000 - sent.dropped - sent.corrupt);
    EXPECT_EQ(account.waiting, 0U);
    EXPECT_EQ(account.incomplete, 1U);
    EXPECT_TRUE(account.balances());
    receiver.stop();
    receiver.finish();
    EXPECT_EQ(receiver.failure(), "");
    const json summary = json::parse(read_text_file(folder / "out/scan.json"));
    EXPECT_EQ(summary["missing"], account.missing);
    EXPECT_EQ(summary["announced"], 5000);
  }
}

// Every answer is what the model says of that frame, under that frame's number, whatever the order was.
TEST(Stream, WritesTheAnswerOfEachFrame) {
  const ScratchFolder folder;
  const Tensor frames = mlp_frames(200, 4);
  std::vector<std::uint64_t> answered;
  {
    Way way(folder / "out");
    Sender sender(way.receiver.pull_endpoint());
    const std::size_t row = frames.byte_count() / 200;
    std::vector<std::int64_t> extents(frames.shape().begin() + 1, frames.shape().end());
    for (std::uint64_t i = 0; i < 200; ++i) {
      const std::uint64_t number = i * 77 % 200;  // another order
      sender.send(encode_frame(i % 2 ? WireFormat::raw : WireFormat::stream2,
                               {.series = "scan",
                                .number = number,
                                .extents = extents,
                                .pixels = {frames.bytes() + number * row, row}}));
    }
    sender.send(encode_end(WireFormat::raw, {"scan"}));
    way.wait_for_series(1);
    EXPECT_EQ(way.end().of(Outcome::served), 200U);
    EXPECT_GT(way.receiver.files().size(), 1U) << "in parts";
    const auto version = way.model.current();
    JobPointer job = make_job(version, 200);
    std::copy_n(frames.bytes(), frames.byte_count(), job->inputs[0].bytes());
    std::vector<RowRange> ranges;
    for (std::int64_t first = 0; first < 200; first += 8) {
      ranges = {{job->inputs, job->outputs, first, 8}};
      version->run(0, ranges);
    }
    const std::string output = version->ports().outputs[0].name;
    const std::size_t width = version->ports().outputs[0].row_bytes() / sizeof(float);
    const auto expected = job->outputs[0].as<float>();
    for (const std::string& file : way.receiver.files()) {
      const run::NamedTensors arrays = run::read_arrays(file);
      const auto numbers = arrays.at("frame").as<std::uint64_t>();
      const auto values = arrays.at(output).as<float>();
      EXPECT_TRUE(std::ranges::is_sorted(numbers));
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        answered.push_back(numbers[i]);
        for (std::size_t k = 0; k < width; ++k)
          ASSERT_NEAR(values[i * width + k], expected[numbers[i] * width + k], 1e-5);
      }
    }
  }
  std::ranges::sort(answered);
  for (std::uint64_t i = 0; i < 200; ++i) ASSERT_EQ(answered.at(i), i);
}

TEST(Stream, TakesSeveralRowsAFrame) {
  const ScratchFolder folder;
  Way way(folder / "out");
  Sender sender(way.receiver.pull_endpoint());
  const Tensor frames = mlp_frames(48, 4);
  sender.send(encode_frame(WireFormat::raw, {.series = "s",
                                             .number = 0,
                                             .extents = frames.shape().extents(),
                                             .pixels = {frames.bytes(), frames.byte_count()}}));
  sender.send(encode_end(WireFormat::raw, {"s"}));
  way.wait_for_series(1);
  way.end();
  EXPECT_EQ(run::read_arrays(folder / "out/s-0001.h5").at("frame").element_count(), 48);
}

TEST(Stream, GoesOnAfterWhatItCannotUse) {
  const ScratchFolder folder;
  Way way(folder / "out");
  Sender sender(way.receiver.pull_endpoint());
  const Tensor good = mlp_frames(1, 1), other(ElementType::f32, {3, 3});
  const std::vector<std::int64_t> extents(good.shape().begin() + 1, good.shape().end());
  const auto send = [&](std::uint64_t number, const Tensor& pixels, const std::vector<std::int64_t>& of) {
    sender.send(encode_frame(
        WireFormat::raw,
        {.series = "s", .number = number, .extents = of, .pixels = {pixels.bytes(), pixels.byte_count()}}));
  };
  send(0, good, extents);
  send(1, other, {3, 3});
  sender.send({"nothing of the kind"});
  sender.send({""});
  sender.send({"{}", "a", "b"});
  sender.send({tagged_frame("\xd8\x41", std::string("\x42\0\1", 3))});
  sender.send({tagged_frame("\xd8\x45", std::string("\x42\1\2", 3),
                            "\x6bthreshold_2\xd8\x28\x82\x81\x01\xd8\x40\x41x")});
  send(0, good, extents);
  send(2, good, extents);
  sender.send(encode_end(WireFormat::raw, {"s"}));
  send(3, good, extents);
  way.wait_for_series(1);
  for (int i = 0; i < 1000 && way.receiver.account().late == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const StreamAccount account = way.end();
  EXPECT_EQ(account.received, 10U);
  EXPECT_EQ(account.unread, 2U);
  EXPECT_EQ(account.unusable(), 7U);
  std::uint64_t explained = 0;
  std::string reasons;
  for (const auto& [why, many] : account.reasons) explained += many, reasons += why + "\n";
  EXPECT_EQ(explained, account.unusable());
  for (const char* reason :
       {"tag 65", "it has 2 channels", "[3,3] of f32", "behind the end", "CBOR: an item"})
    EXPECT_NE(reasons.find(reason), std::string::npos) << reasons;
  EXPECT_EQ(account.of(Outcome::served), 2U);
  EXPECT_EQ(account.unfitting, 1U);
  EXPECT_EQ(account.corrupt, 3U);
  EXPECT_EQ(account.duplicate, 1U);
  EXPECT_EQ(account.late, 1U);
  EXPECT_EQ(account.missing, 0U);
  EXPECT_TRUE(account.balances());
}

// Not those that are being written, under another name.
std::size_t whole_files_in(const std::filesystem::path& folder) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    count += entry.path().extension() == ".h5" || entry.path().extension() == ".json";
  return count;
}

constexpr std::uint64_t each = 150;  // frames of a series: more than a file's answers
constexpr std::uint64_t least = each * 2 * sizeof(std::uint64_t);  // bytes of answers: two numbers each

void send_all(Sender& sender, const std::string& series, std::uint64_t count) {
  const Tensor frames = mlp_frames(1, 1);
  const std::vector<std::int64_t> extents(frames.shape().begin() + 1, frames.shape().end());
  for (std::uint64_t number = 0; number < count; ++number)
    sender.send(encode_frame(WireFormat::raw, {.series = series,
                                               .number = number,
                                               .extents = extents,
                                               .pixels = {frames.bytes(), frames.byte_count()}}));
  sender.send(encode_end(WireFormat::raw, {series}));
}

// A disk that is full under the answers: frames are answered on, also of the next series; what finds no room
// waits in memory and is written when there is some; nothing half-written is there at any time.
TEST(Stream, GoesOnWhereAFullDiskTakesNoAnswers) {
  const ScratchFolder folder;
  Way way(folder / "out");
  Sender sender(way.receiver.pull_endpoint());
  {
    const FileSizeLimit full(512);
    send_all(sender, "a", each);
    send_all(sender, "b", each);
    way.wait_for_series(2);
    const StreamAccount account = way.receiver.account();
    EXPECT_EQ(account.of(Outcome::served), 2 * each);
    EXPECT_TRUE(account.balances());
    for (int i = 0; i < 1000 && way.receiver.account().unwritten_bytes < 2 * least; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_GE(way.receiver.account().unwritten_bytes, 2 * least);
    EXPECT_NE(way.receiver.failure(), "");
    EXPECT_EQ(whole_files_in(folder / "out"), 0U);
  }
  for (int i = 0; i < 6000 && !std::filesystem::exists(folder / "out/b.json"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  way.end();
  EXPECT_EQ(way.receiver.failure(), "");
  EXPECT_EQ(way.receiver.account().unwritten_bytes, 0U);
  std::int64_t rows = 0;
  for (const std::string& file : way.receiver.files())
    rows += run::read_arrays(file).at("frame").element_count();
  EXPECT_EQ(rows, static_cast<std::int64_t>(2 * each));
  EXPECT_TRUE(std::filesystem::exists(folder / "out/a-0001.h5")) << "numbers are of files that are there";
  EXPECT_TRUE(std::filesystem::exists(folder / "out/a.json"));
}

// There is no room to the end: it ends all the same, and says so.
TEST(Stream, EndsWhereAFullDiskTakesNoAnswers) {
  const ScratchFolder folder;
  Way way(folder / "out");
  Sender sender(way.receiver.pull_endpoint());
  const FileSizeLimit full(512);
  send_all(sender, "a", each);
  way.wait_for_series(1);
  const StreamAccount account = way.end();
  EXPECT_EQ(account.of(Outcome::served), each);
  EXPECT_GE(account.unwritten_bytes, least);
  EXPECT_NE(way.receiver.failure(), "");
  EXPECT_TRUE(way.receiver.files().empty());
  EXPECT_EQ(whole_files_in(folder / "out"), 0U);
  EXPECT_TRUE(std::filesystem::is_empty(folder / "out")) << "nothing half-written is left";
}

// A detector that goes away leaves its series incomplete; the next one is served at once, and memory is
// bounded.
TEST(Stream, SurvivesDetectorsThatDisappear) {
  const ScratchFolder folder;
  Way way(folder / "out");
  const Tensor frames = mlp_frames(1, 1);
  const std::vector<std::int64_t> extents(frames.shape().begin() + 1, frames.shape().end());
  for (int series = 0; series < 40; ++series) {
    Sender sender(way.receiver.pull_endpoint());
    const std::string name = "s" + std::to_string(series);
    sender.send(encode_begin(WireFormat::stream2, {name, 5}, {.extents = extents}));
    for (std::uint64_t number : {0, 3})
      sender.send(encode_frame(WireFormat::stream2, {.series = name,
                                                     .number = number,
                                                     .extents = extents,
                                                     .pixels = {frames.bytes(), frames.byte_count()}}));
    // The socket takes turns between senders: what is still to come of one must not meet the eviction by
    // others.
    for (int i = 0; i < 1000 && way.receiver.account().received < 2 * static_cast<std::uint64_t>(series + 1);
         ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  way.wait_for_series(20);
  for (int i = 0; i < 1000 && way.receiver.account().received < 80; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const StreamAccount account = way.end();
  EXPECT_EQ(account.of(Outcome::served), 80U);
  EXPECT_EQ(account.series, 40U);
  EXPECT_EQ(account.incomplete, 40U);
  EXPECT_EQ(account.missing, 120U);
  EXPECT_TRUE(std::filesystem::exists(folder / "out/s39-0001.h5"));
  EXPECT_EQ(json::parse(read_text_file(folder / "out/s0.json"))["missing_ranges"],
            json::parse("[[1,2],[4,4]]"));
}

TEST(Stream, WritesOverNothing) {
  const ScratchFolder folder;
  const Tensor frames = mlp_frames(1, 1);
  const std::vector<std::int64_t> extents(frames.shape().begin() + 1, frames.shape().end());
  for (int time = 0; time < 2; ++time) {
    Way way(folder / "out");
    Sender sender(way.receiver.pull_endpoint());
    sender.send(
        encode_frame(WireFormat::raw,
                     {.series = "s", .extents = extents, .pixels = {frames.bytes(), frames.byte_count()}}));
    sender.send(encode_end(WireFormat::raw, {"s"}));
    way.wait_for_series(1);
    way.end();
  }
  EXPECT_TRUE(std::filesystem::exists(folder / "out/s-0001.h5"));
  EXPECT_TRUE(std::filesystem::exists(folder / "out/s-0002.h5"));
}

// Bytes of this process that are in memory.
std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * 4096;
}

// Answers for a listener that does not read are dropped once a bounded number waits; nobody else is held
// back.
TEST(Stream, IsNotHeldBackByAListenerThatDoesNotRead) {
  const auto outlet = open_publisher("tcp://127.0.0.1:*");
  Socket sleeper(SocketKind::subscribe, outlet->endpoint(), {.high_water = 1});
  MessageParts parts;
  const std::vector<std::string> first{"first"};
  for (int tries = 0; !sleeper.receive(parts, std::chrono::milliseconds(20)); ++tries) {
    ASSERT_LT(tries, 500) << "it does not listen";
    outlet->send(first, std::chrono::milliseconds(0));
  }
  const std::size_t before = resident_bytes();
  const std::vector<std::string> answer{std::string(10'000, 'x')};
  constexpr int answers = 20'000;  // 200 MB
  for (int i = 0; i < answers; ++i) ASSERT_TRUE(outlet->send(answer, std::chrono::seconds(10))) << i;
  EXPECT_LT(resident_bytes(), before + (std::size_t{64} << 20));
  int came = 0;
  while (sleeper.receive(parts, std::chrono::milliseconds(500)))
    if (parts[0].size() == answer[0].size()) ++came;
  EXPECT_GT(came, 0);
  EXPECT_LT(came, answers);
}

TEST(Stream, PublishesAnswers) {
  ModelService model("m", {.what = "mlp"}, small_service());
  Receiver receiver({.pull = "tcp://127.0.0.1:*", .publish = "tcp://127.0.0.1:*"}, model);
  Socket listener(SocketKind::subscribe, receiver.publish_endpoint(), {});
  Sender sender(receiver.pull_endpoint());
  const Tensor frames = mlp_frames(1, 1);
  const std::vector<std::int64_t> extents(frames.shape().begin() + 1, frames.shape().end());
  MessageParts parts;
  bool heard = false;
  for (std::uint64_t number = 0; number < 500 && !heard; ++number) {  // a subscription takes its time
    sender.send(encode_frame(WireFormat::raw, {.series = "s",
                                               .number = number,
                                               .extents = extents,
                                               .pixels = {frames.bytes(), frames.byte_count()}}));
    heard = listener.receive(parts, std::chrono::milliseconds(20));
  }
  ASSERT_TRUE(heard);
  ASSERT_EQ(parts.size(), 1 + model.current()->ports().outputs.size());
  const json head =
      json::parse(std::string_view(reinterpret_cast<const char*>(parts[0].data()), parts[0].size()));
  EXPECT_EQ(head["protocol"], "superstep-answer/1");
  EXPECT_EQ(head["version"], model.current()->id());
  EXPECT_EQ(parts[1].size(), model.current()->ports().outputs[0].row_bytes());
}

// From when frames were due: a server that stands still for a while is seen by every frame that was due
// meanwhile, though the detector could not send them.
TEST(Stream, TimesAnswersFromWhenFramesWereDue) {
  ServiceSettings service = small_service(1);
  service.batcher.when_full = QueueFull::wait;
  ModelService model("m", {.what = "mlp"}, service);
  const std::string frames_at = free_endpoint();
  Receiver receiver({.pull = frames_at, .publish = "tcp://127.0.0.1:*"}, model);
  const Tensor frames = mlp_frames(4, 1);
  constexpr std::uint64_t count = 1000;
  const DetectorReport report = send_series(frames, {.to = frames_at,
                                                     .format = WireFormat::raw,
                                                     .series = "timed",
                                                     .frames = count,
                                                     .rate = 1000,
                                                     .faults = {.drop = 0.02, .twice = 0.02, .corrupt = 0.02},
                                                     .answers = receiver.publish_endpoint()});
  EXPECT_EQ(report.latencies.size() + report.unanswered, count - report.dropped - report.corrupt);
  EXPECT_EQ(report.unanswered, 0U);
  EXPECT_TRUE(std::ranges::is_sorted(report.latencies));
  EXPECT_GT(report.latencies.front(), 0);

  // A listener in the publisher's place that answers half a second late, and not to every frame.
  const auto outlet = open_publisher("tcp://127.0.0.1:*");
  const std::string slow_at = free_endpoint();
  std::thread slow([&] {
    Socket pull(SocketKind::pull, slow_at, {.high_water = 1});
    MessageParts parts;
    bool first = true;
    while (pull.receive(parts, std::chrono::milliseconds(2000))) {
      std::vector<std::span<const std::byte>> views(parts.begin(), parts.end());
      const StreamMessage message = decode_message(views);
      const auto* frame = std::get_if<Frame>(&message);
      if (!frame) continue;
      if (std::exchange(first, false)) std::this_thread::sleep_for(std::chrono::milliseconds(500));
      const std::vector<std::string> answer{
          json{{"protocol", "superstep-answer/1"}, {"series", "slow"}, {"frame", frame->number}}.dump()};
      if (frame->number != 7) outlet->send(answer, std::chrono::milliseconds(0));
    }
  });
  const DetectorReport late = send_series(frames, {.to = slow_at,
                                                   .format = WireFormat::raw,
                                                   .series = "slow",
                                                   .frames = 100,
                                                   .rate = 1000,
                                                   .high_water = 1,
                                                   .answers = outlet->endpoint()});
  slow.join();
  EXPECT_EQ(late.unanswered, 1U);
  ASSERT_EQ(late.latencies.size(), 99U);
  EXPECT_GT(late.latencies.front(), 0.39) << "the last was due 0.1 s after the first";
  expect_error(ErrorCode::invalid_argument, {"--answers", "--rate"}, [&] {
    send_series(frames, {.to = free_endpoint(), .frames = 1, .rate = 0, .answers = outlet->endpoint()});
  });
  expect_error(ErrorCode::io, {"nobody publishes"}, [&] {
    send_series(frames, {.to = free_endpoint(), .frames = 1, .answers = free_endpoint(), .patience = 0.2});
  });
}

// The queue is full for long: a stream is held back, and nothing is lost; or the oldest go, and are counted.
TEST(Stream, IsHeldBackOrDropsAsItIsTold) {
  for (const QueueFull when_full : {QueueFull::wait, QueueFull::drop_oldest}) {
    const ScratchFolder folder;
    ServiceSettings service = small_service(1, 1);
    service.batcher.when_full = when_full;
    service.batcher.queue_rows = 4;
    Way way(folder / "out", service);
    Sender sender(way.receiver.pull_endpoint());
    const Tensor frames = mlp_frames(1, 1);
    const std::vector<std::int64_t> extents(frames.shape().begin() + 1, frames.shape().end());
    for (std::uint64_t number = 0; number < 3000; ++number)
      sender.send(encode_frame(WireFormat::raw, {.series = "s",
                                                 .number = number,
                                                 .extents = extents,
                                                 .pixels = {frames.bytes(), frames.byte_count()}}));
    sender.send(encode_end(WireFormat::raw, {"s"}));
    way.wait_for_series(1);
    const StreamAccount account = way.end();
    EXPECT_EQ(account.received, 3000U);
    EXPECT_EQ(account.missing, 0U);
    EXPECT_EQ(account.of(Outcome::served) + account.of(Outcome::dropped), 3000U);
    EXPECT_TRUE(account.balances());
    if (when_full == QueueFull::wait) {
      EXPECT_EQ(account.of(Outcome::served), 3000U);
    }
  }
}

TEST(Detector, KeepsItsRateAndItsSeed) {
  const Tensor frames = mlp_frames(4, 1);
  for (const Pace pace : {Pace::constant, Pace::poisson, Pace::burst}) {
    DetectorReport reports[2];
    for (DetectorReport& report : reports) {
      const DetectorSettings settings{.to = free_endpoint(),
                                      .format = WireFormat::raw,
                                      .frames = 400,
                                      .rate = 1000,
                                      .pace = pace,
                                      .burst = 50,
                                      .faults = {.drop = 0.1, .twice = 0.1, .corrupt = 0.1, .reorder = 8},
                                      .seed = 5,
                                      .high_water = 100'000};
      std::thread listener([&] {
        Socket pull(SocketKind::pull, settings.to, {.high_water = 100'000});
        MessageParts parts;
        while (pull.receive(parts, std::chrono::milliseconds(700))) {
        }
      });
      report = send_series(frames, settings);
      listener.join();
      EXPECT_GT(report.seconds, pace == Pace::poisson ? 0.25 : 0.34);  // of .4, less the last gap
    }
    EXPECT_EQ(reports[0].dropped, reports[1].dropped);
    EXPECT_EQ(reports[0].twice, reports[1].twice);
    EXPECT_EQ(reports[0].corrupt, reports[1].corrupt);
    EXPECT_EQ(reports[0].reordered, reports[1].reordered);
    EXPECT_EQ(reports[0].sent, 400 - reports[0].dropped + reports[0].twice);
  }
}

TEST(Detector, SaysThatNobodyTakesFrames) {
  const Tensor frames = mlp_frames(4, 1);
  expect_error(ErrorCode::io, {"nobody has taken"}, [&] {
    send_series(frames, {.to = free_endpoint(), .format = WireFormat::raw, .frames = 10, .patience = 0.3});
  });
}

TEST(Detector, ReadsFaultsAndFrames) {
  const Faults faults = faults_from_text("drop=0.5,reorder=8");
  EXPECT_EQ(faults.drop, 0.5);
  EXPECT_EQ(faults.reorder, 8U);
  for (const char* bad : {"drop", "drop=2", "x=1", "reorder=0", "drop=a", ","})
    EXPECT_THROW(faults_from_text(bad), Error) << bad;
  EXPECT_EQ(frames_of("braggnn", "", 16, 1, 1).pixels.shape()[0], 16);
  const ScratchFolder folder;
  run::write_arrays(folder / "a.npz", {{"x", mlp_frames(5, 1)}, {"y", mlp_frames(3, 1)}});
  EXPECT_EQ(frames_of((folder / "a.npz").string(), "y", 100, 1, 1).pixels.shape()[0], 3);
  EXPECT_EQ(frames_of((folder / "a.npz").string(), "x", 2, 1, 1).pixels.shape()[0], 2);
  expect_error(ErrorCode::invalid_argument, {"x, y", "--dataset"},
               [&] { frames_of((folder / "a.npz").string(), "", 9, 1, 1); });
  expect_error(ErrorCode::not_found, {"none.h5"},
               [&] { frames_of((folder / "none.h5").string(), "", 9, 1, 1); });
}

}  // namespace
}  // namespace superstep::edge
