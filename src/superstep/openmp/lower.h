// A queue of launches and transfers as one program of the bulk-synchronous machine.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "superstep/bsp/engine/engine.h"
#include "superstep/openmp/command.h"

namespace superstep::openmp {

struct LowerOptions {
  int threads = 1;
  bool timing_only = false;
  // Leaves out one element of every exchange of halos: a test of tests, whose comparisons must then
  // fail.
  bool withhold_halo_element = false;
};

// A program ready to run, and how its streams and memory images are laid out.
struct LoweredQueue {
  struct Transfer {
    std::string handle;
    std::size_t command;
    std::vector<Storage::OwnedBox> boxes;
  };
  struct Image {
    DeviceArray* array;
    std::string handle;
    std::vector<Storage::OwnedBox> boxes;  // of the whole array
  };
  struct ScalarStream {  // of a plan: what its launches send, one after the other
    std::string handle;
    std::size_t bytes = 0;  // of one
    std::vector<std::size_t> commands;
  };
  std::unique_ptr<bsp::Engine> engine;
  std::vector<Transfer> transfers;
  std::vector<Image> images;
  std::vector<ScalarStream> scalars;
  std::string captured;  // "1 x (2 steps), 500 x (4 steps)"
};

// All arrays of the commands are placed. Throws Error as compile_graph does.
LoweredQueue lower_queue(const bsp::Device& device, std::span<const Command> commands,
                         std::span<const std::shared_ptr<const Plan>> plans, const LowerOptions& options);

}  // namespace superstep::openmp
