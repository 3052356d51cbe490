// Ctrl-C and SIGTERM at any moment of any long command: it is gone soon, ends with 130, and leaves no file
// half written. That it is gone within a second is so where the machine is not busy with other tests.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <random>
#include <thread>

#include "superstep/base/text.h"
#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto patience = std::chrono::seconds(4);

class Stopping : public ::testing::Test {
 protected:
  pid_t start(const std::string& command) {
    const pid_t child = fork();
    if (child != 0) return child;
    std::vector<std::string> words = split(command, ' ');
    std::vector<char*> argv{const_cast<char*>(SUPERSTEP_PROGRAM)};
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    if (chdir((folder_ / "").c_str()) != 0 || setenv("SUPERSTEP_HOME", (folder_ / "home").c_str(), 1) != 0)
      _exit(99);
    (void)!freopen("stdout.txt", "w", stdout);
    (void)!freopen("stderr.txt", "w", stderr);
    execv(SUPERSTEP_PROGRAM, argv.data());
    _exit(98);
  }

  // Sends the signal after `delay`. The program must end in time; with 130, unless it was done before.
  void expect_stops(const std::string& command, std::chrono::milliseconds delay, int signal) {
    SCOPED_TRACE(command + " stopped after " + std::to_string(delay.count()) + " ms");
    const pid_t child = start(command);
    std::this_thread::sleep_for(delay);
    // Twice, as timeout(1) does: the process, and its group.
    kill(child, signal);
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    kill(child, signal);
    const auto asked = Clock::now();
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
      if (Clock::now() - asked > patience) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        FAIL() << "still there";
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    // A signal that comes before main has installed its handlers ends it as any other program.
    if (WIFSIGNALED(status)) {
      EXPECT_LT(delay.count(), 100) << content_of(folder_ / "stderr.txt");
    } else {
      EXPECT_TRUE(WEXITSTATUS(status) == 130 || WEXITSTATUS(status) == 0)
          << WEXITSTATUS(status) << content_of(folder_ / "stderr.txt");
    }
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / ""))
      EXPECT_EQ(entry.path().filename().string().find(".partial-"), std::string::npos) << entry.path();
  }

  // At several moments, drawn once and for all.
  void expect_stops_at_any_moment(const std::string& command, int most_milliseconds = 1500, int times = 3) {
    std::mt19937 random(7);
    for (int i = 0; i < times; ++i) {
      const auto delay = std::chrono::milliseconds(
          120 + static_cast<int>(random() % static_cast<unsigned>(most_milliseconds)));
      expect_stops(command, delay, i % 2 == 0 ? SIGINT : SIGTERM);
    }
  }

  void generate(const std::string& what) {
    const Outcome made = run_program(folder_ / "", "generate " + what);
    ASSERT_EQ(made.code, 0) << made.errors;
  }

  const ScratchFolder folder_;
};

TEST_F(Stopping, Trainings) {
  for (const char* command : {"train unet-256 --batch 8 --samples 40 --threads 1",  // steps of seconds
                              "train bert-small --samples 4000", "train resnet50 --samples 64 --batch 32",
                              "train braggnn --samples 200000"})  // data are made for long
    expect_stops_at_any_moment(command);
}

TEST_F(Stopping, GeneratorsLeaveNoFile) {
  for (const char* command :
       {"generate braggnn --samples 5000000 --out a.h5", "generate autophasenn --samples 2000 --out b.h5",
        "generate unet-256 --samples 5000 --out c.h5", "generate cifar10-cnn --samples 5000000 --out d.bin",
        "generate tad-ald --samples 2000000 --out e.csv"}) {
    expect_stops_at_any_moment(command);
    for (const auto& entry : fs::directory_iterator(folder_ / ""))
      EXPECT_TRUE(entry.path().extension() == ".txt" || entry.path().filename() == "home") << entry.path();
  }
}

TEST_F(Stopping, ConventionalMethods) {
  generate("autophasenn --samples 20 --out crystals.h5");
  generate("braggnn --samples 20000 --set margin=1 --out peaks.h5");
  generate("ptychonn-64 --samples 400 --out scans.h5");
  for (const char* command : {"baseline autophasenn --input crystals.h5 --output phases.h5",
                              "baseline braggnn --input peaks.h5 --output fits.h5",
                              "baseline ptychonn-64 --input scans.h5 --output objects.h5"})
    expect_stops_at_any_moment(command);
}

TEST_F(Stopping, PredictionsProfilesAndMeasurements) {
  for (const char* command : {"predict unet-256 --pipeline auto --units 4", "predict resnet50 --largest",
                              "profile unet-256 --batch 8", "profile braggnn --on gc200 --mode infer",
                              "bench gemm,conv --mode infer", "bench unet-256 --batch 16",
                              "infer unet-256 --samples 64", "machine measure --out host.toml"})
    expect_stops_at_any_moment(command, 1500, 2);
}

// An array of 17 GB that takes no room on the disk.
TEST_F(Stopping, AFileThatIsReadForLong) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (4250000000,), }";
  header.append(127 - 10 - header.size(), ' ');
  header += '\n';
  {
    std::ofstream file(folder_ / "huge.npy", std::ios::binary);
    file << std::string("\x93NUMPY\x01\x00", 8) << static_cast<char>(header.size()) << '\0' << header;
  }
  fs::resize_file(folder_ / "huge.npy", 128 + 4ull * 4250000000ull);
  expect_stops_at_any_moment("show huge.npy --out page.html", 800, 2);
}

TEST_F(Stopping, ATrainingSaysHowToGoOn) {
  const pid_t child = start("train mlp --epochs 100000 --out run --checkpoint-seconds 0");
  for (int i = 0;
       i < 2000 && (!fs::exists(folder_ / "run/checkpoints") || fs::is_empty(folder_ / "run/checkpoints"));
       ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  kill(child, SIGTERM);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  const std::string errors = content_of(folder_ / "stderr.txt");
  EXPECT_TRUE(contains(errors, "everything is saved"));
  EXPECT_TRUE(contains(errors, "go on with: superstep train mlp --resume run"));
}

// While it is translated and compiled, and while the program runs, which knows nothing of us.
TEST_F(Stopping, ATranslatedProgramStopsWithUs) {
  std::ofstream(folder_ / "long.c")
      << "#include <unistd.h>\n"
         "int main(void) { for (int i = 0; i < 6000; ++i) usleep(10000); return 0; }\n";
  if (run_program(folder_ / "", "openmp --help").code != 0)
    GTEST_SKIP() << "there is no superstep openmp here";
  expect_stops_at_any_moment("openmp long.c", 2500, 3);
}

}  // namespace
}  // namespace superstep
