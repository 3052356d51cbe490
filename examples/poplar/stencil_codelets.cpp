// The codelet of stencil.cpp: a rod's pieces, each relaxed by its neighbours.
#include <poplar/Vertex.hpp>

using namespace poplar;

class Relax : public Vertex {
 public:
  Input<Vector<float>> left, piece,
      right;  // the last element before the piece, the piece, the first one behind it
  Output<Vector<float>> next;
  float rate;

  bool compute() {
    const unsigned n = piece.size();
    for (unsigned i = 0; i < n; ++i) {
      const float before = i > 0 ? piece[i - 1] : left[0], after = i + 1 < n ? piece[i + 1] : right[0];
      next[i] = piece[i] + rate * (before - 2 * piece[i] + after);
    }
    return true;
  }
};
