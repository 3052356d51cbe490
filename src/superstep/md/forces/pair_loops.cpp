// The loops of pair_loops.h in every instruction set that Highway knows for this machine; the best is chosen
// at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/md/forces/pair_loops.cpp"
#include "superstep/md/forces/pair_loops.h"

// foreach_target.h must come before the others.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace superstep::md::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using F64 = hn::CappedTag<double, Neighbours::lanes>;
using I64 = hn::RebindToSigned<F64>;
using I32 = hn::Rebind<std::int32_t, F64>;
using Vec = hn::Vec<F64>;
using Index = hn::Vec<I64>;

// A pair's energy and (dE/dr) / r, or a function and its slope over r.
struct Term {
  Vec value, pull;
};

HWY_INLINE Vec Number(double value) { return hn::Set(F64(), value); }

// Energies of pairs as a function that ends smoothly: `raw` times the cutoff's function, where that is not 1.
class Ending {
 public:
  explicit Ending(const SmoothCutoff& end)
      : start_square_(Number(end.start * end.start)),
        start_(Number(end.start)),
        inverse_width_(Number(end.cutoff > end.start ? 1 / (end.cutoff - end.start) : 0)) {}

  HWY_INLINE bool IsReached(Vec square) const { return !hn::AllFalse(F64(), hn::Gt(square, start_square_)); }
  // x^3(-6x^2+15x-10)+1 and its slope over r, x from 0 to 1.
  HWY_INLINE Term Factor(Vec r, Vec inverse_r) const {
    const Vec zero = Number(0), one = Number(1);
    const Vec x = hn::Min(hn::Max(hn::Mul(hn::Sub(r, start_), inverse_width_), zero), one);
    const Vec xx = hn::Mul(x, x);
    const Vec inner = hn::MulAdd(hn::MulAdd(Number(-6), x, Number(15)), x, Number(-10));
    const Vec value = hn::MulAdd(hn::Mul(xx, x), inner, one);
    const Vec rest = hn::Sub(x, one);
    const Vec slope = hn::Mul(hn::Mul(Number(-30), hn::Mul(xx, hn::Mul(rest, rest))), inverse_width_);
    return {value, hn::Mul(slope, inverse_r)};
  }
  HWY_INLINE Term Applied(const Term& raw, const Term& factor) const {
    return {hn::Mul(raw.value, factor.value),
            hn::MulAdd(raw.pull, factor.value, hn::Mul(raw.value, factor.pull))};
  }

 private:
  Vec start_square_, start_, inverse_width_;
};

// x to a whole power.
HWY_INLINE Vec Power(Vec x, int exponent) {
  Vec result = (exponent & 1) != 0 ? x : Number(1);
  for (exponent >>= 1; exponent > 0; exponent >>= 1) {
    x = hn::Mul(x, x);
    if ((exponent & 1) != 0) result = hn::Mul(result, x);
  }
  return result;
}

// What a pair is known by.
struct Pair {
  Vec square;
  Index place;
};

// Every vector of neighbours of an atom: `use`(pair, near, dx, dy, dz).
template <class Use>
HWY_INLINE void ForNeighbours(const Neighbours& all, std::size_t atom, double cutoff, const Use& use) {
  const F64 d;
  const double *const x = all.x(), *const y = all.y(), *const z = all.z();
  const Vec xi = hn::Set(d, x[atom]), yi = hn::Set(d, y[atom]), zi = hn::Set(d, z[atom]);
  const Vec limit = hn::Set(d, cutoff * cutoff);
  const auto list = all.of(atom);
  for (std::size_t k = 0; k < list.size(); k += hn::Lanes(d)) {
    const Index place = hn::PromoteTo(I64(), hn::LoadU(I32(), list.data() + k));
    const Vec dx = hn::Sub(hn::GatherIndex(d, x, place), xi);
    const Vec dy = hn::Sub(hn::GatherIndex(d, y, place), yi);
    const Vec dz = hn::Sub(hn::GatherIndex(d, z, place), zi);
    const Vec square = hn::MulAdd(dx, dx, hn::MulAdd(dy, dy, hn::Mul(dz, dz)));
    const auto near = hn::Lt(square, limit);
    if (hn::AllFalse(d, near)) continue;
    use(Pair{square, place}, near, dx, dy, dz);
  }
}

HWY_INLINE double Sum(Vec v) { return hn::GetLane(hn::SumOfLanes(F64(), v)); }

