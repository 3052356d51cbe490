// An axis of a plot: where a value lies, and the round values at which it is marked.
#pragma once

#include <string>
#include <vector>

namespace superstep::page {

// The smallest and largest value seen; nothing seen when low > high.
struct Extent {
  double low, high;
  Extent();
  bool empty() const { return low > high; }
  void include(double value);
};

struct Tick {
  double value;
  std::string label;
};

class Axis {
 public:
  // Covers `extent` with about `wanted` ticks. An extent with nothing in it gives [0, 1] (log: [1, 10]),
  // a single value a small interval around it. `margin` is the part of the extent added at either end;
  // an axis that starts at zero, or would nearly do so, gets none there. `whole`: only whole numbers are
  // marked.
  Axis(Extent extent, bool log, int wanted, double margin, bool whole = false);

  double position(double value) const;  // 0 at the low end, 1 at the high end
  double low() const { return low_; }
  double high() const { return high_; }
  const std::vector<Tick>& ticks() const { return ticks_; }
  const std::vector<double>& minor_ticks() const { return minor_; }  // unlabelled; log axes only

 private:
  void widen(Extent extent, double margin);
  void mark_linear(int wanted);
  void mark_decades(int wanted);
  void thin_out();

  bool log_, whole_;
  double low_ = 0, high_ = 1;
  std::vector<Tick> ticks_;
  std::vector<double> minor_;
};

// Can the value be drawn: finite, of a sane magnitude, and positive on a logarithmic axis?
bool drawable(double value, bool log);

// The number as a tick of spacing `step` shows it, on an axis whose ticks reach the magnitude `largest`:
// "0.25", "20,000", "0.5×10⁶". All ticks of an axis have the same form.
std::string tick_label(double value, double step, double largest);

}  // namespace superstep::page
