#include "superstep/edge/demo/demo.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>

#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/threads/own_threads.h"
#include "superstep/edge/learn/child.h"
#include "superstep/edge/learn/phases.h"
#include "superstep/edge/stream/detector.h"
#include "superstep/edge/stream/frames.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/physics/generator.h"
#include "superstep/physics/xray/ptycho_stitch.h"
#include "superstep/run/user/arrays.h"
#include "superstep/workload/generated.h"

namespace superstep::edge {
namespace {

namespace fs = std::filesystem;

constexpr const char* workload_name = "ptychonn-128";
constexpr int window = 32;          // px: small enough for two cores and a few minutes
constexpr int drift_of_sample = 8;  // px a scan
constexpr std::int64_t crop = 12;
constexpr int niceness = 0;  // nobody is served while it learns: the detector waits for it
constexpr double pixel = 10e-9;

void require_not_stopped() {
  if (interrupted()) throw Error(ErrorCode::interrupted, "the demonstration was left");
}

std::string free_endpoint() { return Socket(SocketKind::push, "tcp://127.0.0.1:*", {}).endpoint(); }

fs::path scan_file(const DemoSettings& settings, int scan) {
  return settings.folder / fmt::format("scan-{}.h5", scan);
}

// Scan 0 is what is learnt from before; its sample drifts by, and its probe becomes wider and less in focus.
void make_scan(const DemoSettings& settings, const fs::path& file, int scan, int drifts) {
  const std::vector<std::string> options{
      fmt::format("window={}", window),
      fmt::format("points={}", settings.points),
      fmt::format("drift={}", drift_of_sample),
      fmt::format("first={}", scan),
      "photons=1e6",
      "stop=0.3",
      fmt::format("width={}", settings.width + drifts * settings.wider),
      fmt::format("defocus={:.3f}", settings.defocus + drifts * settings.more)};
  ThreadPool pool(settings.threads);
  workload::make_generator(workload_name, options)
      ->write({.path = file,
               .seed = settings.seed,
               .samples = static_cast<std::uint64_t>(settings.points),
               .pool = &pool});
}

// The probe as it was before it drifted, on a part of the sample that the first training has not seen.
fs::path regression_file(const DemoSettings& settings) { return settings.folder / "regression.h5"; }

double train_first(const DemoSettings& settings) {
  constexpr double most_seconds = 1800;
  const ChildOutcome outcome = run_child(
      {"/proc/self/exe",
       "train",
       workload_name,
       "--set",
       fmt::format("window={}", window),
       "--data",
       scan_file(settings, 0).string(),
       "--epochs",
       std::to_string(settings.first_epochs),
       "--batch",
       "16",
       "--learning-rate",
       "1e-3",
       "--out",
       (settings.folder / "run").string(),
       "--threads",
       std::to_string(settings.threads),
       "--seed",
       std::to_string(settings.seed),
       "--quiet"},
      settings.folder / "train.log", {most_seconds, niceness}, [] { return false; },
      [] { return interrupted(); });
  require_not_stopped();
  if (!outcome.done) throw Error(ErrorCode::io, "the training before the scans: " + outcome.why, "demo");
  return outcome.seconds;
}

ServeSettings serve_settings(const DemoSettings& settings, const std::string& pull) {
  ServeSettings serve;
  serve.models = {named_source("ptycho=" + (settings.folder / "run").string())};
  serve.service.workers = 1;
  serve.service.threads = 1;
  serve.service.row_by_row = true;  // a seed fixes what comes of it
  serve.service.batcher.max_batch = 16;
  serve.service.batcher.when_full = QueueFull::wait;
  serve.server.port = settings.port;
  serve.stream = {.pull = pull, .folder = settings.folder / "answers", .meaning = Pixels::logarithm};
  serve.live = Live::Settings{.stitch = {.pixel = pixel, .crop = crop, .phase_mean = false},
                              .folder = settings.folder / "pictures",
                              .positions = {}};
  serve.learn = LearnSettings{.folder = settings.folder / "learnt",
                              .regression = regression_file(settings),
                              .epochs = settings.epochs,
                              .crop = crop,
                              .budget = 600,
                              .pixel = pixel,
                              .shadow_seconds = 0.5,
                              .niceness = niceness,
                              .seed = settings.seed};
  return serve;
}

// The server, in a thread of its own: what it comes to, or how it failed.
class Service {
 public:
  Service(const ServeSettings& given, const std::function<void(const std::string&)>& told) {
    ServeSettings settings = given;
    settings.should_stop = [this](Learner* learner) {
      learner_ = learner;
      return over_.load();
    };
    thread_ = start_thread([this, settings, told] {
      try {
        report_ = serve(settings, [&](const std::vector<ServedModel>&, const ServePlaces& places) {
          told(fmt::format("serves at http://127.0.0.1:{0}, the scan as it runs at http://127.0.0.1:{0}/live",
                           places.port));
        });
      } catch (...) {
        failure_ = std::current_exception();
      }
      ended_ = true;
    });
  }
  ~Service() { end_thread(); }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  Learner& learner() {
    while (!learner_.load()) look();
    return *learner_.load();
  }
  // Until `done`, as long as the server lives and nobody asks to stop.
  template <class Done>
  void wait(const Done& done) {
    while (!done()) look();
  }
  ServeReport end() {
    end_thread();
    if (failure_) std::rethrow_exception(failure_);
    return report_;
  }