// Adds energy, forces and virial of the pairs of an atom; `term`(pair) is a Term.
template <bool with_virial, class Function>
HWY_INLINE void AddPairsOf(const AtomRange& range, std::size_t atom, double cutoff, const Function& term) {
  const F64 d;
  Vec energy = hn::Zero(d), fx = energy, fy = energy, fz = energy;
  Vec xx = energy, yy = energy, zz = energy, yz = energy, xz = energy, xy = energy;
  ForNeighbours(range.neighbours, atom, cutoff, [&](const Pair& pair, auto near, Vec dx, Vec dy, Vec dz) {
    const Term found = term(pair);
    energy = hn::Add(energy, hn::IfThenElseZero(near, found.value));
    const Vec pull = hn::IfThenElseZero(near, found.pull);
    fx = hn::MulAdd(pull, dx, fx), fy = hn::MulAdd(pull, dy, fy), fz = hn::MulAdd(pull, dz, fz);
    if (with_virial) {
      const Vec px = hn::Mul(pull, dx), py = hn::Mul(pull, dy), pz = hn::Mul(pull, dz);
      xx = hn::MulAdd(px, dx, xx), yy = hn::MulAdd(py, dy, yy), zz = hn::MulAdd(pz, dz, zz);
      yz = hn::MulAdd(py, dz, yz), xz = hn::MulAdd(px, dz, xz), xy = hn::MulAdd(px, dy, xy);
    }
  });
  range.energies[atom] += 0.5 * Sum(energy);
  range.forces[atom] += Cartesian{Sum(fx), Sum(fy), Sum(fz)};
  if (!with_virial) return;
  const Vec parts[] = {xx, yy, zz, yz, xz, xy};
  for (std::size_t k = 0; k < 6; ++k) range.virial[k] -= 0.5 * Sum(parts[k]);
}

template <class Function>
HWY_INLINE void AddPairs(const AtomRange& range, double cutoff, const Function& term) {
  for (std::size_t atom = range.first; atom < range.last; ++atom) {
    if (range.virial != nullptr)
      AddPairsOf<true>(range, atom, cutoff, [&](const Pair& pair) { return term(pair, atom); });
    else
      AddPairsOf<false>(range, atom, cutoff, [&](const Pair& pair) { return term(pair, atom); });
  }
}

HWY_INLINE Term LennardJonesTerm(const LennardJones& pair, Vec inverse_square) {
  const Vec q2 = hn::Mul(inverse_square, Number(pair.sigma * pair.sigma));
  const Vec q6 = hn::Mul(hn::Mul(q2, q2), q2);
  const Vec scaled = hn::Mul(q6, Number(4 * pair.epsilon));
  return {hn::Mul(scaled, hn::Sub(q6, Number(1))),
          hn::Mul(hn::Mul(hn::Mul(scaled, Number(-6)), hn::Sub(hn::Add(q6, q6), Number(1))), inverse_square)};
}

HWY_INLINE Term EndedLennardJones(const LennardJones& pair, const Ending& ending, Vec square,
                                  Vec inverse_square) {
  const Term raw = LennardJonesTerm(pair, inverse_square);
  if (!ending.IsReached(square)) return raw;
  const Vec r = hn::Sqrt(square);
  return ending.Applied(raw, ending.Factor(r, hn::Mul(r, inverse_square)));
}

void AddLennardJones(const LennardJones& pair, const SmoothCutoff& end, const AtomRange& range) {
  const Ending ending(end);
  AddPairs(range, end.cutoff, [&](const Pair& each, std::size_t) {
    return EndedLennardJones(pair, ending, each.square, hn::Div(Number(1), each.square));
  });
}

void AddMorse(const Morse& pair, const SmoothCutoff& end, const AtomRange& range) {
  const Ending ending(end);
  AddPairs(range, end.cutoff, [&](const Pair& each, std::size_t) {
    const Vec r = hn::Sqrt(each.square), inverse = hn::Div(Number(1), r);
    const Vec e = hn::Exp(F64(), hn::Mul(Number(-pair.alpha), hn::Sub(r, Number(pair.r0))));
    const Vec scaled = hn::Mul(e, Number(pair.depth));
    const Term raw{
        hn::Mul(scaled, hn::Sub(e, Number(2))),
        hn::Mul(hn::Mul(hn::Mul(scaled, Number(-2 * pair.alpha)), hn::Sub(e, Number(1))), inverse)};
    return ending.IsReached(each.square) ? ending.Applied(raw, ending.Factor(r, inverse)) : raw;
  });
}

