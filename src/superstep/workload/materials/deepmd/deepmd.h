// What the files of deepmd share: sizes, the loss, frames of atoms as they are read, the samples.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "superstep/file/atoms/labelled_frames.h"
#include "superstep/transform/training/loss.h"
#include "superstep/workload/atom_model.h"
#include "superstep/workload/task.h"

namespace superstep::workload {

// How much an error counts in the loss, at first and at last (Wang et al., Comput. Phys. Commun. 228, 178
// (2018), equation 9).
struct Prefactor {
  double start = 0, limit = 0;
};

struct DeepmdSizes {
  std::vector<int> elements;                     // atomic number of each type
  std::vector<std::int64_t> atoms;               // room in a frame, by type: rows of a type stand together
  std::vector<std::int64_t> near;                // room for neighbours of an atom, by their type
  double smooth = 0.5, cutoff = 6;               // A: between them the weight of a neighbour falls to nothing
  std::vector<std::int64_t> embedding, fitting;  // widths of the layers
  std::int64_t axis = 16;                        // columns of the embedding in the descriptor's second factor
  ElementType outer = ElementType::f32, inner = ElementType::f32;  // of geometry and sums; of the networks
  Prefactor energy, force, virial;
  double halving = 0;  // epochs in which what is left of the way from first to last prefactors is halved

  std::int64_t all_atoms() const;
  std::int64_t all_near() const;
};
std::vector<OptionSpec> deepmd_options();
// Throws Error (invalid_argument) that names the option.
DeepmdSizes deepmd_sizes(const Options& options);

// The weight of a neighbour at distance r, A: 1/r below `smooth`, (1/r) (x^3 (-6 x^2 + 15 x - 10) + 1) with x
// = (r - smooth) / (cutoff - smooth) up to `cutoff`, and 0 beyond.
double switched_inverse(double r, double smooth, double cutoff);

// p_e dE^2 / atoms + p_f sum dF^2 / (3 atoms) + p_v sum dV^2 / (9 atoms), a mean over frames; the weights are
// targets that data fill. eV, A.
op::Var loss_of_frames(transform::LossPorts& ports);

// Names of states that are counted on training data, by centre type: mean and deviation of a neighbour's
// weight s, and deviation of s x/r; and of the last bias of a type's network, an atom's energy in eV.
inline constexpr const char* radial_mean = "counted/radial_mean";
inline constexpr const char* radial_deviation = "counted/radial_deviation";
inline constexpr const char* angular_deviation = "counted/angular_deviation";
std::string energy_bias_name(int element);

// Neighbours of every row of a frame, as the model takes them.
struct Surroundings {
  std::vector<std::int32_t> index;  // [rows, room]: row of the neighbour; -1: none
  std::vector<std::int16_t> image;  // [rows, room, 3]: of the box's edges, how many lie between
};

// A frame with its atoms in the rows of the model.
struct PlacedFrame {
  data::DeepmdFrame frame;
  std::vector<std::int64_t> row;        // of each atom
  std::vector<data::Cartesian> inside;  // positions, in the box where there is one; in the file's order
  Surroundings near;
  std::string place;  // where it was read: "set/, frame 3"
  std::int64_t trajectory = 0;
};

// Sorts the atoms of a frame into rows and finds their neighbours within the cutoff; the nearest first within
// a type. Throws Error (bad_file) that names place and atom: an element that is no type, more atoms or
// neighbours than there is room for, two atoms at one place, coordinates that are not finite, a box without
// volume.
PlacedFrame place_frame(data::DeepmdFrame frame, const std::string& place, const DeepmdSizes& sizes);

// The five inputs of the model from frames: coord, type, box, neighbours, images; one row a frame.
void fill_frame(const PlacedFrame& frame, const DeepmdSizes& sizes, std::size_t row,
                std::span<Tensor> tensors);

// What the outputs energy, force and virial say of a frame that was filled into a row, in the file's order.
struct FrameAnswer {
  double energy;                        // eV
  std::vector<data::Cartesian> forces;  // eV/A
  std::array<double, 9> virial;         // eV
};
FrameAnswer answer_of(const PlacedFrame& frame, const DeepmdSizes& sizes, std::int64_t row,
                      std::span<const Tensor> outputs);

// Generated, or from the file or folder of the settings. Throws Error that names the frame, where labels are
// missing that are wanted, too.
std::vector<PlacedFrame> read_frames(const TaskSettings& settings, const Options& model);

std::unique_ptr<Task> open_frames(const TaskSettings& settings, const Options& model);
std::map<std::string, Tensor> counted_statistics(const Task& task, const Options& model, ThreadPool& pool);

std::unique_ptr<AtomModel> deepmd_atoms(const std::vector<int>& elements, const Options& model);

// What the model says of some frames; forces in the order of the file.
struct FrameAnswers {
  std::vector<const PlacedFrame*> frames;
  std::vector<std::int64_t> samples;                 // their numbers
  std::vector<double> energies;                      // eV
  std::vector<std::vector<data::Cartesian>> forces;  // eV/A
  std::vector<std::array<double, 9>> virials;        // eV
};
std::string present_frames(const FrameAnswers& answers, page::Page& page);

// lcurve.out from the lines of a run's metrics.jsonl: steps, errors on validation and training frames (of
// which the run looked at some), the learning rate.
std::string deepmd_curve(const std::vector<nlohmann::json>& log);

}  // namespace superstep::workload