 private:
  void look() {
    if (ended_) {
      if (failure_) std::rethrow_exception(failure_);
      throw Error(ErrorCode::interrupted, "the demonstration was left");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  void end_thread() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }

  std::atomic<Learner*> learner_ = nullptr;
  std::atomic<bool> over_ = false, ended_ = false;
  std::exception_ptr failure_;
  ServeReport report_;
  std::thread thread_;
};

// --- what came of it

// The answers in the series' files, by frame, and the version that gave most of them.
std::vector<float> answers_in(const DemoSettings& settings, DemoScan& scan, std::size_t values) {
  std::vector<float> all(static_cast<std::size_t>(settings.points) * values,
                         std::numeric_limits<float>::quiet_NaN());
  const nlohmann::json summary =
      parse_json_or_throw(read_text_file(settings.folder / "answers" / (scan.name + ".json")));
  std::map<std::uint64_t, std::size_t> versions;
  for (const auto& file : summary.at("files")) {
    const run::NamedTensors arrays = run::read_arrays(settings.folder / "answers" / file.get<std::string>());
    const Tensor& frames = arrays.at("frame");
    const auto phases = arrays.at("phase").as<float>();
    for (std::int64_t i = 0; i < frames.element_count(); ++i) {
      const auto frame = frames.as<std::uint64_t>()[static_cast<std::size_t>(i)];
      std::ranges::copy(phases.subspan(static_cast<std::size_t>(i) * values, values),
                        all.begin() + static_cast<std::ptrdiff_t>(frame * values));
      ++versions[arrays.at("version").as<std::uint64_t>()[static_cast<std::size_t>(i)]];
    }
  }
  const auto most = std::ranges::max_element(versions, {}, [](const auto& one) { return one.second; });
  if (most != versions.end()) scan.version = fmt::format("{:016x}", most->first);
  return all;
}

StitchedPicture stitched(const LearnScan& scan, std::span<const float> answers) {
  StitchCanvas canvas({.pixel = pixel, .crop = crop, .phase_mean = false});
  const auto values = static_cast<std::size_t>(scan.window * scan.window);
  for (std::size_t i = 0; i < scan.size(); ++i)
    canvas.add(answers.subspan(i * values, values), scan.window, scan.positions[i]);
  return canvas.picture();
}

void compare_pictures(DemoScan& scan, const fs::path& file) {
  const Tensor object = data::Hdf5File(file).read("object_phase", ElementType::f32);
  const std::int64_t height = object.shape()[1], width = object.shape()[2];
  for (int y = 0; y < scan.picture.height; ++y)
    for (int x = 0; x < scan.picture.width; ++x) {
      const std::int64_t row = scan.picture.top + y, column = scan.picture.left + x;
      const bool inside = row >= 0 && row < height && column >= 0 && column < width;
      scan.truth.push_back(inside ? static_cast<float>(object.at(row * width + column)) : 0.0f);
    }
  const std::vector<double> weight(scan.picture.weight.begin(), scan.picture.weight.end());
  scan.correlation = data::correlation(scan.picture.mean, scan.truth, weight);
  if (scan.picture_without.mean.size() == scan.truth.size())
    scan.correlation_without = data::correlation(scan.picture_without.mean, scan.truth, weight);
}

// A phase is known up to a constant, one of the whole scan: labels and truth need not have the same.
std::vector<double> errors_of(std::span<const float> answers, const LearnScan& truth) {
  LearnScan turned = truth;
  turn(turned, turn_between(answers, truth, crop));
  return phase_errors(answers, samples_of(turned), crop);
}

void judge(const DemoSettings& settings, int number, Version& first, DemoScan& scan) {
  const PhaseLesson lesson({.crop = crop, .pixel = pixel});
  const LearnScan truth = lesson.read_labelled(scan_file(settings, number), settings.points);
  const auto values = static_cast<std::size_t>(window * window);
  const std::vector<float> answers = answers_in(settings, scan, values),
                           without = answers_to(first, samples_of(truth), lesson);
  scan.errors = errors_of(answers, truth);
  scan.without = errors_of(without, truth);
  scan.picture = stitched(truth, answers);
  scan.picture_without = stitched(truth, without);
  compare_pictures(scan, scan_file(settings, number));
}

void run_scan(const DemoSettings& settings, const std::string& endpoint, int number, Service& service,
              DemoScan& scan, const std::function<void(const std::string&)>& told) {
  const auto [pixels, positions] = frames_of(scan_file(settings, number).string(), "diff", settings.points,
                                             settings.seed, settings.threads);
  const Stopwatch watch;
  send_series(pixels, {.to = endpoint,
                       .positions = positions,
                       .series = scan.name,
                       .frames = static_cast<std::uint64_t>(settings.points),
                       .rate = settings.rate});
  service.wait([&] { return fs::exists(settings.folder / "answers" / (scan.name + ".json")); });
  scan.served_seconds = watch.seconds();
  told(fmt::format("{}: {} frames in {:.1f} s, probe {:.0f} nm wide, {:.1f} waves out of focus; learns",
                   scan.name, settings.points, scan.served_seconds, scan.width, scan.defocus));
  service.wait([&] { return service.learner().wait_until_idle(0.02); });
  scan.learnt_seconds = watch.seconds() - scan.served_seconds;
  for (const nlohmann::json& event : service.learner().events())
    if (event.value("scan", "") == scan.name &&
        (event["event"] == "accepted" || event["event"] == "rejected"))
      told(fmt::format("{}: {} after {:.1f} s: error on points kept aside {:.3f} -> {:.3f} rad", scan.name,
                       event["event"].get<std::string>(), scan.learnt_seconds,
                       event.value("error_before", std::nan("")), event.value("error_after", std::nan(""))));
}

}  // namespace

DemoReport run_demo(const DemoSettings& settings, const std::function<void(const std::string&)>& told) {
  const Stopwatch watch;
  if (fs::exists(settings.folder) && !fs::is_empty(settings.folder))
    throw Error(ErrorCode::invalid_argument, "something is in the folder already", settings.folder.string(),
                "give another one by --out");
  make_folder(settings.folder);
  DemoReport report;
  for (int scan = 0; scan <= settings.scans; ++scan)
    make_scan(settings, scan_file(settings, scan), scan, scan);
  make_scan(settings, regression_file(settings), settings.scans + 1, 0);
  told(fmt::format("{} scans of {} points made; trains on the first, with the true phases",
                   settings.scans + 1, settings.points));
  report.training_seconds = train_first(settings);
  const std::string endpoint = free_endpoint();
  Service service(serve_settings(settings, endpoint), told);
  service.learner();
  for (int number = 1; number <= settings.scans; ++number) {
    DemoScan& scan = report.scans.emplace_back();
    scan.name = fmt::format("scan-{}", number);
    scan.width = settings.width + number * settings.wider;
    scan.defocus = settings.defocus + number * settings.more;
    run_scan(settings, endpoint, number, service, scan, told);
  }
  report.events = service.learner().events();
  report.served = service.end();
  require_not_stopped();
  const target::Target& target = target::find_target("cpu");
  Version first(read_blueprint({.what = (settings.folder / "run").string()}, target), target,
                {.max_batch = 16, .row_by_row = true});
  report.first_version = first.id();
  for (int number = 1; number <= settings.scans; ++number)
    judge(settings, number, first, report.scans[static_cast<std::size_t>(number - 1)]);
  report.seconds = watch.seconds();
  write_demo_page(settings.folder / "report.html", report);
  return report;
}

}  // namespace superstep::edge