// Densities of an atom's neighbours, summed.
template <class Function>
HWY_INLINE void SumDensities(const AtomRange& range, double cutoff, double* densities,
                             const Function& density) {
  for (std::size_t atom = range.first; atom < range.last; ++atom) {
    Vec sum = Number(0);
    ForNeighbours(range.neighbours, atom, cutoff, [&](const Pair& pair, auto near, Vec, Vec, Vec) {
      sum = hn::Add(sum, hn::IfThenElseZero(near, density(pair, atom)));
    });
    densities[atom] = Sum(sum);
  }
}

void FindDensities(const data::SuttonChen& metal, const SmoothCutoff& end, const AtomRange& range,
                   double* densities) {
  const Ending ending(end);
  SumDensities(range, end.cutoff, densities, [&](const Pair& pair, std::size_t) {
    const Vec r = hn::Sqrt(pair.square), inverse = hn::Div(Number(1), r);
    const Vec density = Power(hn::Mul(Number(metal.a), inverse), metal.m);
    return ending.IsReached(pair.square) ? hn::Mul(density, ending.Factor(r, inverse).value) : density;
  });
}

// What a pair does, of its repulsion and its density: each is a power of a/r.
HWY_INLINE Term Embedded(const Term& repulsion, const Term& density, Vec binding) {
  return {repulsion.value, hn::NegMulAdd(binding, density.pull, repulsion.pull)};
}

void AddEmbedded(const data::SuttonChen& metal, const SmoothCutoff& end, const AtomRange& range,
                 const double* binding) {
  const F64 d;
  const Ending ending(end);
  AddPairs(range, end.cutoff, [&](const Pair& pair, std::size_t atom) {
    const Vec r = hn::Sqrt(pair.square), inverse = hn::Div(Number(1), r);
    const Vec ratio = hn::Mul(Number(metal.a), inverse), minus = hn::Mul(inverse, hn::Neg(inverse));
    Term repulsion, density;
    repulsion.value = hn::Mul(Number(metal.epsilon), Power(ratio, metal.n));
    density.value = Power(ratio, metal.m);
    repulsion.pull = hn::Mul(repulsion.value, hn::Mul(Number(metal.n), minus));
    density.pull = hn::Mul(density.value, hn::Mul(Number(metal.m), minus));
    if (ending.IsReached(pair.square)) {
      const Term factor = ending.Factor(r, inverse);
      repulsion = ending.Applied(repulsion, factor), density = ending.Applied(density, factor);
    }
    const Vec both = hn::Add(Number(binding[atom]), hn::GatherIndex(d, binding, pair.place));
    return Embedded(repulsion, density, both);
  });
}

void FindMixedDensities(const MixedMetals& metals, const SmoothCutoff& end, const AtomRange& range,
                        double* densities) {
  const F64 d;
  const Ending ending(end);
  SumDensities(range, end.cutoff, densities, [&](const Pair& pair, std::size_t atom) {
    const Vec r = hn::Sqrt(pair.square), inverse = hn::Div(Number(1), r);
    const Vec log_a = hn::Add(Number(metals.log_a[atom]), hn::GatherIndex(d, metals.log_a, pair.place));
    const Vec m = hn::Add(Number(metals.m[atom]), hn::GatherIndex(d, metals.m, pair.place));
    const Vec density = hn::Exp(d, hn::Mul(m, hn::Sub(log_a, hn::Log(d, r))));
    return hn::Mul(density, ending.Factor(r, inverse).value);
  });
}

void AddMixedEmbedded(const MixedMetals& metals, const SmoothCutoff& end, const AtomRange& range,
                      const double* binding) {
  const F64 d;
  const Ending ending(end);
  AddPairs(range, end.cutoff, [&](const Pair& pair, std::size_t atom) {
    const auto of_pair = [&](const double* halves) {
      return hn::Add(Number(halves[atom]), hn::GatherIndex(d, halves, pair.place));
    };
    const Vec r = hn::Sqrt(pair.square), inverse = hn::Div(Number(1), r);
    const Vec log_ratio = hn::Sub(of_pair(metals.log_a), hn::Log(d, r));
    const Vec n = of_pair(metals.n), m = of_pair(metals.m), minus = hn::Mul(inverse, hn::Neg(inverse));
    Term repulsion, density;
    repulsion.value = hn::Exp(d, hn::MulAdd(n, log_ratio, of_pair(metals.log_epsilon)));
    density.value = hn::Exp(d, hn::Mul(m, log_ratio));
    repulsion.pull = hn::Mul(repulsion.value, hn::Mul(n, minus));
    density.pull = hn::Mul(density.value, hn::Mul(m, minus));
    const Term factor = ending.Factor(r, inverse);
    return Embedded(ending.Applied(repulsion, factor), ending.Applied(density, factor), of_pair(binding));
  });
}

