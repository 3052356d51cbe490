// What a planner answers: how an operator is spread over the tiles, its cycles by part, and its memory.
#pragma once

#include <cstdint>
#include <string>

namespace superstep::machine::ipu {

// Cycles of the slowest tile, by what they are spent on.
struct Cycles {
  double compute = 0;    // vertices of the operator
  double exchange = 0;   // bytes between tiles, with the set-up of each phase
  double sync = 0;       // barriers
  double rearrange = 0;  // copies that change the order of elements
  double control = 0;    // the program around it

  double total() const { return compute + exchange + sync + rearrange + control; }
  Cycles& operator+=(const Cycles& other) {
    compute += other.compute;
    exchange += other.exchange;
    sync += other.sync;
    rearrange += other.rearrange;
    control += other.control;
    return *this;
  }
  friend Cycles operator+(Cycles a, const Cycles& b) { return a += b; }
  friend Cycles operator*(double factor, Cycles cycles) {
    for (double* part : {&cycles.compute, &cycles.exchange, &cycles.sync, &cycles.rearrange, &cycles.control})
      *part *= factor;
    return cycles;
  }
  const char* largest() const;  // "compute", "exchange", ...
};

// Bytes of the fullest tile while the operator runs.
struct TileBytes {
  double operands = 0;     // always live: inputs, weights, results as they are spread between operators
  double temporary = 0;    // copies gathered for the operator, in ordinary memory
  double interleaved = 0;  // partial sums, in the memory that is read 128 bits a cycle
  double code = 0;         // vertices' code and state, exchange code
  int elements = 0;        // memory elements left half empty, because operands must lie in different ones
  // Pieces that lie apart, received and sent in all exchanges, each with exchange code of its own; and how
  // many they are where those of one partner are put in order first.
  double pieces = 0, partners = 0;

  double total() const { return operands + temporary + interleaved + code; }
};

struct Plan {
  std::string vertex;      // "AMP 1x1", "reduce", ...
  std::string partition;   // "positions 92 x outputs 4 x inputs 4", for people
  std::int64_t tiles = 0;  // that have work
  double macs = 0;         // useful multiply-accumulates
  Cycles cycles;
  TileBytes bytes;
};

// One operator after the other: cycles add, the memory is that of the fullest moment.
Plan in_sequence(const Plan& first, const Plan& second);

}  // namespace superstep::machine::ipu