// The polynomial and its slope, by Horner's rule.
HWY_INLINE Term Polynomial(const ChargedPairs& pairs, Vec t) {
  Vec value = Number(pairs.polynomial[static_cast<std::size_t>(pairs.terms - 1)]), slope = Number(0);
  for (int k = pairs.terms - 2; k >= 0; --k) {
    slope = hn::MulAdd(slope, t, value);
    value = hn::MulAdd(value, t, Number(pairs.polynomial[static_cast<std::size_t>(k)]));
  }
  return {value, slope};
}

void AddCharged(const ChargedPairs& pairs, const SmoothCutoff& end, const AtomRange& range,
                const double* charges, const double* is_oxygen) {
  const F64 d;
  const Ending ending(end);
  const double scale = 2 / (end.cutoff * end.cutoff);
  AddPairs(range, end.cutoff, [&](const Pair& pair, std::size_t atom) {
    const Vec inverse_square = hn::Div(Number(1), pair.square), inverse = hn::Sqrt(inverse_square);
    const Vec bare = hn::Mul(Number(pairs.coulomb), inverse), linear = hn::Mul(Number(pairs.linear), inverse);
    const Term smooth = Polynomial(pairs, hn::MulAdd(pair.square, Number(scale), Number(-1)));
    const Vec charge = hn::Mul(Number(charges[atom]), hn::GatherIndex(d, charges, pair.place));
    const Vec value = hn::Add(hn::MulAdd(linear, pair.square, bare), smooth.value);
    const Vec pull =
        hn::Add(hn::NegMulAdd(bare, inverse_square, linear), hn::Mul(smooth.pull, Number(2 * scale)));
    Term term{hn::Mul(charge, value), hn::Mul(charge, pull)};
    if (is_oxygen[atom] != 0) {
      const Vec both = hn::GatherIndex(d, is_oxygen, pair.place);
      const Term lj = EndedLennardJones(pairs.oxygens, ending, pair.square, inverse_square);
      term = {hn::MulAdd(both, lj.value, term.value), hn::MulAdd(both, lj.pull, term.pull)};
    }
    return term;
  });
}

}  // namespace superstep::md::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::md {

HWY_EXPORT(AddLennardJones);
HWY_EXPORT(AddMorse);
HWY_EXPORT(FindDensities);
HWY_EXPORT(AddEmbedded);
HWY_EXPORT(FindMixedDensities);
HWY_EXPORT(AddMixedEmbedded);
HWY_EXPORT(AddCharged);

void add_lennard_jones(const LennardJones& pair, const SmoothCutoff& end, const AtomRange& range) {
  HWY_DYNAMIC_DISPATCH(AddLennardJones)(pair, end, range);
}
void add_morse(const Morse& pair, const SmoothCutoff& end, const AtomRange& range) {
  HWY_DYNAMIC_DISPATCH(AddMorse)(pair, end, range);
}
void find_densities(const data::SuttonChen& metal, const SmoothCutoff& end, const AtomRange& range,
                    double* densities) {
  HWY_DYNAMIC_DISPATCH(FindDensities)(metal, end, range, densities);
}
void add_embedded(const data::SuttonChen& metal, const SmoothCutoff& end, const AtomRange& range,
                  const double* binding) {
  HWY_DYNAMIC_DISPATCH(AddEmbedded)(metal, end, range, binding);
}
void find_mixed_densities(const MixedMetals& metals, const SmoothCutoff& end, const AtomRange& range,
                          double* densities) {
  HWY_DYNAMIC_DISPATCH(FindMixedDensities)(metals, end, range, densities);
}
void add_mixed_embedded(const MixedMetals& metals, const SmoothCutoff& end, const AtomRange& range,
                        const double* binding) {
  HWY_DYNAMIC_DISPATCH(AddMixedEmbedded)(metals, end, range, binding);
}
void add_charged(const ChargedPairs& pairs, const SmoothCutoff& end, const AtomRange& range,
                 const double* charges, const double* is_oxygen) {
  HWY_DYNAMIC_DISPATCH(AddCharged)(pairs, end, range, charges, is_oxygen);
}

}  // namespace superstep::md
#endif
